"""Imports, quarantine, back-tests and single addresses over the API."""

import base64
import json

import pytest
from tests.support import catalog, page_runs, scrape_world, scraping
from tests.support.api import BASE, Application, refused
from tests.support.feed_rows import make_feed
from tests.support.scripted_shop import ScriptedShop, html, product_page
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.models import Retailer
from harvester.kernel.ids import uuid7
from harvester.ops.scopes import Scope
from harvester.scraping import fetching
from harvester.scraping.models import QuarantineEntry, ScrapeImport, ScrapeOverride, ScrapeTarget

pytestmark = pytest.mark.usefixtures("database")
LIST = """url,schedule,priority
https://bigshop.com/new,0 6 * * *,5
https://www.bigshop.com/old/?utm_source=x,,
https://newshop.co.uk/a,,
https://10.0.0.7/p,,
"""
NOBODY = "0190c0a0-0000-7000-8000-000000000000"
IMPORTS, QUARANTINE = "/scrape/imports", "/scrape/quarantine"


@pytest.fixture
def operator(database):
    return Application(Scope.SCRAPE_READ, Scope.SCRAPE_OPERATE, Scope.JOBS_READ)


@pytest.fixture
def admin(database):
    return Application(Scope.SCRAPE_READ, Scope.SCRAPE_OPERATE, Scope.SCRAPE_ADMIN)


@pytest.fixture
def shop(database, settings):
    scrape_world.allow_scraping(settings)
    with ScriptedShop() as running:
        yield running
    fetching.close()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def entry_of(source) -> str:
    return f"{QUARANTINE}/{QuarantineEntry.objects.get(source=source, status='OPEN').pk}"


# -- imports ----------------------------------------------------------------------------------------------------------


def test_a_list_is_previewed_decided_about_and_imported(operator):
    known = scraping.shop("bigshop.com")
    catalog.target(known, "https://bigshop.com/old")
    answer = operator.write(IMPORTS, {"name": "monday.csv", "file": encoded(LIST)})
    made = answer.json()
    address = f"{IMPORTS}/{made['id']}"
    assert (answer.status_code, answer.headers["Location"]) == (201, BASE + address)
    assert (made["status"], made["pages"], made["refused"]) == ("PREVIEW", 3, 1)
    assert [line["line"] for line in made["refused_lines"]] == [5]
    big, new = made["shops"]
    assert (big["domain"], big["counts"]) == ("bigshop.com", {"NEW": 1, "DUPLICATE_OF_TARGET": 1})
    assert [(line["line"], line["state"]) for line in big["problems"]] == [(3, "DUPLICATE_OF_TARGET")]
    assert big["choice"]["source_id"] == str(known.pk)
    assert (new["choice"]["source_id"], new["choice"]["skip"]) == (None, False)
    given = {"domain": "newshop.co.uk", "schedule": "0 7 * * *", "name": "New shop"}
    chosen = operator.write(f"{address}/choices", given).json()["shops"][1]["choice"]
    assert (chosen["schedule"], chosen["name"], chosen["adapter_id"]) == ("0 7 * * *", "New shop", "structured")
    assert refused(operator.write(f"{address}/choices", {**given, "domain": "x.example"})) == (404, "NOT_FOUND")
    assert refused(operator.write(f"{address}/choices", {**given, "schedule": "hourly"})) == (422, "INVALID_INPUT")
    job = operator.write(f"{address}/start")
    assert job.status_code == 202
    run_until_idle(queues=("maintenance",))
    assert operator.read(job.headers["Location"].removeprefix(BASE))["state"] == "succeeded"
    done = operator.read(address)
    assert (done["status"], done["shops"]) == ("DONE", [])
    assert done["results"] == {"done": 3, "added": 2, "skipped": 0, "refused": 1}
    assert [line["line"] for line in done["refused_lines"]] == [5, 3]
    assert set(rows("SELECT url, schedule FROM scrape_targets WHERE created_by <> 'test'")) == {
        ("https://bigshop.com/new", "0 6 * * *"), ("https://newshop.co.uk/a", "0 7 * * *"),
    }  # fmt: skip
    assert refused(operator.write(f"{address}/cancel")) == (409, "CONFLICT")


