"""Two fingerprints: of a price, to see that it changed, and of a product's content.

Both are part of the contract: stored values must mean the same for ever, whichever program computes them. A price is
signed with SHA-256 because its signature is a key; content is only compared with itself, and half a million of them
are hashed in one run.
"""

import hashlib
from dataclasses import astuple, dataclass

from harvester.kernel.money import Price
from harvester.kernel.text import trim
from harvester.kernel.xxh64 import xxh64

#: Raise it whenever the fields, their order or their form change: then every product counts as changed once.
CONTENT_VERSION = 1
DIGITS = 32
_TWO_TO_64 = 1 << 64


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
    tracked_url: str | None = None


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


def content_hash(content: Content) -> int:
    """A signed number of 64 bits that changes with the content of a product: the sum of its fields' hashes."""
    total = sum(field_hash(place, text) for place, text in enumerate(astuple(content)))
    return (total + _TWO_TO_64 // 2) % _TWO_TO_64 - _TWO_TO_64 // 2


def field_hash(place: int, text: str | None) -> int:
    """The unsigned hash of one field; the same text in two places gives two numbers."""
    return xxh64((text or "").encode(errors="surrogatepass"), field_seed(place))


def field_seed(place: int) -> int:
    return CONTENT_VERSION * 256 + place


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGITS]
