"""Lists of pages of many shops: the preview, the import in the background, and a worker that is killed in it."""

import io

import openpyxl
import pytest
from django.db import connection, transaction
from tests.support import catalog, scraping
from tests.support.feed_world import OLGA, allow_loopback
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_processes

from harvester.catalog.models import Retailer, Source
from harvester.engine.models import Job
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import AuditEvent
from harvester.scraping import imports, verbs
from harvester.scraping.imports import RowState, preview
from harvester.scraping.models import ScrapeImport, ScrapeTarget

pytestmark = pytest.mark.usefixtures("database")
LIST = """url,sku,schedule,priority,notes
https://bigshop.com/new,,0 6 * * *,5,first
https://www.bigshop.com/old/?utm_source=x,,,,
https://bigshop.com/new#reviews,,,,
https://newshop.co.uk/a,,,,
https://outlet.newshop.co.uk/b,,,,
https://10.0.0.7/p,,,,
https://olga:secret@bigshop.com/p,,,,
ftp://bigshop.com/p,,,,
https://bigshop.com/q,,every day,,
https://bigshop.com/r,,,1000,
"""


@pytest.fixture
def known():
    """A shop that has one page already."""
    source = scraping.shop("bigshop.com")
    catalog.target(source, "https://bigshop.com/old")
    return source


def create(given=LIST, name="monday.csv") -> ScrapeImport:
    return verbs.create_import(OLGA, name, given)


def finished(found) -> ScrapeImport:
    run_until_idle(queues=("maintenance",))
    found.refresh_from_db()
    job = Job.objects.get(id=found.job_id)
    assert job.state == "succeeded", job.error
    return found


def urls(source) -> set:
    return set(ScrapeTarget.objects.filter(source=source).values_list("url", flat=True))


def states(group) -> dict:
    return {row.page.url: row.state for row in group.rows}


def test_a_list_is_grouped_by_shop_and_every_line_is_marked(known):
    seen = preview(create())
    assert [group.domain for group in seen.groups] == ["bigshop.com", "newshop.co.uk"]
    big, new = seen.groups
    assert (big.choice.source_id, big.choice.adapter_id, big.retailer) == (known.pk, "structured", "bigshop.com")
    assert big.sources == {known.pk: "bigshop.com"}
    assert states(big) == {
        "https://bigshop.com/new": RowState.NEW,
        "https://www.bigshop.com/old/?utm_source=x": RowState.DUPLICATE_OF_TARGET,
        "https://bigshop.com/new#reviews": RowState.DUPLICATE_IN_LIST,
    }
    assert (new.choice.source_id, new.choice.name, new.retailer, new.sources) == (None, "newshop.co.uk", None, {})
    assert new.counts == {RowState.NEW: 2}
    assert seen.new == 3
    assert [line["line"] for line in seen.refused] == [7, 8, 9, 10, 11]
    reasons = " | ".join(line["reason"] for line in seen.refused)
    for words in ("not on the public internet", "url:", "schedule: write a cron line", "priority: write a whole"):
        assert words in reasons
    assert "secret" not in reasons
    assert not ScrapeTarget.objects.exclude(url="https://bigshop.com/old").exists(), "a preview adds nothing"


def test_a_site_file_is_proposed_for_its_domain():
    [group] = preview(create("https://www.sgammo.com/product/a")).groups
    assert (group.domain, group.choice.adapter_id) == ("sgammo.com", "sgammo")


def test_an_import_adds_good_lines_and_lists_the_others(known):
    found = create()
    verbs.choose(OLGA, found.pk, "bigshop.com", schedule="0 0 * * *")
    verbs.start_import(OLGA, found.pk)
    done = finished(found)
    assert (done.status, done.results["added"], done.results["refused"], done.results["done"]) == ("DONE", 3, 2, 5)
    assert [(line["line"], line["state"]) for line in done.results["lines"]] == [
        (3, "DUPLICATE_OF_TARGET"), (4, "DUPLICATE_IN_LIST"),
    ]  # fmt: skip
    made = ScrapeTarget.objects.get(url="https://bigshop.com/new")
    assert (made.schedule, made.priority, made.notes, made.created_by) == ("0 6 * * *", 5, "first", "Olga")
    assert made.due_at > catalog.now()
    source = Source.objects.get(name="newshop.co.uk")
    assert (source.kind, source.url, source.adapter_id) == ("DIRECT", "https://newshop.co.uk/", "structured")
    assert (source.scrape_enabled, source.visibility, source.upc_trusted) == (False, "INELIGIBLE", False)
    assert Retailer.objects.get(domain="newshop.co.uk").name == "newshop.co.uk"
    assert urls(source) == {"https://newshop.co.uk/a", "https://outlet.newshop.co.uk/b"}
    names = ("SCRAPE_IMPORT_CREATED", "SCRAPE_IMPORT_CHOSEN", "SCRAPE_IMPORT_STARTED", "SCRAPE_IMPORT_ENDED")
    for name in names:
        assert AuditEvent.objects.filter(verb=name, actor_name="Olga").count() == 1, name


