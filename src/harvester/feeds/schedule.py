"""Feeds by the clock: those that are due, and what is cleared away each day.

Claiming a due time and enqueueing its job is one transaction, so parallel ticks are safe.

The clean-up deletes old runs, products that nobody ever saw, and files that nobody needs. Prices and audit events stay
for ever. So do runs that something still points to: one that is held, a source's last promoted and last ingested ones,
the promoted one before it, one that a correction names or that is ignored, and one that is in progress.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from harvester.catalog.named_rows import fetch_tuples
from harvester.catalog.search_index import lock_words
from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.states import JobState
from harvester.feeds.files import artifact_store
from harvester.feeds.jobs import CLEAN_UP, RUN
from harvester.feeds.reader.row_cache.store import remove_all_except
from harvester.feeds.runs import FEED_LOCK
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.ops.models import Alert
from harvester.runs.retention import delete_old_runs
from harvester.runs.states import RunTrigger

log = structlog.get_logger(__name__)

MOST_DUE = 50
# The next run is counted from now, not from the time that was missed: a backlog results in one run. FOR NO KEY UPDATE,
# because a run in progress refers to its feed: a stronger lock would conflict with it, and SKIP LOCKED skip the feed.
_CLAIM = """
WITH due AS (
    SELECT id FROM feeds
    WHERE status = 'ENABLED' AND next_run_at <= now() AND schedule_hours IS NOT NULL
    ORDER BY next_run_at
    LIMIT %s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE feeds SET next_run_at = now() + schedule_hours * interval '1 hour'
FROM due WHERE feeds.id = due.id
RETURNING feeds.id, feeds.source_id, feeds.network, feeds.next_run_at
"""


def tick(job: RunningJob) -> dict[str, int]:
    """Enqueue a run for each feed that is due. This job runs every minute, so it also detects a slow clean-up."""
    began, enqueued = time.monotonic(), 0
    while claimed := _claim(job):
        enqueued += len(claimed)
        for feed_id, source_id, network, next_run_at, job_id in claimed:
            log.info(
                "FEED_ENQUEUED", feed_id=str(feed_id), source_id=str(source_id), network=network, stage="scheduler",
                next_run_at=next_run_at.isoformat(), trigger=RunTrigger.SCHEDULED.value, enqueued_job_id=job_id,
            )  # fmt: skip
        job.check()
    took = round((time.monotonic() - began) * 1000)
    log.debug("SCHEDULER_TICK", stage="scheduler", eligible_feeds=enqueued, tick_duration_ms=took)
    with job.transaction():
        return {"enqueued": enqueued, "slow_clean_ups": watch_time()}


def _claim(job: RunningJob) -> list[tuple[Any, ...]]:
    """Claim some feeds that are due; return them with the jobs of their runs."""
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(_CLAIM, [MOST_DUE])
        feeds = cursor.fetchall()
        # Without a dedupe key: the feed's lock alone keeps its runs apart.
        job_ids = enqueue_many(
            NewJob(kind=RUN, args={"feed_id": str(feed[0]), "trigger": RunTrigger.SCHEDULED.value}) for feed in feeds
        )  # mutant: schedule-enqueues
    return [(*feed, job_id) for feed, job_id in zip(feeds, job_ids, strict=True)]


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
    began = clock()
    now: datetime = _column("SELECT clock_timestamp()")[0]
    before = now - timedelta(days=settings.CONFIG.keep_runs_days)
    totals = {
        "runs": _in_batches(job, "runs", before, delete_old_runs(job, before)),
        "products": _in_batches(job, "products", before, _product_batches(job)),
    }
    pruned = artifact_store().prune(before, _column(_NEEDED_FILES))
    totals["known"] = remove_all_except(set(_column(_SOURCES)))
    totals |= {"files": pruned.files, "file_bytes": pruned.bytes, "parts": artifact_store().sweep()}
    seconds = clock() - began
    with job.transaction():
        if seconds <= SLOW_SECONDS:
            resolve_alert(CLEANUP_SLOW, f"The last clean-up took {seconds:.0f} s.")
        else:
            raise_alert(
                CLEANUP_SLOW,
                CLEANUP_SLOW,
                "The daily clean-up of feeds is slow",
                f"It took {seconds / 60:.0f} minutes; {SLOW_SECONDS / 60:.0f} are usual at the most. All of it was "
                "done. Look for bloated tables and for old transactions (docs/operations.md, Clean-up).",
                detail={"seconds": round(seconds)},
            )
    log.info("CLEANUP_COMPLETE", stage="cleanup", cutoff=before.isoformat(), **totals)
    return totals


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
    """Delete products that were never promoted; none of a feed while a run of it is in progress or held."""
    for source_id in _column(_SOURCES):
        values = {"source": source_id, "after": 0, "most": BATCH, "lock": FEED_LOCK}
        while True:
            gone: list[int] = []
            with job.transaction():
                if _column(_LOCK_IDLE_FEED, values) == [True]:
                    with connection.cursor() as cursor:
                        # The search words of a deleted product must not be written at the same time.
                        lock_words(cursor, source_id)
                    gone = _column(_DELETE_PRODUCTS, values)
            if not gone:
                break
            yield len(gone)
            values["after"] = max(gone)


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


def _column(query: str, values: dict[str, Any] | None = None) -> list[Any]:
    return [row[0] for row in fetch_tuples(query, values)]
