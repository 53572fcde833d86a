"""The feeds that are due. Claiming a due time and enqueueing its job is one transaction, so parallel ticks are safe."""

import time
from typing import Any

import structlog
from django.db import connection

from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.job import RunningJob
from harvester.feeds.cleanup import watch_time
from harvester.feeds.jobs import RUN
from harvester.runs.states import RunTrigger

log = structlog.get_logger(__name__)

BATCH = 50
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
        cursor.execute(_CLAIM, [BATCH])
        feeds = cursor.fetchall()
        # Without a dedupe key: the feed's lock alone keeps its runs apart.
        job_ids = enqueue_many(
            NewJob(kind=RUN, args={"feed_id": str(feed[0]), "trigger": RunTrigger.SCHEDULED.value}) for feed in feeds
        )  # mutant: schedule-enqueues
    return [(*feed, job_id) for feed, job_id in zip(feeds, job_ids, strict=True)]
