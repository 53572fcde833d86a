"""What holds on every page: a quiet console, no other host, dark and light, wide and narrow, mouse and keyboard."""

import re
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from playwright.sync_api import expect
from tests.support import catalog
from tests.support.api import stored_key
from tests.support.feed_rows import make_feed, make_source
from tests.support.made_up_kinds import scraped
from tests.support.portal import MOMENTS_AGO, job
from tests.support.portal_feeds import feed_pages
from tests.support.portal_scraping import scraping_pages

from harvester.catalog import corrections
from harvester.catalog.models import Source
from harvester.feeds.gates import GATES, RunFacts, Thresholds
from harvester.feeds.models import FeedRun, FeedRunSample
from harvester.kernel.actor import system
from harvester.ops.alerts import raise_alert
from harvester.ops.models import AuditEvent, User
from harvester.runs.gates import judge
from harvester.runs.models import Run, RunPart

pytestmark = pytest.mark.browser

_FACTS = RunFacts(
    rows_read=10**9, rows_rejected=10**9, products=10**9, url_hash_products=10**9, known_products=10**9,
    shocked_products=10**9, active_before=10**9, active_seen=0, promoted_before=10**9,
)  # fmt: skip
BRIGHTNESS = """() => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data[0];
}"""
#: Names in lists that go on behind the edge of the screen, where nobody reads them.
CUT_OFF = """() => [...document.querySelectorAll(".hv-results .hv-object")]
    .filter(name => name.getBoundingClientRect().right > innerWidth).map(name => name.textContent)"""
#: How much of the widest row of a list has to be scrolled to.
BEHIND_THE_EDGE = """() => Math.max(...[...document.querySelectorAll(".hv-table-box")]
    .map(box => box.scrollWidth - box.clientWidth))"""
RUNS_OVER = """() => [...document.querySelectorAll("label")]
    .filter(label => label.scrollHeight > label.clientHeight + 1).map(label => label.textContent.trim())"""


def _alert() -> int:
    with transaction.atomic():
        body = "A long body. " * 20 + "\nApprove or reject the run."
        return raise_alert("RUN_HELD", "RUN_HELD:feed:1", "Shop by Impact: run 12 is held " + "x" * 60, body)


def held_run() -> Run:
    """A held run with long words in every corner of its page."""
    long = "W" * 150
    source = make_source("Acme " + long, last_promoted_at=timezone.now())
    feed, verdict = make_feed(source), judge(GATES, _FACTS, Thresholds()).as_json()
    run = Run.objects.create(
        kind="AFFILIATE_FEED", subject_id=feed.pk, source_id=source.pk, trigger="MANUAL", status="SUCCEEDED",
        outcome="HELD", finished_at=Now(), artifact_hash="a" * 64, verdict=verdict,
        timings={"download": 10**6, "parse": 1},
    )  # fmt: skip
    dialect = {"delimiter": "\t", "quoted": True, "encoding": "utf-8", "columns": {"title": [long]}, "unbound": [long]}
    FeedRun.objects.create(
        run=run, feed=feed, rows_read=10**9, products_missing=10**9, dialect=dialect,
        rejects={"MISSING_TITLE": 10**9}, warnings={"BAD_GTIN": 7},
    )  # fmt: skip
    FeedRunSample.objects.create(run_id=run.pk, code="MISSING_TITLE", place=0, line=10**9, row=long * 2, reason=long)
    run.refresh_from_db()
    _hold(source, run, long)
    return run


def _hold(source, run, long) -> None:
    Source.objects.filter(pk=source.pk).update(held_run_no=run.no, held_since=Now(), last_promoted_run_no=run.no)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO held_changes (source_id, run_no, line, is_new, is_content, is_price, is_back, is_missing, "
            "has_offer, product_id, title, brand, category, amount, currency) SELECT %s, %s, i, true, false, true, "
            "false, false, false, i, %s, %s, %s, 1, 'USD' FROM generate_series(1, 30) i",
            [source.pk, run.no, long, long, long],
        )


