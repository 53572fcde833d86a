"""The rules of runs: locks, retries, requests, change detection, limits, figures and prices. One test for each."""

import dataclasses
import datetime as dt
import gzip
import os
import re
from contextlib import contextmanager
from decimal import Decimal

import pytest
from django.db import IntegrityError, connections
from structlog.testing import capture_logs
from tests.support import catalog
from tests.support.catalog import audited, now
from tests.support.feed_world import OLGA, count
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.jobs import change
from tests.support.outcomes import wait_until_ended
from tests.support.tables import rows
from tests.support.together import together
from tests.support.workers import run_until_idle

from harvester.catalog import offers, search_index
from harvester.catalog.models import Source
from harvester.engine import sql
from harvester.engine.errors import JobCancelled
from harvester.engine.models import Job
from harvester.engine.registry import kind_of
from harvester.feeds import change_detection, ingest, run_endings, verbs
from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed, FeedRun, FeedRunSample
from harvester.feeds.reader import ParseLimits, load
from harvester.feeds.runs import FEED_LOCK
from harvester.kernel.errors import TerminalError, TransientError
from harvester.kernel.ids import uuid7
from harvester.ops.models import Alert
from harvester.pipeline.staging import STAGING_LOCK
from harvester.runs import lifecycle
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
HTML = b"<!doctype html><html><body>Please log in</body></html>"
TEN = range(100, 110)
WIDE = ["SKU", "Name", "Url", "Price", "Original Price", "Currency", "Availability", "Gtin", "Item Id", "Promotions"]


def wide(number, **changed):
    cells = {
        "SKU": f"S-{number}",
        "Name": f"Thing {number}",
        "Url": f"https://shop.example/p/{number}",
        "Price": "10.00",
        "Original Price": "20.00",
        "Currency": "USD",
        "Availability": "in stock",
        "Gtin": "",
        "Item Id": "",
        "Promotions": "",
    }
    return [(cells | {name.replace("_", " "): text for name, text in changed.items()})[name] for name in WIDE]


def put_wide(world, *lines):
    world.put_bytes(written(*lines, header=WIDE).encode())


def runs():
    return list(Run.objects.order_by("no"))


def facts():
    """How many rows the tables of facts have."""
    return [count(table) for table in ("source_products", "prices", "offers", "held_changes")]


def fails_once(monkeypatch, error):
    """The next promotion fails, after everything else of the run was done."""
    real = ingest.promote

    def broken(*args):
        monkeypatch.setattr(ingest, "promote", real)
        raise error

    monkeypatch.setattr(ingest, "promote", broken)


# 1. Claim, lock, snooze.


@pytest.mark.parametrize("trigger", ["SCHEDULED", "MANUAL"])
def test_a_job_that_finds_a_run_in_progress_ends_without_a_run(world, trigger):
    asked = now()
    world.change(manual_run_requested_at=asked)
    world.running()
    with world.locked():
        assert world.run(trigger) is None
    assert Job.objects.latest("id").state == "succeeded"
    assert Feed.objects.get().manual_run_requested_at == asked, "the run in progress honors the request"


def test_a_job_that_finds_a_decision_in_progress_comes_back_in_a_minute_without_counting(world):
    world.put(100)
    job = world.ask()
    before = now()
    with world.locked():
        found = world.attempt(job)
    minute = dt.timedelta(seconds=60)
    assert (found.state, found.attempt) == ("pending", 0)
    assert before + minute <= found.run_at <= now() + minute
    assert runs() == []


def test_a_run_that_follows_another_does_not_wait_a_minute_for_its_lock(world):
    """Its job is there before the session that put it in has let go of the lock."""
    world.put(100)
    job = world.ask("MANUAL_PENDING")
    with world.locked():
        found = world.attempt(job)
    assert (found.state, found.attempt) == ("pending", 0)
    assert found.run_at <= now() + dt.timedelta(seconds=5)


def test_jobs_of_runs_have_no_dedupe_key(world):
    """A job that is about to end would swallow the request that comes meanwhile."""
    first, second = (verbs.run_now(OLGA, world.feed.id) for _ in range(2))
    assert first.job_id != second.job_id
    assert set(Job.objects.values_list("dedupe_key", flat=True)) == {None}


def test_the_lock_of_feeds_is_no_other_lock():
    lanes = {int(number) for number in re.findall(r"advisory_xact_lock\((\d+), ", str(vars(sql)))}
    assert lanes
    assert FEED_LOCK not in {STAGING_LOCK, *lanes}


# 2. One session.


def test_a_run_whose_session_ends_gives_its_lock_back_and_goes_on_as_the_same_run(world):
    def end_its_session():
        with connections["owner"].cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s",
                [FEED_LOCK],
            )
            return cursor.fetchall()

    world.put(*TEN)
    world.meanwhile(end_its_session)
    job = world.ask()
    first = world.attempt(job)
    assert world.happened == [(True,)]
    [run] = runs()
    assert (first.state, run.status) == ("retryable", "RUNNING")
    lease = run.lease
    assert rows("SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s", FEED_LOCK) == []
    second = world.attempt(job)
    [run] = runs()
    assert (second.state, run.outcome, run.attempt) == ("succeeded", "PROMOTED", 2)
    assert run.lease not in (None, lease), "the run carries the lease of the attempt"
    assert len(world.shown()) == 10