def test_a_host_of_this_network_without_a_dot_is_refused_and_the_others_are_imported(settings):
    allow_loopback(settings)
    found = create("http://localhost/x\nhttps://bigshop.com/new\n")
    assert [(line["line"], line["reason"]) for line in found.refused] == [
        (1, "url: its host has no dot, and the domain of a retailer needs one.")
    ]
    verbs.start_import(OLGA, found.pk)
    assert finished(found).results["added"] == 1


def test_the_same_list_again_adds_nothing_twice(known):
    for expected in (3, 0):
        found = create()
        verbs.start_import(OLGA, found.pk)
        assert finished(found).results["added"] == expected
    assert ScrapeTarget.objects.count() == 4
    assert Source.objects.count() == 2


def test_a_skipped_shop_gets_no_source(known):
    found = create()
    verbs.choose(OLGA, found.pk, "newshop.co.uk", skip=True)
    verbs.start_import(OLGA, found.pk)
    assert finished(found).results["skipped"] == 2
    assert not Retailer.objects.filter(domain="newshop.co.uk").exists()


def test_pages_of_another_shop_than_the_chosen_source_are_refused(known):
    found = create()
    verbs.choose(OLGA, found.pk, "newshop.co.uk", source_id=known.pk)
    found.refresh_from_db()
    assert preview(found).groups[1].counts == {RowState.OFF_DOMAIN: 2}
    verbs.start_import(OLGA, found.pk)
    assert finished(found).results["added"] == 1
    assert not ScrapeTarget.objects.filter(url__contains="newshop").exists()


@pytest.mark.parametrize(
    ("domain", "choice", "error"),
    [
        ("othershop.com", {}, NotFound),
        ("bigshop.com", {"source_id": "0190c0a0-0000-7000-8000-000000000000"}, NotFound),
        ("bigshop.com", {"schedule": "daily"}, InvalidInput),
        ("bigshop.com", {"adapter_id": "nonsense"}, InvalidInput),
        ("bigshop.com", {"skip": "yes"}, InvalidInput),
        ("bigshop.com", {"nonsense": 1}, InvalidInput),
    ],
)
def test_bad_choices_are_refused(known, domain, choice, error):
    found = create()
    with pytest.raises(error):
        verbs.choose(OLGA, found.pk, domain, **choice)
    assert ScrapeImport.objects.get(pk=found.pk).choices == {}


def test_a_workbook_is_read_like_a_csv_file():
    book = openpyxl.Workbook()
    for row in (["URL", "Priority"], ["https://bigshop.com/a", 3], ["not an address", 1]):
        book.active.append(row)
    body = io.BytesIO()
    book.save(body)
    seen = preview(create(body.getvalue(), "list.xlsx"))
    assert [row.page.priority for row in seen.groups[0].rows] == [3]
    assert [line["line"] for line in seen.refused] == [3]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("x" * (5 * 2**20 + 1), "more than 5 MB"),
        (b"PK\x03\x04 no workbook", "cannot be read"),
        ("", "no addresses"),
        ("sku,price\n1,2", "No column has addresses"),
        ("\n".join(f"https://bigshop.com/{place}" for place in range(20_001)), "more than 20,000 lines"),
    ],
)
def test_lists_that_cannot_be_read_as_a_whole_are_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        create(given)
    assert not ScrapeImport.objects.exists()


