"""`harvester offers list`: every offer at the command line, with why consumers see it or not."""

import shlex

import pytest
from tests.support import catalog
from tests.support.catalog import hours
from tests.support.command import harvester as process
from tests.support.commands_inside import harvester

from harvester.catalog import offers

pytestmark = pytest.mark.usefixtures("database", "tools")


def put(source, title, amount, *, seen_until=None, product=None, **priced):
    number = catalog.product(source, title=title, **(product or {}))
    catalog.price(source, number, amount, **priced)
    offers.recompute(source.pk, [number])
    catalog.fetch("UPDATE offers SET seen_until = %s WHERE product_id = %s", seen_until, number)


@pytest.fixture
def shop():
    return catalog.source(
        catalog.retailer("Shop", "shop.example"), name="Shop feed", is_display_primary=True, expiry_hours=48
    )


@pytest.fixture
def tools(shop):
    hidden = catalog.source(shop.retailer, name="Other feed")
    put(shop, "Red hammer", "30", product={"brand": "Acme", "category": "Tools"})
    put(shop, "Old hammer", "20", seen_until=catalog.now() - hours(99))
    put(shop, "Saw", "10", in_stock=False)
    put(hidden, "Hidden saw", "5", product={"gtin": "4006381333931"})
    catalog.product(shop, title="Promised")


def titles(*words):
    return [offer["title"] for offer in listed(*words)["offers"]]


def listed(*words):
    ran = harvester("offers", "list", *words, "--json")
    assert ran.code == 0, ran.err
    return ran.json


CASES = {
    "": ["Hidden saw", "Saw", "Old hammer", "Red hammer"],
    "--state visible": ["Saw", "Red hammer"],
    "--state EXPIRED": ["Old hammer"],
    "--state SOURCE_NOT_SHOWN": ["Hidden saw"],
    "--state WITHOUT_OFFER --retailer shop.example": ["Promised"],
    "hammer --sort newest": ["Old hammer", "Red hammer"],
    "4006381333931": ["Hidden saw"],
    "--source 'Other feed'": ["Hidden saw"],
    "--brand acme": ["Red hammer"],
    "--category tools": ["Red hammer"],
    "--out-of-stock": ["Saw"],
    "--currency usd --min 10 --max 20 --sort -price": ["Old hammer", "Saw"],
}


def test_filters_leave_what_fits():
    found = {case: titles(*shlex.split(case)) for case in CASES}
    assert found == CASES


def test_each_offer_says_why_consumers_do_not_see_it():
    found = {offer["title"]: (offer["state"], offer["why"]) for offer in listed()["offers"]}
    assert found["Red hammer"] == ("VISIBLE", "Consumers see it.")
    assert found["Hidden saw"] == (
        "SOURCE_NOT_SHOWN",
        "Other feed is not the display primary of Shop; Shop feed is.",
    )
    assert found["Old hammer"][0] == "EXPIRED"
    shown = process("offers", "list").out
    assert "EXPIRED since 2 d ago" in shown
    assert shown.count("Other feed is not the display primary") == 1
    assert "Consumers see it." not in shown
    [promised] = listed("--state", "WITHOUT_OFFER", "--source", "Shop feed")["offers"]
    assert (promised["state"], promised["amount"]) == ("NEVER_PROMOTED", None)


def test_pages_are_followed_by_the_place_that_each_one_names():
    first = listed("--size", "3", "--sort", "price", "--currency", "USD")
    assert [offer["title"] for offer in first["offers"]] == ["Hidden saw", "Saw", "Old hammer"]
    rest = ["--size", "3", "--sort", "price", "--currency", "USD", "--after", first["next"]]
    assert titles(*rest) == ["Red hammer"]
    assert harvester("offers", "list", "--size", "3").err.startswith("There are more: --after ")
    assert harvester("offers", "list", "--brand", "nobody").out == "There are no such offers.\n"


BAD = {
    "unknown state": (["--state", "lost"], "'without_offer'"),
    "all products without an offer": (
        ["--state", "WITHOUT_OFFER"],
        "--state: products without an offer are listed for one",
    ),
    "no place": (["--after", "the end"], "--after: not a place in this list; start"),
    "too large a page": (["--size", "101"], "--size: use 1 to 100"),
    "no amount": (["--currency", "USD", "--min", "cheap"], "like 19.99"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_looked_for_is_refused_with_what_to_do(case):
    words, hint = BAD[case]
    ran = harvester("offers", "list", *words)
    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
