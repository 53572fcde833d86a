"""Sources and pages of scraping over the API: what each key may do, and the status, code and headers of refusals."""

from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from tests.support import catalog, page_runs, scraping
from tests.support.api import BASE, Application, refused
from tests.support.feed_rows import make_feed
from tests.support.tables import rows

from harvester.api.app import api
from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.kernel.ids import uuid7
from harvester.ops.models import AuditEvent
from harvester.ops.scopes import Scope
from harvester.runs.models import Run
from harvester.scraping import adapters
from harvester.scraping.models import FetchRequest, RobotsFile, ScrapeBatch, ScrapeTarget
from harvester.scraping.settings import SETTINGS

pytestmark = pytest.mark.usefixtures("database")
CONTACT = {"scrape_contact_url": "https://prices.example/bot", "scrape_contact_mail": "bot@prices.example"}


@pytest.fixture
def operator(database):
    return Application(Scope.SCRAPE_READ, Scope.SCRAPE_OPERATE)


@pytest.fixture
def admin(database):
    return Application(Scope.SCRAPE_READ, Scope.SCRAPE_OPERATE, Scope.SCRAPE_ADMIN)


@pytest.fixture
def contact(settings):
    settings.CONFIG = replace(django_settings.CONFIG, **CONTACT)


def pages_of(source) -> str:
    return f"/scrape/sources/{source.pk}"


def errors(answer) -> dict:
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def waiting() -> int:
    return Job.objects.filter(kind="scraping.page", state="pending").count()


# -- sources ----------------------------------------------------------------------------------------------------------


def test_sources_are_listed_by_name_in_pages(operator):
    for domain in ("c.example", "a.example", "b.example"):
        scraping.shop(domain)
    scraping.shop("none.example", is_read=False)
    first = operator.read("/scrape/sources", page_size=2)
    rest = operator.read("/scrape/sources", page_size=2, cursor=first["next_cursor"])
    assert [item["name"] for item in first["items"] + rest["items"]] == ["a.example", "b.example", "c.example"]
    assert rest["next_cursor"] is None
    assert refused(operator.get(f"{BASE}/scrape/sources", {"cursor": "x"})) == (422, "INVALID_CURSOR")
    assert refused(operator.get(f"{BASE}/scrape/sources", {"color": "red"})) == (422, "INVALID_INPUT")


def test_a_source_shows_its_switches_pages_lag_and_whether_its_schedule_can_be_met(operator):
    source = scraping.shop("shop.example", scrape_config={"requests_per_second": 0.01, "headers": {"X-Key": "hush"}})
    pages = scraping.pages(source, 3)
    scraping.pages(source, 1, status="BROKEN")
    scraping.pages(source, 200, schedule="*/5 * * * *")
    shown = operator.read(pages_of(source))
    assert (shown["is_read"], shown["visibility"], shown["adapter"]["id"]) == (True, "INELIGIBLE", "structured")
    assert (shown["pages"], shown["readable"], shown["due"]) == (204, 203, 203)
    assert shown["oldest_due_at"][:16] == pages[0].due_at.strftime("%Y-%m-%dT%H:%M")
    assert (shown["counts"]["ACTIVE"], shown["counts"]["BROKEN"], shown["counts"]["trouble_broken"]) == (203, 1, 1)
    assert {fit["schedule"]: fit["is_met"] for fit in shown["schedules"]} == {
        "0 */4 * * *": False, "*/5 * * * *": False,
    }  # fmt: skip
    assert [step["name"] for step in shown["readiness"]][:2] == ["terms", "robots"]
    assert (shown["settings"]["requests_per_second"], shown["settings"]["headers"]) == (0.01, ["X-Key"])
    assert shown["breaker"] is None
    assert "hush" not in str(shown)


def test_a_source_has_an_entity_tag(operator):
    source = scraping.shop()
    tag = operator.get(BASE + pages_of(source)).headers["ETag"]
    assert operator.get(BASE + pages_of(source), headers={"If-None-Match": tag}).status_code == 304
    Source.objects.filter(pk=source.pk).update(robots_compliant=False)
    assert operator.get(BASE + pages_of(source), headers={"If-None-Match": tag}).status_code == 200


