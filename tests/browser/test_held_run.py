"""A held run, as people decide about it: look at the difference, approve, reject, watch what comes of it."""

import re

import pytest
from playwright.sync_api import expect
from tests.support.feed_world import CallsBack, World, loopback_allowed
from tests.support.feeds import row
from tests.support.sftp_server import SftpServer
from tests.support.workers import worker_thread

from harvester.feeds.models import FeedRun

pytestmark = pytest.mark.browser


@pytest.fixture
def world(database, tmp_path):
    with loopback_allowed(), SftpServer(tmp_path, behaviour=CallsBack) as server:
        made = World(server)
        yield made
        made.check()


@pytest.fixture
def held(world):
    """Forty products are shown; a file with six of them, two at another price, waits for a decision."""
    world.put(*range(100, 140))
    world.run()
    world.put(row(100, Price="9.00"), row(101, Price="1.02"), *range(102, 106))
    run = world.run()
    assert run.outcome == "HELD"
    return run


def open_held(visit, run):
    """By the list, as people come."""
    visit.go("/runs/")
    visit.page.locator("summary", has_text="Outcome").click()
    visit.page.get_by_role("link", name="Held", exact=True).click()
    visit.page.get_by_role("link", name=f"#{run.no}").click()
    expect(visit.page.locator("#held")).to_contain_text("34 of 40 active products (85.0%) are not in the file.")
    visit.page.evaluate("() => { window.stayed = true; }")


def test_a_shrunken_file_is_looked_at_and_approved(world, held, operator):
    open_held(operator, held)
    page = operator.page
    page.locator("#show-prices").click()
    moves = page.locator("#difference tbody tr")
    expect(moves).to_have_count(2)
    expect(moves.first).to_contain_text("+800%")
    expect(page).to_have_url(f"{operator.base}/runs/{held.no}/?show=prices")
    assert page.evaluate("() => window.stayed")
    page.get_by_role("button", name="Approve").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("34 products go missing and 2 prices change.")
    expect(asked).to_contain_text(re.compile(r"34 missing products disappear on \d{4}-\d\d-\d\d \d\d:\d\d UTC unless"))
    expect(asked.get_by_role("button", name="Approve: remove 34 products")).to_have_class(re.compile("hv-danger"))
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    page.get_by_role("button", name="Approve").click()
    asked.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Approving")).to_be_visible()
    page.evaluate("() => { window.stayed = true; }")
    with worker_thread(threads=1):
        expect(page.locator(".hv-headline .hv-badge")).to_have_text("Approved", timeout=30_000)
    expect(page.locator(".hv-headline")).to_contain_text("Approved by otto")
    expect(page.get_by_text("is being approved")).to_have_count(0)
    expect(page.locator("#run-body")).not_to_have_attribute("hx-trigger", "every 2s")
    assert page.evaluate("() => window.stayed"), "without a reload"
    assert world.shown()["S-100"][1] == 9.00


def test_a_shrunken_file_is_rejected_with_a_reason(world, held, operator):
    before = world.shown()
    open_held(operator, held)
    page = operator.page
    page.get_by_role("button", name="Reject").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Nothing changes for consumers now. These changes are discarded: 34 products")
    asked.get_by_role("button", name="Reject").click()
    expect(asked.get_by_label("Reason")).to_be_focused()
    asked.get_by_label("Reason").fill("the partner sent half a file")
    asked.get_by_role("button", name="Reject").click()
    with worker_thread(threads=1):
        expect(page.locator(".hv-headline .hv-badge")).to_have_text("Rejected", timeout=30_000)
    expect(page.locator(".hv-headline")).to_contain_text("the partner sent half a file")
    assert world.shown() == before


def test_an_open_question_stays_and_other_figures_are_a_message(world, held, operator):
    open_held(operator, held)
    page = operator.page
    page.get_by_role("button", name="Approve").click()
    FeedRun.objects.filter(pk=held.pk).update(products_missing=35)
    with page.expect_response(lambda answer: answer.url.endswith(f"/runs/{held.no}/"), timeout=30_000):
        pass
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_contain_text("was checked again since you looked")
    expect(page.locator("#ask-approve input[name=products_missing]")).to_have_value("35")


def test_a_run_is_followed_live_from_its_stages_to_its_end(world, viewer):
    run = world.running()
    viewer.go(f"/runs/{run.no}/")
    viewer.page.evaluate("() => { window.stayed = true; }")
    step = viewer.page.locator("[aria-current=step]")
    for stage, words in (("parse", "Read"), ("promote", "Promote or hold")):
        type(run).objects.filter(pk=run.pk).update(stage=stage)
        expect(step).to_have_text(words, timeout=20_000)
    type(run).objects.filter(pk=run.pk).update(
        status="FAILED", finished_at=run.started_at, error_code="DISK_FULL", error="There is no room."
    )
    expect(viewer.page.locator(".hv-failure")).to_contain_text("There is no room.", timeout=20_000)
    assert viewer.page.evaluate("() => window.stayed")


def test_a_viewer_sees_the_difference_and_no_button(world, held, viewer):
    open_held(viewer, held)
    expect(viewer.page.locator("#difference")).to_be_visible()
    for name in ("Approve", "Reject", "Ignore run"):
        expect(viewer.page.get_by_role("button", name=name)).to_have_count(0)
    expect(viewer.page.get_by_role("link", name="Download file")).to_have_count(0)