def test_a_run_whose_job_was_taken_over_writes_nothing_more(world, monkeypatch):
    """Its worker has not noticed yet, and goes on to copy what is new."""
    real = ingest.add_new_products

    def taken_over(*args, **more):
        together(lambda: change(job, "lease = gen_random_uuid()"))
        yield from real(*args, **more)

    monkeypatch.setattr(ingest, "add_new_products", taken_over)
    world.put(*TEN)
    job = world.ask()
    run_until_idle(threads=1, heartbeat_seconds=60.0, stuck_seconds=600.0)
    assert facts() == [0, 0, 0, 0]
    assert runs()[0].status == "RUNNING", "the worker that took it over ends it"


# 3. The run of a job.


def test_the_run_is_there_before_anything_outside_is_asked(world):
    world.put(100)
    world.meanwhile(lambda: list(Run.objects.values_list("status", "job_id", "trigger")))
    job = world.ask()
    world.work(job)
    assert world.happened == [("RUNNING", job, "SCHEDULED")]


def test_a_server_that_is_not_there_fails_a_run_that_is_there(world):
    world.change(port=1)
    world.run()
    assert [(run.status, run.attempt) for run in runs()] == [("FAILED", 3)]


def test_a_job_has_one_run(world):
    run = world.running()
    with pytest.raises(IntegrityError, match="job_id"):
        Run.objects.create(
            kind=run.kind,
            subject_id=world.feed.pk,
            source_id=world.source.pk,
            trigger="MANUAL",
            status="RUNNING",
            job_id=run.job_id,
        )


@pytest.mark.parametrize("status", ["DRAFT", "PAUSED", "DISABLED"])
@pytest.mark.parametrize("late", [False, True])
def test_a_feed_that_is_not_enabled_any_more_gets_no_run(world, monkeypatch, status, late):
    """Switched while the job waits, or, late, when it has read the feed and takes the lock."""
    real = lifecycle.subject_lock

    @contextmanager
    def switched(*args):
        with real(*args) as is_ours:
            world.change(status=status)
            yield is_ours

    if late:
        monkeypatch.setattr(lifecycle, "subject_lock", switched)
    else:
        world.change(status=status)
    world.put(100)
    job = world.ask()
    world.work(job)
    assert Job.objects.get(pk=job).state == "succeeded"
    assert runs() == []
    assert world.server.connections == 0


# 4. Retries.


def test_a_run_has_three_attempts_after_five_and_fifteen_seconds():
    policy = kind_of(RUN).retry
    assert (policy.attempts, [policy.wait(attempt, 0) for attempt in (1, 2)]) == (3, [5, 15])


def test_between_attempts_a_run_shows_what_was_wrong_and_when_it_goes_on(world):
    whole = gzip.compress(written(*map(row, TEN)).encode())
    world.put_bytes(whole[:-10])
    job = world.ask()
    before = now()
    world.attempt(job)
    [run] = runs()
    assert (run.status, run.attempt, run.error_code) == ("RUNNING", 1, "TRUNCATED_GZIP")
    assert before + dt.timedelta(seconds=5) <= world.figures(run).run.next_try_at
    assert Feed.objects.get().consecutive_failures == 0
    world.put_bytes(whole)
    world.attempt(job)
    [run] = runs()
    assert (run.outcome, run.attempt, world.figures(run).run.next_try_at) == ("PROMOTED", 2, None)
    assert len(world.shown()) == 10


def test_each_wait_is_three_times_as_long_as_the_one_before(world):
    world.put_bytes(gzip.compress(b"x" * 1000)[:-10])
    job = world.ask()
    for seconds in (5, 15):
        before = now()
        world.attempt(job)
        wait = dt.timedelta(seconds=seconds)
        assert before + wait <= world.figures(runs()[0]).run.next_try_at <= now() + wait


def test_after_proof_a_retry_reads_the_same_file_and_never_downloads_again(world, monkeypatch):
    world.put(*TEN)
    fails_once(monkeypatch, TransientError("away for a moment"))
    job = world.ask()
    world.attempt(job)
    [run] = runs()
    assert (run.status, run.error_code) == ("RUNNING", "TRANSIENT")
    asked, kept = world.server.connections, run.artifact_hash
    world.put(*range(500, 520))
    world.attempt(job)
    [run] = runs()
    assert (run.outcome, run.artifact_hash, world.server.connections) == ("PROMOTED", kept, asked)
    assert world.names() == {f"S-{number}" for number in TEN}
    assert world.figures(run).products_upserted == 10, "each attempt starts with empty staging"
    assert count("prices") == 10
    assert world.run().outcome != "SKIPPED", "the other file is read by the next run"


def test_three_attempts_are_one_failure(world):
    world.put_bytes(gzip.compress(b"x" * 1000)[:-10])
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", "TRUNCATED_GZIP", 3)
    assert Feed.objects.get().consecutive_failures == 1


def test_what_trying_again_cannot_help_is_tried_once(world):
    world.put_bytes(HTML)
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", "HTML_INSTEAD_OF_CSV", 1)


# 5. Failures.


def test_three_failures_in_a_row_disable_the_feed_and_somebody_enables_it_again(world):
    world.change(schedule_hours=4, next_run_at=now())
    for failures in (1, 2, 3):
        world.put_bytes(HTML)
        world.run()
        feed = Feed.objects.get()
        assert (feed.consecutive_failures, feed.status == "DISABLED") == (failures, failures == 3)
    assert feed.next_run_at is None
    assert world.run() is None
    verbs.re_enable(OLGA, world.feed.id, acknowledged=True)
    assert Feed.objects.get().consecutive_failures == 0


