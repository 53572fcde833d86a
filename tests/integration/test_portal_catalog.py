"""The catalog's pages: what they show, refuse and escape."""

import re

import pytest
from django.test import Client
from tests.support import catalog
from tests.support.catalog import fetch, hours
from tests.support.portal import person, verbs

from harvester.catalog import corrections, offers
from harvester.catalog.models import PriceCorrection, Retailer, Source
from harvester.feeds.models import Feed
from harvester.kernel.actor import system
from harvester.ops.models import Role

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"' {{ 7|add:7654321 }}"
TEST = system("test")


@pytest.fixture
def client():
    made = Client()
    made.force_login(person("ada", Role.ADMIN))
    return made


@pytest.fixture
def shop():
    owner = catalog.retailer("Shop", "shop.example")
    return catalog.source(owner, name="Shop feed", is_display_primary=True, expiry_hours=48)


@pytest.fixture
def hammer(shop):
    number = catalog.product(shop, title="Red hammer", brand="Acme", sku="H-1", identity_value="H-1")
    run = catalog.run(shop)
    catalog.price(shop, number, "25", observed_at=catalog.now() - hours(30))
    catalog.price(shop, number, "19.9", run_no=run.no)
    offers.recompute(shop.pk, [number])
    return number


def text(answer):
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_offer_is_found_and_its_page_shows_everything(client, shop, hammer):
    page = text(client.get("/offers/", {"q": "hammer", "currency": "usd", "max": "20", "state": "VISIBLE"}))
    assert f"/offers/{shop.pk}/{hammer}/" in page
    assert "No matches" in text(client.get("/offers/", {"q": "hammer", "stock": "no"}))
    page = text(client.get(f"/offers/{shop.pk}/{hammer}/"))
    for words in ("Red hammer", "Consumers see it.", "19.90", "25.00", "H-1", "https://shop.example/", "Priced"):
        assert words in page, words


def test_every_page_escapes_what_strangers_wrote(client, shop):
    url = "https://shop.example/?a=<b>\"'"
    number = catalog.product(
        shop, title=HOSTILE, brand=HOSTILE, category=HOSTILE, description=HOSTILE, sku=HOSTILE, gtin=HOSTILE, url=url,
        image_url="javascript:alert(3)",
    )  # fmt: skip
    catalog.price(shop, number, "5")
    offers.recompute(shop.pk, [number])
    catalog.insert("product_links", source_id=shop.pk, source_product_id=number, status="NEEDS_REVIEW")
    Source.objects.filter(pk=shop.pk).update(name=HOSTILE, is_display_primary=False)
    Retailer.objects.filter(pk=shop.retailer_id).update(name=HOSTILE)
    made = corrections.create(TEST, scope="SOURCE", source_id=shop.pk, action="IGNORE", reason=HOSTILE)
    corrections.revoke(TEST, made.pk)
    pages = [
        *("/offers/", f"/offers/?q={HOSTILE}&brand={HOSTILE}", f"/offers/{shop.pk}/{number}/", "/retailers/"),
        *(f"/retailers/{shop.retailer_id}/", "/sources/", f"/sources/{shop.pk}/", f"/sources/{shop.pk}/primary/"),
        *("/corrections/", f"/corrections/{made.pk}/", f"/corrections/add/?reason={HOSTILE}", "/review/"),
        *(f"/review/{shop.pk}/{number}/", f"/review/?source={HOSTILE}", f"/sources/{shop.pk}/edit/"),
    ]
    for address in pages:
        page = text(client.get(address))
        for wrong in ("<script>alert", "<img src=x", 'href="javascript:', "<b>", "7654328"):
            assert wrong not in page, (address, wrong)
        assert "alert(1)" in page, address


def test_a_search_that_cannot_be_answered_says_why_and_keeps_what_was_typed(client):
    for given, words in [
        ({"sort": "price", "q": "kept"}, "choose a currency"),
        ({"min": "ten", "currency": "USD", "q": "kept"}, "is not an amount"),
        ({"source": "nowhere", "q": "kept"}, "There is no source nowhere"),
        ({"after": "x"}, "start with the first page"),
        ({"q": "!!! \x00"}, "text:"),
    ]:
        page = text(client.get("/offers/", given))
        assert words in page, given
        assert 'value="kept"' in page or given.get("q") != "kept"


