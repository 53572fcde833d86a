"""Shops and their pages in a real browser: on a phone, with lists that refresh themselves, and without any script."""

import re

import pytest
from django.db import connection
from playwright.sync_api import expect
from tests.support import catalog
from tests.support.browser import window
from tests.support.feed_rows import make_feed
from tests.support.portal import PASSWORD, person
from tests.support.portal_scraping import entry, page, page_run, part, scraping_pages, shop
from tests.support.scripted_shop import product_page

from harvester.catalog.models import Retailer, Source
from harvester.kernel.actor import system
from harvester.ops.models import Role
from harvester.scraping import kept_pages, verbs
from harvester.scraping.models import QuarantineEntry, ScrapeImport, ScrapeTarget

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
#: Buttons and links that a thumb cannot reach because they stand behind the edge of the screen.
OUT_OF_REACH = """() => [...document.querySelectorAll("main button, main a.hv-button, main select, main input")]
    .filter(each => each.checkVisibility() && !each.closest(".hv-scroll, .hv-tabs"))
    .filter(each => { const box = each.getBoundingClientRect(); return box.right > innerWidth + 1 || box.left < -1 })
    .map(each => each.textContent.trim() || each.name)"""


@pytest.fixture
def plain_operator(browser, portal, database):
    """A window without JavaScript, logged in."""
    person("otto", Role.OPERATOR)
    context, visit = window(browser, portal, java_script_enabled=False)
    visit.log_in("otto", PASSWORD)
    visit.page.wait_for_url(f"{visit.base}/")
    yield visit
    context.close()


def test_everything_is_in_reach_of_a_thumb(admin):
    admin.page.set_viewport_size(PHONE)
    for path in scraping_pages():
        admin.go(path)
        assert admin.page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"], path
        assert admin.page.evaluate(OUT_OF_REACH) == [], path


@pytest.mark.parametrize("width", [1280, 390])
def test_a_question_is_asked_within_the_screen(admin, width):
    asked = 0
    paths = [path for path in scraping_pages() if "/edit/" not in path]
    admin.page.set_viewport_size({"width": width, "height": 900})
    for path in paths:
        admin.go(path)
        for question in admin.page.locator("details.hv-ask").all():
            question.locator("summary").click()
            box = question.locator(".hv-menu").bounding_box()
            assert box["x"] >= 0, path
            assert box["x"] + box["width"] <= width, (path, question.inner_text())
            # On a phone it lies at the lower edge, where it may cover its own button.
            admin.page.keyboard.press("Escape")
            expect(question.locator(".hv-menu")).to_be_hidden()
            asked += 1
    assert asked > 10


def test_a_list_of_addresses_is_imported_on_a_phone(operator):
    of = shop("Ammo Depot", domain="depot.example")
    operator.page.set_viewport_size(PHONE)
    operator.go("/shops/")
    operator.page.get_by_role("link", name="Import pages").click()
    addresses = "https://depot.example/a\nhttps://depot.example/b\nnot an address at all"
    operator.page.get_by_label("Addresses", exact=True).fill(addresses)
    operator.page.get_by_role("button", name="Show preview").click()
    expect(operator.page.get_by_role("heading", name="depot.example")).to_contain_text("2 new")
    expect(operator.page.get_by_role("heading", name="Lines that cannot be read")).to_contain_text("1")
    operator.page.get_by_label("Schedule").fill("0 */6 * * *")
    operator.page.get_by_role("button", name="Import 2 pages").click()
    expect(operator.page.get_by_text("The import has begun.")).to_be_visible()
    made = ScrapeImport.objects.get()
    assert made.choices["depot.example"]["source_id"] == str(of.pk)
    assert made.choices["depot.example"]["schedule"] == "0 */6 * * *"
    # The page refreshes itself: what the job will have done shows without another look.
    ScrapeImport.objects.update(status="DONE", results={"done": 2, "added": 2, "skipped": 0, "refused": 0})
    expect(operator.page.get_by_text("Done", exact=True)).to_be_visible()


def test_the_page_of_a_shop_shows_its_new_run_by_itself(viewer):
    of = shop("Ammo Depot")
    target = page(of)
    viewer.go(f"/shops/{of.pk}/")
    expect(viewer.page.locator("#headline")).not_to_contain_text("Last run")
    run = page_run(of, hours_ago=0.1)
    part(run, target)
    expect(viewer.page.locator("#headline")).to_contain_text(re.compile(rf"Last run\s*{run.no}"), timeout=30_000)


