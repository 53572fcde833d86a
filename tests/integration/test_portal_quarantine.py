"""Quarantine in the portal: what was read next to the reason, and what a person decides."""

import pytest
from django.test import Client
from tests.support import catalog
from tests.support.portal import person, verbs
from tests.support.portal_scraping import SCRIPT, entry, page, shop

from harvester.ops.models import Role
from harvester.scraping.models import ScrapeOverride

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


def text(answer) -> str:
    assert answer.status_code == 200, answer
    return " ".join(answer.content.decode().split())


def test_the_list_shows_open_entries_unless_others_are_asked_for(operator):
    of, other = shop("Ammo Depot"), shop("Range Store")
    entry(page(of, "one"))
    entry(page(of, "two"), "WRONG_PRODUCT")
    entry(page(other, "three"))
    done = {"status": "DISMISSED", "resolved_at": catalog.now(), "resolved_by": "otto"}
    entry(page(of, "four"), **done)

    def shown(query: str) -> set[str]:
        rows = operator.get(f"/quarantine/?{query}").context["cl"].result_list
        return {row.target.url.rpartition("/")[2] for row in rows}

    assert shown("") == {"one", "two", "three"}
    assert shown("reason=WRONG_PRODUCT") == {"two"}
    assert shown(f"source={other.pk}") == {"three"}
    assert shown("status=DISMISSED") == {"four"}
    assert shown("status=any") == {"one", "two", "three", "four"}
    assert shown("source=nonsense") == set()


def test_the_entry_shows_what_was_read_and_never_markup_of_the_page(operator):
    found = entry(page(shop()))
    shown = text(operator.get(f"/quarantine/{found.pk}/"))
    assert "Structured data says 18.99 USD, the page shows 19.99 USD." in shown
    assert "18.99 USD" in shown
    assert "json:offers.price" in shown
    assert SCRIPT not in shown
    assert "This is the price" in shown
    assert "Chosen" not in shown


def test_a_place_that_was_chosen_is_marked(operator):
    found = entry(page(shop(), chosen={"price": "json:offers.price"}))
    answer = operator.get(f"/quarantine/{found.pk}/")
    assert [row["place"] for row in answer.context["evidence"] if row["is_chosen"]] == ["json:offers.price"]
    assert "Chosen" in text(answer)
    assert 'aria-label="This is the price: 18.99"' in text(answer), "a name begins with what the button shows"
    assert 'aria-label="Use this: availability In stock"' in text(answer)


def test_the_offer_is_written_once_a_person_says_that_it_is_right(operator):
    of = shop()
    found = entry(page(of))
    answer = operator.post(f"/quarantine/{found.pk}/write/", {"note": "checked at the shop"}, follow=True)
    assert "The offer was written." in text(answer)
    found.refresh_from_db()
    assert (found.status, found.resolved_by, found.note) == ("WRITTEN", "otto", "checked at the shop")
    written = catalog.fetch("SELECT amount::text, currency FROM prices WHERE source_id = %s", of.pk)
    assert [(amount.rstrip("0"), currency) for amount, currency in written] == [("18.99", "USD")]
    again = text(operator.post(f"/quarantine/{found.pk}/write/", follow=True))
    assert "The entry is WRITTEN already, by otto. Nothing was changed." in again


def test_an_entry_without_an_offer_offers_no_writing(operator):
    found = entry(page(shop()), "PRICE_NOT_FOUND", found=None, evidence=[])
    shown = text(operator.get(f"/quarantine/{found.pk}/"))
    assert "Write this offer" not in shown
    assert "No offer was read from this page." in shown


def test_a_dismissed_entry_is_closed(operator):
    found = entry(page(shop()))
    operator.post(f"/quarantine/{found.pk}/dismiss/", {"note": "a captcha"})
    found.refresh_from_db()
    assert (found.status, found.note) == ("DISMISSED", "a captcha")
    assert verbs(verb="QUARANTINE_DISMISSED") == ["QUARANTINE_DISMISSED"]


def test_only_an_admin_proposes_a_place_for_the_whole_shop(operator):
    found = entry(page(shop()))
    where = f"/quarantine/{found.pk}/propose/"
    given = {"field": "price", "place": "json:offers.price"}
    assert operator.post(where, given).status_code == 403
    operator.force_login(person("ada", Role.ADMIN))
    answer = operator.post(where, given)
    made = ScrapeOverride.objects.get()
    assert answer.headers["Location"] == f"/shops/{found.source_id}/overrides/{made.version}/"
    assert made.places == {"places": {"price": ["json:offers.price"]}}


def test_a_place_that_is_not_one_is_refused(operator):
    found = entry(page(shop()))
    answer = operator.post(f"/quarantine/{found.pk}/choose/", {"field": "mood", "place": "p"}, follow=True)
    assert "there is no mood" in text(answer)
    found.target.refresh_from_db()
    assert found.target.chosen == {}
