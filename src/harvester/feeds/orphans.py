"""No run stays RUNNING without a job that will end it."""

from functools import partial

import structlog
from django.db import connection, transaction

from harvester.catalog.models import Run
from harvester.engine.job import RunningJob
from harvester.feeds.ending import fail_run, follow_up
from harvester.feeds.errors import Abandoned
from harvester.feeds.models import Feed

log = structlog.get_logger(__name__)

# Runs whose job is gone or has ended; locked, so that two who look end each of them once.
_ORPHANS = """
SELECT r.id FROM runs r
WHERE r.kind = 'AFFILIATE_FEED' AND r.status = 'RUNNING' AND (%(source)s::uuid IS NULL OR r.source_id = %(source)s)
  AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = r.job_id AND j.state IN ('pending', 'running', 'retryable'))
FOR UPDATE OF r SKIP LOCKED
"""


def close_orphans(feed: Feed | None = None) -> int:
    """End runs whose job is gone as ABANDONED; that is no failure of the feed. The transaction is the caller's."""
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS, {"source": feed.source_id if feed else None})
        found = [row[0] for row in cursor.fetchall()]
    for run in Run.objects.filter(pk__in=found):
        fail_run(run, Abandoned.code, "The job of this run ended without it. Nothing was changed; run the feed again.")
        _follow_up(run)
        fields = {"run_id": str(run.id), "run_no": run.no, "source_id": str(run.source_id), "job_id": run.job_id}
        transaction.on_commit(partial(log.warning, "RUN_ABANDONED", **fields))
    return len(found)


def _follow_up(run: Run) -> None:
    """Somebody may have asked for a run while this one was at work, and was told to wait for its end."""
    feed = Feed.objects.select_for_update(of=("self",)).get(source__runs=run)
    follow_up(feed, run.started_at)
    feed.save(update_fields=["manual_run_requested_at"])


def close_all(job: RunningJob) -> dict[str, int]:
    with job.transaction():
        return {"closed": close_orphans()}
