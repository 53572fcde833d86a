"""Why an offer is visible or not: the words agree with what consumers see, case by case."""

import datetime as dt

import pytest
from tests.support import catalog
from tests.support.catalog import fetch, hours
from tests.support.effective_time import effective_now, expires_at

from harvester.catalog import corrections, history, ignored_runs, offers, product_details, sources, visibility_reasons
from harvester.catalog.product_details import Sight
from harvester.catalog.visibility_reasons import State
from harvester.kernel.actor import system
from harvester.kernel.errors import NotFound

pytestmark = pytest.mark.usefixtures("database")
TEST = system("test")
SHOWN = {"is_display_primary": True, "expiry_hours": 48}


def promoted(ago=0, **values):
    return catalog.source(last_promoted_at=catalog.now() - hours(ago), **{**SHOWN, **values})


def seen(source):
    return catalog.offer(source)


def missing(source):
    return catalog.offer(source, seen_until=catalog.now() - hours(5))


def gone(source):
    return catalog.offer(source, seen_until=catalog.now() - hours(50))


def corrected(source):
    number = catalog.offer(source)
    corrections.create(
        TEST, scope="PRODUCT", source_id=source.pk, product_id=number, action="IGNORE", reason="in the wrong currency"
    )
    return number


def scaled(source):
    number = catalog.offer(source)
    corrections.create(
        TEST, scope="SOURCE", source_id=source.pk, action="MULTIPLIER", multiplier="0.01", reason="in cents"
    )
    return number


def of_ignored_run(source):
    run = catalog.run(source)
    number = catalog.offer(source, run_no=run.no)
    ignored_runs.ignore_run(TEST, run.pk, "the file of another shop")
    return number


def scraped(source):
    number = catalog.product(source)
    catalog.price(source, number, "5", run_type="SCRAPE")
    sources.update(TEST, source.pk, visibility="INELIGIBLE")
    offers.recompute(source.pk, [number])
    return number


CASES = [
    ("seen by the last run", promoted, {}, seen, [State.VISIBLE], "Consumers see it."),
    ("missing, not yet expired", promoted, {}, missing, [State.VISIBLE], "until it expires, although it was missing"),
    ("missing for too long", promoted, {}, gone, [State.EXPIRED], "the 48 h after which"),
    ("its source was not promoted for too long", promoted, {"ago": 49}, seen, [State.EXPIRED], "the 48 h after which"),
    ("the same, and held", promoted, {"ago": 49, "held": 10}, seen, [State.VISIBLE], "Consumers see it."),
    ("no expiry", promoted, {"ago": 999, "expiry_hours": None}, seen, [State.VISIBLE], "Consumers see it."),
    ("no primary", promoted, {"is_display_primary": False}, seen, [State.SOURCE_NOT_SHOWN], "Make it primary."),
    ("another primary", promoted, {"has_other": True}, seen, [State.SOURCE_NOT_SHOWN], "The other is"),
    ("direct without a primary", promoted, {"kind": "DIRECT", "is_display_primary": False}, seen, [State.VISIBLE], ""),
    (
        "expired and not shown",
        promoted,
        {"ago": 49, "is_display_primary": False},
        seen,
        [State.SOURCE_NOT_SHOWN, State.EXPIRED],
        "expire",
    ),
    ("ignored by a correction", promoted, {}, corrected, [State.HIDDEN_BY_CORRECTION], "in the wrong currency"),
    ("scaled by a correction", promoted, {}, scaled, [State.VISIBLE], "Consumers see it."),
    ("its run is ignored", promoted, {}, of_ignored_run, [State.RUN_IGNORED], "the file of another shop"),
    ("scraped only", promoted, {"kind": "DIRECT"}, scraped, [State.SCRAPED_ONLY], "do not count"),
    ("never promoted", promoted, {}, catalog.product, [State.NEVER_PROMOTED], "no run that contains it was promoted"),
]


