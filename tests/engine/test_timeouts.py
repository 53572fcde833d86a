"""An attempt that takes too long loses its slot, its session and its right to write."""

import asyncio
import threading

from django.db import connection
from tests.support.gates import gate, gate_of
from tests.support.jobs import history, job, wait_for_state
from tests.support.kinds import note, notes
from tests.support.waiting import wait_for
from tests.support.workers import worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.errors import LeaseLost
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.retry import RetryPolicy

SHORT = 0.2
#: For handlers that have something to do within it, which takes long where many processes share a processor.
ROOMY = 1.0
ONCE = RetryPolicy(base=0.1, attempts=1)
TWICE = RetryPolicy(base=0.1, attempts=2)
refused: list[int] = []


@job_kind("test.too_slow", retry=ONCE, timeout=SHORT)
def too_slow(job: RunningJob, gate: str) -> None:
    gate_of(gate).pass_through(job)
    try:
        with job.transaction():
            note("late", "written after the timeout")
    except LeaseLost:
        refused.append(job.id)
    gate_of(gate).left.put(job)


@job_kind("test.too_slow_in_transaction", retry=ONCE, timeout=ROOMY)
def too_slow_in_transaction(job: RunningJob, gate: str) -> None:
    try:
        with job.transaction():
            note("late", "written before the timeout, not committed")
            gate_of(gate).pass_through(job)
    finally:
        gate_of(gate).left.put(job)


@job_kind("test.too_slow_async", retry=ONCE, timeout=SHORT)
async def too_slow_async(job: RunningJob, gate: str) -> None:
    try:
        await gate_of(gate).pass_through_async(job)
    finally:
        gate_of(gate).left.put(job)


@job_kind("test.stubborn_async", retry=ONCE, timeout=SHORT)
async def stubborn_async(job: RunningJob, gate: str) -> None:
    while True:
        try:
            await gate_of(gate).pass_through_async(job)
            break
        except asyncio.CancelledError:
            continue
    gate_of(gate).left.put(job)


@job_kind("test.slow_once", retry=TWICE, timeout=ROOMY)
def slow_once(job: RunningJob, gate: str) -> str:
    if job.attempt == 1:
        gate_of(gate).pass_through(job)
    return f"attempt {job.attempt}"


@job_kind("test.fast_enough", timeout=30.0)
def fast_enough(job: RunningJob) -> str:
    return "in time"


def test_a_timeout_frees_the_slot_of_a_thread_and_the_late_writes_are_refused(database):
    with worker_thread(threads=1), gate("stuck") as stuck:
        late = enqueue("test.too_slow", {"gate": "stuck"}).job_id
        stuck.next_job()
        assert wait_for_state(late, "failed").error_type == "JOB_TIMEOUT"
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        stuck.open()
        stuck.next_left()
    assert refused[-1] == late
    assert notes("late") == []
    assert history(late) == ["pending", "running", "failed"]


def test_a_timeout_breaks_off_the_transaction_of_its_handler(database):
    with worker_thread(threads=1), gate("stuck") as stuck:
        late = enqueue("test.too_slow_in_transaction", {"gate": "stuck"}).job_id
        stuck.next_job()
        wait_for_state(late, "failed")
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        stuck.open()
        stuck.next_left()
    assert notes("late") == []
    assert job(late).error_type == "JOB_TIMEOUT"


def test_a_timeout_interrupts_a_coroutine_and_frees_its_slot(database):
    with worker_thread(threads=1), gate("stuck") as stuck:
        late = enqueue("test.too_slow_async", {"gate": "stuck"}).job_id
        stuck.next_job()
        assert wait_for_state(late, "failed").error_type == "JOB_TIMEOUT"
        stuck.next_left()
        wait_for_state(enqueue("test.gated_async", {"gate": "stuck"}).job_id, "running")


def test_a_coroutine_that_ignores_its_cancellation_loses_its_slot_all_the_same(database):
    with worker_thread(threads=1), gate("stuck") as stuck:
        late = enqueue("test.stubborn_async", {"gate": "stuck"}).job_id
        stuck.next_job()
        wait_for_state(late, "failed")
        wait_for_state(enqueue("test.note").job_id, "succeeded")
        stuck.open()
        stuck.next_left()
    assert history(late) == ["pending", "running", "failed"]


def test_a_timed_out_job_is_tried_again_while_its_first_handler_still_hangs(database):
    with worker_thread(threads=1), gate("stuck") as stuck:
        late = enqueue("test.slow_once", {"gate": "stuck"}).job_id
        stuck.next_job()
        assert wait_for_state(late, "succeeded").result == "attempt 2"
    assert history(late) == ["pending", "running", "retryable", "running", "succeeded"]


def test_a_timeout_in_a_lane_frees_the_lane(database):
    with worker_thread(threads=2), gate("stuck") as stuck:
        late = enqueue("test.too_slow", {"gate": "stuck"}, lane="x").job_id
        stuck.next_job()
        waiting = enqueue("test.note", lane="x").job_id
        wait_for_state(waiting, "succeeded")
        wait_for_state(late, "failed")


def test_a_handler_in_time_is_not_touched(database):
    with worker_thread(threads=2):
        for _ in range(20):
            assert wait_for_state(enqueue("test.fast_enough").job_id, "succeeded").result == "in time"


def test_many_timeouts_lose_no_slot_and_leave_no_thread(database):
    before = threading.active_count()
    with worker_thread(threads=2), gate("stuck") as stuck:
        late = [enqueue("test.too_slow", {"gate": "stuck"}).job_id for _ in range(8)]
        for job_id in late:
            wait_for_state(job_id, "failed")
        waiting = [enqueue("test.gated", {"gate": "stuck"}).job_id for _ in range(4)]
        wait_for(lambda: sorted(job(job_id).state for job_id in waiting) == ["pending"] * 2 + ["running"] * 2)
        stuck.open()
        for job_id in waiting:
            wait_for_state(job_id, "succeeded")
    wait_for(lambda: threading.active_count() <= before, "all threads ended")
    assert len(refused) >= 8


def test_a_handler_that_returns_at_the_moment_of_its_timeout_frees_one_slot(database):
    """The handler and the timeout race; in both cases the worker keeps exactly its slots."""
    with worker_thread(threads=2) as worker:
        racing = [enqueue("test.race_with_timeout").job_id for _ in range(40)]
        for job_id in racing:
            wait_for_state(job_id, "succeeded", "failed")
        wait_for(lambda: worker._slots.free == 2, "both slots free")
    assert connection.is_usable()


@job_kind("test.race_with_timeout", retry=ONCE, timeout=0.03)
def race_with_timeout(job: RunningJob) -> None:
    threading.Event().wait(0.03)
