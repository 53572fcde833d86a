"""Reads made-up pages in one line."""

import json

from harvester.scraping.offers import PageReading
from harvester.scraping.reader import read_page
from harvester.scraping.site import ReadContext, Site
from harvester.scraping.sites import site_named

TITLE = "Acme claw hammer 16 oz"


def offer(price="19.99", currency="USD", stock="InStock", **more) -> dict:
    return {
        "@type": "Offer",
        "price": price,
        "priceCurrency": currency,
        "availability": f"https://schema.org/{stock}",
        **more,
    }


def product(offers=None, **more) -> dict:
    given = {"@context": "https://schema.org", "@type": "Product", "name": TITLE, "sku": "H-1"}
    return {**given, "offers": offer() if offers is None else offers, **more}


def script(data) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return f'<script type="application/ld+json">{text}</script>'


def body(
    price="$19.99", *, title=TITLE, stock="In stock", button="<button>Add to cart</button>", near="", below=""
) -> str:
    return (
        f'<div class="product"><h1>{title}</h1><div class="price">{price}</div>{near}<p class="availability">{stock}</p>'
        f"<form>{button}</form></div>{below}"
    )


def page(data, shown=None, *, head="") -> bytes:
    scripts = script(data) if data is not None else ""
    text = f"<html><head><title>{TITLE} - Shop</title>{scripts}{head}</head><body>{body() if shown is None else shown}</body></html>"
    return text.encode()


def read(
    given: bytes, site: Site | str = "structured", *, overrides=None, content_type="text/html; charset=utf-8", **context
) -> PageReading:
    site = site_named(site) if isinstance(site, str) else site
    known = {
        "url": "https://shop.example/p/hammer",
        "retailer_name": "Tool Shop",
        "retailer_domain": "toolshop.example",
        **context,
    }
    return read_page(given, content_type=content_type, site=site, context=ReadContext(**known), overrides=overrides)


def price_of(reading: PageReading) -> str:
    """The price of an offer, or the outcome."""
    return str(reading.offer.price) if reading.outcome == "OFFER" else str(reading.outcome)