def test_a_good_run_between_failures_restarts_the_count(world):
    for file in (HTML, HTML, written(row(100)).encode(), HTML):
        world.put_bytes(file)
        world.run()
    feed = Feed.objects.get()
    assert (feed.status, feed.consecutive_failures) == ("ENABLED", 1)


def test_a_retry_that_meets_another_run_is_superseded_and_counts_as_no_failure(world):
    world.put_bytes(gzip.compress(b"x" * 1000)[:-10])
    job = world.ask()
    world.attempt(job)
    own = Run.objects.get(job_id=job)
    world.running()
    with world.locked():
        world.attempt(job)
    own.refresh_from_db()
    assert (own.status, own.error_code) == ("FAILED", "SUPERSEDED")
    assert Feed.objects.get().consecutive_failures == 0


def test_a_run_that_somebody_stopped_counts_as_no_failure(world, monkeypatch):
    world.put(*TEN)
    fails_once(monkeypatch, JobCancelled("stopped as asked"))
    run = world.run()
    assert (run.status, run.error_code) == ("FAILED", "CANCELLED")
    assert Feed.objects.get().consecutive_failures == 0
    assert world.run().outcome == "PROMOTED"


@pytest.mark.parametrize("clicked", [False, True])
def test_a_run_whose_job_is_gone_is_abandoned_and_counts_as_no_failure(world, clicked):
    world.put(*TEN)
    run = world.running()
    if clicked:
        with world.locked():
            world.work(verbs.run_now(OLGA, world.feed.id).job_id)
    Job.objects.filter(pk=run.job_id).update(state="failed", finished_at=now())
    world.work(world.job(CLOSE_ORPHANS, {}))
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("FAILED", "ABANDONED")
    assert Feed.objects.get().consecutive_failures == 0
    followed = [found.trigger for found in runs()[1:]]
    assert followed == (["MANUAL_PENDING"] if clicked else []), "a click that has to wait gets its run"


# 6. Run Now is a time.


def test_a_click_during_a_run_gets_one_run_of_its_own(world):
    """Two clicks, and both jobs find the run in progress; its end makes one follow-up."""

    def click_twice():
        for _ in range(2):
            wait_until_ended(verbs.run_now(OLGA, world.feed.id).job_id)

    world.put(*TEN)
    world.meanwhile(click_twice)
    world.work(world.ask(), threads=2)
    world.hurry()
    assert world.happened is None
    assert [(run.trigger, run.outcome) for run in runs()] == [("SCHEDULED", "PROMOTED"), ("MANUAL_PENDING", "SKIPPED")]
    assert Feed.objects.get().manual_run_requested_at is None


def test_a_click_whose_job_comes_after_the_run_gets_one_run_and_no_more(world):
    world.put(*TEN)
    world.meanwhile(lambda: verbs.run_now(OLGA, world.feed.id))
    world.work(world.ask())
    assert [run.trigger for run in runs()] == ["SCHEDULED", "MANUAL"]


def test_a_feed_that_was_paused_meanwhile_gets_no_follow_up(world):
    def click_and_pause():
        wait_until_ended(verbs.run_now(OLGA, world.feed.id).job_id)
        verbs.pause(OLGA, world.feed.id)

    world.put(*TEN)
    world.meanwhile(click_and_pause)
    world.work(world.ask(), threads=2)
    world.hurry()
    assert world.happened is None
    assert [run.trigger for run in runs()] == ["SCHEDULED"]
    assert Job.objects.filter(kind="feeds.run").count() == 2, "that of the schedule and that of the click"


@pytest.mark.parametrize(
    ("how", "trigger"),
    [
        ("promoted", "SCHEDULED"),
        ("skipped", "SCHEDULED"),
        ("skipped", "MANUAL"),
        ("skipped", "MANUAL_PENDING"),
        ("failed", "SCHEDULED"),
    ],
)
def test_every_end_of_a_run_clears_a_request_from_before_it(world, how, trigger):
    world.put(*TEN)
    if how == "skipped":
        world.run()
    if how == "failed":
        world.put_bytes(HTML)
    world.change(manual_run_requested_at=now())
    run = world.run(trigger)
    assert (run.outcome or run.status).lower() == how
    assert Feed.objects.get().manual_run_requested_at is None


def test_a_forced_click_during_a_run_reads_the_same_file_again(world):
    world.put(*TEN)
    world.meanwhile(lambda: verbs.run_now(OLGA, world.feed.id, force=True))
    world.work(world.ask())
    assert [run.outcome for run in runs()] == ["PROMOTED", "PROMOTED"]
    assert world.run().outcome == "SKIPPED"


# 7. Change detection; the table of 9.5 stands in test_feed_tables.py.


def downloads(world):
    return len(world.server.files)


def test_the_same_time_and_size_are_not_downloaded(world):
    world.put(*TEN)
    world.run()
    before = downloads(world)
    run = world.run()
    assert (run.status, world.figures(run).skipped_reason) == ("SUCCEEDED", "UNCHANGED_MTIME")
    assert downloads(world) == before


def test_another_time_is_downloaded_and_the_hash_decides(world):
    world.put(*TEN)
    world.run()
    for _ in range(2):
        before = downloads(world)
        world.put(*TEN)
        run = world.run()
        assert world.figures(run).skipped_reason == "UNCHANGED_HASH"
        assert downloads(world) == before + 1, "only a run that ingested stores what is compared with"


def test_the_same_time_with_another_size_is_read(world):
    world.put(*TEN)
    # Long before the run: a file that was written just then is read again anyway.
    moment = world.file.stat().st_mtime - 3600
    os.utime(world.file, (moment, moment))
    world.run()
    world.put(*TEN, 200)
    os.utime(world.file, (moment, moment))
    assert world.run().outcome == "PROMOTED"
    assert "S-200" in world.shown()


