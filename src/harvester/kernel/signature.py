"""Hashes that detect changes: of a price, and of a product's content.

Both are contracts: stored values must keep their meaning, whichever program computes them. A price is hashed with
SHA-256 because its signature is a key. Content is hashed with XXH64, because it is only compared with its own earlier
version and half a million are hashed in one run; the columnar pipeline computes the same numbers natively.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from harvester.kernel.money import Price
from harvester.kernel.text import trim

#: Increase it whenever the fields, their order or their form change: then every product counts as changed once.
CONTENT_VERSION = 1
DIGITS = 32
_TWO_TO_64 = 1 << 64
_MASK = _TWO_TO_64 - 1
_PRIME_1 = 0x9E37_79B1_85EB_CA87
_PRIME_2 = 0xC2B2_AE3D_27D4_EB4F
_PRIME_3 = 0x1656_67B1_9E37_79F9
_PRIME_4 = 0x85EB_CA77_C2B2_AE63
_PRIME_5 = 0x27D4_EB2F_1656_67C5
#: Four lanes of eight bytes.
_STRIPE = 32


@dataclass(frozen=True, kw_only=True)
class Content:
    """The stored content of a product, in the order in which it is hashed. None and the empty text are the same."""

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
    price: Price,
    *,
    in_stock: bool,
    on_backorder: bool = False,
    original: Price | None = None,
    promotion: str | None = None,
) -> str:
    """Return 32 hexadecimal digits that change with anything that a customer would notice about a price."""
    text = price_text(price, in_stock=in_stock, on_backorder=on_backorder, original=original, promotion=promotion)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGITS]


def price_text(
    price: Price,
    *,
    in_stock: bool,
    on_backorder: bool = False,
    original: Price | None = None,
    promotion: str | None = None,
) -> str:
    """Return the signed text: `amount|currency|original|stock|promotion`, as in `15.99|USD|18.99|in|Free shipping`.

    Amounts have exactly the decimals of the currency; missing fields are empty; stock is `in`, `out` or,
    of what is sold before it is in stock, `backorder`. Only the last
    field is free text, so a bar in it is not ambiguous.

    Raises:
        ValueError: the original price is in another currency.
    """
    if original and original.currency != price.currency:
        raise ValueError("the original price must be in the currency of the price")
    before = f"{original.amount:f}" if original else ""
    stock = "in" if in_stock else "backorder" if on_backorder else "out"
    return f"{price.amount:f}|{price.currency}|{before}|{stock}|{trim(promotion)}"


def content_hash(content: Content) -> int:
    """Return the signed 64-bit sum of the field hashes of a product's content."""
    total = sum(field_hash(place, text) for place, text in enumerate(astuple(content)))
    return (total + _TWO_TO_64 // 2) % _TWO_TO_64 - _TWO_TO_64 // 2


def field_hash(place: int, text: str | None) -> int:
    """Return the unsigned hash of one field; the same text in two fields gives two numbers."""
    return xxh64((text or "").encode(errors="surrogatepass"), field_seed(place))


def field_seed(place: int) -> int:
    return CONTENT_VERSION * 256 + place


def xxh64(data: bytes, seed: int = 0) -> int:
    """Return XXH64, Yann Collet's hash, as an unsigned 64-bit number. It does not protect against forgery."""
    stripes = len(data) - len(data) % _STRIPE
    value = seed + _PRIME_5
    if stripes:
        lanes = [seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2, seed, seed - _PRIME_1]
        for place, word in enumerate(_words(data[:stripes], 8)):
            lanes[place % 4] = _round(lanes[place % 4], word)
        value = sum(_rotate(lane & _MASK, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane & _MASK)) * _PRIME_1 + _PRIME_4) & _MASK
    value = (value + len(data)) & _MASK
    rest = data[stripes:]
    eights = len(rest) - len(rest) % 8
    for word in _words(rest[:eights], 8):
        value = (_rotate(value ^ _round(0, word), 27) * _PRIME_1 + _PRIME_4) & _MASK
    fours = len(rest) - len(rest) % 4
    for word in _words(rest[eights:fours], 4):
        value = (_rotate(value ^ (word * _PRIME_1 & _MASK), 23) * _PRIME_2 + _PRIME_3) & _MASK
    for byte in rest[fours:]:
        value = _rotate(value ^ (byte * _PRIME_5 & _MASK), 11) * _PRIME_1 & _MASK
    value = (value ^ (value >> 33)) * _PRIME_2 & _MASK
    value = (value ^ (value >> 29)) * _PRIME_3 & _MASK
    return value ^ (value >> 32)


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _PRIME_2) & _MASK, 31) * _PRIME_1 & _MASK


def _words(data: bytes, size: int) -> Iterator[int]:
    for start in range(0, len(data), size):
        yield int.from_bytes(data[start : start + size], "little")
