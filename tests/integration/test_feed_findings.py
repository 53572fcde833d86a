"""Rejected rows and warnings are kept with the run, however the run ends."""

import gzip
import random

import pytest
from django.db import connections
from tests.support.catalog import now
from tests.support.feed_world import OLGA
from tests.support.feeds import feed, row
from tests.support.jobs import change
from tests.support.together import together
from tests.support.waiting import wait_for

from harvester.engine.models import Job
from harvester.feeds import ingest
from harvester.feeds.models import FeedRun, FeedRunSample
from harvester.feeds.runs import FEED_LOCK
from harvester.ops import jobs
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run

#: Line 3 has no title, line 4 a stock text that nobody knows; the last row is whole.
ROWS = [row(100), row(101, Name=""), row(102, Availability="perhaps"), *(row(number) for number in range(103, 120))]
DATA = feed(*ROWS).encode()


def many():
    """The same with 16,000 more rows that do not compress well: two blocks, the first of which is read early."""
    chance = random.Random(5)
    return feed(*ROWS, *(row(number, Name=f"{chance.getrandbits(500):x}") for number in range(1000, 17_000))).encode()


class Progress:
    """Takes the place of a run's progress report: called in the middle of parsing, after each block."""

    happens = None

    def __init__(self, work, report):
        self.work = work

    def __call__(self, position):
        Progress.happens(self.work)


@pytest.fixture
def while_parsing(monkeypatch):
    """Let something happen whenever a block was parsed."""

    def happen(call):
        monkeypatch.setattr(Progress, "happens", staticmethod(call))
        monkeypatch.setattr(ingest, "ParseProgress", Progress)

    return happen


def run_once(world):
    """A run whose first attempt is its last."""
    job = world.ask()
    change(job, "max_attempts = 1")
    world.work(job)
    return Run.objects.get(job_id=job)


def found(run):
    """The rejects and warnings of a run, and the lines of their samples."""
    figures = FeedRun.objects.get(pk=run.pk)
    kept = FeedRunSample.objects.filter(run_id=run.pk).order_by("line")
    return figures.rejects, figures.warnings, [(sample.code, sample.line) for sample in kept]


ALL = ({"MISSING_TITLE": 1}, {"UNKNOWN_STOCK": 1}, [("MISSING_TITLE", 3), ("UNKNOWN_STOCK", 4)])

FILES = {
    "half a row": (lambda: DATA[:-20], {}, "TRUNCATED"),
    "half a compressed file": (lambda: gzip.compress(many())[:-10], {}, "TRUNCATED_GZIP"),
    "a damaged compressed file": (lambda: gzip.compress(many())[:-8] + bytes(8), {}, "BAD_GZIP"),
    "too many rows": (many, {"max_rows": 16_000}, "ROW_COUNT_LIMIT_EXCEEDED"),
    "too many products": (lambda: DATA, {"max_products": 5}, "UNIQUE_PRODUCT_LIMIT_EXCEEDED"),
}


@pytest.mark.parametrize(("data", "limits", "code"), FILES.values(), ids=FILES)
def test_the_findings_of_a_refused_file_are_kept(world, data, limits, code):
    world.change(**limits)
    world.put_bytes(data())
    run = run_once(world)
    assert (run.status, run.error_code) == ("FAILED", code)
    assert found(run) == ALL


def test_the_findings_of_a_refused_file_are_kept_also_if_most_of_its_rows_were_known(world):
    world.put_bytes(DATA)
    assert world.run().outcome == "PROMOTED"
    world.put_bytes(DATA[:-20])
    run = run_once(world)
    assert (run.status, run.error_code) == ("FAILED", "TRUNCATED")
    assert found(run) == ALL


def test_the_findings_of_a_held_run_are_kept(world):
    world.put(*range(100, 160))
    assert world.run().outcome == "PROMOTED"
    world.put_bytes(DATA)
    run = world.run()
    assert run.outcome == "HELD"
    assert found(run) == ALL


def unexpected(work):
    raise ValueError("nobody knows")


def cancelled(work):
    together(lambda: jobs.cancel(OLGA, work.job.id))
    wait_for(lambda: work.job.cancel_requested, "the worker to hear of it")
    work.job.check()


def signal_backend(function):
    """The database ends the statement or the session that copies the parsed rows."""
    with connections["owner"].cursor() as owner:
        owner.execute(f"SELECT {function} FROM pg_locks WHERE locktype = 'advisory' AND classid = %s", [FEED_LOCK])


def statement_ended(work):
    signal_backend("pg_cancel_backend(pid)")


def session_ended(work):
    signal_backend("pg_terminate_backend(pid, 5000)")


ERRORS = {
    "an unexpected error": (unexpected, "UNEXPECTED"),
    "a cancelled job": (cancelled, "CANCELLED"),
    "a statement that the database ends": (statement_ended, "DATABASE_UNAVAILABLE"),
    "a session that the database ends": (session_ended, "DATABASE_UNAVAILABLE"),
}


@pytest.mark.parametrize(("happens", "code"), ERRORS.values(), ids=ERRORS)
def test_what_was_found_before_an_error_is_kept(world, while_parsing, happens, code):
    while_parsing(happens)
    world.put_bytes(DATA)
    run = run_once(world)
    assert (run.status, run.error_code) == ("FAILED", code)
    assert found(run) == ALL


def close_orphans(world):
    world.work(world.job(CLOSE_ORPHANS, {}))


def lose(job):
    """The rescuer takes the job from a worker that it takes for dead."""
    gone = {"state": "failed", "lease": None, "error_type": "WORKER_LOST", "error": "The worker is gone."}
    together(lambda: Job.objects.filter(pk=job.id).update(finished_at=now(), **gone))


def test_an_attempt_that_lost_its_job_while_parsing_writes_nothing(world, while_parsing):
    def happens(work):
        session_ended(work)
        lose(work.job)

    while_parsing(happens)
    world.put_bytes(DATA)
    run = run_once(world)
    close_orphans(world)
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("FAILED", "ABANDONED")
    assert found(run) == ({}, {}, [])


def test_the_findings_of_a_run_whose_worker_was_lost_after_parsing_are_kept(world, monkeypatch):
    monkeypatch.setattr(ingest, "log_parsed", lambda context, report: lose(context.job))
    world.put_bytes(DATA)
    run = run_once(world)
    close_orphans(world)
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("FAILED", "ABANDONED")
    assert found(run) == ALL
