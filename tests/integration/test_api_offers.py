"""Offers over the API: only those that consumers see, filtered, sorted and paged."""

import datetime as dt

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.support import catalog
from tests.support.api import Application, refused

from harvester.api import cursors
from harvester.api.schemas import Offer
from harvester.catalog.offers import recompute
from harvester.kernel.ids import uuid7
from harvester.ops.scopes import Scope

pytestmark = pytest.mark.django_db


@pytest.fixture
def application():
    return Application(Scope.OFFERS_READ)


@pytest.fixture
def shop():
    return catalog.source(catalog.retailer("Acme"), kind="DIRECT", name="acme")


def put(shop, title, amount, currency="USD", **fields):
    number = catalog.product(shop, title=title, **fields)
    catalog.price(shop, number, amount, currency=currency)
    recompute(shop.pk, [number])
    return number


def titles(found):
    return [offer["title"] for offer in found["items"]]


def test_an_offer_has_everything_a_consumer_needs(application, shop):
    number = put(shop, "Red hammer", "19.9", brand="Acme", category="Tools", sku="H1", gtin="4006381333931")
    [offer] = application.read("/offers")["items"]
    assert offer["id"] == f"{shop.pk}.{number}"
    assert (offer["amount"], offer["currency"]) == ("19.90", "USD")
    assert (offer["retailer"], offer["source"], offer["brand"], offer["sku"]) == ("Acme", "acme", "Acme", "H1")
    assert offer["tracking_url"] == offer["url"]
    assert offer["product_id"] is None
    assert application.read(f"/offers/{offer['id']}") == {**offer, "attributes": {}}
    assert Offer.model_validate(offer).model_fields_set == set(Offer.model_fields) == set(offer)


def test_amounts_have_the_decimals_of_their_currency_or_more(application, shop):
    for amount, currency in (("1200", "JPY"), ("5", "EUR"), ("1.2345", "USD"), ("3.1", "KWD")):
        put(shop, currency, amount, currency)
    shown = {offer["currency"]: offer["amount"] for offer in application.read("/offers")["items"]}
    assert shown == {"JPY": "1200", "EUR": "5.00", "USD": "1.2345", "KWD": "3.100"}


def test_the_tracking_link_follows_the_template_of_the_source(application, shop):
    shop.tracking_template = "https://go.example/?sku={sku}&to={url}"
    shop.save()
    put(shop, "Hammer", "5", sku="H 1", url="https://shop.example/h")
    [offer] = application.read("/offers")["items"]
    assert offer["tracking_url"] == "https://go.example/?sku=H%201&to=https%3A%2F%2Fshop.example%2Fh"


@pytest.mark.parametrize("hidden", ["not shown", "expired"])
def test_an_offer_that_consumers_do_not_see_is_not_found_by_id(application, shop, hidden):
    number = put(shop, "Hammer", "5")
    if hidden == "not shown":
        catalog.source(shop.retailer, is_display_primary=True)
    else:
        shop.expiry_hours = 1
        shop.save()
        catalog.fetch("UPDATE offers SET seen_until = now() - interval '2 hours'")
    assert application.read("/offers")["items"] == []
    for path in (f"/offers/{shop.pk}.{number}", f"/offers/{shop.pk}.{number}/history"):
        assert refused(application.get(f"/api/v1{path}")) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ["Blue saw", "Red saw", "Red hammer"]),
        ({"q": "red"}, ["Red saw", "Red hammer"]),
        ({"q": "saw -red"}, ["Blue saw"]),
        ({"brand": "ACME"}, ["Red saw", "Red hammer"]),
        ({"category": "saws"}, ["Blue saw", "Red saw"]),
        ({"in_stock": "true"}, ["Blue saw", "Red saw", "Red hammer"]),
        ({"in_stock": "false"}, []),
        ({"currency": "USD", "min_price": "10", "max_price": "20"}, ["Red saw"]),
        ({"currency": "USD", "sort": "price"}, ["Red hammer", "Red saw", "Blue saw"]),
        ({"currency": "USD", "sort": "-price"}, ["Blue saw", "Red saw", "Red hammer"]),
        ({"currency": "EUR"}, []),
    ],
)
def test_filters_and_sorts(application, shop, parameters, found):
    put(shop, "Red hammer", "5", brand="Acme", category="Hammers")
    put(shop, "Red saw", "15", brand="Acme", category="Saws")
    put(shop, "Blue saw", "25", brand="Other", category="Saws")
    assert titles(application.read("/offers", **parameters)) == found


