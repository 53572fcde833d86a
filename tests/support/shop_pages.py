"""Product pages as the platforms of shops write them, with the truth next to each: the hard set of the page reader.

The markup is made up after the structure of these platforms; names, prices and texts are invented.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from html import escape

from harvester.kernel.stock import Availability

IN, OUT, BACK = Availability.IN_STOCK, Availability.OUT_OF_STOCK, Availability.BACKORDER
SCHEMA = {IN: "InStock", OUT: "OutOfStock", BACK: "BackOrder"}


@dataclass(frozen=True, kw_only=True)
class Goods:
    """A product, as it is in truth."""

    title: str = "Federal American Eagle 9mm 115 Grain FMJ 50 Rounds"
    price: str = "15.99"
    was: str = ""
    currency: str = "USD"
    stock: Availability = IN
    sku: str = "AE9DP-50"
    brand: str = "Federal"
    number: int = 4711
    language: str = "en"

    def money(self, amount: str) -> str:
        """The amount as shops write it."""
        whole, _, cents = amount.partition(".")
        if self.currency == "EUR":
            grouped = f"{int(whole):,}".replace(",", ".")
            return f"{grouped},{cents} €"
        if self.currency == "SEK":
            return f"{int(whole):,}".replace(",", " ") + f",{cents} kr"
        return f"${int(whole):,}.{cents}"

    @property
    def shown(self) -> str:
        return self.money(self.price)

    @property
    def before(self) -> str:
        return self.money(self.was)

    def part(self, share: str) -> str:
        """Some other amount that a page of this product may show."""
        return self.money(str((Decimal(self.price) * Decimal(share)).quantize(Decimal("0.01"))))


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What else is on the page: in the head, near the price, after the button, below the product."""

    markup: str = "right"
    near: str = ""
    after: str = ""
    below: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A page and its truth; `price` is None where no price may be taken from it.

    `is_counted`: an offer is expected; the others are better refused.
    """

    name: str
    platform: str
    html: str
    goods: Goods
    price: str | None
    stock: Availability | None
    site: str = "structured"
    variant: dict[str, str] = field(default_factory=dict)
    is_counted: bool = True


WORDS = {
    "en": {"buy": "Add to cart", IN: "In stock", OUT: "Out of stock", BACK: "Available on backorder", "others": "You may also like"},
    "de": {
        "buy": "In den Warenkorb", IN: "Auf Lager", OUT: "Ausverkauft", BACK: "Vorbestellbar",
        "others": "Kunden kauften auch",
    },
    "sv": {"buy": "Lägg i varukorg", IN: "I lager", OUT: "Slut i lager", BACK: "Förboka", "others": "Relaterade produkter"},
    "fr": {
        "buy": "Ajouter au panier", IN: "En stock", OUT: "Rupture de stock", BACK: "Sur commande",
        "others": "Vous aimerez aussi",
    },
    "es": {"buy": "Añadir al carrito", IN: "En stock", OUT: "Agotado", BACK: "En preventa", "others": "Productos relacionados"},
    "it": {"buy": "Aggiungi al carrello", IN: "Disponibile", OUT: "Esaurito", BACK: "In preordine", "others": "Prodotti correlati"},
    "nl": {"buy": "In winkelwagen", IN: "Op voorraad", OUT: "Uitverkocht", BACK: "In nabestelling", "others": "Gerelateerde producten"},
    "pl": {"buy": "Dodaj do koszyka", IN: "Dostępny", OUT: "Wyprzedany", BACK: "Na zamówienie", "others": "Produkty powiązane"},
}  # fmt: skip


def word(goods: Goods, key: object) -> str:
    return WORDS[goods.language][key]


def ld(goods: Goods, extras: Extras, shape: str = "object", **more: object) -> str:
    """JSON-LD of a product, in one of the shapes that platforms write."""
    amount = {"list": goods.was or goods.price, "stale": "12.34"}.get(extras.markup, goods.price)
    if extras.markup == "none":
        return ""
    stock = f"https://schema.org/{SCHEMA[goods.stock]}"
    offer: dict[str, object] = {
        "@type": "Offer",
        "price": amount,
        "priceCurrency": goods.currency,
        "availability": stock,
    }
    if shape == "list":
        offers: object = [offer]
    elif shape == "spec":
        price = {"@type": "UnitPriceSpecification", "price": amount, "priceCurrency": goods.currency}
        former = {**price, "price": goods.was, "priceType": "https://schema.org/ListPrice"}
        specs = [price, former] if goods.was and extras.markup == "right" else [price]
        offers = [
            {"@type": "Offer", "priceSpecification": specs, "priceValidUntil": "2031-12-31", "availability": stock}
        ]
    elif shape == "aggregate":
        offers = {"@type": "AggregateOffer", "lowPrice": amount, "highPrice": amount, "priceCurrency": goods.currency,
                  "offerCount": 1, "offers": [offer]}  # fmt: skip
    elif shape == "number":
        offers = {**offer, "price": float(amount), "availability": stock.replace("https", "http")}
    elif shape == "bare":
        offers = {**offer, "availability": SCHEMA[goods.stock]}
    else:
        offers = offer
    product = {"@context": "https://schema.org/", "@type": ["Product"] if shape == "list" else "Product", "name": goods.title,
               "sku": goods.sku, "brand": {"@type": "Brand", "name": goods.brand}, "offers": offers, **more}  # fmt: skip
    data: object = product
    if shape == "graph":
        data = {"@context": "https://schema.org", "@graph": [{"@type": "WebSite", "name": "Shop"}, product]}
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def metas(goods: Goods, extras: Extras) -> str:
    if extras.markup == "none":
        return ""
    amount = {"list": goods.was or goods.price, "stale": "12.34"}.get(extras.markup, goods.price)
    stock = {IN: "instock", OUT: "oos", BACK: "backorder"}[goods.stock]
    return (
        f'<meta property="og:type" content="product"><meta property="product:price:amount" content="{amount}">'
        f'<meta property="product:price:currency" content="{goods.currency}"><meta property="og:availability" content="{stock}">'
    )


def frame(goods: Goods, head: str, body: str, *, classes: str = "", announce: bool = True) -> str:
    """The page around: menus, a cart that is empty, an announcement, a footer."""
    ship = goods.part("6")
    bar = f'<div class="announcement-bar"><p>Free shipping on orders over {ship}</p></div>' if announce else ""
    return (
        f'<!DOCTYPE html><html lang="{goods.language}"><head><meta charset="utf-8"><title>{escape(goods.title)} | Example Shop</title>'
        f'<meta property="og:title" content="{escape(goods.title)}">{head}<style>.a{{color:red}}</style></head>'
        f'<body class="{classes}">{bar}<header class="site-header"><a href="/">Example Shop</a>'
        f'<nav><ul><li><a href="/sale">Sale from {goods.part("0.1")}</a></li></ul></nav>'
        f'<div class="mini-cart"><span class="price">{goods.money("0.00")}</span></div></header>{body}'
        f"<footer><p>Gift cards from {goods.money('25.00')}</p><form><button>Subscribe</button></form></footer></body></html>"
    )


def cards(goods: Goods, card: Callable[[str, str], str]) -> str:
    """Other products with prices and buttons of their own."""
    return "".join(
        card(f"Other thing {number}", goods.part(share)) for number, share in enumerate(("0.5", "1.5", "3"), 1)
    )


# ---- platforms: each returns a page of one product --------------------------------------------------------------


def woocommerce(g: Goods, x: Extras) -> str:
    def amount(text: str) -> str:
        return f'<span class="woocommerce-Price-amount amount"><bdi>{text.replace("$", chr(60) + "span class=" + chr(34) + "woocommerce-Price-currencySymbol" + chr(34) + ">&#36;</span>")}</bdi></span>'

    price = amount(g.shown)
    if g.was:
        price = (
            f'<del aria-hidden="true">{amount(g.before)}</del> <span class="screen-reader-text">Original price was: {g.before}.</span>'
            f'<ins aria-hidden="true">{price}</ins><span class="screen-reader-text">Current price is: {g.shown}.</span>'
        )
    kind = {IN: "in-stock", OUT: "out-of-stock", BACK: "available-on-backorder"}[g.stock]
    form = (
        f'<form class="cart" method="post"><input type="number" name="quantity" value="1"><button type="submit" name="add-to-cart" '
        f'value="{g.number}" class="single_add_to_cart_button button alt">{word(g, "buy")}</button></form>'
    )
    others = cards(g, lambda title, other: f'<li class="product type-product instock"><a href="/p"><h2 class="woocommerce-loop-product__title">{title}</h2><span class="price">{amount(other)}</span></a><a href="?add-to-cart=9" class="button add_to_cart_button">{word(g, "buy")}</a></li>')  # fmt: skip
    status = {IN: "instock", OUT: "outofstock", BACK: "onbackorder"}[g.stock]
    return frame(g, ld(g, x, "spec"), f"""<div id="primary" class="content-area"><main id="main" class="site-main">
