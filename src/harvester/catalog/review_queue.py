"""The review of products that the resolver could not match: people link them, create a product for them, or skip them.

The resolver never changes these decisions.
"""

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from harvester.catalog import fields
from harvester.catalog.named_rows import fetch
from harvester.catalog.resolver import create_by_hand
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.gtin import normalize_gtin
from harvester.kernel.moments import parse_moment
from harvester.kernel.text import LONGEST_REASON
from harvester.ops import audit

LARGEST_PAGE = 100
#: Offers with the words whose products are checked.
CANDIDATES = 500
MOST_FOUND = 20

_WAITING = """
SELECT l.source_id, l.source_product_id AS product_id, l.updated_at, l.evidence ->> 'reason' AS reason,
       p.title, p.brand, p.gtin, p.sku, s.name AS source
FROM product_links l
JOIN source_products p ON p.source_id = l.source_id AND p.id = l.source_product_id
JOIN sources s ON s.id = l.source_id
WHERE l.status = 'NEEDS_REVIEW' AND {where}
ORDER BY {order} LIMIT %(most)s
"""
# The whole queue, oldest first; the queue of one source by product numbers, for which there is an index.
_QUEUE = _WAITING.format(
    where="""(%(at)s::timestamptz IS NULL
      OR (l.updated_at, l.source_id, l.source_product_id) > (%(at)s, %(source)s::uuid, %(product)s::bigint))""",
    order="l.updated_at, l.source_id, l.source_product_id",
)
_OF_SOURCE = _WAITING.format(
    where="l.source_id = %(source)s AND l.source_product_id > coalesce(%(product)s::bigint, 0)",
    order="l.source_product_id",
)
_LINK = """
SELECT l.status, l.match_type, l.product_id, l.evidence::text AS evidence, p.title, p.brand FROM product_links l
JOIN source_products p ON p.source_id = l.source_id AND p.id = l.source_product_id
WHERE l.source_id = %(source)s AND l.source_product_id = %(number)s FOR UPDATE OF l
"""
_DECIDE = """
UPDATE product_links SET status = %(status)s, match_type = %(match_type)s, product_id = %(product)s,
    evidence = %(evidence)s::jsonb, updated_at = clock_timestamp()
WHERE source_id = %(source)s AND source_product_id = %(number)s
"""
# By the words of offers; of a common word only some offers are checked.
_BY_WORDS = """
SELECT k.id, k.title, k.brand, k.gtin, count(*) AS sources FROM (
    SELECT w.source_id, w.product_id FROM offer_words w
    WHERE w.words @@ websearch_to_tsquery('simple', %(text)s) LIMIT %(candidates)s) o
JOIN product_links l ON l.source_id = o.source_id AND l.source_product_id = o.product_id AND l.status = 'LINKED'
JOIN products k ON k.id = l.product_id
GROUP BY k.id ORDER BY count(*) DESC, k.title, k.id LIMIT %(most)s
"""
_BY_NUMBER = """
SELECT k.id, k.title, k.brand, k.gtin,
       (SELECT count(*) FROM product_links l WHERE l.product_id = k.id) AS sources
FROM products k WHERE k.gtin = %(gtin)s OR k.id = %(id)s
"""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A product that needs a review."""

    source_id: UUID
    product_id: int
    updated_at: dt.datetime
    reason: str | None
    title: str
    brand: str | None
    gtin: str | None
    sku: str | None
    source: str

    @property
    def cursor(self) -> str:
        return f"{self.updated_at.isoformat()}~{self.source_id}~{self.product_id}"


@dataclass(frozen=True, kw_only=True)
class Canonical:
    """A canonical product; `sources` is the number of products linked to it."""

    id: UUID
    title: str
    brand: str | None
    gtin: str | None
    sources: int


def waiting(*, source_id: UUID | None = None, after: str = "", most: int = 50) -> list[Waiting]:
    """Return products that need a review, after a cursor."""
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"use 1 to {LARGEST_PAGE}.", field="most")
    values: dict[str, Any] = {"at": None, "source": None, "product": None, "most": most}
    if after:
        try:
            at, source, product = after.split("~")
            values |= {"at": parse_moment(at), "source": UUID(source), "product": int(product)}
        except ValueError:
            raise InvalidInput("not a place in the queue; start at the beginning.", field="after") from None
    if source_id is not None:
        return [Waiting(**row) for row in fetch(_OF_SOURCE, {**values, "source": source_id})]
    return [Waiting(**row) for row in fetch(_QUEUE, values)]


def next_after(source_id: UUID, product_id: int) -> Waiting | None:
    """Return the next product to review: of the same source after this one, or from its start, or the first of all.

    So two people who start at different places do not get the same products.
    """
    for place in (product_id, None):
        found = fetch(_OF_SOURCE, {"source": source_id, "product": place, "most": 1})
        if found:
            return Waiting(**found[0])
    return next(iter(waiting(most=1)), None)


def find_products(text: str) -> list[Canonical]:
    """Return canonical products by id, GTIN or words of their offers."""
    text = text.strip()
    if not re.search(r"\w", text) or "\x00" in text or len(text) > fields.LONGEST_NAME:
        return []
    gtin = normalize_gtin(text)
    numbers = {"gtin": gtin.key if gtin else None, "id": _uuid(text)}
    found = fetch(_BY_NUMBER, numbers) if any(numbers.values()) else []
    if not found:
        found = fetch(_BY_WORDS, {"text": text, "candidates": CANDIDATES, "most": MOST_FOUND})
    return [Canonical(**row) for row in found]


def link(actor: Actor, source_id: UUID, number: int, product_id: UUID) -> None:
    """Link a product to a canonical product."""
    with transaction.atomic():
        _undecided(source_id, number)
        if not fetch("SELECT id FROM products WHERE id = %(id)s FOR KEY SHARE", {"id": product_id}):
            raise NotFound(f"There is no canonical product {product_id}. Nothing was changed.")
        _decide(actor, source_id, number, "PRODUCT_LINKED", product=product_id, evidence={})


def create(actor: Actor, source_id: UUID, number: int, *, title: str = "", brand: str | None = None) -> UUID:
    """Create a canonical product for a product, by default with its title and brand. Return its id."""
    with transaction.atomic():
        row = _undecided(source_id, number)
        name = fields.optional_text("title", title) or row["title"]
        maker = row["brand"] if brand is None else fields.text_or_nothing("brand", brand)
        made = create_by_hand(name, maker)
        _decide(actor, source_id, number, "PRODUCT_CREATED", product=made, evidence={"title": name, "brand": maker})
    return made


def skip(actor: Actor, source_id: UUID, number: int, reason: str = "") -> None:
    """Leave a product without a canonical product."""
    why = fields.optional_text("reason", reason, LONGEST_REASON)
    with transaction.atomic():
        _undecided(source_id, number)
        _decide(actor, source_id, number, "PRODUCT_SKIPPED", product=None, evidence={"reason": why} if why else {})


def reopen(actor: Actor, source_id: UUID, number: int) -> None:
    """Revoke the decision of a person; the next run that changes the product lets the resolver try again."""
    with transaction.atomic():
        row = _locked(source_id, number)
        if row["match_type"] != "MANUAL" and row["status"] != "SKIPPED":
            raise Conflict(f"Product {number} was not decided by a person. Nothing was changed.")
        was = {"status": row["status"], "product": row["product_id"]}
        _write(source_id, number, status="NEEDS_REVIEW", product=None, match_type=None, evidence={"reason": "reopened"})
        audit.record(actor, "PRODUCT_REOPENED", "offer", f"{source_id}/{number}", detail=was)


def parse_id(text: str) -> UUID:
    """Return the id of a canonical product, or raise NotFound."""
    found = _uuid(text)
    if found is None:
        raise NotFound(f"There is no canonical product {text[:60]!r}; `harvester review find` shows them.")
    return found


def _undecided(source_id: UUID, number: int) -> dict[str, Any]:
    row = _locked(source_id, number)
    if row["status"] != "NEEDS_REVIEW":
        by = json.loads(row["evidence"]).get("by") or "the resolver"
        raise Conflict(f"Product {number} was already {row['status'].lower()} by {by}. Nothing was changed.")
    return row


def _locked(source_id: UUID, number: int) -> dict[str, Any]:
    found = fetch(_LINK, {"source": source_id, "number": number})
    if not found:
        raise NotFound(f"The resolver has not processed product {number} of the source {source_id}.")
    return found[0]


def _decide(
    actor: Actor, source_id: UUID, number: int, verb: str, *, product: UUID | None, evidence: Mapping[str, Any]
) -> None:
    kept = {"by": actor.name, **evidence}
    status, match_type = ("LINKED", "MANUAL") if product else ("SKIPPED", None)
    _write(source_id, number, status=status, product=product, match_type=match_type, evidence=kept)
    detail = {**evidence, **({"product": product} if product else {})}
    audit.record(actor, verb, "offer", f"{source_id}/{number}", detail=detail)


def _write(source_id: UUID, number: int, *, evidence: Mapping[str, Any], **values: Any) -> None:
    written = {**values, "source": source_id, "number": number, "evidence": json.dumps(evidence)}
    with connection.cursor() as cursor:
        cursor.execute(_DECIDE, written)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
