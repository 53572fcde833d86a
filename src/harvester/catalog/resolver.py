"""The resolver: matches products of different sources. Only it creates canonical products.

Products match by GTIN if their source is trusted with GTINs, otherwise by a complete fingerprint; both must be equal.
Products with neither need a review. The resolver never changes what a person decided.

Two offers of the same product share a fingerprint: brand, title and pack size, all of them exact. A wrong link shows
one product's price next to another's; a missing link only asks a person. So anything missing or ambiguous means no
fingerprint.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from harvester.catalog.models import Source
from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.gtin import normalize_gtin
from harvester.kernel.ids import uuid7
from harvester.kernel.retry import RetryPolicy

#: Part of the hashed text, so that fingerprints made by different rules are never equal.
VERSION = "1"
#: Words in a title besides brand and pack; with fewer it names a kind of product.
FEWEST_WORDS = 2

_UNITS: dict[str, tuple[str, Decimal]] = {
    **dict.fromkeys(("ml", "milliliter", "millilitre"), ("ml", Decimal(1))),
    **dict.fromkeys(("cl",), ("ml", Decimal(10))),
    **dict.fromkeys(("l", "liter", "liters", "litre", "litres"), ("ml", Decimal(1000))),
    **dict.fromkeys(("mg",), ("g", Decimal("0.001"))),
    **dict.fromkeys(("g", "gram", "grams", "gr"), ("g", Decimal(1))),
    **dict.fromkeys(("kg", "kilo", "kilogram"), ("g", Decimal(1000))),
    **dict.fromkeys(("oz", "ounce", "ounces"), ("oz", Decimal(1))),
    **dict.fromkeys(("lb", "lbs", "pound", "pounds"), ("oz", Decimal(16))),
    **dict.fromkeys(("ct", "count", "pack", "packs", "pk", "pc", "pcs", "piece", "pieces"), ("count", Decimal(1))),
    **dict.fromkeys(("rd", "rds", "round", "rounds", "capsules", "tablets"), ("count", Decimal(1))),
}
_NUMBER = r"[0-9]+(?:[.,][0-9]+)?"
_MEASURE = re.compile(rf"(?<![\w.,])({_NUMBER})[ -]?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?!\w)")
_TIMES = re.compile(rf"(?<![\w.,])([0-9]+) ?x ?(?={_NUMBER} ?[a-z])")
_PACK_OF = re.compile(r"(?<!\w)(?:pack|set|box|case) of ([0-9]+)(?!\w)")
#: "1,000" may be a thousand or one.
_AMBIGUOUS = re.compile(r"[0-9][.,][0-9]{3}(?![0-9])")


def fingerprint(brand: str | None, title: str | None) -> str | None:
    """Return 64 hexadecimal digits that equal products share; none if brand, title or pack is incomplete."""
    maker, text = _plain(brand), _plain(title)
    packs, rest = _packs(text)
    brand_words, words = _words(maker), _words(rest)
    # Some shops put the brand before the title, some do not.
    if brand_words and words[: len(brand_words)] == brand_words:
        words = words[len(brand_words) :]
    if not maker or not packs or len(words) < FEWEST_WORDS or _AMBIGUOUS.search(text):
        return None
    hashed = "\n".join((VERSION, " ".join(brand_words), " ".join(words), " ".join(sorted(packs))))
    return hashlib.sha256(hashed.encode()).hexdigest()


def _plain(text: str | None) -> str:
    spelled = unicodedata.normalize("NFKC", text or "").casefold()
    return " ".join(spelled.replace("\N{MULTIPLICATION SIGN}", "x").split())


def _packs(text: str) -> tuple[list[str], str]:
    """Return the sizes and counts in a title, each in its smallest unit, and the title without them."""
    found: list[str] = []

    def take(amount: str, unit: str) -> str:
        name, factor = _UNITS[unit]
        found.append(f"{(Decimal(amount.replace(',', '.')) * factor).normalize():f}{name}")
        return " "

    text = _PACK_OF.sub(lambda match: take(match[1], "count"), text)
    text = _TIMES.sub(lambda match: take(match[1], "count"), text)
    text = _MEASURE.sub(lambda match: take(match[1], match[2]), text)
    return found, text


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


log = structlog.get_logger(__name__)

RESOLVE = "catalog.resolve"
BATCH = 5_000
RETRY = RetryPolicy(base=5.0, factor=3.0, attempts=5)

_TOUCHED = """
SELECT id, gtin, brand, title FROM source_products
WHERE source_id = %(source)s AND id > %(after)s AND {which}
ORDER BY id LIMIT %(most)s
"""
_BY_RUN = _TOUCHED.format(which="(created_run_no = %(run)s OR updated_run_no = %(run)s)")
_THESE = _TOUCHED.format(which="id = ANY (%(products)s)")
# In the order of their keys, so that two resolvers that create the same products cannot deadlock.
_MAKE = """
INSERT INTO products (id, {column}, title, brand)
SELECT * FROM unnest(%(ids)s::uuid[], %(keys)s::text[], %(titles)s::text[], %(brands)s::text[]) AS n (i, k, t, b)
ORDER BY k COLLATE "C" ON CONFLICT ({column}) DO NOTHING
"""
_MAKE_BY = {"GTIN": _MAKE.format(column="gtin"), "FINGERPRINT": _MAKE.format(column="fingerprint")}
_LINK = """
INSERT INTO product_links AS l (source_id, source_product_id, product_id, status, match_type, evidence)
SELECT %(source)s, n.number, coalesce(g.id, f.id),
    CASE WHEN num_nonnulls(g.id, f.id) = 0 THEN 'NEEDS_REVIEW' ELSE 'LINKED' END, n.match_type, n.evidence
