"""Urgent kinds of jobs go first, and every worker keeps a slot that no other job can take."""

import pytest
from tests.support.gates import gate, gate_of
from tests.support.jobs import change, job, state, wait_for_state
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine import claim
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.job import RunningJob
from harvester.engine.registry import URGENT_PRIORITY, job_kind

NEVER = 600.0


@job_kind("test.urgent", queue="urgent", urgent=True)
def do_urgent(job: RunningJob, key: str = "") -> None:
    """Nothing, but first."""


@job_kind("test.urgent_gated", queue="urgent", urgent=True)
def pass_urgent_gate(job: RunningJob, gate: str) -> None:
    gate_of(gate).pass_through(job)


@pytest.fixture
def busy(database):
    """A worker whose only slot is taken, with ten more jobs waiting for it."""
    with worker_thread(threads=1, poll_seconds=NEVER) as worker, gate("runs") as runs:
        enqueue_many(NewJob(kind="test.gated", args={"gate": "runs"}) for _ in range(11))
        runs.next_job()
        yield worker
        assert rows("SELECT count(*) FROM jobs WHERE kind = 'test.gated' AND state = 'running'") == [(1,)]


def test_an_urgent_job_runs_while_every_slot_is_busy(busy):
    for _ in range(3):
        wait_for_state(enqueue("test.urgent").job_id, "succeeded")


def test_an_urgent_job_that_was_not_announced_is_found_while_every_slot_is_busy(busy, monkeypatch):
    later = enqueue("test.urgent", delay=3600).job_id
    monkeypatch.setattr(claim, "FULL_LOOK_SECONDS", 0.0)
    change(later, "run_at = now()")
    wait_for_state(enqueue("test.urgent").job_id, "succeeded")
    wait_for_state(later, "succeeded")


def test_a_high_priority_alone_does_not_open_the_kept_slot(busy):
    ordinary = enqueue("test.note", queue="urgent", priority=URGENT_PRIORITY + 1).job_id
    wait_for_state(enqueue("test.urgent").job_id, "succeeded")
    assert state(ordinary) == "pending"


def test_an_ordinary_job_of_high_priority_keeps_its_place_while_the_kept_slot_is_asked(database):
    with worker_thread(threads=1, poll_seconds=NEVER), gate("first") as first, gate("rest") as rest:
        enqueue("test.gated", {"gate": "first"})
        first.next_job()
        enqueue_many(NewJob(kind="test.gated", args={"gate": "rest"}) for _ in range(3))
        high = enqueue("test.gated", {"gate": "rest"}, queue="urgent", priority=URGENT_PRIORITY).job_id
        wait_for_state(enqueue("test.urgent").job_id, "succeeded")
        first.open()
        assert rest.next_job().id == high


def test_more_urgent_jobs_than_the_kept_slot_take_free_ordinary_ones_but_never_the_other_way(database):
    with worker_thread(threads=2, poll_seconds=NEVER), gate("urgent") as urgent, gate("runs") as runs:
        enqueue_many(NewJob(kind="test.urgent_gated", args={"gate": "urgent"}) for _ in range(2))
        urgent.next_job()
        urgent.next_job()
        enqueue_many(NewJob(kind="test.gated", args={"gate": "runs"}) for _ in range(2))
        runs.next_job()
        urgent.open()
        runs.next_job()
        wait_for_state(enqueue("test.urgent").job_id, "succeeded")


def test_urgent_jobs_go_before_all_that_waited_longer(database):
    enqueue_many(NewJob(kind="test.note", priority=10) for _ in range(5))
    urgent = enqueue("test.urgent").job_id
    run_until_idle(threads=1)
    first = rows("SELECT id FROM jobs ORDER BY started_at LIMIT 1")
    assert (first, job(urgent).priority) == ([(urgent,)], URGENT_PRIORITY)


def test_a_priority_of_its_own_beats_that_of_the_kind(database):
    assert job(enqueue("test.urgent", priority=-1).job_id).priority == -1
    assert job(enqueue("test.note").job_id).priority == 0


def test_a_worker_with_a_number_of_jobs_claims_no_urgent_one_beyond_it(database):
    enqueue_many(NewJob(kind="test.urgent") for _ in range(5))
    worker = run_until_idle(threads=1, urgent_slots=1, max_jobs=2)
    assert (worker.claimed, rows("SELECT count(*) FROM jobs WHERE state = 'succeeded'")) == (2, [(2,)])


def test_the_kept_slot_costs_nothing_while_nothing_is_urgent(database):
    with worker_thread(threads=1, poll_seconds=NEVER) as worker, gate("runs") as runs:
        enqueue("test.gated", {"gate": "runs"})
        runs.next_job()
        wait_for(lambda: not worker._claimer.may_have_urgent, "a worker that waits for news")
