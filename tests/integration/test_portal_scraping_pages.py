"""Pages of shops in the portal: the list with its filters, the page of one, and what people do with them."""

import pytest
from django.test import Client
from tests.support.portal import person, verbs
from tests.support.portal_scraping import OFFER, SCRIPT, entry, never_read, page, page_run, part, shop

from harvester.ops.models import Role
from harvester.scraping.models import ScrapeTarget

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


@pytest.fixture
def admin(client: Client):
    client.force_login(person("ada", Role.ADMIN))
    return client


def text(answer) -> str:
    assert answer.status_code == 200, answer
    return " ".join(answer.content.decode().split())


def messages_of(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_the_list_names_the_trouble_of_each_page(operator):
    of = shop("Ammo Depot")
    page(of, "fine")
    page(of, "gone", last_status="GONE")
    page(of, "blocked", last_status="BLOCKED_PAGE")
    page(of, "broken", last_status="PRICE_NOT_FOUND", status="BROKEN", consecutive_failures=5)
    page(of, "ours", last_status="NETWORK")
    page(of, "paused", status="PAUSED")
    page(of, "off", enabled=False)
    never_read(of, "new")
    shown = text(operator.get("/pages/"))
    for word in ("Fine", "Gone", "Blocked", "Broken", "Our problem", "Paused", "Off", "New"):
        assert f">{word}</span>" in shown
    assert "18.99 <small>USD</small>" in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=PAUSED", ["paused"]),
        ("outcome=GONE", ["gone"]),
        ("trouble=GONE", ["gone"]),
        ("switch=off", ["off"]),
        ("q=pau", ["paused"]),
        ("trouble=NOTHING", []),
        ("source=nonsense", []),
        ("status=PAUSED&q=gone", []),
    ],
)
def test_filters_leave_the_pages_that_match(operator, query, found):
    of = shop()
    page(of, "gone", last_status="GONE")
    page(of, "paused", status="PAUSED")
    page(of, "off", enabled=False)
    shown = operator.get(f"/pages/?{query}").context["cl"].result_list
    assert sorted(each.url.rpartition("/")[2] for each in shown) == sorted(found)


def test_the_list_of_one_shop_is_paged_by_key(operator):
    of, other = shop(), shop()
    mine = sorted((page(of) for _ in range(60)), key=lambda target: target.pk)
    page(other)
    first = operator.get(f"/pages/?source={of.pk}")
    assert [each.pk for each in first.context["cl"].result_list] == [each.pk for each in mine[:-51:-1]]
    second = operator.get(f"/pages/{first.context['cl'].next_page}")
    assert [each.pk for each in second.context["cl"].result_list] == [each.pk for each in mine[9::-1]]


def test_the_page_shows_the_reading_its_evidence_and_its_history(operator):
    target = page(shop(), "9mm")
    part(page_run(target.source), target)
    shown = text(operator.get(f"/pages/{target.pk}/"))
    assert OFFER["title"] in shown
    assert "json:offers.price" in shown
    assert "crossed out" in shown
    assert SCRIPT not in shown
    assert "&lt;script&gt;" in shown
    assert f'href="/runs/{page_run(target.source).no - 1}/"' in shown


def test_the_page_in_trouble_says_what_to_do_next(operator):
    target = page(shop(), "x", last_status="GONE")
    entry(target)
    shown = text(operator.get(f"/pages/{target.pk}/"))
    assert "The shop says that the page is gone (404 or 410)." in shown
    assert "Delete it, or enter the product&#x27;s new address." in shown
    assert "in quarantine" in shown


def test_a_person_adds_changes_and_pauses_a_page(operator):
    of = shop(domain="depot.example")
    answer = operator.post("/pages/add/", {
        "source": str(of.pk), "url": "https://depot.example/9mm", "priority": "5", "schedule": "0 */4 * * *",
        "enabled": "on",
    }, follow=True)  # fmt: skip
    target = ScrapeTarget.objects.get(source=of)
    assert answer.redirect_chain[-1][0] == f"/pages/{target.pk}/"
    assert (target.priority, target.schedule, target.created_by) == (5, "0 */4 * * *", "otto")
    edited = {"url": target.url, "priority": "7", "schedule": "", "enabled": "on", "notes": "slow"}
    operator.post(f"/pages/{target.pk}/edit/", edited)
    operator.post(f"/pages/{target.pk}/pause/")
    target.refresh_from_db()
    assert (target.priority, target.schedule, target.notes, target.status) == (7, None, "slow", "PAUSED")
    assert verbs(object_type="scrape_target") == [
        "SCRAPE_TARGET_ADDED", "SCRAPE_TARGET_UPDATED", "SCRAPE_TARGET_UPDATED"
    ]  # fmt: skip


