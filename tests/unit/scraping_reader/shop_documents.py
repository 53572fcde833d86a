"""Whole product pages with everything around the product, in the structure of the themes that shops really use.

Written after the public templates of the platforms, with names and numbers made up. The truth is next to each page.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape

IN, OUT, BACK = "IN_STOCK", "OUT_OF_STOCK", "BACKORDER"
SCHEMA = {IN: "InStock", OUT: "OutOfStock", BACK: "BackOrder"}

#: How shops write amounts: currency, pattern, separator of thousands, separator of decimals ("" for whole amounts).
STYLES: Mapping[str, tuple[str, str, str, str]] = {
    "us": ("USD", "${}", ",", "."), "ca": ("CAD", "${}", ",", "."), "au": ("AUD", "${}", ",", "."),
    "uk": ("GBP", "£{}", ",", "."), "ie": ("EUR", "€{}", ",", "."), "de": ("EUR", "{}\xa0€", ".", ","),
    "fr": ("EUR", "{}\xa0€", "\u202f", ","), "es": ("EUR", "{} €", ".", ","), "nl": ("EUR", "€ {}", ".", ","),
    "ch": ("CHF", "CHF {}", "\u2019", "."), "se": ("SEK", "{} kr", "\xa0", ""), "dk": ("DKK", "{} kr.", ".", ","),
    "pl": ("PLN", "{}\xa0zł", "\xa0", ","), "cz": ("CZK", "{} Kč", "\xa0", ""), "jp": ("JPY", "￥{}", ",", ""),
    "kr": ("KRW", "₩{}", ",", ""), "br": ("BRL", "R$ {}", ".", ","), "in": ("INR", "₹{}", ",", "."),
    "tr": ("TRY", "{} TL", ".", ","), "ru": ("RUB", "{} ₽", "\xa0", ""), "hu": ("HUF", "{} Ft", "\xa0", ""),
    "us_code": ("USD", "${} USD", ",", "."), "ae": ("AED", "AED {}", ",", "."),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Item:
    """A product as it is in truth."""

    title: str
    price: str
    was: str = ""
    style: str = "us"
    stock: str = IN
    sku: str = "ZX-4410"
    number: int = 58_213
    brand: str = "Nordvik"

    @property
    def currency(self) -> str:
        return STYLES[self.style][0]

    def money(self, amount: str) -> str:
        _, pattern, thousands, point = STYLES[self.style]
        whole, _, cents = f"{Decimal(amount):.2f}".partition(".")
        return pattern.format(f"{int(whole):,}".replace(",", thousands) + (point + cents if point else ""))

    @property
    def shown(self) -> str:
        return self.money(self.price)

    @property
    def before(self) -> str:
        return self.money(self.was) if self.was else ""

    def part(self, share: str) -> str:
        return self.money(self.share(share))

    def share(self, share: str) -> str:
        amount = Decimal(self.price) * Decimal(share)
        return str(amount.quantize(Decimal("0.01") if STYLES[self.style][3] else Decimal(1)))


@dataclass(frozen=True, kw_only=True)
class More:
    """What else is on a page, by place, and what differs in its markup."""

    near: str = ""
    below: str = ""
    head: str = ""
    markup: Mapping[str, object] = field(default_factory=dict)
    has_markup: bool = True


@dataclass(frozen=True, kw_only=True)
class Document:
    """A page and its truth. `price` is None if no offer may be taken from it; `is_ordinary`: an offer is expected."""

    name: str
    html: str
    item: Item
    price: str | None
    stock: str | None
    sku: str | None
    is_ordinary: bool = True
    variant: Mapping[str, str] = field(default_factory=dict)


def ld(item: Item, more: More, shape: str = "object", **fields: object) -> str:
    """The product in JSON-LD, with the objects that themes write next to it."""
    if not more.has_markup:
        return ""
    offer = {"@type": "Offer", "price": item.price, "priceCurrency": item.currency, "availability": f"https://schema.org/{SCHEMA[item.stock]}",
             "itemCondition": "https://schema.org/NewCondition", "url": f"https://shop.example/p/{item.number}", **more.markup}  # fmt: skip
    offer = {key: value for key, value in offer.items() if value is not None}
    offers: object = [offer] if shape == "list" else offer
    if shape == "spec":
        price = {
            "@type": "UnitPriceSpecification",
            "price": offer.pop("price"),
            "priceCurrency": item.currency,
            "valueAddedTaxIncluded": False,
        }
        regular = {**price, "price": item.was, "priceType": "https://schema.org/ListPrice"}
        offers = [{**offer, "priceSpecification": [price, regular] if item.was else [price]}]
    product = {"@context": "https://schema.org/", "@type": "Product", "name": item.title, "sku": item.sku, "image": ["https://cdn.example/1.jpg"],
               "description": f"Compare at {item.part('2')} elsewhere.", "brand": {"@type": "Brand", "name": item.brand}, "offers": offers,
               "aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.6", "reviewCount": "132"}, **fields}  # fmt: skip
    crumbs = {
        "@context": "https://schema.org",
        "@type": "BreadcrumbList",
        "itemListElement": [{"@type": "ListItem", "position": 1, "name": "Home"}],
    }
    shop = {
        "@context": "https://schema.org",
        "@type": "Organization",
        "name": "Harbor & Pine",
        "url": "https://shop.example",
    }
    if shape == "graph":
        blocks: list[object] = [{"@context": "https://schema.org", "@graph": [shop, crumbs, product]}]
    else:
        blocks = [shop, crumbs, product]
    return "".join(f'<script type="application/ld+json">{json.dumps(each)}</script>' for each in blocks)


def metas(item: Item, more: More) -> str:
    if not more.has_markup:
        return ""
    amount = more.markup.get("price", item.price)
    return (
        f'<meta property="og:type" content="product"><meta property="product:price:amount" content="{amount}">'
        f'<meta property="product:price:currency" content="{item.currency}">'
    )


def page(item: Item, body: str, *, head: str = "", lang: str = "en", classes: str = "", main: str = "main") -> str:
    """Everything around the product: announcement, menus, cart, other products in menus, newsletter, footer, scripts."""
    layer = {
        "event": "view_item",
        "ecommerce": {"items": [{"item_name": item.title, "price": float(item.price), "quantity": 1}]},
    }
    return f"""<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><title>{escape(item.title)} | Harbor &amp; Pine</title>
