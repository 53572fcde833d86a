"""Workers that freeze, or die and leave a session behind, in the middle of a run: others take over, nothing doubles."""

import os
import signal

import pytest
from django.db import connection
from tests.support.feed_twins import ask_to_approve
from tests.support.feed_worker import feed_worker, wait_at_point
from tests.support.outcomes import backend_lives, job, wait_until_ended
from tests.support.signals import say, wait_to_hear
from tests.support.workers import worker_thread

#: Where a worker freezes: with the lock and no transaction, in a transaction, inside a COPY.
FROZEN = {
    "idle with the lock": ["STEP _download"],
    "inside the copy to staging": ["COPY staged_rows"],
    "inside the promotion": ["STEP promote", "UPDATE offers"],
    "before the commit of the promotion": ["STEP promote", "COMMIT"],
}
#: The same where new products are copied during the promotion, so that two sessions write.
FROZEN_IN_PARALLEL = {
    "inside the copy of products": ["COPY source_products"],
    "while products are copied": ["STEP promote", "UPDATE offers"],
    "between two blocks of products": ["COPY source_products", "COMMITTED"],
}


@pytest.mark.parametrize("path", FROZEN.values(), ids=FROZEN)
def test_a_frozen_worker_is_replaced_and_finds_its_writes_refused_when_it_wakes(twins, path):
    freeze_and_wake(twins, feed_worker(*path))


@pytest.mark.parametrize("path", FROZEN_IN_PARALLEL.values(), ids=FROZEN_IN_PARALLEL)
def test_a_worker_that_froze_with_two_sessions_is_replaced_like_any_other(twins, path):
    freeze_and_wake(twins, feed_worker(*path, few=0))


def freeze_and_wake(twins, worker):
    """It freezes where it stops, another one takes its run over, and it wakes."""
    twins.publish()
    run = twins.disturbed.ask()
    with worker as zombie:
        backend = wait_at_point()
        frozen(zombie)
        twins.peaceful.ask()
        with worker_thread():
            wait_until_ended(run)
        assert not backend_lives(backend)
        twins.must_be_alike()
        awake(zombie)
    twins.must_be_alike()
    assert job(run).attempt == 2


def test_a_frozen_approval_is_replaced_and_finds_its_writes_refused_when_it_wakes(twins):
    twins.hold()
    decision = ask_to_approve(twins.disturbed)
    with feed_worker("STEP promote", "INSERT INTO offers") as zombie:
        wait_at_point()
        frozen(zombie)
        ask_to_approve(twins.peaceful)
        with worker_thread():
            wait_until_ended(decision)
        awake(zombie)
    twins.must_be_alike()


@pytest.mark.parametrize(
    "path", [["STEP promote", "UPDATE offers"], ["STEP judge"]], ids=["in a transaction", "outside of transactions"]
)
def test_a_session_that_outlives_its_killed_worker_is_ended_and_the_run_goes_on(twins, path):
    twins.publish()
    run = twins.disturbed.ask()
    with feed_worker(*path, forever=True) as victim:
        backend = wait_at_point()
        victim.kill()
        victim.join()
        twins.peaceful.ask()
        assert backend_lives(backend)
        assert is_locked(twins.disturbed.feed)
        with worker_thread():
            wait_until_ended(run)
        assert not backend_lives(backend)
    twins.must_be_alike()


def test_a_stopping_worker_hands_its_run_back_and_the_attempt_with_it(twins):
    twins.publish()
    run = twins.disturbed.ask()
    with feed_worker("COPY source_products", grace_seconds=0.2) as worker:
        wait_at_point()
        worker.terminate()
        worker.join(30)
        assert worker.exitcode == 0
    assert (job(run).state, job(run).attempt) == ("pending", 0)
    twins.peaceful.ask()
    twins.disturbed.work(run)
    assert job(run).attempt == 1
    twins.must_be_alike()


def test_a_stopping_worker_lets_a_run_end_that_ends_in_time(twins):
    twins.publish()
    twins.peaceful.run()
    run = twins.disturbed.ask()
    with feed_worker("STEP promote", grace_seconds=30.0) as worker:
        wait_at_point()
        worker.terminate()
        wait_to_hear("stopping")
        say("go on")
        worker.join(30)
        assert worker.exitcode == 0
    assert job(run).attempt == 1
    twins.must_be_alike()


def frozen(process):
    os.kill(process.pid, signal.SIGSTOP)


def awake(process):
    """It continues where it froze, and ends on request."""
    os.kill(process.pid, signal.SIGCONT)
    say("go on")
    process.terminate()
    process.join(30)
    assert process.exitcode == 0


def is_locked(feed):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND objsubid = 2 "
            "AND granted)",
            [feed.lock_no],
        )
        return cursor.fetchone()[0]
