"""What consumers see: the views are the one rule, shown here as tables of cases."""

import datetime as dt
import itertools
from dataclasses import dataclass, replace

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support import catalog
from tests.support.catalog import fetch, hours
from tests.support.effective_time import effective_now, expires_at
from tests.support.generated import examples

from harvester.catalog import corrections, ignored_runs, offers, sources
from harvester.kernel.actor import system

pytestmark = pytest.mark.usefixtures("database")
TEST = system("test")
TICK = dt.timedelta(microseconds=1)
NONE, SECOND = dt.timedelta(), dt.timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One offer and its source; times are how long ago.

    Attributes:
        kind: of its source.
        primary: `own` source, `other` source of the retailer, or empty.
        promoted: when the source was promoted last.
        missing: since when the product was not seen; None while the last run saw it.
        expiry: hours; None for never stale.
        frozen: time lost to holds that were rejected.
        held: since when a run is held; None for no hold.
        max_hold: hours.
    """

    kind: str = "AFFILIATE_FEED"
    primary: str = "own"
    promoted: dt.timedelta = NONE
    missing: dt.timedelta | None = None
    expiry: int | None = 48
    frozen: dt.timedelta = NONE
    held: dt.timedelta | None = None
    max_hold: int = 168


# All times of a case are relative to the moment at which the views look: one message, one statement_timestamp().
_ARRANGE_AND_LOOK = """
UPDATE sources SET kind = %(kind)s, is_display_primary = %(own)s, expiry_hours = %(expiry)s, frozen = %(frozen)s,
    max_hold_hours = %(max_hold)s, last_promoted_at = statement_timestamp() - %(promoted)s,
    held_since = statement_timestamp() - %(held)s::interval,
    held_run_no = CASE WHEN %(held)s::interval IS NULL THEN NULL ELSE 7 END
