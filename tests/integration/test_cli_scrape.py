"""`harvester scrape ...`: the same verbs as the portal, with tables, errors and JSON."""

import json
from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from tests.support import catalog
from tests.support import portal_scraping as made
from tests.support.commands_inside import harvester
from tests.support.feed_rows import make_feed

from harvester.catalog.models import Retailer, Source
from harvester.ops.models import AuditEvent
from harvester.runs.models import Run
from harvester.scraping import kept_pages
from harvester.scraping.models import AdapterState, QuarantineEntry, ScrapeImport, ScrapeOverride, ScrapeTarget

pytestmark = pytest.mark.usefixtures("database")
NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def source():
    return made.shop("Ammo Depot", domain="ammo-depot.example")


def as_json(*arguments, code=0):
    ran = harvester(*arguments, "--json")
    assert ran.code == code, ran.err
    return json.loads(ran.out)


def fresh(source) -> Source:
    return Source.objects.get(pk=source.pk)


def test_without_sources_the_lists_say_what_to_do():
    assert "scrape import file" in harvester("scrape", "list").out
    assert "Nothing waits" in harvester("scrape", "quarantine", "list").out
    assert "no such pages" in harvester("scrape", "target", "list").out
    assert as_json("scrape", "list") == {"sources": []}


def test_a_source_is_listed_and_shown_with_its_steps(source):
    made.page(source, "product/1")
    made.entry(made.page(source, "product/2"))
    [shop] = as_json("scrape", "list")["sources"]
    assert (shop["name"], shop["pages"]["active"], shop["quarantine"]) == ("Ammo Depot", 2, 1)
    shown = as_json("scrape", "show", "Ammo Depot")
    assert [step["name"] for step in shown["readiness"]][:3] == ["terms", "robots", "adapter"]
    assert "requests_per_second" in shown["settings"]
    text = harvester("scrape", "show", "Ammo Depot").out
    assert "Terms reviewed" in text
    assert "a request every 2 s" in text


def test_switches_need_what_the_verbs_need_and_are_audited(source):
    Source.objects.filter(pk=source.pk).update(scrape_enabled=False, tos_reviewed_at=None, tos_approved_by=None)
    refused = harvester("scrape", "enable", "Ammo Depot")
    assert refused.code == 4
    assert "terms" in refused.err.lower()
    harvester("scrape", "review", "Ammo Depot", "--note", "allowed by section 4")
    assert fresh(source).tos_note == "allowed by section 4"
    assert harvester("scrape", "robots", "Ammo Depot", "--forbid", "--note", "legal").code == 0
    assert (fresh(source).robots_compliant, fresh(source).robots_set_by is not None) == (False, True)
    assert harvester("scrape", "robots", "Ammo Depot", "--allow", "--note", "cleared").code == 0
    assert fresh(source).robots_compliant is True
    Source.objects.filter(pk=source.pk).update(scrape_enabled=True)
    assert as_json("scrape", "stop", "Ammo Depot", "--reason", "asked")["stopped"] == {str(source.pk): 0}
    assert fresh(source).scrape_enabled is False
    assert harvester("scrape", "stop").code == 2
    assert harvester("scrape", "stop", "Ammo Depot", "--all").code == 2
    verbs = list(AuditEvent.objects.order_by("id").values_list("verb", flat=True))
    assert verbs == ["SCRAPE_TERMS_REVIEWED", "SCRAPE_ROBOTS_SET", "SCRAPE_ROBOTS_SET", "SCRAPE_STOPPED"]


def test_settings_are_read_and_wrong_ones_named(source):
    assert as_json("scrape", "set", "Ammo Depot", "requests_per_second=0.2")["settings"]["requests_per_second"] == 0.2
    wrong = harvester("scrape", "set", "Ammo Depot", "requests_per_second=100")
    assert wrong.code == 2
    assert "requests_per_second" in wrong.err
    assert harvester("scrape", "set", "Ammo Depot", "speed=1").code == 2
    assert as_json("scrape", "set", "Ammo Depot", "requests_per_second=")["settings"]["requests_per_second"] is None


