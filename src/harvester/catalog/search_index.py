"""By which words offers are found. They stand beside the offers, so that a change of prices leaves their index alone.

Of a run with some new products they are written by the promotion itself. To write half a million takes as long as all
else that a promotion does, so that a job of its own does it afterwards: what is visible is found a little later.
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
#: New products whose words a promotion writes itself.
AT_ONCE = 20_000
#: Products that the job looks at in one transaction.
SLICE = 10_000
RETRY = RetryPolicy(base=5.0, factor=3.0, attempts=5)

#: The first half of the lock's key; "word".
_WORDS_LOCK = 0x776F7264
# Between the reading of titles and the commit of their words, nobody may change titles. Whoever adds words shares the
# lock with others who do. It is not the lock of the source, which a promotion has until it ends.
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
# Of a source that is new the planner knows nothing yet: left to itself, it compares every row with every other. Nobody
# waits for the disk: what a server loses when it dies, the job writes again, because it has not ended.
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
    """Whether of so many new products the words are left to the job."""
    return new > AT_ONCE


def add_words(cursor: Any, source_id: UUID, product_ids: Sequence[int]) -> None:
    """Make these products findable if they are not yet; the transaction is the caller's."""
    cursor.execute(_LOCK_SHARED, {"source": source_id})
    cursor.execute(_ADD_THESE + _UNLESS_THERE, {"source": source_id, "products": list(product_ids)})


def lock_words(cursor: Any, source_id: UUID) -> None:
    """Let nobody else write words of this source until the transaction ends, because titles change."""
    cursor.execute(_LOCK, {"source": source_id})


def are_lacking(source_id: UUID) -> bool:
    """Whether some offer of a source cannot be found by its words."""
    with connection.cursor() as cursor:
        cursor.execute(_LACKING, {"source": source_id})
        return bool(cursor.fetchone()[0])


def ask_for_words(source_id: UUID) -> None:
    """Have the products of a source made findable, soon.

    A job that is running may be past the products that this one is for, so that it is not enough that there is one;
    the lane has them run one after the other.
    """
    enqueue(MAKE_SEARCHABLE, {"source_id": str(source_id)}, lane=f"words:{source_id}")


class Slice(NamedTuple):
    """Products of a source, by their numbers: behind one, up to another."""

    after: int
    upto: int
    products: int


def make_searchable(job: RunningJob, source_id: str) -> dict[str, int]:
    """Write the words of products that have none yet, some at a time and two at once."""
    making = _Making(job, source_id)
    with in_side_session(making.slices()) as other_half_is_done:
        for _ in making.slices():
            pass
        other_half_is_done()
    log.info("PRODUCTS_SEARCHABLE", source_id=source_id, products=sum(making.looked_at), added=sum(making.added))
    return {"products": sum(making.looked_at), "added": sum(making.added)}


class _Making:
    """The slices of a source, for whoever takes the next."""

    def __init__(self, job: RunningJob, source_id: str) -> None:
        self._job, self._source_id = job, source_id
        self._after, self._taking = 0, threading.Lock()
        self.looked_at: list[int] = []
        self.added: list[int] = []

    def slices(self) -> Iterator[Slice]:
        """Write the words of one slice after the other, as long as there are any."""
        while part := self._next():
            self._job.check()
            self._add(part)
            self.looked_at.append(part.products)
            self._job.progress(sum(self.looked_at), None, "products whose words were looked at")
            yield part

    def _next(self) -> Slice | None:
        """To look for all slices beforehand would keep the other session waiting."""
        with self._taking, connection.cursor() as cursor:
            cursor.execute(_NEXT_SLICE, {"source": self._source_id, "after": self._after, "most": SLICE})
            upto, products = cursor.fetchone()
            if not products:
                return None
            part = Slice(self._after, upto, products)
            self._after = part.upto
            return part

    def _add(self, part: Slice) -> None:
        try:
            self._insert(_ADD_SLICE, part)
        except IntegrityError:
            # A promotion wrote some of them meanwhile. To look for that each time costs a tenth of the job.
            self._insert(_ADD_SLICE + _UNLESS_THERE, part)

    def _insert(self, statement: str, part: Slice) -> None:
        with self._job.transaction(), connection.cursor() as cursor:
            cursor.execute(_SESSION)
            cursor.execute(_LOCK_SHARED, {"source": self._source_id})
            cursor.execute(statement, {"source": self._source_id, "after": part.after, "upto": part.upto})
            self.added.append(cursor.rowcount)