def test_a_text_is_imported_and_cancelled(operator):
    made = operator.write(IMPORTS, {"name": "pasted", "text": "https://shop.example/a\nhttps://shop.example/b"}).json()
    assert [shop["counts"] for shop in made["shops"]] == [{"NEW": 2}]
    assert operator.write(f"{IMPORTS}/{made['id']}/cancel").json()["status"] == "CANCELLED"
    assert refused(operator.write(f"{IMPORTS}/{made['id']}/start")) == (409, "CONFLICT")
    assert not ScrapeTarget.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"name": "x", "text": "https://shop.example/a", "file": encoded(LIST)},
        {"name": "x", "file": "abc"},
        {"name": "x", "file": "not base64!"},
        {"name": "x", "text": "   "},
        {"name": "", "text": "https://shop.example/a"},
        {"text": "https://shop.example/a"},
    ],
)
def test_a_list_that_cannot_be_read_is_refused(operator, body):
    assert refused(operator.write(IMPORTS, body)) == (422, "INVALID_INPUT")
    assert not ScrapeImport.objects.exists()


def test_a_list_may_have_twenty_thousand_addresses(operator):
    text = "\n".join(
        f"https://shop.example/department/product-with-a-long-name/item-{n}-of-many" for n in range(20_000)
    )
    made = operator.write(IMPORTS, {"name": "x", "text": text})
    assert made.status_code == 201
    assert made.json()["pages"] == 20_000
    assert made.json()["shops"][0]["counts"] == {"NEW": 20_000}


@pytest.mark.parametrize("path", [IMPORTS, f"{IMPORTS}/{NOBODY}/links", "/scrape/targets"])
def test_a_body_that_is_larger_than_its_address_allows_is_refused_with_the_limit(operator, path):
    """Only the import of a list may have 2 MiB, and it is refused before its body is read or its key is looked at."""
    most = 2 * 2**20 if path == IMPORTS else 2**16
    body = json.dumps({"name": "x", "text": "x" * most})
    answer = operator.post(f"{BASE}{path}", body, content_type="application/json")
    assert refused(answer) == (413, "REQUEST_TOO_LARGE")
    assert f"larger than {most:,} bytes" in answer.json()["detail"]
    assert "split it" in answer.json()["detail"]
    assert not ScrapeImport.objects.exists()


def test_a_response_about_many_shops_names_the_first_and_counts_the_others(operator):
    text = "\n".join(f"https://shop-{number}.example/a" for number in range(250))
    made = operator.write(IMPORTS, {"name": "x", "text": text}).json()
    assert (len(made["shops"]), made["more_shops"]) == (200, 50)


def test_lines_are_linked_to_products_of_a_feed(operator):
    source = make_feed().source
    Retailer.objects.filter(pk=source.retailer_id).update(domain="acme.example")
    tent = catalog.product(
        source, url="https://acme.example/tent?color=red", title="Tarn tent", sku="T-1", identity_value="T-1"
    )
    stove = catalog.product(source, url="https://acme.example/stove", title="Stove", sku="S-1", identity_value="S-1")
    text = "https://acme.example/tent\nhttps://acme.example/b\nhttps://acme.example/c\nhttps://acme.example/d"
    made = operator.write(IMPORTS, {"name": "x", "text": text}).json()
    address = f"{IMPORTS}/{made['id']}"
    [shop_] = made["shops"]
    assert shop_["counts"] == {"UNLINKED": 4}
    assert [each["id"] for each in shop_["problems"][0]["candidates"]] == [tent]
    links = [{"line": 1, "product_id": tent}, {"line": 2, "sku": "S-1"}]
    linked = operator.write(f"{address}/links", {"links": links}).json()
    assert linked["shops"][0]["counts"] == {"NEW": 2, "UNLINKED": 2}
    first = operator.read(f"{address}/lines", state="UNLINKED", page_size=1)
    rest = operator.read(f"{address}/lines", state="UNLINKED", page_size=1, cursor=first["next_cursor"])
    assert [line["line"] for line in first["items"] + rest["items"]] == [3, 4]
    assert rest["next_cursor"] is None
    operator.write(f"{address}/start")
    run_until_idle(queues=("maintenance",))
    done = operator.write(f"{address}/links", {"links": [{"line": 3, "product_id": stove}]}).json()
    assert done["results"] == {"done": 4, "added": 3, "skipped": 0, "refused": 1}
    assert dict(rows("SELECT right(url, 1), product_id FROM scrape_targets")) == {"t": tent, "b": stove, "c": stove}


