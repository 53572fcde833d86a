"""`harvester retailer|source|offers ...`: the catalog at the command line."""

import json
import re

import pytest
from tests.support import catalog
from tests.support.catalog import audited, fetch, hours
from tests.support.command import harvester as process
from tests.support.commands_inside import harvester

from harvester.catalog import offers
from harvester.feeds.models import Feed

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shop():
    owner = catalog.retailer("Shop", "shop.example")
    return catalog.source(owner, name="Shop feed", is_display_primary=True, expiry_hours=48)


@pytest.fixture
def hammer(shop):
    number = catalog.product(shop, title="Red hammer", brand="Acme", url="https://shop.example/hammer")
    catalog.price(shop, number, "25", observed_at=catalog.now() - hours(30))
    catalog.price(shop, number, "19.9", original_amount=30)
    offers.recompute(shop.pk, [number])
    return number


def test_another_kind_shows_what_appears_before_it_is_saved():
    source = catalog.source(catalog.retailer(), "OTHER", name="Website")
    catalog.offer(source)
    words = ("source", "set", "Website", "--kind", "DIRECT")
    refused = harvester(*words)
    assert (refused.code, "Check the effect with --dry-run" in " ".join(refused.err.split())) == (
        2,
        True,
    )
    [side] = harvester(*words, "--dry-run", "--json").json["appearing"]
    assert (side["source"], side["offers"]) == ("Website", 1)
    assert harvester("source", "show", "Website", "--json").json["kind"] == "OTHER"
    assert harvester(*words, "--yes").code == 0
    assert harvester("source", "show", "Website", "--json").json["kind"] == "DIRECT"


def test_a_source_with_a_feed_cannot_be_set_to_direct():
    source = catalog.source(catalog.retailer(), "AFFILIATE_FEED", name="Feed source")
    Feed.objects.create(source=source, network="impact", created_by="test")
    refused = harvester("source", "set", "Feed source", "--kind", "DIRECT", "--yes")
    assert (refused.code, "has a feed, so it cannot become DIRECT" in " ".join(refused.err.split())) == (4, True)


def test_a_retailer_and_its_source_are_set_up_and_looked_at():
    steps = [
        ["retailer", "add", "Shop", "--website", "https://www.shop.example"],
        ["source", "add", "Shop feed", "--retailer", "shop.example", "--kind", "AFFILIATE_FEED", "--network", "impact"],
        ["source", "set", "Shop feed", "--upc-trusted", "--tracking-template", "https://go.example/?u={url}"],
        ["source", "primary", "Shop feed"],
        ["retailer", "set", "Shop", "--name", "The Shop"],
    ]
    for words in steps:
        ran = harvester(*words)
        assert ran.code == 0, ran.err
    assert [verb for verb, _, _ in audited()] == [
        "RETAILER_CREATED", "SOURCE_CREATED", "SOURCE_UPDATED", "DISPLAY_PRIMARY_SET", "RETAILER_UPDATED",
    ]  # fmt: skip
    assert fetch(
        "SELECT DISTINCT actor_id LIKE 'cli:%%' FROM audit_events",
    ) == [(True,)]
    shown = harvester("source", "show", "Shop feed", "--json").json
    assert (shown["retailer"], shown["affiliate_network"], shown["is_shown"]) == ("The Shop", "IMPACT", True)
    assert "yes (primary)" in process("source", "list", "--retailer", "shop.example").out
    assert "Shop feed" in harvester("retailer", "show", "The Shop").out
    assert harvester("source", "primary", "Shop feed", "--unset").out.endswith("of The Shop.\n")
    [listed] = process("retailer", "list", "--json").json["retailers"]
    assert (listed["domain"], listed["sources"][0]["is_display_primary"]) == ("shop.example", False)


def test_a_switch_of_the_primary_is_looked_at_before_it_is_made(shop, hammer):
    catalog.source(shop.retailer, name="Other feed")
    result = harvester("source", "primary", "Other feed", "--dry-run", "--json").json
    assert result == {
        "vanishing": [{"source": "Shop feed", "offers": 1, "is_more": False, "samples": ["Red hammer"]}],
        "appearing": [{"source": "Other feed", "offers": 0, "is_more": False, "samples": []}],
    }
    shown = harvester("source", "primary", "Shop feed", "--unset", "--dry-run").out
    assert "Red hammer" in shown
    assert "Nothing was changed." in shown
    assert fetch("SELECT name FROM sources WHERE is_display_primary") == [("Shop feed",)]
    assert audited() == []


