"""What each outcome of a page does: the table of the rules, and the same in the database."""

import json
from datetime import timedelta

import pytest
from tests.support import catalog
from tests.support.feed_world import OLGA
from tests.support.log_lines import logged
from tests.support.page_runs import (
    begin,
    end,
    figures,
    offer,
    open_alerts,
    prices,
    read,
    read_all,
    shop,
    shown,
    targets,
    waiting_entries,
)
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.models import Source
from harvester.engine.enqueue import enqueue
from harvester.runs.models import Run, RunPart
from harvester.scraping import alerts, log_events, quarantine
from harvester.scraping.jobs import JUDGE
from harvester.scraping.models import AdapterState, QuarantineEntry, ScrapeTarget
from harvester.scraping.states import DROPPED, MEANINGS, READ, RULES, PageOutcome

pytestmark = pytest.mark.usefixtures("database")

#: The table of the rules: outcomes, drift failure, counts in a batch, five failures, breaker, waits for a person.
TABLE = """
OFFER                                                                     | |y|resets|closes|
SELECTOR_NOT_FOUND PRICE_NOT_FOUND TITLE_NOT_FOUND PAGE_STRUCTURE_CHANGED |y|y|y     |      |
EMPTY_PAGE UNKNOWN_AVAILABILITY                                           |y|y|y     |      |
NO_AGREEMENT                                                              | | |      |closes|y
MISSING_REQUIRED_FIELD INVALID_PRICE ZERO_PRICE_EXTRACTED AMBIGUOUS_PRICE |y|y|y     |      |y
CONTRADICTION VALIDATION_FAILED NORMALIZATION_FAILED SELECTOR_FAILURE     |y|y|y     |      |y
ADAPTER_FAILED                                                            |y|y|y     |      |
OOS_NO_PRICE                                                              | | |resets|closes|
NOT_MODIFIED                                                              | |y|resets|closes|
PRICE_MOVE                                                                | |y|      |closes|
GONE                                                                      | | |y     |closes|
WRONG_PRODUCT WRONG_DOMAIN                                                | | |y     |      |y
BLOCKED_PAGE                                                              | | |      |y     |
RATE_LIMITED                                                              | | |      |      |
NETWORK                                                                   | | |      |y     |
BLOCKED_BY_ROBOTS_TXT ROBOTS_UNAVAILABLE                                  | | |      |      |
DUPLICATE_WITHIN_RUN INVALID_URL                                          | | |      |      |
"""


def table() -> dict[str, tuple[str, ...]]:
    found = {}
    for line in TABLE.strip().splitlines():
        names, *cells = line.split("|")
        found |= dict.fromkeys(names.split(), tuple(cell.strip() for cell in cells))
    return found


def test_the_table_in_code_is_the_table_of_the_rules():
    # A batch that is refused, or a newer page, changes nothing about a page that was read well.
    after_judging = {"DRIFT_DETECTED", "SAME_VALUE", "BULK_MOVE", "SUPERSEDED"}
    assert table().keys() | after_judging == {outcome.value for outcome in PageOutcome}
    for name, (drift, in_batch, five, breaker, kept) in table().items():
        rule = RULES[PageOutcome(name)]
        assert (rule.is_drift, rule.in_batch, rule.is_kept) == (drift == "y", in_batch == "y", kept == "y"), name
        assert rule.failures == {"y": "count", "resets": "reset", "": ""}[five], name
        assert rule.breaker == {"y": "fails", "closes": "closes", "": ""}[breaker], name
    for name in after_judging:
        rule = RULES[PageOutcome(name)]
        assert (rule.failures, rule.breaker, rule.is_drift) == ("reset", "closes", False), name


def test_every_outcome_has_plain_words():
    assert MEANINGS.keys() == set(PageOutcome)
    assert set(READ).isdisjoint(DROPPED)


