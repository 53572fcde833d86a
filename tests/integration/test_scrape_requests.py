"""Requests to read pages now: switches, capacity, force, stale pages."""

import pytest
from tests.support import catalog, scraping
from tests.support.feed_world import OLGA
from tests.support.jobs import change
from tests.support.tables import rows
from tests.support.together import together

from harvester.catalog import governance
from harvester.engine.models import Job
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Alert, AuditEvent
from harvester.runs.models import Run, RunPart
from harvester.scraping import verbs
from harvester.scraping.capacity import Rejection, SwitchedOff, TryLater
from harvester.scraping.models import AdapterState, ScrapeRun, ScrapeTarget
from harvester.scraping.target_filters import TargetFilter

pytestmark = pytest.mark.usefixtures("database")


def waiting() -> int:
    return Job.objects.filter(kind="scraping.page", state="pending").count()


def ids(found) -> list:
    return [target.pk for target in found]


def test_a_request_begins_a_run_whose_pages_wait_in_the_lane_of_their_domain():
    source = scraping.shop("outlet.shop.co.uk")
    first, second = scraping.pages(source, 2)
    ScrapeTarget.objects.filter(pk=second.pk).update(priority=7)
    result = verbs.request(OLGA, source.pk, [first.pk, second.pk, second.pk])
    assert (result.accepted, result.rejected, result.waiting, result.skipped) == (2, 0, 0, 0)
    run = Run.objects.get(pk=result.run.pk)
    assert (run.kind, run.trigger, run.source_id) == ("SCRAPE", "MANUAL", source.pk)
    figures = ScrapeRun.objects.get(pk=run.pk)
    assert (figures.adapter_id, figures.retailer_id) == ("structured", source.retailer_id)
    assert figures.requested_by == "Olga"
    found = Job.objects.filter(kind="scraping.page").order_by("-priority")
    assert list(found.values_list("queue", "lane", "priority", "dedupe_key")) == [
        ("pages", "shop.co.uk", 207, f"scrape:{second.pk}"),
        ("pages", "shop.co.uk", 200, f"scrape:{first.pk}"),
    ]
    assert AuditEvent.objects.filter(verb="SCRAPE_RUN_REQUESTED", object_id=str(run.pk)).exists()


def test_a_host_of_its_own_has_a_lane_of_its_own():
    source = scraping.shop("bigshop.com", scrape_config={"pace_by_host": ["a.bigshop.com"]})
    for host in ("a.bigshop.com", "b.bigshop.com"):
        catalog.target(source, f"https://{host}/p")
    verbs.request(OLGA, source.pk)
    assert set(Job.objects.values_list("lane", flat=True)) == {"a.bigshop.com", "bigshop.com"}


def test_a_page_with_an_open_job_is_not_enqueued_again_and_counts_as_waiting():
    source = scraping.shop()
    scraping.pages(source, 3)
    assert verbs.request(OLGA, source.pk).accepted == 3
    again = verbs.request(OLGA, source.pk)
    assert (again.accepted, again.waiting, again.rejected, again.run) == (0, 3, 0, None)
    assert again.require() is again, "nothing was rejected"
    assert waiting() == 3
    with pytest.raises(Conflict, match="3 pages wait already"):
        verbs.run_now(OLGA, source.pk)


@pytest.mark.parametrize(
    "values",
    [
        {"enabled": False},
        {"status": "PAUSED"},
        {"status": "BROKEN"},
        {"status": "STALE"},
        {"robots_path_blocked": True},
    ],
)
def test_only_enabled_active_and_unblocked_pages_are_read(values):
    source = scraping.shop()
    scraping.pages(source, 1, **values)
    [readable] = scraping.pages(source, 1)
    result = verbs.request(OLGA, source.pk)
    assert (result.accepted, result.skipped) == (1, 1)
    assert RunPart.objects.get(run=result.run).target_id == readable.pk


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"scrape_enabled": False}, "not enabled for scraping"),
        ({"robots_compliant": False}, "robots.txt"),
        ({"enabled": False}, "switched off"),
    ],
)
def test_a_disabled_source_rejects_with_409_and_no_retry(values, words):
    source = scraping.shop(**values)
    scraping.pages(source, 2)
    result = verbs.request(OLGA, source.pk, force=True)
    assert (result.accepted, result.rejected, result.reason) == (0, 2, Rejection.SOURCE_DISABLED)
    assert result.retry_after is None
    with pytest.raises(SwitchedOff, match=words) as caught:
        result.require()
    assert isinstance(caught.value, Conflict)
    assert caught.value.retry_after is None
    assert waiting() == 0


