"""Shops in the portal: the list, the page of one with what is left to do, its switches, settings and overrides."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from tests.support import catalog, scrape_world
from tests.support.portal import person, verbs
from tests.support.portal_scraping import (
    adapter_state,
    batch,
    disabled_adapter,
    entry,
    never_read,
    override,
    page,
    page_run,
    part,
    shop,
)

from harvester.catalog.models import Source
from harvester.ops.models import Role
from harvester.scraping.models import AdapterState, FetchRequest, ScrapeOverride, ScrapeTarget

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client):
    client.force_login(person("ada", Role.ADMIN))
    return client


@pytest.fixture
def operator(client: Client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


@pytest.fixture(autouse=True)
def contact(settings):
    settings.CONFIG = replace(
        settings.CONFIG, scrape_contact_url="https://example.com/bot", scrape_contact_mail="bot@example.com"
    )


def text(answer) -> str:
    assert answer.status_code == 200, answer
    return " ".join(answer.content.decode().split())


def messages_of(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def stop_breaker(of: Source) -> None:
    """As three refused openings leave it."""
    catalog.insert(
        "source_breakers", source_id=of.pk, kind="SCRAPE", openings=3, blocked_openings=3,
        paused_until=timezone.now(), stopped_at=timezone.now(), stopped_reason="its server refuses us",
    )  # fmt: skip


def test_the_list_names_the_state_of_each_shop(admin):
    page(shop("Reading shop"))
    page(shop("Off shop", scrape_enabled=False))
    page(shop("Robots shop", robots_compliant=False))
    disabled_adapter(page(shop("Adapter shop")).source)
    stop_breaker(page(shop("Blocked shop")).source)
    page(shop("Late shop"), due_at=timezone.now() - timedelta(hours=2))
    shop("Empty shop")
    catalog.source(name="Feed only")
    rows = admin.get("/shops/").context["cl"].result_list
    assert {row.name: row.shop_state.word for row in rows} == {
        "Reading shop": "Reading",
        "Off shop": "Stopped",
        "Robots shop": "Robots",
        "Adapter shop": "Adapter off",
        "Blocked shop": "Blocked",
        "Late shop": "Late",
        "Empty shop": "No pages",
    }
    everything = admin.get("/shops/?show=all").context["cl"].result_list
    assert "Feed only" in {row.name for row in everything}
    assert [row.name for row in admin.get("/shops/?show=off").context["cl"].result_list] == ["Off shop"]


def test_the_list_counts_pages_lag_and_quarantine_in_few_statements(admin):
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            admin.get("/shops/")
        return len(queries)

    of = shop("Ammo Depot")
    page(of, due_at=timezone.now() - timedelta(hours=3))
    page(of, status="BROKEN")
    entry(page(of))
    page_run(of)
    shown = admin.get("/shops/").context["cl"].result_list[0]
    assert (shown.figures.total, shown.figures.quarantine, shown.figures.run["outcome"]) == (3, 1, "PROMOTED")
    assert "3 h" in text(admin.get("/shops/"))
    before = statements()
    for number in range(8):
        page(shop(f"Shop {number}"))
    assert statements() == before


@pytest.mark.parametrize("address", ["/pages/", "/quarantine/", "/adapters/", "/url-health/?view=twice", "/"])
def test_more_rows_take_no_more_statements(admin, address):
    def add() -> None:
        of = shop()
        adapter_state(of)
        for _ in range(3):
            entry(page(of, pinned_product_id=7))

    def statements() -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert admin.get(address).status_code == 200
        return len(queries)

    add()
    statements()
    before = statements()
    add()
    add()
    assert statements() == before


def test_a_new_shop_is_set_up_step_by_step(admin):
    of = shop(
        "New", domain="new.example", scrape_enabled=False, tos_reviewed_at=None, tos_approved_by=None, tos_note=None
    )  # fmt: skip
    where = f"/shops/{of.pk}/"
    assert "Record review" in text(admin.get(where))
    assert messages_of(admin.post(f"{where}terms/", {"note": ""}, follow=True)).startswith("note: ")
    admin.post(f"{where}terms/", {"note": "Section 4 allows price comparison."})
    refused = messages_of(admin.post(f"{where}enable/", follow=True))
    assert "Robots checked" in refused
    catalog.insert(
        "robots_files", origin="https://new.example", state="NONE", status=404, fetched_at=timezone.now(),
        expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    assert "Consumers do not see" in messages_of(admin.post(f"{where}enable/", follow=True))
    of.refresh_from_db()
    assert (of.scrape_enabled, of.visibility, of.tos_approved_by) == (True, "INELIGIBLE", "ada")
    assert verbs(object_type="source") == ["SCRAPE_TERMS_REVIEWED", "SCRAPE_ENABLED"]


def test_prices_are_shown_and_hidden_by_an_admin(admin):
    of = shop()
    where = f"/shops/{of.pk}/"
    assert "is not shown yet" in messages_of(admin.post(f"{where}show/", follow=True))
    admin.post(f"{where}show/", {"anyway": "yes"})
    of.refresh_from_db()
    assert of.visibility == "ELIGIBLE"
    admin.post(f"{where}hide/")
    of.refresh_from_db()
    assert of.visibility == "INELIGIBLE"


def test_the_stop_button_stops_and_cancels(admin):
    of = shop()
    target = page(of)
    admin.post(f"/pages/{target.pk}/read/")
    answer = admin.post(f"/shops/{of.pk}/stop/", {"back": "/shops/"})
    assert answer.headers["Location"] == "/shops/"
    of.refresh_from_db()
    assert of.scrape_enabled is False
    assert catalog.fetch("SELECT state FROM jobs WHERE dedupe_key = %s", f"scrape:{target.pk}") == [("cancelled",)]


def test_all_shops_are_stopped_at_once_by_an_admin_only(operator):
    first, second = shop(), shop()
    assert operator.post("/shops/stop-all/").status_code == 403
    operator.force_login(person("ada", Role.ADMIN))
    assert "2 shops were stopped" in messages_of(operator.post("/shops/stop-all/", follow=True))
    assert not Source.objects.filter(pk__in=[first.pk, second.pk], scrape_enabled=True).exists()


def test_reading_all_pages_and_requeuing_stale_ones(operator):
    of = shop()
    page(of)
    page(of, status="STALE")
    assert "1 queued, 1 skipped" in messages_of(operator.post(f"/shops/{of.pk}/read/", follow=True))
    assert "Re-queue stale pages" in text(operator.get(f"/shops/{of.pk}/"))
    assert "1 queued" in messages_of(operator.post(f"/shops/{of.pk}/requeue/", follow=True))
    assert not ScrapeTarget.objects.filter(status="STALE").exists()


def test_a_blocked_shop_is_resumed_by_an_admin(admin):
    of = shop()
    stop_breaker(of)
    assert "Its server refuses us." in text(admin.get(f"/shops/{of.pk}/"))
    admin.post(f"/shops/{of.pk}/resume/")
    assert "Its server refuses us." not in text(admin.get(f"/shops/{of.pk}/"))
    admin.post(f"/shops/{of.pk}/pause/", {"reason": "the shop asked us to"})
    assert "The shop asked us to." in text(admin.get(f"/shops/{of.pk}/"))


def test_a_stopped_shop_has_the_button_to_resume_it_next_to_its_state(admin):
    of = shop()
    headline = {"headers": {"HX-Request": "true"}}
    assert f"/shops/{of.pk}/resume/" not in text(admin.get(f"/shops/{of.pk}/", **headline))
    stop_breaker(of)
    assert f"/shops/{of.pk}/resume/" in text(admin.get(f"/shops/{of.pk}/", **headline))


def test_the_robots_file_of_a_shop_is_checked_with_a_button(operator, settings):
    scrape_world.allow_scraping(settings)
    of = shop()
    assert "Check robots.txt" in text(operator.get(f"/shops/{of.pk}/"))
    answer = operator.post(f"/shops/{of.pk}/check_robots/", follow=True)
    assert "Reload this page in a moment" in messages_of(answer)
    asked = FetchRequest.objects.get()
    assert (asked.source_id, asked.requested_by) == (of.pk, "otto")


def test_the_page_says_whether_the_schedule_can_be_met(operator):
    of = shop()
    for _ in range(42):
        page(of)
    assert "42 URLs every 4 h at 0.5/s: 84 s" in text(operator.get(f"/shops/{of.pk}/"))


def test_settings_are_changed_by_admins_and_shown_to_others(operator):
    of = shop()
    where = f"/shops/{of.pk}/settings/"
    assert "Requests a second" in text(operator.get(where))
    assert operator.post(where, {"requests_per_second": "0.1"}).status_code == 403
    operator.force_login(person("ada", Role.ADMIN))
    wrong = operator.post(where, {"requests_per_second": "9", "headers": "Cookie: a"})
    assert set(wrong.context["form"].errors) == {"requests_per_second", "headers"}
    operator.post(where, {"requests_per_second": "0.1", "conditional": "on", "headers": "X-Shop: yes"})
    of.refresh_from_db()
    assert of.scrape_config == {"requests_per_second": 0.1, "headers": {"X-Shop": "yes"}}


def test_the_coverage_of_fields_is_shown_by_run(operator):
    of = shop()
    page_run(of, offers=10, fields_found={"title": 10, "price": 5})
    page_run(of, offers=0, not_modified=10, fields_found={})
    answer = operator.get(f"/shops/{of.pk}/coverage/")
    chart = answer.context["chart_data"]["charts"]
    assert (chart["title"]["values"], chart["price"]["values"], chart["gtin"]["values"]) == ([100.0], [50.0], [0.0])


def test_an_override_is_saved_and_counts_only_after_its_test(admin):
    of = shop()
    wrong = admin.post(f"/shops/{of.pk}/overrides/", {"places": "no"})
    assert "This is not JSON" in str(wrong.context["form"].errors["places"])
    wrong = admin.post(f"/shops/{of.pk}/overrides/", {"places": '{"places": {"price": ["p[["]}}'})
    assert "it cannot be used" in str(wrong.context["form"].errors["places"]).lower()
    answer = admin.post(
        f"/shops/{of.pk}/overrides/", {"places": '{"places": {"price": ["json:offers.price"]}}', "note": "redesign"}
    )
    where = f"/shops/{of.pk}/overrides/1/"
    assert answer.headers["Location"] == where
    assert "was not tested on kept pages yet" in messages_of(admin.post(f"{where}use/", follow=True))
    admin.post(f"{where}test/")
    assert "Being tested" in text(admin.get(where))
    ScrapeOverride.objects.update(backtest={"pages": 3, "same": 3})
    admin.post(f"{where}use/")
    made = ScrapeOverride.objects.get()
    assert (made.status, made.activated_by) == ("ACTIVE", "ada")
    admin.post(f"{where}retire/")
    made.refresh_from_db()
    assert made.status == "RETIRED"
    assert verbs(object_type="source") == [
        "SCRAPE_OVERRIDE_SAVED", "SCRAPE_OVERRIDE_TESTED", "SCRAPE_OVERRIDE_USED", "SCRAPE_OVERRIDE_RETIRED"
    ]  # fmt: skip


def test_using_an_override_retires_the_one_before(admin):
    of = shop()
    tested = {"pages": 1, "same": 1}
    override(of, 1, status="ACTIVE", backtest=tested)
    override(of, 2, backtest=tested)
    target = page(of, etag="x")
    admin.post(f"/shops/{of.pk}/overrides/2/use/")
    assert dict(ScrapeOverride.objects.values_list("version", "status")) == {1: "RETIRED", 2: "ACTIVE"}
    target.refresh_from_db()
    assert target.etag is None


def test_the_page_of_a_run_shows_its_batches_pages_and_figures(operator):
    of = shop()
    run = page_run(of)
    part(run, page(of, "one"))
    part(run, page(of, "two"), "NO_AGREEMENT", detail={"error": "18.99 and 19.99"})
    part(run, page(of, "three"), "GONE", detail={})
    batch(of, run)
    batch(of, run, failures=14, is_refused=True)
    shown = text(operator.get(f"/runs/{run.no}/"))
    assert "1 read, 1 ambiguous, 1 gone." in shown
    assert "14 of 20 pages failed." in shown
    assert "18.99 and 19.99" in shown
    assert "Failure rate" in shown
    assert "2.4 %" in shown
    filtered = text(operator.get(f"/runs/{run.no}/?part=GONE"))
    assert "/three" in filtered
    assert "/two</a>" not in filtered


def test_an_adapter_is_switched_off_and_on_and_its_next_run_confirmed(admin):
    of = shop()
    page(of)
    where = f"/adapters/{of.pk}/structured/"
    refused = admin.post(f"{where}disable/", {"reason": "MANUAL", "note": ""}, follow=True)
    assert "say in a sentence why" in messages_of(refused)
    admin.post(f"{where}disable/", {"reason": "TOS_VIOLATION", "note": "They asked us to stop."})
    assert "terms do not allow it" in text(admin.get(where))
    admin.post(f"{where}enable/")
    run = page_run(of)
    AdapterState.objects.update(check_run_no=run.no)
    assert "Confirm run" in text(admin.get(where))
    assert "Confirm run" in text(admin.get(f"/runs/{run.no}/"))
    admin.post(f"{where}confirm/")
    assert AdapterState.objects.get().check_next_run is False
    assert verbs(object_type="source") == [
        "SCRAPE_ADAPTER_DISABLED", "SCRAPE_ADAPTER_ENABLED", "SCRAPE_RUN_CHECKED"
    ]  # fmt: skip


def test_the_chart_of_an_adapter_is_made_of_its_batches(operator):
    of = shop()
    adapter_state(of)
    run = page_run(of)
    batch(of, run, failures=5, hours_ago=2)
    batch(of, run, failures=15, is_refused=True)
    catalog.insert(
        "scrape_totals", source_id=of.pk, adapter_id="structured", figure="rejected", word="queue_full", total=7
    )
    answer = operator.get(f"/adapters/{of.pk}/structured/")
    assert answer.context["rejections"] == [("Queue full", 7)]
    assert answer.context["chart_data"]["charts"]["failures"]["values"] == [25.0, 75.0]
    assert operator.get(f"/adapters/{of.pk}/other/").status_code == 404
    assert [row.name for row in operator.get("/adapters/").context["cl"].result_list] == [of.name]


def test_the_dashboard_names_each_shop_once_with_all_that_is_wrong(operator):
    of, calm, off = shop("Ammo Depot"), shop("Calm"), shop("Off", scrape_enabled=False)
    entry(page(of))
    page(of, status="STALE")
    disabled_adapter(of)
    never_read(calm)
    entry(page(off))
    shown = text(operator.get("/"))
    assert "Its adapter is disabled, 1 page in quarantine, 1 page stale." in shown
    assert "Calm" not in shown
    assert ">Off<" not in shown


def test_url_health_offers_new_addresses_and_finds_a_product_twice(operator):
    of = shop(domain="depot.example")
    moved = page(of, "old", moved_to="https://depot.example/new")
    elsewhere = page(of, "gone-away", moved_to="https://other.example/new")
    gone = page(of, "gone", last_status="GONE")
    twins = [page(of, f"twin-{number}", pinned_product_id=7) for number in range(2)]
    assert f'value="{moved.pk}"' in text(operator.get("/url-health/"))
    assert f'value="{gone.pk}"' in text(operator.get("/url-health/?view=gone"))
    twice = text(operator.get("/url-health/?view=twice"))
    assert all(f'value="{twin.pk}"' in twice for twin in twins)
    assert str(moved.pk) not in twice
    answer = operator.post("/url-health/move/", {"page": [str(moved.pk), str(elsewhere.pk)]}, follow=True)
    assert "1 page uses its new address." in messages_of(answer)
    assert "other.example" in messages_of(answer)
    moved.refresh_from_db()
    elsewhere.refresh_from_db()
    assert (moved.url, elsewhere.url) == ("https://depot.example/new", "https://depot.example/gone-away")
    given = {"page": [str(twins[1].pk)], "change": "pause", "which": "selected", "back": "/url-health/?view=twice"}
    assert operator.post("/pages/bulk/", given).headers["Location"] == "/url-health/?view=twice"
    twins[1].refresh_from_db()
    assert twins[1].status == "PAUSED"
