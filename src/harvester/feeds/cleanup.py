"""What of feeds is cleared away each day: old runs, products that nobody ever saw, files that nobody needs.

Prices and audit events stay for ever. So do runs that something still points to: one that is held, a source's last
promoted and last ingested ones, the promoted one before it, one that a correction names or that is ignored, and one
that is in progress.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from harvester.catalog.search_index import lock_words
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.states import JobState
from harvester.feeds.jobs import CLEAN_UP
from harvester.feeds.reader.row_cache.store import remove_all_except
from harvester.feeds.runs import FEED_LOCK
from harvester.feeds.store import artifact_store
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.ops.models import Alert
from harvester.runs.retention import delete_old_runs

log = structlog.get_logger(__name__)

CLEANUP_SLOW = "CLEANUP_SLOW"
BATCH = 1_000
#: A clean-up that takes longer says that tables are bloated.
SLOW_SECONDS = 600.0

# A run in progress or a held one may have matched a product that has no price yet and give it one later. So nothing is
# deleted during a run or while one is held, and no run can begin meanwhile: the lock is that of the feed.
_LOCK_IDLE_FEED = """
SELECT pg_try_advisory_xact_lock(%(lock)s, f.lock_no) AND s.held_run_no IS NULL
       AND NOT EXISTS (SELECT FROM runs r WHERE r.source_id = s.id AND r.status = 'RUNNING')
FROM feeds f JOIN sources s ON s.id = f.source_id WHERE s.id = %(source)s
"""  # mutant: lock-idle-feed
_DELETE_PRODUCTS = """
WITH gone AS MATERIALIZED (
    SELECT c.id FROM source_products c
    WHERE c.source_id = %(source)s AND c.id > %(after)s
      AND NOT EXISTS (SELECT FROM offers o WHERE o.source_id = c.source_id AND o.product_id = c.id)
      AND NOT EXISTS (SELECT FROM prices l WHERE l.source_id = c.source_id AND l.source_product_id = c.id)
    ORDER BY c.id LIMIT %(most)s
), unsaid AS (
    DELETE FROM offer_words w USING gone WHERE w.source_id = %(source)s AND w.product_id = gone.id
)
DELETE FROM source_products p USING gone
WHERE p.source_id = %(source)s AND p.id = gone.id RETURNING p.id
"""  # mutant: delete-products
_SOURCES = "SELECT source_id FROM feeds ORDER BY source_id"
_NEEDED_FILES = """
SELECT DISTINCT r.artifact_hash FROM runs r JOIN sources s ON s.id = r.source_id
WHERE r.artifact_hash IS NOT NULL
  AND (r.status = 'RUNNING' OR r.outcome = 'HELD' OR r.no = s.last_promoted_run_no)
"""  # mutant: needed-files


def clean_up(job: RunningJob, *, clock: Callable[[], float] = time.monotonic) -> dict[str, Any]:
    """Delete old rows and files that nothing refers to, in batches, each in its own transaction."""
    began, before = clock(), _cutoff()
    totals = {
        "runs": _in_batches(job, "runs", before, delete_old_runs(job, before)),
        "products": _in_batches(job, "products", before, _product_batches(job)),
    }
    pruned = artifact_store().prune(before, _column(_NEEDED_FILES))
    totals["known"] = remove_all_except(set(_column(_SOURCES)))
    totals |= {"files": pruned.files, "file_bytes": pruned.bytes, "parts": artifact_store().sweep()}
    _judge_time(job, clock() - began)
    log.info("CLEANUP_COMPLETE", stage="cleanup", cutoff=before.isoformat(), **totals)
    return totals


def _cutoff() -> datetime:
    now: datetime = _column("SELECT clock_timestamp()")[0]
    return now - timedelta(days=settings.CONFIG.keep_runs_days)


def _in_batches(job: RunningJob, what: str, before: datetime, batches: Iterator[int]) -> int:
    total = 0
    for deleted in batches:
        total += deleted
        job.progress(total, note=f"{what} deleted")
        log.info(
            "CLEANUP_BATCH_COMPLETE",
            stage="cleanup",
            what=what,
            deleted=deleted,
            total=total,
            cutoff=before.isoformat(),
        )
        job.check()
    return total


def _product_batches(job: RunningJob) -> Iterator[int]:
    for source_id in _column(_SOURCES):
        after = 0
        while gone := _delete_products(job, source_id, after):
            yield len(gone)
            after = max(gone)


def _delete_products(job: RunningJob, source_id: UUID, after: int) -> list[int]:
    """Delete the next products that were never promoted; none while a run of the feed is in progress or held."""
    values = {"source": source_id, "after": after, "most": BATCH, "lock": FEED_LOCK}
    with job.transaction():
        if _column(_LOCK_IDLE_FEED, values) != [True]:
            return []
        with connection.cursor() as cursor:
            # The search words of a deleted product must not be written at the same time.
            lock_words(cursor, source_id)
        return _column(_DELETE_PRODUCTS, values)


def watch_time() -> int:
    """Raise the alert while a slow clean-up still runs, once; return how many do. The transaction is the caller's."""
    late = Job.objects.filter(
        kind=CLEAN_UP, state=JobState.RUNNING, started_at__lt=Now() - timedelta(seconds=SLOW_SECONDS)
    ).count()
    if late and not Alert.objects.filter(key=CLEANUP_SLOW, resolved_at=None).exists():
        raise_alert(
            CLEANUP_SLOW,
            CLEANUP_SLOW,
            "The daily clean-up of feeds is slow",
            f"It has been running for more than {SLOW_SECONDS / 60:.0f} minutes and goes on. Look for bloated tables "
            "and for old transactions (docs/operations.md, Clean-up).",
        )
    return late


def _judge_time(job: RunningJob, seconds: float) -> None:
    with job.transaction():
        if seconds <= SLOW_SECONDS:
            resolve_alert(CLEANUP_SLOW, f"The last clean-up took {seconds:.0f} s.")
            return
        raise_alert(
            CLEANUP_SLOW,
            CLEANUP_SLOW,
            "The daily clean-up of feeds is slow",
            f"It took {seconds / 60:.0f} minutes; {SLOW_SECONDS / 60:.0f} are usual at the most. All of it was done. "
            "Look for bloated tables and for old transactions (docs/operations.md, Clean-up).",
            detail={"seconds": round(seconds)},
        )


def _column(query: str, values: dict[str, Any] | None = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [row[0] for row in cursor.fetchall()]