def test_a_file_that_failed_is_not_remembered(world):
    world.put(*TEN)
    world.run()
    world.put_bytes(HTML)
    assert [world.run().status, world.run().status] == ["FAILED", "FAILED"]
    world.put(*TEN)
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_HASH", "the last file that was ingested counts"


def another_currency(world, _monkeypatch):
    verbs.update(OLGA, world.feed.id, {"default_currency": "EUR"})


def another_parser(_world, monkeypatch):
    monkeypatch.setattr(change_detection, "PARSER_VERSION", change_detection.PARSER_VERSION + 1)


def forced(world, _monkeypatch):
    world.work(verbs.run_now(OLGA, world.feed.id, force=True).job_id)


@pytest.mark.parametrize("change", [another_currency, another_parser, forced])
def test_what_has_the_same_file_read_again(world, monkeypatch, change):
    world.put(*TEN)
    world.run()
    change(world, monkeypatch)
    if change is not forced:
        world.run()
    assert [run.outcome for run in runs()] == ["PROMOTED", "PROMOTED"]


# 8. Skipped runs [9.6].


def test_a_skipped_run_clears_failures_and_moves_nothing_else(world):
    world.put(*TEN)
    world.run()
    before = world.look().last_promoted_at
    world.change(consecutive_failures=2, last_run_at=None)
    run = world.run()
    feed = Feed.objects.get()
    assert (feed.consecutive_failures, feed.last_run_at) == (0, run.finished_at)
    assert world.look().last_promoted_at == before
    assert world.figures(run).run.verdict == [], "no gate is asked"
    world.pass_time(49)
    assert world.shown() == {}


def test_an_unchanged_file_means_seen_where_the_feed_says_so(world):
    world.change(unchanged_means_seen=True)
    world.put(*TEN)
    world.run()
    world.pass_time(40)
    assert world.run().outcome == "SKIPPED"
    world.pass_time(40)
    assert len(world.shown()) == 10


@pytest.mark.parametrize("decided", [False, True])
def test_an_unchanged_file_that_was_never_promoted_means_nothing(world, decided):
    world.change(unchanged_means_seen=True)
    run = world.hold()
    if decided:
        world.reject(run)
    before = world.look().last_promoted_at
    assert world.run().outcome == "SKIPPED"
    assert world.look().last_promoted_at == before


def test_an_unchanged_file_of_an_ignored_run_means_nothing(world):
    world.change(unchanged_means_seen=True)
    world.put(*TEN)
    Run.objects.filter(pk=world.run().pk).update(ignored_at=now())
    before = world.look().last_promoted_at
    assert world.run().outcome == "SKIPPED"
    assert world.look().last_promoted_at == before
    Run.objects.update(ignored_at=None)


def test_an_unchanged_file_means_seen_once_it_was_approved(world):
    world.change(unchanged_means_seen=True)
    world.approve(world.hold())
    world.pass_time(1)
    before = world.look().last_promoted_at
    assert world.run().outcome == "SKIPPED"
    assert world.look().last_promoted_at > before


# 10. Proof.


def manifest(world, number, location="/Shop/catalog.txt"):
    entry = f"<catalog><numRecords>{number}</numRecords><location>{location}</location></catalog>"
    (world.server.root / "catalogs_info_file.xml").write_text(f"<catalogs>{entry}</catalogs>")


def test_other_rows_than_the_manifest_says_are_transient(world):
    world.put(*TEN)
    manifest(world, 11)
    job = world.ask()
    assert world.attempt(job).state == "retryable"
    [run] = runs()
    assert (run.status, run.error_code, run.artifact_hash) == ("RUNNING", "COUNT_MISMATCH", None)
    assert "again" not in run.error, "after the last attempt that would not be true"
    assert facts() == [0, 0, 0, 0]
    world.put(*TEN, 200)
    world.attempt(job)
    [run] = runs()
    assert (run.outcome, world.figures(run).manifest_rows) == ("PROMOTED", 11)


def test_a_manifest_of_other_files_says_nothing(world):
    world.put(*TEN)
    manifest(world, 11, "/Other/catalog.txt")
    assert world.run().outcome == "PROMOTED"


def test_the_manifest_may_be_left_aside(world):
    world.change(use_manifest=False)
    world.put(*TEN)
    manifest(world, 11)
    assert world.run().outcome == "PROMOTED"


@pytest.mark.parametrize(
    ("file", "code", "attempts"),
    [
        (HTML, "HTML_INSTEAD_OF_CSV", 1),
        (written().encode(), "NO_VALID_PRODUCTS", 1),
        (written(row(100, Price="0")).encode(), "NO_VALID_PRODUCTS", 1),
        (b"nothing\tthat\tis known\n1\t2\t3\n", "HEADER_UNREADABLE", 1),
        (b"", "EMPTY_FILE", 1),
        (written(*map(row, TEN)).encode()[:-40], "TRUNCATED", 3),
    ],
    ids=("web page", "header alone", "no row of use", "other columns", "nothing", "half a row"),
)
def test_what_is_no_whole_catalog_expires_nothing(world, file, code, attempts):
    world.put(*TEN)
    world.run()
    before, written_before = world.shown(), facts()
    world.put_bytes(file)
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", code, attempts)
    assert (world.shown(), facts()) == (before, written_before)


# 11. Limits.