@pytest.mark.parametrize(
    ("make", "values", "put", "states", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_the_words_agree_with_what_consumers_see(make, values, put, states, words):
    given = dict(values)
    if held := given.pop("held", None):
        given |= {"held_since": catalog.now() - hours(held), "held_run_no": 7}
    if given.pop("has_other", False):
        owner = catalog.retailer()
        catalog.source(owner, name="The other", is_display_primary=True)
        given |= {"owner": owner, "is_display_primary": False}
    source = make(**given)
    number = put(source)
    found = visibility_reasons.standing(source.pk, number)
    assert [why.state for why in found.whys] == states
    assert words in found.words
    assert found.is_visible == bool(fetch("SELECT 1 FROM visible_offers WHERE product_id = %s", number))


def test_an_expired_offer_shows_since_when():
    source = promoted()
    number = gone(source)
    found = visibility_reasons.standing(source.pk, number)
    assert found.whys[0].since == found.last_seen_at + hours(48) == found.expires_at


def test_what_does_not_exist_has_no_standing():
    with pytest.raises(NotFound, match="no product 7"):
        visibility_reasons.standing(catalog.source().pk, 7)


CLOCKS = [
    {},
    {"frozen": hours(9)},
    {"frozen": hours(900)},
    {"held_since": 10},
    {"held_since": 10, "frozen": hours(20)},
    {"held_since": 10, "max_hold": hours(24)},
    {"held_since": 60},
    {"held_since": 200, "frozen": hours(3)},
]


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
def test_the_moment_of_expiry_is_where_the_clock_passes_it(clock):
    start, expiry, tick = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), hours(48), dt.timedelta(microseconds=1)
    stopped = {**clock, "held_since": start + hours(clock["held_since"])} if "held_since" in clock else clock
    moment = expires_at(start, expiry, **stopped)
    assert effective_now(moment, **stopped) - expiry <= start < effective_now(moment + tick, **stopped) - expiry


def test_the_runs_that_saw_a_product_are_distinguished():
    source = promoted()
    runs = [catalog.run(source) for _ in range(5)]
    number = catalog.product(source, run_no=runs[0].no)
    catalog.price(source, number, "10", run_no=runs[0].no)
    catalog.price(source, number, "11", run_no=runs[3].no)
    offers.recompute(source.pk, [number])
    catalog.insert("run_absences", source_id=source.pk, run_no=runs[2].no, part=0, product_ids=[number, number + 1])
    catalog.run(source, outcome="REJECTED")
    shown = {one.run_no: one.sight for one in product_details.sightings(product_details.product(source.pk, number))}
    expected = [Sight.PRICED, Sight.SEEN, Sight.ABSENT, Sight.PRICED, Sight.SEEN]
    assert shown == {run.no: sight for run, sight in zip(runs, expected, strict=True)}


def test_hidden_prices_are_shown_with_the_reason():
    source = promoted()
    run = catalog.run(source)
    number = catalog.offer(source, "10")
    catalog.price(source, number, "11", run_no=run.no)
    assert history.hidden_prices(source.pk, number) == []
    ignored_runs.ignore_run(TEST, run.pk, "the file of another shop")
    before = {"observed_to": catalog.now() + hours(1), "action": "IGNORE", "reason": "wrong"}
    corrections.create(TEST, scope="PRODUCT", source_id=source.pk, product_id=number, **before)
    shown = [(price.amount, price.ignored_reason) for price in history.hidden_prices(source.pk, number)]
    assert shown == [(11, "the file of another shop"), (10, None)]
    assert history.price_history(source.pk, number) == []


def test_the_corrections_of_a_product_are_those_about_its_prices():
    source = promoted()
    run = catalog.run(source)
    number, other = catalog.offer(source, run_no=run.no), catalog.offer(source)
    about = {"action": "IGNORE", "reason": "wrong"}
    of_run = corrections.create(TEST, scope="RUN", source_id=source.pk, run_no=run.no, **about)
    of_product = corrections.create(TEST, scope="PRODUCT", source_id=source.pk, product_id=other, **about)
    earlier = corrections.create(
        TEST, scope="SOURCE", source_id=source.pk, observed_to=catalog.now() - hours(1), **about
    )
    corrections.revoke(TEST, of_product.pk)
    assert product_details.corrections_of(source.pk, number) == [of_run]
    assert product_details.corrections_of(source.pk, other) == [of_product]
    assert earlier.revoked_at is None
