"""Operators find every offer, seen by consumers or not, page by page."""

from decimal import Decimal

import pytest
from tests.support import catalog
from tests.support.catalog import hours

from harvester.catalog import offer_browser, offers
from harvester.catalog.offer_browser import Browse
from harvester.catalog.search_query import Sort
from harvester.kernel.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("database")


def put(source, title, amount="10", *, seen_until=None, product=None, **priced):
    number = catalog.product(source, title=title, **(product or {}))
    catalog.price(source, number, amount, **priced)
    offers.recompute(source.pk, [number])
    catalog.fetch("UPDATE offers SET seen_until = %s WHERE product_id = %s", seen_until, number)
    return number


@pytest.fixture
def shop():
    return catalog.source(is_display_primary=True, name="shop", expiry_hours=48)


@pytest.fixture
def tools(shop):
    hidden = catalog.source(name="not shown")
    put(shop, "Red hammer", "30", product={"brand": "Acme", "sku": "H-1", "identity_value": "H-1"})
    put(shop, "Old hammer", "20", seen_until=catalog.now() - hours(99))
    put(shop, "Saw", "10", in_stock=False)
    put(hidden, "Hidden saw", "5", product={"gtin": "4006381333931"})
    catalog.product(shop, title="Promised")
    return hidden


def titles(**values):
    return [line.title for line in offer_browser.browse(Browse(**values)).lines]


def test_all_offers_are_listed_whether_consumers_see_them_or_not(tools):
    assert titles() == ["Hidden saw", "Saw", "Old hammer", "Red hammer"]
    assert [line.standing.state for line in offer_browser.browse(Browse()).lines] == [
        "SOURCE_NOT_SHOWN", "VISIBLE", "EXPIRED", "VISIBLE",
    ]  # fmt: skip


def test_filters_leave_what_fits(tools, shop):
    cases = [
        ({"state": "VISIBLE"}, ["Saw", "Red hammer"]),
        ({"state": "EXPIRED"}, ["Old hammer"]),
        ({"state": "SOURCE_NOT_SHOWN"}, ["Hidden saw"]),
        ({"state": "WITHOUT_OFFER", "source_id": shop.pk}, ["Promised"]),
        ({"state": "WITHOUT_OFFER", "retailer_id": tools.retailer_id}, []),
        ({"state": "EXPIRED", "retailer_id": shop.retailer_id, "text": "hammer"}, ["Old hammer"]),
        ({"source_id": tools.pk}, ["Hidden saw"]),
        ({"retailer_id": shop.retailer_id, "brand": "ACME"}, ["Red hammer"]),
        ({"in_stock": False}, ["Saw"]),
        ({"currency": "USD", "min_amount": Decimal(10), "max_amount": Decimal(20)}, ["Saw", "Old hammer"]),
        ({"currency": "EUR"}, []),
    ]
    for values, expected in cases:
        assert titles(**values) == expected, values


def test_a_number_finds_its_product_even_without_an_offer(tools, shop):
    promised = catalog.product(shop, title="Promised too", identity_value="P-2")
    assert titles(text="H-1") == ["Red hammer"]
    assert titles(text="P-2") == titles(text=str(promised)) == ["Promised too"]
    assert titles(text="04006381333931") == ["Hidden saw"]
    assert titles(text="04006381333931", source_id=shop.pk) == []


def test_what_looks_like_a_word_is_a_number_only_where_no_word_is_found(tools, shop):
    catalog.product(shop, title="Numbered saw", identity_value="hammer")
    catalog.product(shop, title="Numbered too", identity_value="BLKHMR")
    assert titles(text="hammer") == ["Old hammer", "Red hammer"]
    assert titles(text="BLKHMR") == ["Numbered too"]


