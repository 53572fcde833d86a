"""Ignoring a promoted run hides its prices everywhere; undoing it never shows an older price over a newer one."""

import pytest
from tests.support import catalog
from tests.support.catalog import audited, details, fetch, hours

from harvester.catalog import corrections, ignored_runs, offers
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.ids import uuid7

ANN = Actor(kind="person", id="user:1", name="ann")
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def feed():
    return catalog.source()


def promote(feed, prices, hours_ago, **values):
    """A run that wrote these prices, with the offers that promotion leaves."""
    run = catalog.run(feed, **values)
    for product, amount in prices.items():
        catalog.price(feed, product, amount, run_no=run.no, observed_at=catalog.now() - hours(hours_ago))
        offers.recompute(feed.pk, [product])
        fetch(
            "UPDATE offers o SET last_signature = p.signature FROM prices p WHERE p.run_no = %s "
            "AND o.source_id = p.source_id AND o.product_id = p.source_product_id",
            run.no,
        )
    return run


def shown():
    return {product: f"{amount:.2f}" for product, amount in fetch("SELECT product_id, amount FROM offers")}


def signatures():
    return dict(fetch("SELECT product_id, last_signature FROM offers"))


@pytest.fixture
def two(feed):
    return catalog.product(feed), catalog.product(feed)


def test_ignoring_shows_what_was_before_and_undo_brings_it_back(feed, two):
    old, new = two
    promote(feed, {old: "10"}, 3)
    bad = promote(feed, {old: "1000", new: "2000"}, 2)
    assert ignored_runs.ignore_run(ANN, bad.pk, "prices in cents") == 2
    assert shown() == {old: "10.00"}
    assert signatures() == {old: None}
    assert not offers.differences()
    assert ignored_runs.undo_ignore(ANN, bad.pk) == 2
    assert shown() == {old: "1000.00", new: "2000.00"}
    assert not offers.differences()
    assert fetch("SELECT count(*) FROM readable_prices") == [(3,)]


def test_what_was_said_is_on_the_run_and_in_the_audit_log(feed, two):
    bad = promote(feed, {two[0]: "10"}, 1)
    ignored_runs.ignore_run(ANN, bad.pk, "prices in cents")
    bad.refresh_from_db()
    assert (bad.ignored_by, bad.ignored_reason) == ("user:1", "prices in cents")
    ignored_runs.undo_ignore(ANN, bad.pk)
    bad.refresh_from_db()
    assert bad.ignored_at is None
    assert [verb for verb, _, _ in audited()] == ["RUN_IGNORED", "RUN_IGNORE_UNDONE"]
    assert details("RUN_IGNORED")[0]["run_no"] == bad.no


def test_undo_is_refused_when_a_newer_run_has_no_price_for_one_of_its_products(feed, two):
    bad = promote(feed, {two[0]: "1000", two[1]: "2000"}, 3)
    ignored_runs.ignore_run(ANN, bad.pk, "wrong")
    newer = promote(feed, {two[0]: "10"}, 2)
    with pytest.raises(Conflict, match=f"no price for product {two[1]} of run {bad.no}"):
        ignored_runs.undo_ignore(ANN, bad.pk)
    assert shown() == {two[0]: "10.00"}
    ignored_runs.ignore_run(ANN, newer.pk, "wrong too")
    ignored_runs.undo_ignore(ANN, bad.pk)
    assert shown() == {two[0]: "1000.00", two[1]: "2000.00"}
    assert not offers.differences()


def test_undo_after_newer_prices_for_all_shows_the_newer_ones(feed, two):
    bad = promote(feed, dict.fromkeys(two, "1000"), 3)
    ignored_runs.ignore_run(ANN, bad.pk, "wrong")
    promote(feed, dict.fromkeys(two, "10"), 2)
    before = signatures()
    ignored_runs.undo_ignore(ANN, bad.pk)
    assert set(shown().values()) == {"10.00"}
    assert signatures() == before
    assert not offers.differences()


@pytest.mark.parametrize("hides", [False, True])
def test_a_correction_in_between_does_not_bring_the_comparison_back(feed, two, hides):
    old, _ = two
    good = promote(feed, {old: "10"}, 3)
    bad = promote(feed, {old: "1000"}, 2)
    ignored_runs.ignore_run(ANN, bad.pk, "wrong")
    action = {"action": "IGNORE"} if hides else {"action": "MULTIPLIER", "multiplier": 2}
    made = corrections.create(ANN, scope="RUN", source_id=feed.pk, run_no=good.no, reason="odd", **action)
    corrections.revoke(ANN, made.pk)
    assert (shown(), signatures()) == ({old: "10.00"}, {old: None})


@pytest.mark.parametrize("outcome", ["HELD", "REJECTED", "OVERTAKEN", "SKIPPED", None])
def test_only_a_promoted_run_can_be_ignored(feed, outcome):
    run = catalog.run(feed, outcome)
    with pytest.raises(Conflict, match="was not promoted"):
        ignored_runs.ignore_run(ANN, run.pk, "wrong")


def test_what_cannot_be_ignored_or_undone_is_refused(feed, two):
    run = promote(feed, {two[0]: "10"}, 1, outcome="APPROVED")
    with pytest.raises(Conflict, match="is not ignored"):
        ignored_runs.undo_ignore(ANN, run.pk)
    with pytest.raises(InvalidInput, match=r"^reason: "):
        ignored_runs.ignore_run(ANN, run.pk, " ")
    ignored_runs.ignore_run(ANN, run.pk, "wrong")
    with pytest.raises(Conflict, match="ignored already"):
        ignored_runs.ignore_run(ANN, run.pk, "wrong")
    with pytest.raises(NotFound):
        ignored_runs.ignore_run(ANN, uuid7(), "wrong")
