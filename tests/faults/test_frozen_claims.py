"""A worker that freezes in the middle of a claim holds rows of jobs and lanes; nobody else waits for them."""

from contextlib import contextmanager, suppress

import psycopg
import pytest
from tests.support.outcomes import job, wait_until
from tests.support.tables import rows
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.claim import RETRY_SECONDS, Claimer
from harvester.engine.connections import connect
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many


@contextmanager
def frozen_claim(most: int = 1):
    """A claim whose transaction stays open, as that of a frozen process does."""
    with connect("test") as session, session.transaction(force_rollback=True):
        yield Claimer(worker="frozen", queues=[]).claim(session, most)


@pytest.fixture(params=["a lane that was used before", "a new lane"])
def lane(request, database):
    if request.param == "a lane that was used before":
        enqueue("test.noop", lane="shop")
        run_until_idle()
    return "shop"


def test_nobody_waits_for_a_lane_that_a_frozen_worker_is_claiming_from(lane):
    held = enqueue("test.noop", lane=lane).job_id
    with frozen_claim() as claimed, worker_thread() as worker:
        assert [found.id for found in claimed] == [held]
        waiting = enqueue("test.noop", lane=lane).job_id
        wait_until(enqueue("test.noop").job_id, "succeeded")
        wait_until(enqueue("test.noop", lane="other").job_id, "succeeded")
        assert job(waiting).state == "pending"
        assert not worker._failures
    run_until_idle()
    assert (job(held).state, job(waiting).state) == ("succeeded", "succeeded")


def test_a_lane_that_somebody_else_holds_makes_nobody_ask_without_a_pause(lane):
    enqueue("test.noop", lane=lane)
    with connect("test") as session, session.transaction():
        Claimer(worker="first", queues=[]).claim(session, 0)
    with frozen_claim(), connect("test") as session:
        claimer = Claimer(worker="w", queues=[])
        assert claimer.claim(session, 1) == []
        assert claimer.next_in is None or claimer.next_in >= RETRY_SECONDS


def test_what_a_worker_claimed_while_it_froze_is_claimed_by_others_after_the_stuck_time(database):
    """No timeout of the server's fires: a client that has sent statements and no end of them counts as active."""
    job_ids = [enqueue("test.noop").job_id, enqueue("test.noop", lane="shop").job_id]
    with connect("dispatch") as session, suppress(psycopg.OperationalError), session.pipeline():
        assert len(Claimer(worker="frozen", queues=[]).claim(session, 2)) == 2
        with worker_thread():
            ended = [wait_until(job_id, "succeeded") for job_id in job_ids]
    assert [found.attempt for found in ended] == [1, 1]


def test_wake_ups_of_a_lane_that_was_held_elsewhere_are_not_lost(lane):
    enqueue("test.noop", lane=lane)
    claimer = Claimer(worker="w", queues=[])
    with connect("test") as session:
        with frozen_claim():
            enqueue("test.noop", lane=lane)
            assert claimer.claim(session, 9) == []
        assert len(claimer.claim(session, 9)) == 1
        assert rows("SELECT FROM job_lane_wakeups") == []


def test_work_until_idle_ends_only_behind_all_lanes_that_look_due(database):
    """The ends of earlier jobs woke lanes in which nothing waits; the one with a job comes after them."""
    enqueue_many([NewJob(kind="test.noop", lane=f"empty {number}") for number in range(50)])
    run_until_idle(threads=2)
    waiting = enqueue("test.noop", lane="last").job_id
    run_until_idle(threads=2)
    assert job(waiting).state == "succeeded"