@pytest.mark.parametrize("name", table())
def test_an_outcome_does_in_the_database_what_the_table_says(name):
    _, in_batch, five, _, kept = table()[name]
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    ScrapeTarget.objects.filter(source=source).update(consecutive_failures=2)
    target = targets(source)[0]
    found = {"OFFER": offer("19.99", sku="A"), "PRICE_MOVE": offer("59.99", sku="A")}.get(name)
    [part] = begin(source)
    assert end(part, "OFFER" if found else name, found, after=1) == name
    target.refresh_from_db()
    assert target.consecutive_failures == {"y": 3, "resets": 0, "": 2}[five]
    assert (target.last_status, bool(target.last_detail)) == (name, True)
    assert waiting_entries(source) == ([name] if kept == "y" else [])
    assert prices(source) == [19.99], "only an offer is written, and this one is what was written before"
    run = Run.objects.latest("no")
    assert rows("SELECT new_attempts FROM scrape_batches WHERE run_no = %s", run.no) == ([(1,)] if in_batch else [])
    assert rows("SELECT count(*) FROM run_parts WHERE judged_at IS NULL") == [(0,)]
    assert (run.status, run.outcome) == ("SUCCEEDED", _outcome_of_run(name, kept))
    seen = shown()
    gone = name == "OOS_NO_PRICE"
    assert seen == ([] if gone else [19.99])


def _outcome_of_run(name: str, kept: str) -> str:
    if name in {"OFFER", "NOT_MODIFIED", "OOS_NO_PRICE"}:
        return "PROMOTED"
    return "QUARANTINED" if kept == "y" else "EMPTY"


@pytest.mark.parametrize("name", ["OFFER", "NOT_MODIFIED", "OOS_NO_PRICE"])
def test_a_success_ends_the_row_of_failures_and_repairs_a_broken_page(name):
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    for _ in range(5):
        read(source, "TITLE_NOT_FOUND")
    broken = targets(source)[0]
    assert (broken.status, broken.recheck_reason, open_alerts()) == ("BROKEN", "BROKEN", [alerts.TARGETS_BROKEN])
    assert broken.recheck_at == broken.last_scraped_at + timedelta(days=7)
    found = offer("19.99", sku="A") if name == "OFFER" else None
    works = read(source, name, found)
    assert (works.status, works.consecutive_failures, works.recheck_at, open_alerts()) == ("ACTIVE", 0, None, [])


def test_four_failures_do_not_break_a_page_and_a_paused_page_stays_paused():
    source = shop(1)
    for _ in range(4):
        read(source, "TITLE_NOT_FOUND")
    assert targets(source)[0].status == "ACTIVE"
    ScrapeTarget.objects.filter(source=source).update(status="PAUSED")
    assert read(source, "TITLE_NOT_FOUND").status == "PAUSED"


def test_a_broken_page_is_tried_again_a_week_after_each_failure():
    source = shop(1)
    for _ in range(5):
        read(source, "GONE")
    again = read(source, "GONE", after=7 * 24 * 60)
    assert again.recheck_at == again.last_scraped_at + timedelta(days=7)
    assert (again.status, again.consecutive_failures) == ("BROKEN", 6)


def test_broken_pages_of_a_shop_are_one_alert_for_each_cause():
    source = shop(4)
    for _ in range(5):
        read_all(source, ["GONE", "GONE", "WRONG_DOMAIN", "EMPTY_PAGE"])
    kinds = rows(
        "SELECT detail ->> 'count', key FROM alerts WHERE kind = %s AND resolved_at IS NULL", alerts.TARGETS_BROKEN
    )
    assert sorted((int(count), key.rsplit(":", 1)[-1]) for count, key in kinds) == [
        (1, "moved"), (1, "unreadable"), (2, "gone"),
    ]  # fmt: skip


def test_the_alert_ends_when_somebody_deletes_the_broken_pages():
    source = shop(2)
    for _ in range(5):
        read_all(source, ["GONE", "EMPTY_PAGE"])
    ScrapeTarget.objects.filter(source=source, last_status="GONE").delete()
    enqueue(JUDGE)
    run_until_idle(queues=("maintenance",))
    assert rows("SELECT right(key, 10) FROM alerts WHERE resolved_at IS NULL") == [("unreadable",)]