@pytest.mark.parametrize(
    "path", ["/offers/{0}/7/", "/retailers/{0}/", "/sources/{0}/", "/corrections/{0}/", "/review/{0}/7/"]
)
def test_what_does_not_exist_is_not_found(client, path):
    assert client.get(path.format("00000000-0000-7000-8000-000000000000")).status_code == 404


def test_a_retailer_and_its_source_are_added_and_changed(client):
    made = client.post("/retailers/add/", {"name": "Shop", "website": "https://www.shop.example/x"})
    shop = Retailer.objects.get()
    assert made.headers["Location"] == f"/retailers/{shop.pk}/"
    again = text(client.post("/retailers/add/", {"name": "Other", "website": "https://shop.example"}))
    assert "already belongs to the retailer Shop" in again
    assert 'value="Other"' in again
    given = {
        "name": "Feed", "kind": "AFFILIATE_FEED", "visibility": "ELIGIBLE", "price_heartbeat_hours": 24,
        "max_hold_hours": 168, "upc_trusted": "on",
    }  # fmt: skip
    client.post(f"/sources/add/{shop.pk}/", given)
    source = Source.objects.get()
    assert (source.upc_trusted, source.retailer_id) == (True, shop.pk)
    refused = text(
        client.post(f"/sources/{source.pk}/edit/", {**given, "tracking_template": "https://x.example/{nope}"})
    )
    assert "hv-wrong" in refused
    client.post(f"/sources/{source.pk}/edit/", {**given, "max_hold_hours": 24})
    client.post(f"/retailers/{shop.pk}/edit/", {"name": "The Shop", "website": ""})
    assert verbs(object_type__in=["source", "retailer"]) == [
        "RETAILER_CREATED", "SOURCE_CREATED", "SOURCE_UPDATED", "RETAILER_UPDATED",
    ]  # fmt: skip


def test_the_primary_is_switched_after_a_look_at_what_changes(client, shop, hammer):
    direct = catalog.source(shop.retailer, kind="DIRECT", name="The website")
    catalog.offer(direct)
    page = text(client.get(f"/sources/{direct.pk}/primary/"))
    assert page.index("Disappears") < page.index("Red hammer") < page.index("Appears") < page.index("thing ")
    client.post(f"/sources/{direct.pk}/primary/", {"primary": "True"})
    client.post(f"/sources/{direct.pk}/primary/", {"primary": "True"})
    assert list(Source.objects.filter(is_display_primary=True)) == [direct]
    client.post(f"/sources/{direct.pk}/primary/", {"primary": "False"})
    assert not Source.objects.filter(is_display_primary=True).exists()
    assert verbs(object_type="source") == ["DISPLAY_PRIMARY_SET", "DISPLAY_PRIMARY_UNSET"]


def edited(source, **changed):
    """What the form of a source sends."""
    return {
        "name": source.name, "kind": source.kind, "visibility": "ELIGIBLE", "price_heartbeat_hours": 24,
        "max_hold_hours": 168, **changed,
    }  # fmt: skip


def test_another_kind_is_saved_after_a_look_at_what_appears_and_vanishes(client):
    source = catalog.source(catalog.retailer(), "OTHER", name="Website")
    catalog.product(source, title="Never offered")
    catalog.offer(source)
    address = f"/sources/{source.pk}/edit/"
    page = text(client.post(address, edited(source, kind="DIRECT")))
    assert "Nothing is saved yet" in page
    assert "Appears in search" in page[: page.index("<li>thing ")]
    [seen] = re.findall(r'name="seen" value="([^"]+)"', page)
    catalog.offer(source)
    again = text(client.post(address, edited(source, kind="DIRECT", seen=seen)))
    assert "Nothing is saved yet" in again, "there is one offer more than the preview showed"
    source.refresh_from_db()
    assert source.kind == "OTHER"
    [seen] = re.findall(r'name="seen" value="([^"]+)"', again)
    assert client.post(address, edited(source, kind="DIRECT", seen=seen)).status_code == 302
    source.refresh_from_db()
    assert source.kind == "DIRECT"
    page = text(client.post(address, edited(source, kind="OTHER")))
    assert page.index("Disappears from search") < page.index("<li>thing ") < page.index("Appears in search")
    assert client.post(address, edited(source, name="The website")).status_code == 302, "nothing changes for consumers"


