"""Offers with the names and contents of their products, as consumers get them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from harvester.catalog.named_rows import fetch
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.kernel.gtin import GTIN_LENGTHS, normalize_gtin
from harvester.kernel.identity import shown_identity
from harvester.kernel.tracking_url import build_tracking_url

#: For statements with `OFFER_JOINS` and offers as `o`.
OFFER_COLUMNS = """
    o.source_id, o.product_id, o.retailer_id, s.name AS source, r.name AS retailer,
    l.product_id AS canonical_id, p.title, p.brand, p.category, p.url, p.image_url,
    o.currency, trim_scale(o.amount) AS amount, trim_scale(o.original_amount) AS original_amount, o.in_stock,
    CASE WHEN o.in_stock THEN 'IN_STOCK' WHEN o.on_backorder THEN 'BACKORDER' ELSE 'OUT_OF_STOCK' END AS availability,
    p.identity_type, p.identity_value, o.observed_at,
    CASE WHEN NOT o.by_pages THEN o.seen_until END AS seen_until, o.is_shown, p.sku, p.item_id, p.gtin, p.mpn,
    p.tracked_url, s.tracking_template,
    coalesce(s.affiliate_account_id, s.name) AS network_source
"""
OFFER_JOINS = """
JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id
JOIN sources s ON s.id = o.source_id
JOIN retailers r ON r.id = o.retailer_id
LEFT JOIN product_links l ON l.source_id = o.source_id AND l.source_product_id = o.product_id
"""
# Also offers that consumers do not see, so that people can find out why. What a page says about a product counts where
# its price does, and not of a product that a feed describes.
_ONE = f"""
SELECT {OFFER_COLUMNS}, EXISTS (
    SELECT FROM active_offers a WHERE a.source_id = o.source_id AND a.product_id = o.product_id) AS is_active, (
    SELECT a.attributes::text FROM product_attributes a
    WHERE a.source_id = o.source_id AND a.product_id = o.product_id AND o.by_pages AND s.visibility = 'ELIGIBLE'
) AS attributes
FROM (SELECT f.*, w.retailer_id, w.is_shown FROM offers f JOIN source_windows w ON w.source_id = f.source_id) o
{OFFER_JOINS}
WHERE o.source_id = %(source)s AND o.product_id = %(product)s
"""  # noqa: S608 - constants only
# The cheapest of each currency first. More offers of one product than the limit would be a wrong link.
_OF_PRODUCT = f"""
SELECT {OFFER_COLUMNS}
FROM (SELECT v.* FROM visible_offers v JOIN product_links k ON k.source_id = v.source_id
      AND k.source_product_id = v.product_id WHERE k.product_id = %(product)s) o
{OFFER_JOINS}
ORDER BY o.currency, o.amount, o.product_id LIMIT {{most}}
"""  # noqa: S608 - constants only
# Source by source, because the indexes of these numbers start with the source.
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
#: Of the cost of a round: it is compared in tenths of a cent.
COST_DECIMALS = 3


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The offer of a source for one of its products.

    Attributes:
        source_id: with product_id, the key of the offer.
        product_id: the number of the source's product.
        retailer_id: the seller.
        source: the source's name.
        retailer: the seller's name.
        canonical_id: the product across sources; None until it is matched.
        title: of the product.
        brand: of the product.
        category: as the source names it.
        url: the product's page, without tracking.
        tracking_url: the link for a customer's click.
        image_url: a picture.
        currency: ISO 4217.
        amount: the corrected price.
        original_amount: the corrected price before a discount.
        in_stock: whether it is in stock.
        availability: IN_STOCK, OUT_OF_STOCK, or BACKORDER: it can be ordered and comes later.
        identity: what the source recognizes it by, such as `SKU:FED-9MM-50`.
        observed_at: when this price was first seen or last confirmed.
        seen_until: since when the product is missing; None while the last run has it, or only pages show it.
        is_shown: whether consumers see its source.
        is_active: whether it has not expired.
        sku: the shop's number.
        item_id: the network's number.
        gtin: global trade item number (EAN, UPC, ISBN).
        mpn: the manufacturer's number.
        attributes: what else its page says, such as caliber; read with one offer only, None if there are none.
        rank: relevance, in a search that sorts by it.
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
    availability: str
    identity: str
    observed_at: datetime
    seen_until: datetime | None
    is_shown: bool
    sku: str | None
    item_id: str | None
    gtin: str | None
    mpn: str | None
    is_active: bool = True
    attributes: dict[str, Any] | None = None
    rank: float | None = None


_DEFAULTS = {"is_active": True, "attributes": None, "rank": None}


def offer(source_id: UUID, product_id: int) -> Offer:
    """Return an offer, visible or not."""
    found = fetch_offers(_ONE, {"source": source_id, "product": product_id})
    if not found:
        raise NotFound(f"The source {source_id} has no offer {product_id}; search for offers to find their numbers.")
    [one] = found
    return replace(one, attributes=read_attributes(one.attributes, one.amount, one.currency) or None)


def read_attributes(stored: Any, amount: Decimal | None, currency: str | None) -> dict[str, Any]:
    """Return stored attributes, with the cost of a round of the price that is shown instead of that of the page."""
    attributes: dict[str, Any] = json.loads(stored) if stored else {}
    attributes.pop("cost_per_round", None)
    rounds = attributes.get("round_count")
    if amount is not None and currency is not None and isinstance(rounds, int) and rounds > 0:
        cost = (amount / rounds).quantize(Decimal(1).scaleb(-max(MINOR_UNITS[currency], COST_DECIMALS)))
        attributes["cost_per_round"] = f"{cost:f} {currency}"
    return attributes


def visible_offer(source_id: UUID, product_id: int) -> Offer:
    """Return an offer that consumers see."""
    found = offer(source_id, product_id)
    if not (found.is_shown and found.is_active):
        raise NotFound(f"The offer {product_id} of the source {source_id} is not visible now.")
    return found


def offers_of_product(canonical_id: UUID) -> list[Offer]:
    """Return the visible offers of a product from all sources, the cheapest of each currency first."""
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
    """Return the visible offers of the products with a number, the cheapest of each currency first.

    Raises:
        InvalidInput: not exactly one number was given, or the GTIN is invalid.
    """
    given = {name: text for name, text in (("gtin", gtin), ("sku", sku), ("item_id", item_id)) if text}
    if len(given) != 1:
        raise InvalidInput("give exactly one of gtin, sku and item_id.", field="gtin")
    [name] = given
    values: dict[str, Any] = {**given, "retailer": retailer_id, "source": source_id}
    if gtin:
        number = normalize_gtin(gtin)
        if number is None or not number.valid:
            raise InvalidInput("not a valid GTIN; its length or its check digit is wrong.", field="gtin")
        # Products have the leading zeros that their source wrote.
        digits = number.value.lstrip("0")
        values["gtin"] = [digits.zfill(length) for length in GTIN_LENGTHS if len(digits) <= length]
    sources = "AND w.retailer_id = %(retailer)s " if retailer_id else ""
    sources += "AND w.source_id = %(source)s" if source_id else ""
    return fetch_offers(_BY_NUMBER.format(condition=_NUMBERS[name], sources=sources, most=MOST_OF_A_PRODUCT), values)


def fetch_offers(statement: str, values: Mapping[str, Any]) -> list[Offer]:
    """Return the offers of a statement with `OFFER_COLUMNS`."""
    offers = []
    for row in fetch(statement, values):
        row["tracking_url"] = tracking_url(row)
        row["identity"] = shown_identity(row.pop("identity_type"), row.pop("identity_value"))
        for field in ("tracked_url", "tracking_template", "network_source"):
            row.pop(field)
        # The constructor of a frozen class takes ten times as long, and a page has a hundred offers.
        made = object.__new__(Offer)
        made.__dict__.update(_DEFAULTS, **row)
        offers.append(made)
    return offers


def tracking_url(row: Mapping[str, Any]) -> str:
    """Return the link for a customer's click, from a row with the fields of a product and its source."""
    return build_tracking_url(
        template=row["tracking_template"],
        url=row["url"],
        tracked_url=row["tracked_url"],
        sku=row["sku"],
        item_id=row["item_id"],
        source=row["network_source"],
    )
