"""Structured data as shops write it: what is accepted when the page agrees, and what never is."""

import json

import pytest
from tests.unit.scraping_reader.reading_support import TITLE, body, offer, page, price_of, product, read, script

ACCEPTED = {
    "object": product(),
    "list": product([offer()]),
    "graph": {"@context": "https://schema.org", "@graph": [{"@type": "WebSite", "name": "Shop"}, product()]},
    "top-level list": [{"@type": "Organization", "name": "Shop"}, product()],
    "list of types": product(**{"@type": ["Product", "Thing"]}),
    "type with address": product(**{"@type": "http://schema.org/Product"}),
    "main entity": {"@type": "WebPage", "mainEntity": product()},
    "number": product(offer(19.99)),
    "text with sign": product(offer("$19.99")),
    "many zeros": product(offer("19.990000")),
    "aggregate with equal ends": product({"@type": "AggregateOffer", "lowPrice": "19.99", "highPrice": "19.99",
                                          "priceCurrency": "USD", "availability": "InStock"}),
    "nested offers": product({"@type": "AggregateOffer", "priceCurrency": "USD", "lowPrice": 19.99, "highPrice": 19.99,
                              "offers": [offer()]}),
    "offers in offers": product({"@type": "Offer", "offers": {"@type": "Offer", "offers": offer()}}),
    "specification": product({"@type": "Offer", "availability": "InStock", "priceSpecification": {
        "@type": "PriceSpecification", "price": "19.99", "priceCurrency": "USD"}}),
    "list price next to it": product({"@type": "Offer", "availability": "InStock", "priceSpecification": [
        {"@type": "UnitPriceSpecification", "price": "25.00", "priceCurrency": "USD", "priceType": "https://schema.org/ListPrice"},
        {"@type": "UnitPriceSpecification", "price": "19.99", "priceCurrency": "USD"}]}),
    "strikethrough price next to it": product(offer(priceSpecification={
        "@type": "UnitPriceSpecification", "price": "25.00", "priceCurrency": "USD", "priceType": "StrikethroughPrice"})),
    "price per unit next to it": product(offer(priceSpecification={
        "@type": "UnitPriceSpecification", "price": "1.25", "priceCurrency": "USD",
        "referenceQuantity": {"@type": "QuantitativeValue", "value": "1", "unitCode": "ONZ"}})),
    "member price next to it": product([offer(), offer("15.00", validForMemberTier={"@type": "MemberProgramTier"})]),
    "price for many next to it": product([offer(), offer("17.00", eligibleQuantity={"minValue": 10})]),
    "shipping next to it": product(offer(shippingDetails={"shippingRate": {"value": "5.99", "currency": "USD"}})),
    "offer by reference": {"@graph": [product({"@id": "#offer"}), {"@id": "#offer", **offer()}]},
    "variants at one price": product([offer(sku="H-1"), offer(sku="H-2", stock="OutOfStock")]),
    "group at one price": {"@type": "ProductGroup", "name": TITLE, "hasVariant": [
        {"@type": "Product", "name": TITLE + " red", "sku": "H-1", "offers": offer()},
        {"@type": "Product", "name": TITLE + " blue", "sku": "H-2", "offers": offer()}]},
    "another product": [product(), product(offer("7.00"), name="Screwdriver set", sku="S-1")],
    "list of others": [product(), {"@type": "ItemList", "itemListElement": [{"item": product(offer("7.00"))}]}],
    "related inside": product(isRelatedTo=[product(offer("7.00"), name="Nails")]),
    "past validity": product(offer(priceValidUntil="2020-01-01")),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_oddities_of_structured_data_are_read(name):
    reading = read(page(ACCEPTED[name]))
    assert (reading.detail, price_of(reading)) == ("", "19.99 USD")
    assert reading.offer.availability == "IN_STOCK"


REFUSED = {
    "range": product({"@type": "AggregateOffer", "lowPrice": "19.99", "highPrice": "29.99", "priceCurrency": "USD", "availability": "InStock"}),
    "only the lowest": product({"@type": "AggregateOffer", "lowPrice": "19.99", "priceCurrency": "USD", "availability": "InStock"}),
    "variants at two prices": product([offer(), offer("24.99")]),
    "two blocks that differ": [product(), product(offer("24.99"))],
    "price twice": json.dumps(product()).replace('"price": "19.99"', '"price": "19.99", "price": "24.99"'),
    "list price only": product(offer("25.00")),
    "list price as specification only": product({"@type": "Offer", "availability": "InStock", "priceSpecification": {
        "@type": "UnitPriceSpecification", "price": "19.99", "priceCurrency": "USD", "priceType": "https://schema.org/ListPrice"}}),
    "per unit only": product({"@type": "Offer", "availability": "InStock", "priceSpecification": {
        "@type": "UnitPriceSpecification", "price": "19.99", "priceCurrency": "USD", "referenceQuantity": {"value": 1}}}),
    "two specifications": product({"@type": "Offer", "availability": "InStock", "priceSpecification": [
        {"price": "19.99", "priceCurrency": "USD"}, {"price": "17.99", "priceCurrency": "USD"}]}),
    "another currency": product(offer(currency="EUR")),
    "two currencies": product([offer(), offer(currency="EUR")]),
    "other product only": product(name="Screwdriver set", sku="S-1"),
    "words": product(offer("ask us")),
    "two readings": product(offer("1.999")),
    "out of stock": product(offer(stock="OutOfStock")),
    "unknown stock": product(offer(stock="Perhaps")),
    "cut": json.dumps(product())[:-30],
    "deep": "[" * 100_000,
    "nothing": None,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_agree_is_no_offer(name):
    reading = read(page(REFUSED[name]))
    assert reading.outcome == "NO_AGREEMENT"
    assert reading.detail
    assert reading.evidence, "people see what was looked at"


@pytest.mark.parametrize(
    "written",
    [
        "<!-- {0} -->", "//<![CDATA[\n{0}\n//]]>", "/* {{ */ {0}", "{0};", "{0},",
    ],
)  # fmt: skip
def test_json_is_read_as_people_write_it(written):
    text = json.dumps(product())
    if written == "{0},":
        written = text.replace('"sku": "H-1"', '"sku": "H-1", // the number\n "mpn": "a//b, ]"').replace("}}", "},}")
    assert price_of(read(page(written.replace("{0}", text)))) == "19.99 USD"


def test_control_characters_in_json_are_read():
    text = json.dumps(product(description="first")).replace("first", "a\tb\nc\x01d")
    assert price_of(read(page(text))) == "19.99 USD"


def test_microdata_is_read_and_related_products_are_not():
    shown = f"""<div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">{TITLE}</h1><span itemprop="sku">H-1</span>
    <div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><span itemprop="price" content="19.99">$19.99</span>
    <meta itemprop="priceCurrency" content="USD"><link itemprop="availability" href="https://schema.org/InStock">In stock</div>
    <form><button>Add to cart</button></form>
    <div itemprop="isRelatedTo" itemscope itemtype="https://schema.org/Product"><span itemprop="name">Nails</span>
    <div itemprop="offers" itemscope><span itemprop="price">7.00</span></div></div></div>
    <div class="tile" itemscope itemtype="https://schema.org/Product"><a itemprop="name">Nails</a><b itemprop="price">$7.00</b></div>"""
    reading = read(page(None, shown))
    assert (price_of(reading), reading.offer.sku) == ("19.99 USD", "H-1")
    used = [each for each in reading.evidence if each.is_used and each.syntax == "microdata" and each.field == "price"]
    assert used
    assert used[0].place.endswith("::attr(content)")


def test_metas_agree_with_the_page_like_structured_data():
    head = (
        '<meta property="product:price:amount" content="19.99"><meta property="product:price:currency" content="USD">'
        '<meta property="product:availability" content="in stock">'
    )
    assert price_of(read(page(None, head=head))) == "19.99 USD"
    assert price_of(read(page(None, head=head.replace("19.99", "25.00")))) == "NO_AGREEMENT"
    sale = head.replace('price:amount" content="19.99"', 'price:amount" content="25.00"')
    sale += '<meta property="product:sale_price:amount" content="19.99">'
    reading = read(page(None, head=sale))
    assert (price_of(reading), str(reading.offer.original)) == ("19.99 USD", "25.00 USD")


def test_a_meta_in_another_currency_is_a_contradiction():
    head = (
        '<meta property="product:price:amount" content="18.20"><meta property="product:price:currency" content="EUR">'
    )
    assert price_of(read(page(product(), head=head))) == "NO_AGREEMENT"


def test_a_price_of_zero_is_named():
    zero = product(offer("0.00"))
    assert read(page(zero, body("$0.00"))).outcome == "ZERO_PRICE_EXTRACTED"
    assert read(page(zero, body(""))).outcome == "ZERO_PRICE_EXTRACTED"
    assert read(page(zero)).outcome == "NO_AGREEMENT"


VARIANTS = {
    "@type": "ProductGroup", "name": TITLE, "hasVariant": [
        {"@type": "Product", "name": TITLE + " red", "sku": "H-RED", "gtin12": "036000291452", "offers": offer("19.99", url="/p?variant=11")},
        {"@type": "Product", "name": TITLE + " blue", "sku": "H-BLUE", "offers": offer("24.99", url="/p?variant=22")}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "shown", "expected", "sku"),
    [
        ({"sku": "h-red"}, "$19.99", "19.99 USD", "H-RED"),
        ({"sku": "H-BLUE"}, "$24.99", "24.99 USD", "H-BLUE"),
        ({"variant": "22"}, "$24.99", "24.99 USD", "H-BLUE"),
        ({"variant": "22"}, "$19.99", "NO_AGREEMENT", None),  # the page shows another variant
        ({"variant": "33"}, "$19.99", "NO_AGREEMENT", None),
        ({}, "$19.99", "NO_AGREEMENT", None),
    ],
)
def test_the_address_chooses_the_variant(variant, shown, expected, sku):
    reading = read(page(VARIANTS, body(shown)), variant=variant)
    assert price_of(reading) == expected
    if sku:
        assert reading.offer.sku == sku
        assert reading.offer.product_id == variant.get("variant")


def test_a_variant_that_nothing_names_is_refused_even_if_all_agrees():
    assert price_of(read(page(product()), variant={"variant": "77"})) == "NO_AGREEMENT"
    chosen = body(button='<input type="hidden" name="id" value="77"><button>Add to cart</button>')
    assert price_of(read(page(product(), chosen), variant={"variant": "77"})) == "19.99 USD"


def test_identifiers_are_left_out_where_places_differ():
    reading = read(page([product(gtin="036000291452", mpn="M-1"), product(sku="H-2", mpn="M-1")]))
    assert (reading.offer.sku, reading.offer.gtin, reading.offer.mpn) == (None, "036000291452", "M-1")
    assert reading.warnings == ("Left out because the page names several: sku.",)
    assert read(page(product(gtin="036000291453"))).offer.gtin is None, "its check digit is wrong"


@pytest.mark.parametrize(
    "brand", ["Tool Shop", "toolshop.example", "TOOLSHOP", {"@type": "Brand", "name": "tool shop"}, "N/A", ""]
)
def test_the_name_of_the_shop_is_not_a_brand(brand):
    assert read(page(product(brand=brand))).offer.brand is None


def test_a_brand_an_image_and_shipping_are_read():
    rate = {
        "@type": "OfferShippingDetails",
        "shippingRate": {"@type": "MonetaryAmount", "value": 4.99, "currency": "USD"},
    }
    given = product(offer(shippingDetails=rate), brand={"@type": "Brand", "name": "Acme"}, image=["/i/hammer.jpg"])
    found = read(page(given)).offer
    assert (found.brand, found.image, str(found.shipping)) == ("Acme", "https://shop.example/i/hammer.jpg", "4.99 USD")


def test_an_entity_in_a_name_is_no_other_product():
    title = "Nuts & bolts"
    reading = read(page(product(name="Nuts &amp; bolts"), body(title="Nuts &amp; bolts")))
    assert (reading.offer.title, price_of(reading)) == (title, "19.99 USD")


def test_the_syntaxes_together_must_agree():
    micro = (
        '<div itemscope itemtype="https://schema.org/Product"><meta itemprop="name" content="{}"><div itemprop="offers" itemscope>'
        '<meta itemprop="price" content="{}"><meta itemprop="priceCurrency" content="USD"></div></div>'
    )
    assert price_of(read(page(product(), body() + micro.format(TITLE, "19.99")))) == "19.99 USD"
    assert price_of(read(page(product(), body() + micro.format(TITLE, "24.99")))) == "NO_AGREEMENT"
    assert script(product())


def test_old_microdata_has_the_price_in_the_product():
    shown = f"""<div itemscope itemtype="http://schema.org/Product"><h1 itemprop="name">{TITLE}</h1><div class="price">Our price:
    $<span itemprop="price">19.99</span><meta itemprop="priceCurrency" content="USD"></div>
    <link itemprop="availability" href="http://schema.org/InStock"><form><button>Add to cart</button></form></div>"""
    assert price_of(read(page(None, shown))) == "19.99 USD"
