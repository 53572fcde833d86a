"""What a run gives notice of about the rows of its file: stock texts, links, prices, identifiers."""

import html
from datetime import timedelta

import pytest
from django.core.cache import cache
from tests.support.feed_world import OLGA
from tests.support.feeds import HEADER, parse, row
from tests.support.feeds import feed as written
from tests.support.portal import person
from tests.support.tables import rows

from harvester.catalog import offer_browser
from harvester.feeds import verbs
from harvester.feeds.notices import NoticeCode, of_report
from harvester.feeds.reader.findings import MOST_STOCK_TEXTS
from harvester.ops.models import Alert, Role

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def _fresh_dashboard():
    """The dashboard shares what it found for some seconds, also with the next test of this process."""
    cache.clear()
    yield
    cache.clear()


def noticed(world, run, code):
    """The notice of a run, if it has one of this code."""
    return next((one for one in world.figures(run).notices if one["code"] == code), None)


def test_many_unknown_stock_texts_are_listed_on_the_run_and_the_dashboard_until_a_run_is_free_of_them(world, client):
    unknown = [row(number, Availability="ask us") for number in (191, 192)]
    world.put(*range(100, 138), *unknown, row(193, Availability=""))
    assert noticed(world, world.run(), NoticeCode.UNKNOWN_STOCK_TEXTS) is None, "2 of 40 are just 5 %"
    world.put(*range(100, 138), *unknown, row(193, Availability="<b>soon</b>"))
    run = world.run()
    assert noticed(world, run, NoticeCode.UNKNOWN_STOCK_TEXTS) == {
        "code": "UNKNOWN_STOCK_TEXTS",
        "message": "3 of 41 stock texts (7.3%) are not understood: 'ask us' (2), '<b>soon</b>' (1).",
        "count": 3,
        "examples": ["'ask us': 2", "'<b>soon</b>': 1"],
    }
    client.force_login(person("vera", Role.VIEWER))
    assert "3 of 41 stock texts" in client.get(f"/runs/{run.no}/").content.decode()
    dashboard = html.unescape(client.get("/").content.decode())
    assert "stock texts that are not understood" in dashboard
    assert "'ask us' (2), '<b>soon</b>' (1)" in dashboard
    world.put(*range(100, 140))
    world.run()
    assert not Alert.objects.filter(kind="UNKNOWN_STOCK_TEXTS", resolved_at=None).exists()


def test_unknown_stock_texts_are_counted_exactly_however_many_different_ones_there_are():
    cells = [f"week {number}" for number in range(1_500)] + ["ask us"] * 500 + ["in stock"] * 28_000
    texts = [row(number, Availability=cell) for number, cell in enumerate(cells, 1)]
    _, report = parse(written(*texts), block_bytes=100_000)
    assert len(report.findings.unknown_stock) == MOST_STOCK_TEXTS
    (notice,) = (one for one in of_report(report) if one.code is NoticeCode.UNKNOWN_STOCK_TEXTS)
    assert notice.count == 2_000
    assert notice.message.startswith("2,000 of 30,000 stock texts (6.7%) are not understood: 'ask us' (500), ")
    assert notice.message.endswith(" and at least 995 others.")


def test_a_feed_may_reject_rows_whose_stock_is_not_understood(world):
    world.change(unknown_stock="REJECT")
    world.put(*range(100, 110), row(111, Availability="ask us"), row(112, Availability="0"))
    run = world.run()
    assert (run.outcome, world.figures(run).rejects) == ("PROMOTED", {"UNREADABLE_STOCK": 1})
    assert world.shown()["S-112"][2] is False
    assert "S-111" not in world.shown()
    assert noticed(world, run, NoticeCode.UNKNOWN_STOCK_TEXTS)["count"] == 1


def priced(number, amount, **more):
    return row(number, Price=amount, **more)


@pytest.mark.parametrize(("moved", "of"), [(1, 12), (19, 19), (30, 200), (40, 200)])
def test_prices_at_ten_times_their_value_are_noticed_below_both_limits_of_the_gate(world, client, moved, of):
    world.put(*(priced(number, "12.99") for number in range(of)))
    assert noticed(world, world.run(), NoticeCode.TENFOLD_PRICES) is None, "nothing was known before"
    world.put(*(priced(number, "129.90" if number < moved else "13.49") for number in range(of)))
    run = world.run()
    found = noticed(world, run, NoticeCode.TENFOLD_PRICES)
    assert (run.outcome, found["count"]) == ("PROMOTED", moved)
    assert found["message"] == f"{moved} of {of} known prices moved by a factor near 10, 100 or 1000."
    assert found["examples"][0] == "Thing 0: 12.99 -> 129.90 USD"
    client.force_login(person("vera", Role.VIEWER))
    for page in (f"/runs/{run.no}/", "/"):
        assert "prices moved about tenfold" in client.get(page).content.decode().lower()
    assert Alert.objects.filter(kind="TENFOLD_PRICES", resolved_at=None).exists()


