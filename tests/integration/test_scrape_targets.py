"""Pages to be read: what may be added, what a change of address means, bulk edits, moved pages."""

from datetime import timedelta

import pytest
from tests.support import catalog, page_runs, scraping
from tests.support.feed_world import LOOPBACK, OLGA, allow_loopback
from tests.support.tables import rows
from tests.support.together import together

from harvester.catalog.models import Retailer, Source
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import AuditEvent
from harvester.runs.models import Run
from harvester.scraping import kept_pages, verbs
from harvester.scraping.models import KeptPage, ScrapeTarget
from harvester.scraping.settings import InvalidSettings
from harvester.scraping.target_filters import TargetFilter, Trouble, diagnose
from harvester.scraping.verbs.targets import NotLinked, TooMany

pytestmark = pytest.mark.usefixtures("database")
NOBODY = "0190c0a0-0000-7000-8000-000000000000"


@pytest.fixture
def source():
    return scraping.shop("bigshop.com")


def add(source, path="/p", **more) -> ScrapeTarget:
    return verbs.add_target(OLGA, source.pk, f"https://bigshop.com{path}", **more)


def audited(verb) -> list:
    return list(AuditEvent.objects.filter(verb=verb).order_by("id"))


def test_a_page_is_added_with_its_settings_and_audited(source):
    made = add(source, schedule=" 0  */4 * * * ", priority=5, notes="a\nb", enabled=True)
    assert (made.adapter_id, made.status, made.created_by) == ("structured", "ACTIVE", "Olga")
    assert (made.schedule, made.priority, made.notes) == ("0 */4 * * *", 5, "a\nb")
    assert timedelta(0) < made.due_at - catalog.now() <= timedelta(hours=4)
    [event] = audited("SCRAPE_TARGET_ADDED")
    assert event.detail["url"] == "https://bigshop.com/p"
    assert add(source, "/q").due_at is None, "without a schedule it is read on request only"


@pytest.mark.parametrize(
    "url",
    [
        "https://bigshop.com/p?utm_source=mail#top",
        "http://www.bigshop.com/p/",
        "HTTPS://BigShop.com/p?ref=x&empty=",
    ],
)
def test_two_spellings_of_a_page_are_one_target(source, url):
    add(source)
    with pytest.raises(Conflict, match=r"url: bigshop\.com has this page already"):
        verbs.add_target(OLGA, source.pk, url)
    assert ScrapeTarget.objects.get().url == "https://bigshop.com/p", "it is fetched as it was given first"


