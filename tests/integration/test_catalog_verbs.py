"""Retailers and sources are made and changed by verbs: checked, audited, in one transaction."""

import threading

import pytest
from django.db import IntegrityError, connection, transaction
from structlog.testing import capture_logs
from tests.support import catalog
from tests.support.catalog import audited, details, fetch, hours

from harvester.api.schemas import Rejection
from harvester.catalog import fields, retailers, sources
from harvester.catalog.display_primary import set_display_primary, unset_display_primary
from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.ids import uuid7
from harvester.kernel.text import LONGEST_REASON
from harvester.portal.catalog.forms import CorrectionForm

ANN = Actor(kind="person", id="user:1", name="ann")

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shop():
    return retailers.create(ANN, name="Shop", website="https://www.Shop.example/home")


@pytest.fixture
def feed(shop):
    return sources.create(ANN, shop.pk, name="Shop by Impact", kind="AFFILIATE_FEED")


def test_a_retailer_is_known_by_the_domain_of_its_website(shop):
    assert shop.domain == "shop.example"
    changed = retailers.update(ANN, shop.pk, website="https://shop.test", name="Shop Two")
    assert (changed.domain, changed.name) == ("shop.test", "Shop Two")
    assert audited() == [
        ("RETAILER_CREATED", "retailer", []),
        ("RETAILER_UPDATED", "retailer", ["domain", "name", "website"]),
    ]


def test_two_retailers_cannot_have_one_domain(shop):
    with pytest.raises(Conflict, match="already belongs to the retailer Shop"):
        retailers.create(ANN, name="Copy", website="http://shop.example")
    other = retailers.create(ANN, name="Other")
    with pytest.raises(Conflict, match=r"^website: .*already belongs to the retailer Shop"):
        retailers.update(ANN, other.pk, website="https://shop.example")
    assert len(audited()) == 2


def test_an_update_without_changes_is_neither_written_nor_logged(shop, feed):
    before = audited()
    retailers.update(ANN, shop.pk, name="Shop")
    sources.update(ANN, feed.pk, kind="AFFILIATE_FEED", upc_trusted=False)
    assert audited() == before


def test_the_audit_log_shows_the_value_before_and_after(feed):
    sources.update(ANN, feed.pk, tracking_template="https://go.example/?u={url}", affiliate_network="impact")
    [recorded] = details("SOURCE_UPDATED")
    assert recorded == {
        "from": {"tracking_template": "", "affiliate_network": None},
        "to": {"tracking_template": "https://go.example/?u={url}", "affiliate_network": "IMPACT"},
    }


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("name", " ", "1 to 200 characters"),
        ("name", "x" * 201, "at most 200"),
        ("name", "a\x00b", "printable"),
        ("kind", "FEED", "DIRECT, AFFILIATE_FEED, OTHER"),
        ("url", "shop.example", "http or https"),
        ("affiliate_network", "two words", "one word such as IMPACT"),
        ("affiliate_account_id", 7, "not a text"),
        ("tracking_template", "https://go.example/{ulr}", "{url}"),
        ("upc_trusted", "yes", "true nor false"),
        ("visibility", "HIDDEN", "ELIGIBLE, INELIGIBLE"),
        ("price_heartbeat_hours", 0, "from 1 to 720"),
        ("price_heartbeat_hours", 721, "from 1 to 720"),
        ("price_heartbeat_hours", True, "from 1 to 720"),
        ("max_hold_hours", 0, "from 1 to 720"),
        ("max_hold_hours", 721, "from 1 to 720"),
        ("expiry_hours", 48, "unknown field"),
        ("retailer", "x", "unknown field"),
    ],
)
def test_a_refused_value_names_its_field_and_says_what_is_allowed(feed, field, value, allowed):
    before = audited()
    with pytest.raises(InvalidInput) as refused:
        sources.update(ANN, feed.pk, **{field: value})
    assert str(refused.value).startswith(f"{field}: ")
    assert allowed in str(refused.value)
    assert audited() == before


@pytest.mark.parametrize("field", ["price_heartbeat_hours", "max_hold_hours"])
@pytest.mark.parametrize("hours", [1, 720])
def test_hours_of_a_source_reach_from_an_hour_to_thirty_days(feed, field, hours):
    assert getattr(sources.update(ANN, feed.pk, **{field: hours}), field) == hours


def test_a_source_has_the_usual_hours_unless_somebody_sets_others(feed):
    feed.refresh_from_db()
    assert (feed.price_heartbeat_hours, feed.max_hold_hours) == (24, 168)


def test_names_of_sources_are_unique_and_their_retailer_exists(shop, feed):
    with pytest.raises(Conflict, match=r"^name: .*Shop by Impact"):
        sources.create(ANN, shop.pk, name="Shop by Impact")
    direct = sources.create(ANN, shop.pk, name="Shop")
    with pytest.raises(Conflict, match=r"^name: "):
        sources.update(ANN, direct.pk, name="Shop by Impact")
    with pytest.raises(NotFound, match="harvester retailer list"):
        sources.create(ANN, uuid7(), name="Nobody's")
    with pytest.raises(NotFound, match="harvester source list"):
        sources.update(ANN, uuid7(), name="Nobody's")


