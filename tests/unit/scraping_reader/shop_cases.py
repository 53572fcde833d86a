"""Every theme in its usual states, and pages on which an amount or a text next to the product is easily taken for its own."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.unit.scraping_reader import shop_themes as first
from tests.unit.scraping_reader import shop_themes_more as more
from tests.unit.scraping_reader.shop_documents import BACK, IN, OUT, Document, Item, More

Theme = Callable[[Item, More], str]
#: Theme, style of its amounts, and whether it can say that something comes later.
THEMES: tuple[tuple[Theme, str, bool], ...] = (
    (first.woo_storefront, "us", True), (first.woo_no_stock_text, "au", True), (first.shopify_dawn, "us_code", False), (first.shopify_group, "ca", False),
    (first.shopify_debut, "us", False), (first.magento_luma, "us", False), (first.hyva, "uk", False), (first.bigcommerce, "us", True),
    (first.prestashop, "fr", True), (first.shopware, "de", True), (first.opencart, "us", False), (more.salesforce, "us", False),
    (more.hybris, "us", False), (more.squarespace, "us", False), (more.wix, "us", False), (more.nopcommerce, "us", False), (more.ecwid, "us", True),
    (more.lightspeed, "nl", True), (more.retailer_next, "us", False), (more.electronics, "us", True), (more.european("de"), "de", True),
    (more.european("fr"), "fr", False), (more.european("es"), "es", True), (more.european("it"), "ie", True), (more.european("nl"), "nl", True),
    (more.european("pl"), "pl", True), (more.european("sv"), "se", True), (more.european("da"), "dk", True), (more.european("cs"), "cz", True),
    (more.european("pt"), "br", False), (more.european("hu"), "hu", False), (more.european("en"), "uk", False), (more.european("de"), "ch", False),
    (more.french_euro_cents, "fr", False), (more.british_vat, "uk", False), (more.brazilian, "br", False), (more.japanese, "jp", False),
    (more.indian, "in", False), (more.no_availability, "us", True),
)  # fmt: skip


def crowd(i: Item) -> More:
    """What modern pages put around the price."""
    return More(
        near=(
            f'<div class="installments">4 interest-free payments of {i.part("0.25")} with Klarna. <a>Learn more</a></div>'
            f'<div class="rewards">Earn {i.part("0.05")} back in rewards</div><div class="club"><p>Club members pay {i.part("0.9")}</p></div>'
            f'<div class="autoship"><label><input type="radio" name="plan"> Subscribe &amp; save 10%: <b>{i.part("0.9")}</b></label></div>'
            f'<p class="note">Free returns on orders over {i.part("2")}</p><p class="unit-price">({i.part("0.02")} / oz)</p>'
        ),
        below=(
            f'<section class="frequently-bought-together"><h2>Frequently bought together</h2><p>Total price: {i.part("2.4")}</p><button>Add both to cart</button></section>'
            f'<div class="warranty-offer"><p>3-year plan {i.part("0.3")}</p></div>'
        ),
    )


def documents() -> Iterator[Document]:
    """Every theme, in stock, on sale, sold out, to come later, and with a crowd of other amounts."""
    for number, (theme, style, has_later) in enumerate(THEMES):
        is_whole = style in {"se", "cz", "jp", "kr", "hu", "ru"}
        price = f"{(number * 37) % 180 + 19}{'' if is_whole else '.95'}"
        price = f"{int(price) * 10 + 9}" if is_whole else price
        item = Item(
            title=f"Nordvik Ridge {number + 2}P tent, sand",
            price=price,
            style=style,
            number=58_000 + number,
            sku=f"ZX-{4400 + number}",
        )
        name = f"{theme.__name__}_{style}"
        was = item.share("1.25")
        states = [
            ("plain", item, More()),
            ("sale", replace(item, was=was), More()),
            ("out", replace(item, stock=OUT), More()),
            ("crowd", item, crowd(item)),
        ]
        if number % 3 == 0:
            dear = replace(item, price=item.share("61"), was="")
            states.append(("dear", dear, crowd(dear)))
        if has_later:
            states.append(("later", replace(item, stock=BACK), More()))
        for state, each, what in states:
            sku = each.sku
            yield Document(
                name=f"{name}-{state}", html=theme(each, what), item=each, price=each.price, stock=each.stock, sku=sku
            )


def _text(given: str) -> Callable[[Item], More]:
    """A part of the page in which P90 stands for 90 % of the price, as the shop writes it."""

    def make(i: Item) -> More:
        return More(near=re.sub(r"P(\d+)", lambda match: i.part(str(int(match[1]) / 100)), given))

    return make


#: Name -> what is added below the price of a page whose own price and stock are right. `None`: no offer may come of it.
#: Otherwise an offer may come, and has to be right.
ADDED: dict[str, tuple[str, bool]] = {
    # Lower prices that are the true ones, in words that also stand for something else.
    "instant": ('<div class="deal"><span>Price after instant savings</span> <b>P80</b></div>', False),
    "you_pay": ("<p>You pay: <strong>P75</strong></p>", False),
    "reduced": ('<div class="promo"><div>Reduced to</div><div class="value">P70</div></div>', False),
    "sale_ends": ("<p>Flash sale <b>P60</b> ends tonight</p>", False),
    "cart_price": ("<p>Price in cart: P85</p>", False),
    "percent_price": ("<p>Save 20%: P80</p>", False),
    "total_lower": ('<p class="sum">Total price P90</p>', False),
    "after_savings": ("<p><b>P80</b> after instant savings</p>", False),
    "hidden_in_cart": ("<p>Add to cart to see our lowest price</p>", False),
    "call": ("<p>Call for best price</p>", False),
    "log_in": ("<p>Log in to see your price</p>", False),
    "one_time": ('<div><label><input type="radio" checked> Subscribe P100</label><label><input type="radio"> One-time purchase P111</label></div>', False),
    # Amounts that are something else.
    "trade_in": ("<p>P60 with eligible trade-in</p>", True),
    "monthly": ("<p>or P4 /mo for 24 months at 0% APR with card</p>", True),
    "lowest_lately": ("<p>Lowest price of the last 30 days: P95</p>", True),
    "coupon": ("<p>Extra 15% off with code TRAIL15</p>", True),
    "first_order": ("<p>Sign up and save 10% on your first order</p>", True),
    "options": ('<fieldset class="options"><label><input type="checkbox"> Footprint (+P10)</label><label><input type="checkbox"> Repair kit (+P5)</label></fieldset>', True),
    "replaced": ('<p>Compare: <a href="/p/4">Ridge 5P</a> P130</p>', True),
    "points": ("<p>or 4,500 points. Worth P12 in store credit</p>", True),
    "shipping_cost": ("<p>Shipping from P8, express P15</p>", True),
    "deposit_info": ("<p>Refundable deposit: P20</p>", True),
    "tiers": ('<table class="bulk"><tr><th>Qty</th><th>Price</th></tr><tr><td>1-4</td><td>P100</td></tr><tr><td>5-9</td><td>P95</td></tr><tr><td>10+</td><td>P90</td></tr></table>', True),
    "used": ("<p>Used from P55 (3 offers)</p>", True),
    "price_match": ("<p>Price match guarantee. Find it for less? We beat it by 5%.</p>", True),
    "duty": ("<p>Import fees deposit P7 at checkout</p>", True),
    "member": ('<p class="plus">Plus price <b>P85</b> <a>Join</a></p>', True),
    "cash": ("<p>P97 when you pay by bank transfer</p>", True),
    "installation": ("<p>Add expert assembly for P35</p>", True),
    "unit": ("<p>P2 / 100 g</p>", True),
    "rating": ("<p>4.7 / 5 (1,234) · 98% recommend</p>", True),
    # Texts about stock that deny what markup and button say.
    "discontinued": ("<p>This product has been discontinued by the manufacturer.</p>", False),
    "stores_only": ("<p>Available in stores only</p>", False),
    "weeks": ("<p>Made to order. Ships in 4-6 weeks.</p>", False),
    "not_here": ("<p>Sorry, this item cannot be shipped: not available for delivery in your area</p>", False),
    "zero_left": ("<p>0 left in stock</p>", False),
    "unknown_status": ("<dl><dt>Availability:</dt><dd>Ask our experts</dd></dl>", False),
    "preorder_text": ("<p>Available for pre-order. Release date: May 3</p>", False),
    "notify": ('<div class="bis"><p>Email me when it is back in stock</p></div>', False),
    "season": ("<p>Sold out for the season</p>", False),
    "quote": ("<p>Request a quote for this item</p>", False),
    "spoken_label": ('<p class="av"><span class="visually-hidden">Availability:</span> Out of stock</p>', False),
    "spoken_choice": ('<div><span class="visually-hidden">Variant sold out or unavailable</span></div>', True),
    "arrives": ("<p>Free delivery, arrives by Jun 14</p>", True),
    "ships_today": ("<p>Order within 3 hours, ships today</p>", True),
    "pickup": ("<p>Pickup: ready within 2 hours at Brooklyn</p>", True),
    "few": ("<p>Only 3 left - order soon</p>", True),
}  # fmt: skip
HOSTS: tuple[Theme, ...] = (
    first.woo_storefront, first.shopify_dawn, first.magento_luma, first.bigcommerce, more.european("en"), more.retailer_next,
    more.nopcommerce, more.salesforce,
)  # fmt: skip


def hard_documents() -> Iterator[Document]:
    """Pages on which something next to the product is easily taken for its own; each addition on two themes."""
    for number, (name, (text, is_right)) in enumerate(ADDED.items()):
        for theme in (
            HOSTS[number % len(HOSTS)],
            HOSTS[(number * 3 + 1) % len(HOSTS)],
            HOSTS[(number * 5 + 4) % len(HOSTS)],
        ):
            item = Item(
                title=f"Nordvik Fell {number + 20} stove, steel",
                price=f"{(number * 53) % 300 + 24}.95",
                number=61_000 + number,
                sku=f"FS-{number + 300}",
            )
            yield Document(
                name=f"{theme.__name__}-with_{name}", html=theme(item, _text(text)(item)), item=item, price=item.price if is_right else None,
                stock=IN, sku=item.sku, is_ordinary=is_right,
            )  # fmt: skip
    yield from _markup_that_differs()


def _markup_that_differs() -> Iterator[Document]:
    """Structured data that says another amount, currency or stock than the page, or amounts in other writings."""
    item = Item(title="Nordvik Fell 9 kettle", price="89.95", was="119.95", sku="FK-9", number=62_000)
    for theme in HOSTS:
        wrong = {
            "list": {"price": "119.95"},
            "stale": {"price": "84.95"},
            "cents": {"price": "8995"},
            "yen": {"priceCurrency": "JPY"},
        }
        for name, markup in wrong.items():
            if name == "yen" and theme in (first.shopify_dawn, first.magento_luma):
                continue  # the currency of these is in another place
            yield Document(
                name=f"{theme.__name__}-markup_{name}",
                html=theme(item, More(markup=markup)),
                item=item,
                price=item.price,
                stock=IN,
                sku=item.sku,
                is_ordinary=False,
            )
        gone = replace(item, stock=OUT)
        yield Document(
            name=f"{theme.__name__}-markup_in_stock",
            html=theme(gone, More(markup={"availability": "https://schema.org/InStock"})),
            item=gone,
            price=item.price,
            stock=OUT,
            sku=item.sku,
            is_ordinary=False,
        )
        plain = replace(item, was="")
        for name, old, new in (("from", plain.shown, f"From {plain.shown}"), ("range", plain.shown, f"{plain.shown} - {plain.part('1.5')}"), ("per_pound", plain.shown, f"{plain.shown} / lb"), ("monthly", plain.shown, f"{plain.shown}/mo"),
                               ("bid", plain.shown, f"Current bid: {plain.shown}"), ("deposit", plain.shown, f"Deposit: {plain.shown}"), ("member", plain.shown, f"Member price {plain.shown}"),
                               ("canadian", plain.shown, f"CA{plain.shown}"), ("code", plain.shown, f"{plain.shown} CAD"), ("euro", plain.shown, "€82.90")):  # fmt: skip
            html = theme(plain, More()).replace(f">{old}<", f">{new}<")
            if new not in html:
                continue
            yield Document(
                name=f"{theme.__name__}-shown_{name}",
                html=html,
                item=plain,
                price=None,
                stock=IN,
                sku=item.sku,
                is_ordinary=False,
            )


def everything() -> Iterator[Document]:
    yield from documents()
    yield from hard_documents()
