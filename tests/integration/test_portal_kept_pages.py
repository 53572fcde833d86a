"""Kept pages in the portal, read by real child processes: the text of an entry, the price that a person chose, tests of
overrides, and where lost values are found now."""

import pytest
from django.test import Client
from tests.support import catalog
from tests.support.portal import person
from tests.support.portal_scraping import page, shop
from tests.support.scripted_shop import product_page
from tests.support.workers import run_until_idle

from harvester.ops.models import AuditEvent, Role
from harvester.scraping import kept_pages, sandbox
from harvester.scraping.models import KeptPage, QuarantineEntry, ScrapeOverride, ScrapeTarget

LOUD = "<b>Now only $17.50!</b><script>alert(1)</script><i>&lt;script&gt;alert(2)&lt;/script&gt;</i>"


@pytest.fixture(autouse=True)
def children(database):
    """End the child processes that read pages."""
    yield
    sandbox.close()


@pytest.fixture
def admin(client: Client):
    client.force_login(person("ada", Role.ADMIN))
    return client


def keep(of: ScrapeTarget, body: str, **values) -> KeptPage:
    stored = kept_pages.store_body(body.encode())
    with catalog.connection.cursor() as cursor:
        kept_pages.keep(
            cursor, stored, url=of.url, status=200, content_type="text/html", since=0, source_id=of.source_id,
            target_id=of.pk,
        )  # fmt: skip
    KeptPage.objects.filter(hash=stored.hash).update(**values)
    return KeptPage.objects.get(hash=stored.hash, target_id=of.pk)


def text(answer) -> str:
    assert answer.status_code == 200, answer
    return " ".join(answer.content.decode().split())


def messages_of(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def doubtful(target: ScrapeTarget) -> QuarantineEntry:
    """An entry whose page says one price in its structured data and another to people."""
    kept = keep(
        target, product_page(price="19.99").replace('<p class="price">$19.99</p>', f'<p class="price">$21.00</p>{LOUD}')
    )
    evidence = [{"field": "price", "value": "$21.00", "syntax": "page text", "place": ".price::text", "is_used": False,
                 "note": "differs"}]  # fmt: skip
    return QuarantineEntry.objects.create(
        source_id=target.source_id, target=target, run_no=1, part_id=target.pk, reason="NO_AGREEMENT", version="1.0.0",
        detail="Structured data says 19.99, the page 21.00.", adapter_id="structured", evidence=evidence,
        page=kept.hash, observed_at=kept.fetched_at,
    )  # fmt: skip


def test_the_text_of_the_page_is_shown_with_its_candidates_and_never_as_markup(admin):
    shown = text(admin.get(f"/quarantine/{doubtful(page(shop())).pk}/"))
    assert "<mark>$21.00</mark>" in shown
    assert "Now only $17.50!" in shown
    assert "<script>alert" not in shown


def test_the_price_that_a_person_chose_is_read_and_written(admin):
    target = page(shop(), last_seen=None)
    found = doubtful(target)
    given = {"field": "price", "place": "p.price::text"}
    answer = admin.post(f"/quarantine/{found.pk}/choose/", given, follow=True)
    assert messages_of(answer) == "The offer was written: 21.00 USD."
    target.refresh_from_db()
    assert target.chosen == {"price": "p.price::text"}
    [(amount,)] = catalog.fetch("SELECT amount::text FROM prices WHERE source_id = %s", target.source_id)
    assert amount.startswith("21.00")


def test_a_page_that_is_still_not_certain_stays_in_quarantine_and_says_why(admin):
    found = doubtful(page(shop()))
    answer = admin.post(f"/quarantine/{found.pk}/reprocess/", follow=True)
    assert "nothing was written" in messages_of(answer)
    found.refresh_from_db()
    assert found.status == "OPEN"


def test_an_override_is_tested_on_kept_pages_and_then_used(admin):
    of = shop()
    offer = {"title": "Hammer", "price": "19.99 USD", "availability": "in_stock", "sku": "H-1"}
    for number in range(3):
        keep(page(of, f"p{number}"), product_page(title=f"Hammer {number}"), found=offer, outcome="OFFER")
    admin.post(f"/shops/{of.pk}/overrides/", {"places": '{"places": {"price": ["h1.title::text"]}}'})
    where = f"/shops/{of.pk}/overrides/1/"
    admin.post(f"{where}test/")
    run_until_idle(queues=("maintenance",))
    answer = admin.get(where)
    assert {tile["name"]: tile["count"] for tile in answer.context["tiles"]}["Lost the offer"] == 3
    assert "Test on 3 kept pages" in text(answer)
    assert "Being tested" not in text(answer)
    admin.post(f"{where}use/")
    assert ScrapeOverride.objects.get().status == "ACTIVE"


def test_lost_values_are_found_and_tried_as_an_override(admin):
    of = shop()
    for number in range(3):
        seen = {"title": f"Hammer {number}", "price": "19.99 USD", "availability": "in_stock"}
        target = page(of, f"p{number}", last_seen={"offer": seen})
        keep(
            target,
            f'<html><body><main><h2 class="name">Hammer {number}</h2><em class="cost">$19.99</em></main></body></html>',
        )
    where = f"/shops/{of.pk}/overrides/"
    admin.post(f"/shops/{of.pk}/hints/")
    run_until_idle(queues=("maintenance",))
    hints = admin.get(where).context["hints"]["rows"]
    price = next(hint for hint in hints if hint["field"] == "price")
    assert (price["found"], price["pages"]) == (3, 3)
    admin.post(where, {"places": price["places"], "note": "found again"})
    assert ScrapeOverride.objects.get().places == {"places": {"price": [price["place"]]}}
    assert AuditEvent.objects.filter(verb="SCRAPE_HINTS_REQUESTED", object_id=str(of.pk)).count() == 1
