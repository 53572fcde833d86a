"""What is next to a price on a page, and what of it is never the price."""

import pytest
from tests.unit.scraping_reader.reading_support import TITLE, body, offer, page, price_of, product, read

from harvester.scraping.site import Site

ALONGSIDE = {
    "save": "<p>You save $5.00 (20%)</p>",
    "off": "<p>$5.00 off today</p>",
    "was": "<p>Was $25.00</p>",
    "MSRP": "<dl><dt>MSRP:</dt><dd>$25.00</dd></dl>",
    "compare at": "<p>Compare at <span>$25.00</span></p>",
    "crossed out": '<span style="text-decoration:line-through">$25.00</span>',
    "crossed out by class": '<span class="price--compare">$25.00</span>',
    "screen reader": '<span class="sr-only">Original price was: $25.00. Current price is: $19.99.</span>',
    "per round": "<p>$0.40 per round</p>",
    "per ounce": "<p>($1.25 / oz)</p>",
    "per 100 g": "<p>$2.00 per 100 g</p>",
    "unit price": '<div class="unit-price">$1.25</div>',
    "installments": "<p>4 x $5.00</p>",
    "installments in words": "<p>or 4 interest-free payments of $5.00 with Klarna</p>",
    "per month": "<p>As low as $6.00/mo</p>",
    "free shipping": "<p>Free shipping on orders over $99</p>",
    "shipping": "<p>+ $7.95 shipping</p>",
    "deposit": "<p>Deposit: $5.00</p>",
    "members": "<p>Members pay $17.99</p>",
    "subscribers": "<p>Subscribe &amp; save: <b>$17.99</b></p>",
    "autoship": '<div class="autoship-option">$17.99</div>',
    "coupon": "<p>Coupon: $15.99</p>",
    "points": "<p>Earn $1.00 in rewards</p>",
    "protection plan": '<div class="warranty-offer">2 years for $4.99</div>',
    "bundle": "<p>Bundle price: $49.99</p>",
    "tiers": "<table><tr><th>Quantity</th></tr><tr><td>1 - 4</td><td>$19.99</td></tr><tr><td>5+</td><td>$18.99</td></tr></table>",
    "tiers in words": "<p>2 or More $18.99</p>",
    "difference": '<div class="option">Extra handle +$5.00</div>',
    "gift card": '<aside class="gift-card">Gift cards from $25</aside>',
    "hidden": '<p hidden>$17.99</p><p style="display:none">$17.99</p><p class="d-none">$17.99</p><template>$17.99</template>',
    "choices": "<select><option>Small $17.99</option><option>Large $21.99</option></select>",
    "converted": "<p>€18.20</p>",
    "ecotax": "<p>Including $0.10 for ecotax</p>",
    "without tax": "<p>$16.80 tax excl.</p>",
    "a variant that is sold out": '<fieldset class="sizes"><label>Small<span>Sold out</span></label><label>Large</label></fieldset>',
    "a difference with a blank": '<div class="option">Gold <b>+ $5.00</b></div>',
    "after a coupon": "<p>$17.99 after coupon SAVE10</p>",
    "after a rebate": "<p>$17.99 after $2.00 mail-in rebate</p>",
    "for cash": "<p>Cash/eCheck price: <b>$17.99</b></p>",
    "for students": "<p>Students: $17.99</p>",
    "for two": "<p>$17.99 <small>when you buy 2 or more</small></p>",
    "another condition": "<p>Open box: $17.99</p>",
    "compared": '<table class="compare"><tr><td>Acme Pro hammer</td><td>$25.00</td></tr></table>',
    "lowest of 30 days": "<p>Lowest price of the last 30 days: $18.49</p>",
}


@pytest.mark.parametrize("name", ALONGSIDE)
def test_other_amounts_next_to_the_price_do_not_matter(name):
    assert price_of(read(page(product(), body(near=ALONGSIDE[name])))) == "19.99 USD"


