"""The dashboard, as a person sees it."""

import pytest
from django.db import transaction
from playwright.sync_api import expect
from tests.support.catalog_rows import make_feed, make_run
from tests.support.jobs import change
from tests.support.portal import job

from harvester.ops.alerts import raise_alert

pytestmark = pytest.mark.browser
CHARTED = "() => Chart.getChart('chart').data.datasets.map((set) => set.data.at(-1))"


def tile(visit, state):
    return visit.page.locator(f'.hv-tile[href*="state={state}"] strong')


def test_it_shows_figures_failures_and_the_chart(viewer):
    job("succeeded")
    job("succeeded")
    failed = job("failed", error="The catalog was cut off.")
    viewer.go("/")
    expect(tile(viewer, "succeeded")).to_have_text("2", timeout=20_000)
    expect(tile(viewer, "failed")).to_have_text("1")
    viewer.page.wait_for_function("() => window.Chart?.getChart('chart')")
    expect(viewer.page.locator("#chart-empty")).to_be_hidden()
    viewer.page.wait_for_function(f"() => ({CHARTED})().join() === '2,1,0'")
    viewer.page.get_by_role("link", name="The catalog was cut off.").click()
    viewer.page.wait_for_url(f"**/jobs/{failed}/")


def test_it_refreshes_itself_without_a_reload(viewer):
    viewer.page.evaluate("() => { window.stayed = document.getElementById('chart'); }")
    expect(viewer.page.get_by_text("No jobs yet.")).to_be_visible(timeout=20_000)
    job("failed", error="The catalog was cut off.")
    expect(tile(viewer, "failed")).to_have_text("1", timeout=20_000)
    expect(viewer.page.get_by_text("The catalog was cut off.")).to_be_visible()
    viewer.page.wait_for_function(f"() => ({CHARTED})().join() === '0,1,0'")
    assert viewer.page.evaluate("() => window.stayed === document.getElementById('chart')")


def test_it_says_when_it_can_no_longer_refresh(viewer):
    viewer.expected += ["ERR_INTERNET_DISCONNECTED", "htmx:"]
    notice = viewer.page.get_by_text("This page is not updating")
    expect(notice).to_be_hidden()
    viewer.page.context.set_offline(True)
    expect(notice).to_be_visible(timeout=20_000)
    viewer.page.context.set_offline(False)
    expect(notice).to_be_hidden(timeout=20_000)


def test_all_is_clear_until_something_needs_attention(viewer):
    calm = viewer.page.get_by_role("heading", name="All clear")
    expect(calm).to_be_visible()
    with transaction.atomic():
        number = raise_alert("OFFERS_DIFFER", "offers:1", "Offers of Shop are wrong", "Look into it.")
    line = viewer.page.get_by_role("link", name="Offers of Shop are wrong")
    expect(line).to_be_visible(timeout=20_000)
    expect(calm).to_be_hidden()
    viewer.page.wait_for_function("() => window.Chart?.getChart(document.querySelector('[data-days=runs]'))")
    line.click()
    viewer.page.wait_for_url(f"**/alerts/{number}/")


def test_the_progress_of_a_run_moves_without_a_reload(viewer):
    feed = make_feed("Kestrel")
    job_id = job("running", progress='{"done": 10, "total": 40, "note": "parsed 10 rows"}')
    make_run(feed, status="RUNNING", outcome=None, job_id=job_id, stage="parse")
    row = viewer.page.locator("#running li", has_text="Kestrel")
    expect(row).to_contain_text("25%", timeout=20_000)
    change(job_id, 'progress = \'{"done": 30, "total": 40, "note": "parsed 30 rows"}\'')
    expect(row).to_contain_text("parsed 30 rows", timeout=20_000)
    expect(row).to_contain_text("75%")
