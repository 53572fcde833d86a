"""A job that only waits for somebody outside lends its slot, and gives up its database session."""

import threading
import time
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.db import transaction
from tests.support.gates import gate, gate_of
from tests.support.jobs import change, history, job, state, wait_for_state
from tests.support.kinds import note, notes
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine import slots as slots_module
from harvester.engine import sql
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.errors import LeaseLost
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.engine.slots import Slots
from harvester.kernel.actor import Actor
from harvester.kernel.retry import RetryPolicy
from harvester.ops import jobs as verbs

PERSON = Actor(kind="person", id="7", name="Ada")
ONCE = RetryPolicy(base=0.1, attempts=1)
#: The database session of each job before it waited.
SESSIONS: dict[int, int] = {}


@job_kind("test.asks_outside")
def asks_outside(job: RunningJob, gate: str) -> str:
    """Wait in a block that lends the slot, and then write, under the lease."""
    [(SESSIONS[job.id],)] = rows("SELECT pg_backend_pid()")
    with job.waiting():
        gate_of(gate).pass_through(job)
    with job.transaction():
        note(f"wrote:{job.id}")
        [(name,)] = rows("SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    return name


@job_kind("test.asks_outside_and_is_refused", retry=ONCE, timeout=3600.0)
def asks_outside_and_is_refused(job: RunningJob, gate: str) -> None:
    note("first", "with a session")
    try:
        with job.waiting():
            gate_of(gate).pass_through(job)
        with job.transaction():
            note("late", "written after the timeout")
    except LeaseLost:
        note("late", "refused")
    finally:
        gate_of(gate).left.put(job)


@job_kind("test.asks_outside_then_writes")
def asks_outside_then_writes(job: RunningJob, outside: str, inside: str) -> None:
    """Wait until the slot is lent, and then in a transaction that is never finished in time."""
    with job.waiting():
        gate_of(outside).pass_through(job)
    try:
        with job.transaction():
            note("x", "never committed")
            gate_of(inside).pass_through(job)
    finally:
        gate_of(inside).left.put(job)


@job_kind("test.asks_and_checks")
def asks_and_checks(job: RunningJob, gate: str) -> None:
    with job.waiting():
        gate_of(gate).pass_through(job)
    job.check()


@job_kind("test.opens_gate")
def opens_gate(job: RunningJob, gate: str) -> None:
    gate_of(gate).open()


@job_kind("test.asks_in_a_transaction", retry=ONCE)
def asks_in_a_transaction(job: RunningJob) -> None:
    with transaction.atomic(), job.waiting():
        note("never")


@job_kind("test.asks_outside_async")
async def asks_outside_async(job: RunningJob, gate: str) -> str:
    with job.waiting():
        await gate_of(gate).pass_through_async(job)
    return "asked"


# -- in a worker ------------------------------------------------------------------------------------------------------


def test_any_number_of_silent_servers_keep_no_other_job_from_running(database):
    with gate("silent") as silent, worker_thread(threads=2, urgent_slots=0) as worker:
        waiting = enqueue_many(NewJob(kind="test.asks_outside", args={"gate": "silent"}) for _ in range(7))
        # Two slots, and all seven wait at the same time.
        assert {silent.next_job().id for _ in waiting} == set(waiting)
        others = enqueue_many(NewJob(kind="test.note", args={"key": "other"}) for _ in range(20))
        for job_id in others:
            wait_for_state(job_id, "succeeded")
        assert {state(job_id) for job_id in waiting} == {"running"}
        silent.open()
        for job_id in waiting:
            wait_for_state(job_id, "succeeded")
            assert (history(job_id), notes(f"wrote:{job_id}")) == (["pending", "running", "succeeded"], [""])
        wait_for(lambda: worker._slots.free == 2, "all slots are back")
        # Threads that were started for lent slots have ended.
        wait_for(lambda: worker._slots._idle == 2, "two threads are left")


def test_a_job_that_waits_for_long_has_no_database_session_and_its_next_one_has_the_name_of_its_lease(database):
    with gate("silent") as silent, worker_thread(threads=1, urgent_slots=0):
        made = enqueue("test.asks_outside", {"gate": "silent"}).job_id
        lease = silent.next_job().lease
        open_sessions = "SELECT FROM pg_stat_activity WHERE pid = %s"
        wait_for(lambda: not rows(open_sessions, SESSIONS[made]), "the end of its session")
        assert state(made) == "running"
        silent.open()
        assert wait_for_state(made, "succeeded").result == sql.WRITER_NAME.format(lease=lease)


def test_a_job_that_has_waited_too_long_is_ended_and_can_write_nothing_more(database):
    with gate("silent") as silent, worker_thread(threads=1, urgent_slots=0) as worker:
        made = enqueue("test.asks_outside_and_is_refused", {"gate": "silent"}).job_id
        running = silent.next_job()
        wait_for(lambda: worker._slots._lent, "its slot is lent")
        running.deadline = time.monotonic()
        assert wait_for_state(made, "failed").error_type == "JOB_TIMEOUT"
        silent.open()
        silent.next_left()
        assert notes("late") == ["refused"]
        wait_for(lambda: worker._slots.free == 1, "the slot is back")
        wait_for_state(enqueue("test.note").job_id, "succeeded")


def test_a_job_that_was_taken_over_while_its_slot_is_lent_can_write_nothing_more(database):
    with gate("silent") as silent, worker_thread(threads=1, urgent_slots=0) as worker:
        made = enqueue("test.asks_outside_and_is_refused", {"gate": "silent"}).job_id
        silent.next_job()
        wait_for(lambda: worker._slots._lent, "its slot is lent")
        change(made, "lease = %s", uuid4())
        silent.open()
        silent.next_left()
        assert notes("late") == ["refused"]
        wait_for(lambda: not worker._held, "the worker gives it up")
    assert state(made) == "running"


def test_a_cancelled_job_whose_slot_is_lent_ends_when_its_wait_is_over(database):
    with gate("silent") as silent, worker_thread(threads=1, urgent_slots=0) as worker:
        made = enqueue("test.asks_and_checks", {"gate": "silent"}).job_id
        running = silent.next_job()
        wait_for(lambda: worker._slots._lent, "its slot is lent")
        verbs.cancel(PERSON, made)
        wait_for(lambda: running.cancel_requested, "the worker knows")
        silent.open()
        wait_for_state(made, "cancelled")


def test_a_stopping_worker_waits_for_jobs_whose_slots_are_lent(database):
    with gate("silent") as silent:
        with worker_thread(threads=1, urgent_slots=0, grace_seconds=60.0) as worker:
            waiting = enqueue_many(NewJob(kind="test.asks_outside", args={"gate": "silent"}) for _ in range(3))
            for _ in waiting:
                silent.next_job()
            worker.stop()
            silent.open()
        assert [state(job_id) for job_id in waiting] == ["succeeded"] * 3


def test_past_the_grace_time_jobs_whose_slots_are_lent_are_handed_back(database):
    with gate("silent") as silent:
        with worker_thread(threads=1, urgent_slots=0, grace_seconds=0.0):
            waiting = enqueue_many(NewJob(kind="test.asks_outside", args={"gate": "silent"}) for _ in range(3))
            for _ in waiting:
                silent.next_job()
        assert [(state(job_id), job(job_id).attempt) for job_id in waiting] == [("pending", 0)] * 3


def test_the_new_session_of_a_job_that_is_handed_back_is_broken_off(database):
    with gate("outside") as outside, gate("inside") as inside:
        with worker_thread(threads=1, urgent_slots=0, grace_seconds=0.0) as worker:
            made = enqueue("test.asks_outside_then_writes", {"outside": "outside", "inside": "inside"}).job_id
            outside.next_job()
            wait_for(lambda: worker._slots._lent, "its slot is lent")
            outside.open()
            inside.next_job()
        assert state(made) == "pending"
        inside.open()
        inside.next_left()
        assert notes("x") == []


def test_a_worker_that_works_until_nothing_is_due_waits_for_jobs_whose_slots_are_lent(database):
    waiting = enqueue_many(NewJob(kind="test.asks_outside", args={"gate": "silent"}) for _ in range(3))
    other = enqueue("test.opens_gate", {"gate": "silent"}).job_id
    with gate("silent"):
        run_until_idle(threads=1)
    assert [state(job_id) for job_id in [*waiting, other]] == ["succeeded"] * 4


def test_nobody_waits_inside_a_transaction(database):
    made = enqueue("test.asks_in_a_transaction").job_id
    run_until_idle()
    assert (state(made), "keep its locks" in job(made).error) == ("failed", True)


def test_a_coroutine_keeps_its_slot(database):
    """It shares its thread with all the others, so it needs no slot of its own to wait."""
    with gate("silent") as silent, worker_thread(threads=2, urgent_slots=0) as worker:
        waiting = [enqueue("test.asks_outside_async", {"gate": "silent"}).job_id for _ in range(2)]
        for _ in waiting:
            silent.next_job()
        assert worker._slots._waits == {}
        silent.open()
        for job_id in waiting:
            wait_for_state(job_id, "succeeded")


# -- the slots alone --------------------------------------------------------------------------------------------------


class Handle:
    """All that slots know of a job; its handler waits outside, and then inside."""

    abandoned = urgent = False
    lendable = None
    longest_wait = 0.0

    def __init__(self, *, is_asking: bool = True, lane: str | None = None) -> None:
        self.is_asking, self.lane = is_asking, lane
        self.asks, self.works, self.outside, self.inside = (threading.Event() for _ in range(4))

    def run(self) -> None:
        if self.is_asking:
            with self.lendable(self):
                self.asks.set()
                self.outside.wait(60)
        self.works.set()
        self.inside.wait(60)


@pytest.fixture
def made(monkeypatch):
    """Slots from a size, and jobs in them; nothing waits at the end."""
    monkeypatch.setattr(slots_module, "LENT_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(slots_module, "LENT_AGAIN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(slots_module, "RETURN_SECONDS", 60.0)
    handles, kept = [], []

    def make(size: int, **options) -> SimpleNamespace:
        slots = Slots(size, Handle.run, lambda _: None, lambda *_: None, **options)
        kept.append(slots)

        def submit(**about) -> Handle:
            handles.append(Handle(**about))
            slots.submit(handles[-1], is_async=False)
            assert (handles[-1].asks if handles[-1].is_asking else handles[-1].works).wait(60)
            return handles[-1]

        return SimpleNamespace(slots=slots, submit=submit)

    yield make
    for handle in handles:
        handle.outside.set()
        handle.inside.set()
    for slots in kept:
        slots.close()


def test_a_slot_is_lent_only_when_all_are_taken(made):
    some = made(2)
    some.submit()
    some.slots.lend()
    assert (some.slots.free, len(some.slots._lent)) == (1, 0)
    some.submit()
    some.slots.lend()
    assert (some.slots.free, len(some.slots._lent), some.slots.busy) == (2, 2, 2)


def test_a_slot_is_lent_only_after_a_while(made, monkeypatch):
    monkeypatch.setattr(slots_module, "LENT_AFTER_SECONDS", 3600.0)
    monkeypatch.setattr(slots_module, "LENT_AGAIN_AFTER_SECONDS", 60.0)
    some = made(1)
    some.submit()
    some.slots.lend()
    assert (some.slots.free, some.slots.lends_in) == (0, slots_module.LENT_AGAIN_AFTER_SECONDS)


def test_a_job_that_works_keeps_its_slot(made):
    some = made(1)
    some.submit(is_asking=False)
    some.slots.lend()
    assert (some.slots.free, some.slots.busy) == (0, 1)


def test_only_so_many_slots_are_lent(made, monkeypatch):
    monkeypatch.setattr(slots_module, "MOST_LENT", 3)
    some = made(2)
    for _ in range(5):
        assert some.slots.free > 0
        some.submit()
        some.slots.lend()
    assert (some.slots.free, some.slots.busy) == (0, 5)


def test_a_job_whose_wait_is_over_needs_a_slot_again_and_comes_before_new_ones(made):
    some = made(1)
    first = some.submit()
    some.slots.lend()
    second = some.submit(is_asking=False)
    first.outside.set()
    wait_for(lambda: first in some.slots._returning, "the first one is back")
    assert not first.works.is_set()
    second.inside.set()
    assert first.works.wait(60)
    assert (some.slots.free, some.slots.busy) == (0, 1)


def test_a_job_whose_wait_is_over_does_not_wait_long_for_long_jobs(made, monkeypatch):
    monkeypatch.setattr(slots_module, "RETURN_SECONDS", 0.0)
    some = made(1)
    first = some.submit()
    some.slots.lend()
    second = some.submit(is_asking=False)
    first.outside.set()
    assert first.works.wait(60)
    # One more than there are slots: nothing is claimed until both have ended.
    assert (some.slots.free, some.slots.free_for_urgent) == (0, 0)
    second.inside.set()
    wait_for(lambda: some.slots.busy == 1, "the end of the second one")
    assert some.slots.free == 0
    first.inside.set()
    wait_for(lambda: some.slots.free == 1, "the slot is free")


def test_a_job_that_loses_its_slot_while_it_waits_for_one_goes_on_at_once(made):
    some = made(1)
    first = some.submit()
    some.slots.lend()
    some.submit(is_asking=False)
    first.outside.set()
    wait_for(lambda: first in some.slots._returning, "the first one is back")
    some.slots.abandon(first)
    assert first.works.wait(60)


def test_a_job_that_loses_its_slot_while_it_waits_outside_does_not_keep_the_worker_busy(made, monkeypatch):
    """Its thread waits on, and there is nothing to lend any more."""
    monkeypatch.setattr(slots_module, "LENT_AFTER_SECONDS", 0.001)
    monkeypatch.setattr(slots_module, "LENT_AGAIN_AFTER_SECONDS", 5.0)
    some = made(1)
    first = some.submit()
    assert some.slots.lends_in <= 0.001
    some.slots.abandon(first)
    assert (some.slots.lends_in, some.slots.free) == (slots_module.LENT_AGAIN_AFTER_SECONDS, 1)


def test_a_lane_whose_last_job_waited_for_long_lends_its_slot_sooner_until_one_does_not(made, monkeypatch):
    some = made(1)
    monkeypatch.setattr(slots_module, "LENT_AGAIN_AFTER_SECONDS", 0.1)
    clock = SimpleNamespace(monotonic=lambda: now[0])
    now = [1000.0]
    monkeypatch.setattr(slots_module, "time", clock)
    monkeypatch.setattr(slots_module, "LENT_AFTER_SECONDS", 0.5)

    def lent_after(*, waits: float, lane: str) -> float:
        """A job waits for so long; return when its slot could be lent."""
        job = some.submit(lane=lane)
        [(moment, _, wait)] = some.slots._lendable()
        now[0] += waits
        job.outside.set()
        job.inside.set()
        wait_for(lambda: some.slots.busy == 0, "the end of the job")
        return moment - wait.since

    assert lent_after(waits=30.0, lane="silent") == pytest.approx(0.5)
    assert lent_after(waits=30.0, lane="silent") == pytest.approx(0.1)
    assert lent_after(waits=0.2, lane="other") == pytest.approx(0.5)
    assert lent_after(waits=0.2, lane="silent") == pytest.approx(0.1)
    assert lent_after(waits=0.2, lane="silent") == pytest.approx(0.5)


def test_a_job_that_has_waited_for_long_lends_its_slot_sooner_the_next_time(made, monkeypatch):
    """Such as three tries to fetch a robots.txt."""
    some = made(1)
    first = some.submit()
    monkeypatch.setattr(slots_module, "LENT_AFTER_SECONDS", 0.5)
    monkeypatch.setattr(slots_module, "LENT_AGAIN_AFTER_SECONDS", 0.1)
    [(moment, _, wait)] = some.slots._lendable()
    assert moment - wait.since == pytest.approx(0.5)
    first.longest_wait = 30.0
    [(moment, _, wait)] = some.slots._lendable()
    assert moment - wait.since == pytest.approx(0.1)


def test_slots_for_urgent_jobs_stay_theirs(made):
    some = made(1, kept_for_urgent=1)
    some.submit(is_asking=False)
    assert (some.slots.free, some.slots.free_for_urgent) == (0, 1)
    second = made(1, kept_for_urgent=1)
    second.submit()
    second.slots.lend()
    assert (second.slots.free, second.slots.free_for_urgent) == (1, 2)