def test_pages_are_added_changed_moved_paused_and_deleted(source):
    url = "https://ammo-depot.example/product/9mm"
    added = as_json("scrape", "target", "add", "Ammo Depot", url, "schedule=0 */4 * * *", "priority=5", "notes=box")
    page = added["id"]
    assert (added["schedule"], added["priority"], added["notes"]) == ("0 */4 * * *", 5, "box")
    assert harvester("scrape", "target", "add", "Ammo Depot", url).code == 4
    for wrong in ("https://other.example/x", "ftp://ammo-depot.example/x", "https://u:p@ammo-depot.example/x"):
        assert harvester("scrape", "target", "add", "Ammo Depot", wrong).code == 2, wrong
    assert harvester("scrape", "target", "set", page, "schedule=every day").code == 2
    assert as_json("scrape", "target", "set", page, "priority=-3", "enabled=no")["enabled"] is False
    assert as_json("scrape", "target", "pause", page)["status"] == "PAUSED"
    assert as_json("scrape", "target", "resume", page)["status"] == "ACTIVE"
    assert harvester("scrape", "target", "move", page).code == 4
    ScrapeTarget.objects.filter(pk=page).update(moved_to="https://ammo-depot.example/product/9mm-new")
    assert as_json("scrape", "target", "move", page)["url"].endswith("/9mm-new")
    assert harvester("scrape", "target", "delete", page).code == 2
    assert harvester("scrape", "target", "delete", page, "--yes").code == 0
    assert harvester("scrape", "target", "show", page).code == 3


def test_pages_that_yield_nothing_are_listed_with_the_next_step(source):
    made.page(source, "gone", last_status="GONE")
    fine = made.page(source, "fine")
    assert fine.last_seen["offer"]["price"] in harvester("scrape", "target", "list").out
    [gone] = as_json("scrape", "target", "list", "--trouble", "gone")["targets"]
    assert gone["url"].endswith("/gone")
    assert gone["next_step"]
    assert harvester("scrape", "target", "list", "--trouble", "odd").code == 2
    assert gone["next_step"] in " ".join(harvester("scrape", "target", "list", "--trouble", "GONE").out.split())


def test_many_pages_are_changed_only_when_that_is_confirmed(source):
    made.page(source, "a", status="BROKEN")
    made.page(source, "b", status="BROKEN")
    given = ("scrape", "target", "set-all", "status=ACTIVE", "--status", "BROKEN")
    assert as_json(*given, code=1) == {"matching": 2, "changed": 0}
    assert as_json(*given, "--yes") == {"changed": 2}
    assert set(ScrapeTarget.objects.values_list("status", flat=True)) == {"ACTIVE"}


def test_many_pages_are_deleted_only_when_that_is_confirmed(source):
    for name in ("1", "2"):
        made.page(source, f"product/{name}", last_status="GONE")
    kept = made.page(source, "product/3")
    assert as_json("scrape", "target", "delete-all", "--trouble", "GONE", code=1) == {"matching": 2, "deleted": 0}
    assert ScrapeTarget.objects.count() == 3
    everything = harvester("scrape", "target", "delete-all", "--yes")
    assert (everything.code, "Nothing was deleted" in everything.err) == (2, True)
    assert as_json("scrape", "target", "delete-all", "--trouble", "GONE", "--yes") == {"deleted": 2}
    assert list(ScrapeTarget.objects.values_list("pk", flat=True)) == [kept.pk]
    assert AuditEvent.objects.get(verb="SCRAPE_TARGETS_DELETED").detail["count"] == 2


def test_addresses_that_need_somebody_are_listed_with_what_to_do(source):
    assert as_json("scrape", "target", "health") == {"sources": []}
    assert "No page has moved" in harvester("scrape", "target", "health", "--source", "Ammo Depot").out
    new = "https://ammo-depot.example/product/new"
    moved = made.page(source, "product/1", moved_to=new)
    gone = made.page(source, "product/2", last_status="GONE")
    product = catalog.product(source)
    twice = {str(made.page(source, f"product/{n}", pinned_product_id=product).pk) for n in (3, 4)}
    made.page(made.shop("Quiet", domain="quiet.example"), "product/1")
    [found] = as_json("scrape", "target", "health")["sources"]
    assert (found["source"], found["moved"][0]["target_id"], found["moved"][0]["moved_to"]) == (
        "Ammo Depot", str(moved.pk), new,
    )  # fmt: skip
    assert [page["target_id"] for page in found["gone"]] == [str(gone.pk)]
    [group] = found["same_product"]
    assert (group["product_id"], {page["target_id"] for page in group["pages"]}) == (product, twice)
    text = harvester("scrape", "target", "health").out
    steps = ("target move PAGE", "target delete PAGE", "Same product twice")
    assert [words for words in steps if words not in text] == []


def test_the_readings_of_a_page_are_listed(source):
    page = made.page(source, "product/1")
    assert as_json("scrape", "target", "readings", str(page.pk)) == {"readings": []}
    run = made.page_run(source)
    made.part(run, page, "PRICE_NOT_FOUND", detail={"error": "The page shows no price."})
    [reading] = as_json("scrape", "target", "readings", str(page.pk))["readings"]
    assert (reading["run_no"], reading["outcome"], reading["detail"]) == (
        run.no, "PRICE_NOT_FOUND", "The page shows no price.",
    )  # fmt: skip
    assert "PRICE_NOT_FOUND" in harvester("scrape", "target", "readings", str(page.pk)).out
    assert harvester("scrape", "target", "readings", NOBODY).code == 3