def test_a_page_that_is_gone_ends_its_offer_after_a_second_look_an_hour_later():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    gone = read(source, "GONE", after=1)
    assert (gone.recheck_reason, shown()) == ("GONE", [19.99])
    assert gone.recheck_at == gone.last_scraped_at + timedelta(hours=1)
    too_early = read(source, "GONE", after=30)
    assert (too_early.recheck_at, shown()) == (gone.recheck_at, [19.99])
    confirmed = read(source, "GONE", after=62)
    assert (confirmed.recheck_at, shown()) == (None, [])
    read(source, found=offer("19.99", sku="A"), after=100)
    assert shown() == [19.99], "the next success brings it back"


def test_a_page_that_was_gone_once_is_not_ended():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    read(source, "GONE", after=1)
    back = read(source, found=offer("19.99", sku="A"), after=62)
    assert (back.waiting, back.recheck_at, shown()) == (None, None, [19.99])
    again = read(source, "GONE", after=130)
    assert (again.recheck_reason, shown()) == ("GONE", [19.99]), "the hour begins again"


def test_a_second_look_that_finds_nothing_out_is_repeated_but_not_forever():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    waiting = read(source, "GONE", after=1)
    for step in range(1, 10):
        waiting = read(source, "NETWORK", after=100 * step)
        if waiting.recheck_at is None:
            break
        assert waiting.recheck_at == waiting.last_scraped_at + timedelta(hours=1)
    assert 3 <= step <= 6
    assert shown() == [19.99]


def test_sold_out_without_a_price_ends_presence_and_the_next_offer_restores_it():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    assert read(source, "OOS_NO_PRICE", after=1).consecutive_failures == 0
    assert (shown(), prices(source)) == ([], [19.99])
    read(source, found=offer("21.99", sku="A"), after=2)
    assert shown() == [21.99]


def test_an_unchanged_page_is_seen_again_and_writes_no_price():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    [(before,)] = rows("SELECT seen_until FROM offers")
    read(source, "NOT_MODIFIED", after=60)
    [(after,)] = rows("SELECT seen_until FROM offers")
    assert after - before > timedelta(minutes=55)
    assert prices(source) == [19.99]


def test_pages_of_a_linked_product_never_end_its_presence():
    source = shop(0)
    number = catalog.product(source, identity_value="S-1")
    catalog.target(source, "https://shop.example/0", product_id=number)
    read(source, found=offer("19.99", sku="S-1"))
    [(product,)] = rows("SELECT id FROM source_products WHERE source_id = %s", source.pk)
    assert product == number
    assert targets(source)[0].pinned_product_id == number


def test_the_first_written_offer_pins_the_product():
    source = shop(1)
    read(source, found=offer("19.99", sku="A", product_id="77", gtin="4006381333931"))
    pinned = targets(source)[0].pinned
    assert {name: pinned[name] for name in ("product_id", "sku", "gtin")} == {
        "product_id": "77", "sku": "A", "gtin": "4006381333931",
    }  # fmt: skip
    assert pinned["identity"] == {"type": "PRODUCT_ID", "value": "77"}


@pytest.mark.parametrize(
    ("later", "outcome"),
    [
        ({"sku": "A"}, "OFFER"),
        ({"sku": "a "}, "OFFER"),
        ({"sku": None, "title": "nameless"}, "OFFER"),
        ({"sku": "B"}, "WRONG_PRODUCT"),
        ({"sku": "A", "product_id": "78"}, "WRONG_PRODUCT"),
        ({"sku": "A", "gtin": "4006381333948"}, "WRONG_PRODUCT"),
        ({"sku": "A", "gtin": "04006381333931"}, "OFFER"),
    ],
)
def test_a_page_that_names_another_product_is_not_believed(later, outcome):
    source = shop(1)
    read(source, found=offer("19.99", sku="A", product_id="77", gtin="4006381333931"))
    [part] = begin(source)
    assert end(part, "OFFER", offer("21.99", **later), after=1) == outcome
    assert shown() == ([21.99] if outcome == "OFFER" else [19.99])
    assert rows("SELECT count(*) FROM source_products") == [(1,)], "no second product"


