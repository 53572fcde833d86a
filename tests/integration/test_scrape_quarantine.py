"""Quarantine: what waits for a person, and what people do with it."""

from decimal import Decimal

import pytest
from tests.support.page_runs import begin, end, offer, open_alerts, prices, read, shop, shown, targets, waiting_entries
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.ids import uuid7
from harvester.kernel.money import Price
from harvester.kernel.stock import Availability
from harvester.ops.models import AuditEvent
from harvester.scraping import alerts, quarantine
from harvester.scraping.jobs import FORGET
from harvester.scraping.models import QuarantineEntry, ScrapeOverride, ScrapeTarget
from harvester.scraping.offers import ScrapedOffer

pytestmark = pytest.mark.usefixtures("database")
OLGA = Actor(kind="person", id="olga", name="Olga")


def entry_of(source) -> QuarantineEntry:
    return QuarantineEntry.objects.get(source=source, status="OPEN")


def verbs() -> list[str]:
    return list(AuditEvent.objects.filter(actor_id="olga").order_by("id").values_list("verb", flat=True))


def this(price: str, **more) -> ScrapedOffer:
    values = {"title": "Thing", "sku": "A", "availability": Availability.IN_STOCK, **more}
    return ScrapedOffer(price=Price(amount=Decimal(price), currency="USD"), **values)


def test_a_newer_page_takes_the_place_of_an_entry():
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE", offer("1.00", sku="A"))
    read(source, "CONTRADICTION", offer("2.00", sku="A"), after=1)
    assert waiting_entries(source) == ["CONTRADICTION"]
    assert set(QuarantineEntry.objects.values_list("status", flat=True)) == {"OPEN", "SUPERSEDED"}


def test_an_older_page_does_not_take_the_place_of_an_entry():
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE", offer("1.00", sku="A"), after=5)
    ScrapeTarget.objects.update(last_scraped_at=None)
    read(source, "CONTRADICTION", offer("2.00", sku="A"))
    assert waiting_entries(source) == ["AMBIGUOUS_PRICE"]


@pytest.mark.parametrize("name", ["OFFER", "NOT_MODIFIED", "OOS_NO_PRICE"])
def test_a_newer_page_that_was_read_well_closes_an_entry(name):
    source = shop(1)
    read(source, "ZERO_PRICE_EXTRACTED")
    assert open_alerts() == [alerts.ZERO_PRICE]
    read(source, name, offer("2.00", sku="A") if name == "OFFER" else None, after=1)
    assert (waiting_entries(source), open_alerts()) == ([], [])


def test_dismissing_writes_nothing():
    source = shop(1)
    read(source, "ZERO_PRICE_EXTRACTED")
    done = quarantine.dismiss(OLGA, entry_of(source).pk, "a gift")
    assert (done.status, done.resolved_by, done.note, prices(source)) == ("DISMISSED", "Olga", "a gift", [])
    assert (open_alerts(), verbs()) == ([], ["QUARANTINE_DISMISSED"])
    with pytest.raises(Conflict, match="DISMISSED already, by Olga"):
        quarantine.write_one(OLGA, done.pk)


def test_this_is_the_price():
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE")
    done = quarantine.write_one(OLGA, entry_of(source).pk, this("12.50"), note="it is on the page")
    assert (done.status, shown(), verbs()) == ("WRITTEN", [12.50], ["QUARANTINE_WRITTEN"])
    event = AuditEvent.objects.get(verb="QUARANTINE_WRITTEN")
    assert (event.detail["price"], event.detail["run_no"]) == ("12.50 USD", done.run_no)
    assert targets(source)[0].last_seen["offer"]["price"] == "12.50 USD"
    assert read(source, found=offer("12.60", sku="A"), after=1).last_status == "OFFER"


def test_the_offer_that_was_read_is_written_if_no_other_is_given():
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE", offer("12.50", sku="A"))
    assert quarantine.write_one(OLGA, entry_of(source).pk).status == "WRITTEN"
    assert prices(source) == [12.50]


def test_an_entry_without_an_offer_cannot_be_written():
    source = shop(1)
    read(source, "ZERO_PRICE_EXTRACTED", {"title": "Thing"})
    with pytest.raises(InvalidInput, match="Not enough was read"):
        quarantine.write_one(OLGA, entry_of(source).pk)
    assert (prices(source), waiting_entries(source)) == ([], ["ZERO_PRICE_EXTRACTED"])


def test_a_newer_price_is_not_overwritten():
    source = shop(2)
    first, second = begin(source)
    end(first, "AMBIGUOUS_PRICE", offer("12.50", sku="A"))
    end(second, found=offer("13.00", sku="A"), after=1)
    done = quarantine.write_one(OLGA, entry_of(source).pk)
    assert (done.status, prices(source), verbs()) == ("SUPERSEDED", [13.00], ["QUARANTINE_SUPERSEDED"])


