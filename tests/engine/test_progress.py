"""How far a job is can be seen while it runs, and saying so never hurts it."""

import threading

import pytest
from tests.support.gates import gate, gate_of
from tests.support.jobs import history, insert_raw, job, wait_for_state
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.guards.redaction import REDACTED


@job_kind("test.reports")
def reports(job: RunningJob, gate: str) -> str:
    job.progress(3, 10, "third file")
    gate_of(gate).pass_through(job)
    job.progress(10, 10, "last file")
    return "done"


@job_kind("test.reports_async")
async def reports_async(job: RunningJob, gate: str) -> None:
    job.progress(1)
    await gate_of(gate).pass_through_async(job)


@job_kind("test.chatters")
def chatters(job: RunningJob) -> None:
    for number in range(100_000):
        job.progress(number, 100_000)


class Vicious(dict):
    def items(self):
        raise SystemExit(5)


ODD = {
    "nan": (float("nan"), None, ""),
    "infinite": (1, float("inf"), ""),
    "an object": (object(), None, ""),
    "nul": (1, 2, "nul \x00"),
    "lone surrogate": (1, 2, "half \ud83d"),
    "huge": (1, 2, "x" * 5_000_000),
    "vicious": (Vicious(), 2, ""),
}


@job_kind("test.reports_oddly")
def reports_oddly(job: RunningJob, what: str, gate: str) -> str:
    gate_of(gate).entered.put(job)
    pause = threading.Event()
    while not gate_of(gate).is_open:
        job.progress(*ODD[what])
        pause.wait(0.01)
    return "done"


def test_progress_is_seen_while_the_job_runs(database):
    slow_heartbeat = {"heartbeat_seconds": 600.0, "stuck_seconds": 3600.0}
    with worker_thread(**slow_heartbeat), gate("x") as x:
        made = enqueue("test.reports", {"gate": "x"}).job_id
        x.next_job()
        wait_for(lambda: job(made).progress == {"done": 3, "total": 10, "note": "third file"}, "the progress")
        assert history(made) == ["pending", "running"]


def test_the_last_word_is_kept_when_the_job_ends(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.reports", {"gate": "x"}).job_id
        x.next_job()
        x.open()
        assert wait_for_state(made, "succeeded").progress == {"done": 10, "total": 10, "note": "last file"}


def test_a_coroutine_reports_too(database):
    with worker_thread(), gate("x") as x:
        made = enqueue("test.reports_async", {"gate": "x"}).job_id
        x.next_job()
        wait_for(lambda: (job(made).progress or {}).get("done") == 1, "the progress")


def test_a_new_attempt_begins_without_progress(database):
    made = insert_raw(kind="test.note", progress='{"done": 5}')
    run_until_idle()
    assert job(made).progress is None


@pytest.mark.parametrize("what", ODD)
def test_progress_that_cannot_be_stored_harms_no_job(database, what):
    with worker_thread(threads=2, stuck_seconds=1.0), gate("x") as x:
        made = enqueue("test.reports_oddly", {"what": what, "gate": "x"}).job_id
        x.next_job()
        neighbour = enqueue("test.gated", {"gate": "x"}).job_id
        x.next_job()
        beats = job(neighbour).heartbeat_at
        for _ in range(5):
            wait_for(lambda: job(neighbour).heartbeat_at > beats, "the next beat")  # noqa: B023 - used at once
            beats = job(neighbour).heartbeat_at
        x.open()
        assert wait_for_state(made, "succeeded").result == "done"
        wait_for_state(neighbour, "succeeded")
    assert (job(made).attempt, job(neighbour).attempt) == (1, 1)


def test_a_handler_that_reports_all_the_time_is_not_held_up(database):
    made = enqueue("test.chatters").job_id
    run_until_idle()
    assert job(made).progress == {"done": 99_999, "total": 100_000, "note": ""}


def test_progress_shows_no_secret(database):
    @job_kind("test.reports_secret")
    def reports_secret(job: RunningJob) -> None:
        job.progress(1, note="fetching sftp://shop:hunter2secret@files.example/feed.csv")

    made = enqueue("test.reports_secret").job_id
    run_until_idle()
    assert "hunter2" not in str(job(made).progress)
    assert REDACTED in str(job(made).progress)
