"""The words of products that searches use. They have their own table, so that price changes do not touch their index.

The promotion of a run with few new products writes them itself. Writing half a million takes as long as the rest of a
promotion, so a separate job does it afterwards: such products are visible at once, and searchable a little later.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.db import IntegrityError, connection

from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.engine.side_session import in_side_session
from harvester.kernel.retry import RetryPolicy

log = structlog.get_logger(__name__)

MAKE_SEARCHABLE = "catalog.make_searchable"
#: The most new products whose words a promotion writes itself.
AT_ONCE = 20_000
#: Products that the job processes in one transaction.
SLICE = 10_000
RETRY = RetryPolicy(base=5.0, factor=3.0, attempts=5)

#: The first half of the lock's key; "word".
_WORDS_LOCK = 0x776F7264
# Titles must not change between reading them and committing their words. Sessions that add words share the lock. It is
# not the lock of the source, which a promotion holds until it ends.
_LOCK = f"SELECT pg_advisory_xact_lock({_WORDS_LOCK}, hashtext(%(source)s::text))"
_LOCK_SHARED = _LOCK.replace("_lock(", "_lock_shared(")
_ADD = """
INSERT INTO offer_words (source_id, product_id, words)
SELECT p.source_id, p.id, words_of(p.title, p.brand, p.category) FROM source_products p
WHERE p.source_id = %(source)s AND {which}
  AND NOT EXISTS (SELECT FROM offer_words w WHERE w.source_id = %(source)s AND w.product_id = p.id {within})
"""
_UNLESS_THERE = "ON CONFLICT (source_id, product_id) DO NOTHING"
_ADD_THESE = _ADD.format(which="p.id = ANY (%(products)s)", within="AND w.product_id = ANY (%(products)s)")
# Without statistics of a new source, the planner would compare every row with every other. The commit need not wait for
# the disk: after a crash of the server the job has not ended and writes the words again.
_SESSION = "SET LOCAL enable_nestloop = off; SET LOCAL synchronous_commit = off"
_ADD_SLICE = _ADD.format(
    which="p.id > %(after)s AND p.id <= %(upto)s",
    within="AND w.product_id > %(after)s AND w.product_id <= %(upto)s",
)
_NEXT_SLICE = """
SELECT max(id), count(*) FROM (
    SELECT id FROM source_products WHERE source_id = %(source)s AND id > %(after)s ORDER BY id LIMIT %(most)s) s
"""
_LACKING = """
SELECT EXISTS (SELECT FROM offers o WHERE o.source_id = %(source)s AND NOT EXISTS (
    SELECT FROM offer_words w WHERE w.source_id = o.source_id AND w.product_id = o.product_id))
"""


def register() -> None:
    job_kind(MAKE_SEARCHABLE, queue="search", retry=RETRY)(make_searchable)


def come_later(new: int) -> bool:
    """Whether the job writes the words of so many new products."""
    return new > AT_ONCE


def add_words(cursor: Any, source_id: UUID, product_ids: Sequence[int]) -> None:
    """Make these products searchable, in the caller's transaction."""
    cursor.execute(_LOCK_SHARED, {"source": source_id})
    cursor.execute(_ADD_THESE + _UNLESS_THERE, {"source": source_id, "products": list(product_ids)})


def lock_words(cursor: Any, source_id: UUID) -> None:
    """Lock out writers of words until the transaction ends, because titles change."""
    cursor.execute(_LOCK, {"source": source_id})


def are_lacking(source_id: UUID) -> bool:
    """Whether some offers of a source are not searchable."""
    with connection.cursor() as cursor:
        cursor.execute(_LACKING, {"source": source_id})
        return bool(cursor.fetchone()[0])


def ask_for_words(source_id: UUID) -> None:
    """Enqueue the job that makes the products of a source searchable.

    A running job may have passed the new products already, so there may be several; the lane runs one after another.
    """
    enqueue(MAKE_SEARCHABLE, {"source_id": str(source_id)}, lane=f"words:{source_id}")


class Slice(NamedTuple):
    """Products of a source with numbers above `after`, up to `upto`."""

    after: int
    upto: int
    products: int


def make_searchable(job: RunningJob, source_id: str) -> dict[str, int]:
    """Write the words of products that have none, in slices and in two sessions at once."""
    writer = _Writer(job, source_id)
    with in_side_session(writer.slices()) as wait_for_other_session:
        for _ in writer.slices():
            pass
        wait_for_other_session()
    log.info("PRODUCTS_SEARCHABLE", source_id=source_id, products=sum(writer.checked), added=sum(writer.added))
    return {"products": sum(writer.checked), "added": sum(writer.added)}


class _Writer:
    """Writes the words of a source, slice by slice, for two sessions that take turns."""

    def __init__(self, job: RunningJob, source_id: str) -> None:
        self._job, self._source_id = job, source_id
        self._after, self._lock = 0, threading.Lock()
        self.checked: list[int] = []
        self.added: list[int] = []

    def slices(self) -> Iterator[Slice]:
        """Write the words of one slice after another until none is left."""
        while part := self._next():
            self._job.check()
            try:
                self._insert(_ADD_SLICE, part)
            except IntegrityError:
                # A promotion wrote some of them meanwhile. Checking for that each time would cost a tenth of the job.
                self._insert(_ADD_SLICE + _UNLESS_THERE, part)
            self.checked.append(part.products)
            self._job.progress(sum(self.checked), None, "products checked for words")
            yield part

    def _next(self) -> Slice | None:
        """Return the next slice. Finding all slices beforehand would keep the other session waiting."""
        with self._lock, connection.cursor() as cursor:
            cursor.execute(_NEXT_SLICE, {"source": self._source_id, "after": self._after, "most": SLICE})
            upto, products = cursor.fetchone()
            if not products:
                return None
            part = Slice(self._after, upto, products)
            self._after = part.upto
            return part

    def _insert(self, statement: str, part: Slice) -> None:
        with self._job.transaction(), connection.cursor() as cursor:
            cursor.execute(_SESSION)
            cursor.execute(_LOCK_SHARED, {"source": self._source_id})
            cursor.execute(statement, {"source": self._source_id, "after": part.after, "upto": part.upto})
            self.added.append(cursor.rowcount)
