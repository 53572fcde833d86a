"""A person asks a job to stop."""

import asyncio
import threading

import pytest
from tests.support.gates import gate, gate_of
from tests.support.jobs import change, history, job, state, wait_for_state
from tests.support.kinds import note, notes
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.errors import JobCancelled
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound, TransientError
from harvester.ops import jobs as verbs
from harvester.ops.models import AuditEvent

PERSON = Actor(kind="person", id="7", name="Ada")


@job_kind("test.asks")
def asks(job: RunningJob, gate: str) -> None:
    """Works in small steps and asks between them."""
    gate_of(gate).entered.put(job)
    pause = threading.Event()
    try:
        while True:
            job.check()
            pause.wait(0.01)
    finally:
        gate_of(gate).left.put(job)


@job_kind("test.asks_in_transaction")
def asks_in_transaction(job: RunningJob, gate: str) -> None:
    with job.transaction():
        note("x", "written")
        asks(job, gate)


@job_kind("test.never_asks")
async def never_asks(job: RunningJob, gate: str) -> None:
    gate_of(gate).entered.put(job)
    try:
        await asyncio.sleep(60)
    finally:
        gate_of(gate).left.put(job)


@job_kind("test.fails_when_asked_to_stop")
def fails_when_asked_to_stop(job: RunningJob, gate: str) -> None:
    try:
        asks(job, gate)
    except JobCancelled:
        raise TransientError("something broke on the way out") from None


def test_a_waiting_job_is_cancelled_at_once_and_never_runs(database):
    made = enqueue("test.note", {"key": "x"}).job_id
    assert verbs.cancel(PERSON, made) == "cancelled"
    run_until_idle()
    assert history(made) == ["pending", "cancelled"]
    assert (notes("x"), job(made).finished_at is not None) == ([], True)


def test_a_job_that_waits_for_its_next_attempt_is_cancelled_at_once(database):
    made = enqueue("test.fail_transient").job_id
    run_until_idle()
    assert verbs.cancel(PERSON, made) == "cancelled"
    assert history(made) == ["pending", "running", "retryable", "cancelled"]
    assert job(made).error == "not now"


def test_a_future_job_is_cancelled_at_once(database):
    made = enqueue("test.note", delay=3600, lane="x").job_id
    assert verbs.cancel(PERSON, made) == "cancelled"


def test_a_running_handler_that_asks_is_stopped(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.asks", {"gate": "x"}).job_id
        x.next_job()
        assert verbs.cancel(PERSON, made) == "running"
        stopped = wait_for_state(made, "cancelled")
    assert stopped.finished_at is not None
    assert history(made)[-1] == "cancelled"


def test_a_running_handler_stops_with_its_transaction_undone(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.asks_in_transaction", {"gate": "x"}).job_id
        x.next_job()
        verbs.cancel(PERSON, made)
        wait_for_state(made, "cancelled")
    assert notes("x") == []


def test_a_running_coroutine_is_interrupted(database):
    with worker_thread(threads=1), gate("x") as x:
        made = enqueue("test.never_asks", {"gate": "x"}).job_id
        x.next_job()
        verbs.cancel(PERSON, made)
        wait_for_state(made, "cancelled")
        x.next_left()
        wait_for_state(enqueue("test.note").job_id, "succeeded")


def test_a_cancel_reaches_a_handler_between_two_heartbeats(database):
    slow_heartbeat = {"heartbeat_seconds": 600.0, "stuck_seconds": 3600.0}
    with worker_thread(**slow_heartbeat), gate("x") as x:
        made = [enqueue(kind, {"gate": "x"}).job_id for kind in ("test.asks", "test.never_asks")]
        for _ in made:
            x.next_job()
        for job_id in made:
            verbs.cancel(PERSON, job_id)
        for job_id in made:
            wait_for_state(job_id, "cancelled")


def test_a_handler_that_never_asks_ends_as_it_would_have(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.gated", {"gate": "x"}).job_id
        running = x.next_job()
        verbs.cancel(PERSON, made)
        wait_for(lambda: running.cancel_requested, "the worker knows")
        x.open()
        assert wait_for_state(made, "succeeded").result == "passed"


def test_a_wish_to_stop_beats_another_attempt(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.fails_when_asked_to_stop", {"gate": "x"}).job_id
        x.next_job()
        verbs.cancel(PERSON, made)
        stopped = wait_for_state(made, "cancelled", "retryable", "failed")
    assert (stopped.state, stopped.error) == ("cancelled", "something broke on the way out")


def test_a_stopping_worker_does_not_hand_back_a_job_that_should_stop(database):
    with gate("x") as x:
        with worker_thread(grace_seconds=0.0):
            made = enqueue("test.gated", {"gate": "x"}).job_id
            x.next_job()
            verbs.cancel(PERSON, made)
        assert state(made) == "cancelled"


@pytest.mark.parametrize("ended", ["succeeded", "failed", "cancelled"])
def test_a_job_that_has_ended_is_not_cancelled(database, ended):
    made = enqueue("test.note").job_id
    change(made, "state = %s, finished_at = clock_timestamp()", ended)
    with pytest.raises(Conflict):
        verbs.cancel(PERSON, made)
    assert (state(made), job(made).cancel_requested_at) == (ended, None)
    assert not AuditEvent.objects.exists()


def test_a_job_that_does_not_exist_is_not_found(database):
    with pytest.raises(NotFound):
        verbs.cancel(PERSON, 12345)


def test_a_cancel_is_audited_with_what_the_job_was_doing(database):
    made = enqueue("test.note").job_id
    verbs.cancel(PERSON, made)
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_id, event.actor_name, event.detail) == (
        "JOB_CANCELLED",
        str(made),
        "Ada",
        {"was": "pending"},
    )


def test_asking_twice_is_harmless(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.gated", {"gate": "x"}).job_id
        x.next_job()
        verbs.cancel(PERSON, made)
        first = job(made).cancel_requested_at
        verbs.cancel(PERSON, made)
        assert job(made).cancel_requested_at == first
        x.open()
        wait_for_state(made, "succeeded")


def test_a_cancelled_job_can_be_driven_again_and_is_not_cancelled_at_once(database):
    made = enqueue("test.note").job_id
    verbs.cancel(PERSON, made)
    verbs.retry(PERSON, made)
    run_until_idle()
    assert state(made) == "succeeded"
    assert history(made) == ["pending", "cancelled", "pending", "running", "succeeded"]


def test_a_cancel_while_a_worker_claims_ends_in_one_of_both(database):
    """Either side may get the row first: the job is cancelled before it runs, or asked to stop while it does."""
    with worker_thread(threads=4):
        for _ in range(30):
            made = enqueue("test.note").job_id
            try:
                verbs.cancel(PERSON, made)
            except Conflict:
                assert state(made) == "succeeded"
            wait_for_state(made, "cancelled", "succeeded")
