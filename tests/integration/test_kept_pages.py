"""Pages are kept as long as they matter, and read again: reprocess, back-test, repair hints, trying an address."""

import os
import time
from dataclasses import replace

import pytest
from tests.support import catalog
from tests.support import scrape_world as world
from tests.support.feed_world import OLGA
from tests.support.scripted_shop import ScriptedShop, html, moved, product_page, status, text
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.kernel.errors import ConfigError, InvalidInput
from harvester.runs.models import RunPart
from harvester.scraping import capacity, fetching, kept_pages, page_review, single_fetches
from harvester.scraping.capacity import TryLater
from harvester.scraping.jobs import CLEAN_UP
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.models import FetchRequest, KeptPage, QuarantineEntry, ScrapeTarget


@pytest.fixture
def shop(database, settings):
    world.allow_scraping(settings)
    with ScriptedShop() as running:
        yield running
    fetching.close()


@pytest.fixture
def target(shop):
    return catalog.target(world.source(), f"{shop.url}/p")


def keep(of: ScrapeTarget, body: bytes, *, age: str = "0 hours", **values) -> KeptPage:
    stored = kept_pages.store_body(body)
    with catalog.connection.cursor() as cursor:
        kept_pages.keep(
            cursor, stored, url=of.url, status=200, content_type="text/html", since=0, source_id=of.source_id,
            target_id=of.pk,
        )  # fmt: skip
    catalog.fetch(
        f"UPDATE kept_pages SET fetched_at = fetched_at - interval '{age}', keep_until = keep_until - interval '{age}' "
        "WHERE hash = %s", stored.hash,
    )  # fmt: skip
    KeptPage.objects.filter(hash=stored.hash).update(**values)
    return KeptPage.objects.get(hash=stored.hash, target_id=of.pk)


def make_old(page: str) -> None:
    """The file was written two hours ago."""
    long_ago = time.time() - 7200
    os.utime(kept_pages._path(page), (long_ago, long_ago))


def clean_up() -> None:
    enqueue(CLEAN_UP)
    run_until_idle(queues=("maintenance",))


def is_there(page: KeptPage) -> tuple[bool, bool]:
    return KeptPage.objects.filter(pk=page.pk).exists(), kept_pages._path(page.hash).exists()


def test_a_page_is_stored_once_compressed_and_read_back(target):
    body = b"<html>" + b"hammer " * 10_000
    one, two = kept_pages.store_body(body), kept_pages.store_body(body)
    assert one == two
    assert (one.size, one.stored < 1_000) == (len(body), True)
    assert kept_pages.read_body(one.hash) == body
    assert kept_pages._path(one.hash).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [b"", b"nothing of zstd", None])
def test_a_damaged_file_is_not_read_and_goes(target, damage):
    stored = kept_pages.store_body(b"<html>hammer</html>")
    path = kept_pages._path(stored.hash)
    path.write_bytes(kept_pages.zstandard.compress(b"another page") if damage is None else damage)
    with pytest.raises(PageMissing, match="damaged"):
        kept_pages.read_body(stored.hash)
    assert not path.exists(), "so that the next page with this hash is written"


def test_a_file_that_claims_to_be_endless_is_not_read(target):
    stored = kept_pages.store_body(b"<html>hammer</html>")
    kept_pages._path(stored.hash).write_bytes(kept_pages.zstandard.compress(bytes(50_000_000)))
    with pytest.raises(PageMissing):
        kept_pages.read_body(stored.hash)


def test_the_clean_up_keeps_what_matters(target):
    other = catalog.target(target.source, f"{target.url}2")
    pages = {
        "expired": keep(target, b"1", age="60 hours"),
        "in quarantine": keep(target, b"2", age="60 days"),
        "behind a price": keep(target, b"3", age="10 days"),
        "not yet expired": keep(target, b"4", age="40 hours"),
        "the newest of its target": keep(target, b"5", age="1 hour"),
        "the newest of another": keep(other, b"6", age="60 days"),
    }
    QuarantineEntry.objects.create(
        source=target.source, target=target, run_no=1, part_id=target.pk, reason="NO_AGREEMENT", detail="", version="",
        adapter_id="structured", page=pages["in quarantine"].hash, observed_at=catalog.now(),
    )  # fmt: skip
    KeptPage.objects.filter(pk=pages["behind a price"].pk).update(
        importance=1, keep_until=catalog.now() + catalog.hours(24)
    )
    for page in pages.values():
        make_old(page.hash)
    clean_up()
    assert {name for name, page in pages.items() if is_there(page) != (True, True)} == {"expired"}
    assert is_there(pages["expired"]) == (False, False)


