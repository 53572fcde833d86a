"""Workers that were taken for dead and come back: nothing they do counts any more."""

import signal

import pytest
from tests.support.kinds import FAST, notes
from tests.support.outcomes import backend_lives, job, take_from_its_worker, wait_until_ended
from tests.support.signals import say, wait_to_hear
from tests.support.waiting import wait_for
from tests.support.workers import external_url, worker_processes, worker_thread

from harvester.engine.claim import Claimer
from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.outcomes import ended_by, settle_in, succeeded
from harvester.kernel.errors import TerminalError


@pytest.fixture(params=["embedded", "one external URL"])
def address(request, database):
    """How a worker process finds the database. With one URL, its sessions give up the owner's rights by SET ROLE."""
    return {} if request.param == "embedded" else external_url()


@pytest.mark.parametrize("finish", [True, False], ids=["finish", "write"])
def test_what_a_worker_does_after_it_was_taken_for_dead_changes_nothing(database, finish):
    job_id = enqueue("test.late_write", {"key": "k", "finish": finish}).job_id
    with worker_processes(1, "name=zombie") as [zombie]:
        wait_to_hear("started:k")
        zombie.send_signal(signal.SIGSTOP)
        with worker_processes(1, "name=heir"):
            wait_until_ended(job_id)
        zombie.send_signal(signal.SIGCONT)
        say("release:k")
        wait_to_hear("tried:k:1")
        zombie.send_signal(signal.SIGTERM)
        assert zombie.wait(30) == 0
    ended = job(job_id)
    assert (ended.state, ended.result, ended.attempt) == ("succeeded", "heir 2", 2)
    assert notes("k") == ["heir 2"]


@pytest.mark.parametrize("kind", ["test.inside_transaction", "test.inside_copy"])
def test_a_worker_frozen_while_it_writes_is_taken_over_and_its_session_ended(address, kind):
    job_id = enqueue(kind, {"key": "k"}).job_id
    with worker_processes(1, "name=frozen", **address) as [frozen]:
        backend = int(wait_to_hear("inside:k"))
        frozen.send_signal(signal.SIGSTOP)
        assert backend_lives(backend)
        with worker_processes(1, "name=heir", **address):
            wait_until_ended(job_id)
        assert not backend_lives(backend)
        frozen.send_signal(signal.SIGCONT)
        say("release:k")
        frozen.send_signal(signal.SIGTERM)
        assert frozen.wait(30) == 0
    ended = job(job_id)
    assert (ended.state, ended.result) == ("succeeded", "heir 2")
    assert notes("k") == ["heir 2"]


def test_an_attempt_that_was_lost_does_not_end_the_new_one_in_the_same_worker(database):
    """Its worker claims the job again while the old handler still runs: the new attempt must go on beating."""
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_thread(threads=2) as worker:
        wait_to_hear("started:k:1")
        take_from_its_worker(job_id)
        wait_to_hear("started:k:2")
        say("release:k:1")
        wait_for(lambda: worker._slots.busy == 1 and not worker._endings, "the end of the old handler")
        for _ in range(3):
            before = job(job_id).heartbeat_at
            wait_for(lambda: job(job_id).heartbeat_at > before, "the next heartbeat of the new attempt")  # noqa: B023
        say("release:k:2")
        ended = wait_until_ended(job_id)
    assert ended.attempt == 2
    assert ended.result.endswith(" 2")


def test_of_two_endings_of_a_job_in_one_batch_only_the_one_with_the_lease_counts(database):
    job_id = enqueue("test.noop").job_id
    with connect("test") as connection:
        [lost] = Claimer(worker="w", queues=[]).claim(connection, 1)
        take_from_its_worker(job_id)
        [held] = Claimer(worker="w", queues=[]).claim(connection, 1)
        endings = [ended_by(lost, TerminalError("from the grave"), FAST), succeeded(held, "alive")]
        for batch in (endings[:1], [*endings, *endings[:1]]):
            with connection.cursor() as cursor:
                settled = settle_in(cursor, batch)
    assert settled == {held.key: "succeeded"}
    assert job(job_id).result == "alive"