@pytest.mark.parametrize(
    ("link", "field"),
    [
        ({"line": 1, "sku": "none"}, "links.0"),
        ({"line": 7, "sku": "T-1"}, "links.0"),
        ({"line": 1, "sku": "T-1", "product_id": 5}, "links.0"),
        ({"line": 0}, "links.0.line"),
    ],
)
def test_links_that_are_not_possible_name_their_field(operator, link, field):
    source = make_feed().source
    Retailer.objects.filter(pk=source.retailer_id).update(domain="acme.example")
    made = operator.write(IMPORTS, {"name": "x", "text": "https://acme.example/a"}).json()
    answer = operator.write(f"{IMPORTS}/{made['id']}/links", {"links": [link]})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_imports_are_listed_newest_first(operator):
    for number in range(3):
        operator.write(IMPORTS, {"name": f"list {number}", "text": f"https://shop.example/{number}"})
    first = operator.read(IMPORTS, page_size=2)
    rest = operator.read(IMPORTS, page_size=2, cursor=first["next_cursor"])
    assert [item["name"] for item in first["items"] + rest["items"]] == ["list 2", "list 1", "list 0"]
    assert first["items"][0]["pages"] == 1
    wrong = operator.get(f"{BASE}{IMPORTS}", {"cursor": "x"})
    assert refused(wrong) == (422, "INVALID_CURSOR")


def test_the_pages_of_a_feed_are_added(world, operator):
    source = world.feed.source
    world.put(100, 101)
    world.run()
    answer = operator.write(f"/scrape/sources/{source.pk}/import-from-feed", {"most": 1, "schedule": "0 6 * * *"})
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"{BASE}{IMPORTS}/{answer.json()['id']}"
    run_until_idle(queues=("maintenance",))
    [page] = ScrapeTarget.objects.all()
    assert (page.source_id, page.schedule, page.product_id is None) == (source.pk, "0 6 * * *", False)
    other = scraping.shop("other.example")
    assert refused(operator.write(f"/scrape/sources/{other.pk}/import-from-feed")) == (409, "CONFLICT")


# -- quarantine -------------------------------------------------------------------------------------------------------


def test_quarantine_is_listed_newest_first_and_filtered(operator):
    one, two = page_runs.shop(1), page_runs.shop(1)
    page_runs.read(one, "AMBIGUOUS_PRICE", page_runs.offer("1.00", sku="A"))
    page_runs.read(two, "CONTRADICTION", page_runs.offer("2.00", sku="B"))
    first = operator.read(QUARANTINE, page_size=1)
    rest = operator.read(QUARANTINE, page_size=1, cursor=first["next_cursor"])
    found = first["items"] + rest["items"]
    assert [(entry["reason"], entry["price"]) for entry in found] == [
        ("CONTRADICTION", "2.00 USD"), ("AMBIGUOUS_PRICE", "1.00 USD"),
    ]  # fmt: skip
    assert rest["next_cursor"] is None
    for filters in ({"source_id": str(one.pk)}, {"reason": "AMBIGUOUS_PRICE"}):
        assert [entry["source_id"] for entry in operator.read(QUARANTINE, **filters)["items"]] == [str(one.pk)]
    page_runs.read(one, "CONTRADICTION", page_runs.offer("1.00", sku="A"), after=1)
    assert [entry["reason"] for entry in operator.read(QUARANTINE, status="SUPERSEDED")["items"]] == ["AMBIGUOUS_PRICE"]
    assert len(operator.read(QUARANTINE, status="")["items"]) == 3
    assert refused(operator.get(f"{BASE}{QUARANTINE}", {"status": "LOST"})) == (422, "INVALID_INPUT")


