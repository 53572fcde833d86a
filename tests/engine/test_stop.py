"""A stopping worker lets its jobs finish, hands back the others, and leaves nothing behind."""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest
from tests.support.gates import gate, gate_of
from tests.support.jobs import history, job, state, wait_for_state
from tests.support.kinds import note, notes
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import QUICK, refuse_to_end, run_until_idle, worker_thread

from harvester.engine import slots as slots_module
from harvester.engine import worker as worker_module
from harvester.engine.connections import connect
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.errors import LeaseLost
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.registry import job_kind
from harvester.engine.scheduler import Scheduler
from harvester.engine.slots import Slots
from harvester.engine.worker import Worker, WorkerOptions

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'harvester %%'"


@contextmanager
def stopping(**options):
    """A worker in a thread that the test stops by itself."""
    worker = Worker(WorkerOptions(**{**QUICK, "grace_seconds": 30.0, **options}), end_process=refuse_to_end)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker, thread
    finally:
        worker.stop()
        thread.join(60)


def test_a_stopping_worker_claims_nothing_more_and_lets_its_jobs_finish(database, monkeypatch):
    """From the moment of the stop: a claim that was in progress does not count as a new one."""
    with gate("slow") as slow, stopping(threads=4) as (worker, thread):
        heard = threading.Event()
        drain = worker._drain
        monkeypatch.setattr(worker, "_drain", lambda: (heard.set(), drain()))
        running = enqueue("test.gated", {"gate": "slow"}).job_id
        slow.next_job()
        worker.stop()
        assert heard.wait(30)
        late = enqueue_many(NewJob(kind="test.note", lane=lane) for lane in (None, "x", None))
        before = job(running).heartbeat_at
        wait_for(lambda: job(running).heartbeat_at > before, "it beats while it drains")
        assert thread.is_alive()
        slow.open()
        thread.join(30)
        assert not thread.is_alive()
    assert history(running) == ["pending", "running", "succeeded"]
    assert [state(job_id) for job_id in late] == ["pending"] * 3


def test_past_the_grace_time_the_job_is_handed_back_and_the_attempt_given_back(database):
    with gate("slow") as slow, stopping(grace_seconds=0.1) as (worker, thread):
        running = enqueue("test.gated", {"gate": "slow"}, max_attempts=1).job_id
        slow.next_job()
        worker.stop()
        thread.join(30)
        assert not thread.is_alive()
        handed_back = job(running)
        assert (handed_back.state, handed_back.attempt, handed_back.lease) == ("pending", 0, None)
        assert history(running) == ["pending", "running", "pending"]
        with worker_thread():
            slow.next_job()
            slow.open()
            wait_for_state(running, "succeeded")
    assert job(running).attempt == 1


def test_the_handler_of_a_job_that_was_handed_back_can_write_nothing_more(database):
    with gate("slow") as slow, stopping(grace_seconds=0.0) as (worker, thread):
        made = enqueue("test.write_after_gate", {"gate": "slow"}).job_id
        slow.next_job()
        worker.stop()
        thread.join(30)
        slow.open()
        slow.next_left()
    assert (state(made), notes("x"), OUTCOME) == ("pending", [], ["LeaseLost", "LeaseLost"])


OUTCOME: list[str] = []


@job_kind("test.write_after_gate")
def write_after_gate(job: RunningJob, gate: str) -> None:
    OUTCOME.clear()
    gate_of(gate).pass_through(job)
    for step in (job.check, lambda: write(job)):
        try:
            step()
        except LeaseLost as problem:
            OUTCOME.append(type(problem).__name__)
    gate_of(gate).left.put(job)


def write(job: RunningJob) -> None:
    with job.transaction():
        note("x", "too late")


def test_a_transaction_that_outlives_the_grace_time_is_broken_off(database):
    with gate("slow") as slow, stopping(grace_seconds=0.0) as (worker, thread):
        made = enqueue("test.write_then_gate", {"gate": "slow"}).job_id
        slow.next_job()
        worker.stop()
        thread.join(30)
        assert state(made) == "pending"
        slow.open()
        slow.next_left()
    assert notes("x") == []


@job_kind("test.write_then_gate")
def write_then_gate(job: RunningJob, gate: str) -> None:
    try:
        with job.transaction():
            note("x", "never committed")
            gate_of(gate).pass_through(job)
    finally:
        gate_of(gate).left.put(job)


def test_a_handler_that_ends_within_the_grace_time_is_recorded(database):
    with gate("slow") as slow, stopping(threads=3) as (worker, thread):
        kinds = ("test.gated", "test.gated_async", "test.gated")
        ids = [enqueue(kind, {"gate": "slow"}).job_id for kind in kinds]
        for _ in ids:
            slow.next_job()
        worker.stop()
        slow.open()
        thread.join(30)
    assert [state(job_id) for job_id in ids] == ["succeeded"] * 3


def test_a_handler_that_returns_at_the_last_moment_is_recorded(database, monkeypatch):
    """It returns after the last endings were written and before the rest is handed back."""
    with gate("slow") as slow, stopping(grace_seconds=0.0) as (worker, thread):
        made = enqueue("test.gated", {"gate": "slow"}).job_id
        slow.next_job()
        hand_back, still_active = worker._hand_back, worker._slots.active

        def active() -> list[RunningJob]:
            slow.open()
            wait_for(lambda: worker._endings, "the handler returned")
            return still_active()

        def hand_back_late() -> None:
            monkeypatch.setattr(worker._slots, "active", active)
            hand_back()

        monkeypatch.setattr(worker, "_hand_back", hand_back_late)
        worker.stop()
        thread.join(30)
    assert history(made) == ["pending", "running", "succeeded"]


