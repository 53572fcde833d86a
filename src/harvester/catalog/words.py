"""By which words offers are found. They stand beside the offers, so that a change of prices leaves their index alone.

Of a run with some new products they are written by the promotion itself. To write half a million takes as long as the
promotion, so that a job of its own does it meanwhile: nobody finds a product that has no offer yet. When both have
ended, what is visible is also found.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.retry import RetryPolicy

log = structlog.get_logger(__name__)

MAKE_SEARCHABLE = "catalog.make_searchable"
#: New products whose words a promotion writes itself; also how many the job looks at in one transaction.
AT_ONCE = 20_000
RETRY = RetryPolicy(base=5.0, factor=3.0, attempts=5)

#: The first half of the lock's key; "word".
_WORDS_LOCK = 0x776F7264
# Between the reading of titles and the commit of their words, nobody else may change either. It is not the lock of the
# source, which a promotion has until it ends.
_LOCK = f"SELECT pg_advisory_xact_lock({_WORDS_LOCK}, hashtext(%(source)s::text))"
_ADD = """
INSERT INTO offer_words (source_id, product_id, words)
SELECT p.source_id, p.id, words_of(p.title, p.brand, p.category) FROM source_products p
WHERE p.source_id = %(source)s AND {which}
  AND NOT EXISTS (SELECT FROM offer_words w WHERE w.source_id = %(source)s AND w.product_id = p.id {within})
ON CONFLICT (source_id, product_id) DO NOTHING
"""
_ADD_THESE = _ADD.format(which="p.id = ANY (%(products)s)", within="AND w.product_id = ANY (%(products)s)")
# Of a source that is new the planner knows nothing yet: left to itself, it compares every row with every other.
_SESSION = "SET LOCAL enable_nestloop = off"
_ADD_SLICE = _ADD.format(
    which="p.id > %(after)s AND p.id <= %(upto)s",
    within="AND w.product_id > %(after)s AND w.product_id <= %(upto)s",
)
_SLICE = """
SELECT max(id), count(*) FROM (
    SELECT id FROM source_products WHERE source_id = %(source)s AND id > %(after)s ORDER BY id LIMIT %(most)s) s
"""
_COUNT = "SELECT count(*) FROM source_products WHERE source_id = %(source)s"
_LACKING = """
SELECT EXISTS (SELECT FROM offers o WHERE o.source_id = %(source)s AND NOT EXISTS (
    SELECT FROM offer_words w WHERE w.source_id = o.source_id AND w.product_id = o.product_id))
"""


def register() -> None:
    job_kind(MAKE_SEARCHABLE, queue="search", retry=RETRY)(make_searchable)


def add_words(cursor: Any, source_id: UUID, product_ids: Sequence[int]) -> None:
    """Make these products findable if they are not yet; the transaction is the caller's."""
    lock_words(cursor, source_id)
    cursor.execute(_ADD_THESE, {"source": source_id, "products": list(product_ids)})


def lock_words(cursor: Any, source_id: UUID) -> None:
    """Let nobody else write words of this source until the transaction ends."""
    cursor.execute(_LOCK, {"source": source_id})


def are_lacking(source_id: UUID) -> bool:
    """Whether some offer of a source cannot be found by its words."""
    with connection.cursor() as cursor:
        cursor.execute(_LACKING, {"source": source_id})
        return bool(cursor.fetchone()[0])


def ask_for_words(source_id: UUID) -> None:
    """Have the products of a source made findable, soon."""
    enqueue(MAKE_SEARCHABLE, {"source_id": str(source_id)}, dedupe_key=f"words:{source_id}")


def make_searchable(job: RunningJob, source_id: str) -> dict[str, int]:
    """Write the words of products that have none yet, some at a time."""
    values: dict[str, Any] = {"source": source_id, "after": 0, "most": AT_ONCE}
    total, looked_at, added = _count(values), 0, 0
    while True:
        job.check()
        with job.transaction(), connection.cursor() as cursor:
            cursor.execute(_SESSION)
            cursor.execute(_LOCK, values)
            cursor.execute(_SLICE, values)
            upto, count = cursor.fetchone()
            if not count:
                break
            cursor.execute(_ADD_SLICE, {**values, "upto": upto})
            added += cursor.rowcount
        values["after"] = upto
        looked_at += count
        job.progress(looked_at, total, "words of new products")
    log.info("PRODUCTS_SEARCHABLE", source_id=source_id, products=looked_at, added=added)
    return {"products": looked_at, "added": added}


def _count(values: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, values)
        return int(cursor.fetchone()[0])