def test_settings_are_changed_and_restored(admin):
    source = scraping.shop()
    given = {"requests_per_second": 0.2, "default_currency": "usd", "cache": True, "headers": {"Accept-Language": "de"}}
    shown = admin.change(pages_of(source), given).json()["settings"]
    assert shown == {
        "requests_per_second": 0.2, "pace_by_host": [], "default_currency": "USD", "headers": ["Accept-Language"],
        "conditional": True, "cache": True, "cache_seconds": 3600,
    }  # fmt: skip
    assert shown.keys() == SETTINGS.keys()
    restored = admin.change(pages_of(source), {"requests_per_second": None}).json()["settings"]
    assert (restored["requests_per_second"], restored["cache"]) == (None, True)
    wrong = admin.change(pages_of(source), {"requests_per_second": 50, "headers": {"User-Agent": "me"}})
    assert refused(wrong) == (422, "INVALID_SETTINGS")
    assert errors(wrong).keys() == {"requests_per_second", "headers"}
    assert refused(admin.change(pages_of(source), {"speed": 1})) == (422, "INVALID_INPUT")
    event = AuditEvent.objects.filter(verb="SCRAPE_SETTINGS_UPDATED").first()
    assert (event.actor_kind, event.actor_name) == ("key", admin.key.name)


def test_a_new_source_is_made_ready_and_enabled(admin, contact):
    source = scraping.shop("bigshop.com", is_read=False, expiry_hours=None)
    assert admin.read(pages_of(source))["adapter"]["id"] is None
    answer = admin.write(f"{pages_of(source)}/enable")
    assert refused(answer) == (409, "SCRAPE_NOT_READY")
    assert "Terms reviewed" in answer.json()["detail"]
    chosen = admin.write(f"{pages_of(source)}/adapter", {"adapter_id": "structured"}).json()
    assert chosen["adapter"]["id"] == "structured"
    unknown = admin.write(f"{pages_of(source)}/adapter", {"adapter_id": "nonsense"})
    assert (refused(unknown), errors(unknown).keys()) == ((422, "INVALID_INPUT"), {"adapter_id"})
    reviewed = admin.write(f"{pages_of(source)}/review", {"note": "Terms of May allow it."}).json()
    assert (reviewed["tos_approved_by"], reviewed["tos_note"]) == (admin.key.name, "Terms of May allow it.")
    asked = admin.write(f"{pages_of(source)}/check-robots")
    assert asked.status_code == 202
    [request] = asked.json()["requests"]
    assert FetchRequest.objects.get(pk=request).url == "https://bigshop.com/"
    now = catalog.now()
    RobotsFile.objects.create(
        origin="https://bigshop.com", state="NONE", fetched_at=now, expires_at=now + catalog.hours(1)
    )
    enabled = admin.write(f"{pages_of(source)}/enable").json()
    assert (enabled["scrape_enabled"], enabled["visibility"], enabled["expiry_hours"]) == (True, "INELIGIBLE", 72)
    assert [step["is_done"] for step in enabled["readiness"] if step["is_needed"]] == [True] * 4
    assert refused(admin.write(f"{pages_of(source)}/enable"))[0] == 409


def test_prices_are_shown_once_somebody_has_looked_and_hidden_again(admin):
    source = scraping.shop()
    assert refused(admin.write(f"{pages_of(source)}/show")) == (409, "SCRAPE_NOT_READY")
    assert admin.write(f"{pages_of(source)}/show", {"anyway": True}).json()["visibility"] == "ELIGIBLE"
    assert admin.write(f"{pages_of(source)}/hide").json()["visibility"] == "INELIGIBLE"


def test_stopping_cancels_what_waits(admin):
    one, two = scraping.shop("one.example"), scraping.shop("two.example")
    for source in (one, two):
        scraping.pages(source, 2)
        assert admin.write(f"{pages_of(source)}/enqueue").status_code == 202
    assert admin.write(f"{pages_of(one)}/stop", {"reason": "they called"}).json() == {"sources": 1, "pages": 2}
    assert admin.write("/scrape/stop-all").json() == {"sources": 1, "pages": 2}
    assert waiting() == 0
    assert not Source.objects.filter(scrape_enabled=True).exists()


