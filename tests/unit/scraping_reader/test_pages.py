"""Pages without a product, and bytes without a page."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.support.generated import examples
from tests.support.shop_pages import hard_set
from tests.unit.scraping_reader.reading_support import TITLE, body, offer, page, price_of, product, read

from harvester.scraping.sites import sites

BLOCKED = {
    "cloudflare": "<title>Just a moment...</title><body><script>window._cf_chl_opt={}</script><p>Enable JavaScript and cookies to continue</p>",
    "cloudflare refusal": "<title>Attention Required! | Cloudflare</title><h1>Sorry, you have been blocked</h1><p>Ray ID: 1</p>",
    "akamai": "<title>Access Denied</title><h1>Access Denied</h1>You don't have permission to access this. Reference #18.2d3",
    "perimeterx": '<title>Access to this page has been denied</title><div id="px-captcha"></div>',
    "datadome": '<title>shop.example</title><p>Please enable JS and disable any ad blocker</p><script src="https://geo.captcha-delivery.com/c.js"></script>',
    "imperva": '<body><iframe src="/_Incapsula_Resource?x=1">Request unsuccessful. Incapsula incident ID: 1-2</iframe>',
    "distil": "<title>Pardon Our Interruption</title><p>As you were browsing something about your browser made us think you were a bot.</p>",
    "captcha": '<title>Shop</title><h1>One more step</h1><p>Please prove that you are not a robot.</p><div class="g-recaptcha"></div>',
    "aws": '<body><script src="https://x.token.awswaf.com/x/challenge.js"></script><div id="challenge-container"></div>',
    "429": "<title>429 Too Many Requests</title><h1>Too Many Requests</h1>",
}


@pytest.mark.parametrize("name", BLOCKED)
def test_a_page_of_refusal_is_recognized(name):
    reading = read(f"<html><head>{BLOCKED[name]}</html>".encode())
    assert (reading.outcome, reading.offer) == ("BLOCKED_PAGE", None)


def test_a_product_page_with_the_script_of_a_protection_service_is_not_blocked():
    scripts = '<script src="/cdn-cgi/challenge-platform/h/g/main.js"></script><div class="g-recaptcha"></div>'
    assert price_of(read(page(product(), body(below=scripts)))) == "19.99 USD"


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"   ",
        b"\0" * 1000,
        b"<html></html>",
        b"<html><body><div id=root></div><script>var a = 1</script></body></html>",
        b"%PDF-1.4",
    ],
)
def test_a_page_without_content_is_empty(given):
    assert read(given).outcome == "EMPTY_PAGE"


def test_a_page_of_no_product_gives_no_offer():
    listing = "".join(
        f'<div class="card"><h2><a href="/{n}">Thing {n}</a></h2><b>${n}.99</b><button>Add to cart</button></div>'
        for n in range(9)
    )
    for text in (
        f"<h1>All hammers</h1>{listing}",
        listing,
        "<h1>Page not found</h1><p>We could not find what you were looking for.</p>",
    ):
        assert read(f"<html><body>{text}</body></html>".encode()).outcome in {
            "NO_AGREEMENT",
            "PRICE_NOT_FOUND",
            "TITLE_NOT_FOUND",
        }
    one = [product(offer(f"{n}.99"), name=f"Thing {n}", sku=str(n)) for n in range(9)]
    assert read(page(one, f"<h1>All hammers</h1>{listing}")).outcome != "OFFER"


@pytest.mark.parametrize(
    ("charset", "content_type", "head"),
    [
        ("utf-8", "text/html; charset=utf-8", ""), ("iso-8859-15", "text/html; charset=iso-8859-15", ""),
        ("windows-1252", "text/html", '<meta charset="windows-1252">'), ("utf-8", "", '<meta charset="utf-8">'),
        ("utf-16", "text/html", ""), ("utf-8-sig", "text/html; charset=iso-8859-1", ""),
    ],
)  # fmt: skip
def test_the_character_set_is_found(charset, content_type, head):
    title = "Hammer für Übungen"
    data = json.dumps(product(offer(currency="EUR"), name=title), ensure_ascii=False)
    text = page(data, body("19,99 €", title=title), head="").decode()
    reading = read(text.replace("<head>", f"<head>{head}").encode(charset), content_type=content_type)
    assert (price_of(reading), reading.offer.title) == ("19.99 EUR", title)


def test_nul_bytes_and_control_characters_do_not_matter():
    assert (
        price_of(read(page(product()).replace(b"hammer", b"ham\0mer").replace(b"<form>", b"\x0c\x01<form>")))
        == "19.99 USD"
    )


@pytest.mark.parametrize(
    "given",
    [b"<div>" * 5_000, b"<html><body>" + b"<i>x</i>" * 70_000, b"<p>" + b"x" * 10_000_001],
    ids=["deep", "many elements", "long"],
)
def test_a_page_that_cannot_be_read_whole_is_refused(given):
    reading = read(page(product()).replace(b"</body>", b"") + given)
    assert (reading.outcome, reading.offer) == ("PAGE_STRUCTURE_CHANGED", None)


def test_what_follows_the_end_of_the_document_counts():
    late = page(product()) + page(product(offer("24.99")))
    assert price_of(read(late)) == "NO_AGREEMENT"
    early = page(product()).replace(b"<h1>", b"</BODY></html ><h1>")
    assert price_of(read(early)) == "19.99 USD"


def test_the_text_for_people_has_no_markup_and_an_end():
    reading = read(page(product(), body(near="<p>&lt;b&gt; " + "words " * 3000 + "</p>")))
    assert reading.text.startswith(TITLE)
    assert len(reading.text) <= 5000
    assert "<div" not in reading.text


PIECES = st.sampled_from([
    b"<h1>", b"</h1>", b"<div class=price>", b"</div>", b"$19.99", b"19,99 \xe2\x82\xac", b"<s>", b"</s>", b"<script type=application/ld+json>",
    b"</script>", b'{"@type":"Product","name":"x","offers":', b'{"price":"19.99","priceCurrency":"USD"}', b"[[[", b"}}}", b"\0", b"\xff\xfe",
    b"<form><button>Add to cart</button>", b"<!--", b"-->", b"<table><tr><td>", b"<svg><style><![CDATA[", b"<html><body>", b"<br/>",
    b"<div itemscope itemtype=http://schema.org/Product itemref=a id=a>", b"<span itemprop=price content=1>", b"<template>", b"&#x0;&#99999999;",
    b'<meta property=product:price:amount content="1.226.3">', b"<p style=display:none>", b"Out of stock", b"In stock", b" - ", b"from ",
])  # fmt: skip


@pytest.mark.generated
@hypothesis_settings(max_examples=examples(150), deadline=None)
@given(st.lists(PIECES, max_size=60), st.binary(max_size=40), st.sampled_from(sites()))
def test_no_bytes_make_it_raise(pieces, tail, site):
    reading = read(b"".join(pieces) + tail, site)
    assert reading.outcome != "ADAPTER_FAILED", reading.detail


@pytest.mark.generated
def test_a_page_that_is_cut_anywhere_gives_no_wrong_price():
    cases = [case for case in hard_set() if case.name.endswith("-crowd")][::3]
    for case in cases:
        whole = case.html.encode()
        for length in range(len(whole) // examples(20), len(whole), len(whole) // examples(20)):
            reading = read(whole[:length], retailer_domain="shop.example")
            if reading.outcome == "OFFER":
                assert str(reading.offer.price) == f"{case.price} {case.goods.currency}"
                assert reading.offer.availability == case.stock


def test_a_reading_travels_between_processes():
    given = product(offer(), brand={"name": "Acme"}, gtin="036000291452", mpn="M-1", image="/i.jpg", productID="77")
    reading = read(page(given))
    assert pickle.loads(pickle.dumps(reading)) == reading
    texts = [getattr(each, name) for each in reading.evidence for name in ("field", "value", "syntax", "place", "note")]
    texts += [getattr(reading.offer, name) for name in ("title", "sku", "gtin", "mpn", "brand", "image", "product_id")]
    assert {type(text) for text in texts} == {str}, "nothing of the tree goes along"


def test_an_adapter_that_raises_is_an_outcome():
    from harvester.scraping.site import Site

    def finish(reading, context):
        raise ZeroDivisionError("of the site")

    reading = read(page(product()), Site(id="broken", version="2.0.0", title="", finish=finish))
    assert (reading.outcome, reading.adapter_id) == ("ADAPTER_FAILED", "broken")
    assert "ZeroDivisionError" in reading.detail
