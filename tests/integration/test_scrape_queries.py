"""Lists for portal, commands and API: pages, sources, addresses, schedules, coverage; few statements for any number."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.support import catalog, scraping
from tests.support.feed_world import OLGA

from harvester.catalog.models import Source
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.runs.models import Run
from harvester.scraping import queries, verbs
from harvester.scraping.models import AdapterState, QuarantineEntry, ScrapeBatch, ScrapeRun, ScrapeTarget
from harvester.scraping.target_filters import TargetFilter, Trouble

pytestmark = pytest.mark.usefixtures("database")


def statements(call) -> int:
    with CaptureQueriesContext(connection) as seen:
        call()
    return len(seen)


def test_pages_are_listed_newest_first_in_pages_by_key():
    source = scraping.shop("bigshop.com")
    made = scraping.pages(source, 5)
    expected = sorted((page.pk for page in made), reverse=True)
    first = queries.targets(TargetFilter(source_id=source.pk), most=3)
    rest = queries.targets(TargetFilter(source_id=source.pk), after=first[-1].target.pk)
    assert [row.target.pk for row in (*first, *rest)] == expected
    with pytest.raises(InvalidInput, match="1 to 200"):
        queries.targets(TargetFilter(), most=202)
    with pytest.raises(NotFound):
        queries.target(source.pk)


def test_filters_are_combined():
    source, other = scraping.shop("bigshop.com"), scraping.shop("othershop.com")
    [wanted] = scraping.pages(source, 1, last_status="GONE", notes="Summer sale", moved_to="https://bigshop.com/x")
    scraping.pages(source, 2, last_status="OFFER", due_at=catalog.now() + catalog.hours(1))
    scraping.pages(other, 1, last_status="GONE")
    for condition in (
        {"outcome": "GONE"}, {"text": "summer"}, {"trouble": Trouble.GONE}, {"is_due": True}, {"has_moved": True},
        {"ids": [wanted.pk]},
    ):  # fmt: skip
        found = queries.targets(TargetFilter(source_id=source.pk, **condition))
        assert [row.target.pk for row in found] == [wanted.pk], condition
    assert len(queries.targets(TargetFilter(source_id=source.pk, has_moved=False))) == 2
    assert len(queries.targets(TargetFilter(is_linked=False))) == 4
    assert queries.targets(TargetFilter(is_linked=True)) == []
    assert len(queries.targets(TargetFilter(schedule=""))) == 0
    assert queries.target(wanted.pk).diagnosis.trouble is Trouble.GONE


def test_counts_say_how_many_pages_are_in_each_state():
    source = scraping.shop("bigshop.com")
    scraping.pages(source, 2, last_status="OFFER")
    scraping.pages(source, 1, last_status="BLOCKED_PAGE", status="PAUSED", due_at=None, schedule=None)
    scraping.pages(source, 1, status="BROKEN", last_status="PRICE_NOT_FOUND", enabled=False)
    found = queries.counts(TargetFilter(source_id=source.pk))
    expected = {
        "all": 4, "ACTIVE": 2, "PAUSED": 1, "BROKEN": 1, "STALE": 0, "trouble_blocked": 1, "trouble_gone": 0,
        "trouble_broken": 1, "trouble_our_problem": 0, "off": 1, "due": 3, "moved": 0,
    }  # fmt: skip
    assert found == expected
    assert statements(lambda: queries.counts(TargetFilter())) == 1


def test_a_source_row_has_lag_freshness_switches_and_what_waits():
    source = scraping.shop("bigshop.com")
    now = catalog.now()
    scraping.pages(
        source, 2, last_success_at=now - catalog.hours(5), last_scraped_at=now, due_at=now - catalog.hours(2)
    )
    scraping.pages(source, 1, last_success_at=now, last_scraped_at=now, due_at=None)
    scraping.pages(source, 1, status="PAUSED")
    AdapterState.objects.create(
        source=source, adapter_id="structured", enabled=False, disabled_reason="MANUAL", baseline_failure_rate="0.05"
    )
    [row] = queries.sources([source.pk])
    assert (row.pages, row.readable, row.due, row.never_read, row.pending) == (4, 3, 2, 0, 0)
    assert abs((now - row.oldest_due) - catalog.hours(2)).total_seconds() < 60
    assert (row.newest_success, row.oldest_success) == (now, now - catalog.hours(5))
    assert (row.adapter_enabled, row.disabled_reason, row.is_read) == (False, "MANUAL", False)
    AdapterState.objects.all().delete()
    verbs.request(OLGA, source.pk)
    [row] = queries.sources()
    assert (row.pending, row.is_read) == (3, True)


def test_lists_take_as_many_statements_for_many_as_for_one():
    def fill(domain):
        source = scraping.shop(domain)
        for page in scraping.pages(source, 3, last_status="GONE", moved_to="https://x.example/p", product_id=7):
            QuarantineEntry.objects.create(
                source=source, target=page, run_no=1, part_id=page.pk, reason="AMBIGUOUS_PRICE", detail="two",
                adapter_id="structured", version="1", observed_at=catalog.now(),
            )  # fmt: skip
        return source

    first = fill("one.com")
    calls = {
        "targets": lambda: [
            (row.target.source.name, row.target.source.retailer.name) for row in queries.targets(TargetFilter())
        ],
        "sources": queries.sources,
        "health": lambda: queries.url_health(first.pk),
        "quarantine": queries.quarantine_counts,
        "coverage": lambda: queries.field_coverage(first.pk),
        "fits": lambda: queries.schedule_fits(Source.objects.select_related("retailer").get(pk=first.pk)),
    }
    before = {name: statements(call) for name, call in calls.items()}
    for place in range(5):
        fill(f"more{place}.com")
    scraping.pages(first, 20, last_status="GONE", moved_to="https://x.example/p")
    assert {name: statements(call) for name, call in calls.items()} == before
    assert before["targets"] == before["sources"] == before["quarantine"] == 1
    assert queries.quarantine_counts([first.pk]) == {first.pk: {"AMBIGUOUS_PRICE": 3}}


def test_the_health_of_addresses():
    source = scraping.shop("bigshop.com")
    a, b, c, d, e = scraping.pages(source, 5)
    moves = {a: "https://bigshop.com/new", b: f"{e.url}?utm_source=x", c: "https://evil.org/p", d: d.url}
    for page, moved_to in moves.items():
        ScrapeTarget.objects.filter(pk=page.pk).update(moved_to=moved_to)
    ScrapeTarget.objects.filter(pk=e.pk).update(last_status="GONE", pinned_product_id=7)
    ScrapeTarget.objects.filter(pk=d.pk).update(product_id=7)
    found = queries.url_health(source.pk)
    assert {moved.url: moved.problem.partition(";")[0].partition(",")[0] for moved in found.moved} == {
        a.url: "", b.url: "the source reads that page already", c.url: "its domain is evil.org",
    }  # fmt: skip
    assert [page.pk for page in found.gone] == [e.pk]
    assert found.twice == {7: {d.pk: d.url, e.pk: e.url}}


def test_whether_a_schedule_can_be_met():
    """42 pages every four hours at 0.5 a second take 84 seconds; the shop's other source needs most of the time."""
    source = scraping.shop("bigshop.com")
    scraping.pages(source, 42, schedule="0 */4 * * *")
    scraping.pages(source, 3, schedule=None, due_at=None)
    [found] = queries.schedule_fits(Source.objects.select_related("retailer").get(pk=source.pk))
    assert (found.schedule, str(found.fit), found.fit.is_met) == (
        "0 */4 * * *", "42 URLs every 4 h at 0.5/s: 84 s", True,
    )  # fmt: skip
    scraping.pages(scraping.shop("othershop.com"), 5_000, schedule="0 * * * *")
    other = scraping.shop("bigshop.com", name="feed pages", scrape_config={"requests_per_second": 0.25})
    scraping.pages(other, 880, schedule="0 * * * *")
    [found] = queries.schedule_fits(Source.objects.select_related("retailer").get(pk=source.pk))
    assert (found.fit.interval, found.fit.is_met) == (4.0, True), "the slowest source of the domain wins"
    assert round(found.fit.busy_share, 2) == 0.98
    scraping.pages(other, 15, schedule="0 * * * *")
    [found] = queries.schedule_fits(Source.objects.select_related("retailer").get(pk=source.pk))
    assert not found.fit.is_met


