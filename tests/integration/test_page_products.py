"""What pages say about products: presence, leads over a feed, backorder, attributes, and what is newer than what."""

import datetime as dt
import re
from pathlib import Path

import pytest
from django.db import transaction
from tests.support import catalog
from tests.support.api import Application
from tests.support.catalog import fetch
from tests.support.feed_world import OLGA, World, allow_loopback, turn_back
from tests.support.page_observations import confirm, end, observed, page_run, product_of, promote
from tests.support.sftp_server import SftpServer
from tests.support.workers import run_until_idle

from harvester.catalog import (
    consumer_offers,
    corrections,
    exposure,
    history,
    ignored_runs,
    migrations,
    offer_browser,
    offers,
    product_details,
    sources,
    visibility_reasons,
)
from harvester.catalog.visibility_reasons import State
from harvester.kernel.errors import Conflict
from harvester.kernel.stock import Availability

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shop():
    """A source with pages only."""
    return catalog.source(kind="DIRECT", expiry_hours=72, last_promoted_at=None)


@pytest.fixture
def world(settings, tmp_path):
    """A feed of forty products, S-100 to S-139, that was promoted once."""
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        made = World(server)
        made.source.visibility = "ELIGIBLE"
        made.source.save()
        made.put(*range(100, 140))
        assert made.run().outcome == "PROMOTED"
        yield made


def shown():
    return dict(fetch(
        "SELECT p.identity_value, v.amount::float FROM visible_offers v "
        "JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id"
    ))  # fmt: skip


def prices():
    return [float(amount) for (amount,) in fetch("SELECT amount FROM prices ORDER BY observed_at, run_no")]


def test_a_product_that_only_pages_show_expires_when_its_page_was_not_read_for_72_hours(shop):
    promote(shop, observed("A"))
    turn_back(71)
    assert shown() == {"A": 10.0}
    turn_back(2)
    assert shown() == {}
    found = visibility_reasons.standing(shop.pk, product_of("A"))
    assert (found.state, found.is_missing, found.by_pages) == (State.EXPIRED, False, True)
    assert "No page has shown it for longer than the 72 h" in found.words


def test_an_unchanged_page_confirms_without_a_price(shop):
    promote(shop, observed("A"))
    turn_back(71)
    confirm(shop, product_of("A"))
    turn_back(71)
    assert (shown(), prices()) == ({"A": 10.0}, [10.0])
    assert offers.differences() == []


def test_a_page_that_is_gone_ends_the_offer_and_the_next_success_brings_it_back(shop):
    promote(shop, observed("A"), observed("B"))
    number = product_of("A")
    for success in (lambda: confirm(shop, number), lambda: promote(shop, observed("A"))):
        end(shop, number)
        assert shown() == {"B": 10.0}
        found = visibility_reasons.standing(shop.pk, number)
        assert (found.state, "gone" in found.words) == (State.ENDED, True)
        assert offers.differences() == []
        success()
        assert shown() == {"A": 10.0, "B": 10.0}
    assert prices() == [10.0, 10.0], "no price is written for it"
    assert offers.differences() == []


def test_an_end_that_is_older_than_a_success_ends_nothing_and_the_other_way_round(shop):
    before = catalog.now()
    promote(shop, observed("A"))
    number = product_of("A")
    end(shop, number, at=before)
    assert shown() == {"A": 10.0}
    between = catalog.now()
    end(shop, number)
    promote(shop, observed("A", "11.00", at=between))
    confirm(shop, number, at=between)
    assert (shown(), prices()) == ({}, [10.0, 11.0]), "the price is newer, and the end is newer than both"
    confirm(shop, number)
    assert shown() == {"A": 11.0}