def test_an_explicit_link_wins_over_the_identity_with_a_warning():
    source = shop(0)
    linked, other = (catalog.product(source, identity_value=sku, title="Linked") for sku in ("S-1", "S-2"))
    catalog.target(source, "https://shop.example/0", product_id=linked)
    with logged() as lines:
        read(source, found=offer("19.99", sku="S-2"))
        assert [line["product_id"] for line in lines() if line["event"] == log_events.LINK_AND_IDENTITY_DIFFER] == [
            str(linked)
        ]
    assert rows("SELECT source_product_id FROM prices") == [(linked,)]
    assert rows("SELECT identity_value, title FROM source_products WHERE id = %s", linked) == [("S-1", "Linked")]
    assert rows("SELECT FROM prices WHERE source_product_id = %s", other) == []


def test_a_deleted_linked_product_falls_back_to_the_identity():
    source = shop(0)
    catalog.target(source, "https://shop.example/0", product_id=987_654)
    with logged() as lines:
        read(source, found=offer("19.99", sku="S-2"))
        assert log_events.LINKED_PRODUCT_DELETED in {line["event"] for line in lines()}
    assert rows("SELECT identity_value FROM source_products") == [("S-2",)]


@pytest.mark.parametrize(
    "broken", [{}, {"title": "x"}, {"price": "19.99"}, {"price": "19.99 USD", "title": "x", "availability": "perhaps"}]
)
def test_an_offer_that_is_not_valid_waits_for_a_person(broken):
    source = shop(1)
    [part] = begin(source)
    assert end(part, "OFFER", broken) == "VALIDATION_FAILED"
    assert (waiting_entries(source), prices(source)) == (["VALIDATION_FAILED"], [])


@pytest.mark.parametrize("text", ["0.00 USD", "-1.00 USD", "1000000.00 USD", "19.999 USD", "19.99 XXX"])
def test_a_price_outside_the_limits_is_never_written(text):
    source = shop(1)
    [part] = begin(source)
    assert end(part, "OFFER", {**offer("19.99", sku="A"), "price": text}) == "VALIDATION_FAILED"
    assert prices(source) == []


def test_a_price_that_moved_far_waits_for_a_second_look():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    waiting = read(source, found=offer("199.90", sku="A"), after=5)
    assert (waiting.last_status, waiting.recheck_reason) == ("PRICE_MOVE", "PRICE_MOVE")
    assert waiting.recheck_at == waiting.last_scraped_at + timedelta(minutes=10)
    assert "decimal point" in waiting.last_detail
    early = read(source, found=offer("199.90", sku="A"), after=10)
    assert (early.last_status, shown()) == ("PRICE_MOVE", [19.99]), "five minutes later is too early"
    assert early.recheck_at == waiting.recheck_at
    confirmed = read(source, found=offer("199.90", sku="A"), after=16)
    assert (confirmed.last_status, confirmed.waiting, confirmed.recheck_at) == ("OFFER", None, None)
    assert (shown(), prices(source)) == ([199.90], [19.99, 199.90])


def test_another_price_at_the_second_look_waits_again():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    read(source, found=offer("199.90", sku="A"), after=5)
    other = read(source, found=offer("99.90", sku="A"), after=20)
    assert (other.last_status, other.waiting["price"]) == ("PRICE_MOVE", "99.90 USD")
    assert other.recheck_at == other.last_scraped_at + timedelta(minutes=10)
    usual = read(source, found=offer("20.99", sku="A"), after=40)
    assert (usual.last_status, usual.waiting, shown()) == ("OFFER", None, [20.99])


def test_a_price_that_never_repeats_is_not_looked_at_forever():
    source = shop(1)
    read(source, found=offer("10.00", sku="A"))
    looks = 0
    for step in range(1, 12):
        waiting = read(source, found=offer(f"{20 + step}.00", sku="A"), after=11 * step)
        if waiting.recheck_at is None:
            break
        looks += 1
    assert looks == 5
    assert shown() == [10.00]