WHERE id = %(source)s;
UPDATE sources SET is_display_primary = %(other)s WHERE id = %(sibling)s;
UPDATE offers SET seen_until = statement_timestamp() - %(missing)s::interval;
SELECT (SELECT count(*) FROM active_offers), (SELECT count(*) FROM visible_offers)
"""


@pytest.fixture
def look():
    """Arrange a case and return whether its offer is (active, visible)."""
    shop = catalog.retailer()
    source, sibling = catalog.source(shop), catalog.source(shop, kind="OTHER")
    catalog.offer(source)

    def look_at(case: Case) -> tuple[bool, bool]:
        fetch("UPDATE sources SET is_display_primary = false")
        names = {"source": source.pk, "sibling": sibling.pk}
        values = {**vars(case), **names, "own": case.primary == "own", "other": case.primary == "other"}
        with connection.cursor() as cursor:
            cursor.execute(_ARRANGE_AND_LOOK, values)
            while cursor.nextset():
                pass
            active, visible = cursor.fetchone()
        return active == 1, visible == 1

    return look_at


BOTH, HIDDEN, GONE = (True, True), (True, False), (False, False)
CASES = [
    ("just promoted", Case(), BOTH),
    ("promoted exactly the expiry ago", Case(promoted=hours(48)), BOTH),
    ("promoted just inside", Case(promoted=hours(48) - hours(0.01)), BOTH),
    ("promoted just outside", Case(promoted=hours(48) + TICK), GONE),
    ("missing exactly the expiry ago", Case(missing=hours(48)), BOTH),
    ("missing just outside, source promoted now", Case(missing=hours(48) + TICK), GONE),
    ("seen counts with the source, not with its own price", Case(missing=None, promoted=hours(1)), BOTH),
    ("an expiry of one hour", Case(expiry=1, missing=hours(1) + TICK), GONE),
    ("no expiry, ever so old", Case(expiry=None, promoted=hours(9999)), BOTH),
    ("no expiry, missing", Case(expiry=None, missing=hours(9999)), BOTH),
    ("held for as long as it is over", Case(promoted=hours(60), held=hours(12)), BOTH),
    ("held a moment too short", Case(promoted=hours(60) + TICK, held=hours(12)), GONE),
    ("frozen by a rejected hold", Case(promoted=hours(60), frozen=hours(12)), BOTH),
    ("frozen and held add up", Case(promoted=hours(60), frozen=hours(5), held=hours(7)), BOTH),
    ("held for 72 hours changes nothing", Case(promoted=hours(72 + 24), held=hours(72)), BOTH),
    ("a hold beyond max_hold stops the clock no longer", Case(promoted=hours(73), held=hours(99), max_hold=24), GONE),
    ("at max_hold it does, to the tick", Case(promoted=hours(72), held=hours(99), max_hold=24), BOTH),
    ("frozen counts up to max_hold", Case(promoted=hours(72) + TICK, frozen=hours(99), max_hold=24), GONE),
    ("a missing product is frozen too", Case(missing=hours(60), held=hours(12)), BOTH),
    ("an affiliate that is not primary", Case(primary=""), HIDDEN),
    ("an affiliate next to a primary", Case(primary="other"), HIDDEN),
    ("other, primary", Case(kind="OTHER"), BOTH),
    ("other, not primary", Case(kind="OTHER", primary=""), HIDDEN),
    ("direct, primary", Case(kind="DIRECT"), BOTH),
    ("direct, and the retailer has no primary", Case(kind="DIRECT", primary=""), BOTH),
    ("direct, and another is primary", Case(kind="DIRECT", primary="other"), HIDDEN),
    ("direct and stale", Case(kind="DIRECT", primary="", promoted=hours(49)), GONE),
]


@pytest.mark.parametrize(("case", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_an_offer_is_seen_exactly_when_the_rule_says_so(look, case, expected):
    assert look(case) == expected


def test_every_combination_follows_the_rule(look):
    """The rule once more, in words of its own: time lost, then age, then who is shown."""
    clocks = [{}, {"frozen": hours(9)}, {"held": hours(9)}, {"frozen": hours(5), "held": hours(9), "max_hold": 10}]
    lost = [hours(0), hours(9), hours(9), hours(10)]
    edges = {hours(-0.01): True, hours(0): True, TICK: False}
    combined = itertools.product(
        ("DIRECT", "AFFILIATE_FEED", "OTHER"), ("own", "other", ""), zip(clocks, lost, strict=True), edges,
        ("promoted", "missing"), (48, None),
    )  # fmt: skip
    for kind, primary, (clock, stopped), past, what, expiry in combined:
        case = replace(Case(kind=kind, primary=primary, expiry=expiry, **clock), **{what: hours(48) + stopped + past})
        active = expiry is None or edges[past]
        shown = primary == "own" or (kind == "DIRECT" and primary == "")
        assert look(case) == (active, active and shown), case


DAYS = st.timedeltas(min_value=NONE, max_value=dt.timedelta(days=40))
MOMENTS = st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2030, 1, 1), timezones=st.just(dt.UTC))  # noqa: DTZ001


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150))
@given(now=MOMENTS, frozen=DAYS, held=st.none() | DAYS | DAYS.map(lambda ago: -ago), longest=st.integers(1, 720))
@example(now=dt.datetime(2026, 3, 30, tzinfo=dt.UTC), frozen=dt.timedelta(days=3), held=None, longest=168)
def test_the_clock_of_the_database_is_that_of_the_kernel_in_every_time_zone(now, frozen, held, longest):
    held_since = None if held is None else now - held
    query = "SELECT effective_now(%s, %s, %s::timestamptz, %s::smallint) AT TIME ZONE 'UTC'"
    with transaction.atomic():
        fetch("SET LOCAL TIME ZONE 'Europe/Berlin'")
        result = fetch(query, now, frozen, held_since, longest)
    expected = effective_now(now, frozen=frozen, held_since=held_since, max_hold=hours(longest))
    assert result == [(expected.replace(tzinfo=None),)]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seen=st.integers(0, 365 * 86_400).map(lambda later: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + later * SECOND),
    expiry=st.integers(1, 168),
    frozen=st.timedeltas(NONE, dt.timedelta(days=9)),
    held=st.none() | st.timedeltas(dt.timedelta(days=-9), dt.timedelta(days=9)),
    longest=st.integers(1, 168),
)
def test_offers_expire_when_the_database_the_kernel_and_the_view_say_so(seen, expiry, frozen, held, longest):
    """Until that moment the offer is active by the clock of the source, and one tick later it is not."""
    held_since = None if held is None else seen + held
    query = "SELECT expires_at(%s, %s::smallint, %s, %s::timestamptz, %s::smallint) AT TIME ZONE 'UTC'"
    with transaction.atomic():
        fetch("SET LOCAL TIME ZONE 'Europe/Berlin'")
        [(result,)] = fetch(query, seen, expiry, frozen, held_since, longest)
    clock = {"frozen": frozen, "held_since": held_since, "max_hold": hours(longest)}
    expires = expires_at(seen, hours(expiry), **clock)
    assert result == expires.replace(tzinfo=None)
    assert effective_now(expires, **clock) - hours(expiry) <= seen
    assert effective_now(expires + TICK, **clock) - hours(expiry) > seen


def test_an_ignored_run_and_an_ignored_price_are_seen_nowhere():
    source = catalog.source(is_display_primary=True)
    run = catalog.run(source)
    catalog.offer(source, "10", run_no=run.no)
    query = "SELECT (SELECT count(*) FROM visible_offers), (SELECT count(*) FROM readable_prices)"
    assert fetch(query) == [(1, 1)]
    ignored_runs.ignore_run(TEST, run.pk, "wrong")
    assert fetch(query) == [(0, 0)]
    ignored_runs.undo_ignore(TEST, run.pk)
    corrections.create(TEST, scope="RUN", source_id=source.pk, run_no=run.no, action="IGNORE", reason="wrong")
    assert fetch(query) == [(0, 0)]


def test_a_corrected_offer_is_seen_with_its_corrected_price():
    source = catalog.source(is_display_primary=True)
    catalog.offer(source, "1099")
    corrections.create(
        TEST, scope="SOURCE", source_id=source.pk, action="MULTIPLIER", multiplier="0.01", reason="in cents"
    )
    assert fetch("SELECT amount FROM visible_offers") == [(catalog.Decimal("10.99"),)]


def test_scraped_prices_count_only_where_the_source_allows_them():
    source = catalog.source(kind="DIRECT", expiry_hours=None)
    product, scraped_only = catalog.product(source), catalog.product(source)
    catalog.page_products(source, product, scraped_only, leads_for=1)
    catalog.price(source, product, "11", observed_at=catalog.now() - hours(2), run_type="SCRAPE")
    catalog.price(source, product, "10")
    catalog.price(source, scraped_only, "12", run_type="SCRAPE")
    offers.recompute(source.pk, [product, scraped_only])
    query = "SELECT amount::float FROM visible_offers ORDER BY product_id"
    assert fetch(query) == [(11.0,), (12.0,)], "the page leads, although the feed is newer"
    sources.update(TEST, source.pk, visibility="INELIGIBLE")
    assert fetch(query) == [(10.0,)]
    sources.update(TEST, source.pk, visibility="ELIGIBLE")
    assert fetch(query) == [(11.0,), (12.0,)]
    assert not offers.differences()


def test_a_page_that_does_not_lead_is_shown_only_where_no_feed_has_the_product():
    source = catalog.source(kind="DIRECT", expiry_hours=None)
    product, scraped_only = catalog.product(source), catalog.product(source)
    catalog.page_products(source, product, scraped_only)
    catalog.price(source, product, "10", observed_at=catalog.now() - hours(2))
    catalog.price(source, product, "11", run_type="SCRAPE")
    catalog.price(source, scraped_only, "12", run_type="SCRAPE")
    offers.recompute(source.pk, [product, scraped_only])
    query = "SELECT amount::float, by_pages FROM offers ORDER BY product_id"
    assert fetch(query) == [(10.0, False), (12.0, True)]
    assert not offers.differences()


def test_a_lead_that_ended_meanwhile_does_not_come_back_with_the_visibility():
    source = catalog.source(kind="DIRECT", visibility="INELIGIBLE")
    product = catalog.product(source)
    catalog.page_products(source, product, leads_for=-1)
    catalog.price(source, product, "11", run_type="SCRAPE", observed_at=catalog.now() - hours(50))
    catalog.price(source, product, "10")
    offers.recompute(source.pk, [product])
    sources.update(TEST, source.pk, visibility="ELIGIBLE")
    assert fetch("SELECT amount::float FROM offers") == [(10.0,)]
    assert not offers.differences()


def test_the_names_of_the_specification_give_the_same():
    source = catalog.source()
    run = catalog.run(source)
    seen, missing = catalog.offer(source), catalog.offer(source, seen_until=catalog.now() - hours(5))
    assert fetch("SELECT run_no, source_product_id FROM source_product_seen") == [(run.no, seen)]
    [[at]] = fetch("SELECT last_seen_success_at FROM source_product_presence WHERE source_product_id = %s", missing)
    assert at < catalog.now() - hours(4)