def test_pages_of_a_feeds_product_never_change_its_presence(world):
    source, number = world.source, product_of("S-100")
    promote(source, observed("S-100", link=number), observed("S-101"))
    before = fetch("SELECT * FROM offers ORDER BY product_id")
    end(source, number, product_of("S-101"))
    assert fetch("SELECT * FROM offers ORDER BY product_id") == before
    world.put(*range(101, 140))
    assert world.run().outcome == "PROMOTED"
    promote(source, observed("S-100", "10.50", link=number))
    confirm(source, number)
    world.pass_time(47)
    assert "S-100" in world.names()
    confirm(source, number)
    world.pass_time(2)
    assert world.names() == set(), "the feed was not promoted for 49 h"
    world.check()


def test_a_feed_does_not_count_products_that_only_pages_show(world):
    promote(world.source, *[observed(f"X-{number}") for number in range(60)])
    world.put(*range(100, 139))
    run = world.run()
    assert run.outcome == "PROMOTED", "60 of 100 would be too many missing products"
    assert world.figures(run).products_missing == 1
    world.pass_time(47)
    world.put(*range(100, 139), Price="1.01")
    world.run()
    assert fetch("SELECT count(*) FROM offers WHERE by_pages AND seen_until < now() - interval '46 hours'") == [(60,)]
    world.check()


def test_a_feed_that_takes_up_a_product_of_a_page_gives_it_its_presence(world):
    promote(world.source, observed("S-200"))
    assert fetch("SELECT by_pages FROM offers WHERE product_id = %s", product_of("S-200")) == [(True,)]
    world.put(*range(100, 140), 200)
    world.run()
    assert fetch("SELECT by_pages, seen_until FROM offers WHERE product_id = %s", product_of("S-200")) == [
        (False, None)
    ]
    assert world.shown()["S-200"][1] == 10.0, "the page leads"
    world.check()


def test_a_page_leads_for_48_hours_and_the_next_promotion_of_the_feed_ends_it(world):
    source, number = world.source, product_of("S-100")
    promote(source, observed("S-100", "3.33", availability=Availability.OUT_OF_STOCK, link=number))
    assert world.shown()["S-100"] == ("Thing 100", 3.33, False)
    world.put(*range(101, 140), 100, Price="2.22")
    world.approve(world.run())
    assert world.shown()["S-100"] == ("Thing 100", 3.33, False), "what the feed records is history"
    assert fetch("SELECT amount::float FROM prices WHERE source_product_id = %s ORDER BY observed_at", number) == [
        (1.0,), (3.33,), (2.22,)]  # fmt: skip
    world.check()
    world.pass_time(47)
    world.put(*range(101, 140), 100, Price="2.23")
    world.run()
    assert world.shown()["S-100"][1] == 3.33
    world.pass_time(2)
    assert world.shown()["S-100"][1] == 3.33, "nothing changes without a promotion"
    world.check()
    world.put(*range(101, 140), 100, 141, Price="2.23")
    assert world.run().outcome == "PROMOTED"
    assert world.shown()["S-100"] == ("Thing 100", 2.23, True)
    world.check()


def test_the_promotion_after_a_lead_restores_a_price_that_it_does_not_write(world):
    source, number = world.source, product_of("S-100")
    source.price_heartbeat_hours = 720
    source.save()
    promote(source, observed("S-100", "3.33", link=number))
    world.pass_time(47)
    world.put(*range(100, 141))
    world.run()
    world.pass_time(2)
    world.put(*range(100, 142))
    run = world.run()
    assert world.figures(run).prices_written == 1, "that of the new product"
    assert world.shown()["S-100"] == ("Thing 100", 1.0, True)
    world.check()


@pytest.mark.parametrize("counts_as_seen", [True, False])
def test_an_unchanged_file_ends_leads_only_where_it_counts_as_seen(world, counts_as_seen):
    world.change(unchanged_means_seen=counts_as_seen)
    promote(world.source, observed("S-100", "3.33", link=product_of("S-100")))
    world.pass_time(49)
    assert world.run().outcome == "SKIPPED"
    assert fetch("SELECT amount::float FROM offers WHERE product_id = %s", product_of("S-100")) == [
        (1.0 if counts_as_seen else 3.33,)]  # fmt: skip
    assert ("S-100" in world.names()) is counts_as_seen
    world.check()