def test_coverage_of_fields_and_the_chart_of_an_adapter():
    source = scraping.shop("bigshop.com")
    for fields in ({"title": 10, "price": 10, "gtin": 5}, {"title": 10, "price": 8}):
        run = catalog.run(source, kind="SCRAPE")
        ScrapeRun.objects.create(run=run, source=source, pages=12, offers=10, fields_found=fields)
    empty = catalog.run(source, outcome="EMPTY", kind="SCRAPE")
    ScrapeRun.objects.create(run=empty, source=source)
    first, second = queries.field_coverage(source.pk)
    assert (first.shares["gtin"], second.shares["gtin"], second.shares["price"]) == (0.5, 0.0, 0.8)
    assert first.run_no < second.run_no == Run.objects.get(pk=empty.pk).no - 1
    now = catalog.now()
    for hours, failures in ((1, 2), (3, 1), (24 * 8, 9)):
        ScrapeBatch.objects.create(
            source=source, adapter_id="structured", adapter_version="1.0.0", run_no=1,
            judged_at=now - catalog.hours(hours), attempts=20, new_attempts=20, failures=failures, offers=18,
            zero_prices=0, verdict={}, is_refused=False,
        )  # fmt: skip
    assert [batch.failures for batch in queries.batches(source.pk, "structured")] == [1, 2]