def test_a_refused_page_shows_the_reason_at_its_field(operator):
    of = shop(domain="depot.example")
    answer = operator.post("/pages/add/", {"source": str(of.pk), "url": "https://other.example/", "priority": "0"})
    assert "its domain is other.example" in str(answer.context["form"].errors["url"]).lower()
    answer = operator.post("/pages/add/", {
        "source": str(of.pk), "url": "https://depot.example/", "priority": "0", "schedule": "often",
    })  # fmt: skip
    assert "not a cron line" in str(answer.context["form"].errors["schedule"])
    assert not ScrapeTarget.objects.exists()


def test_the_selected_pages_are_changed_and_no_others(operator):
    of = shop()
    first, second, third = page(of), page(of), page(of)
    given = {"change": "schedule", "value": "30 2 * * *", "which": "selected", "page": [str(first.pk), str(second.pk)]}
    answer = operator.post("/pages/bulk/", given, follow=True)
    assert messages_of(answer) == "2 pages were changed."
    schedules = dict(ScrapeTarget.objects.values_list("pk", "schedule"))
    assert schedules == {first.pk: "30 2 * * *", second.pk: "30 2 * * *", third.pk: third.schedule}


def test_all_that_match_are_changed_after_a_question(operator):
    of = shop()
    page(of, "one", last_status="GONE")
    page(of, "two")
    given = {"change": "pause", "which": "all", "query": "trouble=GONE"}
    asked = operator.post("/pages/bulk/", given)
    assert "Pause: 1 page" in text(asked)
    assert not ScrapeTarget.objects.filter(status="PAUSED").exists()
    operator.post("/pages/bulk/", {**given, "confirm": "yes"})
    assert [each.url[-4:] for each in ScrapeTarget.objects.filter(status="PAUSED")] == ["/one"]


def test_only_an_admin_deletes_pages(operator, django_user_model):
    target = page(shop())
    given = {"change": "delete", "which": "selected", "page": [str(target.pk)], "confirm": "yes"}
    assert operator.post("/pages/bulk/", given).status_code == 403
    assert operator.post(f"/pages/{target.pk}/delete/").status_code == 403
    operator.force_login(person("ada", Role.ADMIN))
    operator.post("/pages/bulk/", given)
    assert not ScrapeTarget.objects.exists()


def test_a_filter_that_means_nothing_changes_nothing(operator):
    page(shop())
    given = {"change": "pause", "which": "all", "query": "source=nonsense", "confirm": "yes"}
    answer = operator.post("/pages/bulk/", given, follow=True)
    assert "mean no page" in messages_of(answer)
    assert not ScrapeTarget.objects.filter(status="PAUSED").exists()


def test_reading_now_says_why_it_was_refused(operator):
    target = page(shop(scrape_enabled=False))
    answer = operator.post(f"/pages/{target.pk}/read/", follow=True)
    assert "is not enabled for scraping" in messages_of(answer)


def test_reading_now_queues_the_page_once(operator):
    target = page(shop())
    assert "1 queued" in messages_of(operator.post(f"/pages/{target.pk}/read/", follow=True))
    assert "1 waiting already" in messages_of(operator.post(f"/pages/{target.pk}/read/", follow=True))
    assert "Queued" in text(operator.get(f"/pages/{target.pk}/"))


def test_the_new_address_of_a_moved_page_is_used(operator):
    of = shop(domain="depot.example")
    target = page(of, "old", moved_to="https://depot.example/new")
    assert "Use the new address" in text(operator.get(f"/pages/{target.pk}/"))
    operator.post(f"/pages/{target.pk}/move/")
    target.refresh_from_db()
    assert (target.url, target.moved_to) == ("https://depot.example/new", None)


def test_a_pin_and_chosen_places_are_taken_back(operator):
    target = page(shop(), pinned={"sku": "H-1"}, pinned_product_id=7, chosen={"price": "p.price::text"})
    shown = text(operator.get(f"/pages/{target.pk}/"))
    assert "p.price::text" in shown
    assert "Pinned SKU" in shown
    operator.post(f"/pages/{target.pk}/forget/")
    operator.post(f"/pages/{target.pk}/unpin/")
    target.refresh_from_db()
    assert (target.chosen, target.pinned, target.pinned_product_id) == ({}, None, None)
    assert "No place was chosen" in messages_of(operator.post(f"/pages/{target.pk}/forget/", follow=True))
    assert verbs(object_type="scrape_target") == ["SCRAPE_PLACES_FORGOTTEN", "SCRAPE_TARGET_UNPINNED"]


def test_a_kept_page_is_read_again_only_while_it_is_kept(operator):
    target = page(shop(), page="0" * 64)
    answer = operator.post(f"/pages/{target.pk}/reprocess/", follow=True)
    assert "The page is not kept any more." in messages_of(answer)