def test_a_source_with_a_feed_does_not_become_direct(client, shop, hammer):
    Feed.objects.create(source=shop, network="impact", created_by="test")
    page = text(client.post(f"/sources/{shop.pk}/edit/", edited(shop, kind="DIRECT")))
    assert "Shop feed has a feed, so it cannot become DIRECT" in page
    assert "Nothing is saved yet" not in page
    shop.refresh_from_db()
    assert shop.kind == "AFFILIATE_FEED"


def confirm(client, page, given):
    """Confirm the preview on a page."""
    [seen] = re.findall(r'name="seen" value="([^"]+)"', page)
    return client.post("/corrections/add/", {**given, "confirm": "yes", "seen": seen})


def test_a_preview_that_is_out_of_date_is_not_confirmed(client, shop, hammer):
    given = {
        "scope": "PRODUCT", "source": "Shop feed", "product": hammer, "reason": "typed",
        "action": "SET", "set_amount": "12.99", "set_currency": "usd",
    }  # fmt: skip
    page = text(client.post("/corrections/add/", given))
    assert "12.99" in page
    catalog.price(shop, hammer, "21.00")
    offers.recompute(shop.pk, [hammer])
    again = text(confirm(client, page, given))
    assert "Prices have changed since the preview. Nothing was done" in again
    assert not PriceCorrection.objects.exists()
    assert "21.00" in again, "the new preview"
    confirm(client, again, given)
    assert fetch("SELECT amount::float FROM offers") == [(12.99,)]
    assert "Price set to 12.99 USD" in text(client.get("/corrections/"))


def test_the_form_shows_the_product_its_price_and_its_source_by_name(client, shop, hammer):
    page = text(client.get(f"/corrections/add/?scope=PRODUCT&source={shop.pk}&product={hammer}"))
    target = page[page.index('id="target"') : page.index("</dl>")]
    assert [word in target for word in ("Red hammer", "19.90", "Shop feed")] == [True, True, True]
    assert re.search(r'<input[^>]*name="source"[^>]*value="Shop feed"|value="Shop feed"[^>]*name="source"', page)
    assert re.search(r'<input[^>]*name="set_currency"[^>]*value="USD"|value="USD"[^>]*name="set_currency"', page)


@pytest.mark.usefixtures("hammer")
@pytest.mark.parametrize(
    ("extent", "history", "words"),
    [
        ("OBSERVED", "1 recorded price changes, starting", "For each product it ends with the next different price"),
        ("WINDOW", "2 recorded prices change, starting", "if the partner then sends 1.99 USD, consumers see 0.20."),
    ],
)
def test_the_preview_says_what_follows_later(client, extent, history, words):
    given = {"scope": "SOURCE", "source": "Shop feed", "action": "MULTIPLIER", "multiplier": "0.1", "reason": "x"}
    page = text(client.post("/corrections/add/", {**given, "extent": extent}))
    assert words in page
    assert history in re.sub("<[^>]+>", "", page)


def test_a_correction_is_looked_at_made_and_revoked(client, shop, hammer):
    given = {"scope": "PRODUCT", "source": "Shop feed", "product": hammer, "action": "MULTIPLIER", "multiplier": "0.5"}
    assert "This field is required" in text(client.post("/corrections/add/", given))
    page = text(client.post("/corrections/add/", {**given, "reason": "twice"}))
    assert "19.90" in page
    assert "9.95" in page
    assert not PriceCorrection.objects.exists()
    client.post("/corrections/add/", {**given, "reason": "twice", "confirm": "yes"})
    assert not PriceCorrection.objects.exists(), "nobody confirms what was not looked at"
    confirm(client, page, {**given, "reason": "twice"})
    made = PriceCorrection.objects.get()
    assert fetch("SELECT amount::float FROM offers") == [(9.95,)]
    assert "In force" in text(client.get("/corrections/?state=in_force"))
    assert "ada" in text(client.get(f"/corrections/{made.pk}/"))
    assert "twice" in text(client.get(f"/offers/{shop.pk}/{hammer}/"))
    client.post(f"/corrections/{made.pk}/revoke/")
    client.post(f"/corrections/{made.pk}/revoke/")
    assert fetch("SELECT amount::float FROM offers") == [(19.9,)]
    assert verbs(object_type="correction") == ["CORRECTION_CREATED", "CORRECTION_REVOKED"]