@pytest.mark.parametrize("named", ["acme", "ACME", "acme.example"])
def test_a_retailer_and_a_source_can_be_given_by_slug(application, named):
    seller = catalog.retailer("Acme", domain="acme.example")
    shop = catalog.source(seller, kind="DIRECT", name="Acme & Söhne (US)")
    other = catalog.source(kind="DIRECT")
    put(shop, "Mine", "5"), put(other, "Theirs", "5")
    assert titles(application.read("/offers", retailer=named)) == ["Mine"]
    [listed] = application.read("/sources", retailer=named)["items"]
    assert (listed["id"], listed["slug"]) == (str(shop.pk), "acme-söhne-us")
    assert titles(application.read("/offers", source=listed["slug"])) == ["Mine"]
    for field in ("retailer", "source"):
        answer = application.get("/api/v1/offers", {field: "nobody"})
        assert refused(answer) == (422, "INVALID_INPUT")
        assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_an_ambiguous_slug_is_refused(application):
    for name in ("Acme Co", "Acme-Co"):
        catalog.retailer(name)
    answer = application.get("/api/v1/offers", {"retailer": "acme-co"})
    assert refused(answer) == (422, "INVALID_INPUT")
    assert "2 retailers are called 'acme-co'" in answer.json()["detail"]


def test_retailers_and_sources_are_listed_by_name_page_by_page(application):
    sellers = [catalog.retailer(name) for name in ("B", "A", "A", "C")]
    for number, seller in enumerate(sellers):
        catalog.source(seller, name=f"source {number}", is_display_primary=number == 2)
    for path in ("/retailers", "/sources"):
        found, cursor = [], ""
        while cursor is not None:
            page = application.read(path, page_size=1, **({"cursor": cursor} if cursor else {}))
            found, cursor = [*found, *page["items"]], page["next_cursor"]
        assert found == application.read(path)["items"]
        assert [item["name"] for item in found] == sorted(item["name"] for item in found)
        assert len({item["id"] for item in found}) == 4
    assert [item["is_display_primary"] for item in found] == [False, False, True, False]
    assert refused(application.get("/api/v1/retailers", {"cursor": cursors.encode("x", "y")})) == (
        422,
        "INVALID_CURSOR",
    )


def test_brands_and_categories_are_those_of_visible_offers(application, shop):
    cache.clear()
    put(shop, "Hammer", "5", brand="Acme", category="Tools")
    put(shop, "Saw", "5", brand="ACME", category="Tools > Saws")
    put(shop, "Nail", "5", brand="Zeta")
    other = catalog.source(kind="DIRECT")
    put(other, "Drill", "5", brand="Beta", category="Tools")
    hidden = catalog.source(kind="AFFILIATE_FEED")
    put(hidden, "Hidden", "5", brand="Nobody", category="Nothing")
    assert application.read("/brands")["items"] == [
        {"name": "ACME", "offers": 2},
        {"name": "Beta", "offers": 1},
        {"name": "Zeta", "offers": 1},
    ]
    first = application.read("/brands", page_size=2)
    rest = application.read("/brands", page_size=2, cursor=first["next_cursor"])
    assert [item["name"] for item in first["items"] + rest["items"]] == ["ACME", "Beta", "Zeta"]
    assert rest["next_cursor"] is None
    assert [item["name"] for item in application.read("/categories")["items"]] == ["Tools", "Tools > Saws"]
    assert [item["name"] for item in application.read("/brands", source=str(other.pk))["items"]] == ["Beta"]
    assert [item["name"] for item in application.read("/brands", retailer="acme")["items"]] == ["ACME", "Zeta"]
    for name in application.read("/brands")["items"]:
        assert len(application.read("/offers", brand=name["name"])["items"]) == name["offers"]
    cache.clear()


def test_offers_are_looked_up_by_number(application, shop):
    other = catalog.source(kind="DIRECT", name="other")
    put(shop, "Hammer", "5", sku="H1", gtin="4006381333931", item_id="900")
    put(other, "Same hammer", "4", sku="H1", gtin="04006381333931")
    put(other, "Short", "4", gtin="00012345678905", sku="12345678905")
    hidden = catalog.source(kind="AFFILIATE_FEED")
    put(hidden, "Hidden", "1", sku="H1", gtin="4006381333931")
    both = ["Same hammer", "Hammer"]
    for gtin in ("4006381333931", "04006381333931", " 400-6381-333931 "):
        assert titles(application.read("/offers/lookup", gtin=gtin)) == both, gtin
    assert titles(application.read("/offers/lookup", gtin="012345678905")) == ["Short"]
    assert titles(application.read("/offers/lookup", sku="H1")) == both
    assert titles(application.read("/offers/lookup", sku="H1", source="other")) == ["Same hammer"]
    assert titles(application.read("/offers/lookup", sku="H1", retailer="acme")) == ["Hammer"]
    assert titles(application.read("/offers/lookup", item_id="900")) == ["Hammer"]
    assert titles(application.read("/offers/lookup", sku="h1")) == []