def test_a_source_is_forbidden_by_hand(admin):
    source = scraping.shop()
    shown = admin.write(f"{pages_of(source)}/robots", {"compliant": False, "note": "they asked"}).json()
    assert (shown["robots_compliant"], shown["robots_set_by"], shown["is_read"]) == (False, admin.key.name, False)
    assert refused(admin.write(f"{pages_of(source)}/robots", {"compliant": True})) == (422, "INVALID_INPUT")
    assert admin.write(f"{pages_of(source)}/robots", {"compliant": True, "note": "they agreed"}).json()["is_read"]


def test_requests_are_paused_and_resumed(admin):
    source = scraping.shop()
    shown = admin.write(f"{pages_of(source)}/pause", {"reason": "sale today"}).json()["breaker"]
    assert (shown["gate"], shown["stopped_reason"]) == ("STOPPED", "sale today")
    assert admin.write(f"{pages_of(source)}/resume").json()["breaker"]["gate"] == "CLOSED"
    assert refused(admin.write(f"{pages_of(source)}/resume")) == (409, "CONFLICT")


def test_an_adapter_is_disabled_enabled_and_its_next_run_confirmed(admin):
    source = scraping.shop()
    switch = f"{pages_of(source)}/adapter"
    assert refused(admin.write(f"{switch}/disable", {"note": " "}))[0] == 422
    off = admin.write(f"{switch}/disable", {"reason": "TOS_VIOLATION", "note": "new terms"}).json()["adapter"]
    assert (off["enabled"], off["disabled_reason"], off["disabled_by"]) == (False, "TOS_VIOLATION", admin.key.name)
    [structured, *_] = admin.read("/scrape/adapters")["items"]
    assert (structured["id"], structured["sources"], structured["disabled"]) == ("structured", 1, 1)
    on = admin.write(f"{switch}/enable").json()["adapter"]
    assert (on["enabled"], on["check_next_run"], on["check_run_no"]) == (True, True, None)
    assert refused(admin.write(f"{switch}/confirm")) == (409, "CONFLICT")
    state = adapters.state_of(source.pk, "structured")
    state.check_run_no = 7
    state.save(update_fields=["check_run_no"])
    ScrapeBatch.objects.create(
        source=source, adapter_id="structured", adapter_version="1.0.0", run_no=7, judged_at=catalog.now(), attempts=20,
        new_attempts=20, failures=1, offers=19, zero_prices=0, verdict=[{"gate": "DRIFT"}], is_refused=False,
    )  # fmt: skip
    history = admin.write(f"{switch}/confirm").json()
    assert history["adapter"]["check_next_run"] is False
    assert [(batch["run_no"], batch["gates"]) for batch in history["batches"]] == [(7, [{"gate": "DRIFT"}])]
    assert admin.read(switch) == history
    assert admin.read("/scrape/adapters")["items"][0]["to_check"] == 0


def test_the_health_of_addresses(operator):
    source = scraping.shop()
    catalog.target(source, "https://shop.example/a", moved_to="https://shop.example/b")
    catalog.target(source, "https://shop.example/c", last_status="GONE")
    product = catalog.product(source)
    catalog.target(source, "https://shop.example/d", product_id=product)
    catalog.target(source, "https://shop.example/e", pinned_product_id=product)
    health = operator.read(f"{pages_of(source)}/urls")
    assert [page["moved_to"] for page in health["moved"]] == ["https://shop.example/b"]
    assert [page["url"] for page in health["gone"]] == ["https://shop.example/c"]
    [twice] = health["same_product"]
    assert sorted(twice["pages"].values()) == ["https://shop.example/d", "https://shop.example/e"]


# -- pages ------------------------------------------------------------------------------------------------------------


