"""Two fingerprints: of a price, to see that it changed, and of a product's content.

Both are the first 32 hexadecimal digits of SHA-256 over a text whose form is part of the contract: stored values must
mean the same for ever, whichever program computes them.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from harvester.kernel.money import Price
from harvester.kernel.text import trim

#: Raise it whenever the fields, their order or their form change: then every product counts as changed once.
CONTENT_VERSION = 1
DIGITS = 32


@dataclass(frozen=True, kw_only=True)
class Content:
    """What is stored about a product, in the order in which it is hashed. Nothing and the empty text are the same."""

    title: str
    url: str
    image: str | None = None
    brand: str | None = None
    category: str | None = None
    description: str | None = None
    item_id: str | None = None
    product_id: str | None = None
    sku: str | None = None
    gtin: str | None = None
    mpn: str | None = None
    url_hash: str | None = None


def price_signature(
    price: Price, *, in_stock: bool, original: Price | None = None, promotion: str | None = None
) -> str:
    """32 hexadecimal digits that change with anything that a customer would notice about a price."""
    return _digest(price_text(price, in_stock=in_stock, original=original, promotion=promotion))


def price_text(price: Price, *, in_stock: bool, original: Price | None = None, promotion: str | None = None) -> str:
    """What is signed: `amount|currency|original|stock|promotion`, as in `15.99|USD|18.99|in|Free shipping`.

    Amounts have exactly the decimals of the currency; what is missing is empty; stock is `in` or `out`. Only the last
    field is free text, so no bar in it can be taken for a boundary.

    Raises:
        ValueError: the original price is in another currency.
    """
    if original and original.currency != price.currency:
        raise ValueError("the original price must be in the currency of the price")
    before = f"{original.amount:f}" if original else ""
    stock = "in" if in_stock else "out"
    return f"{price.amount:f}|{price.currency}|{before}|{stock}|{trim(promotion)}"


def content_hash(content: Content) -> str:
    """32 hexadecimal digits that change with the content of a product."""
    return _digest(content_text(content))


def content_text(content: Content) -> str:
    """What is hashed: the version, then each field as its length in characters, a colon and the text."""
    return f"{CONTENT_VERSION};" + "".join(_counted(astuple(content)))


def _counted(fields: Iterable[str | None]) -> Iterable[str]:
    for field in fields:
        yield f"{len(field or '')}:{field or ''}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGITS]
