"""The catalog in a real browser: search, price history, and a correction created and revoked."""

import pytest
from playwright.sync_api import expect
from tests.support import catalog
from tests.support.catalog import hours
from tests.support.portal import verbs

pytestmark = pytest.mark.browser


@pytest.fixture
def hammer():
    shop = catalog.source(name="Shop feed", is_display_primary=True, expiry_hours=48)
    run = catalog.run(shop)
    number = catalog.product(shop, run.no, title="Red hammer <b>bold</b>")
    catalog.price(shop, number, "25", run_no=run.no, observed_at=catalog.now() - hours(30))
    catalog.price(shop, number, "19.9", run_no=run.no)
    catalog.recompute_offers(shop, [number])
    return number


def test_an_offer_is_found_and_its_price_corrected_and_set_right_again(operator, hammer):
    page = operator.page
    operator.go("/offers/")
    page.keyboard.press("/")
    page.keyboard.type("hammer")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Red hammer <b>bold</b>").click()
    expect(page.locator("#standing")).to_contain_text("Consumers see it.")
    expect(page.locator("#prices tbody tr")).to_have_count(2)
    assert page.evaluate("() => Chart.getChart('price-chart').data.datasets[0].data.map((point) => point.y)") == [
        25, 19.9, 19.9,
    ]  # fmt: skip
    marks = page.evaluate("() => Chart.getChart('price-chart').scales.x.ticks.map((tick) => tick.label)")
    assert 3 <= len(marks) == len(set(marks)), marks
    page.get_by_role("link", name="Correct prices").click()
    page.get_by_label("Action").select_option("MULTIPLIER")
    expect(page.get_by_label("Run number")).to_be_hidden()
    page.get_by_label("Multiplier").fill("0.5")
    page.get_by_label("Reason").fill("Twice as much as on the page")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview tbody tr")).to_contain_text("9.95")
    page.get_by_role("button", name="Correct 1 offer").click()
    expect(page.get_by_role("status").filter(has_text="in force")).to_be_visible()
    page.get_by_role("link", name=f"Product {hammer} of Shop feed").click()
    expect(page.locator("#standing")).to_contain_text("9.95")
    page.locator("#corrections").get_by_role("link", name="Prices × 0.5").click()  # noqa: RUF001
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("Revoke this correction?")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("status").filter(has_text="is revoked")).to_be_visible()
    assert catalog.fetch("SELECT amount::float FROM offers") == [(19.9,)]
    assert verbs(object_type="correction") == ["CORRECTION_CREATED", "CORRECTION_REVOKED"]


def test_a_changed_form_needs_a_new_preview(operator, hammer):
    page = operator.page
    operator.go("/corrections/add/?scope=SOURCE&source=Shop feed&reason=wrong&extent=WINDOW")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("no offer")
    page.get_by_label("Reason").fill("something else")
    expect(page.locator("#preview")).to_have_count(0)