def test_a_page_is_added_changed_and_deleted(admin):
    source = scraping.shop()
    body = {"source_id": str(source.pk), "url": "https://shop.example/p?b=1", "schedule": "0 6 * * *", "priority": 3}
    answer = admin.write("/scrape/targets", body)
    assert answer.status_code == 201
    made = answer.json()
    address = f"/scrape/targets/{made['id']}"
    assert answer.headers["Location"] == BASE + address
    assert (made["url"], made["priority"], made["status"], made["created_by"]) == (
        "https://shop.example/p?b=1", 3, "ACTIVE", admin.key.name,
    )  # fmt: skip
    assert admin.read(address) == made
    twin = admin.write("/scrape/targets", body)
    assert (refused(twin), errors(twin).keys()) == ((409, "CONFLICT"), {"url"})
    changed = admin.change(address, {"notes": "on sale", "schedule": None}).json()
    assert (changed["notes"], changed["schedule"], changed["due_at"], changed["priority"]) == ("on sale", None, None, 3)
    wrong = admin.change(address, {"schedule": "every day"})
    assert (refused(wrong), errors(wrong).keys()) == ((422, "INVALID_SETTINGS"), {"schedule"})
    assert admin.remove(address).json() == {"pages": 1}
    assert refused(admin.remove(address)) == (404, "NOT_FOUND")
    assert refused(admin.get(BASE + address)) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "url", ["https://other.example/p", "https://127.0.0.1/p", "https://me:it@shop.example/p", "ftp://shop.example/p"]
)
def test_an_address_that_may_not_be_read_is_refused(operator, url):
    source = scraping.shop()
    answer = operator.write("/scrape/targets", {"source_id": str(source.pk), "url": url})
    assert (refused(answer), errors(answer).keys()) == ((422, "INVALID_INPUT"), {"url"})
    assert not ScrapeTarget.objects.exists()


def test_a_page_of_a_source_with_a_feed_must_be_linked(operator):
    source = scraping.shop()
    make_feed(source)
    number = catalog.product(source, sku="H-1", title="Hammer")
    given = {"source_id": str(source.pk), "url": "https://shop.example/p"}
    assert operator.write("/scrape/targets", {**given, "product_id": number}).json()["product_id"] == number
    answer = operator.write("/scrape/targets", {**given, "url": "https://shop.example/q"})
    assert (refused(answer), errors(answer).keys()) == ((422, "PAGE_NOT_LINKED"), {"product_id"})
    missing = operator.write("/scrape/targets", {**given, "url": "https://shop.example/q", "product_id": 999})
    assert refused(missing) == (404, "NOT_FOUND")


def test_a_page_is_paused_resumed_moved_and_unpinned(operator):
    [page] = scraping.pages(scraping.shop(), 1, moved_to="https://shop.example/new", pinned={"sku": "A"})
    address = f"/scrape/targets/{page.pk}"
    assert operator.write(f"{address}/pause").json()["status"] == "PAUSED"
    assert operator.write(f"{address}/resume").json()["status"] == "ACTIVE"
    assert operator.write(f"{address}/unpin").json()["pinned"] is None
    assert operator.write(f"{address}/move").json()["url"] == "https://shop.example/new"
    assert refused(operator.write(f"{address}/move")) == (409, "CONFLICT")
    assert refused(operator.write(f"{address}/reprocess")) == (404, "PAGE_MISSING")


def test_the_places_that_were_chosen_for_a_page_are_forgotten(operator):
    [page] = scraping.pages(scraping.shop(), 1, chosen={"price": "json:offers.price"}, etag='"a"')
    address = f"/scrape/targets/{page.pk}"
    assert operator.read(address)["chosen"] == {"price": "json:offers.price"}
    assert operator.write(f"{address}/forget-places").json()["chosen"] == {}
    page.refresh_from_db()
    assert page.etag is None, "it is fetched in full again"
    assert refused(operator.write(f"{address}/forget-places")) == (409, "CONFLICT")
    assert refused(operator.write(f"/scrape/targets/{uuid7()}/forget-places")) == (404, "NOT_FOUND")


def test_a_run_over_pages_is_ignored_and_that_is_undone(database):
    source = page_runs.shop(1)
    page_runs.read_all(source, [page_runs.offer("10.00", sku="A")])
    wrong = page_runs.read_all(source, [page_runs.offer("11.00", sku="A")])
    feeds_only = Application(Scope.FEEDS_READ, Scope.FEEDS_ADMIN)
    reason = {"reason": "prices in cents"}
    for verb, body in (("ignore", reason), ("undo-ignore", None)):
        assert refused(feeds_only.write(f"/runs/{wrong.no}/{verb}", body)) == (403, "SCOPE_MISSING")
    admin = Application(Scope.FEEDS_READ, Scope.FEEDS_ADMIN, Scope.SCRAPE_ADMIN)
    assert refused(admin.write(f"/runs/{wrong.no}/ignore", {"reason": " "})) == (422, "INVALID_INPUT")
    assert refused(admin.write(f"/runs/{wrong.no}/undo-ignore")) == (409, "CONFLICT")
    ignored = admin.write(f"/runs/{wrong.no}/ignore", reason).json()
    assert (ignored["no"], ignored["products"], ignored["ignored_at"] is not None) == (wrong.no, 1, True)
    assert page_runs.shown() == [10.00]
    assert admin.read(f"/runs/{wrong.pk}")["ignored_at"] == ignored["ignored_at"]
    undone = admin.write(f"/runs/{wrong.pk}/undo-ignore").json()
    assert (undone["products"], undone["ignored_at"], page_runs.shown()) == (1, None, [11.00])
    assert refused(admin.write(f"/runs/{uuid7()}/undo-ignore")) == (404, "RUN_NOT_FOUND")


