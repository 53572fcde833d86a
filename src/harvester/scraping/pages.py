"""Reads a product page: the one product in its structured data (JSON-LD), or the reason why there is none."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final

from harvester.kernel.errors import TerminalError
from harvester.kernel.money import Price, parse_price
from harvester.kernel.rejects import Rejected
from harvester.kernel.stock import Availability
from harvester.kernel.text import trim

#: Structured data is nested; deeper than this it is not meant for anybody.
MOST_LEVELS: Final = 8
_AVAILABLE: Final = {
    **dict.fromkeys(("InStock", "LimitedAvailability", "OnlineOnly"), Availability.IN_STOCK),
    **dict.fromkeys(("OutOfStock", "SoldOut", "Discontinued", "InStoreOnly"), Availability.OUT_OF_STOCK),
    **dict.fromkeys(("BackOrder", "PreOrder", "PreSale"), Availability.BACKORDER),
}


class NoAgreement(TerminalError):
    """The page does not have one certain price of one product."""

    code = "NO_AGREEMENT"


@dataclass(frozen=True, kw_only=True)
class Product:
    """The product of a page."""

    title: str
    price: Price
    availability: Availability
    sku: str | None = None
    gtin: str | None = None
    brand: str | None = None
    image: str | None = None


def read_product(html: str) -> Product:
    """Return the product of a page.

    Raises:
        NoAgreement: the page describes no product or several, or its offers differ in price or stock.
    """
    products = [node for node in _nodes(html) if "Product" in _types(node)]
    if len(products) != 1:
        raise NoAgreement(f"The page describes {len(products)} products; it must be one.")
    [product] = products
    offers = [offer for offer in _listed(product.get("offers")) if isinstance(offer, dict)]
    prices = {_price(offer) for offer in offers}
    stocks = {_availability(offer) for offer in offers}
    if len(prices) != 1 or len(stocks) != 1:
        shown = ", ".join(sorted(map(str, prices))) or "none"
        raise NoAgreement(f"The offers of the page do not agree on one price and stock; prices: {shown}.")
    title = trim(_text(product.get("name")))
    if not title:
        raise NoAgreement("The product of the page has no name.")
    brand = product.get("brand")
    [price], [stock] = prices, stocks
    return Product(
        title=title,
        price=price,
        availability=stock,
        sku=_text(product.get("sku")) or None,
        gtin=next((_text(product[name]) for name in ("gtin", "gtin13", "gtin12") if product.get(name)), None),
        brand=_text(brand.get("name") if isinstance(brand, dict) else brand) or None,
        image=_text(next(iter(_listed(product.get("image"))), None)) or None,
    )


def _price(offer: dict[str, Any]) -> Price:
    currency = trim(_text(offer.get("priceCurrency")))
    try:
        return parse_price(f"{_text(offer.get('price'))} {currency}")
    except Rejected as problem:
        raise NoAgreement(f"The price {offer.get('price')!r} {currency!r} cannot be read: {problem}.") from None


def _availability(offer: dict[str, Any]) -> Availability:
    word = _text(offer.get("availability")).rsplit("/", 1)[-1]
    if word not in _AVAILABLE:
        raise NoAgreement(f"The availability {word[:50]!r} is not known.")
    return _AVAILABLE[word]


def _nodes(html: str) -> Iterator[dict[str, Any]]:
    """Every object of the page's structured data, except parts of products."""
    parser = _Scripts()
    parser.feed(html)
    for text in parser.texts:
        try:
            found = json.loads(text, parse_float=str, parse_int=str)
        except (ValueError, RecursionError):
            continue
        yield from _inside(found, MOST_LEVELS)


def _inside(value: Any, levels: int) -> Iterator[dict[str, Any]]:
    for item in _listed(value):
        if isinstance(item, dict) and levels:
            yield item
            if "Product" not in _types(item):
                yield from _inside(item.get("@graph"), levels - 1)


def _types(node: dict[str, Any]) -> set[str]:
    return {_text(kind).rsplit("/", 1)[-1] for kind in _listed(node.get("@type"))}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class _Scripts(HTMLParser):
    """Collects the texts of scripts with structured data."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_inside = tag == "script" and dict(attrs).get("type") == "application/ld+json"
        if self._is_inside:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.texts[-1] += data