@pytest.mark.parametrize("name", ALONGSIDE)
def test_and_none_of_them_is_taken_for_the_price(name):
    """The page shows only the other amount, and the markup has every amount of it in turn."""
    for amount in (
        "25.00",
        "5.00",
        "17.99",
        "18.99",
        "0.40",
        "99.00",
        "15.99",
        "4.99",
        "49.99",
        "7.95",
        "6.00",
        "1.25",
        "2.00",
        "1.00",
        "18.49",
    ):
        reading = read(page(product(offer(amount)), body("", near=ALONGSIDE[name])))
        assert price_of(reading) in {"NO_AGREEMENT", "19.99 USD"}, amount


DOUBTFUL = {
    "two amounts": body("$19.99 $17.99"),
    "a range": body("$19.99 - $29.99"),
    "from": body("From $19.99"),
    "as low as": body("As low as $19.99"),
    "in cart": body(near="<p>See price in cart</p>"),
    "too low to show": body(near="<p>Price too low to display</p>"),
    "log in": body(near="<p>Log in to see price</p>"),
    "only crossed out": body("<s>$19.99</s>"),
    "only a former price": body("Was $19.99"),
    "only for members": body("Members: $19.99"),
    "without tax": body("$19.99 excl. VAT $23.99 incl. VAT"),
    "hidden": body('<span style="display:none">$19.99</span>'),
    "none": body(""),
    "another sign": body("£19.99"),
    "too many decimals": body("$19.9999"),
    "price of one of ten": body("$19.99 / 10 rounds"),
    "price after adding": body(near="<a>Add to cart to see our low price</a>"),
    "after a rebate": body("<b>$19.99</b> <small>after $2.00 mail-in rebate</small>"),
    "with a code": body("<b>$19.99</b> <small>with code SAVE20</small>"),
    "if several are bought": body("$19.99<br><small>when you buy 20 or more</small>"),
    "case of twelve": body("$19.99 per bottle when you buy a case"),
    "for cash": body("Cash/eCheck price: <b>$19.99</b>"),
    "first order": body("$19.99 on your first order"),
    "with a contract": body("$19.99 with 2-year contract"),
    "due today": body("$19.99 due today"),
    "per day": body("Rent: $19.99 / day"),
    "bid": body("Current bid: $19.99"),
    "deposit": body("$19.99", near="<p>Deposit now, balance $180.00 before delivery</p>"),
    "price of ten": body("$19.99 / 10"),
    "and up": body("$19.99+"),
    "base price": body("Base price $19.99"),
    "from above": body("<div>Desde</div><div>$19.99</div>"),
    "from far above": body("<div><div><span>From</span></div><div><div><span>$19.99</span></div></div></div>"),
    "was far above": body("<div><div><span>Was</span></div><div><div><span>$19.99</span></div></div></div>"),
    "members far above": body("<div><div><span>Member price</span></div><div><div><b>$19.99</b></div></div></div>"),
    "MSRP behind": body("$19.99 MSRP"),
    "was behind": body("$19.99 (was) $17.99 (now)"),
    "converted to the currency of the markup": body("€17.50 <small>($19.99)</small>"),
    "elsewhere": body("Elsewhere <b>$19.99</b>"),
    "sticker price": body("Sticker price <b>$19.99</b>"),
    "average": body("Average price: <b>$19.99</b>"),
    "second item": body("2nd item <b>$19.99</b>"),
    "in the shop": body("In-store price <b>$19.99</b>"),
    "abbreviated": body("Orig. $19.99"),
    "recommended": body("Unverb. Preisempf. $19.99"),
    "only with a way to pay": body("$19.99 <small>à vista no Pix</small>"),
    "another amount in the button": body(button="<button>Add to cart - $24.99</button>"),
    "a lower amount of a class": body('<span class="x">$19.99</span> <span class="unit-price">$17.99</span>'),
    "a regular price with a French saving": body(
        '<span class="regular-price">$19.99</span><p class="now">$16.99 Économisez $3.00</p>'
    ),
    "only in a related product": body(
        "", below='<div class="related"><h3>Nails</h3><b>$19.99</b><button>Add to cart</button></div>'
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_page_that_leaves_doubt_gives_no_offer(name):
    assert price_of(read(page(product(), DOUBTFUL[name]))) == "NO_AGREEMENT"


@pytest.mark.parametrize(
    ("shown", "amount", "currency"),
    [
        ("$1,299.00", "1299.00", "USD"), ("1.299,00 €", "1299.00", "EUR"), ("1 299,00 kr", "1299.00", "SEK"), ("19,99&nbsp;€", "19.99", "EUR"),
        ("€ 19,-", "19.00", "EUR"), ("CHF 19.90", "19.90", "CHF"), ("1'299.00 CHF", "1299.00", "CHF"), ("19,99 zł", "19.99", "PLN"),
        ("1 299 Kč", "1299.00", "CZK"), ("£19.99", "19.99", "GBP"), ("USD 19.99", "19.99", "USD"), ("$19.99 USD", "19.99", "USD"),
        ("US$19.99", "19.99", "USD"), ("<span>$</span><span>19</span><sup>99</sup>", "19.99", "USD"),
        ("<span>$</span><span>19</span><span>.</span><span>99</span>", "19.99", "USD"), ("<b>19</b><sup>,99</sup> €", "19.99", "EUR"),
        ("12€95", "12.95", "EUR"), ("<b>12€</b><sup>95</sup>", "12.95", "EUR"), ("1 290:-", "1290.00", "SEK"), ("1.290,-", "1290.00", "NOK"),
        ("<b>$</b>\n <b>19</b>\n <sup>99</sup>", "19.99", "USD"), ("₹1,29,999", "129999.00", "INR"), ("$19.99<sup>1</sup>", "19.99", "USD"),
        ("$<b>1,249</b><sup>00</sup>", "1249.00", "USD"), ("Price: $19.99", "19.99", "USD"),
        ("$19.99 each", "19.99", "USD"), ("19,99 € inkl. MwSt. zzgl. Versand", "19.99", "EUR"), ("$<!-- -->19.99", "19.99", "USD"),
        ('<span class="a-price"><span class="a-offscreen">$19.99</span><span aria-hidden="true">$<span>19<span>.</span></span><span>99</span></span></span>', "19.99", "USD"),
    ],
)  # fmt: skip
def test_amounts_are_read_as_shops_write_them(shown, amount, currency):
    reading = read(page(product(offer(amount, currency)), body(shown)))
    assert price_of(reading) == f"{amount} {currency}", reading.detail


@pytest.mark.parametrize(
    ("words", "markup", "expected"),
    [
        ("In stock", "InStock", "IN_STOCK"), ("17+ in stock", "InStock", "IN_STOCK"), ("Only 3 left in stock", "LimitedAvailability", "IN_STOCK"),
        ("Auf Lager", "InStock", "IN_STOCK"), ("Sofort lieferbar", "InStock", "IN_STOCK"), ("En stock", "InStock", "IN_STOCK"),
        ("Disponibile", "InStock", "IN_STOCK"), ("Op voorraad", "InStock", "IN_STOCK"), ("Skladem", "InStock", "IN_STOCK"),
        ("I lager", "InStock", "IN_STOCK"), ("På lager", "InStock", "IN_STOCK"), ("Dostępny", "InStock", "IN_STOCK"),
        ("Disponível", "InStock", "IN_STOCK"), ("Online only", "OnlineOnly", "IN_STOCK"),
        ("Available on backorder", "BackOrder", "BACKORDER"), ("Pre-order now", "PreOrder", "BACKORDER"), ("Vorbestellbar", "PreSale", "BACKORDER"),
        ("In stock", "OutOfStock", "NO_AGREEMENT"), ("Out of stock", "InStock", "NO_AGREEMENT"), ("In stock", "Reserved", "NO_AGREEMENT"),
        ("Notify me when back in stock", "OutOfStock", "NO_AGREEMENT"),
    ],
)  # fmt: skip
def test_stock_needs_the_page_and_the_markup(words, markup, expected):
    reading = read(page(product(offer(stock=markup)), body(stock=words, button="<button>Add to cart</button>")))
    assert (reading.offer.availability if reading.outcome == "OFFER" else reading.outcome) == expected


@pytest.mark.parametrize(
    ("words", "button"),
    [
        ("Out of stock", ""), ("Sold out", "<button disabled>Sold out</button>"), ("", "<button disabled>Sold out</button>"),
        ("Nicht auf Lager", ""), ("Ausverkauft", ""), ("Rupture de stock", ""), ("Agotado", ""), ("Esaurito", ""), ("Uitverkocht", ""),
        ("Slutsåld", ""), ("Udsolgt", ""), ("Vyprodáno", ""), ("Niedostępny", ""), ("Esgotado", ""), ("", "<button>Notify me</button>"),
        ("This product is currently unavailable.", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("markup", ["OutOfStock", "SoldOut", "Discontinued", "InStoreOnly"])
def test_out_of_stock_with_and_without_a_price(words, button, markup):
    sold_out = product(offer(stock=markup))
    reading = read(page(sold_out, body(stock=words, button=button)))
    assert (price_of(reading), reading.offer.availability) == ("19.99 USD", "OUT_OF_STOCK")
    assert read(page(sold_out, body("", stock=words, button=button))).outcome == "OOS_NO_PRICE"


@pytest.mark.parametrize(
    "words",
    [
        "Ships in 3 weeks", "On order, expected 12 April", "More on the way", "Available from 12 April", "Back in stock soon",
        "Available soon", "Not available online", "Unavailable in your area", "Built to order", "0 in stock", "Qty available: 0",
        "Availability: No", "Availability: Backorder, 2-3 weeks", "No stock", "Item no longer sold", "This style has been retired",
        "Ships when available", "Lead time: 6 weeks", "Waitlist", "Inventory: out", "In-store only", "Pick up only",
        "Delivery date: to be confirmed", "Lieferzeit: 3-4 Wochen", "Call for availability",
    ],
)  # fmt: skip
@pytest.mark.parametrize("site", ["structured", "shopify"])
def test_words_that_doubt_it_count_more_than_the_button(words, site):
    button = '<button name="add">Add to cart</button>'
    assert read(page(product(), body(stock="", button=button)), site).outcome == "OFFER"
    reading = read(page(product(), body(stock=words, button=button)), site)
    assert reading.outcome in {"NO_AGREEMENT", "CONTRADICTION"}


@pytest.mark.parametrize(
    "words",
    [
        "Ships within 24 hours", "Hurry, only 3 left in stock", "Shipping was $12.00, now free", "Delivery in 2-4 days",
        "Pickup currently unavailable at the shop", "In stock - ships today", "Free returns within 4 weeks",
    ],
)  # fmt: skip
def test_words_about_delivery_leave_no_doubt(words):
    assert price_of(read(page(product(), body(stock=words)))) == "19.99 USD"


def test_sold_out_in_the_markup_counts_if_nothing_can_be_pressed():
    gone = product(offer(stock="OutOfStock"))
    for button in ("", '<input type="submit" value="Add to cart" disabled>'):
        assert read(page(gone, body(stock="", button=button))).offer.availability == "OUT_OF_STOCK"
    assert read(page(gone, body(stock="", button="<button>Add to cart</button>"))).outcome == "NO_AGREEMENT"
    assert read(page(product(), body(stock="", button=""))).outcome == "NO_AGREEMENT"


def test_a_disabled_button_that_leads_says_nothing_about_stock():
    button = '<input id="form-action-addToCart" type="submit" value="Add to Cart" disabled style="display:none">'
    shown = body(stock="", button=f'<p class="alertBox-message">Sold Out</p>{button}').replace(
        "<h1", '<h1 class="productView-title"'
    )
    gone = page(product(offer(stock="OutOfStock")), shown)
    assert read(gone, "bigcommerce").offer.availability == "OUT_OF_STOCK"
    assert read(page(product(), shown), "bigcommerce").outcome == "NO_AGREEMENT"


def test_cents_in_another_part_are_not_dropped():
    for cents in ("99", ".99"):
        shown = body(f"<div>$19</div><div>{cents}</div>")
        assert price_of(read(page(product(offer("19.00")), shown))) == "NO_AGREEMENT"
    assert price_of(read(page(product(offer("19.00")), body("<div>$19</div><div>New</div>")))) == "19.00 USD"


def test_a_page_with_two_products_has_no_price():
    both = body(title="Acme hammer A") + body("$29.99", title="Acme hammer B")
    given = page([product(name="Acme hammer A"), product(offer("29.99"), name="Acme hammer B")], both)
    assert price_of(read(given.replace(f"{TITLE} - Shop".encode(), b"Compare hammers"))) == "TITLE_NOT_FOUND"


@pytest.mark.parametrize(
    ("form", "expected"),
    [("/cart/add", "19.99 USD"), ("/wishlist", "NO_AGREEMENT"), ("", "NO_AGREEMENT")],
)
def test_add_is_a_buy_button_in_a_form_that_goes_to_the_cart(form, expected):
    shown = body(stock="", button="").replace("<form>", f'<form action="{form}"><button>+ Add</button>')
    assert price_of(read(page(product(), shown))) == expected


def test_a_class_of_stock_is_markup():
    silent = {"@type": "Offer", "price": "19.99", "priceCurrency": "USD"}
    for classes, words, expected in (
        ("stock available", "In stock", "IN_STOCK"),
        ("stock unavailable", "Out of stock", "OUT_OF_STOCK"),
        ("available", "In stock", None),
    ):
        button = "<button>Add to cart</button>" if expected == "IN_STOCK" else ""
        shown = body(stock="", button=button, near=f'<div class="{classes}"><span>{words}</span></div>')
        reading = read(page(product(silent), shown))
        assert (reading.offer and reading.offer.availability) == expected


ADD, GONE = "<button>Add to cart</button>", "<button disabled>Sold out</button>"


@pytest.mark.parametrize(
    ("words", "button", "expected"),
    [
        ("In stock", ADD, "IN_STOCK"), ("Only 3 left in stock", ADD, "IN_STOCK"), ("Auf Lager", "<button>In den Warenkorb</button>", "IN_STOCK"),
        ("Sold out", GONE, "OUT_OF_STOCK"), ("Out of stock", "<button disabled>Add to cart</button>", "OUT_OF_STOCK"), ("Available for pre-order", "<button>Pre-order</button>", "BACKORDER"),
        # One of the two, two that differ, or words that may be about something else.
        ("", ADD, "NO_AGREEMENT"), ("In stock", "", "NO_AGREEMENT"), ("In stock", "<button disabled>Add to cart</button>", "NO_AGREEMENT"),
        ("", GONE, "NO_AGREEMENT"), ("Out of stock", "", "NO_AGREEMENT"), ("Out of stock", ADD, "NO_AGREEMENT"), ("Available on backorder", ADD, "NO_AGREEMENT"), ("In stock", GONE, "NO_AGREEMENT"),
        ("Available", ADD, "NO_AGREEMENT"), ("In stock at Brooklyn", ADD, "NO_AGREEMENT"), ("In stock<p>Ships in 6-8 weeks", ADD, "NO_AGREEMENT"),
        ("In stock<p>Availability: ask us", ADD, "NO_AGREEMENT"),
    ],
)  # fmt: skip
def test_without_markup_stock_needs_the_words_and_the_button(words, button, expected):
    silent = {"@type": "Offer", "price": "19.99", "priceCurrency": "USD"}
    reading = read(page(product(silent), body(stock=words, button=button)))
    assert (reading.offer.availability if reading.outcome == "OFFER" else reading.outcome) == expected


def test_prices_of_tiers_in_data_attributes_are_not_the_price():
    tier = '<ul class="prices-tier"><li>Buy 3 for <span data-price-amount="15">$15.00</span> each</li></ul>'
    assert price_of(read(page(product(), body(near=tier)))) == "19.99 USD"
    assert price_of(read(page(product(), body(near=tier.replace("prices-tier", "x"))))) == "NO_AGREEMENT"


def test_the_price_may_be_in_the_button():
    shown = body("", button="<button>Add to cart &bull; $19.99</button>")
    assert price_of(read(page(product(), shown))) == "19.99 USD"


@pytest.mark.parametrize(
    "near",
    [
        '<table class="compare"><tr><td>Acme Pro hammer</td><td>$25.00</td></tr></table>',
        '<div class="combo"><b>Nails by Acme</b> <del>$25.00</del></div>',
        "<del>$1999.00</del>",
    ],
)
def test_an_amount_of_something_else_is_not_the_former_price(near):
    assert read(page(product(), body(near=near))).offer.original is None


@pytest.mark.parametrize("brand", ["Tool Shop", "The Tool Shop", "Tool Shop, LLC", "www.toolshop.example", TITLE])
def test_shop_and_title_are_not_a_brand(brand):
    assert read(page(product(brand=brand))).offer.brand is None


@pytest.mark.parametrize("sku", ["https://shop.example/p/hammer", TITLE, "acme-claw-hammer-16-oz"])
def test_an_address_or_a_title_is_not_an_article_number(sku):
    assert read(page(product(sku=sku))).offer.sku is None


def test_buttons_of_other_products_do_not_make_this_one_available():
    others = "".join(
        f'<div class="tile"><h3><a href="/p{n}">Nails {n}</a></h3><b>$7.0{n}</b><button>Add to cart</button></div>'
        for n in range(3)
    )
    shown = body(stock="Out of stock", button="", below=f"<section><h2>Picked by us</h2>{others}</section>")
    assert read(page(product(offer(stock="OutOfStock")), shown)).offer.availability == "OUT_OF_STOCK"
    assert read(page(product(), shown)).outcome == "NO_AGREEMENT"
    silent = body(stock="", button="", below=f"<section>{others}</section>")
    assert read(page(product(), silent)).outcome == "NO_AGREEMENT"


def test_a_bar_with_the_price_of_another_variant_leaves_doubt():
    bar = '<div class="sticky-cart-bar"><span>$24.99</span><button>Add to cart</button></div>'
    assert price_of(read(page(product(), body(below=bar)))) == "NO_AGREEMENT"
    assert price_of(read(page(product(), body(below=bar.replace("24.99", "19.99"))))) == "19.99 USD"


def test_a_badge_or_a_title_above_the_price_does_not_change_what_it_is():
    badge = body().replace('<div class="price">', '<p>Free shipping</p><div class="price">')
    assert price_of(read(page(product(), badge))) == "19.99 USD"
    title = "The original hammer"
    assert (
        price_of(read(page(product(name=title), body(title=title)).replace(TITLE.encode(), title.encode())))
        == "19.99 USD"
    )


def test_words_in_the_form_around_the_options_are_about_the_product():
    form = '<div class="product-options"><p>Out of stock</p><div class="option">Color</div><button>Add to cart</button></div>'
    assert read(page(product(), body(stock="", button=form))).outcome == "NO_AGREEMENT"


def test_an_element_with_the_role_of_a_button_is_one():
    assert price_of(read(page(product(), body(stock="", button='<div role="button">Add to cart</div>')))) == "19.99 USD"


def test_tax_and_the_former_price_are_kept():
    found = read(page(product(offer(currency="EUR")), body("<s>25,00 €</s> 19,99 € inkl. MwSt."))).offer
    assert (str(found.price), str(found.original), found.is_tax_included) == ("19.99 EUR", "25.00 EUR", True)


def test_a_data_attribute_in_cents_is_the_same_price_and_another_amount_is_not():
    for value, expected in (("1999", "19.99 USD"), ("19.99", "19.99 USD"), ("17.99", "NO_AGREEMENT")):
        form = f'<div data-product-price="{value}"><button>Add to cart</button></div>'
        assert price_of(read(page(product(), body(button=form)))) == expected


def test_evidence_says_where_everything_is_and_finds_it_again():
    reading = read(page(product(), body(near="<p>Was $25.00</p>")))
    for evidence in reading.evidence:
        if evidence.field == "price" and evidence.value == "$19.99":
            again = read(page(product(), body(near="<p>Was $25.00</p>")), chosen={"price": evidence.place})
            assert price_of(again) == "19.99 USD"
            break
    else:
        pytest.fail("the price on the page is in the evidence")
    former = next(each for each in reading.evidence if each.value == "$25.00")
    assert (former.is_used, former.field) == (True, "original")


def test_a_place_that_a_person_chose_leads():
    two = page(product([offer(), offer("24.99")]), body("$19.99 $24.99"))
    assert price_of(read(two)) == "NO_AGREEMENT"
    assert price_of(read(two, chosen={"price": "json:offers[1].price"})) == "24.99 USD"
    assert read(two, chosen={"price": "json:"}).outcome == "SELECTOR_FAILURE"


def test_an_override_of_the_source_leads_and_is_named_in_the_version():
    shown = body(near='<div class="special">$17.99</div>')
    places = {"places": {"price": [".special::text"]}, "version": 3}
    agreed = read(page(product(offer("17.99")), shown), overrides=places)
    assert (price_of(agreed), agreed.adapter_version) == ("17.99 USD", "1.1.0+3")
    assert read(page(product(), shown), overrides=places).outcome == "CONTRADICTION"
    for bad in (
        {"places": {"price": ["::::"]}},
        {"places": {"color": ["b::text"]}},
        {"requires_js": True},
        {"exclude": "div"},
    ):
        assert read(page(product()), overrides=bad).outcome == "SELECTOR_FAILURE"


SITE = Site(
    id="toolshop", version="1.0.0", title="Tool Shop", domains=("toolshop.example",),
    places={"price": (".price::text",), "availability": (".availability::text",)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("data", "shown", "outcome"),
    [
        (product(), body(), "OFFER"),
        (None, body("19.99 USD"), "OFFER"),
        (product(), body("$24.99"), "CONTRADICTION"),
        (product(), body(stock="Out of stock"), "CONTRADICTION"),
        (product(), body(stock="Ask in the shop"), "UNKNOWN_AVAILABILITY"),
        (product(), body(stock=""), "UNKNOWN_AVAILABILITY"),
        (product(), body("$19.99 $17.99"), "AMBIGUOUS_PRICE"),
        (product(), body("From $19.99"), "AMBIGUOUS_PRICE"),
        (product(), body("$19.99 - $29.99"), "AMBIGUOUS_PRICE"),
        (None, body("$19.99"), "MISSING_REQUIRED_FIELD"),
        (product(), body("$0.00"), "ZERO_PRICE_EXTRACTED"),
        (product(offer("1999", "JPY")), body("JPY 19.99"), "INVALID_PRICE"),
        (product(), body(""), "PRICE_NOT_FOUND"),
        (product(), body().replace('class="price"', ""), "SELECTOR_NOT_FOUND"),
        (product(offer(stock="OutOfStock")), body("", stock="Sold out", button=""), "OOS_NO_PRICE"),
        (product(), body(title=""), "TITLE_NOT_FOUND"),
        (product(offer("1000000.00")), body("$1,000,000.00"), "VALIDATION_FAILED"),
        (product(name="Another thing"), body("19.99 USD"), "CONTRADICTION"),
    ],
)
def test_a_site_file_leads_and_every_doubt_has_its_name(data, shown, outcome):
    reading = read(page(data, shown).replace(f"<title>{TITLE} - Shop".encode(), b"<title>"), SITE)
    assert (reading.outcome, reading.adapter_id) == (outcome, "toolshop")
    assert (reading.detail == "") == (outcome == "OFFER")


COST = Site(
    id="toolshop", version="1.0.0", title="Tool Shop", domains=("toolshop.example",),
    places={"price": (".cost::text",), "availability": (".availability::text",)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("cost", "currency", "outcome"),
    [
        ("<b class=cost>101.00</b>", "USD", "101.00 USD"),
        ("<b class=cost><i>101</i><sup>.00</sup></b>", "USD", "101.00 USD"),
        ("<b class=cost>101.00</b>", None, "MISSING_REQUIRED_FIELD"),
        ("<b class=cost>101.00 4.50</b>", "USD", "PRICE_NOT_FOUND"),
        ("<b class=cost>rated 4.50</b>", "USD", "PRICE_NOT_FOUND"),
        ("<s><b class=cost>101.00</b></s>", "USD", "PRICE_NOT_FOUND"),
    ],
)
def test_the_place_of_a_price_that_says_nothing_but_an_amount_needs_no_currency(cost, currency, outcome):
    shown = body("", near=cost).replace('class="price"', "")
    assert price_of(read(page(None, shown), COST, default_currency=currency)) == outcome


def test_amounts_that_were_computed_are_rounded_and_only_in_the_markup():
    assert price_of(read(page(product(offer("19.989999"))))) == "19.99 USD"
    assert price_of(read(page(product(offer("19.9")), body("$19.899999")))) == "NO_AGREEMENT"


@pytest.mark.parametrize(
    ("sent", "expected"), [("19.99", "19.99 USD"), ("24.99", "NO_AGREEMENT"), ("abc", "NO_AGREEMENT")]
)
def test_the_price_that_the_form_sends_is_markup(sent, expected):
    button = f'<input type="hidden" name="price" value="{sent}"><button>Add to cart</button>'
    assert price_of(read(page(None, body(button=button)), default_currency="USD")) == expected


def test_an_offer_of_microdata_without_its_product_is_markup():
    price = '<span itemprop="offers" itemscope itemtype="http://schema.org/Offer">{0}<meta itemprop="price" content="19.99"></span>'
    assert price_of(read(page(None, body(price.format("19,99 €"))))) == "19.99 EUR", "the page names the currency"
    assert price_of(read(page(None, body(price.format("17,99 €"))))) == "NO_AGREEMENT"


def test_classes_around_the_title_say_nothing_about_an_amount():
    shown = (
        body()
        .replace('class="product"', 'class="product outlet shipping-taxable old bundle-member"')
        .replace(' class="price"', "")
    )
    assert price_of(read(page(product(), shown))) == "19.99 USD"


def test_a_notice_above_the_title_denies_stock_and_cannot_say_it():
    for notice, expected in (("This product is sold out.", "NO_AGREEMENT"), ("In stock", "19.99 USD")):
        assert price_of(read(page(product(), f'<p class="notice">{notice}</p>{body()}'))) == expected
    silent = {"@type": "Offer", "price": "19.99", "priceCurrency": "USD"}
    assert price_of(read(page(product(silent), f"<p>In stock</p>{body(stock='')}"))) == "NO_AGREEMENT"