def test_pages_are_listed_newest_first_filtered_and_explained(operator):
    one, two = scraping.shop("one.example"), scraping.shop("two.example")
    scraping.pages(one, 5)
    [gone] = scraping.pages(two, 1, last_status="GONE", last_seen={"offer": {"price": "9.50 USD"}}, notes="old hammer")
    first = operator.read("/scrape/targets", page_size=4, source_id=str(one.pk))
    rest = operator.read("/scrape/targets", page_size=4, source_id=str(one.pk), cursor=first["next_cursor"])
    found = [page["id"] for page in first["items"] + rest["items"]]
    assert (len(found), found, rest["next_cursor"]) == (5, sorted(found, reverse=True), None)
    other = operator.get(f"{BASE}/scrape/targets", {"source_id": str(two.pk), "cursor": first["next_cursor"]})
    assert refused(other) == (422, "INVALID_CURSOR")
    for filters in ({"trouble": "GONE"}, {"outcome": "GONE"}, {"text": "HAMMER"}, {"source_id": str(two.pk)}):
        assert [page["id"] for page in operator.read("/scrape/targets", **filters)["items"]] == [str(gone.pk)], filters
    [shown] = operator.read("/scrape/targets", trouble="GONE")["items"]
    assert (shown["price"], shown["source"], shown["diagnosis"]["trouble"]) == ("9.50 USD", "two.example", "GONE")
    assert shown["diagnosis"]["next_step"]
    assert len(operator.read("/scrape/targets", is_due="true")["items"]) == 6
    assert operator.read("/scrape/targets", is_enabled="false")["items"] == []
    assert refused(operator.get(f"{BASE}/scrape/targets", {"is_due": "yes"})) == (422, "INVALID_INPUT")


def test_a_page_shows_how_reading_it_ended(operator):
    source = page_runs.shop(1)
    page_runs.read(source, "OFFER", page_runs.offer("9.99", sku="A"))
    evidence = [{"field": "price", "value": "$8.00"}]
    detail = {"error": "two prices", "evidence": evidence}
    page_runs.read(source, "AMBIGUOUS_PRICE", after=1, detail=detail)
    [page] = ScrapeTarget.objects.all()
    newest, first = operator.read(f"/scrape/targets/{page.pk}/readings")["items"]
    assert (first["outcome"], first["price"], first["version"]) == ("OFFER", "9.99 USD", "1.0.0")
    assert (newest["outcome"], newest["detail"], newest["evidence"]) == ("AMBIGUOUS_PRICE", "two prices", evidence)
    assert newest["run"]["no"] > first["run"]["no"]
    assert refused(operator.get(f"{BASE}/scrape/targets/{uuid7()}/readings")) == (404, "NOT_FOUND")


def test_the_description_of_changes_has_no_defaults_that_clients_would_send():
    shapes = api.get_openapi_schema()["components"]["schemas"]
    for name in ("SettingChanges", "TargetChanges", "ChoiceOfShop", "ScrapeSettingsChanges"):
        assert not any("default" in field for field in shapes[name]["properties"].values()), name


def test_a_list_needs_few_statements_whatever_its_length(operator, django_assert_max_num_queries):
    source = scraping.shop()
    scraping.pages(source, 100)
    with django_assert_max_num_queries(6):
        assert len(operator.read("/scrape/targets", page_size=200)["items"]) == 100