<div id="product-{g.number}" class="product type-product {status} purchasable product-type-simple"><div class="woocommerce-product-gallery"><img src="/a.jpg"></div>
<div class="summary entry-summary"><h1 class="product_title entry-title">{escape(g.title)}</h1><p class="price">{price}</p>{x.near}
<div class="woocommerce-product-details__short-description"><p>Reliable for the range.</p></div><p class="stock {kind}">{word(g, g.stock)}</p>
{form if g.stock is not OUT else ""}{x.after}<div class="product_meta"><span class="sku_wrapper">SKU: <span class="sku">{g.sku}</span></span></div></div>
<div class="woocommerce-tabs"><h2>Description</h2><p>Compare at {g.part("2")} elsewhere.</p></div>
<section class="related products"><h2>{word(g, "others")}</h2><ul class="products">{others}</ul></section>{x.below}</div></main></div>""")  # fmt: skip


def woocommerce_blocks(g: Goods, x: Extras) -> str:
    def amount(text: str) -> str:
        return f'<span class="woocommerce-Price-amount amount"><bdi>{text}</bdi></span>'

    price = f"<del>{amount(g.before)}</del> <ins>{amount(g.shown)}</ins>" if g.was else amount(g.shown)
    kind = {IN: "in-stock", OUT: "out-of-stock", BACK: "available-on-backorder"}[g.stock]
    button = (
        ""
        if g.stock is OUT
        else f'<form class="cart"><button type="submit" name="add-to-cart" value="{g.number}" class="single_add_to_cart_button wp-element-button">{word(g, "buy")}</button></form>'
    )
    others = cards(g, lambda title, other: f'<li class="wc-block-product post-9 product"><h3 class="wp-block-post-title"><a href="/p">{title}</a></h3><div class="wc-block-components-product-price">{amount(other)}</div><button class="wp-block-button__link add_to_cart_button">{word(g, "buy")}</button></li>')  # fmt: skip
    return frame(g, ld(g, x, "graph"), f"""<div class="wp-site-blocks"><main class="wp-block-group"><div class="wp-block-woocommerce-single-product"><div class="wp-block-columns">
<div class="wp-block-column"><h1 class="wp-block-post-title">{escape(g.title)}</h1><div class="wp-block-woocommerce-product-price"><div class="wc-block-components-product-price wc-block-grid__product-price">{price}</div></div>{x.near}
<div class="wp-block-add-to-cart-form wc-block-add-to-cart-form"><p class="stock {kind}">{word(g, g.stock)}</p>{button}</div>{x.after}
<div class="wp-block-woocommerce-product-sku wc-block-components-product-sku">SKU: <span class="sku">{g.sku}</span></div></div></div></div>
<div class="wp-block-woocommerce-related-products"><h2>{word(g, "others")}</h2><ul class="wc-block-product-template">{others}</ul></div>{x.below}</main></div>""")  # fmt: skip


def bigcommerce(g: Goods, x: Extras) -> str:
    was = (
        f'<div class="price-section price-section--withoutTax non-sale-price--withoutTax"><span>Was: </span><span data-product-non-sale-price-without-tax class="price price--non-sale">{g.before}</span></div>'
        if g.was
        else ""
    )
    label = {IN: "Add to Cart", OUT: "Out of stock", BACK: "Pre-Order Now"}[g.stock]
    off = " disabled" if g.stock is OUT else ""
    alert = (
        '<div class="alertBox productAttributes-message"><p class="alertBox-message">Out of stock</p></div>'
        if g.stock is OUT
        else ""
    )
    saved = (
        f'<div class="price-section price-section--saving price"><span class="price">(You save </span><span data-product-price-saved class="price price--saving">{g.money("4.00")}</span><span class="price">)</span></div>'
        if g.was
        else ""
    )
    others = cards(g, lambda title, other: f'<article class="card"><h4 class="card-title"><a href="/p">{title}</a></h4><div class="card-text"><span data-product-price-without-tax class="price price--withoutTax">{other}</span></div><a class="button button--small card-figcaption-button" href="/cart.php?action=add">Add to Cart</a></article>')  # fmt: skip
    return frame(g, ld(g, x, "bare") + metas(g, x), f"""<div class="body"><div class="container"><div class="productView"><section class="productView-images"><figure><img src="/a.jpg"></figure></section>
<section class="productView-details product-data"><div class="productView-product"><h1 class="productView-title">{escape(g.title)}</h1><h2 class="productView-brand"><a href="/b"><span>{g.brand}</span></a></h2>
<div class="productView-price">{was}<div class="price-section price-section--withoutTax"><span class="price-label"></span><span data-product-price-without-tax class="price price--withoutTax">{g.shown}</span></div>{saved}</div>{x.near}
<dl class="productView-info"><dt class="productView-info-name sku-label">SKU:</dt><dd class="productView-info-value" data-product-sku>{g.sku}</dd><dt class="productView-info-name">Shipping:</dt><dd class="productView-info-value">Calculated at Checkout</dd></dl></div></section>
<section class="productView-details product-options"><div class="productView-options"><form class="form" method="post" action="/cart.php" data-cart-item-add><input type="hidden" name="action" value="add"><input type="hidden" name="product_id" value="{g.number}">
<div class="form-action"><input id="form-action-addToCart" class="button button--primary" type="submit" value="{label}"{off}></div>{alert}</form></div>{x.after}</section></div>
<section class="productCarousel"><h2>Related Products</h2>{others}</section>{x.below}</div></div>""")  # fmt: skip


def shopify_dawn(g: Goods, x: Extras) -> str:
    sale, sold = " price--on-sale" if g.was else "", " price--sold-out" if g.stock is OUT else ""
    button = (
        '<button type="submit" name="add" class="product-form__submit button" disabled><span>Sold out</span></button>'
        if g.stock is OUT
        else f'<button type="submit" name="add" class="product-form__submit button button--full-width"><span>{"Pre-order" if g.stock is BACK else "Add to cart"}</span></button>'
    )
    others = cards(g, lambda title, other: f'<li class="grid__item"><div class="card-wrapper product-card-wrapper"><h3 class="card__heading"><a href="/p">{title}</a></h3><div class="price"><span class="price-item price-item--regular">{other}</span></div></div></li>')  # fmt: skip
    return frame(g, ld(g, x, "list", url=f"https://shop.example/products/a?variant={g.number}") + f'<meta property="og:price:amount" content="{g.price}"><meta property="og:price:currency" content="{g.currency}">' * (x.markup == "right"), f"""<main id="MainContent"><section class="shopify-section section"><div class="product product--large"><div class="product__info-wrapper"><section class="product__info-container">