def test_a_shop_that_waits_for_a_person_rejects_with_409():
    source = scraping.shop()
    scraping.pages(source, 1)
    governance.pause(OLGA, source.pk, "SCRAPE", "Asked by the shop.")
    with pytest.raises(SwitchedOff, match=r"paused until a person resumes it: Asked by the shop\."):
        verbs.request(OLGA, source.pk).require()
    assert waiting() == 0
    governance.resume(OLGA, source.pk, "SCRAPE")
    assert verbs.request(OLGA, source.pk).accepted == 1


def test_a_disabled_adapter_rejects_with_409():
    source = scraping.shop()
    scraping.pages(source, 1)
    AdapterState.objects.create(source=source, adapter_id="structured", enabled=False, disabled_reason="DRIFT_DETECTED")
    result = verbs.request(OLGA, source.pk)
    assert result.reason is Rejection.ADAPTER_DISABLED
    with pytest.raises(SwitchedOff, match="DRIFT_DETECTED"):
        result.require()
    assert scraping.rejections() == {"adapter_disabled": 1}


def test_the_queue_rejects_new_pages_when_at_capacity(settings):
    """Of one source: at the default pace of 0.5 a second, six rejected pages need twelve seconds."""
    scraping.limit(settings, per_source=4)
    source = scraping.shop()
    scraping.pages(source, 10)
    result = verbs.request(OLGA, source.pk)
    assert (result.accepted, result.rejected, result.reason) == (4, 6, Rejection.QUEUE_FULL)
    assert result.retry_after == 4 * 2, "as long as the queue of the source is, and no longer"
    assert result.require() is result, "some were accepted"
    full = verbs.request(OLGA, source.pk)
    assert (full.accepted, full.waiting, full.rejected) == (0, 4, 6)
    with pytest.raises(TryLater, match="As many pages wait as are allowed") as caught:
        full.require()
    assert caught.value.retry_after == 8
    assert scraping.rejections() == {"queue_full": 12}
    assert waiting() == 4


def test_a_slower_pace_means_a_longer_wait(settings):
    scraping.limit(settings, per_source=4)
    source = scraping.shop(scrape_config={"requests_per_second": 0.1})
    scraping.shop(name="faster", scrape_config={"requests_per_second": 5})
    scraping.pages(source, 6)
    assert verbs.request(OLGA, source.pk).retry_after == 2 * 10, "the slowest source of the domain wins"


def test_all_sources_together_have_a_capacity_too(settings):
    scraping.limit(settings, total=5)
    one, two = scraping.shop("one.example"), scraping.shop("two.example")
    for source in (one, two):
        scraping.pages(source, 3)
    assert verbs.request(OLGA, one.pk).accepted == 3
    result = verbs.request(OLGA, two.pk)
    assert (result.accepted, result.rejected, result.reason) == (2, 1, Rejection.QUEUE_FULL)


def test_ended_pages_make_room(settings):
    scraping.limit(settings, per_source=2)
    source = scraping.shop()
    scraping.pages(source, 3)
    verbs.request(OLGA, source.pk)
    part = RunPart.objects.order_by("id").first()
    RunPart.objects.filter(pk=part.pk).update(outcome="OFFER", ended_at=catalog.now())
    change(part.job_id, "state = 'succeeded', finished_at = now()")
    assert verbs.request(OLGA, source.pk).accepted == 1


def test_many_at_once_never_exceed_the_capacity(settings):
    scraping.limit(settings, per_source=5, total=12)
    sources = [scraping.shop(f"shop{place}.example") for place in range(4)]
    for source in sources:
        scraping.pages(source, 8)
    calls = [lambda of=source.pk: verbs.request(OLGA, of) for source in sources for _ in range(2)]
    results = together(*calls)
    assert sum(result.accepted for result in results) == 12
    per_source = rows("SELECT max(number) FROM (SELECT count(*) AS number FROM jobs GROUP BY lane) found")
    assert per_source == [(5,)]