def test_many_pages_are_changed_or_deleted(operator, admin):
    source = scraping.shop()
    pages = scraping.pages(source, 4)
    ids = [str(page.pk) for page in pages[:2]]
    answer = operator.write("/scrape/targets/bulk", {"filter": {"ids": ids}, "changes": {"status": "PAUSED"}})
    assert answer.json() == {"pages": 2}
    wanted = {"source_id": str(source.pk), "status": "PAUSED"}
    assert refused(operator.write("/scrape/targets/bulk", {"filter": wanted, "delete": True})) == (403, "SCOPE_MISSING")
    blocked = operator.write("/scrape/targets/bulk", {"filter": wanted, "changes": {"robots_path_blocked": True}})
    assert refused(blocked) == (403, "SCOPE_MISSING")
    assert admin.write("/scrape/targets/bulk", {"filter": wanted, "delete": True}).json() == {"pages": 2}
    assert ScrapeTarget.objects.count() == 2
    for body in ({"filter": wanted}, {"filter": wanted, "changes": {}, "delete": True}, {"delete": True}):
        assert refused(admin.write("/scrape/targets/bulk", body)) == (422, "INVALID_INPUT")
    assert refused(admin.write("/scrape/targets/bulk", {"filter": {"color": "red"}, "delete": True}))[0] == 422


def test_more_than_a_thousand_pages_need_the_scope_of_an_admin(operator, admin):
    source = scraping.shop()
    scraping.pages(source, 1_001)
    body = {"filter": {"source_id": str(source.pk)}, "changes": {"priority": 5}}
    assert refused(operator.write("/scrape/targets/bulk", body)) == (409, "TOO_MANY_PAGES")
    assert not ScrapeTarget.objects.filter(priority=5).exists()
    assert admin.write("/scrape/targets/bulk", body).json() == {"pages": 1_001}


def test_blocking_a_page_by_hand_needs_the_scope_of_an_admin(operator, admin):
    [page] = scraping.pages(scraping.shop(), 1)
    body = {"robots_path_blocked": True}
    assert refused(operator.change(f"/scrape/targets/{page.pk}", body)) == (403, "SCOPE_MISSING")
    assert admin.change(f"/scrape/targets/{page.pk}", body).json()["diagnosis"]["trouble"] == "BLOCKED"


# -- reading now ------------------------------------------------------------------------------------------------------


def test_pages_are_read_now_and_the_run_is_named(operator):
    source = scraping.shop()
    pages = scraping.pages(source, 3)
    scraping.pages(source, 1, status="PAUSED")
    answer = operator.write(f"{pages_of(source)}/enqueue", {"ids": [str(pages[0].pk)]})
    assert answer.status_code == 202
    done, run = answer.json(), Run.objects.get()
    assert done["run"] == {"id": str(run.pk), "no": run.no}
    assert answer.headers["Location"] == f"{BASE}/runs/{run.pk}"
    rest = operator.write(f"{pages_of(source)}/enqueue").json()
    assert [rest[name] for name in ("accepted", "waiting", "skipped", "rejected", "reason")] == [2, 1, 1, 0, None]
    nothing = operator.write(f"{pages_of(source)}/enqueue", {"filter": {"status": "BROKEN"}})
    assert (nothing.status_code, nothing.json()["accepted"], nothing.json()["run"]) == (202, 0, None)
    both = operator.write(f"{pages_of(source)}/enqueue", {"ids": [], "filter": {}})
    assert refused(both) == (422, "INVALID_INPUT")
    assert refused(operator.write(f"/scrape/sources/{uuid7()}/enqueue")) == (404, "NOT_FOUND")


def test_a_full_queue_is_429_with_the_seconds_to_wait(operator, settings):
    scraping.limit(settings, per_source=3)
    source = scraping.shop(scrape_config={"requests_per_second": 0.1})
    scraping.pages(source, 5)
    some = operator.write(f"{pages_of(source)}/enqueue").json()
    assert (some["accepted"], some["rejected"], some["reason"], some["retry_after"]) == (3, 2, "queue_full", 20)
    answer = operator.write(f"{pages_of(source)}/enqueue")
    assert refused(answer) == (429, "SCRAPE_QUEUE_FULL")
    assert answer.headers["Retry-After"] == "20"
    assert scraping.rejections() == {"queue_full": 4}


