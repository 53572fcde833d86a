"""`harvester corrections|review ...`: what people decide about prices and products, at the command line."""

import pytest
from tests.support import catalog
from tests.support.catalog import audited
from tests.support.commands_inside import harvester

from harvester.catalog import offers

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shop():
    return catalog.source(name="Shop feed", is_display_primary=True, expiry_hours=48)


@pytest.fixture
def hammer(shop):
    number = catalog.product(shop, title="Red hammer")
    catalog.price(shop, number, "19.9")
    offers.recompute(shop.pk, [number])
    return number


def test_a_correction_is_previewed_made_listed_and_revoked(shop, hammer):
    words = (
        "corrections",
        "add",
        "--source",
        "Shop feed",
        "--product",
        hammer,
        "--multiply",
        "0.5",
        "--reason",
        "twice",
    )
    result = harvester(*words, "--dry-run", "--json").json
    assert [result["offers"], result["samples"][0]["before"], result["samples"][0]["after"]] == [1, "19.9", "9.95"]
    assert "19.90 USD   9.95 USD" in harvester(*words, "--dry-run").out
    assert audited() == []
    made = harvester(*words, "--json").json
    assert "offers show an affected price" in harvester(*words, "--dry-run").out
    assert "twice" in harvester("corrections", "list").out
    assert harvester("corrections", "revoke", made["id"]).code == 0
    assert harvester("corrections", "revoke", made["id"]).code == 4
    assert harvester("corrections", "revoke", "nothing").code == 3
    assert harvester("corrections", "list", "--json").json == {"corrections": []}
    assert [verb for verb, _, _ in audited()] == ["CORRECTION_CREATED", "CORRECTION_REVOKED"]


@pytest.mark.parametrize("words", [[], ["--ignore", "--multiply", "0.5"]])
def test_a_correction_does_one_thing_with_the_prices(shop, words):
    ran = harvester("corrections", "add", "--source", "Shop feed", "--reason", "wrong", *words)
    assert ran.code == 2
    assert "exactly one of --ignore, --multiply and --set" in ran.err


def test_a_price_is_set_in_its_currency(shop, hammer):
    words = ("corrections", "add", "--source", "Shop feed", "--product", hammer, "--set", "12.5", "--reason", "typed")
    refused = harvester(*words, "--currency", "EUR")
    assert (refused.code, "--currency: the price is 19.9 USD, so it can only be set in USD" in refused.err) == (2, True)
    result = harvester(*words, "--currency", "USD", "--dry-run").out
    assert "history included: 1 since" in result
    assert "For each product it ends with the next different price" in " ".join(result.split())
    made = harvester(*words, "--currency", "USD", "--json").json
    assert [made["extent"], made["set_amount"], made["set_currency"]] == ["OBSERVED", "12.5", "USD"]
    assert "set to 12.50 USD" in " ".join(harvester("corrections", "list").out.split())


def test_an_open_ended_correction_is_asked_for_and_says_what_follows(shop, hammer):
    words = ("corrections", "add", "--source", "Shop feed", "--multiply", "0.1", "--reason", "in dimes")
    assert harvester(*words, "--dry-run", "--json").json["future"].startswith("For each product it ends")
    result = harvester(*words, "--open-ended", "--dry-run", "--json").json
    assert result["future"].endswith("if the partner then sends 1.99 USD, consumers see 0.20.")
    assert harvester(*words, "--open-ended", "--json").json["extent"] == "WINDOW"


def test_a_hidden_offer_says_why_it_is_not_there(shop, hammer):
    harvester("corrections", "add", "--source", "Shop feed", "--ignore", "--reason", "the file of another shop")
    ran = harvester("offers", "show", "Shop feed", hammer)
    assert ran.code == 3
    assert "the file of another shop" in ran.err


def test_the_review_queue_is_worked_off(shop, hammer):
    numbers = [hammer, catalog.product(shop, title="Gift card")]
    for number in numbers:
        catalog.insert("product_links", source_id=shop.pk, source_product_id=number, status="NEEDS_REVIEW")
    assert [one["product_id"] for one in harvester("review", "list", "--json").json["products"]] == numbers
    made = harvester("review", "create", "Shop feed", hammer, "--json").json["product"]
    assert [one["id"] for one in harvester("review", "find", "hammer", "--json").json["products"]] == [made]
    assert harvester("review", "skip", "Shop feed", numbers[1], "--reason", "a gift card").code == 0
    assert harvester("review", "link", "Shop feed", numbers[1], made).code == 4
    assert harvester("review", "reopen", "Shop feed", numbers[1]).code == 0
    assert harvester("review", "link", "Shop feed", numbers[1], made).code == 0
    assert "Nothing to review" in harvester("review", "list").out