def test_a_question_stays_open_while_the_headline_refreshes_itself(admin):
    of = shop("Ammo Depot")
    target = page(of)
    admin.go(f"/shops/{of.pk}/")
    admin.page.locator("#headline summary", has_text="Stop").click()
    reason = admin.page.locator("#headline").get_by_label("Reason")
    reason.fill("they asked")
    refresh = "() => htmx.ajax('GET', location.pathname, {target: '#headline', swap: 'outerHTML'})"
    with admin.page.expect_response(re.compile(f"/shops/{of.pk}/")):
        admin.page.evaluate(refresh)
    expect(reason).to_have_value("they asked")
    admin.page.locator("#headline").get_by_role("button", name="Stop", exact=True).click()
    expect(admin.page.get_by_text("Stopped. 0 waiting pages were cancelled.")).to_be_visible()
    assert Source.objects.get(pk=of.pk).scrape_enabled is False
    assert ScrapeTarget.objects.get(pk=target.pk).status == "ACTIVE"


def test_products_of_lines_are_chosen_with_the_keyboard_and_without_any_script(plain_operator):
    source = make_feed().source
    Retailer.objects.filter(pk=source.retailer_id).update(domain="acme.example")
    tent = catalog.product(source, url="https://acme.example/tent?color=red", title="Tarn tent")
    found = verbs.create_import(system("test"), "monday", "https://acme.example/tent\nhttps://acme.example/b")
    page_ = plain_operator.page
    plain_operator.go(f"/imports/{found.pk}/")
    page_.get_by_role("link", name="Choose products").click()
    page_.get_by_label("Product of line 1", exact=True).focus()
    page_.keyboard.press("ArrowDown")
    # To the other field of this line, the address of the next one, and its field.
    for _ in range(3):
        page_.keyboard.press("Tab")
    page_.keyboard.type("nothing like this")
    page_.keyboard.press("Enter")
    expect(page_.get_by_text("Line 2: Acme via Impact has no product")).to_be_visible()
    wrong = page_.get_by_label("SKU or ID of the product of line 2")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(page_.get_by_label("Product of line 1", exact=True)).to_have_value(f"id:{tent}")
    wrong.fill(f"id:{tent}")
    page_.get_by_role("button", name="Link").click()
    expect(page_.get_by_role("button", name="Import 2 pages")).to_be_visible()


def test_pages_are_changed_without_any_script(plain_operator):
    of = shop("Ammo Depot")
    first, second = page(of, "first"), page(of, "second")
    page_ = plain_operator.page
    plain_operator.go("/pages/")
    page_.get_by_label(re.compile("Select .*/first")).check()
    page_.locator("select[name=change]").select_option("pause")
    page_.get_by_role("button", name="Apply").click()
    expect(page_.get_by_text("1 page was changed.")).to_be_visible()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("PAUSED", "ACTIVE")


def test_all_pages_of_a_list_are_selected_at_once(operator):
    of = shop("Ammo Depot")
    for number in range(3):
        page(of, str(number))
    operator.go("/pages/")
    operator.page.get_by_label("Select all on this page").check()
    operator.page.locator("select[name=change]").select_option("pause")
    operator.page.get_by_role("button", name="Apply").click()
    expect(operator.page.get_by_text("3 pages were changed.")).to_be_visible()
    assert ScrapeTarget.objects.filter(status="PAUSED").count() == 3


def test_the_portal_itself_shows_the_text_of_a_kept_page(operator):
    """Child processes of the web server read it."""
    target = page(shop("Ammo Depot"))
    stored = kept_pages.store_body(product_page(price="19.99").encode())
    with connection.cursor() as cursor:
        kept_pages.keep(
            cursor, stored, url=target.url, status=200, content_type="text/html", since=0, source_id=target.source_id,
            target_id=target.pk,
        )  # fmt: skip
    found = entry(target, page=stored.hash)
    operator.go(f"/quarantine/{found.pk}/")
    expect(operator.page.locator("#page-text")).to_contain_text("Hammer of the best steel, forged by hand.")


def test_an_entry_is_decided_without_any_script(plain_operator):
    found = entry(page(shop("Ammo Depot")))
    page_ = plain_operator.page
    plain_operator.go("/quarantine/")
    page_.locator("tbody a").first.click()
    page_.locator("summary", has_text="Dismiss").click()
    page_.get_by_label("Note").last.fill("a captcha")
    page_.get_by_role("button", name="Dismiss").click()
    expect(page_.get_by_text("The entry was dismissed.")).to_be_visible()
    assert QuarantineEntry.objects.get(pk=found.pk).note == "a captcha"


def test_a_shop_is_stopped_from_the_list(admin):
    of = shop("Ammo Depot")
    page(of)
    admin.go("/shops/")
    admin.page.get_by_role("button", name="Stop: Ammo Depot").click()
    expect(admin.page.get_by_text("Stopped. 0 waiting pages were cancelled.")).to_be_visible()
    assert Source.objects.get(pk=of.pk).scrape_enabled is False
    assert ScrapeTarget.objects.get().status == "ACTIVE"