def test_the_places_that_were_chosen_for_a_page_are_forgotten(source):
    page = made.page(source, "product/1", chosen={"price": "json:offers.price"})
    as_json("scrape", "target", "forget-places", str(page.pk))
    page.refresh_from_db()
    assert page.chosen == {}
    assert harvester("scrape", "target", "forget-places", str(page.pk)).code == 4


def test_a_kept_page_is_read_again_in_a_run(source):
    page = made.page(source, "product/1")
    assert "not kept any more" in harvester("scrape", "target", "reprocess", str(page.pk)).err
    assert harvester("scrape", "target", "reprocess", NOBODY).code == 3
    body = kept_pages.store_body(b"<html><body><h1>Brass</h1></body></html>")
    with transaction.atomic(), connection.cursor() as cursor:
        kept_pages.keep(
            cursor, body, url=page.url, status=200, content_type="text/html", since=0.0, source_id=source.pk,
            target_id=page.pk,
        )  # fmt: skip
    begun = as_json("scrape", "target", "reprocess", str(page.pk))
    run = Run.objects.get(no=begun["run_no"])
    assert (run.trigger, run.parts.get().target_id, run.parts.get().page is not None) == ("RETRY", page.pk, True)


def test_a_place_is_proposed_for_all_pages_of_a_shop(source):
    entry = made.entry(made.page(source, "product/1"))
    proposed = as_json(
        "scrape", "quarantine", "propose", str(entry.pk), "price=json:offers.price", "--note", "redesign"
    )  # fmt: skip
    draft = ScrapeOverride.objects.get(source=source)
    assert (proposed["version"], proposed["status"], draft.note) == (1, "DRAFT", "redesign")
    assert draft.places == {"places": {"price": ["json:offers.price"]}} == proposed["places"]
    assert harvester("scrape", "quarantine", "propose", str(entry.pk), "color=.c").code == 2


def test_a_list_is_previewed_chosen_and_imported(source, tmp_path):
    file = tmp_path / "pages.csv"
    file.write_text("url,schedule\nhttps://ammo-depot.example/a,0 6 * * *\nnot an address,\nhttps://new.example/b,\n")
    shown = as_json("scrape", "import", "file", str(file))
    assert [group["shop"] for group in shown["groups"]] == ["ammo-depot.example", "new.example"]
    assert [line["line"] for line in shown["refused"]] == [3]
    assert not ScrapeTarget.objects.exists()
    text = harvester("scrape", "import", "show", shown["id"]).out
    assert "scrape import start" in text
    as_json("scrape", "import", "choose", shown["id"], "new.example", "--skip")
    started = as_json("scrape", "import", "start", shown["id"])
    assert started["status"] == "IMPORTING"
    assert as_json("scrape", "import", "cancel", shown["id"])["status"] == "CANCELLED"
    assert ScrapeImport.objects.count() == len(as_json("scrape", "import", "list")["imports"])
    assert harvester("scrape", "import", "file", str(tmp_path / "none.csv")).code == 2


def test_lines_of_a_list_are_linked_to_products(tmp_path):
    source = make_feed().source
    Retailer.objects.filter(pk=source.retailer_id).update(domain="acme.example")
    tent = catalog.product(
        source, url="https://acme.example/tent?color=red", title="Tarn tent", sku="T-1", identity_value="T-1"
    )
    file = tmp_path / "pages.csv"
    file.write_text("url\nhttps://acme.example/tent\nhttps://acme.example/other\n")
    shown = as_json("scrape", "import", "file", str(file))
    [group] = shown["groups"]
    assert [row["candidates"][0]["id"] for row in group["not_added"] if row["candidates"]] == [tent]
    text = harvester("scrape", "import", "show", shown["id"]).out
    assert "2 lines need a product: harvester scrape import link" in " ".join(text.split())
    linked = as_json("scrape", "import", "link", shown["id"], f"2=id:{tent}", "3=sku:T-1")
    assert linked["groups"][0]["counts"] == {"NEW": 2}
    unlinked = as_json("scrape", "import", "link", shown["id"], "3=")
    assert unlinked["groups"][0]["counts"] == {"NEW": 1, "UNLINKED": 1}
    for wrong in ("3", "x=T-1", "3=sku:none", "9=T-1"):
        assert harvester("scrape", "import", "link", shown["id"], wrong).code == 2, wrong