def test_a_price_that_a_person_wrote_is_not_waited_for():
    source = shop(5)
    for number, part in enumerate(begin(source)):
        end(part, found=offer(f"{number + 10}.00", sku=f"S-{number}"))
    for number, part in enumerate(begin(source)):
        end(part, found=offer(f"{(number + 10) * 4}.00", sku=f"S-{number}"), after=1)
    assert waiting_entries(source) == ["BULK_MOVE"] * 5
    for entry in QuarantineEntry.objects.filter(source=source, status="OPEN"):
        quarantine.write_one(OLGA, entry.pk)
    assert shown() == [40.0, 44.0, 48.0, 52.0, 56.0]


def test_five_equal_prices_that_a_person_wrote_are_believed_from_then_on():
    source = shop(5)
    same = [offer("9.99", sku=f"S-{number}") for number in range(5)]
    for part, found in zip(begin(source), same, strict=True):
        end(part, found=found)
    for entry in QuarantineEntry.objects.filter(source=source, status="OPEN"):
        quarantine.write_one(OLGA, entry.pk)
    for part, found in zip(begin(source), same, strict=True):
        end(part, found=found, after=1)
    assert (waiting_entries(source), shown()) == ([], [9.99] * 5)


def test_another_product_is_refused_until_the_page_is_unpinned():
    source = shop(1)
    read(source, found=offer("10.00", sku="A"))
    read(source, found=offer("11.00", sku="B"), after=1)
    entry = entry_of(source)
    with pytest.raises(Conflict, match="it was A before"):
        quarantine.write_one(OLGA, entry.pk)
    assert waiting_entries(source) == ["WRONG_PRODUCT"]
    quarantine.unpin(OLGA, entry.target_id)
    assert quarantine.write_one(OLGA, entry.pk).status == "WRITTEN"
    assert rows("SELECT identity_value FROM source_products ORDER BY 1") == [("A",), ("B",)]
    assert targets(source)[0].pinned["sku"] == "B"


def test_chosen_places_are_kept_with_the_target():
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE")
    entry = entry_of(source)
    quarantine.choose_places(OLGA, entry.pk, {"price": ".now::text"})
    quarantine.choose_places(OLGA, entry.pk, {"title": "h2::text"})
    assert targets(source)[0].chosen == {"price": ".now::text", "title": "h2::text"}
    assert waiting_entries(source) == ["AMBIGUOUS_PRICE"], "the page is read again to write anything"
    assert verbs() == ["SCRAPE_PLACES_CHOSEN"] * 2


@pytest.mark.parametrize(
    "places",
    [{}, {"color": "h2::text"}, {"price": " "}, {"price": "x" * 501}, {"price": "b.now"}, {"price": "json:a..b"}],
)
def test_places_must_be_of_known_fields(places):
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE")
    with pytest.raises(InvalidInput, match="places"):
        quarantine.choose_places(OLGA, entry_of(source).pk, places)
    assert targets(source)[0].chosen == {}


def test_an_override_of_the_source_is_a_draft_in_front_of_what_is_active():
    source = shop(1)
    read(source, "AMBIGUOUS_PRICE")
    ScrapeOverride.objects.create(
        source=source, version=1, places={"exclude": [".related"], "places": {"price": [".old::text", ".now::text"]}},
        status="ACTIVE", backtest={}, created_by="Ada",
    )  # fmt: skip
    made = quarantine.propose_override(OLGA, entry_of(source).pk, {"price": ".now::text"}, "the big one")
    assert (made.version, made.status, made.created_by, made.note) == (2, "DRAFT", "Olga", "the big one")
    assert made.places == {"exclude": [".related"], "places": {"price": [".now::text", ".old::text"]}}


def test_entries_are_deleted_after_90_days_with_their_alert():
    source = shop(1)
    read(source, "ZERO_PRICE_EXTRACTED")
    enqueue(FORGET)
    run_until_idle(queues=("maintenance",))
    assert waiting_entries(source) == ["ZERO_PRICE_EXTRACTED"]
    QuarantineEntry.objects.update(created_at=entry_of(source).created_at.replace(year=2020))
    enqueue(FORGET)
    run_until_idle(queues=("maintenance",))
    assert (QuarantineEntry.objects.count(), open_alerts()) == (0, [])


def test_an_unknown_entry_or_page_is_said():
    for call in (quarantine.dismiss, quarantine.write_one, quarantine.unpin):
        with pytest.raises(NotFound):
            call(OLGA, uuid7())