<p class="product__text">{g.brand}</p><div class="product__title"><h1>{escape(g.title)}</h1><a href="/products/a" class="product__title"><h2 class="h1">{escape(g.title)}</h2></a></div>
<div class="no-js-hidden" id="price-template" role="status"><div class="price price--large price--show-badge{sale}{sold}"><div class="price__container"><div class="price__regular"><span class="visually-hidden visually-hidden--inline">Regular price</span><span class="price-item price-item--regular">{g.shown} {g.currency}</span></div>
<div class="price__sale"><span class="visually-hidden visually-hidden--inline">Regular price</span><span><s class="price-item price-item--regular">{g.before + " " + g.currency if g.was else ""}</s></span><span class="visually-hidden visually-hidden--inline">Sale price</span><span class="price-item price-item--sale price-item--last">{g.shown} {g.currency}</span></div>
<small class="unit-price caption hidden"><span class="visually-hidden">Unit price</span><span class="price-item price-item--last"><span></span><span aria-hidden="true">/</span></span></small></div><span class="badge price__badge-sale">Sale</span><span class="badge price__badge-sold-out">Sold out</span></div></div>{x.near}
<p class="product__inventory">{word(g, g.stock)}</p><product-form class="product-form"><form method="post" action="/cart/add" class="form"><input type="hidden" name="id" value="{g.number}"><div class="product-form__buttons">{button}<div class="shopify-payment-button"><button type="button">Buy it now</button></div></div></form></product-form>{x.after}
<p class="product__sku">SKU: {g.sku}</p></section></div></div></section><section class="shopify-section"><product-recommendations><h2>You may also like</h2><ul class="grid product-grid">{others}</ul></product-recommendations></section>{x.below}</main>""")  # fmt: skip


def shopify_old(g: Goods, x: Extras) -> str:
    was = (
        f'<span class="visually-hidden">Regular price</span><s id="ComparePrice-t" class="product-single__price product-single__price--compare">{g.before}</s>'
        if g.was
        else ""
    )
    button = (
        '<button type="submit" name="add" id="AddToCart-t" class="btn product-form__cart-submit" disabled="disabled"><span>Sold out</span></button>'
        if g.stock is OUT
        else f'<button type="submit" name="add" id="AddToCart-t" class="btn product-form__cart-submit"><span id="AddToCartText-t">{"Pre-order" if g.stock is BACK else "Add to cart"}</span></button>'
    )
    others = cards(g, lambda title, other: f'<div class="grid__item grid-product"><a href="/p" class="grid-view-item__link"><div class="h4 grid-view-item__title">{title}</div><span class="product-price__price">{other}</span></a></div>')  # fmt: skip
    return frame(g, ld(g, x), f"""<main class="main-content"><div id="shopify-section-product-template"><div class="product-template__container page-width"><div class="grid product-single"><div class="grid__item product-single__photos"><img src="/a"></div>
<div class="grid__item medium-up--one-half"><div class="product-single__meta"><h1 class="product-single__title">{escape(g.title)}</h1><p class="product-single__price product-single__price-t">{was}<span class="visually-hidden">{"Sale" if g.was else "Regular"} price</span><span id="ProductPrice-t" class="product-single__price">{g.shown}</span></p>{x.near}
<p class="stock-line">{word(g, g.stock)}</p><form action="/cart/add" method="post" class="product-form"><select name="id" class="product-form__variants no-js"><option selected="selected" value="{g.number}">Default Title</option></select>{button}</form>{x.after}
<div class="product-single__description rte"><p>Worth {g.part("2")}.</p></div></div></div></div></div></div><aside class="recently"><h2>You may also like</h2>{others}</aside>{x.below}</main>""")  # fmt: skip


def shopify_modern(g: Goods, x: Extras) -> str:
    was = (
        f'<compare-at-price class="text-subdued line-through"><span class="sr-only">Regular price</span>{g.before}</compare-at-price>'
        if g.was
        else ""
    )
    button = (
        '<button type="submit" class="button w-full" disabled>Sold out</button>'
        if g.stock is OUT
        else f'<button type="submit" class="button w-full">{"Pre-order" if g.stock is BACK else "Add to cart"}</button>'
    )
    others = cards(g, lambda title, other: f'<product-card class="product-card"><a href="/p" class="product-title">{title}</a><price-list class="price-list"><sale-price class="text-subdued">{other}</sale-price></price-list><button type="submit" class="product-card__quick-buy">+ Quick add</button></product-card>')  # fmt: skip
    return frame(g, ld(g, x, "number"), f"""<main><section><div class="product"><product-gallery></product-gallery><safe-sticky class="product-info"><h1 class="product-info__title h2">{escape(g.title)}</h1>
<div class="product-info__price"><price-list class="price-list price-list--product"><sale-price class="text-on-sale"><span class="sr-only">Sale price</span>{g.shown}</sale-price>{was}</price-list></div>{x.near}
<variant-inventory><span class="inventory">{word(g, g.stock)}</span></variant-inventory><buy-buttons><form method="post" action="/cart/add"><input type="hidden" name="id" value="{g.number}">{button}</form></buy-buttons>{x.after}<variant-sku class="text-xs">SKU: {g.sku}</variant-sku></safe-sticky></div></section>
<product-recommendations><h2>Customers also bought</h2>{others}</product-recommendations>{x.below}</main>""")  # fmt: skip


def magento2(g: Goods, x: Extras) -> str:
    label = "Special Price" if g.was else ""
    was = (
        f'<span class="old-price"><span class="price-container"><span class="price-label">Regular Price</span><span id="old-price-1" data-price-amount="{g.was}" data-price-type="oldPrice" class="price-wrapper"><span class="price">{g.before}</span></span></span></span>'
        if g.was
        else ""
    )
    form = f'<div class="product-add-form"><form id="product_addtocart_form" method="post"><input type="hidden" name="product" value="{g.number}"><button type="submit" title="{word(g, "buy")}" class="action primary tocart" id="product-addtocart-button"><span>{word(g, "buy")}</span></button></form></div>'
    kind = "unavailable" if g.stock is OUT else "available"
    others = cards(g, lambda title, other: f'<li class="item product product-item"><strong class="product name product-item-name"><a class="product-item-link" href="/p">{title}</a></strong><div class="price-box price-final_price"><span class="price-wrapper" data-price-amount="1.00" data-price-type="finalPrice"><span class="price">{other}</span></span></div><button class="action tocart primary"><span>{word(g, "buy")}</span></button></li>')  # fmt: skip
    return frame(g, ld(g, x) + metas(g, x), f"""<div class="page-wrapper"><main id="maincontent" class="page-main"><div class="columns"><div class="column main"><div class="product-info-main"><div class="page-title-wrapper product"><h1 class="page-title"><span class="base" data-ui-id="page-title-wrapper" itemprop="name">{escape(g.title)}</span></h1></div>