FROM unnest(%(numbers)s::bigint[], %(match_types)s::text[], %(keys)s::text[], %(evidence)s::jsonb[])
    AS n (number, match_type, key, evidence)
LEFT JOIN products g ON n.match_type = 'GTIN' AND g.gtin = n.key
LEFT JOIN products f ON n.match_type = 'FINGERPRINT' AND f.fingerprint = n.key
ON CONFLICT (source_id, source_product_id) DO UPDATE SET product_id = excluded.product_id, status = excluded.status,
    match_type = excluded.match_type, evidence = excluded.evidence, updated_at = clock_timestamp()
WHERE l.match_type IS DISTINCT FROM 'MANUAL' AND l.status <> 'SKIPPED'
  AND (l.product_id, l.status, l.match_type, l.evidence)
      IS DISTINCT FROM (excluded.product_id, excluded.status, excluded.match_type, excluded.evidence)
"""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A source's product and what it can be matched by.

    Attributes:
        number: the source's product.
        title: for a new canonical product.
        brand: for a new canonical product.
        match_type: GTIN or FINGERPRINT; None if it has neither.
        key: the GTIN or the fingerprint.
        evidence: shown to people with the link.
    """

    number: int
    title: str
    brand: str | None
    match_type: str | None
    key: str | None
    evidence: dict[str, str]


def register() -> None:
    job_kind(RESOLVE, queue="catalog", retry=RETRY)(resolve)


def ask_for_links(source_id: UUID, run_no: int, product_ids: Sequence[int] | None = None) -> None:
    """Enqueue the job that links the products that a run created or changed.

    With `product_ids` it looks at these only: finding those of a run takes as long as the source is large. The jobs of
    a source run one after another: otherwise one that read an old title might write its link last.
    """
    args: dict[str, Any] = {"source_id": str(source_id), "run_no": run_no}
    if product_ids is not None:
        args["product_ids"] = list(product_ids)
    enqueue(RESOLVE, args, lane=f"links:{source_id}")


def resolve(job: RunningJob, source_id: str, run_no: int, product_ids: Sequence[int] | None = None) -> dict[str, int]:
    """Link the products that a run created or changed, or these of them."""
    trusted = Source.objects.filter(pk=source_id).values_list("upc_trusted", flat=True).first()
    counts = {"products": 0, "gtin": 0, "fingerprint": 0, "needs_review": 0}
    after = 0
    while True:
        job.check()
        with connection.cursor() as cursor:
            values: dict[str, Any] = {
                "source": source_id,
                "after": after,
                "run": run_no,
                "most": BATCH,
                "products": product_ids,
            }
            cursor.execute(_BY_RUN if product_ids is None else _THESE, values)
            rows = cursor.fetchall()
        if not rows:
            break
        after = rows[-1][0]
        candidates = [_candidate(row, trusted=bool(trusted)) for row in rows]
        with job.transaction():
            _link(source_id, candidates)
        counts["products"] += len(candidates)
        for candidate in candidates:
            counts[(candidate.match_type or "needs_review").lower()] += 1
        job.progress(counts["products"], note="products resolved")
    log.info("PRODUCTS_RESOLVED", source_id=str(source_id), run_no=run_no, **counts)
    return counts


def _candidate(row: tuple[Any, ...], *, trusted: bool) -> Candidate:
    number, gtin, brand, title = row
    known = normalize_gtin(gtin) if trusted else None
    if known is not None and known.key is not None:
        found: tuple[str | None, str | None, dict[str, str]] = ("GTIN", known.key, {"gtin": known.key})
    elif (mark := fingerprint(brand, title)) is not None:
        found = ("FINGERPRINT", mark, {"brand": str(brand), "title": title})
    else:
        why = "no trusted GTIN, and brand, title or pack size is missing"
        found = (None, None, {"reason": why})
    match_type, key, evidence = found
    return Candidate(number=number, title=title, brand=brand, match_type=match_type, key=key, evidence=evidence)


def _link(source_id: UUID | str, candidates: Sequence[Candidate]) -> None:
    with connection.cursor() as cursor:
        for match_type, statement in _MAKE_BY.items():
            new = {candidate.key: candidate for candidate in reversed(candidates) if candidate.match_type == match_type}
            if new:
                columns: dict[str, list[Any]] = {
                    "ids": [uuid7() for _ in new],
                    "keys": list(new),
                    "titles": [candidate.title for candidate in new.values()],
                    "brands": [candidate.brand for candidate in new.values()],
                }
                cursor.execute(statement, columns)
        values = {
            "source": source_id,
            "numbers": [candidate.number for candidate in candidates],
            "match_types": [candidate.match_type for candidate in candidates],
            "keys": [candidate.key for candidate in candidates],
            "evidence": [json.dumps(candidate.evidence) for candidate in candidates],
        }
        cursor.execute(_LINK, values)


def create_by_hand(title: str, brand: str | None) -> UUID:
    """Create a canonical product for a person, in the caller's transaction. Only people link products to it."""
    made = uuid7()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO products (id, title, brand) VALUES (%s, %s, %s)", [made, title, brand])
    return made