def test_a_page_that_is_unchanged_leads_again(world):
    source, number = world.source, product_of("S-100")
    promote(source, observed("S-100", "3.33", link=number))
    world.pass_time(49)
    world.put(*range(100, 141))
    world.run()
    assert world.shown()["S-100"][1] == 1.0
    confirm(source, number)
    assert world.shown()["S-100"][1] == 3.33
    world.check()


def test_visibility_switches_pages_off_and_on_with_their_presence(world):
    source, number = world.source, product_of("S-100")
    promote(source, observed("S-100", "3.33", link=number), observed("X"), observed("Y"))
    end(source, product_of("Y"))
    sources.update(OLGA, source.pk, visibility="INELIGIBLE")
    assert (world.shown()["S-100"][1], "X" in world.names()) == (1.0, False)
    world.check()
    world.pass_time(40)
    world.put(*range(100, 141))
    world.run()
    confirm(source, product_of("X"))
    sources.update(OLGA, source.pk, visibility="ELIGIBLE")
    assert world.shown()["S-100"][1] == 3.33
    assert {"X", "Y"} & world.names() == {"X"}, "Y ended before"
    is_seen = "SELECT seen_until > now() - interval '1 hour' FROM offers WHERE product_id = %s"
    assert fetch(is_seen, product_of("X")) == [(True,)]
    world.check()


def test_an_ignored_run_of_pages_hides_its_prices_and_its_leads_until_that_is_undone(world):
    source, number = world.source, product_of("S-100")
    run = page_run(source)
    promote(source, observed("S-100", "3.33", link=number), run=run)
    ignored_runs.ignore_run(OLGA, run.pk, "a list price")
    assert world.shown()["S-100"][1] == 1.0
    assert fetch("SELECT FROM ignored_prices") == [], "no gate of the feed compares with prices of pages"
    world.check()
    ignored_runs.undo_ignore(OLGA, run.pk)
    assert world.shown()["S-100"][1] == 3.33
    ignored_runs.ignore_run(OLGA, run.pk, "a list price")
    confirm(source, number)
    with pytest.raises(Conflict, match="read the page, again"):
        ignored_runs.undo_ignore(OLGA, run.pk)
    world.check()


def test_a_correction_of_a_led_price_and_its_revocation(world):
    source, number, before = world.source, product_of("S-100"), catalog.now()
    promote(source, observed("S-100", "3.33", link=number))
    made = corrections.create(
        OLGA, scope="PRODUCT", source_id=source.pk, product_id=number, action="IGNORE", reason="wrong",
        observed_from=before,
    )  # fmt: skip
    assert world.shown()["S-100"][1] == 1.0, "the page has no readable price, so the feed has"
    world.check()
    corrections.revoke(OLGA, made.pk)
    assert world.shown()["S-100"][1] == 3.33
    world.check()


def test_what_a_source_with_pages_only_shows_is_counted(shop):
    seen = exposure.exposure_of(shop.pk)
    assert (seen.visible, seen.not_visible_because) == (0, None)
    promote(shop, observed("A"), observed("B"), observed("C"))
    end(shop, product_of("A"))
    seen = exposure.exposure_of(shop.pk)
    assert (seen.visible, seen.disappearing, seen.not_visible_because) == (2, 0, None)
    turn_back(73)
    seen = exposure.exposure_of(shop.pk)
    assert (seen.visible, "could not be read for too long" in seen.not_visible_because) == (0, True)
    sources.update(OLGA, shop.pk, visibility="INELIGIBLE")
    assert "do not count" in exposure.exposure_of(shop.pk).not_visible_because