<div class="product-info-price"><div class="price-box price-final_price" data-role="priceBox" data-product-id="{g.number}"><span class="special-price"><span class="price-container price-final_price"><span class="price-label">{label}</span><span id="product-price-1" data-price-amount="{g.price}" data-price-type="finalPrice" class="price-wrapper"><span class="price">{g.shown}</span></span></span></span>{was}</div>
<div class="product-info-stock-sku"><div class="stock {kind}" title="Availability"><span>{word(g, g.stock)}</span></div><div class="product attribute sku"><strong class="type">SKU</strong><div class="value" itemprop="sku">{g.sku}</div></div></div></div>{x.near}{form if g.stock is not OUT else ""}{x.after}</div>
<div class="product data items"><div class="data item title">Details</div></div><div class="block related"><div class="block-title title"><strong>Related Products</strong></div><ol class="products list items">{others}</ol></div>{x.below}</div></div></main></div>""")  # fmt: skip


def magento1(g: Goods, x: Extras) -> str:
    price = (
        f'<p class="old-price"><span class="price-label">Regular Price:</span><span class="price" id="old-price-1">{g.before}</span></p><p class="special-price"><span class="price-label">Special Price</span><span class="price" id="product-price-1">{g.shown}</span></p>'
        if g.was
        else f'<span class="regular-price" id="product-price-1"><span class="price">{g.shown}</span></span>'
    )
    form = f'<div class="add-to-box"><div class="add-to-cart"><input type="text" name="qty" value="1"><button type="button" title="Add to Cart" class="button btn-cart"><span><span>{word(g, "buy")}</span></span></button></div></div>'
    others = cards(g, lambda title, other: f'<li class="item"><h3 class="product-name"><a href="/p">{title}</a></h3><div class="price-box"><span class="regular-price"><span class="price">{other}</span></span></div><button class="button btn-cart"><span>{word(g, "buy")}</span></button></li>')  # fmt: skip
    micro = (
        ""
        if x.markup == "none"
        else f'<div itemscope itemtype="http://schema.org/Product"><meta itemprop="name" content="{escape(g.title)}"><meta itemprop="sku" content="{g.sku}"><div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><meta itemprop="price" content="{ {"list": g.was or g.price, "stale": "12.34"}.get(x.markup, g.price) }"><meta itemprop="priceCurrency" content="{g.currency}"><link itemprop="availability" href="http://schema.org/{SCHEMA[g.stock]}"></div></div>'
    )
    return frame(g, "", f"""<div class="wrapper"><div class="main"><div class="col-main">{micro}<div class="product-view"><div class="product-essential"><form action="/checkout/cart/add/product/{g.number}/" id="product_addtocart_form"><div class="product-img-box"></div>
<div class="product-shop"><div class="product-name"><h1>{escape(g.title)}</h1></div><p class="availability {"out-of-stock" if g.stock is OUT else "in-stock"}">Availability: <span>{word(g, g.stock)}</span></p><div class="price-box">{price}</div>{x.near}{form if g.stock is not OUT else ""}{x.after}</div></form></div>
<div class="product-collateral"><div class="box-collateral box-up-sell"><h2>{word(g, "others")}</h2><ul class="products-grid">{others}</ul></div></div>{x.below}</div></div></div></div>""")  # fmt: skip


def prestashop(g: Goods, x: Extras) -> str:
    was = f'<div class="product-discount"><span class="regular-price">{g.before}</span></div>' if g.was else ""
    save = '<span class="discount discount-percentage">Save 20%</span>' if g.was else ""
    button = f'<button class="btn btn-primary add-to-cart" data-button-action="add-to-cart" type="submit"{" disabled" if g.stock is OUT else ""}>{word(g, "buy")}</button>'
    others = cards(g, lambda title, other: f'<article class="product-miniature"><h3 class="h3 product-title"><a href="/p">{title}</a></h3><div class="product-price-and-shipping"><span class="price">{other}</span></div></article>')  # fmt: skip
    return frame(g, ld(g, x), f"""<main><section id="wrapper"><div class="container"><section id="main"><div class="row product-container"><div class="col-md-6"><img src="/a"></div><div class="col-md-6"><h1 class="h1">{escape(g.title)}</h1>
<div class="product-prices">{was}<div class="product-price h5{" has-discount" if g.was else ""}"><div class="current-price"><span class="current-price-value" content="{g.price}">{g.shown}</span>{save}</div></div><div class="tax-shipping-delivery-label">Tax included</div></div>{x.near}
<div class="product-information"><div class="product-actions"><form action="/cart" method="post" id="add-to-cart-or-refresh"><input type="hidden" name="id_product" value="{g.number}"><div class="product-add-to-cart"><span class="control-label">Quantity</span>{button}<span id="product-availability">{word(g, g.stock)}</span></div></form></div>{x.after}<div class="product-reference"><label class="label">Reference </label><span>{g.sku}</span></div></div></div></div>
<section class="featured-products clearfix"><h2>{word(g, "others")}</h2>{others}</section>{x.below}</section></div></section></main>""")  # fmt: skip


def shopware(g: Goods, x: Extras) -> str:
    was = (
        f'<span class="product-detail-list-price-wrapper"><span class="list-price-price">{g.before}</span><span class="list-price-percentage">(20% gespart)</span></span>'
        if g.was
        else ""
    )
    button = (
        ""
        if g.stock is OUT
        else f'<form id="productDetailPageBuyProductForm" action="/checkout/line-item/add" method="post" class="buy-widget"><button class="btn btn-primary btn-buy" title="{word(g, "buy")}">{word(g, "buy")}</button></form>'
    )
    amount = {"list": g.was or g.price, "stale": "12.34"}.get(x.markup, g.price)
    price = (
        f'<meta itemprop="price" content="{amount}"><meta itemprop="priceCurrency" content="{g.currency}">'
        if x.markup != "none"
        else ""
    )
    scope = 'itemscope itemtype="https://schema.org/Product"' if x.markup != "none" else ""
    others = cards(g, lambda title, other: f'<div class="card product-box box-standard"><a href="/p" class="product-name">{title}</a><div class="product-price-info"><span class="product-price">{other}*</span></div><button class="btn btn-buy">{word(g, "buy")}</button></div>')  # fmt: skip
    return frame(g, "", f"""<main class="content-main"><div class="cms-page"><div class="product-detail" {scope}><div class="product-detail-content"><div class="row product-detail-headline"><h1 class="product-detail-name" itemprop="name">{escape(g.title)}</h1></div><div class="row product-detail-main">