def test_a_first_page_is_compared_with_the_price_that_the_product_has():
    source = shop(0)
    number = catalog.product(source, identity_value="A")
    catalog.price(source, number, "10.00")
    catalog.target(source, "https://shop.example/0", product_id=number)
    assert read(source, found=offer("100.00", sku="A"), after=1).last_status == "PRICE_MOVE"


def test_the_validators_of_a_page_count_only_after_it_was_written():
    source = shop(2)
    first, second = begin(source)
    ScrapeTarget.objects.filter(source=source).update(etag="v1", last_modified="today")
    end(first, found=offer("19.99", sku="A"), page="f" * 64)
    target = ScrapeTarget.objects.get(pk=first.target_id)
    assert (target.etag, target.last_modified) == (None, None), "it waits for its batch"
    end(second, "EMPTY_PAGE", page="e" * 64)
    target.refresh_from_db()
    assert (target.etag, target.last_modified) == ("v1", "today")
    assert ScrapeTarget.objects.get(pk=second.target_id).etag is None


def test_a_kept_page_that_is_older_than_what_is_known_changes_nothing():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"), after=10)
    before = targets(source)[0]
    [part] = begin(source)
    assert end(part, "OFFER", offer("21.99", sku="A"), after=0) == "SUPERSEDED"
    after = targets(source)[0]
    assert (after.last_scraped_at, after.last_seen) == (before.last_scraped_at, before.last_seen)
    assert prices(source) == [19.99]


def test_a_target_that_was_deleted_meanwhile_does_no_harm():
    source = shop(2)
    first, second = begin(source)
    ScrapeTarget.objects.filter(pk=first.target_id).delete()
    assert end(first, found=offer("19.99", sku="A")) == "OFFER"
    end(second, found=offer("20.99", sku="B"))
    assert Run.objects.latest("no").outcome == "PROMOTED"
    assert prices(source) == [20.99]


def test_figures_of_a_run_are_computed_from_its_parts():
    source = shop(12)
    ends = [
        offer("1.10", sku="A", brand="Acme", gtin="4006381333931"), offer("2.20", sku="B"), offer("3.30", sku="C"),
        "NOT_MODIFIED", "OOS_NO_PRICE", "UNKNOWN_AVAILABILITY", "ZERO_PRICE_EXTRACTED", "NO_AGREEMENT", "GONE",
        "NETWORK", "BLOCKED_BY_ROBOTS_TXT", "TITLE_NOT_FOUND",
    ]  # fmt: skip
    run = read_all(source, ends)
    made = figures(run)
    assert (made.pages, made.urls_succeeded, made.urls_failed) == (12, 5, 3)
    assert (made.offers, made.offers_valid, made.offers_dropped, made.quarantined) == (5, 3, 2, 2)
    assert (made.zero_prices, made.oos_no_price, made.not_modified, made.batches_refused) == (1, 1, 1, 0)
    # Seven pages count: three offers, one unchanged, three failures.
    rates = (made.failure_rate, made.yield_rate, made.drop_rate)
    assert [float(rate) for rate in rates] == [0.4286, 0.5714, 0.4]
    assert (made.prices_written, made.products_new) == (3, 3)
    assert made.fields_found == {"availability": 3, "brand": 1, "gtin": 1, "price": 3, "sku": 3, "title": 3}
    assert (made.adapter_id, made.adapter_version, made.retailer_id) == ("structured", "1.0.0", source.retailer_id)
    assert open_alerts() == [alerts.ZERO_PRICE]


def test_prices_of_an_ineligible_source_are_written_and_its_offers_are_not_touched():
    source = shop(1, visibility="INELIGIBLE")
    target = read(source, found=offer("19.99", sku="A"))
    assert (prices(source), rows("SELECT FROM offers"), target.last_seen["offer"]["price"]) == (
        [19.99],
        [],
        "19.99 USD",
    )
    assert Source.objects.get(pk=source.pk).visibility == "INELIGIBLE"


