"""Pages become offers: the thin path of scraping, and pages next to a feed on one source."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support import catalog, scrape_world
from tests.support.feed_world import OLGA, World
from tests.support.jobs import change
from tests.support.sftp_server import SftpServer
from tests.support.shop_server import ShopServer, page
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.models import Source
from harvester.catalog.offers import differences
from harvester.engine.enqueue import enqueue
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run, RunPart
from harvester.scraping import verbs
from harvester.scraping.models import ScrapeRun, ScrapeTarget
from harvester.scraping.runs import SCRAPE_RUNS


@pytest.fixture
def shop(database, settings):
    scrape_world.allow_scraping(settings)
    with ShopServer() as running:
        yield running


@pytest.fixture
def source(shop):
    values = {"is_display_primary": True, "last_promoted_at": None, "visibility": "ELIGIBLE"}
    return scrape_world.source(url=shop.url, **values)


@pytest.fixture
def feed(shop, tmp_path):
    """A feed of forty products, S-100 to S-139, that was promoted once; its source takes pages too."""
    with SftpServer(tmp_path) as server:
        world = World(server)
        may_be_read = {
            "adapter_id": "structured", "scrape_enabled": True, "tos_reviewed_at": catalog.now(),
            "tos_approved_by": "Olga", "url": shop.url, "scrape_config": scrape_world.FAST,
        }  # fmt: skip
        Source.objects.filter(pk=world.source.pk).update(visibility="ELIGIBLE", **may_be_read)
        world.put(*range(100, 140))
        assert world.run().outcome == "PROMOTED"
        yield world


def target(shop, source, path, text, *, product_id=None) -> ScrapeTarget:
    shop.pages[path] = text
    return verbs.add_target(OLGA, source.pk, shop.url + path, product_id=product_id)


def run(source) -> Run:
    started = verbs.run_now(OLGA, source.pk)
    finish(started)
    return Run.objects.get(pk=started.pk)


def finish(started) -> None:
    """All attempts of all parts, and what follows them."""
    scrape_world.work(started)
    run_until_idle()


def outcomes(of) -> dict[str, str]:
    urls = dict(ScrapeTarget.objects.values_list("pk", "url"))
    return {urls[part.target_id].rsplit("/", 1)[-1]: part.outcome for part in RunPart.objects.filter(run=of)}


def product_of(sku: str) -> int:
    [(number,)] = rows("SELECT id FROM source_products WHERE identity_value = %s", sku)
    return number


def offer(number: int) -> tuple:
    [found] = rows("SELECT amount::float, in_stock, seen_until FROM offers WHERE product_id = %s", number)
    return found


def shown() -> dict[str, float]:
    found = rows(
        "SELECT p.title, v.amount::float FROM visible_offers v "
        "JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id"
    )
    return dict(found)


def test_a_page_becomes_an_offer_and_another_waits_in_quarantine(shop, source):
    target(shop, source, "/hammer", page("Hammer", "19.99", sku="H-1", brand={"@type": "Brand", "name": "Acme"}))
    two = [{"price": price, "priceCurrency": "USD", "availability": "InStock"} for price in ("5.00", "7.00")]
    target(shop, source, "/saw", page("Saw", offers=two))
    done = run(source)
    assert (done.outcome, outcomes(done)) == ("PROMOTED", {"hammer": "OFFER", "saw": "NO_AGREEMENT"})
    assert shown() == {"Hammer": 19.99}
    figures = ScrapeRun.objects.get(pk=done.pk)
    assert (figures.pages, figures.offers, figures.quarantined) == (2, 1, 1)
    assert (figures.prices_written, figures.products_new) == (1, 1)
    [refused] = RunPart.objects.filter(run=done, outcome="NO_AGREEMENT")
    assert "5.00 USD, 7.00 USD" in refused.detail["error"], "a person sees what was found"
    [(title, brand, sku)] = rows("SELECT title, brand, sku FROM source_products")
    assert (title, brand, sku) == ("Hammer", "Acme", "H-1")
    assert differences() == []


@pytest.mark.parametrize(
    ("text", "outcome", "words"),
    [
        ("<html>" + "no data " * 20 + "</html>", "TITLE_NOT_FOUND", "No heading"),
        ((page() + page("Other", sku="H-2")).replace("<title>", "<i>"), "TITLE_NOT_FOUND", "No heading"),
        (page(price="ask"), "PRICE_NOT_FOUND", "no price"),
        (page(price="0.00"), "ZERO_PRICE_EXTRACTED", "zero"),
        (page(price="1,234", currency="EUR"), "NO_AGREEMENT", "cannot be read"),
        (page(currency=""), "NO_AGREEMENT", "cannot be read"),
        (page(stock="Perhaps"), "NO_AGREEMENT", "Stock"),
        (page(title=" "), "TITLE_NOT_FOUND", "No heading"),
        ('<script type="application/ld+json">{"@type": "Product", </script>', "EMPTY_PAGE", "no text"),
        ('<script type="application/ld+json">' + "[" * 100_000 + "</script>", "EMPTY_PAGE", "no text"),
    ],
    ids=["nothing", "two products", "words", "zero", "ambiguous", "no currency", "stock", "no name", "cut", "nested"],
)
def test_what_is_not_certain_has_an_outcome_of_its_own_and_shows_nothing(shop, source, text, outcome, words):
    target(shop, source, "/p", text)
    done = run(source)
    assert outcomes(done) == {"p": outcome}
    assert words in RunPart.objects.get(run=done).detail["error"]
    assert (shown(), rows("SELECT FROM prices")) == ({}, [])


def test_a_page_that_is_gone_is_no_offer_and_a_busy_server_is_asked_again(shop, source):
    target(shop, source, "/gone", 404)
    target(shop, source, "/busy", 503)
    done = run(source)
    assert (done.status, done.outcome) == ("SUCCEEDED", "EMPTY")
    assert outcomes(done) == {"gone": "GONE", "busy": "NETWORK"}
    assert shop.asked.count("/busy") == 3
    assert "503" in RunPart.objects.get(run=done, outcome="NETWORK").detail["error"]


def test_a_lost_page_does_not_keep_its_run_open(shop, source):
    target(shop, source, "/hammer", page("Hammer"))
    target(shop, source, "/saw", page("Saw", sku="S-1"))
    started = verbs.run_now(OLGA, source.pk)
    lost = RunPart.objects.filter(run=started).order_by("id").first()
    change(lost.job_id, "state = 'failed', finished_at = now(), error_type = 'WORKER_LOST', error = 'gone'")
    run_until_idle()
    started.refresh_from_db()
    assert started.status == "RUNNING"
    enqueue(CLOSE_ORPHANS)
    run_until_idle()
    started.refresh_from_db()
    assert (started.status, started.outcome) == ("SUCCEEDED", "PROMOTED")
    assert sorted(outcomes(started).values()) == ["FAILED", "OFFER"]
    assert len(shown()) == 1


def test_an_unchanged_page_confirms_the_offer_and_writes_no_price(shop, source):
    target(shop, source, "/hammer", page())
    run(source)
    [(before,)] = rows("SELECT seen_until FROM offers")
    second = run(source)
    assert ScrapeRun.objects.get(pk=second.pk).prices_written == 0
    [(after,)] = rows("SELECT seen_until FROM offers")
    assert after > before
    shop.pages["/hammer"] = page("Better hammer", "18.99", stock="OutOfStock")
    run(source)
    assert rows("SELECT amount::float, in_stock FROM prices ORDER BY observed_at") == [(19.99, True), (18.99, False)]
    assert [title for (title,) in rows("SELECT title FROM source_products")] == ["Better hammer"]
    assert rows("SELECT FROM offer_words WHERE words @@ to_tsquery('simple', 'better')"), "it is found by its new title"
    assert differences() == []


def test_backorder_is_another_price_than_out_of_stock(shop, source):
    target(shop, source, "/hammer", page(stock="OutOfStock"))
    run(source)
    shop.pages["/hammer"] = page(stock="PreOrder")
    assert ScrapeRun.objects.get(pk=run(source).pk).prices_written == 1


def test_prices_of_an_ineligible_source_are_kept_and_not_shown(shop, source):
    Source.objects.filter(pk=source.pk).update(visibility="INELIGIBLE")
    target(shop, source, "/hammer", page())
    assert run(source).outcome == "PROMOTED"
    assert (len(rows("SELECT FROM prices")), rows("SELECT FROM offers"), shown()) == (1, [], {})
    assert differences() == []


def test_a_target_is_added_once_and_only_if_it_is_a_web_address(shop, source):
    target(shop, source, "/hammer", page())
    with pytest.raises(Conflict, match="has this page already"):
        verbs.add_target(OLGA, source.pk, f"{shop.url}/hammer")
    with pytest.raises(InvalidInput, match=r"url: .* it must look like"):
        verbs.add_target(OLGA, source.pk, "file:///etc/passwd")
    other = catalog.source(kind="DIRECT")
    with pytest.raises(Conflict, match="nothing to read"):
        verbs.run_now(OLGA, other.pk)
    assert not Run.objects.filter(subject_id=other.pk).exists()


def test_a_page_next_to_a_feed_changes_price_and_stock_and_nothing_else(shop, feed):
    number = product_of("S-100")
    before, others = feed.look(), {name: seen for name, seen in feed.shown().items() if name != "S-100"}
    title = feed.shown()["S-100"][0]
    target(shop, feed.source, "/p", page("Another title", "1.33", sku="X-9", stock="OutOfStock"), product_id=number)
    assert run(feed.source).outcome == "PROMOTED"
    assert feed.shown()["S-100"] == (title, 1.33, False)
    assert {name: seen for name, seen in feed.shown().items() if name != "S-100"} == others
    assert offer(number) == (1.33, False, None), "the feed alone says whether it is missing"
    after = feed.look()
    for name in ("last_promoted_run_no", "last_promoted_at", "last_promoted_count", "last_observed_at", "frozen"):
        assert getattr(after, name) == getattr(before, name), name
    assert [product for (product,) in rows("SELECT identity_value FROM source_products")].count("X-9") == 0
    feed.check()


def test_a_feed_that_goes_on_next_to_pages_compares_with_its_own_prices(shop, feed):
    number = product_of("S-100")
    page_price = "1.33"
    target(shop, feed.source, "/p", page(price=page_price), product_id=number)
    run(feed.source)
    # The same file but for one product: the feed has recorded its price of S-100 before, and does not again.
    feed.put(*range(100, 139))
    assert feed.run().outcome == "PROMOTED"
    assert feed.figures(Run.objects.latest("no")).prices_written == 0
    assert offer(number)[0] == 1.33, "the newest observation is shown"
    # The feed now says what the page said: to the feed that is a change.
    feed.put(*range(100, 139), Price=page_price)
    assert feed.run().outcome == "PROMOTED"
    assert [float(amount) for (amount,) in rows(
        "SELECT amount FROM prices WHERE source_product_id = %s AND run_type = 'AFFILIATE_FEED' ORDER BY observed_at",
        number,
    )][-1] == 1.33  # fmt: skip
    feed.check()


def test_an_approval_does_not_beat_a_page_that_was_read_while_the_run_was_held(shop, feed):
    number = product_of("S-100")
    feed.put(100, 101, 102, Price="77.00")
    held = feed.run()
    assert held.outcome == "HELD"
    target(shop, feed.source, "/p", page(price="1.33"), product_id=number)
    run(feed.source)
    assert feed.approve(held).state == "succeeded"
    held.refresh_from_db()
    assert held.observed_at == feed.figures(held).fetched_at, "its prices are as old as its file"
    assert held.observed_at < held.decided_at
    assert offer(number)[0] == 1.33
    assert offer(product_of("S-101"))[0] == 77.0
    feed.check()


def test_an_older_observation_than_the_one_shown_changes_nothing(shop, source):
    target(shop, source, "/hammer", page())
    first = run(source)
    RunPart.objects.filter(run=first).update(observed_at=catalog.now())
    shop.pages["/hammer"] = page(price="15.00")
    started = verbs.run_now(OLGA, source.pk)
    # As if the page had been read an hour before the first one was.
    rows_before = rows("SELECT count(*) FROM prices")
    part = RunPart.objects.get(run=started)
    real = type(SCRAPE_RUNS).do_part

    def early(self, *given):
        found = real(self, *given)
        return replace(found, observed_at=found.observed_at - timedelta(hours=1))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(SCRAPE_RUNS), "do_part", early)
        run_until_idle()
    part.refresh_from_db()
    assert part.outcome == "SUPERSEDED"
    assert rows("SELECT count(*) FROM prices") == rows_before
    assert shown() == {"Hammer": 19.99}


def test_a_page_next_to_a_feed_that_is_not_eligible_leaves_the_offer_as_it_is(shop, feed):
    Source.objects.filter(pk=feed.source.pk).update(visibility="INELIGIBLE")
    number = product_of("S-100")
    # As after a run was ignored: the next run of the feed records a price whatever it sees.
    catalog.fetch("UPDATE offers SET last_signature = NULL WHERE product_id = %s", number)
    before = rows("SELECT * FROM offers ORDER BY product_id")
    target(shop, feed.source, "/p", page(price="1.33"), product_id=number)
    run(feed.source)
    assert rows("SELECT amount::float FROM prices WHERE run_type = 'SCRAPE'") == [(1.33,)]
    assert rows("SELECT * FROM offers ORDER BY product_id") == before, "to the last column"
    feed.check()