<meta name="description" content="{escape(item.title)} from {item.part("0.9")}"><meta property="og:site_name" content="Harbor &amp; Pine">
<meta property="og:title" content="{escape(item.title)}">{head}<script>window.dataLayer=[{json.dumps(layer)}];</script><style>.price{{color:#333}}</style></head>
<body class="{classes}"><a class="skip-link visually-hidden" href="#content">Skip to content</a>
<div class="announcement-bar"><p>Free shipping on orders over {item.part("3")} &middot; 10% off your first order with code HELLO10</p></div>
<header class="site-header"><a href="/" class="logo">Harbor &amp; Pine</a><form action="/search" class="search"><input name="q"><button type="submit">Search</button></form>
<div class="currency-picker"><button>{item.currency}</button><ul><li>USD $</li><li>EUR €</li><li>GBP £</li></ul></div>
<div class="mini-cart"><a href="/cart">Cart (2) <span class="cart-total">{item.part("1.7")}</span></a><div class="mini-cart-items"><p>Wool cap 1 x {item.part("0.4")}</p><p>Subtotal: {item.part("1.7")}</p><button>Checkout</button></div></div>
<nav class="main-nav"><ul><li><a href="/new">New</a></li><li><a href="/sale">Sale: up to 50% off</a><div class="mega-menu"><a href="/p/9">Best seller</a> <span class="price">{item.part("0.6")}</span></div></li></ul></nav></header>
<{main} id="content"><nav class="breadcrumb"><a href="/">Home</a> / <a href="/c">Outdoor</a> / <span>{escape(item.title)}</span></nav>{body}</{main}>
<section class="newsletter"><h2>Get {item.part("0.1")} off</h2><form action="/subscribe"><input type="email"><button>Sign up</button></form></section>
<footer class="site-footer"><p>Gift cards from {item.part("0.5")}. Orders over {item.part("3")} ship free.</p><p>&copy; 2026 Harbor &amp; Pine</p></footer>
<div class="cookie-banner" role="dialog"><p>We use cookies.</p><button>Accept</button></div><script src="/app.js"></script></body></html>"""


def others(item: Item, heading: str, card: Callable[[str, str], str], around: str = "section") -> str:
    """Other products below, with prices and buttons of their own."""
    cards = "".join(
        card(f"{name} {number}", item.part(share))
        for number, (name, share) in enumerate(
            (("Canvas roll", "0.45"), ("Trail stove", "1.3"), ("Field lamp", "2.2")), 1
        )
    )
    return f'<{around} class="related-products"><h2>{heading}</h2><div class="grid">{cards}</div></{around}>'


def plain_card(title: str, price: str) -> str:
    return f'<div class="card"><h3><a href="/p/{title[-1]}">{title}</a></h3><span class="price">{price}</span><button>Add to cart</button></div>'


REVIEWS = (
    '<section class="reviews"><h2>Customer reviews</h2><p>4.6 out of 5 (132)</p><div class="review"><p>Paid $12.99 at another store. '
    "Out of stock everywhere else!</p></div></section>"
)
