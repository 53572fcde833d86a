"""No run stays RUNNING without a job that will end it, and no job of a run fails unnoticed.

An attempt writes its error to its run itself. Where it could not, because the database was away or the worker died, the
job's row has what is known, and it is written to the run here.
"""

import re
from typing import Any

from django.db import connection

from harvester.catalog.models import Run
from harvester.catalog.states import RunStatus
from harvester.engine.errors import JobCancelled
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.states import OPEN, JobState
from harvester.feeds.alerts import job_has_failed
from harvester.feeds.cleanup import watch_time
from harvester.feeds.errors import Abandoned
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed
from harvester.feeds.run_endings import lock_feed_and_source, settle_failed
from harvester.ops.models import AuditEvent

#: What the rescuer says of a job whose worker died: nothing about the run itself.
WORKER_LOST = "WORKER_LOST"
_CODE = re.compile(r"[A-Z][A-Z0-9_]*")

# Runs whose job is gone or has ended; locked, so that two who look end each of them once.
_ORPHANS = """
SELECT r.id, j.state, j.error_type, j.error FROM runs r LEFT JOIN jobs j ON j.id = r.job_id
WHERE r.kind = 'AFFILIATE_FEED' AND r.status = 'RUNNING' AND (%(source)s::uuid IS NULL OR r.source_id = %(source)s)
  AND (j.id IS NULL OR j.state NOT IN ('pending', 'running', 'retryable'))
ORDER BY r.no FOR UPDATE OF r SKIP LOCKED
"""  # mutant: orphans
# Runs between two attempts that do not show how the last one ended: the job says it, after the attempt (retryable) or
# when the next one has begun.
_UNTOLD_ERRORS = """
UPDATE runs r SET error_code = CASE WHEN j.error_type ~ '^[A-Z][A-Z0-9_]*$' THEN j.error_type ELSE 'UNEXPECTED' END,
    error = j.error
FROM jobs j, feed_runs f
WHERE r.status = 'RUNNING' AND r.kind = 'AFFILIATE_FEED' AND (%(source)s::uuid IS NULL OR r.source_id = %(source)s)
  AND j.id = r.job_id AND f.run_id = r.id AND f.next_try_at IS NULL AND j.error_type <> %(lost)s
  AND (j.state = 'retryable' OR (j.state = 'running' AND j.attempt > r.attempt))
RETURNING r.id, CASE WHEN j.state = 'retryable' THEN j.run_at END
"""
# The newest job of each feed that failed within a day before it had a run, unless a run ended since or an alert tells
# of it.
_FAILED_EARLY = """
SELECT found.feed_id, found.id, found.error_type, found.error FROM (
    SELECT DISTINCT ON (f.id) f.id AS feed_id, j.id, j.error_type, j.error
    FROM jobs j JOIN feeds f ON f.id::text = j.args ->> 'feed_id'
    WHERE j.kind = %(kind)s AND j.state = 'failed' AND j.finished_at > statement_timestamp() - interval '1 day'
      AND j.finished_at > coalesce(f.last_run_at, '-infinity')
      AND NOT EXISTS (SELECT FROM runs r WHERE r.job_id = j.id)
    ORDER BY f.id, j.id DESC
) found
WHERE NOT EXISTS (SELECT FROM alerts a WHERE a.detail ->> 'feed_id' = found.feed_id::text
                  AND a.detail ->> 'job_id' = found.id::text)
"""


def close_all(job: RunningJob) -> dict[str, int]:
    """End runs without a job, show errors that a run could not be told, and alert of jobs that failed without a run.

    A clean-up that is slow is noticed here too: this job comes every minute, whatever the clean-up is waiting for.
    """
    with job.transaction():
        noted = note_job_errors()
    # A transaction of its own: it locks feeds, and whoever locks a feed's runs has locked the feed first.
    with job.transaction():
        closed = close_orphans()
        return {"closed": closed, "noted": noted, "failed_early": _tell_failed_early(), "slow_clean_ups": watch_time()}


def close_orphans(feed: Feed | None = None) -> int:
    """End runs whose job has ended without them, as failed by the last error that is known.

    A run without any error is ABANDONED, which is no failure of the feed. The transaction is the caller's.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS, {"source": feed.source_id if feed else None})
        found = cursor.fetchall()
        for run_id, *job in found:
            run = Run.objects.get(pk=run_id)
            locked, _ = lock_feed_and_source(cursor, Feed.objects.get(source__runs=run))
            code, message = _why(run, *job)
            settle_failed(locked, run, code, message, stage=run.stage)
    return len(found)


def _why(run: Run, state: str | None, error_type: str | None, error: str | None) -> tuple[str, str]:
    """Code and message of a run whose job ended without it."""
    if state == JobState.CANCELLED:
        return JobCancelled.code, cancelled_words(_who_cancelled(run.job_id))
    if error_type and error_type != WORKER_LOST:
        return error_type if _CODE.fullmatch(error_type) else "UNEXPECTED", error or error_type
    if run.error_code:
        return run.error_code, run.error or run.error_code
    return Abandoned.code, (
        "Its workers were lost before they could end it, and no attempt is left. Nothing was changed; look at the "
        "workers' logs, then run the feed again."
    )


def cancelled_words(name: str | None) -> str:
    return f"{name or 'Somebody'} cancelled its job. Nothing was changed; run the feed again when it should run."


def _who_cancelled(job_id: int | None) -> str | None:
    asked = AuditEvent.objects.filter(verb="JOB_CANCELLED", object_type="job", object_id=str(job_id))
    return asked.order_by("-id").values_list("actor_name", flat=True).first()


def note_job_errors(feed: Feed | None = None) -> int:
    """Show on runs between two attempts what only their jobs know of the last one. The transaction is the caller's."""
    with connection.cursor() as cursor:
        cursor.execute(_UNTOLD_ERRORS, {"source": feed.source_id if feed else None, "lost": WORKER_LOST})
        told: list[tuple[Any, Any]] = cursor.fetchall()
        for run_id, next_try_at in told:
            cursor.execute("UPDATE feed_runs SET next_try_at = %s WHERE run_id = %s", [next_try_at, run_id])
    return len(told)


def _tell_failed_early() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_EARLY, {"kind": RUN})
        found = cursor.fetchall()
    for feed_id, job_id, error_type, error in found:
        feed = Feed.objects.select_for_update(of=("self",)).select_related("source").get(pk=feed_id)
        drop_lost_request(feed)
        job_has_failed(feed, job_id, error_type or "", error or "")
    return len(found)


def drop_lost_request(feed: Feed) -> None:
    """Take back a request for a run that no job will honor, and any force. The feed is locked by the caller."""
    is_coming = Job.objects.filter(kind=RUN, state__in=OPEN, args__feed_id=str(feed.id)).exists()
    is_running = Run.objects.filter(source_id=feed.source_id, status=RunStatus.RUNNING).exists()
    if feed.manual_run_requested_at is not None and not is_coming and not is_running:
        feed.manual_run_requested_at = None
    feed.takes_file_as_is = False
    feed.save(update_fields=["manual_run_requested_at", "takes_file_as_is"])
