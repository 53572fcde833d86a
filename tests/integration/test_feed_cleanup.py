"""The daily clean-up of feeds: what goes, what stays, and what is logged."""

import itertools
import os
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from structlog.testing import capture_logs
from tests.support.catalog_rows import make_feed, make_price, make_product, make_run, write
from tests.support.jobs import job
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.models import PriceCorrection, Source
from harvester.catalog.search_index import MAKE_SEARCHABLE
from harvester.engine.enqueue import enqueue
from harvester.engine.registry import all_periodic
from harvester.feeds import schedule
from harvester.feeds.files import artifact_store
from harvester.feeds.jobs import CLEAN_UP
from harvester.feeds.models import Feed, FeedRun, FeedRunSample
from harvester.feeds.runs import FEED_RUNS
from harvester.guards.artifacts import artifact_path
from harvester.ops.models import Alert
from harvester.runs import retention
from harvester.runs.models import Run
from harvester.runs.subject_lock import try_lock_in_transaction

pytestmark = pytest.mark.usefixtures("database")


def clean_up() -> dict:
    made = enqueue(CLEAN_UP).job_id
    run_until_idle()
    ended = job(made)
    assert ended.state == "succeeded", ended.error
    return ended.result


def point(feed, **fields):
    Source.objects.filter(pk=feed.source_id).update(**fields)


def correct(feed, run, *, revoked):
    PriceCorrection.objects.create(
        scope="RUN",
        source=feed.source,
        run_no=run.no,
        action="IGNORE",
        reason="wrong",
        created_by="ann",
        revoked_at=timezone.now() if revoked else None,
    )


def left() -> list[int]:
    return sorted(Run.objects.values_list("no", flat=True))


def products() -> list[int]:
    return [row[0] for row in rows("SELECT id FROM source_products ORDER BY id")]


def test_runs_go_after_thirty_days_with_all_that_hangs_on_them():
    feed = make_feed()
    gone, kept = make_run(feed, days=30.1), make_run(feed, days=29.9)
    make_price(feed, 1, gone.no)
    assert clean_up()["runs"] == 1
    assert left() == [kept.no]
    assert list(FeedRun.objects.values_list("run_id", flat=True)) == [kept.pk]
    assert [sample.run_id for sample in FeedRunSample.objects.all()] == [kept.pk]
    assert rows("SELECT run_no FROM run_absences") == [(kept.no,)]
    assert rows("SELECT run_no FROM prices") == [(gone.no,)]


def test_runs_that_something_points_to_stay():
    feed = make_feed()
    held = make_run(feed, days=90, outcome="HELD")
    promoted = make_run(feed, days=90)
    ingested = make_run(feed, days=90, outcome="REJECTED")
    running = make_run(feed, days=90, status="RUNNING", outcome=None)
    ignored = make_run(feed, days=90, ignored_at=timezone.now())
    corrected, once_corrected = make_run(feed, days=90), make_run(feed, days=90)
    correct(feed, corrected, revoked=False)
    correct(feed, once_corrected, revoked=True)
    for outcome in ("PROMOTED", "APPROVED", "REJECTED", "OVERTAKEN", "SKIPPED"):
        make_run(feed, days=90, outcome=outcome)
    make_run(feed, days=90, status="FAILED", outcome=None)
    point(feed, last_promoted_run_no=promoted.no, held_run_no=held.no, held_since=timezone.now())
    Feed.objects.filter(pk=feed.pk).update(last_ingested_run_no=ingested.no)
    assert clean_up()["runs"] == 6
    assert left() == [run.no for run in (held, promoted, ingested, running, ignored, corrected, once_corrected)]
    assert rows("SELECT count(*) FROM run_absences WHERE run_no = %s", promoted.no) == [(1,)]


