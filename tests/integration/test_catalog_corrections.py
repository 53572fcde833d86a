"""Corrections change how prices are read, at once and only there; the facts stay."""

import datetime as dt
import re
from decimal import Decimal

import pytest
from tests.support import catalog
from tests.support.catalog import audited, details, fetch, hours

from harvester.catalog import correction_previews, corrections, ignored_runs, offers, visibility_reasons
from harvester.catalog.models import PriceCorrection, Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.ids import uuid7

ANN = Actor(kind="person", id="user:1", name="ann")
MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shop():
    return catalog.retailer()


@pytest.fixture
def feed(shop):
    return catalog.source(shop)


def shown(source):
    found = fetch("SELECT product_id, amount FROM offers WHERE source_id = %s ORDER BY product_id", source.pk)
    return {product: f"{amount:.2f}" for product, amount in found}


def correct(action="IGNORE", **values):
    return corrections.create(ANN, action=action, reason="prices in cents", **values)


def test_each_scope_reaches_its_prices_and_no_others(shop, feed):
    run = catalog.run(feed)
    sibling = catalog.source(shop)
    stranger = catalog.source()
    first, second = catalog.offer(feed, "10"), catalog.offer(feed, "20", run_no=run.no)
    catalog.offer(sibling, "30"), catalog.offer(stranger, "40")
    twice = {"action": "MULTIPLIER", "multiplier": 2}
    reached = {
        "PRODUCT": ({"source_id": feed.pk, "product_id": first}, ["20.00", "20.00", "30.00", "40.00"]),
        "RUN": ({"source_id": feed.pk, "run_no": run.no}, ["10.00", "40.00", "30.00", "40.00"]),
        "SOURCE": ({"source_id": feed.pk}, ["20.00", "40.00", "30.00", "40.00"]),
        "RETAILER": ({"retailer_id": shop.pk}, ["20.00", "40.00", "60.00", "40.00"]),
    }
    for scope, (named, expected) in reached.items():
        made = correct(scope=scope, **twice, **named)
        found = [amount for source in (feed, sibling, stranger) for amount in shown(source).values()]
        assert found == expected, scope
        assert not offers.differences()
        corrections.revoke(ANN, made.pk)
        assert shown(feed) == {first: "10.00", second: "20.00"}
    assert not offers.differences()


def test_ignoring_a_price_shows_the_one_before_it_and_without_one_the_offer_goes(feed):
    product = catalog.product(feed)
    catalog.price(feed, product, "10", observed_at=catalog.now() - hours(2))
    catalog.price(feed, product, "1000", observed_at=catalog.now() - hours(1))
    offers.recompute(feed.pk, [product])
    middle = catalog.now() - hours(1.5)
    late = correct(scope="SOURCE", source_id=feed.pk, observed_from=middle)
    assert shown(feed) == {product: "10.00"}
    early = correct(scope="SOURCE", source_id=feed.pk, observed_to=middle)
    assert shown(feed) == {}
    corrections.revoke(ANN, late.pk)
    assert shown(feed) == {product: "1000.00"}
    corrections.revoke(ANN, early.pk)
    assert not offers.differences()
    assert fetch("SELECT count(*) FROM prices") == [(2,)]


@pytest.mark.parametrize(("amount", "multiplier"), [("0.04", "0.01"), ("9999999999.99", "100")])
def test_a_price_that_a_multiplier_leaves_nothing_of_or_makes_too_large_is_not_shown(feed, amount, multiplier):
    odd, usual = catalog.offer(feed, amount), catalog.offer(feed, "40")
    made = correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier=multiplier)
    assert list(shown(feed)) == [usual]
    assert not offers.differences()
    [why] = visibility_reasons.standing(feed.pk, odd).whys
    assert (why.state, why.correction_id) == (visibility_reasons.State.HIDDEN_BY_CORRECTION, made.pk)
    corrections.revoke(ANN, made.pk)
    assert shown(feed) == {odd: amount, usual: "40.00"}


def test_an_original_price_that_becomes_too_large_is_left_out(feed):
    number = catalog.product(feed)
    catalog.price(feed, number, "10", original_amount="9999999999.99")
    catalog.recompute_offers(feed, [number])
    correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier=100)
    assert fetch("SELECT amount, original_amount FROM offers") == [(1000, None)]


def test_ignore_wins_over_a_multiplier_and_multipliers_multiply(feed):
    product = catalog.offer(feed, "10.50")
    for factor in ("0.5", "3"):
        correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier=Decimal(factor))
    assert shown(feed) == {product: "15.75"}
    correct(scope="PRODUCT", source_id=feed.pk, product_id=product)
    assert shown(feed) == {}