def test_a_source_that_is_off_or_full_refuses_to_run(source):
    made.page(source, "a")
    Source.objects.filter(pk=source.pk).update(scrape_enabled=False)
    refused = harvester("scrape", "run", "Ammo Depot")
    assert refused.code == 4
    assert "Ammo Depot" in refused.err
    Source.objects.filter(pk=source.pk).update(scrape_enabled=True)
    done = as_json("scrape", "run", "Ammo Depot")
    assert (done["accepted"], done["rejected"]) == (1, 0)
    again = as_json("scrape", "run", "Ammo Depot")
    assert (again["accepted"], again["waiting"]) == (0, 1)


def test_an_entry_of_quarantine_is_shown_written_or_dismissed(source):
    entry = made.entry(made.page(source, "a"))
    other = made.entry(made.page(source, "b"), "WRONG_PRODUCT")
    assert {found["id"] for found in as_json("scrape", "quarantine", "list")["entries"]} == {
        str(entry.pk),
        str(other.pk),
    }
    text = harvester("scrape", "quarantine", "show", entry.pk).out
    assert "json:offers.price" in text
    assert as_json("scrape", "quarantine", "dismiss", other.pk, "--note", "test")["status"] == "DISMISSED"
    assert harvester("scrape", "quarantine", "dismiss", other.pk).code == 4
    chosen = as_json("scrape", "quarantine", "choose", entry.pk, "price=json:offers.price")
    assert chosen["chosen"] == {"price": "json:offers.price"}
    assert as_json("scrape", "quarantine", "write", entry.pk)["status"] == "WRITTEN"
    assert QuarantineEntry.objects.filter(status="OPEN").count() == 0
    assert harvester("scrape", "quarantine", "show", NOBODY).code == 3


def test_an_adapter_is_switched_off_and_on_and_its_next_run_confirmed(source):
    off = as_json("scrape", "adapter", "disable", "Ammo Depot", "--note", "wrong titles")
    assert (off["enabled"], off["disabled_reason"]) == (False, "MANUAL")
    assert [state["enabled"] for state in as_json("scrape", "adapter", "list")["sources"]] == [False]
    on = as_json("scrape", "adapter", "enable", "Ammo Depot")
    assert (on["enabled"], on["check_next_run"]) == (True, True)
    assert harvester("scrape", "adapter", "confirm", "Ammo Depot").code == 4
    AdapterState.objects.update(check_run_no=1)
    assert as_json("scrape", "adapter", "confirm", "Ammo Depot")["check_next_run"] is False
    assert harvester("scrape", "adapter", "choose", "Ammo Depot", "nothing").code in {2, 3}


def test_overrides_are_saved_and_count_only_after_a_test(source, tmp_path):
    file = tmp_path / "changed.json"
    file.write_text('{"places": {"price": [".new-price::text"]}}')
    saved = as_json("scrape", "adapter", "override", "Ammo Depot", str(file), "--note", "new theme")
    assert (saved["version"], saved["status"]) == (1, "DRAFT")
    assert harvester("scrape", "adapter", "use", "Ammo Depot", 1).code == 4
    file.write_text('{"places": {"colour": ["x"]}}')
    assert harvester("scrape", "adapter", "override", "Ammo Depot", str(file)).code == 2
    assert [each["version"] for each in as_json("scrape", "adapter", "overrides", "Ammo Depot")["overrides"]] == [1]


def test_a_shop_is_paused_and_resumed_and_a_page_unpinned(source):
    assert as_json("scrape", "pause", "Ammo Depot", "--note", "asked for a day")["gate"] == "STOPPED"
    assert "asked for a day" in harvester("scrape", "show", "Ammo Depot").out
    assert as_json("scrape", "resume", "Ammo Depot")["gate"] != "STOPPED"
    page = made.page(source, "a", pinned={"sku": "A-1"}, schedule="0 */4 * * *")
    assert as_json("scrape", "target", "unpin", page.pk)["pinned"] is None
    [schedule] = as_json("scrape", "show", "Ammo Depot")["schedules"]
    assert (schedule["schedule"], schedule["is_met"]) == ("0 */4 * * *", True)


def test_hints_and_backtest_of_a_source_without_kept_pages_say_so(source):
    assert as_json("scrape", "backtest", "Ammo Depot")["pages"] == 0
    assert "none of the kept pages" in harvester("scrape", "hints", "Ammo Depot").out


@pytest.mark.parametrize("address", ["http://10.0.0.1/x", "ftp://shop.example/x", "nothing"])
def test_an_address_that_may_not_be_fetched_is_refused_before_a_job_is_made(settings, address):
    contact = {"scrape_contact_url": "https://prices.example/bot", "scrape_contact_mail": "bot@prices.example"}
    settings.CONFIG = replace(django_settings.CONFIG, **contact)
    assert harvester("scrape", "try", address).code == 2
