"""Imports in the portal: paste or upload, decide for each shop, and see the result for each line."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from tests.support import catalog
from tests.support.feed_rows import make_feed
from tests.support.portal import person, state_of, verbs
from tests.support.portal_scraping import SCRIPT, page, shop
from tests.support.tables import rows

from harvester.catalog.models import Retailer, Source
from harvester.engine.models import Job
from harvester.ops.models import Role
from harvester.scraping import imports
from harvester.scraping.models import ScrapeImport, ScrapeTarget
from harvester.scraping.verbs.imports import MOST_BYTES

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


class HereAndNow:
    """The job of an import, done by the test itself."""

    def transaction(self):
        return transaction.atomic()

    def progress(self, *_):
        """Report nothing."""

    def check(self):
        """Go on."""


def text(answer) -> str:
    assert answer.status_code == 200, answer
    return " ".join(answer.content.decode().split())


def messages_of(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def pasted(operator, lines: str) -> ScrapeImport:
    answer = operator.post("/imports/", {"text": lines, "name": "monday"})
    made = ScrapeImport.objects.latest("created_at")
    assert answer.headers["Location"] == f"/imports/{made.pk}/"
    return made


def test_pasted_addresses_are_grouped_by_shop_with_their_marks(operator):
    of = shop("Ammo Depot", domain="depot.example")
    page(of, "known")
    made = pasted(
        operator,
        "https://depot.example/known\nhttps://www.depot.example/new?utm_source=x\nhttps://depot.example/new\n"
        f"https://other.example/a\nhttps://10.0.0.1/x\n{SCRIPT}",
    )
    answer = operator.get(f"/imports/{made.pk}/")
    groups = {group["domain"]: group for group in answer.context["groups"]}
    assert {name: [(one["label"], one["count"]) for one in group["counts"]] for name, group in groups.items()} == {
        "depot.example": [("New", 1), ("Known", 1), ("Repeated", 1)],
        "other.example": [("New", 1)],
    }
    assert groups["depot.example"]["source_id"] == str(of.pk)
    assert [line["line"] for line in answer.context["refused"]] == [5, 6]
    shown = text(answer)
    assert "Import 2 pages" in shown
    assert SCRIPT not in shown
    assert ScrapeTarget.objects.count() == 1


def test_the_choices_of_the_form_count_and_the_pages_are_added_once(operator):
    of = shop("Ammo Depot", domain="depot.example")
    made = pasted(operator, "https://depot.example/a\nhttps://depot.example/b\nhttps://other.example/a")
    where = f"/imports/{made.pk}/"
    choices = {
        "shop": ["depot.example", "other.example"],
        "source:depot.example": str(of.pk),
        "schedule:depot.example": "0 */6 * * *",
        "source:other.example": "",
        "name:other.example": "Other shop",
        "adapter_id:other.example": "structured",
    }
    operator.post(f"{where}choose/", {**choices, "skip:other.example": "yes"})
    assert "Import 2 pages" in text(operator.get(where))
    operator.post(f"{where}start/", choices)
    made.refresh_from_db()
    assert made.status == "IMPORTING"
    assert state_of(made.job_id) == "pending"
    assert "Waiting for a worker" in text(operator.get(where))
    assert 'hx-trigger="every 2s"' in text(operator.get(where))
    imports.import_pages(HereAndNow(), str(made.pk))
    done = text(operator.get(where))
    assert "<dt>Added</dt><dd>3</dd>" in done
    assert set(ScrapeTarget.objects.values_list("url", "schedule", "source__name")) == {
        ("https://depot.example/a", "0 */6 * * *", "Ammo Depot"),
        ("https://depot.example/b", "0 */6 * * *", "Ammo Depot"),
        ("https://other.example/a", None, "Other shop"),
    }
    assert Source.objects.get(name="Other shop").scrape_enabled is False


def test_lines_that_were_not_added_are_listed_with_their_reason(operator):
    of = shop(domain="depot.example")
    made = pasted(operator, "https://depot.example/a\nhttps://depot.example/b")
    operator.post(f"/imports/{made.pk}/start/")
    page(of, "b")
    imports.import_pages(HereAndNow(), str(made.pk))
    answer = operator.get(f"/imports/{made.pk}/")
    assert [(line["line"], line["label"]) for line in answer.context["lines"]] == [(2, "Known")]
    assert "<dt>Not added</dt><dd>1</dd>" in text(answer)


def test_a_file_is_uploaded(operator):
    shop(domain="depot.example")
    content = b"url,priority\nhttps://depot.example/a,5\nhttps://depot.example/b,high\n"
    answer = operator.post("/imports/", {"file": SimpleUploadedFile("list.csv", content, "text/csv")})
    made = ScrapeImport.objects.get()
    assert answer.headers["Location"] == f"/imports/{made.pk}/"
    assert (made.name, len(made.rows["pages"]), len(made.refused)) == ("list.csv", 1, 1)


def test_a_file_that_is_too_large_is_refused_with_the_reason(operator):
    large = SimpleUploadedFile("large.csv", b"x" * (MOST_BYTES + 2**17), "text/csv")
    answer = operator.post("/imports/", {"file": large})
    assert "more than 5 MB" in str(answer.context["form"].errors["file"])
    assert not ScrapeImport.objects.exists()


def test_nothing_and_both_are_refused(operator):
    answer = operator.post("/imports/", {"text": "  "})
    assert "it has no addresses" in str(answer.context["form"].errors).lower()
    both = {"text": "https://depot.example/a", "file": SimpleUploadedFile("list.csv", b"url\n")}
    assert "not both" in str(operator.post("/imports/", both).context["form"].errors["file"])


def test_an_import_is_cancelled_before_and_not_after_it_has_ended(operator):
    made = pasted(operator, "https://depot.example/a")
    operator.post(f"/imports/{made.pk}/cancel/")
    made.refresh_from_db()
    assert made.status == "CANCELLED"
    assert "is CANCELLED already" in messages_of(operator.post(f"/imports/{made.pk}/cancel/", follow=True))


def test_pages_of_a_feeds_products_are_imported_linked_to_them(operator):
    feed = make_feed()
    product = catalog.product(feed.source, url="https://acme.example/tent", title="Tarn tent")
    catalog.product(feed.source, url="https://acme.example/stove", title="Stove")
    Source.objects.filter(pk=feed.source_id).update(url="https://acme.example/")
    answer = operator.post("/imports/feed/", {"source": str(feed.source_id), "title": "tent", "most": "10"})
    made = ScrapeImport.objects.get()
    assert answer.headers["Location"] == f"/imports/{made.pk}/"
    imports.import_pages(HereAndNow(), str(made.pk))
    assert list(ScrapeTarget.objects.values_list("url", "product_id")) == [("https://acme.example/tent", product)]
    again = operator.post("/imports/feed/", {"source": str(feed.source_id), "title": "tent", "most": "10"})
    assert "has a page already" in text(again)


@pytest.fixture
def fed():
    """A source with a feed of two products on acme.example."""
    source = make_feed().source
    Retailer.objects.filter(pk=source.retailer_id).update(domain="acme.example")
    catalog.product(
        source, url="https://acme.example/tent?color=red", title="Tarn tent", sku="T-1", identity_value="T-1"
    )
    catalog.product(source, url="https://acme.example/stove", title="Stove", sku="S-1", identity_value="S-1")
    return source


def id_of(sku: str) -> int:
    [(number,)] = rows("SELECT id FROM source_products WHERE sku = %s", sku)
    return number


def link_form(answer, **given: str) -> dict:
    """The form as the page shows it, with what a person chose and wrote."""
    fields: dict = {"place": [str(row["place"]) for row in answer.context["rows"]], **given}
    for row in answer.context["rows"]:
        fields |= {f"line:{row['place']}": row["line"], f"url:{row['place']}": row["url"]}
    return fields


def test_lines_without_a_product_are_linked_and_imported(operator, fed):
    made = pasted(operator, "https://acme.example/tent\nhttps://acme.example/b\nhttps://acme.example/c")
    where = f"/imports/{made.pk}/"
    shown = text(operator.get(where))
    assert "3 lines have no product" in shown
    assert f'href="{where}links/"' in shown
    answer = operator.get(f"{where}links/")
    assert "Tarn tent (SKU T-1)" in text(answer)
    operator.post(f"{where}links/", link_form(answer, **{"choice:0": f"id:{id_of('T-1')}", "product:1": "S-1"}))
    assert "Import 2 pages" in text(operator.get(where))
    operator.post(f"{where}start/")
    imports.import_pages(HereAndNow(), str(made.pk))
    assert "1 line has no product" in text(operator.get(where))
    answer = operator.get(f"{where}links/")
    assert [row["line"] for row in answer.context["rows"]] == [3]
    done = operator.post(f"{where}links/", link_form(answer, **{"product:0": "sku:S-1"}))
    assert done.headers["Location"] == where
    assert dict(rows("SELECT right(url, 1), product_id FROM scrape_targets")) == {
        "t": id_of("T-1"), "b": id_of("S-1"), "c": id_of("S-1")
    }  # fmt: skip
    assert "no product" not in text(operator.get(where))
    assert "Every line has a product" in text(operator.get(f"{where}links/"))
    assert verbs(object_type="scrape_import")[-1] == "SCRAPE_IMPORT_LINKED"


def test_a_wrong_product_is_marked_and_what_was_entered_stays(operator, fed):
    made = pasted(operator, "https://acme.example/tent\nhttps://acme.example/b")
    where = f"/imports/{made.pk}/links/"
    given = link_form(operator.get(where), **{"choice:0": f"id:{id_of('T-1')}", "product:1": SCRIPT})
    answer = operator.post(where, given)
    assert [bool(row["problem"]) for row in answer.context["rows"]] == [False, True]
    assert [row["candidates"][0]["is_chosen"] for row in answer.context["rows"] if row["candidates"]] == [True]
    shown = text(answer)
    assert SCRIPT not in shown
    assert 'aria-invalid="true"' in shown
    made.refresh_from_db()
    assert made.choices == {}
    nothing = operator.post(where, link_form(answer))
    assert "choose the products of 1 to" in messages_of(nothing)


def test_hundreds_of_lines_without_a_product_are_linked_page_by_page(operator, fed):
    made = pasted(operator, "\n".join(f"https://acme.example/{number}" for number in range(120)))
    where = f"/imports/{made.pk}/links/"
    for left in (70, 20, 0):
        answer = operator.get(where)
        chosen = {f"product:{row['place']}": "S-1" for row in answer.context["rows"]}
        operator.post(where, link_form(answer, **chosen))
        assert operator.get(where).context["total"] == left


def test_a_viewer_links_nothing(operator, fed):
    made = pasted(operator, "https://acme.example/tent")
    where = f"/imports/{made.pk}/links/"
    given = link_form(operator.get(where), **{"product:0": "T-1"})
    operator.force_login(person("vera", Role.VIEWER))
    assert operator.post(where, given).status_code == 403
    assert "Link</button>" not in text(operator.get(where))


def test_more_shops_than_a_form_can_have_are_imported_as_proposed(operator):
    made = pasted(operator, "\n".join(f"https://shop-{number}.example/a" for number in range(120)))
    where = f"/imports/{made.pk}/"
    answer = operator.get(where)
    assert "And 20 more shops" in text(answer)
    shops = [group["domain"] for group in answer.context["groups"]]
    fields = {f"{name}:{shop_}": "" for shop_ in shops for name in ("source", "schedule")}
    fields |= {f"name:{shop_}": shop_ for shop_ in shops} | {f"adapter_id:{shop_}": "structured" for shop_ in shops}
    operator.post(f"{where}start/", {"shop": shops, **fields})
    made.refresh_from_db()
    assert (made.status, len(made.choices)) == ("IMPORTING", 120)
    assert verbs(object_type="scrape_import") == ["SCRAPE_IMPORT_CREATED", "SCRAPE_IMPORT_STARTED"]


def test_a_viewer_sees_imports_and_imports_nothing(operator, client):
    made = pasted(operator, "https://depot.example/a")
    operator.force_login(person("vera", Role.VIEWER))
    assert operator.post("/imports/", {"text": "https://depot.example/a"}).status_code == 403
    shown = text(operator.get(f"/imports/{made.pk}/"))
    assert "depot.example" in shown
    assert "Import 1 page" not in shown


def test_everything_is_in_the_audit_log(operator):
    made = pasted(operator, "https://depot.example/a")
    operator.post(f"/imports/{made.pk}/start/", {"shop": "depot.example", "name:depot.example": "Depot"})
    assert verbs(object_type="scrape_import") == [
        "SCRAPE_IMPORT_CREATED", "SCRAPE_IMPORT_CHOSEN", "SCRAPE_IMPORT_STARTED"
    ]  # fmt: skip
    assert Job.objects.filter(kind="scraping.import").count() == 1