def test_a_correction_leaves_what_the_next_run_compares_with(feed):
    catalog.offer(feed, "10")
    query = "SELECT last_signature, last_amount, last_currency, last_priced_at, seen_until FROM offers"
    before = fetch(query)
    correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier=100)
    assert fetch(query) == before
    assert before[0][0] is not None


@pytest.mark.parametrize("missing", [False, True])
def test_an_offer_that_comes_back_is_as_present_as_it_was(feed, missing):
    catalog.run(feed)
    presence = {"seen_until": catalog.now() - hours(99), "absence_accepted": True} if missing else {}
    catalog.offer(feed, "10", **presence)
    query = "SELECT seen_until, absence_accepted FROM offers"
    before = fetch(query)
    made = correct(scope="SOURCE", source_id=feed.pk)
    assert fetch(query) == []
    corrections.revoke(ANN, made.pk)
    assert fetch(query) == before


def test_an_offer_that_comes_back_after_a_newer_run_was_seen_no_longer_than_is_known(feed):
    first = catalog.run(feed)
    moment = catalog.now() - hours(9)
    Source.objects.filter(pk=feed.pk).update(last_promoted_at=moment)
    missed, seen = catalog.offer(feed, "10", run_no=first.no), catalog.offer(feed, "20", run_no=first.no)
    made = correct(scope="SOURCE", source_id=feed.pk)
    second = catalog.run(feed)
    catalog.price(feed, seen, "21", run_no=second.no)
    Source.objects.filter(pk=feed.pk).update(last_promoted_at=catalog.now())
    corrections.revoke(ANN, made.pk)
    [[until]] = fetch("SELECT seen_until FROM offers WHERE product_id = %s", missed)
    assert moment <= until < second.finished_at
    assert fetch("SELECT seen_until FROM offers WHERE product_id = %s", seen) == [(None,)]


def test_corrections_are_audited_and_never_deleted(feed):
    catalog.offer(feed)
    made = correct(scope="SOURCE", source_id=feed.pk)
    gone = corrections.revoke(ANN, made.pk)
    assert (gone.created_by, gone.revoked_by) == ("user:1", "user:1")
    assert [verb for verb, _, _ in audited()] == ["CORRECTION_CREATED", "CORRECTION_REVOKED"]
    assert details("CORRECTION_CREATED")[0]["products"] == 1
    with pytest.raises(Conflict, match="already revoked"):
        corrections.revoke(ANN, made.pk)
    with pytest.raises(NotFound):
        corrections.revoke(ANN, uuid7())
    assert PriceCorrection.objects.count() == 1


BAD = {
    "scope": {"scope": "SHOP"},
    "action": {"action": "HIDE"},
    "reason": {"reason": "  "},
    "multiplier": {"action": "MULTIPLIER", "multiplier": 0},
    "multiplier ": {"action": "MULTIPLIER", "multiplier": None},
    "multiplier  ": {"action": "MULTIPLIER", "multiplier": "1.1234567"},
    "multiplier   ": {"multiplier": 2},
    "observed_from": {"observed_from": "yesterday"},
    "observed_to": {"observed_from": MOMENT, "observed_to": MOMENT},
    "run_no": {"run_no": 7},
    "product_id": {"scope": "PRODUCT"},
}


@pytest.mark.parametrize("field", BAD)
def test_a_correction_that_makes_no_sense_is_refused_with_its_field(feed, field):
    values = {"scope": "SOURCE", "action": "IGNORE", "reason": "x", "source_id": feed.pk, **BAD[field]}
    with pytest.raises(InvalidInput, match=f"^{field.strip()}: "):
        corrections.create(ANN, **values)
    assert not audited()


def test_a_correction_of_nothing_that_is_known_is_refused(feed):
    with pytest.raises(NotFound, match="product_id"):
        correct(scope="PRODUCT", source_id=feed.pk, product_id=1)
    with pytest.raises(NotFound, match="run_no"):
        correct(scope="RUN", source_id=feed.pk, run_no=catalog.run(catalog.source()).no)
    with pytest.raises(NotFound, match="harvester source list"):
        correct(scope="SOURCE", source_id=uuid7())
    with pytest.raises(NotFound, match="harvester retailer list"):
        correct(scope="RETAILER", retailer_id=uuid7())


# For the prices that a correction is made for, and no others.


def price(feed, product, amount, ago, run=None, **values):
    catalog.price(feed, product, amount, observed_at=catalog.now() - hours(ago), run_no=run.no if run else 0, **values)
    catalog.recompute_offers(feed, [product])


def history(feed, product):
    """Amounts as they are read, oldest first."""
    found = fetch("SELECT amount FROM readable_prices WHERE product_id = %s ORDER BY observed_at", product)
    return [f"{amount:.2f}" for (amount,) in found]