def test_an_offer_is_written_as_it_was_read(operator):
    source = page_runs.shop(1)
    page_runs.read(source, "AMBIGUOUS_PRICE", page_runs.offer("12.50", sku="A"))
    address = entry_of(source)
    shown = operator.read(address)
    assert (shown["found"]["price"], shown["has_page"], shown["status"]) == ("12.50 USD", False, "OPEN")
    done = operator.write(f"{address}/write", {"note": "looked at it"}).json()
    assert (done["status"], done["resolved_by"], done["note"]) == ("WRITTEN", operator.key.name, "looked at it")
    assert page_runs.prices(source) == [12.50]
    assert refused(operator.write(f"{address}/dismiss")) == (409, "CONFLICT")


def test_a_price_that_a_person_gives_is_written_with_what_else_was_read(operator):
    source = page_runs.shop(1)
    found = page_runs.offer("12.50", sku="A", title="Hammer")
    page_runs.read(source, "AMBIGUOUS_PRICE", {**found, "original": "13.00 USD"})
    address = f"{entry_of(source)}/write"
    for wrong in ({"price": "9.99"}, {"currency": "USD"}, {"price": "9.999", "currency": "USD"}):
        assert refused(operator.write(address, {"offer": wrong})) == (422, "INVALID_INPUT"), wrong
    for wrong in ({"price": "-1", "currency": "USD"}, {"price": "0.00", "currency": "USD"}, {"color": "red"}):
        assert refused(operator.write(address, {"offer": wrong})) == (422, "INVALID_INPUT"), wrong
    assert page_runs.prices(source) == []
    given = {"price": "14.99", "currency": "USD", "availability": "OUT_OF_STOCK"}
    assert operator.write(address, {"offer": given}).json()["status"] == "WRITTEN"
    assert page_runs.prices(source) == [14.99]
    [seen] = rows("SELECT last_seen -> 'offer' FROM scrape_targets")
    assert "Hammer" in str(seen)
    assert "13.00" not in str(seen), "the crossed-out price belongs to the one that was read"


def test_an_entry_without_an_offer_needs_one(operator):
    source = page_runs.shop(1)
    page_runs.read(source, "AMBIGUOUS_PRICE")
    assert refused(operator.write(f"{entry_of(source)}/write")) == (422, "INVALID_INPUT")
    given = {"price": "9.99", "currency": "USD"}
    assert refused(operator.write(f"{entry_of(source)}/write", {"offer": given})) == (422, "INVALID_INPUT")
    given |= {"title": "Hammer", "availability": "IN_STOCK"}
    assert operator.write(f"{entry_of(source)}/write", {"offer": given}).json()["status"] == "WRITTEN"


def test_places_are_chosen_for_a_page_or_proposed_for_the_source(operator, admin):
    source = page_runs.shop(1)
    page_runs.read(source, "AMBIGUOUS_PRICE")
    address = f"{entry_of(source)}/choose"
    places = {"price": ".now::text"}
    [page] = ScrapeTarget.objects.all()
    assert operator.write(address, {"places": places}).json() == {"target_id": str(page.pk), "override_version": None}
    assert operator.read(f"/scrape/targets/{page.pk}")["chosen"] == places
    assert refused(operator.write(address, {"places": places, "for_source": True})) == (403, "SCOPE_MISSING")
    made = admin.write(address, {"places": places, "for_source": True}).json()
    assert made == {"target_id": None, "override_version": 1}
    assert ScrapeOverride.objects.get().places == {"places": {"price": [".now::text"]}}
    unknown = operator.write(address, {"places": {"color": ".red"}})
    assert refused(unknown) == (422, "INVALID_INPUT")
    assert unknown.json()["errors"][0]["field"] == "places"
    assert refused(operator.write(address, {"places": {}})) == (422, "INVALID_INPUT")