<div class="col-lg-5 product-detail-buy"><div itemprop="offers" itemscope itemtype="https://schema.org/Offer">{price}<div class="product-detail-price-container"><p class="product-detail-price{" with-list-price" if g.was else ""}">{g.shown}*{was}</p></div><div class="product-detail-tax-container"><p class="product-detail-tax">Preise inkl. MwSt. zzgl. Versandkosten</p></div>{x.near}
<div class="product-detail-delivery-information"><link itemprop="availability" href="https://schema.org/{SCHEMA[g.stock]}"><p class="delivery-information">{word(g, g.stock)}</p></div><div class="product-detail-form-container">{button}</div></div>{x.after}<div class="product-detail-ordernumber-container"><span class="product-detail-ordernumber-label">Produktnummer:</span><span class="product-detail-ordernumber" itemprop="sku">{g.sku}</span></div></div></div></div></div>
<div class="product-slider"><div class="cms-element-title">{word(g, "others")}</div>{others}</div>{x.below}</div></main>""")  # fmt: skip


def opencart(g: Goods, x: Extras) -> str:
    price = (
        f'<li><span style="text-decoration: line-through;">{g.before}</span></li><li><h2>{g.shown}</h2></li>'
        if g.was
        else f"<li><h2>{g.shown}</h2></li>"
    )
    others = cards(g, lambda title, other: f'<div class="product-thumb transition"><h4><a href="/p">{title}</a></h4><p class="price">{other}</p><button type="button"><span>{word(g, "buy")}</span></button></div>')  # fmt: skip
    button = (
        f'<button type="button" id="button-cart" class="btn btn-primary btn-lg">{word(g, "buy")}</button>'
        if g.stock is not OUT
        else '<button type="button" id="button-cart" disabled class="btn">Out of stock</button>'
    )
    return frame(g, ld(g, x, "bare"), f"""<div id="product-product" class="container"><div class="row"><div id="content" class="col-sm-12"><div class="row"><div class="col-sm-8"></div><div class="col-sm-4"><h1>{escape(g.title)}</h1><ul class="list-unstyled"><li>Brand: <a href="/b">{g.brand}</a></li><li>Product Code: {g.sku}</li><li>Availability: {word(g, g.stock)}</li></ul>
<ul class="list-unstyled">{price}<li>Ex Tax: {g.part("0.8")}</li></ul>{x.near}<div id="product"><div class="form-group"><input type="text" name="quantity" value="1"><input type="hidden" name="product_id" value="{g.number}"><br>{button}</div></div>{x.after}</div></div><h3>{word(g, "others")}</h3><div class="row">{others}</div>{x.below}</div></div></div>""")  # fmt: skip


def squarespace(g: Goods, x: Extras) -> str:
    price = (
        f'<span class="original-price"><span class="sqs-money-native">{g.was}</span></span> <span>Sale Price:{g.shown}</span>'
        if g.was
        else g.shown
    )
    price = (
        f'<div class="product-price"><span class="visually-hidden">Price</span>Sale Price:{g.shown} <span class="original-price">Original Price:{g.before}</span></div>'
        if g.was
        else f'<div class="product-price">{price}</div>'
    )
    button = (
        '<div class="sold-out">Sold Out</div>'
        if g.stock is OUT
        else f'<div class="sqs-add-to-cart-button-wrapper"><div class="sqs-add-to-cart-button sqs-button-element--primary" role="button"><div class="sqs-add-to-cart-button-inner">{"Pre-order" if g.stock is BACK else "Add To Cart"}</div></div></div>'
    )
    return frame(g, ld(g, x, "number") + metas(g, x), f"""<main id="page"><article class="ProductItem"><section class="ProductItem-details"><h1 class="ProductItem-details-title">{escape(g.title)}</h1><div class="ProductItem-details-price">{price}</div>{x.near}<div class="product-scarcity">{word(g, g.stock)}</div>{button}{x.after}</section></article><section class="ProductItem-relatedProducts"><h2>You might also like</h2>{cards(g, lambda title, other: f'<a href="/p"><div class="title">{title}</div><div class="product-price">{other}</div></a>')}</section>{x.below}</main>""")  # fmt: skip


def wix(g: Goods, x: Extras) -> str:
    was = (
        f'<span data-hook="sr-formatted-primary-price" class="s_srt">Regular Price</span><span data-hook="formatted-primary-price" class="s_old strikethrough">{g.before}</span><span class="s_srt">Sale Price</span>'
        if g.was
        else '<span class="s_srt">Price</span>'
    )
    button = (
        '<button data-hook="add-to-cart" disabled aria-disabled="true"><span>Out of Stock</span></button>'
        if g.stock is OUT
        else f'<button data-hook="add-to-cart"><span>{"Pre-Order" if g.stock is BACK else "Add to Cart"}</span></button>'
    )
    return frame(g, ld(g, x, "number") + metas(g, x), f"""<div id="SITE_CONTAINER"><main><div data-hook="product-page"><article><section class="_col"><h1 data-hook="product-title" class="_2qrJF">{escape(g.title)}</h1><div data-hook="sku" class="_1rwRc">SKU: {g.sku}</div><div data-hook="product-price" class="_26qxh">{was}<span data-hook="formatted-{"secondary" if g.was else "primary"}-price" class="_23a2b">{g.shown}</span></div>{x.near}<div data-hook="stock">{word(g, g.stock)}</div>{button}{x.after}</section></article></div><section><h2>Related Products</h2>{cards(g, lambda title, other: f'<div data-hook="product-item-root"><a href="/p"><h3>{title}</h3></a><span>{other}</span></div>')}</section>{x.below}</main></div>""")  # fmt: skip


def salesforce(g: Goods, x: Extras) -> str:
    was = (
        f'<del><span class="strike-through list"><span class="value" content="{g.was}"><span class="sr-only">Price reduced from</span>{g.before}<span class="sr-only">to</span></span></span></del>'
        if g.was
        else ""
    )
    off = " disabled" if g.stock is OUT else ""
    return frame(g, ld(g, x, mpn=g.sku), f"""<div class="page" data-action="Product-Show"><div class="container product-detail product-wrapper" data-pid="{g.sku}"><div class="row"><div class="col-12"><h1 class="product-name">{escape(g.title)}</h1></div></div><div class="row"><div class="col-sm-6"><div class="product-number-rating">Item No. <span class="product-id">{g.sku}</span></div><div class="attributes">
<ul class="list-unstyled availability-msg"><li><div>{word(g, g.stock)}</div></li></ul><div class="prices"><div class="price"><span>{was}<span class="sales"><span class="value" content="{g.price}">{g.shown}</span></span></span></div></div>{x.near}<div class="cart-and-ipay"><button class="add-to-cart btn btn-primary" data-toggle="modal" data-pid="{g.sku}"{off}>{word(g, "buy")}</button></div>{x.after}</div></div></div></div>
<div class="recommendations"><h2>You May Also Like</h2>{cards(g, lambda title, other: f'<div class="product-tile"><div class="pdp-link"><a href="/p">{title}</a></div><div class="price"><span class="sales"><span class="value">{other}</span></span></div></div>')}</div>{x.below}</div>""")  # fmt: skip


def hybris(g: Goods, x: Extras) -> str:
    was = f'<p class="price price--was">Was {g.before}</p>' if g.was else ""
    button = (
        ""
        if g.stock is OUT
        else f'<form id="addToCartForm" class="add_to_cart_form" action="/cart/add" method="post"><input type="hidden" name="productCodePost" value="{g.sku}"><button id="addToCartButton" type="submit" class="btn btn-primary js-add-to-cart">{word(g, "buy")}</button></form>'
    )
    return frame(g, ld(g, x, "graph"), f"""<main data-currency-iso-code="{g.currency}"><div class="product-details page-title"><h1 class="name">{escape(g.title)}<span class="sku">ID</span><span class="code">{g.sku}</span></h1></div><div class="row"><div class="product-main-info"><div class="product-details"><p class="price">{g.shown}</p>{was}<div class="description">Box of ammunition</div></div>{x.near}<div class="addtocart-component"><div class="stock-wrapper clearfix">{word(g, g.stock)}</div>{button}</div>{x.after}</div></div>
