"""Every transition of a job leaves one row, with who and why."""

import pytest
from tests.support.jobs import change, wait_for_state
from tests.support.tables import rows
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.engine.models import JobEvent
from harvester.engine.registry import job_kind
from harvester.kernel.actor import system
from harvester.ops import jobs as verbs


@job_kind("test.snooze_with_reason")
def snooze_with_reason(job: RunningJob) -> None:
    raise Snooze(60, "the shop sleeps")


def events_of(job_id: int) -> list[tuple]:
    events = JobEvent.objects.filter(job_id=job_id).order_by("id")
    return list(events.values_list("state", "attempt", "worker", "detail"))


def test_a_job_that_succeeds_leaves_three_rows(database):
    made = enqueue("test.note").job_id
    run_until_idle(name="w")
    assert events_of(made) == [("pending", 0, None, None), ("running", 1, "w", None), ("succeeded", 1, "w", None)]


def test_every_attempt_is_recorded_with_its_error(database):
    made = enqueue("test.fail_transient", max_attempts=2).job_id
    run_until_idle(name="first")
    change(made, "run_at = clock_timestamp()")
    run_until_idle(name="second")
    assert events_of(made) == [
        ("pending", 0, None, None),
        ("running", 1, "first", None),
        ("retryable", 1, "first", "not now"),
        ("running", 2, "second", None),
        ("failed", 2, "second", "not now"),
    ]


def test_a_snooze_and_a_retry_are_recorded_with_their_reasons(database):
    made = enqueue("test.snooze_with_reason").job_id
    run_until_idle(name="w")
    verbs.cancel(system("test"), made)
    verbs.retry(system("test"), made)
    assert events_of(made)[2:] == [
        ("pending", 0, "w", "snoozed: the shop sleeps"),
        ("cancelled", 0, None, "cancel requested"),
        ("pending", 0, None, "retried"),
    ]


def test_a_batch_leaves_one_row_for_each_of_its_jobs(database):
    ids = enqueue_many(NewJob(kind="test.write_once", args={"key": str(n)}, lane=f"{n % 4}") for n in range(40))
    with worker_thread(threads=8):
        for job_id in ids:
            wait_for_state(job_id, "succeeded")
    counted = rows("SELECT state, count(*), count(DISTINCT job_id) FROM job_events GROUP BY state ORDER BY state")
    assert counted == [("pending", 40, 40), ("running", 40, 40), ("succeeded", 40, 40)]


@pytest.mark.parametrize("kind", ["test.note", "test.fail_terminal", "test.fail_transient", "test.snooze_with_reason"])
def test_the_newest_row_has_the_state_of_the_job(database, kind):
    made = enqueue(kind).job_id
    run_until_idle()
    assert rows("SELECT state, attempt FROM jobs") == [events_of(made)[-1][:2]]
    assert rows("SELECT count(*) FROM job_events WHERE at > clock_timestamp()") == [(0,)]