def test_a_file_that_another_row_needs_stays(target):
    other = catalog.target(target.source, f"{target.url}2")
    old = keep(target, b"same", age="60 hours")
    keep(target, b"newer")
    catalog.fetch("UPDATE kept_pages SET fetched_at = clock_timestamp() - interval '60 hours'")
    stored = kept_pages.store_body(b"same")
    with catalog.connection.cursor() as cursor:
        kept_pages.keep(
            cursor, stored, url="u", status=200, content_type="", since=0, source_id=other.source_id, target_id=other.pk
        )
    keep(target, b"newest")
    make_old(old.hash)
    clean_up()
    assert is_there(old) == (False, True)
    assert kept_pages.read_body(old.hash) == b"same"


def test_files_without_a_row_go_once_nobody_can_be_writing_them(target):
    young, old = kept_pages.store_body(b"young"), kept_pages.store_body(b"old")
    make_old(old.hash)
    clean_up()
    assert kept_pages._path(young.hash).exists()
    assert not kept_pages._path(old.hash).exists()
    make_old(young.hash)
    kept_pages.store_body(b"young")
    clean_up()
    assert kept_pages._path(young.hash).exists(), "it was written again just now"


def test_above_the_limit_the_oldest_unimportant_pages_go_first(target, settings):
    bodies = [os.urandom(30_000) for _ in range(5)]
    pages = [keep(target, body, age=f"{40 - number} hours") for number, body in enumerate(bodies)]
    KeptPage.objects.filter(pk=pages[0].pk).update(importance=1)
    world.allow_scraping(settings, keep_pages_gb=0.0001)
    clean_up()
    left = [is_there(page)[0] for page in pages]
    assert left == [True, False, False, True, True], "the first has a price behind it, the last is the newest"


def test_a_target_that_is_deleted_takes_its_pages_along(target):
    page = keep(target, b"1")
    target.delete()
    make_old(page.hash)
    clean_up()
    assert is_there(page) == (False, False)


def test_what_was_read_is_noted_with_the_page_and_a_written_price_keeps_it_longer(shop, target):
    shop.replies["/p"] = html(product_page())
    world.work(world.begin(target.source, [target]))
    page = KeptPage.objects.get()
    assert (page.outcome, page.found["price"], page.version, page.importance) == ("OFFER", "19.99 USD", "1.1.0", 1)
    assert (page.keep_until - page.fetched_at).days == 14


# -- read again -------------------------------------------------------------------------------------------------------


def test_how_a_page_ended_is_noted_even_if_no_batch_counts_it(shop, target):
    shop.replies["/p"] = html(product_page().replace("19.99", "18.99", 1))
    world.work(world.begin(target.source, [target]))
    [(outcome,)] = rows("SELECT outcome FROM kept_pages")
    assert outcome == RunPart.objects.get().outcome == "NO_AGREEMENT"


def test_a_kept_page_is_processed_again_without_a_request(shop, target):
    shop.replies["/p"] = html(product_page())
    first = world.part_of(world.work(world.begin(target.source, [target])))
    shop.log.clear()
    again = world.part_of(world.work(page_review.reprocess(OLGA, target.pk)))
    assert (again.page, again.observed_at, again.found) == (first.page, first.observed_at, first.found)
    assert shop.asked() == []
    assert len(rows("SELECT FROM prices")) == 1, "no second price"


def test_an_older_page_than_the_newest_observation_is_superseded(shop, target):
    shop.replies["/p"] = html(product_page())
    world.work(world.begin(target.source, [target]))
    old = KeptPage.objects.get()
    shop.replies["/p"] = html(product_page(price="20.99"))
    world.work(world.begin(target.source, [target]))
    KeptPage.objects.exclude(pk=old.pk).delete()
    again = world.part_of(world.work(page_review.reprocess(OLGA, target.pk)))
    assert again.outcome == "SUPERSEDED"