@pytest.mark.parametrize("sort", [Sort.NEWEST, Sort.PRICE, Sort.PRICE_DESCENDING])
@pytest.mark.parametrize("narrowed", [{}, {"source": True}, {"in_stock": True}, {"state": "VISIBLE"}], ids=str)
def test_pages_forth_and_back_hold_every_offer_once(shop, sort, narrowed, monkeypatch):
    monkeypatch.setattr(offer_browser, "WINDOW", 4)
    for number in range(9):
        put(shop, f"thing {number}", str(number // 3 + 1))
    given = {name: value for name, value in narrowed.items() if name != "source"}
    given |= {"source_id": shop.pk} if "source" in narrowed else {}
    query = {**given, "sort": sort, "currency": "USD", "page_size": 2}
    whole = titles(**{**query, "page_size": 50})
    pages, cursor = [offer_browser.browse(Browse(**query))], True
    while cursor := pages[-1].next:
        pages.append(offer_browser.browse(Browse(**query, behind=cursor)))
    assert [line.title for page in pages for line in page.lines] == whole
    back = offer_browser.browse(Browse(**query, ahead=pages[2].previous))
    assert back.lines == pages[1].lines
    assert len(whole) == 9


def test_what_is_rare_is_looked_for_in_one_window_after_the_other(shop, monkeypatch):
    monkeypatch.setattr(offer_browser, "WINDOW", 3)
    monkeypatch.setattr(offer_browser, "LONGEST_SCAN_SECONDS", 60)
    for number in range(20):
        put(shop, f"thing {number}", in_stock=number not in (2, 9, 17))
    first = offer_browser.browse(Browse(in_stock=False, page_size=2))
    assert [line.title for line in first.lines] == ["thing 17", "thing 9"]
    second = offer_browser.browse(Browse(in_stock=False, page_size=2, behind=first.next))
    assert [line.title for line in second.lines] == ["thing 2"]
    assert (second.next, second.is_cut) == ("", False)


def test_a_window_without_a_hit_says_where_to_continue(shop, monkeypatch):
    monkeypatch.setattr(offer_browser, "WINDOW", 4)
    monkeypatch.setattr(offer_browser, "LONGEST_SCAN_SECONDS", 0)
    put(shop, "sold out", in_stock=False)
    for number in range(4):
        put(shop, f"thing {number}")
    first = offer_browser.browse(Browse(in_stock=False, page_size=2))
    assert (first.lines, first.is_cut) == ([], True)
    second = offer_browser.browse(Browse(in_stock=False, page_size=2, behind=first.next))
    assert [line.title for line in second.lines] == ["sold out"]
    assert not second.next


def test_the_best_match_of_a_text_comes_first(shop):
    put(shop, "Hammer")
    put(shop, "Hammer hammer hammer")
    assert titles(text="hammer") == ["Hammer hammer hammer", "Hammer"]


REFUSED = [
    ({"state": "GONE"}, "state:"),
    ({"state": "WITHOUT_OFFER"}, "one retailer or one source"),
    ({"behind": "x"}, "start with the first page"),
    ({"behind": "9" * 40}, "start with the first page"),
    ({"behind": "1~1"}, "start with the first page"),
    ({"behind": "NaN~1", "sort": Sort.PRICE, "currency": "USD"}, "start with the first page"),
    ({"sort": Sort.PRICE}, "choose a currency"),
]


@pytest.mark.parametrize(("values", "words"), REFUSED)
def test_what_cannot_be_answered_is_refused_by_name(values, words):
    with pytest.raises(InvalidInput, match=words):
        offer_browser.browse(Browse(**values))


def test_words_of_products_without_an_offer_take_nobodys_place(shop):
    """They are ranked with the others, and the page is filled all the same."""
    for number in range(4):
        put(shop, f"Hammer {number}")
    gone = put(shop, "Hammer hammer hammer")
    catalog.fetch("DELETE FROM offers WHERE product_id = %s", gone)
    found = offer_browser.browse(Browse(text="hammer", page_size=3))
    assert ([line.title for line in found.lines], found.is_cut) == (["Hammer 3", "Hammer 2", "Hammer 1"], True)