def test_runs_go_in_batches_of_their_own(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    feed = make_feed()
    for _ in range(5):
        make_run(feed, days=40)
    with capture_logs() as logs:
        clean_up()
    logged = [(entry["deleted"], entry["total"]) for entry in logs if entry["event"] == "CLEANUP_BATCH_COMPLETE"]
    assert logged == [(2, 2), (2, 4), (1, 5)]
    [whole] = [entry for entry in logs if entry["event"] == "CLEANUP_COMPLETE"]
    assert (whole["runs"], whole["products"], whole["files"]) == (5, 0, 0)


def test_products_that_were_never_promoted_go_with_the_run_that_made_them(monkeypatch):
    monkeypatch.setattr(schedule, "BATCH", 2)
    feed, other = make_feed(), make_feed("Other")
    failed = make_run(feed, status="FAILED", outcome=None)
    for number in range(1, 6):
        make_product(feed, number, failed.no)
    make_product(feed, 6, failed.no)
    make_price(feed, 6, failed.no)
    make_product(other, 7, 999_999)
    for of in (feed, other):
        enqueue(MAKE_SEARCHABLE, {"source_id": str(of.source_id)})
    run_until_idle(queues=("search",))
    assert clean_up()["products"] == 6
    assert products() == [6]
    assert rows("SELECT product_id FROM offer_words") == [(6,)]


@pytest.mark.parametrize("how", ["running", "held", "locked"])
def test_products_stay_while_their_feed_is_busy(how):
    feed = make_feed()
    make_product(feed, 1, make_run(feed, status="FAILED", outcome=None).no)
    if how == "running":
        make_run(feed, status="RUNNING", outcome=None)
    if how == "held":
        point(feed, held_run_no=make_run(feed, outcome="HELD").no, held_since=timezone.now())
    with transaction.atomic():
        if how == "locked":
            assert try_lock_in_transaction(FEED_RUNS, feed)
        elsewhere(clean_up)
    assert products() == [1]


def elsewhere(work) -> None:
    """Do it in another session; pytest fails a test whose thread raises."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def keep(content: bytes, days: float) -> str:
    with artifact_store().writer() as writer:
        writer.write(content)
        sha256 = writer.commit().sha256
    path = artifact_path(artifact_store()._root, sha256)
    moment = (timezone.now() - timedelta(days=days)).timestamp()
    os.utime(path, (moment, moment))
    return sha256


def test_files_go_after_thirty_days_unless_a_run_needs_them():
    feed = make_feed()
    old, young = keep(b"old", 31), keep(b"young", 29)
    needed = {name: keep(name.encode(), 90) for name in ("held", "promoted", "running")}
    held = make_run(feed, days=90, outcome="HELD", artifact_hash=needed["held"])
    promoted = make_run(feed, days=90, artifact_hash=needed["promoted"])
    make_run(feed, days=90, status="RUNNING", outcome=None, artifact_hash=needed["running"])
    make_run(feed, days=29, outcome="REJECTED", artifact_hash=old)
    point(feed, last_promoted_run_no=promoted.no, held_run_no=held.no, held_since=timezone.now())
    result = clean_up()
    assert (result["files"], result["file_bytes"]) == (1, 3)
    assert not artifact_store().has(old)
    assert all(artifact_store().has(sha256) for sha256 in (young, *needed.values()))


def test_a_slow_clean_up_is_reported_until_one_is_fast(monkeypatch):
    def clean_up_within(seconds):
        ticks = itertools.chain([0.0], itertools.repeat(seconds))
        monkeypatch.setitem(schedule.clean_up.__kwdefaults__, "clock", lambda: next(ticks))
        clean_up()

    clean_up_within(600.0)
    assert Alert.objects.count() == 0
    clean_up_within(600.5)
    clean_up_within(1200.0)
    alert = Alert.objects.get()
    assert (alert.kind, alert.times, alert.resolved_at) == ("CLEANUP_SLOW", 2, None)
    assert "20 minutes" in alert.body
    clean_up_within(5.0)
    assert Alert.objects.get().resolved_at


def test_the_clean_up_comes_once_a_day():
    [daily] = [item for item in all_periodic().values() if item.kind == CLEAN_UP]
    minute, hour, *rest = daily.cron.split()
    assert (minute.isdecimal(), hour.isdecimal(), rest) == (True, True, ["*", "*", "*"])


def test_what_others_hold_is_left_for_the_next_day():
    feed = make_feed()
    busy, free = make_run(feed, days=40), make_run(feed, days=40)
    with transaction.atomic():
        write("SELECT 1 FROM runs WHERE no = %s FOR UPDATE", busy.no)
        elsewhere(clean_up)
    assert left() == [busy.no]
    assert free.no not in left()