def test_without_a_kept_page_nothing_is_processed(target):
    with pytest.raises(PageMissing, match="Read it from the shop again"):
        page_review.reprocess(OLGA, target.pk)


def redesigned(price: str = "19.99", title: str = "Hammer", sku: str = "H-1") -> str:
    """The same shop with a price that no markup confirms."""
    return (
        f'<html><head><title>{title}</title></head><body><main><h2 class="name">{title}</h2>'
        f'<div class="buy"><span class="cost">${price}</span><em class="code">{sku}</em></div>'
        f'<p class="stock">In stock</p><form><button>Add to cart</button></form>'
        f"<p>{title} is made of steel for many years of work.</p></main></body></html>"
    )


def drifted(shop) -> list[ScrapeTarget]:
    """Five products that were read once, and whose pages were redesigned since."""
    of = world.source({"default_currency": "USD"})
    targets = [catalog.target(of, f"{shop.url}/{number}") for number in range(5)]
    for number, _ in enumerate(targets):
        shop.replies[f"/{number}"] = html(product_page(f"Tool {number}", f"{number + 3}.49", sku=f"T-{number}"))
    world.work(world.begin(of, targets))
    assert KeptPage.objects.filter(outcome="OFFER").count() == 5
    for number, _ in enumerate(targets):
        shop.replies[f"/{number}"] = html(redesigned(f"{number + 3}.49", f"Tool {number}", f"T-{number}"))
    world.work(world.begin(of, targets))
    return targets


def test_a_back_test_compares_with_what_was_read_then(shop):
    source = drifted(shop)[0].source
    report = page_review.backtest(source)
    assert (report.pages, report.same, report.changed, report.lost, report.gained) == (10, 10, 0, 0, 0)
    changed = page_review.backtest(source, {"places": {"title": ["p.sku::text"]}})
    assert (changed.changed, changed.fields) == (5, {"title": 5})
    assert changed.version.endswith("+0")
    [first, *_] = [change for change in changed.changes if change.kind == "changed"]
    then, now = first.fields["title"]
    assert then.startswith("Tool")
    assert now.startswith("SKU: T-")
    broken = page_review.backtest(source, {"places": {"price": ["h1.title::text"]}})
    assert (broken.lost, broken.changed) == (5, 0)
    assert broken.as_json()["changes"][0]["url"].startswith(shop.url)


def test_hints_find_the_known_values_on_the_new_pages(shop):
    source = drifted(shop)[0].source
    found = {hint.field: hint for hint in reversed(page_review.hints(source))}
    assert {name: hint.place for name, hint in found.items()} == {
        "price": "span.cost::text", "title": "h2.name::text", "sku": "em.code::text"
    }  # fmt: skip
    assert {(hint.found, hint.pages) for hint in found.values()} == {(5, 5)}
    assert found["price"].override == {"places": {"price": ["span.cost::text"]}}
    places = {"places": {name: [hint.place] for name, hint in found.items()} | {"availability": ["p.stock::text"]}}
    report = page_review.backtest(source, places)
    assert report.gained == 5, "with the hints as an override the new pages are read"


# -- single fetches ---------------------------------------------------------------------------------------------------


def done(request: FetchRequest) -> FetchRequest:
    for _ in range(30):
        run_until_idle(queues=("pages",))
        request = single_fetches.request_named(request.pk)
        if request.outcome:
            return request
        world.hurry()
    raise AssertionError("the fetch did not end")


def test_an_address_is_tried_before_its_source_is_switched_on(shop):
    shop.replies |= {"/p": moved(301, "/q"), "/q": html(product_page())}
    of = world.source(scrape_enabled=False, tos_reviewed_at=None, tos_approved_by=None)
    request = done(single_fetches.try_url(OLGA, f"{shop.url}/p", of))
    result = request.result
    assert (request.outcome, result["offer"]["price"], result["adapter_id"]) == ("OFFER", "19.99 USD", "structured")
    assert (result["url"], result["moved_to"], result["is_cached"]) == (f"{shop.url}/q", f"{shop.url}/q", False)
    assert {"price", "availability", "title"} <= {each["field"] for each in result["evidence"]}
    assert "Hammer" in result["text"]
    assert result["robots"].endswith("does not exist, so everything is allowed.")
    assert shop.asked() == ["/robots.txt", "/p", "/q"]
    for table in ("source_products", "prices", "offers", "runs", "scrape_targets", "quarantine"):
        assert rows(f"SELECT FROM {table}") == [], table
    assert len(rows("SELECT FROM kept_pages WHERE target_id IS NULL")) == 1
    assert len(rows("SELECT FROM audit_events WHERE verb = 'SCRAPE_URL_TRIED'")) == 1


