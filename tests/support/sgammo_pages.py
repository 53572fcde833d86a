"""Pages in the structure of sgammo.com, made up: six states, and what a redesign makes of them."""

import json
import re
from collections.abc import Callable

from tests.support.shop_pages import BACK, IN, OUT, SCHEMA, Case, Goods

#: State -> (former price, stock, has a table of quantities, shows its price).
STATES = {
    "in_stock": (False, IN, False, True),
    "sale": (True, IN, False, True),
    "tiers": (False, IN, True, True),
    "sale_and_tiers": (True, IN, True, True),
    "out_of_stock": (False, OUT, False, True),
    "out_without_price": (False, OUT, False, False),
}
_KINDS = (
    "9mm 115 Grain FMJ",
    ".223 Rem 55 Grain FMJ",
    '12 Gauge 2-3/4" 00 Buck',
    ".308 Win 168 Grain BTHP",
    ".45 ACP 230 Grain FMJ",
)
_MAKERS = ("Federal", "Winchester", "PMC", "Fiocchi", "Magtech")


def amount(price: str) -> str:
    return f'<span class="woocommerce-Price-amount amount"><bdi><span class="woocommerce-Price-currencySymbol">&#36;</span>{price}</bdi></span>'


def sgammo(goods: Goods, *, has_tiers: bool = False, has_price: bool = True) -> str:
    """A product page."""
    stock = f"http://schema.org/{SCHEMA[goods.stock]}"
    common = {"@context": "https://schema.org/", "@type": "Product", "name": goods.title, "sku": goods.sku}
    theme = {**common, "brand": {"@type": "Brand", "name": "SG Ammo"}, "offers": {
        "@type": "Offer", "price": goods.price, "priceCurrency": "USD", "availability": stock, "url": "https://www.sgammo.com/product/x/"}}  # fmt: skip
    shop = {**common, "offers": [{"@type": "Offer", "priceSpecification": [{"@type": "UnitPriceSpecification", "price": goods.price,
            "priceCurrency": "USD", "valueAddedTaxIncluded": False}], "priceValidUntil": "2031-12-31", "availability": stock}]}  # fmt: skip
    crumbs = {
        "@context": "https://schema.org/",
        "@type": "BreadcrumbList",
        "itemListElement": [{"@type": "ListItem", "position": 1, "name": "Catalog"}],
    }
    scripts = "".join(
        f'<script type="application/ld+json">{json.dumps(data)}</script>' for data in (theme, crumbs, shop)
    )
    price = f"<del>{amount(goods.was)}</del> <ins>{amount(goods.price)}</ins>" if goods.was else amount(goods.price)
    rows = "".join(
        f"<tr><td>{least} or More</td><td>{amount(goods.part(share)[1:])}</td></tr>"
        for least, share in ((2, "0.97"), (5, "0.95"))
    )
    table = (
        f'<table class="sgammo-quantity-discounts"><tr><th>Quantity</th><th>Price</th></tr>{rows}</table>'
        if has_tiers
        else ""
    )
    kind = "out-of-stock" if goods.stock is OUT else "available-on-backorder" if goods.stock is BACK else "in-stock"
    words = {IN: f"{goods.number % 40 + 1}+ in stock", OUT: "Out of stock", BACK: "Available on backorder"}[goods.stock]
    form = f'<form class="cart" method="post"><input name="quantity" value="1"><button type="submit" name="add-to-cart" value="{goods.number}" class="single_add_to_cart_button button alt">Add to cart</button></form>'
    others = "".join(
        f'<li class="product"><a href="/product/other-{n}/"><h2 class="woocommerce-loop-product__title">Other ammo {n}</h2>'
        f'<span class="price">{amount(goods.part(share)[1:])}</span></a><form class="cart"><button type="submit" name="add-to-cart" '
        f'value="9{n}" class="button">Add to cart</button></form></li>'
        for n, share in enumerate(("0.4", "0.9", "1.3", "2"))
    )
    details = "sgammo-content-single-product__details__right"
    return f"""<!DOCTYPE html><html lang="en-US"><head><meta charset="UTF-8"><title>{goods.title} | SGAmmo.com</title><meta property="og:title" content="{goods.title} | SGAmmo.com">{scripts}</head>
<body class="product-template-default single single-product wp-theme-sgammo woocommerce"><header><div class="cart-contents">{amount("0.00")}</div></header>
<main><div class="sgammo-content-single-product"><h1 class="sgammo-content-single-product__title">{goods.title}</h1><div class="sgammo-content-single-product__details">
<div class="sgammo-content-single-product__details__left"><img src="/x.jpg"></div><div class="{details}"><div class="{details}__sku">SKU: {goods.sku}</div>
{f'<div class="{details}__price">{price}</div>' if has_price else ""}{table}<p class="stock {kind}">{words}</p>{form if goods.stock is not OUT else ""}</div></div>
<div class="description"><p>Ships from Oklahoma. $0.{goods.number % 60 + 20} per round. Orders over $200 ship at a flat rate of $15.</p></div></div>
<section class="related products"><h2>Related products</h2><ul class="products">{others}</ul></section></main></body></html>"""


def sgammo_pages() -> list[Case]:
    """Sixty pages: ten in each state."""
    cases = []
    for state, (is_sale, stock, has_tiers, has_price) in STATES.items():
        for number in range(10):
            maker = _MAKERS[number % 5]
            price = f"{(number * 37 + 11) % 480 + 12}.{number * 9 % 100:02}"
            goods = Goods(
                title=f"{'500' if number % 2 else '50'} Round {'Case' if number % 2 else 'Box'} - {_KINDS[number % 5]} by {maker}",
                price=price, was=f"{float(price) + 20:.2f}" if is_sale else "", stock=stock, sku=f"{90226 + number} - case", brand=maker,
                number=7000 + number,
            )  # fmt: skip
            html = sgammo(goods, has_tiers=has_tiers, has_price=has_price)
            cases.append(
                Case(
                    name=f"{state}-{number}",
                    platform="sgammo",
                    html=html,
                    goods=goods,
                    price=price if has_price else None,
                    stock=stock,
                    site="sgammo",
                )
            )
    return cases


def classes_of_another_theme(html: str) -> str:
    return html.replace("sgammo-content-single-product", "sg2-product-page")


def rendered_by_script(html: str) -> str:
    return re.sub(
        r'(<div class="\w[\w-]*__price">).*?(</div>\s*(?:<table|<p))',
        r'\1<div class="price-root" data-id="1"></div>\2',
        html,
        flags=re.DOTALL,
    )


def range_of_variants(html: str) -> str:
    return re.sub(
        r'(__price">).*?(</div>)', rf"\1{amount('12.00')} &ndash; {amount('480.00')}\2", html, count=1, flags=re.DOTALL
    )


def price_of_a_round(html: str) -> str:
    return re.sub(r'(__price">).*?(</div>)', rf"\1{amount('0.31')} per round\2", html, count=1, flags=re.DOTALL)


def only_related_products(html: str) -> str:
    return re.sub(
        r'<div class="sgammo-content-single-product__details">.*?(<section class="related)',
        r"</div>\1",
        html,
        flags=re.DOTALL,
    )


REDESIGNS: tuple[Callable[[str], str], ...] = (
    classes_of_another_theme, rendered_by_script, range_of_variants, price_of_a_round, only_related_products,
)  # fmt: skip