def test_the_limits_are_those_of_the_rules():
    assert (ParseLimits().rows, ParseLimits().products, MAX_FILE_BYTES) == (500_000, 500_000, 500 * 1024 * 1024)


#: Bytes of the file that limits are tried with.
SIZE = len(written(*map(row, TEN)).encode())


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ({"max_file_bytes": SIZE - 1}, "FILE_SIZE_LIMIT_EXCEEDED"),
        ({"max_rows": 9}, "ROW_COUNT_LIMIT_EXCEEDED"),
        ({"max_products": 9}, "UNIQUE_PRODUCT_LIMIT_EXCEEDED"),
    ],
)
def test_over_a_limit_nothing_is_written(world, limit, code):
    world.change(**limit)
    world.put(*TEN)
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", code, 1)
    assert facts() == [0, 0, 0, 0]


@pytest.mark.parametrize("below", [0, 1])
def test_at_a_limit_and_below_it_everything_is_read(world, below):
    world.change(max_file_bytes=SIZE + below, max_rows=10 + below, max_products=10 + below)
    world.put(*TEN)
    assert world.run().outcome == "PROMOTED"


def test_many_rows_of_few_products_are_within_the_limit_of_products(world):
    world.change(max_products=1)
    world.put(*[row(100, Price=f"{number}.00") for number in TEN])
    assert world.run().outcome == "PROMOTED"


# 12, 15, 16, 17. Rows, identities, figures.


def test_rejected_rows_are_counted_by_code_and_sampled_with_their_lines(world):
    world.put(*TEN, row(200, Price="0"), row(201, Name=""), row(202, Price="0"))
    run = world.run()
    figures = world.figures(run)
    assert figures.rejects == {"PRICE_WITHHELD": 2, "MISSING_TITLE": 1}
    assert (figures.rows_read, figures.rows_parsed, figures.products_rejected, figures.error_count) == (13, 10, 3, 3)
    kept = FeedRunSample.objects.filter(run_id=run.pk).values_list("code", "line")
    assert sorted(kept) == [("MISSING_TITLE", 13), ("PRICE_WITHHELD", 12), ("PRICE_WITHHELD", 14)]


def test_the_default_currency_of_the_feed_counts(world):
    world.change(default_currency="EUR")
    world.put(row(100, Currency=""))
    world.run()
    assert rows("SELECT amount, currency FROM prices") == [(1, "EUR")]


def test_the_last_valid_row_of_a_product_wins(world):
    world.put(row(100), row(100, Price="2.00"), 101, row(100, Price="3.00"), row(100, Price="free"))
    run = world.run()
    assert world.shown() == {"S-100": ("Thing 100", 3.00, True), "S-101": ("Thing 101", 1.01, True)}
    figures = world.figures(run)
    assert (figures.duplicate_key_count, figures.products_upserted, count("prices")) == (2, 2, 2)


def test_rows_that_lost_are_shown_with_their_identity_and_without_secrets(world):
    secret = "https://shop:hunter2hunter2@shop.example/p/101"
    world.put(100, row(101, SKU=secret), row(100, Price="2.00"), row(101, SKU=secret), 102)
    run = world.run()
    first, second = FeedRunSample.objects.filter(run_id=run.pk, code="DUPLICATE_ROW_SAME_IDENTITY").order_by("place")
    assert (first.line, first.reason) == (2, "replaced by line 4: SKU S-100")
    assert first.row == "SKU S-100 | 1.00 USD"
    assert (second.line, second.reason[:22]) == (3, "replaced by line 5: SK")
    assert "hunter2" not in second.reason + second.row


def test_the_first_fifty_rows_that_lost_are_shown_also_where_they_were_known(world):
    world.put(*[row(number) for number in range(100, 200)])
    world.run()
    twice = [row(number) for number in range(100, 160)]
    world.put(*twice, *[row(number) for number in range(100, 200)])
    run = world.run()
    kept = FeedRunSample.objects.filter(run_id=run.pk, code="DUPLICATE_ROW_SAME_IDENTITY").order_by("place")
    assert [(sample.line, sample.reason) for sample in kept] == [
        (line, f"replaced by line {line + 60}: SKU S-{line + 98}") for line in range(2, 52)
    ]
    assert all(sample.row.startswith(f"SKU S-{sample.line + 98} | ") for sample in kept)
    assert world.figures(run).duplicate_key_count == 60


def test_rows_of_one_product_are_removed_by_a_hashed_list_of_lines(world, monkeypatch):
    """A list of another type than the column is compared entry by entry: 172,000 rows of one product took 44 s."""
    plans = []

    def explain(execute, statement, params, many, context):
        if statement.startswith("DELETE FROM staged_rows"):
            with connections["default"].cursor() as cursor:
                cursor.execute(f"EXPLAIN {statement}", params)
                plans.append("\n".join(line for (line,) in cursor.fetchall()))
        return execute(statement, params, many, context)

    def prepare_watched(cursor, prepare=load.prepare_session):
        prepare(cursor)
        cursor.db.execute_wrappers.append(explain)

    monkeypatch.setattr(load, "prepare_session", prepare_watched)
    world.put(*[row(100, Price=f"{number}.00") for number in range(1, 21)])
    run = world.run()
    assert world.figures(run).duplicate_key_count == 19
    (plan,) = plans
    assert re.search(r"line = ANY \('\{2,3,[0-9,]+\}'::bigint\[\]\)", plan)


