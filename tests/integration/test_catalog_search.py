"""Consumers find what they may see, in the order they ask for, and nothing they type reaches the statement."""

import dataclasses
from decimal import Decimal

import pytest
from tests.support import catalog
from tests.support.catalog import fetch, hours

from harvester.catalog import consumer_offers, corrections, history, offers, search, search_sql
from harvester.catalog.search_query import Query, Sort
from harvester.kernel.actor import system
from harvester.kernel.errors import InvalidInput, NotFound

pytestmark = pytest.mark.usefixtures("database")
TEST = system("test")


@pytest.fixture
def shop():
    return catalog.source(is_display_primary=True, name="shop", expiry_hours=48)


def put(source, title, amount="10", *, product=None, **priced):
    number = catalog.product(source, title=title, **(product or {}))
    catalog.price(source, number, amount, **priced)
    offers.recompute(source.pk, [number])
    return number


def titles(**values):
    return [found.title for found in search.search(Query(**values)).offers]


@pytest.fixture
def tools(shop):
    put(shop, "Red hammer", "30", product={"brand": "Acme", "category": "Tools > Hammers"})
    put(shop, "Blue hammer drill", "20", product={"brand": "O'Neil \\ Sons", "category": "Tools > Drills"})
    put(shop, "Saw", "10", product={"brand": "Acme"}, in_stock=False)
    put(shop, "Saw imported", "5", currency="EUR")
    return shop


def test_text_finds_words_of_title_and_brand(tools):
    assert sorted(titles(text="HAMMER")) == ["Blue hammer drill", "Red hammer"]
    assert sorted(titles(text="acme")) == ["Red hammer", "Saw"]
    assert titles(text='"hammer drill"') == ["Blue hammer drill"]
    assert titles(text="hammer -drill") == ["Red hammer"]
    assert sorted(titles(text="drill OR saw")) == ["Blue hammer drill", "Saw", "Saw imported"]
    assert titles(text="screwdriver") == []


FILTERS = [
    ({"brand": "aCME"}, ["Saw", "Red hammer"]),
    ({"brand": "o'neil \\ SONS"}, ["Blue hammer drill"]),
    ({"brand": "Acm"}, []),
    ({"category": "tools > hammers"}, ["Red hammer"]),
    ({"in_stock": False}, ["Saw"]),
    ({"in_stock": True, "text": "saw"}, ["Saw imported"]),
    ({"currency": "EUR"}, ["Saw imported"]),
    ({"currency": "USD", "min_amount": Decimal(20)}, ["Blue hammer drill", "Red hammer"]),
    ({"currency": "USD", "max_amount": Decimal(20), "brand": "Acme"}, ["Saw"]),
    ({"currency": "USD", "min_amount": Decimal("20.01"), "max_amount": Decimal("29.99")}, []),
]


@pytest.mark.parametrize(("values", "expected"), FILTERS)
def test_filters_leave_what_fits(tools, values, expected):
    assert sorted(titles(**values)) == sorted(expected)


def test_a_retailer_and_a_source_are_filters_too(tools):
    other = catalog.source(is_display_primary=True)
    put(other, "Other hammer")
    assert titles(source_id=other.pk) == titles(retailer_id=other.retailer_id) == ["Other hammer"]
    assert len(titles(text="hammer", retailer_id=tools.retailer_id)) == 2


def test_offers_come_in_the_order_asked_for(tools):
    assert titles(currency="USD", sort=Sort.PRICE) == ["Saw", "Blue hammer drill", "Red hammer"]
    assert titles(currency="USD", sort=Sort.PRICE_DESCENDING) == ["Red hammer", "Blue hammer drill", "Saw"]
    assert titles() == titles(sort=Sort.NEWEST) == ["Saw imported", "Saw", "Blue hammer drill", "Red hammer"]
    put(tools, "hammer and hammer and hammer")
    assert titles(text="hammer")[0] == "hammer and hammer and hammer"


@pytest.mark.parametrize("sort", [Sort.NEWEST, Sort.PRICE, Sort.PRICE_DESCENDING, Sort.RELEVANCE])
def test_pages_hold_every_offer_once(shop, sort):
    numbers = {put(shop, "same", "10") for _ in range(7)}
    pages = [search.search(Query(text="same", currency="USD", sort=sort, page=page, page_size=3)) for page in (1, 2, 3)]
    assert [page.has_more for page in pages] == [True, True, False]
    found = [offer.product_id for page in pages for offer in page.offers]
    assert len(found) == 7
    assert set(found) == numbers