def page_run() -> Run:
    """A failed run over a page with a long address and a long error."""
    long = "W" * 150
    source = make_source(long)
    run = scraped(source)
    target = catalog.target(source, f"https://shop.example/{long}")
    detail = {"error": long}
    RunPart.objects.create(
        run=run, begun_at=run.started_at, target_id=target.pk, outcome="NO_AGREEMENT", detail=detail, ended_at=Now()
    )
    return run


def pages() -> list[str]:
    failed = job(
        "failed", error="A long error text. " * 20, traceback="line\n" * 50, args={"key": "x" * 300}, kind="test.note"
    )
    running = job(
        "running", progress='{"done": 1, "total": 3, "note": "rows"}', worker="worker-" + "x" * 60, silent=400
    )
    return [
        *("/", "/jobs/", "/jobs/?state=failed&queue=default&q=test", "/jobs/recent/", "/jobs/stuck/"),
        *(
            f"/jobs/{failed}/",
            f"/jobs/{running}/",
            "/job-events/",
            "/periodic-jobs/",
            "/alerts/",
            f"/alerts/{_alert()}/",
            "/audit/",
            "/users/",
            "/users/add/",
        ),
        *("/api-keys/", "/api-keys/add/", f"/api-keys/{stored_key(name='price site').pk}/"),
        *("/runs/", "/runs/?outcome=HELD&feed=acme", f"/runs/{held_run().no}/"),
        *("/runs/?kind=SCRAPE", f"/runs/{page_run().no}/"),
        *(f"/audit/{AuditEvent.objects.latest('id').pk}/", f"/users/{User.objects.get().pk}/", "/account/password/"),
        *feed_pages(),
        *catalog_pages(),
        *scraping_pages(),
    ]


def catalog_pages() -> list[str]:
    source = catalog.source(name="source " * 20, expiry_hours=48, held_since=catalog.now(), held_run_no=7)
    run = catalog.run(source)
    product = catalog.product(source, run.no, title="A long title of a thing " * 20, brand="Brand" * 30, gtin="1" * 14)
    catalog.price(source, product, "1234567.89", run_no=run.no)
    catalog.recompute_offers(source, [product])
    catalog.insert("product_links", source_id=source.pk, source_product_id=product, status="NEEDS_REVIEW")
    made = corrections.create(
        system("test"), scope="SOURCE", source_id=source.pk, action="MULTIPLIER", multiplier=2, reason="why " * 40
    )
    return [
        *("/offers/", "/offers/?state=EXPIRED&currency=USD&sort=price", "/offers/?sort=price", "/retailers/"),
        *("/retailers/add/", "/sources/", "/corrections/", "/corrections/add/?scope=RUN", "/review/"),
        *(f"/offers/{source.pk}/{product}/", f"/review/{source.pk}/{product}/", f"/corrections/{made.pk}/"),
        *(f"/sources/{source.pk}/", f"/sources/{source.pk}/edit/", f"/sources/{source.pk}/primary/"),
        *(f"/retailers/{source.retailer_id}/", f"/sources/add/{source.retailer_id}/"),
    ]


def test_every_page_has_a_quiet_console_and_stays_at_home_and_shuts_nobody_out(admin):
    """What axe-core calls serious, on every page in light colours and on some in dark ones; one look at each page."""
    paths = pages()
    assert [found for path in paths for found in violations(admin, path)] == []
    assert admin.unexpected() == []
    admin.page.get_by_role("button", name="Dark").click()
    assert [
        found
        for path in paths
        if path in ("/", "/jobs/") or path.startswith(("/runs/", "/shops/", "/quarantine/", "/pages/"))
        for found in violations(admin, path)
    ] == []


def violations(visit, path) -> list[tuple]:
    visit.go(path)
    expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
    options = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}
    found = Axe().run(visit.page, options=options).response["violations"]
    visit.page.wait_for_load_state("networkidle")
    serious = [item for item in found if item["impact"] in ("serious", "critical")]
    return [(path, item["id"], [node["target"] for node in item["nodes"]]) for item in serious]


def test_the_page_for_nothing_is_ours(viewer):
    viewer.expected.append("404")
    viewer.go("/nothing-here/")
    expect(viewer.page.get_by_role("heading", name="Page not found")).to_be_visible()
    viewer.page.get_by_role("link", name="Go to the dashboard").click()
    viewer.page.wait_for_url(f"{viewer.base}/")