def test_an_import_that_has_begun_is_not_chosen_or_begun_again(known):
    found = create()
    first = verbs.start_import(OLGA, found.pk)
    assert verbs.start_import(OLGA, found.pk).job_id == first.job_id
    with pytest.raises(Conflict, match="IMPORTING"):
        verbs.choose(OLGA, found.pk, "bigshop.com", skip=True)
    finished(found)
    with pytest.raises(Conflict, match="DONE"):
        verbs.start_import(OLGA, found.pk)
    with pytest.raises(Conflict, match="DONE"):
        verbs.cancel_import(OLGA, found.pk)


def test_a_cancelled_import_adds_nothing_more(known):
    found = create()
    verbs.start_import(OLGA, found.pk)
    verbs.cancel_import(OLGA, found.pk)
    assert finished(found).status == "CANCELLED"
    assert ScrapeTarget.objects.count() == 1


def test_workers_that_are_killed_in_the_middle_change_nothing_about_the_end(known):
    """One is killed inside the transaction of a chunk, the next one after a chunk; a third one finishes."""
    found = create("\n".join(f"https://bigshop.com/{place % 1_900}" for place in range(2_000)))
    verbs.start_import(OLGA, found.pk)

    def progress() -> int:
        return ScrapeImport.objects.get(pk=found.pk).results.get("done", 0)

    waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT \"sources\"%%'"
    with worker_processes(1, "queues=maintenance", "threads=1") as [first], transaction.atomic():
        Source.objects.select_for_update().get(pk=known.pk)
        # Within a transaction the view is read once, unless its snapshot is cleared.
        wait_for(lambda: rows("SELECT pg_stat_clear_snapshot()") and rows(waits), "the worker waits for the source")
        first.kill()
        first.wait()
    assert progress() == 0
    with worker_processes(1, "queues=maintenance", "threads=1") as [second]:
        wait_for(progress)
        second.kill()
        second.wait()
    with worker_processes(1, "queues=maintenance", "threads=1"):
        wait_for(lambda: ScrapeImport.objects.get(pk=found.pk).status == "DONE")
    done = ScrapeImport.objects.get(pk=found.pk)
    counts = {name: done.results[name] for name in ("done", "added", "refused", "skipped")}
    assert counts == {"done": 2_000, "added": 1_900, "refused": 100, "skipped": 0}
    assert len(done.results["lines"]) == 100
    assert ScrapeTarget.objects.filter(source=known).count() == 1_901
    assert AuditEvent.objects.filter(verb="SCRAPE_IMPORT_ENDED").count() == 1


@pytest.fixture
def fed(world):
    """A source with a feed of forty products whose pages are on its retailer's domain."""
    world.put(*range(100, 140))
    assert world.run().outcome == "PROMOTED"
    [(url,)] = rows("SELECT url FROM source_products LIMIT 1")
    Retailer.objects.filter(pk=world.source.retailer_id).update(domain=url.split("/")[2].removeprefix("www."))
    return world


def test_pages_of_a_feed_are_linked_to_exactly_its_products(fed):
    found = verbs.import_from_feed(OLGA, fed.source.pk, schedule="0 0 * * *")
    done = finished(found)
    assert (done.status, done.results["added"], done.results["refused"]) == ("DONE", 40, 0)
    linked = rows(
        "SELECT count(*), count(*) FILTER (WHERE t.url = p.url), count(DISTINCT t.product_id) FROM scrape_targets t "
        "JOIN source_products p ON p.source_id = t.source_id AND p.id = t.product_id"
    )
    assert linked == [(40, 40, 40)]
    assert set(ScrapeTarget.objects.values_list("schedule", flat=True)) == {"0 0 * * *"}
    with pytest.raises(Conflict, match="has a page already"):
        verbs.import_from_feed(OLGA, fed.source.pk)


def test_pages_of_a_feed_can_be_chosen(fed):
    finished(verbs.import_from_feed(OLGA, fed.source.pk, most=3))
    assert ScrapeTarget.objects.count() == 3
    finished(verbs.import_from_feed(OLGA, fed.source.pk, most=5))
    assert ScrapeTarget.objects.count() == 8, "the next five"
    with pytest.raises(Conflict, match="Every such product"):
        verbs.import_from_feed(OLGA, fed.source.pk, text="no title has this")
    with pytest.raises(InvalidInput, match="most"):
        verbs.import_from_feed(OLGA, fed.source.pk, most=20_001)
    with pytest.raises(Conflict, match="has no feed"):
        verbs.import_from_feed(OLGA, scraping.shop("bigshop.com").pk)