def test_a_coroutine_past_the_grace_time_is_interrupted_and_tidies_up(database, caplog):
    with gate("slow") as slow, stopping(grace_seconds=0.0) as (worker, thread):
        made = enqueue("test.tidy_async", {"gate": "slow"}).job_id
        slow.next_job()
        worker.stop()
        thread.join(30)
        assert slow.next_left().id == made
    assert state(made) == "pending"
    wait_for(lambda: "harvester-async" not in {thread.name for thread in threading.enumerate()})
    assert "pending" not in caplog.text


@job_kind("test.tidy_async")
async def tidy_async(job: RunningJob, gate: str) -> None:
    gate_of(gate).entered.put(job)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        gate_of(gate).left.put(job)


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "coroutine"])
def test_a_job_that_was_handed_back_before_its_handler_began_does_not_run(monkeypatch, is_async):
    """With no grace at all, the stop comes between the claim and the handler's first line."""
    begun: list[object] = []
    late: list[threading.Thread] = []

    class LateThread(threading.Thread):
        def start(self) -> None:
            late.append(self)

    async def begin(job: object) -> None:
        begun.append(job)

    parts = {name: getattr(threading, name) for name in ("Lock", "Condition")}
    monkeypatch.setattr(slots_module, "threading", SimpleNamespace(Thread=LateThread, **parts))
    slots = Slots(1, begun.append, begin, lambda *_: None)
    slots.submit(Handle(), is_async=is_async)
    for handle in slots.active():
        slots.abandon(handle)
    for thread in late:
        threading.Thread.start(thread)
    slots.close()
    for thread in late:
        thread.join(30)
    assert (begun, slots.free) == ([], 1)


class Handle:
    """All that slots know of a job."""

    abandoned = False
    lane, longest_wait = None, 0.0


def test_a_stop_before_the_loop_starts_is_not_lost(database):
    waiting = enqueue("test.note").job_id
    worker = Worker(WorkerOptions(**QUICK), end_process=refuse_to_end)
    worker.stop()
    assert worker.run() == 0
    assert history(waiting) == ["pending"]


def test_a_scheduler_that_is_stopped_before_it_starts_does_not_start(database):
    scheduler = Scheduler(end_process=refuse_to_end)
    scheduler.stop()
    scheduler.run()
    assert rows("SELECT count(*) FROM periodic_jobs") == [(0,)]


def test_a_second_stop_is_harmless(database):
    with gate("slow") as slow, stopping() as (worker, thread):
        made = enqueue("test.gated", {"gate": "slow"}).job_id
        slow.next_job()
        for _ in range(3):
            worker.stop()
        slow.open()
        thread.join(30)
    assert state(made) == "succeeded"


def test_a_stop_may_interrupt_the_worker_at_any_line(database):
    """As a signal would: in the worker's own thread, between any two lines of its loop."""
    for line in range(0, 200, 7):
        worker = Worker(WorkerOptions(**{**QUICK, "grace_seconds": 0.0}), end_process=refuse_to_end)
        thread = threading.Thread(target=_run_interrupted, args=(worker, line), daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive(), f"interrupted at line {line}, the worker waits for itself"


def _run_interrupted(worker: Worker, line: int) -> None:
    left = line

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_globals.get("__name__") not in ("threading", "harvester.engine.worker", "harvester.engine.wakeup"):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                worker.stop()
        return trace

    sys.settrace(trace)
    try:
        worker.stop() if line == 0 else None
        worker.run()
    finally:
        sys.settrace(None)


def test_a_worker_that_works_until_nothing_is_due_is_not_fooled_by_a_lost_database(database, monkeypatch):
    made = enqueue("test.note").job_id
    real, fails = worker_module.connect, iter([True, True])

    def unreliable(purpose: str):
        if next(fails, False):
            raise psycopg.OperationalError("the server is starting up")
        return real(purpose)

    monkeypatch.setattr(worker_module, "connect", unreliable)
    run_until_idle()
    assert state(made) == "succeeded"


@pytest.mark.slow
def test_a_hundred_rounds_of_start_and_stop_leave_nothing_behind(database):
    threads = set(threading.enumerate())
    with connect("watch") as watch:
        locks = watch.execute("SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()").fetchone()

        def one_round(number: int) -> None:
            kinds = ("test.note", "test.write_once", "test.gated_async_pass")
            ids = [enqueue(kind, queue=f"q{number}", lane="x").job_id for kind in kinds]
            with worker_thread(threads=3, queues=(f"q{number}",)):
                for job_id in ids:
                    wait_for_state(job_id, "succeeded")
            close_django()

        with ThreadPoolExecutor(10) as pool:
            list(pool.map(one_round, range(100)))
        wait_for(lambda: set(threading.enumerate()) <= threads, "all threads ended")
        wait_for(lambda: watch.execute(SESSIONS.replace("%%", "%")).fetchone() == (1,), "all sessions ended")
        now = watch.execute("SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()")
        assert now.fetchone() <= locks
    assert Job.objects.filter(state="succeeded").count() == 300
    assert not rows("SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%'")


def close_django() -> None:
    from django.db import connections

    connections.close_all()


@job_kind("test.gated_async_pass")
async def async_pass(job: RunningJob) -> None:
    await asyncio.sleep(0)
