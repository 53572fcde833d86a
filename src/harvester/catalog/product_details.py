"""Details of a product of a source: its contents, the runs that looked for it, and its offers at other sources."""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from harvester.catalog.consumer_offers import read_attributes, tracking_url
from harvester.catalog.models import PriceCorrection
from harvester.catalog.named_rows import fetch
from harvester.catalog.offer_browser import Line, lines
from harvester.catalog.visibility_reasons import CONCERNS
from harvester.kernel.errors import NotFound
from harvester.kernel.identity import PRIORITY, shown_identity

#: The newest runs only: each may have an array of half a million numbers.
MOST_RUNS = 20
MOST_SIBLINGS = 20
MOST_CORRECTIONS = 20

_PRODUCT = """
SELECT p.*, s.name AS source, s.retailer_id, r.name AS retailer, s.tracking_template,
       coalesce(s.affiliate_account_id, s.name) AS network_source, l.product_id AS linked_to, l.status AS link_status,
       l.match_type, l.evidence::text AS evidence, a.attributes::text AS attributes, o.amount, o.currency,
       k.title AS linked_title, k.brand AS linked_brand
FROM source_products p
JOIN sources s ON s.id = p.source_id
JOIN retailers r ON r.id = s.retailer_id
LEFT JOIN product_links l ON l.source_id = p.source_id AND l.source_product_id = p.id
LEFT JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id
LEFT JOIN product_attributes a ON a.source_id = p.source_id AND a.product_id = p.id
LEFT JOIN products k ON k.id = l.product_id
WHERE p.source_id = %(source)s AND p.id = %(product)s
"""


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product as its source describes it.

    Attributes:
        facts: its other contents, and when and by which run it was created and changed.
        identity_type: the kind of number that identifies it.
        identity: the same with its value, such as `SKU:FED-9MM-50`.
        attributes: what no column has and its page says.
        tracking_url: the link for a customer's click.
        linked_to: the canonical product; None until it is linked.
    """

    source_id: UUID
    product_id: int
    source: str
    retailer_id: UUID
    retailer: str
    title: str
    identity_type: str
    identity: str
    attributes: dict[str, Any]
    tracking_url: str
    linked_to: UUID | None
    linked_title: str | None
    linked_brand: str | None
    link_status: str | None
    match_type: str | None
    facts: dict[str, Any]


_FACTS = (
    "brand", "category", "description", "url", "image_url", "identity_value", "item_id", "sku", "gtin", "mpn",
    "created_run_no", "updated_run_no", "created_at", "updated_at", "evidence",
)  # fmt: skip
_NAMED = (
    "source_id", "source", "retailer_id", "retailer", "title", "linked_to", "linked_title", "linked_brand",
    "link_status", "match_type",
)  # fmt: skip


def product(source_id: UUID, product_id: int) -> Product:
    """Return a product of a source, with or without an offer."""
    found = fetch(_PRODUCT, {"source": source_id, "product": product_id})
    if not found:
        raise NotFound(f"The source {source_id} has no product {product_id}.")
    [row] = found
    return Product(
        **{name: row[name] for name in _NAMED},
        product_id=row["id"],
        identity_type=PRIORITY[row["identity_type"] - 1].value,
        identity=shown_identity(row["identity_type"], row["identity_value"]),
        attributes=read_attributes(row["attributes"], row["amount"], row["currency"]),
        tracking_url=tracking_url(row),
        facts={name: row[name] for name in _FACTS},
    )


class Sight(StrEnum):
    """Whether a promoted run contained a product."""

    PRICED = "PRICED"  # contained it, and wrote a price
    SEEN = "SEEN"  # contained it unchanged
    ABSENT = "ABSENT"  # did not contain it
    UNKNOWN = "UNKNOWN"  # missing for so long that the run has no record of it


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """One promoted run that looked for a product."""

    run_no: int
    started_at: dt.datetime
    outcome: str
    is_ignored: bool
    sight: Sight


# A run records which products went missing with it, not which it contained.
_RUNS = f"""
SELECT r.no AS run_no, r.started_at, r.outcome, r.ignored_at IS NOT NULL AS is_ignored,
       EXISTS (SELECT FROM prices p WHERE p.source_id = %(source)s AND p.source_product_id = %(product)s
               AND p.run_no = r.no) AS priced,
       EXISTS (SELECT FROM run_absences a WHERE a.source_id = %(source)s AND a.run_no = r.no
               AND %(product)s = ANY (a.product_ids)) AS absent,
       r.finished_at > o.seen_until AND NOT o.by_pages AS is_after
FROM runs r
LEFT JOIN offers o ON o.source_id = %(source)s AND o.product_id = %(product)s
WHERE r.source_id = %(source)s AND r.outcome IN ('PROMOTED', 'APPROVED') AND r.no >= %(first)s
  AND (r.kind <> 'SCRAPE' OR EXISTS (
      SELECT FROM prices p WHERE p.source_id = %(source)s AND p.source_product_id = %(product)s AND p.run_no = r.no))
ORDER BY r.started_at DESC, r.no DESC LIMIT {MOST_RUNS}
"""  # noqa: S608 - constants only


def sightings(found: Product) -> list[Sighting]:
    """Return whether the latest promoted runs contained this product, newest first."""
    values = {"source": found.source_id, "product": found.product_id, "first": found.facts["created_run_no"]}
    oldest_first: list[Sighting] = []
    sight = Sight.SEEN
    for row in reversed(fetch(_RUNS, values)):
        if row["priced"]:
            sight = Sight.PRICED
        elif row["absent"] or row["is_after"]:
            sight = Sight.ABSENT
        else:
            sight = Sight.UNKNOWN if sight in (Sight.ABSENT, Sight.UNKNOWN) else Sight.SEEN
        names = ("run_no", "started_at", "outcome", "is_ignored")
        oldest_first.append(Sighting(sight=sight, **{name: row[name] for name in names}))
    return oldest_first[::-1]


_SIBLINGS = f"""
SELECT l.source_id, l.source_product_id FROM product_links l
WHERE l.product_id = %(linked)s AND (l.source_id, l.source_product_id) <> (%(source)s, %(product)s)
ORDER BY l.source_id, l.source_product_id LIMIT {MOST_SIBLINGS}
"""  # noqa: S608 - constants only


def siblings(found: Product) -> list[Line]:
    """Return other products that are linked to the same canonical product."""
    if found.linked_to is None:
        return []
    values = {"linked": found.linked_to, "source": found.source_id, "product": found.product_id}
    return lines([(row["source_id"], row["source_product_id"]) for row in fetch(_SIBLINGS, values)])


_CORRECTIONS = f"""
SELECT c.id FROM price_corrections c JOIN sources s ON s.id = %(source)s
WHERE EXISTS (SELECT FROM prices n WHERE n.source_id = s.id AND n.source_product_id = %(product)s AND {CONCERNS})
ORDER BY c.revoked_at IS NOT NULL, c.created_at DESC LIMIT {MOST_CORRECTIONS}
"""  # noqa: S608 - constants only


def corrections_of(source_id: UUID, product_id: int) -> list[PriceCorrection]:
    """Return the corrections that apply, or applied, to a price of this product; valid ones first."""
    ids = [row["id"] for row in fetch(_CORRECTIONS, {"source": source_id, "product": product_id})]
    found = PriceCorrection.objects.select_related("source", "retailer").in_bulk(ids)
    return [found[number] for number in ids]
