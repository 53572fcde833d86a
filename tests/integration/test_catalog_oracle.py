"""Offers equal the slow rule over prices, row for row, and whatever differs is found."""

import pytest
from structlog.testing import capture_logs
from tests.support import catalog
from tests.support.catalog import fetch, hours
from tests.support.jobs import job
from tests.support.workers import run_until_idle

from harvester.catalog import offers
from harvester.engine.enqueue import enqueue
from harvester.engine.registry import all_periodic
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def feed():
    return catalog.source()


@pytest.fixture
def product(feed):
    """With an older price, and the offer that the newest one makes."""
    made = catalog.product(feed, brand="Acme", category="Tools")
    catalog.price(feed, made, "12", observed_at=catalog.now() - hours(5))
    catalog.price(feed, made, "10", original_amount="15", run_no=catalog.run(feed).no)
    offers.recompute(feed.pk, [made])
    return made


WRONG = {
    "amount": "UPDATE offers SET amount = amount + 0.01",
    "currency": "UPDATE offers SET currency = 'EUR'",
    "original amount": "UPDATE offers SET original_amount = NULL",
    "stock": "UPDATE offers SET in_stock = NOT in_stock",
    "moment": "UPDATE offers SET observed_at = observed_at - interval '1 second'",
    "run": "UPDATE offers SET run_no = run_no + 1",
    "words": "UPDATE offer_words SET words = to_tsvector('simple', 'something else')",
    "title": "UPDATE source_products SET title = 'something else'",
    "compared amount": "UPDATE offers SET last_amount = 11",
    "compared currency": "UPDATE offers SET last_currency = NULL",
    "compared signature": "UPDATE offers SET last_signature = gen_random_uuid()",
    "missing": "DELETE FROM offers",
    "without a product": "DELETE FROM source_products",
    "without a price": "UPDATE offers SET product_id = product_id + 1",
    "ignored run": "UPDATE runs SET ignored_at = now()",
}


def test_recomputed_offers_differ_in_nothing(product):
    assert offers.differences() == []


@pytest.mark.parametrize("kind", WRONG)
def test_every_kind_of_wrong_offer_is_found(feed, product, kind):
    fetch(WRONG[kind])
    found = {number for _, number in offers.differences()}
    assert found == ({product, product + 1} if kind == "without a price" else {product})
    assert offers.differences(catalog.source().pk) == []


@pytest.mark.parametrize("kind", sorted(set(WRONG) - {"without a product", "title", "words", "compared signature"}))
def test_recompute_makes_it_right(feed, product, kind):
    fetch(WRONG[kind])
    offers.recompute(
        feed.pk,
        [product, product + 1],
        comparison=offers.Comparison.FORGOTTEN if kind == "ignored run" else offers.Comparison.AS_BEFORE,
    )
    assert offers.differences() == []


def test_a_signature_that_is_missing_is_no_difference(product):
    fetch("UPDATE offers SET last_signature = NULL")
    assert offers.differences() == []


def check():
    made = enqueue(offers.CHECK_OFFERS).job_id
    with capture_logs() as logs:
        run_until_idle(queues=("maintenance",))
    return job(made), [entry for entry in logs if entry["event"] == "OFFERS_DIFFER"]


def open_alerts():
    return fetch("SELECT key FROM alerts WHERE resolved_at IS NULL")


def test_the_nightly_check_reports_wrong_offers_and_their_end(feed, product):
    ended, logged = check()
    assert (ended.result, logged, open_alerts()) == ({"sources": 1, "wrong_offers": 0}, [], [])
    fetch("UPDATE offers SET amount = 99")
    ended, [logged] = check()
    assert ended.result == {"sources": 1, "wrong_offers": 1}
    assert (logged["log_level"], logged["products"]) == ("error", [product])
    assert open_alerts() == [(f"offers_differ:{feed.pk}",)]
    offers.recompute(feed.pk, [product])
    check()
    assert open_alerts() == []


def test_the_check_comes_every_night_and_looks_at_some_sources(product):
    for _ in range(offers.SOURCES_EACH_NIGHT + 2):
        catalog.source()
    assert check()[0].result["sources"] == offers.SOURCES_EACH_NIGHT
    assert "catalog.check_offers" in {entry.kind for entry in all_periodic().values()}
    assert Run.objects.count() == 1
