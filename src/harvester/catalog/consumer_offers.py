"""An offer as consumers get it: its price, and what it is called."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from harvester.catalog.links import tracking_url
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.kernel.gtin import GTIN_LENGTHS, normalize_gtin

#: For a statement with `OFFER_JOINS`, in which offers are `o`.
OFFER_COLUMNS = """
    o.source_id, o.product_id, o.retailer_id, s.name AS source, r.name AS retailer,
    l.product_id AS canonical_id, p.title, p.brand, p.category, p.url, p.image_url,
    o.currency, trim_scale(o.amount) AS amount, trim_scale(o.original_amount) AS original_amount, o.in_stock,
    o.observed_at, o.seen_until, o.is_shown, p.sku, p.item_id, p.gtin, p.mpn, p.tracked_url, s.tracking_template,
    coalesce(s.affiliate_account_id, s.name) AS network_source
"""
OFFER_JOINS = """
JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id
JOIN sources s ON s.id = o.source_id
JOIN retailers r ON r.id = o.retailer_id
LEFT JOIN product_links l ON l.source_id = o.source_id AND l.source_product_id = o.product_id
"""
# Also what consumers do not see, so that people can find out why.
_ONE = f"""
SELECT {OFFER_COLUMNS}, EXISTS (
    SELECT FROM active_offers a WHERE a.source_id = o.source_id AND a.product_id = o.product_id) AS is_active
FROM (SELECT f.*, w.retailer_id, w.is_shown FROM offers f JOIN source_windows w ON w.source_id = f.source_id) o
{OFFER_JOINS}
WHERE o.source_id = %(source)s AND o.product_id = %(product)s
"""  # noqa: S608 - constants only
# Cheapest first within a currency; more sources of one product than this would be a wrong link.
_OF_PRODUCT = f"""
SELECT {OFFER_COLUMNS}
FROM (SELECT v.* FROM visible_offers v JOIN product_links k ON k.source_id = v.source_id
      AND k.source_product_id = v.product_id WHERE k.product_id = %(product)s) o
{OFFER_JOINS}
ORDER BY o.currency, o.amount, o.product_id LIMIT {{most}}
"""  # noqa: S608 - constants only
# Source by source, because the indexes of these numbers begin with the source.
_BY_NUMBER = f"""
SELECT {OFFER_COLUMNS}
FROM (SELECT v.* FROM source_windows w
      CROSS JOIN LATERAL (SELECT p.id FROM source_products p WHERE p.source_id = w.source_id AND {{condition}}) k
      JOIN visible_offers v ON v.source_id = w.source_id AND v.product_id = k.id
      WHERE w.is_shown {{sources}}) o
{OFFER_JOINS}
ORDER BY o.currency, o.amount, o.product_id LIMIT {{most}}
"""  # noqa: S608 - constants only
_NUMBERS = {"gtin": "p.gtin = ANY (%(gtin)s)", "sku": "p.sku = %(sku)s", "item_id": "p.item_id = %(item_id)s"}
MOST_OF_A_PRODUCT = 500


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a source asks for one of its products.

    Attributes:
        source_id: with the product's number, the key of the offer.
        product_id: the source's product.
        retailer_id: who sells.
        source: the source's name.
        retailer: the name of who sells.
        canonical_id: the product that it is an offer of, across sources; None until it is resolved.
        title: of the product.
        brand: of the product.
        category: as the source calls it.
        url: the product's page, without tracking.
        tracking_url: the link that a click takes.
        image_url: a picture.
        currency: ISO 4217.
        amount: the price, corrected.
        original_amount: what it was before a reduction, corrected.
        in_stock: whether it can be had.
        observed_at: when this price was seen first, or confirmed.
        seen_until: since when the product is missing; None while the last run saw it.
        is_shown: whether its source is one that consumers see.
        is_active: whether it was seen recently enough.
        sku: the shop's number.
        item_id: the network's number.
        gtin: trade item number.
        mpn: the maker's number.
        rank: how well it fits the words of a search that sorts by that.
    """

    source_id: UUID
    product_id: int
    retailer_id: UUID
    source: str
    retailer: str
    canonical_id: UUID | None
    title: str
    brand: str | None
    category: str | None
    url: str
    tracking_url: str
    image_url: str | None
    currency: str
    amount: Decimal
    original_amount: Decimal | None
    in_stock: bool
    observed_at: datetime
    seen_until: datetime | None
    is_shown: bool
    sku: str | None
    item_id: str | None
    gtin: str | None
    mpn: str | None
    is_active: bool = True
    rank: float | None = None


_UNLESS_TOLD = {"is_active": True, "rank": None}


def offer(source_id: UUID, product_id: int) -> Offer:
    """One offer, whether consumers see it or not."""
    found = fetch_offers(_ONE, {"source": source_id, "product": product_id})
    if not found:
        raise NotFound(f"The source {source_id} has no offer {product_id}; a search finds those that there are.")
    return found[0]


def visible_offer(source_id: UUID, product_id: int) -> Offer:
    """One offer, if consumers see it."""
    found = offer(source_id, product_id)
    if not (found.is_shown and found.is_active):
        raise NotFound(f"The offer {product_id} of the source {source_id} is not shown at present.")
    return found


def offers_of_product(canonical_id: UUID) -> list[Offer]:
    """What consumers see of one product across sources, the cheapest of each currency first."""
    found = fetch_offers(_OF_PRODUCT.format(most=MOST_OF_A_PRODUCT), {"product": canonical_id})
    if not found:
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM products WHERE id = %s", [canonical_id])
            if cursor.rowcount == 0:
                raise NotFound(f"There is no product {canonical_id}.")
    return found


def offers_by_number(
    *, gtin: str = "", sku: str = "", item_id: str = "", retailer_id: UUID | None = None, source_id: UUID | None = None
) -> list[Offer]:
    """What consumers see of the products with one number, the cheapest of each currency first.

    Raises:
        InvalidInput: not exactly one number was given, or the GTIN is none.
    """
    given = {name: text for name, text in (("gtin", gtin), ("sku", sku), ("item_id", item_id)) if text}
    if len(given) != 1:
        raise InvalidInput("gtin: give exactly one of gtin, sku and item_id.")
    [name] = given
    values: dict[str, Any] = {**given, "retailer": retailer_id, "source": source_id}
    if gtin:
        number = normalize_gtin(gtin)
        if number is None or not number.valid:
            raise InvalidInput("gtin: it has another length than a GTIN, or its check digit is wrong.")
        # Products keep the zeros that their source wrote.
        digits = number.value.lstrip("0")
        values["gtin"] = [digits.zfill(length) for length in GTIN_LENGTHS if len(digits) <= length]
    sources = "AND w.retailer_id = %(retailer)s " if retailer_id else ""
    sources += "AND w.source_id = %(source)s" if source_id else ""
    return fetch_offers(_BY_NUMBER.format(condition=_NUMBERS[name], sources=sources, most=MOST_OF_A_PRODUCT), values)


def fetch_offers(statement: str, values: Mapping[str, Any]) -> list[Offer]:
    """Carry out a statement that answers `OFFER_COLUMNS`."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        names = [column[0] for column in cursor.description]
        return [_offer(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _offer(row: dict[str, Any]) -> Offer:
    row["tracking_url"] = tracking_url(row)
    for field in ("tracked_url", "tracking_template", "network_source"):
        row.pop(field)
    # What a frozen class does field by field takes ten times as long, and a page has a hundred offers.
    made = object.__new__(Offer)
    made.__dict__.update(_UNLESS_TOLD, **row)
    return made