def test_better_identities_are_counted_sampled_and_shown_on_a_held_run(world):
    put_wide(world, *[wide(number) for number in range(100, 120)])
    world.run()
    put_wide(world, *[wide(number, Item_Id=f"I-{number}") for number in range(100, 120)])
    run = world.run()
    figures = world.figures(run)
    assert (run.outcome, figures.identity_upgrades, figures.products_new) == ("HELD", 20, 20)
    kept = FeedRunSample.objects.filter(run_id=run.pk, code="IDENTITY_UPGRADE_DETECTED")
    assert kept.count() == 20
    first = kept.get(line=2)
    assert first.reason == "known as SKU S-100, now NETWORK_ITEM_ID I-100"
    assert first.row == "NETWORK_ITEM_ID I-100 | Thing 100 | 10.00 USD | https://shop.example/p/100"
    assert len({sample.reason for sample in kept}) == 20
    held = rows("SELECT identity_type, identity_value FROM held_changes WHERE is_new ORDER BY line LIMIT 1")
    assert held == [(1, "I-100")], "the item id counts, although there is a SKU"


def test_a_gtin_keeps_its_zeros(world):
    put_wide(world, wide(100, Gtin="00012345678905"))
    world.run()
    assert rows("SELECT gtin FROM source_products") == [("00012345678905",)]


def test_the_figures_of_a_run(world):
    world.put(*TEN)
    world.run()
    world.put(*range(101, 110))
    world.run()
    world.put(100, row(101, Price="9.99"), row(102, Name="Another name"), *range(103, 109), 200, 201)
    run = world.run()
    figures = world.figures(run)
    found = {
        name: getattr(figures, name)
        for name in (
            *("rows_read", "rows_parsed", "products_upserted", "products_new", "products_changed", "products_back"),
            *("products_missing", "prices_written", "prices_due", "active_count_before", "seen_success_count"),
            *("would_expire_count", "url_hash_fallback_count", "is_partial"),
        )
    }
    assert found == {
        "rows_read": 11,
        "rows_parsed": 11,
        "products_upserted": 11,
        "products_new": 2,
        "products_changed": 1,
        "products_back": 1,
        "products_missing": 1,
        "prices_written": 3,
        "prices_due": 3,
        "active_count_before": 10,
        "seen_success_count": 9,
        "would_expire_count": 1,
        "url_hash_fallback_count": 0,
        "is_partial": False,
    }


def test_products_known_by_their_address_only_are_counted_and_hold_the_run(world):
    """More than half of the products; of the rows they are fewer, because one product has many."""
    world.put(*TEN, *[100] * 10, *[row(number, SKU="") for number in range(200, 211)])
    run = world.run()
    gates = [item["gate"] for item in world.figures(run).run.verdict if item["holds"]]
    assert (run.outcome, gates, world.figures(run).url_hash_fallback_count) == ("HELD", ["URL_HASH"], 11)


def test_a_feed_may_accept_products_known_by_their_address_only(world):
    world.change(accepts_url_identity=True)
    world.put(*[row(number, SKU="") for number in TEN])
    assert world.run().outcome == "PROMOTED"


def test_no_run_is_partial(world):
    world.running()
    with pytest.raises(IntegrityError, match="is_partial"):
        FeedRun.objects.update(is_partial=True)


# 18. Gate before facts.


def test_a_run_that_fails_while_it_is_promoted_writes_nothing(world, monkeypatch):
    """Prices, offers and contents were written, and then its end cannot be."""

    def broken(*_):
        raise TerminalError("on fire")

    monkeypatch.setattr(run_endings, "remember_ingested", broken)
    world.put(*TEN)
    assert world.run().status == "FAILED"
    assert facts() == [10, 0, 0, 0], "new products may be there, and have no offer"
    assert world.look().last_promoted_at is None


def test_a_run_that_fails_after_its_verdict_shows_nothing_of_it(world, monkeypatch):
    world.put(*TEN)
    world.run()
    before = world.shown()
    world.put(row(100, Price="9.99"), row(101, Name="Another name"), *range(102, 110), 200)
    fails_once(monkeypatch, TerminalError("on fire"))
    assert world.run().status == "FAILED"
    assert world.shown() == before
    assert facts() == [11, 10, 10, 0], "new products may be there, and have no offer"
    run = world.run()
    assert run.outcome == "PROMOTED"
    assert world.shown()["S-200"] == ("Thing 200", 2.00, True)
    assert world.shown()["S-100"][1] == 9.99


def test_products_that_cannot_be_copied_during_the_promotion_roll_it_back(world, monkeypatch):
    """Where very many are new, they are copied in while the run is promoted."""
    world.put(*TEN)
    world.run()
    before = world.shown()
    monkeypatch.setattr(search_index, "AT_ONCE", 1)
    real = load.copy_in

    def on_fire(cursor, table, *more):
        if table == "source_products":
            raise TerminalError("on fire")
        return real(cursor, table, *more)

    monkeypatch.setattr(load, "copy_in", on_fire)
    world.put(row(100, Price="9.99"), *TEN[1:], 200, 201)
    assert world.run().status == "FAILED"
    assert world.shown() == before
    assert facts() == [10, 10, 10, 0]
    monkeypatch.setattr(load, "copy_in", real)
    assert world.run().outcome == "PROMOTED"
    assert world.shown()["S-200"] == ("Thing 200", 2.00, True)


def test_a_held_run_writes_its_difference_and_nothing_else(world):
    world.put(*range(100, 140))
    world.run()
    before = facts()
    contents = rows("SELECT id, title, content_hash FROM source_products ORDER BY id")
    world.put(row(100, Price="77.77"), row(101, Name="Another name"), 500)
    world.run()
    assert facts() == [*before[:3], 41]
    assert rows("SELECT id, title, content_hash FROM source_products ORDER BY id") == contents