def test_by_default_a_correction_ends_with_the_next_different_price_and_leaves_older_ones(feed):
    """The story of the issue: ten times the price, corrected; then the partner fixes the file."""
    product = catalog.product(feed)
    price(feed, product, "12.00", 9)
    for ago in (8, 7):
        price(feed, product, "135.00", ago)
    made = correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier="0.1")
    assert made.extent == "OBSERVED"
    assert history(feed, product) == ["12.00", "13.50", "13.50"]
    price(feed, product, "135.00", 6, in_stock=False)
    assert shown(feed) == {product: "13.50"}, "the same price, in another file"
    price(feed, product, "13.50", 5)
    price(feed, product, "135.00", 4)
    assert history(feed, product) == ["12.00", "13.50", "13.50", "13.50", "13.50", "135.00"], "it has ended"
    assert not offers.differences()
    corrections.revoke(ANN, made.pk)
    assert history(feed, product) == ["12.00", "135.00", "135.00", "135.00", "13.50", "135.00"]
    assert not offers.differences()


def test_an_earlier_period_of_the_same_price_is_left_alone(feed):
    """135.00 was right once; between then and the wrong 135.00 the price was another."""
    product = catalog.product(feed)
    for amount, ago in (("135.00", 10), ("12.00", 9), ("135.00", 8)):
        price(feed, product, amount, ago)
    correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier="0.1")
    assert history(feed, product) == ["135.00", "12.00", "13.50"]
    assert not offers.differences()


@pytest.mark.parametrize(
    ("window", "read"),
    [
        ({"extent": "WINDOW"}, ["1.20", "13.50", "1.35"]),
        ({"observed_from": 8.5}, ["12.00", "13.50", "1.35"]),
        ({"observed_from": 8.5, "observed_to": 7}, ["12.00", "13.50", "13.50"]),
    ],
)
def test_a_window_is_an_explicit_choice(feed, window, read):
    product = catalog.product(feed)
    price(feed, product, "12.00", 9)
    price(feed, product, "135.00", 8)
    moments = {name: catalog.now() - hours(ago) for name, ago in window.items() if name != "extent"}
    made = correct("MULTIPLIER", scope="SOURCE", source_id=feed.pk, multiplier="0.1", **{**window, **moments})
    assert made.extent == "WINDOW"
    price(feed, product, "13.50", 6)
    assert history(feed, product) == read
    assert not offers.differences()


def test_a_correction_that_was_stored_before_keeps_its_window(feed):
    product = catalog.product(feed)
    price(feed, product, "135.00", 8)
    columns = "id, scope, source_id, action, multiplier, reason, created_by, extent"
    values = "gen_random_uuid(), 'SOURCE', %s, 'MULTIPLIER', 0.1, 'x', 'x', 'WINDOW'"
    fetch(f"INSERT INTO price_corrections ({columns}) VALUES ({values})", feed.pk)
    price(feed, product, "13.50", 6)
    assert history(feed, product) == ["13.50", "1.35"]


def test_a_correction_goes_on_when_the_run_that_ended_it_is_ignored(feed):
    product, run = catalog.product(feed), catalog.run(feed)
    price(feed, product, "135.00", 8)
    correct("MULTIPLIER", scope="PRODUCT", source_id=feed.pk, product_id=product, multiplier="0.1")
    price(feed, product, "99.00", 6, run)
    assert shown(feed) == {product: "99.00"}
    ignored_runs.ignore_run(ANN, run.pk, "wrong")
    assert shown(feed) == {product: "13.50"}
    assert not offers.differences()
    ignored_runs.undo_ignore(ANN, run.pk)
    assert shown(feed) == {product: "99.00"}


def test_a_price_of_another_kind_of_run_neither_ends_a_correction_nor_is_corrected(feed):
    product = catalog.product(feed)
    price(feed, product, "135.00", 8)
    correct("MULTIPLIER", scope="PRODUCT", source_id=feed.pk, product_id=product, multiplier="0.1")
    price(feed, product, "135.00", 7, run_type="SCRAPE")
    price(feed, product, "14.00", 6, run_type="SCRAPE")
    price(feed, product, "135.00", 5)
    assert history(feed, product) == ["13.50", "135.00", "14.00", "13.50"]
    assert not offers.differences()


def test_a_correction_of_a_run_follows_its_prices_into_later_runs(feed):
    run = catalog.run(feed)
    wrong, fixed = catalog.product(feed), catalog.product(feed)
    price(feed, wrong, "135.00", 9)
    for product in (wrong, fixed):
        price(feed, product, "135.00", 8, run)
    price(feed, wrong, "135.00", 7)
    price(feed, fixed, "14.00", 7)
    correct("MULTIPLIER", scope="RUN", source_id=feed.pk, run_no=run.no, multiplier="0.1")
    assert history(feed, wrong) == ["135.00", "13.50", "13.50"], "older prices are not those of the run"
    assert history(feed, fixed) == ["13.50", "14.00"]
    assert not offers.differences()