def test_higher_priorities_and_longer_waits_go_first(settings):
    scraping.limit(settings, per_source=3)
    source = scraping.shop()
    now = catalog.now()
    late, early, manual, urgent = (
        scraping.pages(source, 1, **values)[0]
        for values in (
            {"due_at": now}, {"due_at": now - catalog.hours(5)}, {"due_at": None, "schedule": None}, {"priority": 1},
        )
    )  # fmt: skip
    result = verbs.request(OLGA, source.pk)
    assert set(RunPart.objects.filter(run=result.run).values_list("target_id", flat=True)) == {
        urgent.pk, early.pk, late.pk,
    }  # fmt: skip
    assert not Job.objects.filter(dedupe_key=f"scrape:{manual.pk}").exists()


def test_force_skips_capacity_only_for_ten_pages_and_is_audited(settings):
    scraping.limit(settings, per_source=1)
    source = scraping.shop()
    found = scraping.pages(source, 11)
    with pytest.raises(InvalidInput, match="force: force is for at most 10 pages; 11 were named"):
        verbs.request(OLGA, source.pk, force=True)
    result = verbs.request(OLGA, source.pk, ids(found[:10]), force=True)
    assert (result.accepted, result.reason) == (10, None)
    [event] = AuditEvent.objects.filter(verb="SCRAPE_RUN_REQUESTED")
    assert event.detail["force"] is True
    AdapterState.objects.create(source=source, adapter_id="structured", enabled=False, disabled_reason="MANUAL")
    assert verbs.request(OLGA, source.pk, ids(found[10:]), force=True).reason is Rejection.ADAPTER_DISABLED


def test_a_shop_that_asked_for_a_pause_gets_no_new_pages():
    source = scraping.shop()
    scraping.pages(source, 2)
    insert = "INSERT INTO job_lanes (queue, lane, wake_at, not_before) VALUES ('pages', %s, 'infinity', now() + %s)"
    catalog.fetch(insert, "shop.example", catalog.hours(0.5))
    result = verbs.request(OLGA, source.pk)
    assert (result.accepted, result.rejected, result.reason) == (0, 2, Rejection.RATE_LIMITED)
    assert 1700 < result.retry_after <= 1800
    with pytest.raises(TryLater, match="asked for a pause"):
        result.require()
    catalog.fetch("UPDATE job_lanes SET not_before = now() + interval '30 seconds'")
    assert verbs.request(OLGA, source.pk).accepted == 2, "that is only its pace"


def test_a_filter_chooses_pages():
    source = scraping.shop()
    scraping.pages(source, 2)
    [sold_out] = scraping.pages(source, 1, last_status="GONE")
    result = verbs.request(OLGA, source.pk, TargetFilter(outcome="GONE"))
    assert list(RunPart.objects.filter(run=result.run).values_list("target_id", flat=True)) == [sold_out.pk]
    other = scraping.shop("other.example")
    assert verbs.request(OLGA, other.pk, [sold_out.pk]).accepted == 0, "it is of another source"


def test_an_unknown_source_is_not_found():
    with pytest.raises(NotFound, match="There is no source"):
        verbs.request(OLGA, "0190c0a0-0000-7000-8000-000000000000")


def test_stale_pages_are_queued_again_as_far_as_there_is_room(settings):
    scraping.limit(settings, per_source=2)
    source = scraping.shop()
    scraping.pages(source, 3, status="STALE")
    result = verbs.requeue_stale(OLGA, source.pk)
    assert (result.accepted, result.rejected, result.reason) == (2, 1, Rejection.QUEUE_FULL)
    assert ScrapeTarget.objects.filter(status="STALE").count() == 1
    assert ScrapeTarget.objects.filter(status="ACTIVE").count() == 2


def test_no_alert_is_raised_by_a_person_who_asks_too_much(settings):
    scraping.limit(settings, per_source=1)
    source = scraping.shop()
    scraping.pages(source, 5)
    verbs.request(OLGA, source.pk)
    assert not Alert.objects.exists()