@pytest.mark.parametrize(
    ("lines", "gate"),
    [
        ([row(number, Price="900.00") for number in range(100, 140)], "PRICE_SHOCK"),
        ([*map(row, range(100, 140)), *[row(number, Price="") for number in range(500, 520)]], "REJECT_SHARE"),
        ([row(number, Currency="EUR") for number in range(100, 140)], "PRICE_SHOCK"),
    ],
)
def test_every_gate_holds_a_whole_run(world, lines, gate):
    world.put(*range(100, 140))
    world.run()
    world.put(*lines)
    run = world.run()
    assert (run.outcome, [item["gate"] for item in world.figures(run).run.verdict if item["holds"]]) == ("HELD", [gate])


def test_a_price_is_shocked_when_it_moves_by_more_than_half(world):
    moves = {"15.00": False, "15.01": True, "14.99": False, "5.00": False, "4.99": True, "5.01": False}
    world.put(*[row(number, Price="10.00") for number in range(100, 106)])
    world.run()
    world.put(*[row(number, Price=price) for number, price in zip(range(100, 106), moves, strict=True)])
    figures = world.figures(world.run())
    assert (figures.known_products, figures.prices_written) == (6, 6)
    assert figures.shocked_products == sum(moves.values())


def test_many_better_identities_are_reported_until_a_run_has_few(world):
    """Five of a hundred products are five percent, and that is not more than five percent."""

    def run_with(upgraded):
        lines = [wide(number, Item_Id=f"I-{number}" if number < 100 + upgraded else "") for number in range(100, 200)]
        put_wide(world, *lines)
        run = world.run()
        assert run.outcome == "PROMOTED"
        reported = Alert.objects.filter(kind="IDENTITY_UPGRADES", resolved_at=None).count()
        return world.figures(run).identity_upgrades, reported

    assert [run_with(upgraded) for upgraded in (0, 5, 11, 12)] == [(0, 0), (5, 0), (6, 1), (1, 0)]


def test_everything_expired_and_a_small_file_is_held_by_the_baseline(world):
    world.put(*range(100, 140))
    world.run()
    world.pass_time(100)
    run = world.shrink()
    [gate] = [item["gate"] for item in world.figures(run).run.verdict if item["holds"]]
    assert gate == "BASELINE_SHRUNK"


def test_a_feed_may_set_its_own_thresholds(world):
    verbs.update(OLGA, world.feed.id, {"thresholds": {"expiry_share": 1.0}})
    assert audited() == [("FEED_UPDATED", "feed", ["thresholds"])]
    world.put(*range(100, 140))
    world.run()
    world.put(100)
    assert world.run().outcome == "PROMOTED"


def test_everything_expired_and_the_whole_file_again_shows_everything(world):
    world.put(*range(100, 140))
    world.run()
    world.pass_time(100)
    assert world.shown() == {}
    world.put(*range(139, 99, -1))
    assert world.run().outcome == "PROMOTED"
    assert len(world.shown()) == 40


# 20. Which prices are written.


def test_the_heartbeat_falls_due_within_its_last_hour_by_the_products_number(world):
    world.put(*range(100, 160))
    world.run()
    due = {number: 24 - (number % 60) / 60 for (number,) in rows("SELECT id FROM source_products")}
    assert len(set(due.values())) == 60

    def priced_after(hours, numbers):
        world.pass_time(hours)
        world.put(*numbers)
        run = world.run()
        assert run.outcome == "PROMOTED"
        return {product for (product,) in rows("SELECT source_product_id FROM prices WHERE run_no = %s", run.no)}

    assert priced_after(23, range(159, 99, -1)) == set()
    due_now = {number for number, hours in due.items() if hours <= 23.51}
    assert priced_after(0.51, [*range(130, 160), *range(100, 130)]) == due_now


@pytest.mark.parametrize("hours", [24, 12])
def test_after_the_heartbeat_every_price_is_written_once_more(world, hours):
    if hours != 24:
        Source.objects.update(price_heartbeat_hours=hours)
    world.put(*TEN)
    world.run()
    world.pass_time(hours + 0.1)
    world.put(*TEN, compressed=True)
    run = world.run()
    assert (world.figures(run).prices_written, count("prices")) == (10, 20)


@pytest.mark.parametrize(
    "changed",
    [
        {"Availability": "out of stock"},
        {"Original_Price": "30.00"},
        {"Price": "10.01"},
        {"Currency": "EUR"},
        {"Promotions": "Free shipping"},
    ],
)
def test_each_part_of_a_price_is_recorded_when_it_changes_alone(world, changed):
    put_wide(world, wide(100), wide(101))
    world.run()
    put_wide(world, wide(100, **changed), wide(101))
    assert world.figures(world.run()).prices_written == 1


def test_other_content_alone_writes_no_price(world):
    world.put(*TEN)
    world.run()
    world.put(row(100, Name="Another name"), *TEN[1:])
    figures = world.figures(world.run())
    assert (figures.products_changed, figures.prices_written) == (1, 0)
    assert world.shown()["S-100"][0] == "Another name"