<div class="carousel__component"><div class="carousel__component--headline">Similar products</div>{cards(g, lambda title, other: f'<div class="carousel__item"><a href="/p"><div class="carousel__item--name">{title}</div><div class="carousel__item--price">{other}</div></a></div>')}</div>{x.below}</main>""")  # fmt: skip


def volusion(g: Goods, x: Extras) -> str:
    price = (
        f'<div class="product_listprice">Regular Price: {g.before}</div><div class="product_saleprice"><b>Sale Price: <span itemprop="price" content="{g.price}">{g.shown}</span></b></div>'
        if g.was
        else f'<div class="product_productprice"><b>Our Price: <span itemprop="price" content="{g.price}">{g.shown}</span></b></div>'
    )
    price = price if x.markup == "right" else price.replace("itemprop", "data-p").replace("content=", "data-c=")
    extra = (
        ""
        if x.markup in {"right", "none"}
        else f'<meta itemprop="price" content="{ {"list": g.was or g.price}.get(x.markup, "12.34") }">'
    )
    micro = (
        (
            'itemscope itemtype="http://schema.org/Product"',
            'itemprop="offers" itemscope itemtype="http://schema.org/Offer"',
        )
        if x.markup != "none"
        else ("", "")
    )
    button = (
        ""
        if g.stock is OUT
        else '<input type="image" src="/b.gif" class="vCSS_input_addtocart" name="btnaddtocart" alt="Add to cart" value="Add To Cart">'
    )
    return frame(g, "", f"""<div id="content_area"><form id="vCSS_mainform" method="post" action="/ShoppingCart.asp"><div {micro[0]}><table><tr><td><font class="productnamecolorLARGE"><h1 itemprop="name">{escape(g.title)}</h1></font><div {micro[1]}>{price}{extra}<meta itemprop="priceCurrency" content="{g.currency}"><meta itemprop="availability" content="{SCHEMA[g.stock]}">{x.near}<div>Stock Status: {word(g, g.stock)}</div></div><i><font>Product Code: </font></i><span class="product_code" itemprop="sku">{g.sku}</span></td></tr><tr><td><input name="QTY" value="1">{button}{x.after}</td></tr></table></div></form>
<table class="related_products"><tr><td>Related products</td></tr><tr><td>{cards(g, lambda title, other: f'<div><a href="/p" class="productnamecolor">{title}</a><div class="product_productprice">Our Price: {other}</div></div>')}</td></tr></table>{x.below}</div>""")  # fmt: skip


def shift4shop(g: Goods, x: Extras) -> str:
    price = (
        f'<div class="yourprice price"><span class="price-label">List Price:</span> <span id="price-old" class="strike">{g.before}</span></div><div class="saleprice"><span>Your Price: </span><span id="price" class="sale-price">{g.shown}</span></div>'
        if g.was
        else f'<div class="yourprice price"><span id="price" class="price">{g.shown}</span></div>'
    )
    button = (
        '<div class="btn btn-default out">Out of Stock</div>'
        if g.stock is OUT
        else f'<input type="submit" value="{word(g, "buy")}" class="btn btn-default btn_cartbutton" name="Add">'
    )
    return frame(g, ld(g, x, "aggregate"), f"""<div id="mainContent"><form method="post" action="add_cart.asp" name="add"><input type="hidden" name="item_id" value="{g.number}"><div class="product-top row"><div class="product-info col-sm-5"><h1 class="page_headers">{escape(g.title)}</h1><div id="availability">{word(g, g.stock)}</div><div class="product-id">Part Number: <span id="product_id">{g.sku}</span></div>{price}{x.near}<div class="addToCartBlock">{button}</div>{x.after}</div></div></form>
<div class="related-products"><div class="header">Related Items</div>{cards(g, lambda title, other: f'<div class="product-item"><div class="name"><a href="/p">{title}</a></div><div class="price">{other}</div></div>')}</div>{x.below}</div>""")  # fmt: skip


def netsuite(g: Goods, x: Extras) -> str:
    amount = {"list": g.was or g.price, "stale": "12.34"}.get(x.markup, g.price)
    was = f'<small class="product-views-price-old">{g.before}</small>' if g.was else ""
    offer = 'itemprop="offers" itemscope itemtype="https://schema.org/Offer"' if x.markup != "none" else ""
    scope = 'itemscope itemtype="https://schema.org/Product"' if x.markup != "none" else ""
    return frame(g, "", f"""<div id="main"><div class="product-details-full" data-root-component-id="ProductDetails"><div class="product-details-full-content" {scope}><meta itemprop="url" content="/p"><div class="product-details-full-content-header"><h1 class="product-details-full-content-header-title" itemprop="name">{escape(g.title)}</h1></div><div class="product-details-full-main-content">
<div class="product-views-price" {offer}><meta itemprop="priceCurrency" content="{g.currency}"><span class="product-views-price-exact"><span class="product-views-price-lead" itemprop="price" content="{amount}" data-rate="{g.price}">{g.shown}</span></span>{was}<link itemprop="availability" href="https://schema.org/{SCHEMA[g.stock]}"></div>{x.near}<div class="product-line-sku-container"><span class="product-line-sku-label">SKU: </span><span class="product-line-sku-value" itemprop="sku">{g.sku}</span></div><div class="product-line-stock">{word(g, g.stock)}</div>
<form id="product-details-full-form"><button type="submit" data-action="sticky" class="cart-add-to-cart-button-button"{" disabled" if g.stock is OUT else ""}>{word(g, "buy")}</button></form>{x.after}</div></div><div class="item-relations-related"><h3>Related items</h3>{cards(g, lambda title, other: f'<div class="item-relations-cell"><a href="/p">{title}</a><span class="product-views-price-lead">{other}</span></div>')}</div></div>{x.below}</div>""")  # fmt: skip


def miva(g: Goods, x: Extras) -> str:
    was = f'<s class="x-product-layout-purchase__base">{g.before}</s>' if g.was else ""
    button = (
        '<input class="c-button is-disabled" type="submit" disabled value="Sold Out">'
        if g.stock is OUT
        else f'<input class="c-button c-button--full" data-hook="add-to-cart" type="submit" value="{word(g, "buy")}">'
    )
    return frame(g, ld(g, x), f"""<main class="o-wrapper"><section class="o-layout x-product-layout"><form name="add" method="post" action="/basket"><input type="hidden" name="Action" value="ADPR"><input type="hidden" name="Product_Code" value="{g.sku}"><h1 class="c-heading--major"><span class="x-product-layout-purchase__product-name">{escape(g.title)}</span></h1><p>SKU: <span class="x-product-layout-purchase__sku">{g.sku}</span></p>
<div class="x-product-layout-purchase__pricing u-text-bold">{was}<span id="price-value" class="x-product-layout-purchase__price">{g.shown}</span></div>{x.near}<div id="inventory-message">{word(g, g.stock)}</div>{button}{x.after}</form></section><section class="o-layout"><h3>Customers Also Purchased</h3>{cards(g, lambda title, other: f'<a class="x-product-list__link" href="/p"><span class="x-product-list__name">{title}</span><span class="x-product-list__price">{other}</span></a>')}</section>{x.below}</main>""")  # fmt: skip


def ecwid(g: Goods, x: Extras) -> str:
    was = (
        f'<div class="details-product-price-compare"><span class="details-product-price-compare__label">Before </span><s class="details-product-price-compare__value">{g.before}</s></div>'
        if g.was
        else ""
    )
    button = (
        ""
        if g.stock is OUT
        else f'<div class="details-product-purchase__add-to-bag"><button class="form-control__button" type="button"><span class="form-control__button-text">{word(g, "buy").replace("cart", "Bag")}</span></button></div>'
    )
    return frame(g, ld(g, x, "number"), f"""<div class="ecwid-productBrowser"><div class="product-details"><div class="product-details__sidebar"><h1 class="product-details__product-title ec-header-h3">{escape(g.title)}</h1><div class="product-details__product-sku">SKU {g.sku}</div><div class="product-details__product-price ec-price-item"><span class="details-product-price__value">{g.shown}</span></div>{was}{x.near}<div class="product-details-module__title">{word(g, g.stock)}</div>{button}{x.after}</div></div>
