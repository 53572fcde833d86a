"""Trying an address in the portal: it asks once, shows what was read from where and why, and writes nothing."""

from dataclasses import replace

import pytest
from django.test import Client
from tests.support.portal import person, state_of
from tests.support.portal_scraping import OFFER, SCRIPT, shop, tried

from harvester.ops.models import Role
from harvester.scraping.models import FetchRequest

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


@pytest.fixture
def contact(settings):
    settings.CONFIG = replace(
        settings.CONFIG, scrape_contact_url="https://example.com/bot", scrape_contact_mail="bot@example.com"
    )


def text(answer) -> str:
    assert answer.status_code == 200, answer
    return " ".join(answer.content.decode().split())


def test_an_address_is_queued_and_its_page_refreshes_itself(operator, contact):
    of = shop()
    answer = operator.post("/try-url/", {"url": "https://shop.example/9mm", "source": str(of.pk)})
    made = FetchRequest.objects.get()
    assert answer.headers["Location"] == f"/try-url/{made.pk}/"
    assert (made.url, made.source_id, made.requested_by) == ("https://shop.example/9mm", of.pk, "otto")
    assert state_of(made.job_id) == "pending"
    assert 'hx-trigger="every 1s"' in text(operator.get(f"/try-url/{made.pk}/"))


def test_without_a_contact_nothing_is_tried(operator):
    answer = operator.post("/try-url/", {"url": "https://shop.example/9mm"})
    assert "contact" in str(answer.context["form"].errors).lower()
    assert not FetchRequest.objects.exists()


@pytest.mark.parametrize("url", ["ftp://shop.example/", "https://127.0.0.1/", "https://user:pass@shop.example/", "no"])
def test_an_address_that_is_never_read_is_refused_at_its_field(operator, contact, url):
    answer = operator.post("/try-url/", {"url": url})
    assert answer.context["form"].errors["url"]
    assert not FetchRequest.objects.exists()


def test_the_result_shows_the_offer_its_evidence_and_the_text_and_no_markup(operator):
    found = tried(shop("Ammo Depot"))
    shown = text(operator.get(f"/try-url/{found.pk}/"))
    assert OFFER["title"] in shown
    assert "json:offers.price" in shown
    assert "Ammo Depot" in shown
    assert "<mark>$21.99</mark> now <mark>18.99</mark>" in shown
    assert SCRIPT not in shown
    assert "hx-trigger" not in shown
    assert "shop.example/9mm" in text(operator.get("/try-url/"))


def test_a_page_that_was_not_fetched_says_why(operator):
    result = {"error": "The shop's robots.txt does not allow this page.", "robots": "Disallow: /"}
    found = tried(outcome="BLOCKED_BY_ROBOTS_TXT", result=result)
    shown = text(operator.get(f"/try-url/{found.pk}/"))
    assert "The shop&#x27;s robots.txt does not allow this page." in shown
    assert "Disallow: /" in shown


def test_a_viewer_tries_nothing(operator, contact):
    operator.force_login(person("vera", Role.VIEWER))
    assert operator.post("/try-url/", {"url": "https://shop.example/9mm"}).status_code == 403
    assert "needs the role of an operator" in text(operator.get("/try-url/"))