def test_a_runs_prices_have_one_moment_and_no_run_is_before_another(world):
    world.put(*TEN)
    run = world.run()
    assert rows("SELECT DISTINCT observed_at FROM prices") == [(run.observed_at,)]
    ahead = now() + dt.timedelta(hours=1)
    Source.objects.update(last_observed_at=ahead)
    world.put(*[row(number, Price="5.00") for number in TEN])
    run = world.run()
    assert rows("SELECT DISTINCT observed_at FROM prices WHERE run_no = %s", run.no) == [(run.observed_at,)]
    assert run.observed_at > ahead, "a clock that was set back does not make new prices older than known ones"
    [(priced,)] = rows("SELECT DISTINCT last_priced_at FROM offers")
    assert rows("SELECT DISTINCT created_at FROM prices WHERE run_no = %s", run.no) == [(priced,)]
    assert priced < ahead, "the heartbeat goes by the time at which a price was written"
    assert world.shown()["S-100"][1] == 5.00


def test_the_same_prices_again_are_known_again(world):
    """Back and forth: each time the newest price is compared with, not any that was."""
    for price in ("1.00", "2.00", "1.00"):
        world.put(row(100, Price=price), 101)
        world.run()
    assert [
        float(amount)
        for (amount,) in rows(
            "SELECT p.amount FROM prices p JOIN source_products s ON s.id = p.source_product_id "
            "WHERE s.identity_value = 'S-100' ORDER BY p.observed_at"
        )
    ] == [1.00, 2.00, 1.00]


def test_a_price_is_compared_with_the_newest_of_its_own_kind(world):
    """Somebody's robot saw another price meanwhile; the feed says what it always said."""
    Source.objects.filter(pk=world.source.pk).update(visibility="ELIGIBLE")
    world.put(*TEN)
    world.run()
    [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = 'S-100'")
    signature = uuid7()
    catalog.price(world.source, product, "5.00", run_type="SCRAPE", run_no=10**6, signature=signature)
    catalog.page_products(world.source, product, leads_for=48)
    offers.recompute(world.source.pk, [product])
    rows("UPDATE offers SET last_signature = %s WHERE product_id = %s RETURNING 1", signature, product)
    assert world.shown()["S-100"][1] == 5.00
    world.put(*TEN, 200)
    assert world.figures(world.run()).prices_written == 1, "that of S-200"


def test_an_amount_has_the_decimals_of_its_currency(world):
    world.put(row(100, Price="0.234", Currency="KWD"), row(101, Price="5", Currency="JPY"))
    world.run()
    assert rows("SELECT amount, currency FROM prices ORDER BY 1") == [(Decimal("0.234"), "KWD"), (Decimal(5), "JPY")]


# 24. What comes back, and what was before.


def test_a_product_that_reappears_counts_again(world):
    world.approve(world.hold())
    assert rows("SELECT count(*) FROM offers WHERE absence_accepted") == [(37,)]
    world.put(*range(100, 120))
    run = world.run()
    figures = world.figures(run)
    assert (run.outcome, figures.products_back) == ("PROMOTED", 17)
    assert (figures.active_count_before, figures.seen_success_count) == (3, 3), "accepted absences count nowhere"
    assert rows("SELECT count(*) FROM offers WHERE absence_accepted") == [(20,)]
    world.put(100)
    held = world.run()
    assert (held.outcome, world.figures(held).would_expire_count) == ("HELD", 19), "what came back is missed again"


def test_the_content_before_the_newest_promotion_is_kept(world):
    def kept():
        return rows("SELECT r.title, r.run_no FROM replaced_contents r")

    world.put(*TEN)
    world.run()
    assert kept() == []
    world.put(row(100, Name="Second"), *TEN[1:])
    second = world.run()
    assert kept() == [("Thing 100", second.no)]
    world.put(row(100, Name="Third"), *TEN[1:])
    third = world.run()
    assert kept() == [("Second", third.no)], "of the newest promoted run only"


# Presence by the names of the specification [2.7, 7.6].


def presence(name):
    found = rows(
        "SELECT last_seen_success_at FROM source_product_presence v JOIN source_products p "
        "ON p.source_id = v.source_id AND p.id = v.source_product_id WHERE p.identity_value = %s",
        name,
    )
    return found[0][0] if found else None


def test_presence_of_a_product_through_its_life(world):
    world.put(*range(100, 140))
    first = world.run()
    promoted = world.look().last_promoted_at
    assert presence("S-100") == presence("S-139") == promoted, "active"
    seen = rows("SELECT run_no, count(*) FROM source_product_seen GROUP BY run_no")
    assert seen == [(first.no, 40)]
    run = world.shrink(100, 500)
    assert presence("S-100") == presence("S-139") == promoted, "a held run does not move it"
    assert presence("S-500") is None, "pending: never promoted"
    world.run()
    assert presence("S-100") == promoted, "nor does a skipped one"
    world.approve(run)
    approved = world.look().last_promoted_at
    assert presence("S-100") == presence("S-500") == approved > promoted
    assert promoted <= presence("S-139") < approved
    assert rows("SELECT run_no, count(*) FROM source_product_seen GROUP BY run_no") == [(run.no, 2)]
    assert len(world.shown()) == 41
    world.pass_time(49)
    assert presence("S-100") is not None, "stale: known, and shown no more"
    assert world.shown() == {}


# Words.


def test_more_seen_than_active_is_logged_and_counts_as_none_missing(world, monkeypatch):
    real = ingest.match

    def miscounted(*args, **more):
        return dataclasses.replace(real(*args, **more), active_before=1, active_seen=3)

    monkeypatch.setattr(ingest, "match", miscounted)
    world.put(*TEN)
    with capture_logs() as reported:
        run = world.run()
    assert "CIRCUIT_BREAKER_NEGATIVE_EXPIRE_COUNT" in {event["event"] for event in reported}
    assert (run.outcome, world.figures(run).would_expire_count) == ("PROMOTED", 0)