def test_what_a_source_with_both_shows_is_counted(world):
    promote(world.source, observed("S-100", link=product_of("S-100")), observed("X"), observed("Y"))
    end(world.source, product_of("Y"))
    assert exposure.exposure_of(world.source.pk).visible == len(world.names()) == 41
    world.pass_time(49)
    confirm(world.source, product_of("X"))
    assert exposure.exposure_of(world.source.pk).visible == len(world.names()) == 1, "the feed's offers expired"


def test_backorder_is_shown_everywhere_and_outlives_a_recompute(shop):
    promote(shop, observed("A", availability=Availability.BACKORDER), observed("B"),
            observed("C", availability=Availability.OUT_OF_STOCK))  # fmt: skip
    offers.recompute(shop.pk, [product_of("A")])
    expected = {"A": "BACKORDER", "B": "IN_STOCK", "C": "OUT_OF_STOCK"}
    found = {offer.sku: offer.availability for offer in consumer_offers.offers_by_number(sku="A")}
    assert found == {"A": "BACKORDER"}
    for sku, availability in expected.items():
        number = product_of(sku)
        assert consumer_offers.offer(shop.pk, number).availability == availability
        assert [line.availability for line in offer_browser.lines([(shop.pk, number)])] == [availability]
        assert [point.availability for point in history.price_history(shop.pk, number)] == [availability]
    application = Application("offers:read")
    for one in application.read("/offers")["items"]:
        assert one["availability"] == expected[one["sku"]]
        assert one["in_stock"] is (one["availability"] == "IN_STOCK")
        assert one["missing_since"] is None
        [point] = application.read(f"/offers/{one['id']}/history")["items"]
        assert point["availability"] == expected[one["sku"]]
    assert offers.differences() == []
    promote(shop, observed("A", availability=Availability.OUT_OF_STOCK))
    assert consumer_offers.offer(shop.pk, product_of("A")).availability == "OUT_OF_STOCK"


def test_a_wrong_backorder_and_wrong_presence_of_pages_are_found(shop):
    promote(shop, observed("A"))
    number = product_of("A")
    for wrong in (
        "on_backorder = true", "ended_at = now()", "seen_until = seen_until - interval '1 hour'", "by_pages = false",
    ):  # fmt: skip
        with transaction.atomic():
            fetch(f"UPDATE offers SET {wrong}")
            assert offers.differences() == [(shop.pk, number)], wrong
            transaction.set_rollback(True)
    assert offers.differences() == []


def test_attributes_of_a_page_are_shown_with_one_offer_and_only_where_its_price_is(shop):
    promote(shop, observed("A", "25.00", caliber="9mm", round_count=50, cost_per_round="9.99 USD"))
    number = product_of("A")
    shown_then = {"caliber": "9mm", "round_count": 50, "cost_per_round": "0.500 USD"}
    assert consumer_offers.offer(shop.pk, number).attributes == shown_then
    application = Application("offers:read")
    [listed] = application.read("/offers")["items"]
    assert "attributes" not in listed
    assert listed["identity"] == "SKU:A"
    assert application.read(f"/offers/{listed['id']}")["attributes"] == shown_then
    assert product_details.product(shop.pk, number).attributes == shown_then
    promote(shop, observed("A", "25.00", caliber="9 mm"))
    assert consumer_offers.offer(shop.pk, number).attributes == {"caliber": "9 mm"}
    sources.update(OLGA, shop.pk, visibility="INELIGIBLE")
    assert "cost_per_round" not in product_details.product(shop.pk, number).attributes


def test_a_page_of_a_feeds_product_changes_price_and_stock_only(world):
    before = fetch("SELECT * FROM source_products ORDER BY id")
    linked, by_identity = product_of("S-100"), product_of("S-101")
    written = promote(world.source, observed("Z-9", "3.33", link=linked, title="Other", caliber="9mm"),
                   observed("S-101", "4.44", title="Other", caliber="9mm"))  # fmt: skip
    assert written.products == {0: linked, 1: by_identity}
    assert (written.new, written.prices) == (0, 2)
    assert fetch("SELECT * FROM source_products ORDER BY id") == before
    assert fetch("SELECT FROM product_attributes") == []
    assert (world.shown()["S-100"][1], world.shown()["S-101"][1]) == (3.33, 4.44)