def test_variants_of_a_product_are_pages_of_their_own(source):
    for query in ("?sku=1", "?sku=2", "?pid=7", "?variant=9"):
        add(source, f"/p{query}")
    assert ScrapeTarget.objects.count() == 4


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://10.0.0.7/p", "not on the public internet"),
        ("http://localhost:9200/", "not on the public internet"),
        ("http://169.254.169.254/latest/", "not on the public internet"),
        ("https://0x7f.1/p", "it must look like"),
        ("https://[::1]/p", "not on the public internet"),
        ("https://olga:secret@bigshop.com/p", "it must look like"),
        ("ftp://bigshop.com/p", "it must look like"),
        ("file:///etc/passwd", "it must look like"),
        ("javascript:alert(1)", "it must look like"),
        ("https://othershop.com/p", "pages of bigshop.com are on bigshop.com"),
        ("https://bigshop.com.evil.org/p", "its domain is evil.org"),
        ("https://evil.org/bigshop.com", "its domain is evil.org"),
        ("", "it must look like"),
        (None, "it must look like"),
        ("https://bigshop.com/\x00", "it must look like"),
        ("https://bigshop.com/" + "a" * 5000, "it must look like"),
    ],
)
def test_addresses_that_may_not_be_fetched_are_refused(source, url, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        verbs.add_target(OLGA, source.pk, url)
    assert caught.value.field == "url"
    assert "secret" not in str(caught.value)
    assert not ScrapeTarget.objects.exists()


def test_a_private_host_that_egress_allows_is_a_shop_like_any_other(settings):
    owner = catalog.retailer(domain="127.0.0.1")
    source = catalog.source(owner, "DIRECT", url="http://127.0.0.1:8765/")
    with pytest.raises(InvalidInput, match="not on the public internet"):
        verbs.add_target(OLGA, source.pk, "http://127.0.0.1:8765/p")
    allow_loopback(settings)
    assert verbs.add_target(OLGA, source.pk, "http://127.0.0.1:8765/p").url == "http://127.0.0.1:8765/p"
    assert LOOPBACK == ("127.0.0.0/8",)


def test_subdomains_belong_to_the_shop_and_a_source_may_have_a_domain_of_its_own(source):
    add(source)
    verbs.add_target(OLGA, source.pk, "https://outlet.bigshop.com/p")
    Source.objects.filter(pk=source.pk).update(url="https://bigshop.co.uk/")
    verbs.add_target(OLGA, source.pk, "https://www.bigshop.co.uk/p")
    with pytest.raises(InvalidInput, match=r"are on bigshop\.co\.uk, bigshop\.com"):
        verbs.add_target(OLGA, source.pk, "https://othershop.co.uk/p")


def test_a_source_without_a_website_gets_no_pages():
    source = catalog.source(kind="DIRECT")
    with pytest.raises(InvalidInput, match="have no website"):
        verbs.add_target(OLGA, source.pk, "https://bigshop.com/p")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schedule", "every day"), ("schedule", "* * * *"), ("schedule", "* * * * * *"), ("schedule", "61 * * * *"),
        ("schedule", "0 0 31 2 *"), ("schedule", 4), ("priority", 101), ("priority", True), ("priority", "1"),
        ("enabled", "yes"), ("status", "BROKEN"), ("status", None), ("notes", "x" * 2001), ("notes", "a\x00b"),
        ("notes", 7), ("nonsense", 1), ("robots_path_blocked", 1),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_with_their_names(source, name, value):
    page = add(source, schedule="0 * * * *")
    with pytest.raises(InvalidSettings) as caught:
        verbs.update_target(OLGA, page.pk, **{name: value, "priority" if name != "priority" else "notes": []})
    assert name in caught.value.problems
    assert len(caught.value.problems) == 2, "all problems at once"
    assert not audited("SCRAPE_TARGET_UPDATED")


def test_only_what_differs_is_changed_and_audited(source):
    page = add(source, schedule="0 * * * *")
    due = page.due_at
    assert verbs.update_target(OLGA, page.pk, schedule="0 * * * *", priority=0).due_at == due
    assert not audited("SCRAPE_TARGET_UPDATED")
    changed = verbs.update_target(OLGA, page.pk, schedule=None, robots_path_blocked=True)
    assert (changed.due_at, changed.robots_path_blocked) == (None, True)
    [event] = audited("SCRAPE_TARGET_UPDATED")
    assert event.changed == ["robots_path_blocked", "schedule"]
    assert event.detail["from"] == {"schedule": "0 * * * *", "robots_path_blocked": False}


def test_pausing_and_resuming(source):
    page = add(source)
    assert verbs.pause_target(OLGA, page.pk).status == "PAUSED"
    past = catalog.now()
    ScrapeTarget.objects.filter(pk=page.pk).update(
        status="BROKEN", consecutive_failures=5, recheck_at=past, recheck_reason="BROKEN"
    )
    resumed = verbs.resume_target(OLGA, page.pk)
    assert (resumed.status, resumed.consecutive_failures, resumed.recheck_at) == ("ACTIVE", 0, None)


def read_once(page) -> None:
    ScrapeTarget.objects.filter(pk=page.pk).update(
        etag="x", pinned={"sku": "A"}, pinned_product_id=7, last_status="OFFER", last_seen={"price": "1.00 USD"},
        consecutive_failures=3, moved_to="https://bigshop.com/new", status="BROKEN",
    )  # fmt: skip


def test_another_address_is_another_page(source):
    page = add(source)
    read_once(page)
    changed = verbs.update_target(OLGA, page.pk, url="https://bigshop.com/other")
    assert (changed.url, changed.canonical_url) == ("https://bigshop.com/other",) * 2
    for name in ("etag", "pinned", "pinned_product_id", "last_status", "last_seen", "moved_to"):
        assert getattr(changed, name) is None, name
    assert (changed.consecutive_failures, changed.status) == (0, "ACTIVE")
    with pytest.raises(InvalidInput, match=r"evil\.org"):
        verbs.update_target(OLGA, page.pk, url="https://evil.org/p")


def test_nothing_of_the_old_address_is_written_for_the_new_one(source):
    Source.objects.filter(pk=source.pk).update(visibility="ELIGIBLE")
    moved, other, third = add(source), add(source, "/other"), add(source, "/third")
    page_runs.end(page_runs.begin(source, [moved])[0], "ZERO_PRICE_EXTRACTED")
    [read, begun, last] = page_runs.begin(source, [moved, third, other])
    assert page_runs.end(read, "OFFER", page_runs.offer("19.99", sku="A")) == "OFFER"
    KeptPage.objects.create(
        hash="x", source=source, target=moved, url=moved.url, status=200, content_type="text/html", bytes=1,
        stored_bytes=1, fetched_at=catalog.now(), keep_until=catalog.now(),
    )  # fmt: skip
    assert page_runs.waiting_entries(source) == ["ZERO_PRICE_EXTRACTED"]
    verbs.update_target(OLGA, moved.pk, url="https://bigshop.com/new")
    verbs.update_target(OLGA, third.pk, url="https://bigshop.com/fourth")
    assert (page_runs.waiting_entries(source), page_runs.open_alerts()) == ([], [])
    assert kept_pages.newest(moved.pk) is None, "nothing is left that could be read again"
    assert page_runs.end(begun, "OFFER", page_runs.offer("29.99", sku="B")) == "CANCELLED"
    page_runs.end(last, "OFFER", page_runs.offer("39.99", sku="C"))
    assert sorted(page_runs.outcomes(Run.objects.latest("no"))) == ["CANCELLED", "CANCELLED", "OFFER"]
    assert page_runs.prices(source) == [39.99]


def test_another_product_is_read_in_full_and_the_first_one_shows_its_feed_again(fed):
    Retailer.objects.filter(pk=fed.source.retailer_id).update(domain="bigshop.com")
    Source.objects.filter(pk=fed.source.pk).update(visibility="ELIGIBLE", adapter_id="structured")
    wrong, right = number_of("S-100"), number_of("S-101")
    page = verbs.add_target(OLGA, fed.source.pk, "https://bigshop.com/p", product_id=wrong)
    before = rows("SELECT amount, currency FROM offers WHERE product_id = %s", wrong)
    [(amount, currency)] = before
    page_runs.read(fed.source, found=page_runs.offer(f"{amount * 11 / 10:.2f}", currency=currency, sku="S-101"))
    assert rows("SELECT amount, currency FROM offers WHERE product_id = %s", wrong) != before
    ScrapeTarget.objects.filter(pk=page.pk).update(etag="x", last_modified="y")
    changed = verbs.update_target(OLGA, page.pk, product_id=right)
    assert (changed.etag, changed.last_modified, changed.last_seen, changed.pinned) == (None,) * 4
    assert rows("SELECT amount, currency FROM offers WHERE product_id = %s", wrong) == before


def test_another_spelling_is_the_same_page(source):
    page = add(source)
    read_once(page)
    changed = verbs.update_target(OLGA, page.pk, url="https://www.bigshop.com/p?utm_source=x")
    assert (changed.url, changed.pinned_product_id) == ("https://www.bigshop.com/p?utm_source=x", 7)


def test_a_moved_page_is_replaced_and_stays_the_same_product(source):
    page = add(source)
    with pytest.raises(Conflict, match="has not moved"):
        verbs.replace_moved(OLGA, page.pk)
    read_once(page)
    changed = verbs.replace_moved(OLGA, page.pk)
    assert (changed.url, changed.canonical_url) == ("https://bigshop.com/new",) * 2
    assert (changed.pinned_product_id, changed.pinned, changed.moved_to, changed.etag) == (7, {"sku": "A"}, None, None)
    assert changed.status == "ACTIVE"


def test_a_page_does_not_move_to_another_shop_or_onto_another_page(source):
    page, other = add(source), add(source, "/other")
    ScrapeTarget.objects.filter(pk=page.pk).update(moved_to="https://evil.org/p")
    with pytest.raises(InvalidInput, match=r"its domain is evil\.org"):
        verbs.replace_moved(OLGA, page.pk)
    ScrapeTarget.objects.filter(pk=page.pk).update(moved_to=other.url + "?utm_source=x")
    with pytest.raises(Conflict, match=r"reads https://bigshop\.com/other already"):
        verbs.replace_moved(OLGA, page.pk)
    with pytest.raises(Conflict, match="has this page already"):
        verbs.update_target(OLGA, page.pk, url=other.url)


def test_two_people_add_a_page_once(source):
    calls = [lambda: add(source)] * 4
    results = together(*calls)
    assert sum(isinstance(result, ScrapeTarget) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 3


@pytest.fixture
def fed(world):
    """A source with a feed of forty products."""
    world.put(*range(100, 140))
    assert world.run().outcome == "PROMOTED"
    return world


def number_of(sku: str) -> int:
    [(number,)] = rows("SELECT id FROM source_products WHERE sku = %s", sku)
    return number


def address_of(sku: str) -> str:
    [(url,)] = rows("SELECT url FROM source_products WHERE sku = %s", sku)
    return url


def test_a_page_next_to_a_feed_is_linked_by_sku_gtin_address_or_product(fed):
    url = address_of("S-100")
    domain = url.split("/")[2]
    Retailer.objects.filter(pk=fed.source.retailer_id).update(domain=domain.removeprefix("www."))
    catalog.fetch("UPDATE source_products SET gtin = '036000291452' WHERE sku = 'S-103'")
    base = f"https://{domain}/extra"
    assert verbs.add_target(OLGA, fed.source.pk, url).product_id == number_of("S-100"), "by its address"
    assert verbs.add_target(OLGA, fed.source.pk, f"{base}/1", sku="S-101").product_id == number_of("S-101")
    made = verbs.add_target(OLGA, fed.source.pk, f"{base}/2", product_id=number_of("S-102"))
    assert made.product_id == number_of("S-102")
    made = verbs.add_target(OLGA, fed.source.pk, f"{base}/3", gtin="0 036000 291452")
    assert made.product_id == number_of("S-103"), "an EAN with a zero in front is the same UPC"
    with pytest.raises(NotFound, match="has no product"):
        verbs.add_target(OLGA, fed.source.pk, f"{base}/4", product_id=10**12)


def test_a_number_that_no_product_of_a_source_without_a_feed_has_is_refused_with_what_to_do():
    source = scraping.shop()
    numbers = {"sku": "H-1", "gtin": "012345678905"}
    with pytest.raises(NotLinked, match=r"no product with the SKU H-1 and GTIN 012345678905\. Leave it out"):
        verbs.add_target(OLGA, source.pk, "https://shop.example/1", **numbers)
    catalog.product(source, identity_value="H-1")
    catalog.product(source, gtin="012345678905")
    with pytest.raises(
        NotLinked, match=r"which product of .* has the SKU H-1 and GTIN \d+\. Name the product"
    ) as caught:
        verbs.add_target(OLGA, source.pk, "https://shop.example/1", **numbers)
    assert len(caught.value.candidates) == 2


def test_a_page_next_to_a_feed_that_is_of_no_product_is_refused_with_candidates(fed):
    url = address_of("S-100")
    domain = url.split("/")[2]
    Retailer.objects.filter(pk=fed.source.retailer_id).update(domain=domain.removeprefix("www."))
    with pytest.raises(NotLinked, match="not clear which one this page is of") as caught:
        verbs.add_target(OLGA, fed.source.pk, f"https://{domain}/unknown")
    assert caught.value.candidates == ()
    bare = url.partition("?")[0]
    with pytest.raises(NotLinked) as caught:
        verbs.add_target(OLGA, fed.source.pk, f"{bare}?size=99")
    assert number_of("S-100") in {candidate.id for candidate in caught.value.candidates}
    # The SKU names one product and the address another.
    with pytest.raises(NotLinked) as caught:
        verbs.add_target(OLGA, fed.source.pk, url, sku="S-105")
    assert {found.id for found in caught.value.candidates} == {number_of("S-100"), number_of("S-105")}
    assert not ScrapeTarget.objects.exists()


def test_many_pages_are_changed_at_once_and_more_than_a_thousand_need_an_admin(source):
    scraping.pages(source, 1_001)
    scraping.pages(source, 1, status="PAUSED")
    wanted = TargetFilter(source_id=source.pk, status="ACTIVE")
    with pytest.raises(TooMany, match="1,001 pages match"):
        verbs.update_targets(OLGA, wanted, schedule=None)
    assert verbs.update_targets(OLGA, wanted, most=None, schedule="0 0 * * *", priority=3) == 1_001
    assert verbs.update_targets(OLGA, wanted, most=None, schedule="0 0 * * *", priority=3) == 0, "nothing differs"
    counts = "SELECT schedule, priority, count(*), count(DISTINCT due_at) FROM scrape_targets GROUP BY 1, 2 ORDER BY 3"
    assert rows(counts) == [
        ("0 */4 * * *", 0, 1, 1), ("0 0 * * *", 3, 1_001, 1),
    ]  # fmt: skip
    event = audited("SCRAPE_TARGETS_UPDATED")[0]
    assert (event.detail["count"], event.detail["filter"]["status"]) == (1_001, "ACTIVE")


def test_pages_are_deleted_with_what_was_kept_of_them(source):
    page, other = add(source), add(source, "/other")
    verbs.delete_target(OLGA, page.pk)
    with pytest.raises(NotFound, match="There is no page"):
        verbs.delete_target(OLGA, page.pk)
    assert verbs.delete_targets(OLGA, TargetFilter(ids=[other.pk, page.pk])) == 1
    assert not ScrapeTarget.objects.exists()
    assert [event.detail["url"] for event in audited("SCRAPE_TARGET_DELETED")] == [page.url]


def test_what_does_not_exist_is_not_found():
    for call in (verbs.pause_target, verbs.replace_moved, verbs.delete_target):
        with pytest.raises(NotFound):
            call(OLGA, NOBODY)
    with pytest.raises(NotFound):
        verbs.add_target(OLGA, NOBODY, "https://bigshop.com/p")


def test_a_page_that_could_not_be_fetched_says_why(source):
    [page] = scraping.pages(source, 1, last_status="NETWORK", last_detail="The answer has more than 10485760 bytes.")
    assert diagnose(page).reason == "The answer has more than 10485760 bytes."


@pytest.mark.parametrize(
    ("values", "trouble"),
    [
        ({"last_status": "OFFER"}, None),
        ({"last_status": "NOT_MODIFIED"}, None),
        ({"last_status": None}, None),
        ({"last_status": "BLOCKED_PAGE"}, Trouble.BLOCKED),
        ({"last_status": "BLOCKED_BY_ROBOTS_TXT"}, Trouble.BLOCKED),
        ({"last_status": "OFFER", "robots_path_blocked": True}, Trouble.BLOCKED),
        ({"last_status": "GONE"}, Trouble.GONE),
        ({"last_status": "PRICE_NOT_FOUND"}, Trouble.BROKEN),
        ({"last_status": "NO_AGREEMENT"}, Trouble.BROKEN),
        ({"last_status": "OFFER", "status": "BROKEN"}, Trouble.BROKEN),
        ({"last_status": "NETWORK"}, Trouble.OUR_PROBLEM),
        ({"last_status": "FAILED"}, Trouble.OUR_PROBLEM),
        ({"last_status": "GONE", "status": "STALE"}, Trouble.OUR_PROBLEM),
    ],
)
def test_a_page_that_yields_nothing_has_one_of_four_plain_states(source, values, trouble):
    [page] = scraping.pages(source, 1, **values)
    found = diagnose(page)
    assert (found.trouble if found else None) == trouble
    if found:
        assert found.reason, "why"
        assert found.next_step, "and what to do"
    matching = {state for state in Trouble if TargetFilter(trouble=state).targets().exists()}
    assert matching == ({trouble} if trouble else set()), "the filter says the same"