@pytest.mark.parametrize(
    "parameters", [{}, {"sku": "a", "gtin": "4006381333931"}, {"gtin": "4006381333930"}, {"gtin": "hammer"}]
)
def test_a_lookup_needs_exactly_one_valid_number(application, parameters):
    answer = application.get("/api/v1/offers/lookup", parameters)
    assert refused(answer) == (422, "INVALID_INPUT")
    assert [error["field"] for error in answer.json()["errors"]] == ["gtin"]


def test_offers_are_filtered_by_retailer_and_source(application, shop):
    other = catalog.source(kind="DIRECT")
    put(shop, "Mine", "5"), put(other, "Theirs", "5")
    assert titles(application.read("/offers", retailer=str(shop.retailer_id))) == ["Mine"]
    assert titles(application.read("/offers", source=str(other.pk))) == ["Theirs"]
    assert titles(application.read("/offers", source=str(uuid7()))) == []


@pytest.mark.parametrize(
    "order", [{"sort": "newest"}, {"sort": "price"}, {"sort": "-price"}, {"sort": "relevance", "q": "thing"}]
)
def test_following_the_cursors_gives_every_offer_once_in_order(application, shop, order):
    for number in range(11):
        # Offers of equal price or rank must neither repeat nor be lost at the edge of a page.
        put(shop, f"thing {'thing ' * (number % 3)}{number}", str(5 + number // 4))
    wanted = {**order, "currency": "USD"}
    whole = titles(application.read("/offers", **wanted))
    assert len(whole) == 11
    followed, cursor, pages = [], "", 0
    while cursor is not None:
        page = application.read("/offers", **wanted, page_size=3, **({"cursor": cursor} if cursor else {}))
        followed, cursor, pages = [*followed, *titles(page)], page["next_cursor"], pages + 1
    assert followed == whole
    assert pages == 4


def test_a_page_that_ends_with_the_last_offer_has_no_cursor(application, shop):
    put(shop, "a", "5"), put(shop, "b", "5")
    assert application.read("/offers", page_size=2)["next_cursor"] is None


@pytest.mark.parametrize("other", [{"q": "b"}, {"currency": "EUR"}, {"sort": "-price"}, {"max_price": "9"}])
def test_a_cursor_of_another_search_is_refused(application, shop, other):
    put(shop, "a", "5"), put(shop, "a b", "6")
    wanted = {"q": "a", "currency": "USD", "sort": "price", "page_size": 1}
    cursor = application.read("/offers", **wanted)["next_cursor"]
    assert titles(application.read("/offers", **{**wanted, "page_size": 50}, cursor=cursor)) == ["a b"]
    answer = application.get("/api/v1/offers", {**wanted, **other, "cursor": cursor})
    assert refused(answer) == (422, "INVALID_CURSOR")


@pytest.mark.parametrize("rank", ["1E+38", "-1E+400", "1E-400", "NaN", "Infinity"])
def test_a_cursor_with_an_impossible_rank_is_refused(application, shop, rank):
    put(shop, "red shirt", "5"), put(shop, "blue shirt", "6")
    wanted = {"q": "shirt", "page_size": 1}
    mark, _, product = cursors.decode(application.read("/offers", **wanted)["next_cursor"], str, str, int)
    answer = application.get("/api/v1/offers", {**wanted, "cursor": cursors.encode(mark, rank, product)})
    assert refused(answer) == (422, "INVALID_CURSOR")


@pytest.mark.parametrize(
    ("parameters", "code", "field"),
    [
        ({"sort": "price"}, "INVALID_INPUT", "currency"),
        ({"sort": "relevance"}, "INVALID_INPUT", "text"),
        ({"sort": "cheapest"}, "INVALID_INPUT", "sort"),
        ({"min_price": "5"}, "INVALID_INPUT", "currency"),
        ({"currency": "USD", "min_price": "-1"}, "INVALID_INPUT", "min_price"),
        ({"currency": "USD", "max_price": "NaN"}, "INVALID_INPUT", "max_price"),
        ({"currency": "usd"}, "INVALID_INPUT", "currency"),
        ({"currency": "ABC"}, "INVALID_INPUT", "ISO 4217"),
        ({"page_size": "101"}, "INVALID_INPUT", "page_size"),
        ({"page_size": "0"}, "INVALID_INPUT", "page_size"),
        ({"in_stock": "maybe"}, "INVALID_INPUT", "in_stock"),
        ({"retailer": "acme"}, "INVALID_INPUT", "retailer"),
        ({"q": "x" * 201}, "INVALID_INPUT", "q"),
        ({"q": "\x00"}, "INVALID_INPUT", "q"),
        ({"q": "!!!"}, "INVALID_INPUT", "word"),
        ({"brnad": "Acme"}, "INVALID_INPUT", "brand"),
        ({"cursor": "nonsense"}, "INVALID_CURSOR", "cursor"),
        ({"cursor": "WyJwcmljZSIsIk5hTiIsMl0", "sort": "price", "currency": "USD"}, "INVALID_CURSOR", "cursor"),
        ({"cursor": "WyJwcmljZSIsIjIuNSIsMl0"}, "INVALID_CURSOR", "cursor"),
    ],
)
def test_an_invalid_search_is_refused_with_the_field(application, parameters, code, field):
    answer = application.get("/api/v1/offers", parameters)
    assert refused(answer) == (422, code)
    assert field in answer.json()["detail"]


@pytest.mark.parametrize(
    ("field", "value"), [("q", "!!!"), ("min_price", "5"), ("max_price", "5"), ("currency", "ABC")]
)
def test_an_error_names_the_parameter(application, field, value):
    [wrong] = application.get("/api/v1/offers", {field: value}).json()["errors"]
    assert wrong["field"] == field


def test_a_history_is_newest_first_and_can_be_cut(application, shop):
    number = put(shop, "Hammer", "5")
    early = catalog.now() - dt.timedelta(days=3)
    catalog.price(shop, number, "4", observed_at=early, original_amount="6")
    path = f"/offers/{shop.pk}.{number}/history"
    points = application.read(path)["items"]
    assert [(point["amount"], point["original_amount"]) for point in points] == [("5.00", None), ("4.00", "6.00")]
    since = (early + dt.timedelta(days=1)).isoformat()
    assert [point["amount"] for point in application.read(path, since=since)["items"]] == ["5.00"]
    assert len(application.read(path, limit=1)["items"]) == 1
    assert len(application.read(path, since="0998-08-28T04:17:40-18:05")["items"]) == 2, "any offset is understood"
    for moment in ("2026-01-01T00:00:00", "0001-01-01T00:00:00%2B05:00", "9999-12-31T23:59:59-05:00"):
        assert refused(application.get(f"/api/v1{path}?since={moment}")) == (422, "INVALID_INPUT")


def test_a_product_is_compared_across_retailers_cheapest_first(application, shop):
    other = catalog.source(kind="DIRECT")
    product, dear, cheap = uuid7(), put(shop, "Hammer", "7"), put(other, "Hammer", "6")
    hidden = put(catalog.source(), "Hammer", "1")
    catalog.insert("products", id=product, title="Hammer")
    for source, number in ((shop.pk, dear), (other.pk, cheap), (None, hidden)):
        owner = source or catalog.fetch("SELECT source_id FROM source_products WHERE id = %s", hidden)[0][0]
        catalog.insert(
            "product_links", source_id=owner, source_product_id=number, product_id=product, status="LINKED",
            match_type="MANUAL",
        )  # fmt: skip
    found = application.read(f"/products/{product}/offers")["items"]
    assert [(offer["amount"], offer["product_id"]) for offer in found] == [
        ("6.00", str(product)),
        ("7.00", str(product)),
    ]
    assert refused(application.get(f"/api/v1/products/{uuid7()}/offers")) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/offers/abc", "/offers/{source}.", "/offers/{source}.0", "/offers/{source}.99"])
def test_an_unknown_offer_is_not_found(application, shop, path):
    answer = application.get("/api/v1" + path.format(source=shop.pk))
    assert refused(answer) == (404, "NOT_FOUND")
    assert "`harvester" not in answer.json()["detail"], "applications have no command line"


def test_a_page_costs_three_statements_however_long_it_is(application, shop):
    for number in range(30):
        put(shop, f"thing {number}", "5")
    application.read("/offers")
    with CaptureQueriesContext(connection) as asked:
        application.read("/offers", q="thing", page_size=30)
    assert len(asked) <= 3, [query["sql"][:80] for query in asked]