def test_things_are_found_by_what_people_know_them_by(shop, feed):
    assert retailers.find("SHOP.example") == retailers.find("Shop") == retailers.find(str(shop.pk)) == shop
    assert sources.find("Shop by Impact") == sources.find(str(feed.pk)) == feed
    retailers.create(ANN, name="Shop")
    with pytest.raises(InvalidInput, match="use the id or the domain"):
        retailers.find("Shop")


# expiry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [0, 169, -1, 48.0, "48", True, None])
def test_expiry_hours_are_whole_and_from_1_to_168(feed, given):
    with pytest.raises(InvalidInput, match=r"^expiry_hours: .* from 1 to 168"):
        sources.set_expiry_hours(ANN, feed.pk, given)


def test_a_change_of_expiry_is_audited_and_warned_of(feed):
    sources.set_expiry_hours(ANN, feed.pk, 1)
    with capture_logs() as logs:
        sources.set_expiry_hours(ANN, feed.pk, 168)
        sources.set_expiry_hours(ANN, feed.pk, 168)
    [recorded] = logs
    assert (recorded["event"], recorded["log_level"]) == ("EXPIRY_HOURS_CHANGED", "warning")
    assert (recorded["old_value"], recorded["new_value"], recorded["changed_by"]) == (1, 168, "user:1")
    recorded = [(detail["from"], detail["to"]) for detail in details("EXPIRY_HOURS_CHANGED")]
    assert recorded == [({"expiry_hours": None}, {"expiry_hours": 1}), ({"expiry_hours": 1}, {"expiry_hours": 168})]


def test_while_a_run_is_held_neither_expiry_nor_the_longest_hold_changes(feed):
    sources.set_expiry_hours(ANN, feed.pk, 48)
    held = catalog.run(feed, "HELD")
    Source.objects.filter(pk=feed.pk).update(held_run_no=held.no, held_since=catalog.now())
    with pytest.raises(Conflict, match=f"expiry_hours: run {held.no} .* approve or reject it first"):
        sources.set_expiry_hours(ANN, feed.pk, 24)
    with pytest.raises(Conflict, match="max_hold_hours: run"):
        sources.update(ANN, feed.pk, max_hold_hours=24)
    sources.update(ANN, feed.pk, upc_trusted=True)


@pytest.mark.parametrize(("frozen", "allowed"), [(24, True), (24.5, False)])
def test_the_longest_hold_never_makes_the_clock_jump(feed, frozen, allowed):
    Source.objects.filter(pk=feed.pk).update(frozen=hours(frozen))
    if allowed:
        assert sources.update(ANN, feed.pk, max_hold_hours=24).max_hold_hours == 24
    else:
        with pytest.raises(Conflict, match="after the next promotion"):
            sources.update(ANN, feed.pk, max_hold_hours=24)


# display primary -------------------------------------------------------------------------------------------------


def primaries():
    return sorted(Source.objects.filter(is_display_primary=True).values_list("name", flat=True))


def test_to_set_a_primary_unsets_the_others_of_its_retailer_only(shop, feed):
    direct = sources.create(ANN, shop.pk, name="Shop")
    elsewhere = catalog.source(name="elsewhere", is_display_primary=True)
    set_display_primary(ANN, direct.pk)
    set_display_primary(ANN, feed.pk)
    assert primaries() == ["Shop by Impact", "elsewhere"]
    set_display_primary(ANN, feed.pk)
    unset_display_primary(ANN, feed.pk)
    unset_display_primary(ANN, feed.pk)
    assert primaries() == [elsewhere.name]
    recorded = [(verb, changed) for verb, _, changed in audited() if verb.startswith("DISPLAY")]
    changed = ["is_display_primary"]
    assert recorded == [("DISPLAY_PRIMARY_SET", changed)] * 2 + [("DISPLAY_PRIMARY_UNSET", changed)]


def test_two_people_who_choose_at_once_leave_one_primary(shop, feed):
    direct = sources.create(ANN, shop.pk, name="Shop")
    failures = []

    def choose(source):
        try:
            for _ in range(10):
                set_display_primary(ANN, source.pk)
        except BaseException as problem:  # noqa: BLE001 - checked by the assertion below
            failures.append(problem)
        finally:
            connection.close()

    people = [threading.Thread(target=choose, args=[source]) for source in (feed, direct)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert not failures
    assert len(primaries()) == 1


def test_the_table_itself_allows_one_primary_for_each_retailer(shop, feed):
    direct = sources.create(ANN, shop.pk, name="Shop")
    set_display_primary(ANN, direct.pk)
    with pytest.raises(IntegrityError, match="sources_one_primary_per_retailer"), transaction.atomic():
        Source.objects.filter(pk=feed.pk).update(is_display_primary=True)


def test_reasons_have_one_length_limit_everywhere():
    """Portal, API, verbs and database: what one of them takes, the others take too."""
    assert CorrectionForm.base_fields["reason"].max_length == LONGEST_REASON
    assert Rejection.model_json_schema()["properties"]["reason"]["maxLength"] == LONGEST_REASON
    assert fields.reason("x" * LONGEST_REASON) == "x" * LONGEST_REASON
    with pytest.raises(InvalidInput, match="at most 1,000"):
        fields.reason("x" * (LONGEST_REASON + 1))
    found = fetch(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname LIKE %s ORDER BY conname", "%reason_length"
    )
    assert len(found) == 3
    assert all(f"<= {LONGEST_REASON}" in definition for (definition,) in found)