REFUSED = [
    ({"scope": "PRODUCT", "source": "Shop feed"}, "requires source_id and product_id"),
    ({"scope": "RUN", "source": "Shop feed", "run": "99999"}, "has no run 99999"),
    ({"scope": "SOURCE", "source": "nowhere"}, "There is no source nowhere"),
    ({"scope": "SOURCE", "source": "Shop feed", "action": "MULTIPLIER", "multiplier": "x"}, "a number from"),
    (
        {
            "scope": "SOURCE",
            "source": "Shop feed",
            "observed_from": "2026-01-02T00:00",
            "observed_to": "2026-01-01T00:00",
        },
        "later than observed_from",
    ),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_a_correction_that_cannot_be_is_refused_at_its_field(client, shop, given, words):
    page = text(client.post("/corrections/add/", {"action": "IGNORE", "reason": "kept", **given}))
    assert words in page.replace("&#x27;", "'")
    assert 'value="kept"' in page
    assert 'id="preview"' not in page


def test_the_queue_is_worked_off_one_by_one(client, shop):
    numbers = [catalog.product(shop, title=f"Nameless {n}") for n in range(3)]
    for number in numbers:
        catalog.insert("product_links", source_id=shop.pk, source_product_id=number, status="NEEDS_REVIEW")
    assert "Nameless 2" in text(client.get("/review/?source=Shop feed"))
    first, second, third = (f"/review/{shop.pk}/{number}/" for number in numbers)
    assert client.post(f"{first}create/", {"title": "Named", "brand": ""}).headers["Location"] == second
    [[product]] = fetch("SELECT id FROM products")
    assert client.post(f"{second}link/", {"product": str(product)}).headers["Location"] == third
    assert client.post(f"{second}link/", {"product": str(product)}).headers["Location"] == second
    assert client.post(f"{third}skip/", {"reason": "a gift card"}).headers["Location"] == "/review/"
    assert "by ada. Nothing was changed." in text(client.get("/review/"))
    assert "Named" in text(client.get(f"/offers/{shop.pk}/{numbers[1]}/"))
    client.post(f"{third}reopen/")
    assert "Nameless 2" in text(client.get("/review/"))
    assert verbs(object_type="offer") == ["PRODUCT_CREATED", "PRODUCT_LINKED", "PRODUCT_SKIPPED", "PRODUCT_REOPENED"]


def test_the_review_queue_continues_from_any_offer_and_leads_back(client, shop):
    numbers = [catalog.product(shop, title=f"<Nameless> {n}") for n in range(4)]
    for number in numbers:
        catalog.insert("product_links", source_id=shop.pk, source_product_id=number, status="NEEDS_REVIEW")
    first, _, third, fourth = (f"/review/{shop.pk}/{number}/" for number in numbers)
    assert client.post(f"{third}skip/", {"reason": "a gift card"}).headers["Location"] == fourth
    assert f'<a href="{third}">&lt;Nameless&gt; 2</a> was skipped' in client.get(fourth).content.decode()
    assert client.post(f"{fourth}skip/", {"reason": "a gift card"}).headers["Location"] == first
    decided = client.get(third).content.decode()
    assert f'href="{first}">Next in queue' in decided
    assert "Link to a product" not in decided


def test_no_page_asks_the_database_more_than_thirty_times(client, shop, hammer, django_assert_max_num_queries):
    for number in range(60):
        catalog.insert("retailers", id=catalog.uuid7(), name=f"other ~ {number}", domain=None)
    numbers = [catalog.offer(shop) for _ in range(55)]
    for number in numbers:
        catalog.insert("product_links", source_id=shop.pk, source_product_id=number, status="NEEDS_REVIEW")
    addresses = [
        *("/offers/", "/retailers/", "/sources/", "/corrections/", "/review/", f"/offers/{shop.pk}/{hammer}/"),
        *(f"/sources/{shop.pk}/", f"/sources/{shop.pk}/primary/", f"/review/{shop.pk}/{numbers[0]}/"),
    ]
    for address in addresses:
        with django_assert_max_num_queries(30):
            text(client.get(address))


def test_a_list_goes_on_behind_a_name_that_holds_the_separator(client):
    for number in range(60):
        catalog.insert("retailers", id=catalog.uuid7(), name=f"shop ~ {number:02}", domain=None)
    page = text(client.get("/retailers/"))
    onward = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "shop ~ 25" in text(client.get(f"/retailers/{onward}"))
