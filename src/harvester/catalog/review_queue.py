"""What people decide about products that the resolver could not recognise: linked, made anew, or skipped.

A decision is kept: the resolver leaves alone what a person linked or skipped, whatever a later run brings.
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
from harvester.catalog.resolver import make_by_hand
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.gtin import normalize_gtin
from harvester.ops import audit

LARGEST_PAGE = 100
#: Offers with the words that are looked through for their products.
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
# The queue as a whole in the order in which things came; of one source by its products' numbers, for which there is
# an index.
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
# By the words of what is sold as it; of a common word some offers are looked at.
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
    """A product that waits for a person."""

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
    """A canonical product that one may be linked to; `sources` is how many are."""

    id: UUID
    title: str
    brand: str | None
    gtin: str | None
    sources: int


def waiting(*, source_id: UUID | None = None, after: str = "", most: int = 50) -> list[Waiting]:
    """Products that wait for a person, from a cursor on."""
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"most: allowed is 1 to {LARGEST_PAGE}.")
    values = {**_place(after), "most": most}
    if source_id is not None:
        return [Waiting(**row) for row in fetch(_OF_SOURCE, {**values, "source": source_id})]
    return [Waiting(**row) for row in fetch(_QUEUE, values)]


def next_after(source_id: UUID, product_id: int) -> Waiting | None:
    """The next that waits: of the same source behind this one, else from its beginning, else the first of all.

    Going on from where one is keeps two people apart who began at different places.
    """
    for place in (product_id, None):
        found = fetch(_OF_SOURCE, {"source": source_id, "product": place, "most": 1})
        if found:
            return Waiting(**found[0])
    return next(iter(waiting(most=1)), None)


def find_products(text: str) -> list[Canonical]:
    """Canonical products by their id, their trade item number or words of what is sold as them."""
    words = text.strip()
    if not re.search(r"\w", words) or "\x00" in words or len(words) > fields.LONGEST_NAME:
        return []
    gtin = normalize_gtin(words)
    numbers = {"gtin": gtin.key if gtin else None, "id": _uuid(words)}
    found = fetch(_BY_NUMBER, numbers) if any(numbers.values()) else []
    if not found:
        found = fetch(_BY_WORDS, {"text": words, "candidates": CANDIDATES, "most": MOST_FOUND})
    return [Canonical(**row) for row in found]


def link(actor: Actor, source_id: UUID, number: int, product_id: UUID) -> None:
    """Say which canonical product a product of a source is."""
    with transaction.atomic():
        _undecided(source_id, number)
        if not fetch("SELECT id FROM products WHERE id = %(id)s FOR KEY SHARE", {"id": product_id}):
            raise NotFound(f"There is no canonical product {product_id}; nothing was changed.")
        _decide(actor, source_id, number, "PRODUCT_LINKED", product=product_id, evidence={})


def create(actor: Actor, source_id: UUID, number: int, *, title: str = "", brand: str | None = None) -> UUID:
    """Make a canonical product for it, named like it unless told otherwise; answers its id."""
    with transaction.atomic():
        known = _undecided(source_id, number)
        name = fields.optional_text("title", title) or known["title"]
        maker = known["brand"] if brand is None else fields.text_or_nothing("brand", brand)
        made = make_by_hand(name, maker)
        _decide(actor, source_id, number, "PRODUCT_CREATED", product=made, evidence={"title": name, "brand": maker})
    return made


def skip(actor: Actor, source_id: UUID, number: int, reason: str = "") -> None:
    """Leave it without a canonical product."""
    why = fields.optional_text("reason", reason)
    with transaction.atomic():
        _undecided(source_id, number)
        _decide(actor, source_id, number, "PRODUCT_SKIPPED", product=None, evidence={"reason": why} if why else {})


def reopen(actor: Actor, source_id: UUID, number: int) -> None:
    """Take back what a person decided; it waits again, and the next run that changes it lets the resolver try."""
    with transaction.atomic():
        known = _locked(source_id, number)
        if known["match_type"] != "MANUAL" and known["status"] != "SKIPPED":
            raise Conflict(f"No person decided about product {number}; nothing was changed.")
        was = {"status": known["status"], "product": known["product_id"]}
        _write(source_id, number, status="NEEDS_REVIEW", product=None, match_type=None, evidence={"reason": "reopened"})
        audit.record(actor, "PRODUCT_REOPENED", "offer", f"{source_id}/{number}", detail=was)


def parse_id(text: str) -> UUID:
    """The id of a canonical product as it was typed."""
    found = _uuid(text)
    if found is None:
        raise NotFound(f"There is no canonical product {text[:60]!r}; `harvester review find` shows them.")
    return found


def _undecided(source_id: UUID, number: int) -> dict[str, Any]:
    known = _locked(source_id, number)
    if known["status"] != "NEEDS_REVIEW":
        by = json.loads(known["evidence"]).get("by")
        who = f"{by} has decided" if by else "the resolver has decided"
        raise Conflict(f"About product {number} {who} already ({known['status'].lower()}); nothing was changed.")
    return known


def _locked(source_id: UUID, number: int) -> dict[str, Any]:
    found = fetch(_LINK, {"source": source_id, "number": number})
    if not found:
        raise NotFound(f"Product {number} of the source {source_id} was never looked at by the resolver.")
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


def _place(cursor: str) -> dict[str, Any]:
    if not cursor:
        return {"at": None, "source": None, "product": None}
    try:
        at, source, product = cursor.split("~")
        return {"at": dt.datetime.fromisoformat(at), "source": UUID(source), "product": int(product)}
    except ValueError:
        raise InvalidInput("after: this is no place in the queue; begin at its start.") from None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