def test_attributes_that_no_column_has_are_stored():
    source = shop(1)
    read(source, found=offer("19.99", sku="A", caliber="9mm Luger", round_count=50))
    [(attributes,)] = rows("SELECT attributes::text FROM product_attributes")
    assert json.loads(attributes) == {"caliber": "9mm Luger", "round_count": 50, "cost_per_round": "0.40 USD"}


def test_the_part_keeps_what_was_found_and_why():
    source = shop(1)
    read(
        source,
        "AMBIGUOUS_PRICE",
        offer("19.99", sku="A"),
        detail={"error": "two prices", "evidence": [{"field": "price"}]},
    )
    [entry] = QuarantineEntry.objects.filter(source=source)
    assert (entry.detail, entry.evidence, entry.found["price"]) == ("two prices", [{"field": "price"}], "19.99 USD")
    assert (entry.adapter_id, entry.version, entry.part_id) == ("structured", "1.0.0", RunPart.objects.get().pk)


def test_nothing_is_counted_for_parts_that_failed_or_were_cancelled():
    source = shop(1)
    before = targets(source)[0]
    for name in ("FAILED", "CANCELLED"):
        after = read(source, name)
        assert (after.consecutive_failures, after.last_status) == (0, before.last_status)
    assert rows("SELECT FROM scrape_batches") == []
    assert not AdapterState.objects.filter(source=source).exists()


@pytest.mark.parametrize(
    ("later", "outcome"),
    [
        ({"sku": "A", "title": "New name"}, "OFFER"),
        ({"mpn": "a"}, "OFFER"),
        ({"sku": None, "title": " thing  a"}, "OFFER"),
        ({"sku": None, "title": "Its successor"}, "WRONG_PRODUCT"),
        ({"product_id": "9", "title": "Its successor"}, "WRONG_PRODUCT"),
    ],
)
def test_a_redirect_must_lead_to_the_same_product(later, outcome):
    source = shop(1)
    read(source, found=offer("19.99", sku="A"))
    [part] = begin(source)
    found = offer("21.99", **{"title": "New name", **later})
    new = "https://shop.example/new"
    detail = {"url": new, "moved_to": new}
    assert end(part, "OFFER", found, after=1, detail=detail, page="x") == outcome
    assert shown() == ([21.99] if outcome == "OFFER" else [19.99])
    assert targets(source)[0].moved_to == (new if outcome == "OFFER" else None), "no successor replaces the page"


def test_a_person_may_say_that_a_redirect_leads_to_the_same_product():
    source = shop(1)
    read(source, found=offer("19.99", sku="A", title="Old"))
    new = {"detail": {"url": "https://shop.example/new"}}
    read(source, found=offer("20.99", title="New"), after=1, **new)
    quarantine.write_one(OLGA, QuarantineEntry.objects.get(source=source).pk)
    assert prices(source) == [19.99, 20.99]
    read(source, found=offer("21.99", title="New"), after=2, **new)
    assert prices(source) == [19.99, 20.99, 21.99], "its title is known now"


def test_another_spelling_of_the_address_is_no_redirect_to_another_product():
    source = shop(1)
    read(source, found=offer("19.99", title="Old", sku="A"))
    [part] = begin(source)
    detail = {"url": "https://www.shop.example/0/?utm_source=x"}
    assert end(part, "OFFER", offer("21.99", title="Renamed"), after=1, detail=detail) == "OFFER"


def test_a_linked_product_does_not_get_the_price_of_its_successor():
    source = shop(0)
    number = catalog.product(source, identity_value="S-1", sku="S-1", title="Old saw")
    catalog.target(source, "https://shop.example/0", product_id=number)
    moved = {"url": "https://shop.example/new"}
    read(source, found=offer("24.00", title="New saw", sku="S-2"), detail=moved)
    assert (prices(source), waiting_entries(source)) == ([], ["WRONG_PRODUCT"])
    read(source, found=offer("19.00", title="Saw", sku="S-1"), detail=moved, after=1)
    assert prices(source) == [19.0]


def test_the_first_page_of_a_target_may_be_behind_a_redirect():
    source = shop(1)
    read(source, found=offer("19.99", sku="A"), detail={"url": "https://shop.example/new"})
    assert prices(source) == [19.99]