def test_lines_of_a_feeds_shop_are_linked_or_refused_with_candidates(fed):
    [(domain,)] = rows("SELECT domain FROM retailers WHERE id = %s", fed.source.retailer_id)
    [(url, number)] = rows("SELECT url, id FROM source_products WHERE sku = 'S-100'")
    listed = f"url,sku\n{url},\nhttps://{domain}/x,S-101\nhttps://{domain}/y,\n{url.partition('?')[0]}?size=99,\n"
    found = create(listed)
    [group] = preview(found).groups
    assert (group.choice.source_id, group.has_feed) == (fed.source.pk, True)
    assert [row.state for row in group.rows] == [RowState.NEW, RowState.NEW, RowState.UNLINKED, RowState.UNLINKED]
    assert group.rows[0].product_id == number
    assert number in {candidate["id"] for candidate in group.rows[3].candidates}
    verbs.start_import(OLGA, found.pk)
    done = finished(found)
    assert (done.results["added"], done.results["refused"]) == (2, 2)
    assert "not clear which of its products" in done.results["lines"][0]["reason"]
    assert imports.CHUNK == 500


def linkable(fed, *more: str) -> ScrapeImport:
    """An import with a page whose address is in the feed, and pages whose product is not clear."""
    [(domain,)] = rows("SELECT domain FROM retailers WHERE id = %s", fed.source.retailer_id)
    [(url,)] = rows("SELECT url FROM source_products WHERE sku = 'S-100'")
    lines = [url, *(f"https://{domain}/{name}" for name in ("x", "y", "z")), *more]
    return create("\n".join(lines))


def product(sku: str) -> int:
    [(number,)] = rows("SELECT id FROM source_products WHERE sku = %s", sku)
    return number


def links(**given: str) -> list[verbs.LineLink]:
    return [verbs.LineLink(line=int(name[1:]), product=text) for name, text in given.items()]


def linked_pages() -> dict[str, int]:
    return {url.rpartition("/")[2]: number for url, number in ScrapeTarget.objects.values_list("url", "product_id")}


def test_lines_are_linked_before_the_import_and_the_others_stay_out(fed):
    found = linkable(fed)
    verbs.link_lines(OLGA, found.pk, links(_2=f"id:{product('S-101')}", _3="sku:S-102"))
    found.refresh_from_db()
    [group] = preview(found).groups
    assert [row.state for row in group.rows] == [RowState.NEW, RowState.NEW, RowState.NEW, RowState.UNLINKED]
    assert [row.product_id for row in group.rows[1:3]] == [product("S-101"), product("S-102")]
    verbs.link_lines(OLGA, found.pk, links(_3=""))
    verbs.start_import(OLGA, found.pk)
    done = finished(found)
    assert (done.results["added"], done.results["refused"]) == (2, 2)
    assert linked_pages()["x"] == product("S-101")
    assert [line["line"] for line in done.results["lines"]] == [3, 4]
    assert AuditEvent.objects.filter(verb="SCRAPE_IMPORT_LINKED", actor_name="Olga").count() == 2


