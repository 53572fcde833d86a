"""The pages that are due: which are enqueued, when they are due next, and that each moment is taken once."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from tests.support import catalog, scraping
from tests.support.feed_world import OLGA
from tests.support.tables import rows
from tests.support.together import together
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_processes

from harvester.catalog import governance
from harvester.catalog.models import Source
from harvester.engine.cron import next_moment
from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.models import Job
from harvester.engine.registry import all_periodic
from harvester.ops.models import Alert
from harvester.runs.models import Run, RunPart
from harvester.scraping import jobs, verbs
from harvester.scraping.models import AdapterState, ScrapeImport, ScrapeTarget

pytestmark = pytest.mark.usefixtures("database")
NEVER = ("BROKEN", "PAUSED", "STALE")


def tick() -> dict:
    """What one tick did."""
    return run_job(jobs.TICK)


def run_job(kind: str) -> dict:
    job = enqueue(kind).job_id
    run_until_idle(queues=("maintenance",))
    done = Job.objects.get(id=job)
    assert done.state == "succeeded", done.error
    return done.result


def read() -> set:
    """The pages that have an open job."""
    keys = Job.objects.filter(kind="scraping.page", state="pending").values_list("dedupe_key", flat=True)
    return {key.removeprefix("scrape:") for key in keys}


def names(*targets) -> set:
    return {str(target.pk) for target in targets}


@pytest.mark.parametrize("scrape_enabled", [True, False])
@pytest.mark.parametrize("robots_compliant", [True, False])
def test_the_scheduler_only_reads_sources_with_both_switches_on(scrape_enabled, robots_compliant):
    source = scraping.shop(scrape_enabled=scrape_enabled, robots_compliant=robots_compliant)
    [page] = scraping.pages(source, 1)
    both = scrape_enabled and robots_compliant
    assert tick()["enqueued"] == int(both)
    page.refresh_from_db()
    assert (page.due_at > catalog.now()) == both, "what is not read keeps its moment"


def test_a_source_or_adapter_that_is_off_is_not_read():
    off, drifted = scraping.shop("off.example", enabled=False), scraping.shop("drifted.example")
    for source in (off, drifted):
        scraping.pages(source, 1)
    AdapterState.objects.create(
        source=drifted, adapter_id="structured", enabled=False, disabled_reason="DRIFT_DETECTED"
    )
    assert tick() == {"sources": 0, "enqueued": 0, "rejected": 0, "busy": 0}


@pytest.mark.parametrize("status", ["ACTIVE", *NEVER])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_page_is_read_only_if_it_is_enabled_and_active(enabled, status):
    scraping.pages(scraping.shop(), 1, enabled=enabled, status=status)
    assert tick()["enqueued"] == int(enabled and status == "ACTIVE")


def test_a_blocked_page_and_one_without_a_schedule_are_not_read():
    source = scraping.shop()
    scraping.pages(source, 1, robots_path_blocked=True)
    scraping.pages(source, 1, schedule=None, due_at=None)
    assert tick()["enqueued"] == 0


@pytest.mark.parametrize(
    ("line", "after", "due"),
    [
        ("0 */4 * * *", datetime(2026, 3, 8, 1, 59, tzinfo=UTC), datetime(2026, 3, 8, 4, 0, tzinfo=UTC)),
        # The hour that American clocks skip, and the one that European ones have twice.
        ("30 2 * * *", datetime(2026, 3, 8, 0, 0, tzinfo=UTC), datetime(2026, 3, 8, 2, 30, tzinfo=UTC)),
        ("30 1 * * *", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), datetime(2026, 10, 26, 1, 30, tzinfo=UTC)),
    ],
)
def test_cron_lines_are_read_in_utc(line, after, due):
    assert next_moment(line, after) == due


def test_the_next_moment_is_stored_in_utc_whatever_the_session_uses():
    source = scraping.shop("bigshop.com")
    catalog.fetch("SET TIME ZONE 'America/New_York'")
    try:
        made = verbs.add_target(OLGA, source.pk, "https://bigshop.com/p", schedule="0 12 * * *")
    finally:
        catalog.fetch("SET TIME ZONE 'UTC'")
    assert rows("SELECT to_char(due_at AT TIME ZONE 'UTC', 'HH24:MI') FROM scrape_targets") == [("12:00",)]
    assert timedelta(0) < made.due_at - catalog.now() <= timedelta(days=1)


def test_missed_moments_make_one_job():
    source = scraping.shop()
    [page] = scraping.pages(source, 1, schedule="*/5 * * * *", due_at=catalog.now() - timedelta(days=3))
    assert tick()["enqueued"] == 1
    page.refresh_from_db()
    assert timedelta(0) < page.due_at - catalog.now() <= timedelta(minutes=5)
    assert tick()["enqueued"] == 0
    ScrapeTarget.objects.update(due_at=catalog.now())
    assert tick()["enqueued"] == 0, "its job still waits"
    page.refresh_from_db()
    assert page.due_at > catalog.now(), "what it missed is that one job"
    assert (Run.objects.count(), len(read())) == (1, 1)


def test_a_cycle_begins_one_run_for_each_source():
    for domain in ("one.example", "two.example"):
        scraping.pages(scraping.shop(domain), 3)
    assert tick() == {"sources": 2, "enqueued": 6, "rejected": 0, "busy": 0}
    assert list(Run.objects.values_list("kind", "trigger")) == [("SCRAPE", "SCHEDULED")] * 2
    assert set(Job.objects.filter(kind=jobs.PAGE).values_list("lane", flat=True)) == {"one.example", "two.example"}
    assert "pages that are due" in all_periodic()


def test_two_schedulers_never_enqueue_a_page_twice():
    """Ten ticks in three processes over pages that are due again and again."""
    sources = [scraping.shop(f"shop{place}.example") for place in range(6)]
    for source in sources:
        scraping.pages(source, 40)
    enqueue_many(NewJob(kind=jobs.TICK) for _ in range(10))
    with worker_processes(3, "queues=maintenance", "threads=2"):
        wait_for(lambda: not Job.objects.filter(kind=jobs.TICK, state__in=["pending", "running"]).exists())
    assert set(Job.objects.filter(kind=jobs.TICK).values_list("state", flat=True)) == {"succeeded"}
    assert rows("SELECT count(*), count(DISTINCT target_id) FROM run_parts") == [(240, 240)]
    assert rows("SELECT count(*), count(DISTINCT dedupe_key) FROM jobs WHERE kind = 'scraping.page'") == [(240, 240)]
    assert Run.objects.count() == 6, "one run for each source and cycle"


def test_schedulers_and_people_at_once_stay_within_the_capacity(settings):
    scraping.limit(settings, per_source=10, total=25)
    sources = [scraping.shop(f"shop{place}.example") for place in range(4)]
    for source in sources:
        scraping.pages(source, 15)
    enqueue_many(NewJob(kind=jobs.TICK) for _ in range(3))
    asks = [lambda of=source.pk: verbs.request(OLGA, of) for source in sources]
    ticks = [lambda: run_until_idle(queues=("maintenance",))] * 2
    for result in together(*ticks, *asks):
        assert not isinstance(result, Exception), result
    assert len(read()) == 25
    assert rows("SELECT max(n) FROM (SELECT count(*) AS n FROM jobs WHERE kind = 'scraping.page' GROUP BY lane) f") == [
        (10,)
    ]


def test_the_oldest_due_go_first_within_a_priority_over_all_sources(settings):
    scraping.limit(settings, total=4)
    one, two = scraping.shop("one.example"), scraping.shop("two.example")
    now = catalog.now()
    old = scraping.pages(one, 2, due_at=now - timedelta(hours=9))
    scraping.pages(one, 2, due_at=now - timedelta(hours=1))
    older = scraping.pages(two, 1, due_at=now - timedelta(hours=10))
    scraping.pages(two, 2, due_at=now - timedelta(hours=2), priority=-1)
    first = scraping.pages(two, 1, due_at=now - timedelta(minutes=1), priority=3)
    assert tick()["enqueued"] == 4
    assert read() == names(*old, *older, *first)


def test_rejected_pages_keep_their_moment_and_most_of_them_pause_the_source(settings):
    scraping.limit(settings, per_source=2)
    source = scraping.shop()
    scraping.pages(source, 5)
    before = dict(ScrapeTarget.objects.values_list("pk", "due_at"))
    assert tick() == {"sources": 1, "enqueued": 2, "rejected": 3, "busy": 0}
    waiting = read()
    for pk, due_at in ScrapeTarget.objects.values_list("pk", "due_at"):
        assert (due_at == before[pk]) == (str(pk) not in waiting)
    state = AdapterState.objects.get()
    assert state.backoff_seconds == 2 * 2, "two pages at a time, in two seconds each"
    assert state.backoff_until > catalog.now()
    assert scraping.rejections() == {"queue_full": 3}
    assert tick() == {"sources": 0, "enqueued": 0, "rejected": 0, "busy": 0}, "it pauses"
    assert not Alert.objects.exists()


def pause_ends() -> None:
    AdapterState.objects.update(backoff_until=catalog.now() - timedelta(seconds=1))


def test_a_backoff_doubles_up_to_an_hour_and_raises_one_alert_beyond_30_minutes(settings):
    scraping.limit(settings, per_source=1)
    scraping.pages(scraping.shop(scrape_config={"requests_per_second": 0.01}), 4)
    seen = []
    for _ in range(8):
        tick()
        seen.append((AdapterState.objects.get().backoff_seconds, Alert.objects.filter(resolved_at=None).count()))
        pause_ends()
    assert seen == [(100, 0), (200, 0), (400, 0), (800, 0), (1600, 0), (3200, 1), (3600, 1), (3600, 1)]
    assert Alert.objects.get().kind == "SCRAPE_BACKOFF"
    settings.CONFIG = scraping.limit(settings, per_source=10) or settings.CONFIG
    tick()
    assert AdapterState.objects.get().backoff_seconds == 0
    assert Alert.objects.get().resolved_at is not None, "the alert has an end"


def test_less_than_half_rejected_is_no_reason_to_pause(settings):
    scraping.limit(settings, per_source=3)
    scraping.pages(scraping.shop(), 5)
    assert tick()["rejected"] == 2
    assert not AdapterState.objects.filter(backoff_until__isnull=False).exists()
    assert tick()["rejected"] == 2


def test_a_shop_that_asked_for_a_pause_keeps_its_moments():
    source = scraping.shop()
    [page] = scraping.pages(source, 1)
    insert = "INSERT INTO job_lanes (queue, lane, wake_at, not_before) VALUES ('pages', %s, 'infinity', now() + %s)"
    catalog.fetch(insert, "shop.example", catalog.hours(3))
    assert tick()["rejected"] == 1
    state = AdapterState.objects.get()
    assert (scraping.rejections(), state.backoff_seconds) == ({"rate_limited": 1}, 3600)
    assert ScrapeTarget.objects.get().due_at == page.due_at


@pytest.mark.parametrize(
    ("reason", "status", "again"),
    [("PRICE_MOVE", "ACTIVE", 10), ("GONE", "ACTIVE", 60), ("BROKEN", "BROKEN", 7 * 24 * 60)],
)
def test_a_second_look_is_a_run_of_its_own(reason, status, again):
    source, now = scraping.shop(), catalog.now()
    [page] = scraping.pages(
        source, 1, status=status, recheck_at=now - timedelta(minutes=1), recheck_reason=reason,
        due_at=now + timedelta(hours=1),
    )  # fmt: skip
    usual = scraping.pages(source, 2)
    assert tick()["enqueued"] == 3
    found = {run.trigger: run for run in Run.objects.all()}
    assert set(found) == {"RECHECK", "SCHEDULED"}
    assert RunPart.objects.get(run=found["RECHECK"]).target_id == page.pk
    assert RunPart.objects.filter(run=found["SCHEDULED"]).count() == len(usual)
    page.refresh_from_db()
    assert page.recheck_reason == reason, "the judge of the page still knows why it was read"
    assert 0 <= (page.recheck_at - now).total_seconds() - again * 60 < 600, "a look that finds nothing out is repeated"
    assert page.due_at == now + timedelta(hours=1)


def test_a_page_that_is_due_and_rechecked_is_read_once():
    now = catalog.now()
    scraping.pages(scraping.shop(), 1, recheck_at=now - timedelta(minutes=1), recheck_reason="GONE")
    assert tick()["enqueued"] == 1
    assert Run.objects.get().trigger == "RECHECK"
    assert ScrapeTarget.objects.get().due_at > now


@pytest.mark.parametrize("values", [{"enabled": False}, {"status": "PAUSED"}, {"status": "STALE"}])
def test_pages_that_people_stopped_are_not_rechecked_either(values):
    past = catalog.now() - timedelta(minutes=1)
    given = {"due_at": None, "recheck_at": past, "recheck_reason": "PRICE_MOVE", **values}
    scraping.pages(scraping.shop(), 1, **given)
    assert tick()["enqueued"] == 0


def test_pages_of_a_paused_shop_are_read_once_it_is_resumed():
    source = scraping.shop()
    scraping.pages(source, 2)
    governance.pause(OLGA, source.pk, "SCRAPE", "Asked by the shop.")
    assert tick()["enqueued"] == 0
    assert not Run.objects.exists()
    governance.resume(OLGA, source.pk, "SCRAPE")
    assert tick()["enqueued"] == 2, "what was missed is read once"


def test_a_source_that_somebody_holds_waits_for_the_next_tick_and_stops_no_other():
    held, free = scraping.shop("held.example"), scraping.shop("free.example")
    for source in (held, free):
        scraping.pages(source, 1)

    def ticks():
        return tick()

    with transaction.atomic():
        Source.objects.select_for_update().get(pk=held.pk)
        [found] = together(ticks)
    assert found == {"sources": 1, "enqueued": 1, "rejected": 0, "busy": 1}
    assert tick()["enqueued"] == 1


def test_one_bad_schedule_does_not_stop_the_others():
    source = scraping.shop()
    [bad] = scraping.pages(source, 1, schedule="never")
    scraping.pages(source, 1)
    assert tick()["enqueued"] == 2
    bad.refresh_from_db()
    assert bad.due_at is None


def test_the_adapter_of_a_page_is_that_of_its_source():
    source, other = scraping.shop("one.example"), scraping.shop("two.example", adapter_id="sgammo")
    [page] = scraping.pages(source, 1)
    with pytest.raises(IntegrityError, match="scrape_targets_adapter"), transaction.atomic():
        ScrapeTarget.objects.filter(pk=page.pk).update(adapter_id="sgammo")
        connection.check_constraints()
    Source.objects.filter(pk=source.pk).update(adapter_id="sgammo")
    page.refresh_from_db()
    assert page.adapter_id == "sgammo", "it follows its source"
    assert other.adapter_id == "sgammo"


def age(hours: float) -> None:
    """As if the runs had begun that long ago."""
    ago = f"now() - interval '{hours} hours'"
    catalog.fetch(f"UPDATE runs SET started_at = {ago}")
    catalog.fetch(
        "UPDATE run_parts SET begun_at = (SELECT started_at FROM runs WHERE id = run_id), ended_at = ended_at"
    )


def test_pages_that_wait_for_a_day_become_stale():
    source = scraping.shop()
    scraping.pages(source, 2)
    tick()
    assert run_job(jobs.STALE)["stale"] == 0
    age(25)
    [paused, active] = ScrapeTarget.objects.order_by("id")
    ScrapeTarget.objects.filter(pk=paused.pk).update(status="PAUSED")
    assert run_job(jobs.STALE)["stale"] == 1
    assert dict(ScrapeTarget.objects.values_list("pk", "status")) == {paused.pk: "PAUSED", active.pk: "STALE"}
    assert set(Job.objects.filter(kind=jobs.PAGE).values_list("state", flat=True)) == {"cancelled"}
    assert Run.objects.get().status != "RUNNING", "its parts have ended"
    assert not Alert.objects.exists()


def test_more_than_a_hundred_stale_pages_raise_one_alert_which_ends():
    source = scraping.shop()
    scraping.pages(source, 101, status="STALE")
    run_job(jobs.STALE)
    run_job(jobs.STALE)
    [alert] = Alert.objects.all()
    assert (alert.kind, alert.severity, alert.times) == ("SCRAPE_STALE_PAGES", "info", 2)
    assert verbs.requeue_stale(OLGA, source.pk).accepted == 101
    run_job(jobs.STALE)
    alert.refresh_from_db()
    assert alert.resolved_at is not None


def test_every_broken_page_is_looked_at_once_a_week():
    scraping.pages(scraping.shop(), 1, status="BROKEN")
    assert run_job(jobs.STALE)["rechecks"] == 1
    page = ScrapeTarget.objects.get()
    assert (page.recheck_reason, (page.recheck_at - catalog.now()).days) == ("BROKEN", 6)


def test_old_imports_are_deleted():
    made = verbs.create_import(OLGA, "old", "https://bigshop.com/p")
    run_job(jobs.STALE)
    assert ScrapeImport.objects.count() == 1
    ScrapeImport.objects.filter(pk=made.pk).update(created_at=catalog.now() - timedelta(days=31))
    run_job(jobs.STALE)
    assert ScrapeImport.objects.count() == 0