def test_a_price_is_set_and_ignoring_it_wins(feed):
    product = catalog.product(feed)
    price(feed, product, "135.00", 8, original_amount="150.00")
    named = {"scope": "PRODUCT", "source_id": feed.pk, "product_id": product}
    correct("MULTIPLIER", multiplier=3, **named)
    correct("SET", set_amount="13.49", set_currency="USD", **named)
    correct("SET", set_amount="13.50", set_currency="USD", **named)
    assert fetch("SELECT amount, original_amount FROM offers") == [(Decimal("13.50"), Decimal("150.00"))]
    price(feed, product, "14.00", 6)
    assert history(feed, product) == ["13.50", "14.00"]
    assert not offers.differences()
    correct(**named)
    assert shown(feed) == {product: "13.50"}, "the price before the one that is ignored"


def test_an_original_price_below_a_set_one_is_left_out(feed):
    product = catalog.product(feed)
    price(feed, product, "1.00", 8, original_amount="2.00")
    correct("SET", scope="PRODUCT", source_id=feed.pk, product_id=product, set_amount="99", set_currency="USD")
    assert fetch("SELECT amount, original_amount FROM offers") == [(99, None)]


SET_BADLY = {
    "set_currency": {"set_amount": "1", "set_currency": "EUR"},
    "set_currency ": {"set_amount": "1"},
    "set_currency  ": {"set_amount": "1", "set_currency": "dollars"},
    "set_amount": {"set_amount": "0", "set_currency": "USD"},
    "set_amount ": {"set_amount": "1.00001", "set_currency": "USD"},
    "set_amount  ": {"set_currency": "USD"},
    "scope": {"set_amount": "1", "set_currency": "USD", "scope": "SOURCE", "product_id": None},
    "set_amount   ": {"set_amount": "1", "action": "IGNORE"},
    "extent": {"set_amount": "1", "set_currency": "USD", "extent": "OBSERVED", "observed_from": MOMENT},
}


@pytest.mark.parametrize("field", SET_BADLY)
def test_a_price_that_cannot_be_set_is_refused_with_its_field(feed, field):
    named = {"scope": "PRODUCT", "source_id": feed.pk, "product_id": catalog.offer(feed, "10")}
    with pytest.raises(InvalidInput, match=f"^{field.strip()}: "):
        corrections.create(ANN, **{"action": "SET", "reason": "x", **named, **SET_BADLY[field]})


@pytest.mark.parametrize(
    ("amount", "currency", "message"),
    [
        ("5.5555", "USD", "5.5555 is not a price in USD, which has at most 2 decimals."),
        ("5.555", "EUR", "5.555 is not a price in EUR, which has at most 2 decimals."),
        ("12.5", "JPY", "12.5 is not a price in JPY, which has no decimals."),
        ("1.2345", "KWD", "1.2345 is not a price in KWD, which has at most 3 decimals."),
    ],
)
def test_a_price_is_set_to_an_amount_that_its_currency_can_have(feed, amount, currency, message):
    product = catalog.product(feed)
    price(feed, product, "135", 8, currency=currency)
    named = {"scope": "PRODUCT", "source_id": feed.pk, "product_id": product, "set_currency": currency}
    with pytest.raises(InvalidInput, match=f"^set_amount: {re.escape(message)}$"):
        correct("SET", set_amount=amount, **named)
    assert shown(feed) == {product: "135.00"}
    fits = {"JPY": "12.000", "KWD": "1.2340"}.get(currency, "5.5500")
    correct("SET", set_amount=fits, **named)
    assert fetch("SELECT amount, currency FROM offers") == [(Decimal(fits), currency)]


def test_a_product_without_a_shown_price_has_none_to_correct(feed):
    product = catalog.product(feed)
    named = {"scope": "PRODUCT", "source_id": feed.pk, "product_id": product}
    with pytest.raises(Conflict, match="has no visible price"):
        correct(**named)
    correct(extent="WINDOW", **named)


def test_a_correction_expects_the_prices_that_were_looked_at(feed):
    product, other = catalog.product(feed), catalog.product(feed)
    price(feed, product, "135.00", 8)
    given = {"scope": "SOURCE", "source_id": feed.pk, "action": "MULTIPLIER", "multiplier": "0.1", "reason": "x"}
    preview = correction_previews.preview(**given)
    price(feed, product, "135.00", 7)
    assert correction_previews.preview(**given).state == preview.state, "the same price again"
    price(feed, other, "5.00", 6)
    with pytest.raises(Conflict, match="Prices have changed since the preview"):
        corrections.create(ANN, expected=preview.state, **given)
    assert not PriceCorrection.objects.exists()
    corrections.create(ANN, expected=correction_previews.preview(**given).state, **given)