def test_a_link_counts_more_than_the_identity_and_a_missing_one_less(world):
    linked = product_of("S-100")
    found = promote(world.source, observed("S-101", "3.33", link=linked), observed("X", link=linked + 10**9))
    assert (found.overruled, found.unlinked, found.superseded) == ([0], [1], [])
    assert found.products == {0: linked, 1: product_of("X")}


def test_what_was_observed_before_changes_nothing_even_if_no_price_was_written_since(shop):
    promote(shop, observed("A"))
    between = catalog.now()
    confirm(shop, product_of("A"))
    found = promote(shop, observed("A", "5.00", at=between))
    assert (found.superseded, found.products, found.prices) == ([0], {}, 0)
    promote(shop, observed("A"))
    assert promote(shop, observed("A", "5.00", at=between)).superseded == [0]
    assert (shown(), prices()) == ({"A": 10.0}, [10.0])


def test_of_one_moment_only_a_later_run_counts(shop):
    at, first = catalog.now(), page_run(shop)
    promote(shop, observed("A", at=at), run=first)
    assert promote(shop, observed("A", "5.00", at=at), run=first).superseded == [0]
    again = promote(shop, observed("A", "6.00", at=at))
    assert (again.superseded, shown()) == ([], {"A": 6.0}), "the same page, read with a better adapter"
    assert promote(shop, observed("A", "7.00", at=at), run=first).superseded == [0]
    assert offers.differences() == []


def test_of_one_product_twice_in_a_batch_the_newer_observation_counts(shop):
    at = catalog.now()
    later = at + dt.timedelta(seconds=1)
    found = promote(
        shop, observed("A", "5.00", at=at), observed("A", "6.00", at=later), observed("A", "7.00", at=later)
    )
    assert (found.superseded, shown()) == ([0, 2], {"A": 6.0})


def test_the_resolver_gets_the_products_that_are_new_or_changed(shop):
    promote(shop, observed("A"), observed("B"))
    promote(shop, observed("A", "11.00"), observed("B", title="Better"))
    asked = fetch("SELECT args->'product_ids' FROM jobs WHERE kind = 'catalog.resolve' ORDER BY id")
    as_sent = [sorted(ids) if isinstance(ids, list) else ids for (ids,) in asked]
    both = sorted((product_of("A"), product_of("B")))
    assert [str(ids) for ids in as_sent] == [str(both), str([product_of("B")])]
    run_until_idle()
    assert fetch("SELECT count(*) FROM product_links") == [(2,)]


def test_what_pages_of_an_earlier_version_showed_is_taken_over(world):
    """As the migration does it, on the prices and offers that it finds."""
    source = world.source
    promote(source, observed("S-100", "3.33", link=product_of("S-100")), observed("X"), observed("Y"))
    ignored = page_run(source)
    promote(source, observed("S-101", "4.44", link=product_of("S-101")), run=ignored)
    ignored_runs.ignore_run(OLGA, ignored.pk, "wrong")
    columns = "product_id, seen_at, leads_until IS NOT NULL"
    before = fetch(f"SELECT {columns} FROM page_products ORDER BY 1"), world.shown()
    fetch("DELETE FROM page_products")
    fetch("UPDATE offers SET by_pages = false, ended_at = NULL")
    sql = Path(migrations.__file__).with_name("0003_pages.sql").read_text()
    taken_over = re.findall(r"^INSERT INTO page_products.*?;$|^UPDATE offers o.*?;$", sql, re.MULTILINE | re.DOTALL)
    assert len(taken_over) == 2
    for statement in taken_over:
        fetch(statement)
    assert (fetch(f"SELECT {columns} FROM page_products ORDER BY 1"), world.shown()) == before
    world.check()