def test_only_what_consumers_see_is_found(tools):
    hidden = catalog.source(tools.retailer)
    put(hidden, "hidden hammer")
    gone = put(tools, "gone hammer")
    fetch("UPDATE offers SET seen_until = now() - interval '49 hours' WHERE product_id = %s", gone)
    assert not [title for title in titles(text="hammer") if title.startswith(("hidden", "gone"))]
    assert not consumer_offers.offer(hidden.pk, fetch("SELECT max(product_id) - 1 FROM offers")[0][0]).is_shown
    assert not consumer_offers.offer(tools.pk, gone).is_active
    with pytest.raises(NotFound):
        consumer_offers.offer(hidden.pk, gone)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("sort", {"sort": Sort.PRICE}),
        ("sort", {"sort": Sort.PRICE_DESCENDING, "text": "x"}),
        ("sort", {"sort": Sort.RELEVANCE}),
        ("min_amount", {"min_amount": Decimal(1)}),
        ("max_amount", {"max_amount": Decimal("NaN"), "currency": "USD"}),
        ("currency", {"currency": "usd"}),
        ("text", {"text": "x" * 201}),
        ("text", {"text": "!!! --"}),
        ("text", {"text": "a\x00b"}),
        ("page", {"page": 0}),
        ("page", {"page": 101, "page_size": 100}),
        ("page_size", {"page_size": 101}),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_field(field, values):
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        Query(**values)


HOSTILE = ["'; DROP TABLE offers; --", "%(source)s %s {0}", "a & b | !c:*", "\\", "''", '"', "category:tools"]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_typed_reaches_the_statement(tools, text):
    for field in ("brand", "category", "text") if any(map(str.isalnum, text)) else ("brand", "category"):
        assert titles(**{field: text}) == []
    put(tools, "odd", product={"brand": text, "category": text})
    assert titles(brand=text, category=text) == ["odd"]


def test_an_offer_carries_the_link_that_a_click_takes(shop):
    product = {"url": "https://shop.example/a b", "sku": "S/1"}
    put(shop, "thing", product=product)
    assert search.search(Query()).offers[0].tracking_url == "https://shop.example/a b"
    fetch("UPDATE source_products SET tracked_url = 'https://go.example/t/1'")
    assert search.search(Query()).offers[0].tracking_url == "https://go.example/t/1"
    fetch("UPDATE sources SET tracking_template = 'https://go.example/{source}?u={url}&s={sku}', "
          "affiliate_account_id = '77'")  # fmt: skip
    [found] = search.search(Query()).offers
    assert found.tracking_url == "https://go.example/77?u=https%3A%2F%2Fshop.example%2Fa%20b&s=S%2F1"


def test_the_history_is_what_was_observed_as_corrections_make_it_read(shop):
    number = put(shop, "thing", "1000", observed_at=catalog.now() - hours(3))
    catalog.price(shop, number, "2000", observed_at=catalog.now() - hours(2), run_no=5)
    catalog.price(shop, number, "30", observed_at=catalog.now() - hours(1))
    catalog.run(shop)
    corrections.create(
        TEST, scope="SOURCE", source_id=shop.pk, action="MULTIPLIER", multiplier="0.01", reason="in cents",
        observed_to=catalog.now() - hours(1.5),
    )  # fmt: skip
    points = history.price_history(shop.pk, number)
    assert [(str(point.amount), str(point.raw_amount)) for point in points] == [
        ("30", "30"), ("20", "2000"), ("10", "1000"),
    ]  # fmt: skip
    assert len(history.price_history(shop.pk, number, since=catalog.now() - hours(1.2))) == 1
    assert len(history.price_history(shop.pk, number, most=2)) == 2
    with pytest.raises(InvalidInput, match="most"):
        history.price_history(shop.pk, number, most=0)


def test_an_offer_that_was_found_has_every_field_and_stays_as_it_is():
    shop = catalog.source(kind="DIRECT")
    number = catalog.offer(shop)
    [found] = search.search(Query()).offers
    assert set(vars(found)) == {field.name for field in dataclasses.fields(found)}
    assert found == consumer_offers.offer(shop.pk, number)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.amount = 0