def test_lines_that_an_import_left_out_are_linked_and_added_afterwards(fed):
    found = linkable(fed)
    verbs.choose(OLGA, found.pk, preview(found).groups[0].domain, schedule="0 6 * * *")
    verbs.start_import(OLGA, found.pk)
    done = finished(found)
    assert (done.results["added"], done.results["refused"]) == (1, 3)
    done = verbs.link_lines(OLGA, found.pk, links(_2="S-101", _4="sku:S-103"))
    done.refresh_from_db()
    assert (done.results["added"], done.results["refused"]) == (3, 1)
    assert [line["line"] for line in done.results["lines"]] == [3]
    assert {name: linked_pages()[name] for name in "xz"} == {"x": product("S-101"), "z": product("S-103")}
    assert ScrapeTarget.objects.get(product_id=product("S-103")).schedule == "0 6 * * *"
    with pytest.raises(InvalidInput, match="has this page already"):
        verbs.link_lines(OLGA, found.pk, links(_2="S-101"))
    again = linkable(fed)
    verbs.start_import(OLGA, again.pk)
    assert finished(again).results["added"] == 0, "repeating the list adds nothing twice"
    assert ScrapeTarget.objects.count() == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"_2": "id:999999999"}, "Line 2: .* has no product 'id:999999999'"),
        ({"_2": "sku:S-999"}, "Line 2: .* has no product"),
        ({"_9": "S-101"}, "Line 9: the list has no such address"),
        ({"_5": "S-101"}, "Line 5: it has 2 addresses; give the address too"),
        ({"_6": "S-102"}, "Line 6: line 2 has this page"),
        ({"_2": "sku:S-101", "_6": "S-102"}, "Line 6: its page is named twice"),
        ({"_2": "sku:S-101", "_3": "sku:nothing"}, "Line 3"),
        ({"_7": "S-101"}, "Line 7: a new source has no products"),
        ({}, "choose the products of 1 to"),
    ],
)
def test_links_that_are_not_possible_are_refused_as_a_whole(fed, given, words):
    [(domain,)] = rows("SELECT domain FROM retailers WHERE id = %s", fed.source.retailer_id)
    two = f"https://{domain}/v https://{domain}/w"
    found = linkable(fed, two, f"https://{domain}/x#reviews", "https://newshop.co.uk/a")
    with pytest.raises(InvalidInput, match=words):
        verbs.link_lines(OLGA, found.pk, links(**given))
    found.refresh_from_db()
    assert found.choices == {}


def test_a_number_that_is_of_two_products_is_refused_with_both(fed):
    """The id of one product in Harvester may be the SKU of another one."""
    first = product("S-101")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE source_products SET sku = %s, identity_value = CASE WHEN identity_type = 3 THEN %s "
            "ELSE identity_value END WHERE sku = 'S-102'",
            [str(first), str(first)],
        )
    found = linkable(fed)
    with pytest.raises(InvalidInput, match=r"may be .*write id: or sku: in front"):
        verbs.link_lines(OLGA, found.pk, links(_2=str(first)))
    verbs.link_lines(OLGA, found.pk, links(_2=f"id:{first}"))
    found.refresh_from_db()
    assert preview(found).groups[0].rows[1].product_id == first


def test_another_source_or_a_new_one_drops_the_links_of_its_shop(fed):
    found = linkable(fed)
    verbs.link_lines(OLGA, found.pk, links(_2="S-101"))
    [group] = preview(ScrapeImport.objects.get(pk=found.pk)).groups
    verbs.choose(OLGA, found.pk, group.domain, schedule="0 6 * * *")
    assert ScrapeImport.objects.get(pk=found.pk).choices[group.domain]["links"]
    verbs.choose(OLGA, found.pk, group.domain, source_id=None)
    assert ScrapeImport.objects.get(pk=found.pk).choices[group.domain]["links"] == {}
    with pytest.raises(InvalidInput, match="links"):
        verbs.choose(OLGA, found.pk, group.domain, links={"x": 1})


def test_a_cancelled_import_links_nothing(fed):
    found = linkable(fed)
    verbs.cancel_import(OLGA, found.pk)
    with pytest.raises(Conflict, match="CANCELLED"):
        verbs.link_lines(OLGA, found.pk, links(_2="S-101"))


def test_columns_of_a_list_name_products_by_sku_or_by_their_id_in_harvester(fed):
    [(domain,)] = rows("SELECT domain FROM retailers WHERE id = %s", fed.source.retailer_id)
    number = product("S-101")
    listed = (
        "url,sku,harvester_id\n"
        f"https://{domain}/a,,{number}\nhttps://{domain}/b,S-102,\nhttps://{domain}/c,,999999999\n"
        f"https://{domain}/d,,abc\nhttps://newshop.co.uk/e,,5\n"
    )
    found = create(listed)
    first, second = preview(found).groups
    of_feed, other = (first, second) if first.has_feed else (second, first)
    assert [(row.state, row.product_id) for row in of_feed.rows] == [
        (RowState.NEW, number), (RowState.NEW, product("S-102")), (RowState.UNLINKED, None),
    ]  # fmt: skip
    assert "has no product 999999999" in of_feed.rows[2].reason
    assert [row.reason for row in other.rows] == ["a new source has no product 5."]
    assert [line["reason"] for line in found.refused] == [
        "harvester_id: write a whole number from 1 to 999999999999999999"
    ]  # fmt: skip