<div class="ec-related-products"><h2>{word(g, "others")}</h2>{cards(g, lambda title, other: f'<div class="grid-product"><a href="/p" class="grid-product__title">{title}</a><div class="grid-product__price">{other}</div></div>')}</div>{x.below}</div>""")  # fmt: skip


def jtl(g: Goods, x: Extras) -> str:
    amount = {"list": g.was or g.price, "stale": "12.34"}.get(x.markup, g.price)
    was = (
        f'<div class="price-note"><div class="instead-of old-price">Bisheriger Preis: <del class="value">{g.before}</del></div></div>'
        if g.was
        else ""
    )
    price = (
        f'<meta itemprop="price" content="{amount}"><meta itemprop="priceCurrency" content="{g.currency}"><link itemprop="availability" href="https://schema.org/{SCHEMA[g.stock]}">'
        if x.markup != "none"
        else ""
    )
    scope = 'itemscope itemtype="https://schema.org/Product"' if x.markup != "none" else ""
    button = (
        ""
        if g.stock is OUT
        else f'<button aria-label="{word(g, "buy")}" class="btn btn-primary" name="inWarenkorb" type="submit" value="{word(g, "buy")}"><span>{word(g, "buy")}</span></button>'
    )
    return frame(g, "", f"""<main id="main-wrapper"><div id="result-wrapper" {scope}><form id="buy_form" action="/" method="post"><div class="row product-primary"><div class="product-info col"><div class="product-headline"><h1 class="product-title h2" itemprop="name">{escape(g.title)}</h1></div><ul class="info-essential"><li class="product-sku"><strong>Artikelnummer:</strong><span itemprop="sku">{g.sku}</span></li></ul><input type="hidden" name="a" value="{g.number}">
<div class="product-offer" itemprop="offers" itemscope itemtype="https://schema.org/Offer">{price}<div class="price_wrapper"><div class="price h1"><span>{g.shown}</span></div><div class="base-price">{g.part("0.02")} pro 1 Schuss</div><div class="vat_info">inkl. 19% USt., zzgl. <a href="/v">Versand</a></div>{was}</div>{x.near}<div class="delivery-status"><div class="signal_image"><span class="status">{word(g, g.stock)}</span></div></div><div id="add-to-cart">{button}</div></div>{x.after}</div></div></form></div><div class="recommendations"><h3>{word(g, "others")}</h3>{cards(g, lambda title, other: f'<div class="product-wrapper"><a href="/p" class="productbox-title">{title}</a><div class="productbox-price">{other} *</div></div>')}</div>{x.below}</main>""")  # fmt: skip


def oxid(g: Goods, x: Extras) -> str:
    was = f'<p class="oldPrice"><del>Statt {g.before}</del></p>' if g.was else ""
    amount = {"list": g.was or g.price, "stale": "12.34"}.get(x.markup, g.price)
    price = (
        f'<meta itemprop="price" content="{amount}"><meta itemprop="priceCurrency" content="{g.currency}"><link itemprop="availability" href="http://schema.org/{SCHEMA[g.stock]}">'
        if x.markup != "none"
        else ""
    )
    scope = 'itemscope itemtype="http://schema.org/Product"' if x.markup != "none" else ""
    button = (
        ""
        if g.stock is OUT
        else f'<button id="toBasket" type="submit" class="btn btn-lg btn-primary submitButton">{word(g, "buy")}</button>'
    )
    return frame(g, "", f"""<div id="content"><form class="js-oxProductForm" action="/index.php" method="post"><div class="detailsInfo clear" {scope}><h1 id="productTitle" itemprop="name">{escape(g.title)}</h1><span id="productArtnum" itemprop="sku" content="{g.sku}">Artikelnummer: {g.sku}</span><div class="information" itemprop="offers" itemscope itemtype="http://schema.org/Offer">{was}<div class="pricebox"><label id="productPrice" class="price h2"><span class="price-from"></span><span class="price">{g.shown}</span> <span class="price-markup">*</span></label></div>{price}<div class="tax">* inkl. MwSt., zzgl. Versandkosten</div>{x.near}<div class="tobasket"><input type="text" name="am" value="1">{button}</div><span class="stockFlag"><i></i> {word(g, g.stock)}</span></div>{x.after}</div></form>
<div class="boxwrapper"><h2 class="page-header">Ähnliche Artikel</h2>{cards(g, lambda title, other: f'<div class="productBox"><a href="/p" class="title">{title}</a><span class="lead text-nowrap">{other}</span></div>')}</div>{x.below}</div>""")  # fmt: skip


def gambio(g: Goods, x: Extras) -> str:
    was = f'<span class="productOldPrice">Unser bisheriger Preis {g.before}</span><br>' if g.was else ""
    prefix = "Jetzt nur " if g.was else ""
    button = (
        ""
        if g.stock is OUT
        else f'<input name="btn-add-to-cart" type="submit" class="btn btn-lg btn-buy btn-block js-btn-add-to-cart" value="{word(g, "buy")}">'
    )
    return frame(g, ld(g, x, "object", gtin13="4006381333931"), f"""<div id="main"><div class="product-info row"><div class="product-info-details"><h1 class="product-info-title-desktop">{escape(g.title)}</h1><dl class="dl-horizontal"><dt class="col-xs-4 text-left shipping-time">Lieferzeit:</dt><dd>3-4 Tage</dd><dt>Art.Nr.:</dt><dd class="model-number-text">{g.sku}</dd><dt>Lagerbestand:</dt><dd><span>{word(g, g.stock)}</span></dd></dl><form action="product_info.php" class="form-horizontal js-product-form"><input type="hidden" name="products_id" value="{g.number}"><div class="price-container"><div class="current-price-container">{was}{prefix}{g.shown}<p class="tax-shipping-text text-small">inkl. 19% MwSt. zzgl. <a href="/v">Versand</a></p></div></div>{x.near}{button}</form>{x.after}</div></div>
<div id="product-info-similar"><h2>Kunden, welche diesen Artikel bestellten, haben auch folgende Artikel gekauft:</h2>{cards(g, lambda title, other: f'<div class="product-container"><a class="product-url" href="/p">{title}</a><span class="current-price-container">{other}</span></div>')}</div>{x.below}</div>""")  # fmt: skip


def yahoo(g: Goods, x: Extras) -> str:
    price = (
        f'<div class="price">Regular price: {g.before}</div><div class="sale-price-bold"><em>Sale price: {g.shown}</em></div>'
        if g.was
        else f'<div class="price-bold">Price: {g.shown}</div>'
    )
    button = (
        "" if g.stock is OUT else '<input type="submit" class="addtocartImg" title="Add to cart" value="Add to cart">'
    )
    return frame(g, ld(g, x, "bare"), f"""<table id="bodyshell"><tr><td id="bodycontent"><div class="item-contenttitle"><h1>{escape(g.title)}</h1></div><form method="POST" action="https://order.example/cgi-bin/wg-order?shop"><div class="itemform productInfo"><div class="code">Item #: <em>{g.sku}</em></div>{price}{x.near}<div class="itemavailable"><em>Availability:</em> {word(g, g.stock)}</div>{button}<input name="vwitem" type="hidden" value="x">{x.after}</div></form><div id="crosssell"><h2>Related products</h2>{cards(g, lambda title, other: f'<div class="cell"><a href="/p">{title}</a> <em>{other}</em></div>')}</div>{x.below}</td></tr></table>""")  # fmt: skip