def test_a_shop_that_asked_for_a_pause_is_429(operator):
    source = scraping.shop()
    scraping.pages(source, 1)
    catalog.fetch(
        "INSERT INTO job_lanes (queue, lane, wake_at, not_before) VALUES ('pages', 'shop.example', 'infinity', "
        "now() + interval '1 hour') ON CONFLICT (queue, lane) DO UPDATE SET not_before = excluded.not_before"
    )
    answer = operator.write(f"{pages_of(source)}/enqueue")
    assert refused(answer) == (429, "SCRAPE_RATE_LIMITED")
    assert 0 < int(answer.headers["Retry-After"]) <= 3600


@pytest.mark.parametrize("values", [{"scrape_enabled": False}, {"enabled": False}, {"robots_compliant": False}])
def test_a_source_that_is_switched_off_is_409_without_a_time(operator, values):
    source = scraping.shop(**values)
    scraping.pages(source, 1)
    answer = operator.write(f"{pages_of(source)}/enqueue")
    assert refused(answer) == (409, "SCRAPE_SOURCE_DISABLED")
    assert "Retry-After" not in answer.headers
    assert waiting() == 0


def test_a_disabled_adapter_is_409(admin):
    source = scraping.shop()
    scraping.pages(source, 1)
    admin.write(f"{pages_of(source)}/adapter/disable", {"note": "wrong prices"})
    assert refused(admin.write(f"{pages_of(source)}/enqueue")) == (409, "SCRAPE_ADAPTER_DISABLED")


def test_force_needs_the_scope_of_an_admin_and_ignores_only_the_limits(operator, admin, settings):
    scraping.limit(settings, per_source=0)
    source = scraping.shop()
    pages = scraping.pages(source, 11)
    forced = {"ids": [str(page.pk) for page in pages[:10]], "force": True}
    assert refused(operator.write(f"{pages_of(source)}/enqueue", forced)) == (403, "SCOPE_MISSING")
    assert admin.write(f"{pages_of(source)}/enqueue", forced).json()["accepted"] == 10
    too_many = admin.write(f"{pages_of(source)}/enqueue", {"force": True})
    assert (refused(too_many), errors(too_many).keys()) == ((422, "INVALID_INPUT"), {"force"})
    Source.objects.filter(pk=source.pk).update(scrape_enabled=False)
    last = {"ids": [str(pages[10].pk)], "force": True}
    assert refused(admin.write(f"{pages_of(source)}/enqueue", last)) == (409, "SCRAPE_SOURCE_DISABLED")


def test_stale_pages_are_queued_again_or_stay_as_they_are(operator, settings):
    source = scraping.shop()
    scraping.pages(source, 3, status="STALE")
    scraping.limit(settings, per_source=0)
    assert refused(operator.write(f"{pages_of(source)}/requeue")) == (429, "SCRAPE_QUEUE_FULL")
    assert set(rows("SELECT status FROM scrape_targets")) == {("STALE",)}
    scraping.limit(settings)
    assert operator.write(f"{pages_of(source)}/requeue").json()["accepted"] == 3


def test_a_repeated_request_is_done_once(operator):
    source = scraping.shop()
    scraping.pages(source, 2)
    first = operator.write(f"{pages_of(source)}/enqueue", **{"Idempotency-Key": "one"})
    again = operator.write(f"{pages_of(source)}/enqueue", **{"Idempotency-Key": "one"})
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    assert (again.headers["Idempotency-Replayed"], Run.objects.count()) == ("true", 1)
    [page] = scraping.pages(source, 1)
    changed = operator.change(f"/scrape/targets/{page.pk}", {"priority": 4}, **{"Idempotency-Key": "two"})
    assert changed.json()["priority"] == 4
    reused = operator.change(f"/scrape/targets/{page.pk}", {"priority": 5}, **{"Idempotency-Key": "two"})
    assert refused(reused) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_refused_request_may_be_repeated_with_its_key(operator, settings):
    source = scraping.shop()
    scraping.pages(source, 1)
    scraping.limit(settings, per_source=0)
    assert refused(operator.write(f"{pages_of(source)}/enqueue", **{"Idempotency-Key": "x"}))[0] == 429
    scraping.limit(settings)
    assert operator.write(f"{pages_of(source)}/enqueue", **{"Idempotency-Key": "x"}).json()["accepted"] == 1