def test_an_entry_is_dismissed_and_an_unknown_one_is_not_found(operator):
    source = page_runs.shop(1)
    page_runs.read(source, "ZERO_PRICE_EXTRACTED")
    address = entry_of(source)
    assert refused(operator.get(f"{BASE}{address}/reading")) == (404, "PAGE_MISSING")
    assert operator.write(f"{address}/dismiss", {"note": "a gift"}).json()["note"] == "a gift"
    for verb in ("write", "reprocess", "dismiss"):
        assert refused(operator.write(f"{QUARANTINE}/{uuid7()}/{verb}")) == (404, "NOT_FOUND")


def unclear(price: str) -> str:
    """A page whose price no markup confirms."""
    return (
        f'<html><head><title>Hammer</title></head><body><main><h2 class="name">Hammer</h2>'
        f'<div class="buy"><span class="cost">${price}</span></div><p class="stock">In stock</p>'
        "<form><button>Add to cart</button></form><p>A hammer for many years of work.</p></main></body></html>"
    )


def test_a_quarantined_page_is_read_again_and_written_once_its_places_are_chosen(shop, operator):
    shop.replies["/p"] = html(unclear("19.99"))
    source = scrape_world.source({"default_currency": "USD"}, upc_trusted=False)
    target = catalog.target(source, f"{shop.url}/p")
    scrape_world.work(scrape_world.begin(source, [target]))
    address = entry_of(source)
    shown = operator.read(f"{address}/reading")
    assert (shown["outcome"], shown["adapter_id"]) == (operator.read(address)["reason"], "structured")
    assert "Hammer" in shown["text"]
    assert "<" not in shown["text"]
    still = operator.write(f"{address}/reprocess").json()
    assert (still["entry"]["status"], still["reading"]["outcome"]) == ("OPEN", shown["outcome"])
    places = {"price": "span.cost::text", "title": "h2.name::text", "availability": "p.stock::text"}
    assert operator.write(f"{address}/choose", {"places": places}).status_code == 200
    done = operator.write(f"{address}/reprocess", {"note": "there it is"}).json()
    assert (done["entry"]["status"], done["reading"]["offer"]["price"]) == ("WRITTEN", "19.99 USD")
    assert page_runs.prices(source) == [19.99]
    assert len(shop.asked("/p")) == 1, "nothing was requested again"
    run = operator.write(f"/scrape/targets/{target.pk}/reprocess")
    assert (run.status_code, run.headers["Location"]) == (202, f"{BASE}/runs/{run.json()['id']}")


# -- kept pages and single addresses ----------------------------------------------------------------------------------


def test_kept_pages_are_read_with_other_overrides(shop, operator):
    source = scrape_world.source({"default_currency": "USD"})
    targets = [catalog.target(source, f"{shop.url}/{number}") for number in range(3)]
    for number in range(3):
        shop.replies[f"/{number}"] = html(product_page(f"Tool {number}", f"{number + 3}.49", sku=f"T-{number}"))
    scrape_world.work(scrape_world.begin(source, targets))
    address = f"/scrape/sources/{source.pk}"
    report = operator.write(f"{address}/backtest").json()
    assert (report["pages"], report["same"], report["changed"], report["adapter_id"]) == (3, 3, 0, "structured")
    changed = operator.write(f"{address}/backtest", {"overrides": {"places": {"title": ["p.sku::text"]}}, "most": 2})
    assert (changed.json()["changed"], changed.json()["fields"]) == (2, {"title": 2})
    assert changed.json()["changes"][0]["url"].startswith(shop.url)
    for overrides in ({"places": {"color": ["p"]}}, {"nonsense": 1}, {"places": {"title": ["p[[["]}}):
        answer = operator.write(f"{address}/backtest", {"overrides": overrides})
        assert refused(answer) == (422, "INVALID_INPUT"), overrides
        assert answer.json()["errors"][0]["field"] == "overrides"
    hints = {hint["field"]: hint for hint in reversed(operator.read(f"{address}/hints")["items"])}
    assert (hints["title"]["found"], hints["title"]["pages"]) == (3, 3)
    tried = operator.write(f"{address}/backtest", {"overrides": hints["title"]["override"]}).json()
    assert tried["lost"] == 0