def test_the_alert_about_tenfold_prices_outlasts_runs_that_find_them_in_place_for_a_day(world):
    for amount, stock in (("12.99", "in stock"), ("129.90", "in stock"), ("129.90", "out of stock")):
        world.put(priced(100, amount, Availability=stock))
        run = world.run()
    assert noticed(world, run, NoticeCode.TENFOLD_PRICES) is None
    alert = Alert.objects.get(kind="TENFOLD_PRICES", resolved_at=None)
    Alert.objects.filter(pk=alert.pk).update(last_seen_at=alert.last_seen_at - timedelta(hours=25))
    world.put(priced(100, "129.90"))
    world.run()
    alert.refresh_from_db()
    assert alert.resolved_at is not None


MOVES = {
    "ten times": ("12.99", "129.90", True),
    "a tenth": ("129.90", "12.99", True),
    "nine times": ("10.00", "90.00", True),
    "eleven times": ("10.00", "110.00", True),
    "less than nine times": ("10.00", "89.99", False),
    "more than eleven times": ("10.00", "110.01", False),
    "a hundred times": ("12.99", "1299.00", True),
    "a hundredth": ("1299.00", "12.99", True),
    "a thousand times": ("1.30", "1299.00", True),
    "fifty times": ("1.00", "50.00", False),
    "twice": ("1.00", "2.00", False),
    "the same": ("1.00", "1.00", False),
}


def test_only_moves_near_a_power_of_ten_within_one_currency_are_noticed(world):
    world.put(*(priced(number, before) for number, (before, _, _) in enumerate(MOVES.values())), priced(90, "1.00"))
    world.run()
    world.put(
        *(priced(number, now) for number, (_, now, _) in enumerate(MOVES.values())),
        priced(90, "10.00", Currency="EUR"),
    )
    found = noticed(world, world.run(), NoticeCode.TENFOLD_PRICES)
    moved = [number for number, (_, _, is_noticed) in enumerate(MOVES.values()) if is_noticed]
    assert found["count"] == len(moved)
    assert [example.partition(":")[0] for example in found["examples"]] == [f"Thing {number}" for number in moved]


def test_different_links_that_come_to_one_product_are_noticed_unless_the_feed_keeps_their_parameter(world):
    world.change(accepts_url_identity=True)
    links = [row(number, SKU="", Url=f"https://shop.example/p?ref={number}") for number in (101, 102)]
    world.put(*links, 110)
    first = world.run()
    assert noticed(world, first, NoticeCode.LINKS_COLLAPSED) == {
        "code": "LINKS_COLLAPSED",
        "message": "1 product has several links that differ in parameters that do not count; the last row of each is "
        "used.",
        "count": 1,
        "examples": ["shop.example/p?ref=101 and shop.example/p?ref=102"],
    }
    assert len(world.shown()) == 2
    verbs.update(OLGA, world.feed.id, {"kept_parameters": "ref"})
    second = world.run()
    assert noticed(world, second, NoticeCode.LINKS_COLLAPSED) is None, "the same file was read again"
    assert sorted(amount for _, amount, _ in world.shown().values()) == [1.01, 1.02, 1.02, 1.1]


def test_an_identifier_of_another_column_is_noticed_stored_and_found_and_identifies_nothing(world, client):
    header = ["SKU", "Unique Merchant SKU", *HEADER[1:]]
    lines = [[sku, spare, *row(number)[1:]] for number, (sku, spare) in enumerate([("A-1", "M-1"), ("", "M-2")], 101)]
    world.change(accepts_url_identity=True)
    world.put_bytes(written(*lines, header=header).encode())
    found = noticed(world, world.run(), NoticeCode.SPARE_IDENTIFIERS)
    assert found["message"] == "1 of 2 rows lack their identifier, and another column has one."
    assert found["examples"] == ["'SKU' is empty in 1, and there is a value in 'Unique Merchant SKU'"]
    assert rows("SELECT identity_type, sku FROM source_products ORDER BY id") == [(3, "A-1"), (4, "M-2")]
    client.force_login(person("vera", Role.VIEWER))
    page = client.get("/offers/", {"q": "M-2"}).content.decode()
    assert ("Thing 102" in page, "Thing 101" in page) == (True, False)
    assert offer_browser.by_number("M-2", [world.source.id]) == offer_browser.by_number(" M-2 ", None)
    assert len(offer_browser.by_number("M-2", None)) == 1
    assert offer_browser.by_number("M-1", None) == [], "its row has a SKU of its own"