def test_an_address_that_was_tried_is_not_requested_twice_within_the_hour(shop):
    shop.replies["/p"] = html(product_page())
    first = done(single_fetches.try_url(OLGA, f"{shop.url}/p"))
    again = done(single_fetches.try_url(OLGA, f"{shop.url}/p"))
    assert (again.outcome, again.observed_at, again.result["is_cached"]) == ("OFFER", first.observed_at, True)
    assert len(shop.asked("/p")) == 1


@pytest.mark.parametrize(
    ("reply", "robots", "outcome"),
    [
        (status(404), status(404), "GONE"),
        (status(503), status(404), "NETWORK"),
        (status(429), status(404), "RATE_LIMITED"),
        (html("x"), text("User-agent: *\nDisallow: /"), "BLOCKED_BY_ROBOTS_TXT"),
        (html("x"), status(500), "ROBOTS_UNAVAILABLE"),
        (html("<html></html>"), status(404), "EMPTY_PAGE"),
    ],
)
def test_a_try_says_why_there_is_nothing(shop, reply, robots, outcome):
    shop.replies |= {"/p": reply, "/robots.txt": robots}
    request = done(single_fetches.try_url(OLGA, f"{shop.url}/p"))
    assert (request.outcome, request.result["outcome"]) == (outcome, outcome)
    assert request.result["error"]
    assert len(shop.asked("/p")) <= 1, "a person may try again"


def test_nobody_waits_for_a_shop_that_asked_for_a_long_pause(shop):
    shop.replies["/robots.txt"] = status(429, Retry_After="2592000")
    of = world.source(url=shop.url)
    request = done(single_fetches.try_url(OLGA, f"{shop.url}/p", of))
    assert request.outcome == "ROBOTS_UNAVAILABLE"
    assert "The shop asked for a pause of 24 hours" in request.result["error"]
    with pytest.raises(TryLater, match=r"asked for a pause of 24 hours\. Nothing was requested") as refused:
        single_fetches.try_url(OLGA, f"{shop.url}/p", of)
    assert 86_000 < refused.value.retry_after <= 86_400
    assert shop.asked() == ["/robots.txt"]
    assert 86_000 < capacity.shop_pause(of) <= 86_400, "the page of the shop says so"


def test_ten_addresses_of_a_domain_an_hour(shop):
    for number in range(10):
        single_fetches.try_url(OLGA, f"{shop.url}/{number}")
    with pytest.raises(TryLater, match="Ten addresses") as refused:
        single_fetches.try_url(OLGA, f"{shop.url}/11")
    assert 0 < refused.value.retry_after <= 3600
    assert FetchRequest.objects.count() == 10


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://10.0.0.1/", "http://olga:x@shop.example/", "shop", ""])
def test_only_public_web_addresses_are_tried(shop, url):
    with pytest.raises(InvalidInput):
        single_fetches.try_url(OLGA, url)
    assert not FetchRequest.objects.exists()


def test_nothing_is_tried_without_a_contact(shop, settings):

    settings.CONFIG = replace(settings.CONFIG, scrape_contact_url="")
    with pytest.raises(ConfigError, match="HARVESTER_SCRAPE_CONTACT_URL"):
        single_fetches.try_url(OLGA, f"{shop.url}/p")


def test_the_page_of_a_new_site_is_kept(shop):
    shop.replies["/p"] = html(product_page())
    request = done(single_fetches.new_site(OLGA, f"{shop.url}/p"))
    assert kept_pages.read_body(request.page).decode() == product_page()


def test_old_requests_go(shop):
    shop.replies["/p"] = html(product_page())
    done(single_fetches.try_url(OLGA, f"{shop.url}/p"))
    FetchRequest.objects.update(created_at=catalog.now() - catalog.hours(24 * 8))
    clean_up()
    assert not FetchRequest.objects.exists()
    assert RunPart.objects.count() == 0