@pytest.mark.parametrize("walked", [1, 3, 1_000])
@pytest.mark.parametrize("sort", [Sort.PRICE, Sort.PRICE_DESCENDING, Sort.NEWEST])
def test_words_are_found_alike_among_the_first_offers_and_among_all(shop, monkeypatch, sort, walked):
    for number in range(12):
        put(shop, "Hammer" if number % 3 else "Saw", str(10 + number * 7 % 12))
    monkeypatch.setattr(search_sql, "WALKED", walked)
    values = {"text": "hammer", "currency": "USD", "sort": sort, "page_size": 3}
    first = search.search(Query(**values))
    second = search.search(Query(**values, after=first.end))
    found = [offer.amount for offer in [*first.offers, *second.offers]]
    every = sorted(
        (offer.amount, offer.product_id) for offer in search.search(Query(text="hammer", page_size=100)).offers
    )
    wanted = {
        Sort.PRICE: [amount for amount, _ in every],
        Sort.PRICE_DESCENDING: [amount for amount, _ in reversed(every)],
        Sort.NEWEST: [amount for amount, _ in sorted(every, key=lambda one: -one[1])],
    }[sort]
    assert found == wanted[:6]
    assert first.has_more


@pytest.fixture
def street(shop):
    """Two shops whose products were listed by turns, and behind them what nobody sees."""
    neighbour = catalog.source(is_display_primary=True, name="neighbour")
    second = catalog.source(shop.retailer, name="second source of the shop")
    for number in range(16):
        put(neighbour if number % 3 else shop, f"Saw {number}", product={"brand": "Acme" if number % 2 else "Bolt"})
    for _ in range(5):
        put(second, "Saw that is not shown", product={"brand": "Acme"})
    return {"shop": shop, "neighbour": neighbour, "second": second}


NARROWED = [
    lambda _: {},
    lambda street: {"retailer_id": street["shop"].retailer_id},
    lambda street: {"source_id": street["neighbour"].pk},
    lambda street: {"retailer_id": street["shop"].retailer_id, "source_id": street["shop"].pk},
    lambda street: {"retailer_id": street["shop"].retailer_id, "source_id": street["neighbour"].pk},
    lambda street: {"source_id": street["second"].pk},
]


@pytest.mark.parametrize("bounds", [(1, 1), (4, 7), (4, 1_000), (1_000, 1_000)])
@pytest.mark.parametrize("more", [{}, {"brand": "acme"}, {"in_stock": True}])
@pytest.mark.parametrize("narrowed", NARROWED)
def test_the_newest_come_first_from_all_sellers(street, monkeypatch, narrowed, more, bounds):
    monkeypatch.setattr(search_sql, "WALKED", bounds[0])
    monkeypatch.setattr(search_sql, "PASSED", bounds[1])
    values = {**narrowed(street), **more}
    numbers = range(1, 16, 2) if "brand" in more else range(16)
    sold_by = {"shop": [n for n in numbers if not n % 3], "neighbour": [n for n in numbers if n % 3], "second": []}
    asked = [
        name for name, source in street.items()
        if values.get("retailer_id", source.retailer_id) == source.retailer_id
        and values.get("source_id", source.pk) == source.pk
    ]  # fmt: skip
    wanted = [f"Saw {number}" for number in sorted((n for name in asked for n in sold_by[name]), reverse=True)]
    by_number = [titles(**values, page=page, page_size=3) for page in range(1, 8)]
    assert [title for page in by_number for title in page] == wanted
    by_place, end = [], None
    while (page := search.search(Query(**values, page_size=3, after=end))).offers:
        by_place += [offer.title for offer in page.offers]
        end = page.end
    assert by_place == wanted


def test_two_sources_of_a_shop_are_merged_before_words_are_looked_for(monkeypatch):
    """One of them has more newer offers than are looked at, before those that fit."""
    retailer = catalog.retailer()
    older, newer = (catalog.source(retailer, kind="DIRECT") for _ in range(2))
    fitting = [put(source, "Saw", product={"brand": "Acme"}) for source in (older, newer) for _ in range(4)]
    for _ in range(4):
        put(newer, "Saw", product={"brand": "Bolt"})
    monkeypatch.setattr(search_sql, "WALKED", 4)
    found = search.search(Query(retailer_id=retailer.pk, brand="acme", page_size=3)).offers
    assert [offer.product_id for offer in found] == fitting[:-4:-1]