def react(g: Goods, x: Extras) -> str:
    was = f'<span class="css-8atqhb line-through text-gray-500">{g.before}</span>' if g.was else ""
    data = {"props": {"pageProps": {"product": {"name": g.title, "price": g.price, "listPrice": g.part("1.3")}}}}
    button = (
        '<button class="css-1x2y" disabled>Notify me when available</button>'
        if g.stock is OUT
        else f'<button class="css-1x2y" data-testid="add-to-cart">{"Pre-order" if g.stock is BACK else "Add to bag"}</button>'
    )
    return frame(g, ld(g, x, "graph"), f"""<div id="__next"><main class="flex flex-col"><div class="grid grid-cols-12"><div class="col-span-5"><h1 class="text-2xl font-bold">{escape(g.title)}</h1><div class="mt-2 flex gap-2"><span class="css-1fq2d text-xl"><span>{g.shown.replace("$", "$<!-- -->")}</span></span>{was}</div>{x.near}<div class="mt-4 text-sm">{word(g, g.stock)}</div>{button}{x.after}</div></div><section class="mt-12"><h2>Customers also viewed</h2><div class="grid">{cards(g, lambda title, other: f'<a href="/p" class="css-card"><p>{title}</p><p>{other}</p></a>')}</div></section>{x.below}</main></div><script id="__NEXT_DATA__" type="application/json">{json.dumps(data)}</script>""")  # fmt: skip


def split_price(g: Goods, x: Extras) -> str:
    """An own shop system that writes cents in small print."""
    whole, _, cents = g.price.partition(".")
    was = f'<div class="was">Was: <span class="amount">{g.before}</span></div>' if g.was else ""
    shown = (
        f'<span class="currency">$</span><span class="whole">{int(whole):,}</span><sup class="cents">{cents}</sup>'
        if g.currency == "USD"
        else f"<span>{whole}</span><sup>{cents}</sup> {'€' if g.currency == 'EUR' else 'kr'}"
    )
    return frame(g, ld(g, x), f"""<div class="pdp"><div class="pdp-main"><div class="pdp-right"><h1 class="pdp-name">{escape(g.title)}</h1><div class="pdp-price"><div class="big">{shown}</div>{was}</div>{x.near}<div class="pdp-stock">{word(g, g.stock)}</div><div class="pdp-buy">{"" if g.stock is OUT else f'<a role="button" href="#" class="btn add-to-cart">{word(g, "buy")}</a>'}</div>{x.after}</div></div><div class="pdp-more"><h3>Recently viewed</h3>{cards(g, lambda title, other: f'<div class="tile"><a href="/p">{title}</a><b>{other}</b></div>')}</div>{x.below}</div>""")  # fmt: skip


PLATFORMS: dict[str, Callable[[Goods, Extras], str]] = {
    each.__name__: each
    for each in (
        woocommerce, woocommerce_blocks, bigcommerce, shopify_dawn, shopify_old, shopify_modern, magento2, magento1, prestashop,
        shopware, opencart, squarespace, wix, salesforce, hybris, volusion, shift4shop, netsuite, miva, ecwid, jtl, oxid, gambio,
        yahoo, react, split_price,
    )
}  # fmt: skip
#: Platform -> the site file for it.
SITES = {
    "woocommerce": "woocommerce", "woocommerce_blocks": "woocommerce", "bigcommerce": "bigcommerce",
    "shopify_dawn": "shopify", "shopify_old": "shopify", "magento2": "magento", "magento1": "magento",
}  # fmt: skip
_LANGUAGES = {"shopware": "de", "jtl": "de", "oxid": "de", "gambio": "de", "prestashop": "fr"}


def crowd(g: Goods) -> Extras:
    """Amounts next to the price that are not the price."""
    return Extras(
        near=(
            f'<div class="price-per-round">{g.part("0.02")} per round</div>'
            f'<p class="afterpay-paragraph">or 4 interest-free payments of {g.part("0.25")} with <b>Afterpay</b></p>'
            f'<div class="rewards">Earn {g.part("0.05")} in store credit</div>'
            f'<div class="member-price">Members pay {g.part("0.9")}</div>'
            f'<div class="ship-note">Free shipping on orders over {g.part("7")}</div>'
        ),
        after=(
            f'<div class="warranty-offer"><label><input type="checkbox"> Add protection plan for {g.part("0.3")}</label></div>'
            f'<div class="fbt bundle"><h3>Frequently bought together</h3><p>Total price: {g.part("2.5")}</p><button>Add all to cart</button></div>'
        ),
    )


def tiers(g: Goods) -> Extras:
    """A table of quantity discounts whose first row is the price."""
    rows = "".join(
        f"<tr><td>{label}</td><td>{g.money(g.price) if share == '1' else g.part(share)}</td></tr>"
        for label, share in (("1 - 4", "1"), ("5 - 9", "0.95"), ("10+", "0.9"))
    )
    return Extras(near=f'<table class="quantity-discounts"><tr><th>Quantity</th><th>Price each</th></tr>{rows}</table>')


def loose_tiers(g: Goods) -> Extras:
    return Extras(
        near=f'<div class="deals"><p>2 or More {g.part("0.95")}</p><p>Buy 10 for {g.part("0.9")} each</p></div>'
    )


def hard_set() -> Iterator[Case]:
    """Every platform in every shape."""
    for number, (name, make) in enumerate(PLATFORMS.items()):
        language = _LANGUAGES.get(name, "en")
        base = Goods(
            language=language,
            currency="EUR" if language != "en" else "USD",
            number=4711 + number,
            price=f"{15 + number * 7}.99",
        )
        sale = replace(base, was=f"{20 + number * 9}.49")
        dear = replace(base, price="1249.00")
        shapes: list[tuple[str, Goods, Extras, bool]] = [
            ("plain", base, Extras(), True),
            ("sale", sale, Extras(), True),
            ("out", replace(base, stock=OUT), Extras(), True),
            ("crowd", base, crowd(base), True),
            ("sale_crowd", sale, crowd(sale), True),
            ("tiers", base, tiers(base), True),
            ("loose_tiers", base, loose_tiers(base), True),
            ("dear", dear, crowd(dear), True),
            ("no_markup", base, Extras(markup="none"), True),
            ("list_in_markup", sale, Extras(markup="list"), True),
            ("stale", base, Extras(markup="stale"), True),
            ("in_cart", base, Extras(near='<p class="map">See price in cart</p>'), False),
        ]
        for shape, goods, extras, has_truth in shapes:
            yield Case(
                name=f"{name}-{shape}", platform=name, html=make(goods, extras), goods=goods, price=goods.price if has_truth else None,
                stock=goods.stock, site=SITES.get(name, "structured"),
                is_counted=has_truth and shape not in {"list_in_markup", "stale"},
            )  # fmt: skip