def test_offers_are_found_shown_and_followed(shop, hammer):
    [found] = harvester("offers", "search", "hammer", "--currency", "usd", "--max", "20", "--json").json["offers"]
    assert (found["product_id"], found["amount"], found["tracking_url"]) == (
        hammer,
        "19.9",
        "https://shop.example/hammer",
    )
    listed = process("offers", "search")
    assert "Red hammer" in listed.out
    assert "19.90 USD" in listed.out
    shown = harvester("offers", "show", "Shop feed", hammer).out
    assert "see it" in shown
    assert re.search(r"original amount +30\.00\s", shown)
    assert re.search(r"in stock +yes\s", shown)
    assert re.search(r"observed at +\d{4}-\d\d-\d\d \d\d:\d\d UTC\s", shown)
    result = harvester("offers", "history", "Shop feed", hammer)
    assert "30.00" in result.out
    assert result.out.index("19.90 USD") < result.out.index("25.00 USD")
    since = (catalog.now() - hours(2)).isoformat()
    recent = harvester("offers", "history", "Shop feed", hammer, "--since", since, "--json").json
    assert [point["amount"] for point in recent["prices"]] == ["19.9"]


def test_an_offer_that_is_not_seen_says_why(shop, hammer):
    harvester("source", "primary", "Shop feed", "--unset")
    assert "is not the display primary" in harvester("offers", "show", "Shop feed", hammer).out
    assert "harvester source list" in harvester("offers", "search").out


BAD = {
    "unknown retailer": (["source", "add", "x", "--retailer", "nobody"], 3, "harvester retailer list"),
    "unknown offer": (["offers", "show", "Shop feed", "99999999"], 3, "harvester offers search"),
    "taken domain": (["retailer", "add", "x", "--website", "https://shop.example"], 4, "belongs to the retailer Shop"),
    "bad hours": (["source", "set", "Shop feed", "--max-hold-hours", "0"], 2, "from 1 to 720"),
    "no change": (["source", "set", "Shop feed"], 2, "--help"),
    "price without a currency": (["offers", "search", "--sort", "price"], 2, "choose a currency"),
    "no amount": (["offers", "search", "--currency", "USD", "--min", "cheap"], 2, "like 19.99"),
    "amount without a currency": (["offers", "search", "--min", "5"], 2, "error: --min: "),
    "page of no offers": (["offers", "search", "--size", "0"], 2, "error: --size: "),
    "history of nothing": (["offers", "history", "Shop feed", "1", "--limit", "0"], 2, "error: --limit: "),
    "number of no product": (["offers", "show", "Shop feed", "9" * 20], 2, "'PRODUCT'"),
    "no number": (["offers", "show", "Shop feed", "hammer"], 2, "integer. Try: harvester offers show --help"),
    "queue of nothing": (["review", "list", "--limit", "0"], 2, "error: --limit: "),
    "correction of nothing": (["corrections", "add", "--ignore", "--reason", "x"], 2, "--source or --retailer"),
    "correction by too much": (
        ["corrections", "add", "--source", "Shop feed", "--multiply", "1e9", "--reason", "x"],
        2,
        "error: --multiply: ",
    ),
    "no moment": (["offers", "history", "Shop feed", "1", "--since", "monday"], 2, "2026-01-31T12:00Z"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_refused_with_what_to_do(shop, case):
    words, code, hint = BAD[case]
    ran = harvester(*words)
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert hint in ran.err
    assert ran.err.count("\n") == 1
    assert not audited()


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_title_cannot_steer_the_terminal(shop, form):
    title = "Red\x1b[31m\x9b31m\x7f \u202ehammer"
    number = catalog.product(shop, title=title, url="https://shop.example/hammer")
    catalog.price(shop, number, "25")
    offers.recompute(shop.pk, [number])
    shown = harvester("offers", "search", "--source", "Shop feed", *form).out
    assert "Red" in shown
    assert not set("\x1b\x9b\x7f\u202e") & set(shown)
    assert not form or json.loads(shown)["offers"][0]["title"] == title