def test_the_dark_theme_is_dark_and_stays_so(viewer):
    assert viewer.page.evaluate(BRIGHTNESS) > 200
    viewer.page.get_by_role("button", name="Dark").click()
    expect(viewer.page.locator("html.dark")).to_have_count(1)
    for path in ("/", "/jobs/", "/audit/"):
        viewer.go(path)
        assert viewer.page.evaluate(BRIGHTNESS) < 60
    viewer.page.get_by_role("button", name="Light").click()
    expect(viewer.page.locator("html.dark")).to_have_count(0)
    assert viewer.page.evaluate(BRIGHTNESS) > 200


def test_no_page_is_wider_than_a_narrow_screen(admin):
    paths = pages()
    admin.page.set_viewport_size({"width": 360, "height": 740})
    for path in paths:
        admin.go(path)
        assert admin.page.evaluate("() => document.documentElement.scrollWidth") <= 360, path
        assert admin.page.evaluate(CUT_OFF) == [], path


@pytest.mark.parametrize("width", [1280, 1360])
def test_a_list_with_long_names_shows_all_its_columns(admin, width):
    """On a laptop's screen the buttons of the feeds once stood behind the edge."""
    source = make_source("Extraordinarily " * 8, last_promoted_at=timezone.now())
    planned = {"status": "ENABLED", "schedule_hours": 12, "next_run_at": timezone.now() + timedelta(hours=11)}
    feed = make_feed(source, network="google_merchant", **planned)
    run = Run.objects.create(
        kind="AFFILIATE_FEED",
        subject_id=feed.pk,
        source_id=source.pk,
        trigger="MANUAL",
        status="SUCCEEDED",
        outcome="PROMOTED",
        finished_at=Now(),
    )
    FeedRun.objects.create(run=run, feed=feed)
    admin.page.set_viewport_size({"width": width, "height": 800})
    for path in ("/feeds/", "/sources/", "/runs/"):
        admin.go(path)
        expect(admin.page.locator(".hv-results tbody tr")).to_have_count(1)
        assert admin.page.evaluate(BEHIND_THE_EDGE) <= 0, path


def test_the_label_of_a_box_to_tick_covers_nothing(admin):
    """Two rules for one class once squeezed the label into the size of its box."""
    for path in ("/feeds/add/", "/retailers/add/", f"/sources/add/{catalog.source().retailer_id}/"):
        admin.go(path)
        assert admin.page.evaluate(RUNS_OVER) == [], path


def test_the_menu_opens_and_closes_on_a_narrow_screen(viewer):
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    link = viewer.page.get_by_role("link", name="Audit log")
    expect(link).to_be_hidden()
    viewer.page.get_by_role("button", name="Menu").click()
    expect(link).to_be_visible()
    viewer.page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    viewer.page.get_by_role("button", name="Menu").click()
    link.click()
    viewer.page.wait_for_url(f"{viewer.base}/audit/")


def test_everything_is_reached_by_keyboard(operator):
    job_id = job("failed")
    operator.go("/jobs/")
    operator.page.keyboard.press("Tab")
    expect(operator.page.get_by_role("link", name="Skip to content")).to_be_focused()
    operator.page.locator("summary", has_text="State").focus()
    operator.page.keyboard.press("Enter")
    failed = operator.page.get_by_role("link", name="Failed", exact=True)
    expect(failed).to_be_visible()
    operator.page.keyboard.press("Escape")
    expect(failed).to_be_hidden()
    operator.go(f"/jobs/{job_id}/")
    operator.page.get_by_role("button", name="Retry").focus()
    operator.page.keyboard.press("Enter")
    expect(operator.page.get_by_role("dialog")).to_be_visible()
    expect(operator.page.get_by_role("dialog").get_by_role("button", name="Retry")).to_be_focused()


def test_times_show_the_exact_moment_on_hover(viewer):
    job("succeeded")
    viewer.go("/jobs/")
    moment = viewer.page.locator("time[title$=' UTC']").first
    expect(moment).to_have_text(re.compile(MOMENTS_AGO))
    expect(moment).not_to_have_text(moment.inner_text(), timeout=10_000)