def test_overrides_are_saved_tested_used_and_retired(shop, admin):
    source = scrape_world.source({"default_currency": "USD"})
    target = catalog.target(source, f"{shop.url}/1")
    shop.replies["/1"] = html(product_page("Tool 1", "3.49", sku="T-1"))
    scrape_world.work(scrape_world.begin(source, [target]))
    address = f"/scrape/sources/{source.pk}/overrides"
    saved = admin.write(address, {"places": {"places": {"title": ["p.sku::text"]}}, "note": "a trial"})
    assert (saved.status_code, saved.json()["version"], saved.json()["status"]) == (201, 1, "DRAFT")
    assert refused(admin.write(address, {"places": {"nonsense": 1}})) == (422, "INVALID_INPUT")
    assert admin.write(f"{address}/1/use").status_code == 409, "it was not tested yet"
    assert admin.write(f"{address}/1/test").status_code == 202
    run_until_idle()
    [tested] = admin.read(address)["items"]
    assert (tested["backtest"]["pages"], tested["backtest"]["changed"]) == (1, 1)
    assert admin.write(f"{address}/1/use").json()["status"] == "ACTIVE"
    assert admin.write(f"{address}/1/retire").json()["status"] == "RETIRED"
    assert admin.write(f"{address}/9/use").status_code == 404


def test_an_address_is_tried(shop, operator):
    shop.replies["/p"] = html(product_page())
    answer = operator.write("/scrape/try", {"url": f"{shop.url}/p"})
    assert answer.status_code == 202
    address = answer.headers["Location"].removeprefix(BASE)
    assert (answer.json()["outcome"], answer.json()["requested_by"]) == (None, operator.key.name)
    tried = operator.read(address)
    for _ in range(30):
        run_until_idle(queues=("pages",))
        scrape_world.hurry()
        tried = operator.read(address)
        if tried["outcome"]:
            break
    assert (tried["outcome"], tried["result"]["offer"]["price"]) == ("OFFER", "19.99 USD")
    assert rows("SELECT FROM prices") == []


def test_an_address_that_is_never_read_is_refused(shop, operator):
    for url in ("https://10.0.0.7/p", "ftp://shop.example/p", "nonsense", "https://me:it@shop.example/"):
        answer = operator.write("/scrape/try", {"url": url})
        assert (refused(answer), answer.json()["errors"][0]["field"]) == ((422, "INVALID_INPUT"), "url"), url
    unknown = operator.write("/scrape/try", {"url": f"{shop.url}/p", "source_id": str(uuid7())})
    assert refused(unknown) == (404, "NOT_FOUND")
    assert refused(operator.get(f"{BASE}/scrape/try/{uuid7()}")) == (404, "NOT_FOUND")


def test_more_than_ten_addresses_of_a_domain_are_429(shop, operator):
    for number in range(10):
        assert operator.write("/scrape/try", {"url": f"{shop.url}/{number}"}).status_code == 202
    answer = operator.write("/scrape/try", {"url": f"{shop.url}/10"})
    assert refused(answer) == (429, "SCRAPE_RATE_LIMITED")
    assert 0 < int(answer.headers["Retry-After"]) <= 3600


def test_nothing_is_tried_without_a_contact(operator):
    answer = operator.write("/scrape/try", {"url": "https://shop.example/p"})
    assert refused(answer) == (409, "CONFIG")
    assert "HARVESTER_SCRAPE_CONTACT_URL" in answer.json()["detail"]
