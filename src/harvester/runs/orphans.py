"""Runs without a job that will end them, and jobs that failed before they had a run.

An attempt writes its error to its run itself. Where it could not, because the database was away or the worker died, the
job's row has what is known, and it is copied to the run here.
"""

import re
from typing import Any, Final

from django.db import connection

from harvester.engine.errors import JobCancelled
from harvester.engine.job import RunningJob
from harvester.engine.states import JobState
from harvester.ops.models import AuditEvent
from harvester.runs import alerts, parts
from harvester.runs.endings import settle_failed
from harvester.runs.errors import Abandoned
from harvester.runs.kinds import JobRunKind, RunKind, all_kinds, kind_named
from harvester.runs.models import Run

#: The rescuer's error for a job whose worker died, which says nothing about the run itself.
WORKER_LOST: Final = "WORKER_LOST"
_CODE = re.compile(r"[A-Z][A-Z0-9_]*")

# Runs whose job is gone or has ended; locked, so that two who look end each of them once.
_ORPHANS = """
SELECT r.id, j.state, j.error_type, j.error FROM runs r LEFT JOIN jobs j ON j.id = r.job_id
WHERE r.status = 'RUNNING' AND r.kind = ANY (%(kinds)s)
  AND (%(subject)s::uuid IS NULL OR r.subject_id = %(subject)s)
  AND (j.id IS NULL OR j.state NOT IN ('pending', 'running', 'retryable'))
ORDER BY r.no FOR UPDATE OF r SKIP LOCKED
"""  # mutant: orphans
# Runs between two attempts that do not show how the last one ended: the job says it, after the attempt (retryable) or
# when the next one has begun.
_COPY_ERRORS = """
UPDATE runs r SET error_code = CASE WHEN j.error_type ~ '^[A-Z][A-Z0-9_]*$' THEN j.error_type ELSE 'UNEXPECTED' END,
    error = j.error, next_try_at = CASE WHEN j.state = 'retryable' THEN j.run_at END
FROM jobs j
WHERE r.status = 'RUNNING' AND r.kind = ANY (%(kinds)s)
  AND (%(subject)s::uuid IS NULL OR r.subject_id = %(subject)s)
  AND j.id = r.job_id AND r.next_try_at IS NULL AND j.error_type <> %(lost)s
  AND (j.state = 'retryable' OR (j.state = 'running' AND j.attempt > r.attempt))
"""
# The newest job of each subject that failed within a day before it had a run, unless a run has ended since or there is
# an alert about it.
_FAILED_EARLY = """
SELECT found.subject, found.id, found.error_type, found.error FROM (
    SELECT DISTINCT ON (j.args ->> %(key)s) j.args ->> %(key)s AS subject, j.id, j.error_type, j.error, j.finished_at
    FROM jobs j
    WHERE j.kind = %(job_kind)s AND j.state = 'failed' AND j.finished_at > statement_timestamp() - interval '1 day'
      AND NOT EXISTS (SELECT FROM runs r WHERE r.job_id = j.id)
    ORDER BY j.args ->> %(key)s, j.id DESC
) found
WHERE NOT EXISTS (SELECT FROM runs r WHERE r.kind = %(kind)s AND r.finished_at >= found.finished_at
                  AND r.subject_id = CASE WHEN found.subject ~ '^[0-9a-f-]{36}$' THEN found.subject::uuid END)
  AND NOT EXISTS (SELECT FROM alerts a WHERE a.detail ->> %(key)s = found.subject
                  AND a.detail ->> 'job_id' = found.id::text)
"""


def close_all(job: RunningJob) -> dict[str, int]:
    """End runs without a job, show errors that runs lack, and alert about jobs that failed before they had a run."""
    with job.transaction():
        noted = note_job_errors()
    # A transaction of its own: it locks subjects, and everybody locks a subject before its runs.
    with job.transaction():
        kinds = [kind for kind in all_kinds() if isinstance(kind, JobRunKind)]
        closed = close_orphans()
        failed_early = sum(map(_report_failed_early, kinds))
    ended = parts.MOST_ORPHANS
    while ended >= parts.MOST_ORPHANS:
        job.check()
        with job.transaction():
            ended = parts.close_orphans()
        closed += ended
    return {"closed": closed, "noted": noted, "failed_early": failed_early}


def close_orphans(kind: RunKind | None = None, subject: Any = None) -> int:
    """End runs whose job has ended without them, as failed by the last error that is known.

    A run without any error is ABANDONED; that is not counted as a failure of its subject. The transaction is the
    caller's; with a subject, it is that of the next run, which is about to begin.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS, _selection(kind, subject))
        found = cursor.fetchall()
        for run_id, *job in found:
            run = Run.objects.get(pk=run_id)
            own = kind_named(run.kind)
            locked, _ = own.lock(cursor, own.find_or_none(run.subject_id))
            code, message = _reason(own, run, *job)
            settle_failed(own, locked, run, code, message, stage=run.stage, run_follows=subject is not None)
    return len(found)


def note_job_errors(kind: RunKind | None = None, subject: Any = None) -> int:
    """Copy errors of attempts to their runs that only the jobs know. The transaction is the caller's."""
    with connection.cursor() as cursor:
        cursor.execute(_COPY_ERRORS, {**_selection(kind, subject), "lost": WORKER_LOST})
        return int(cursor.rowcount)


def cancelled_message(kind: RunKind, name: str | None) -> str:
    return (
        f"{name or 'Somebody'} cancelled its job. Nothing was changed; run the {kind.subject} again when it should run."
    )


def _selection(kind: RunKind | None, subject: Any) -> dict[str, Any]:
    kinds = [kind] if kind else [each for each in all_kinds() if isinstance(each, JobRunKind)]
    return {"kinds": [each.name for each in kinds], "subject": subject.pk if subject else None}


def _reason(kind: RunKind, run: Run, state: str | None, error_type: str | None, error: str | None) -> tuple[str, str]:
    """Return code and message of a run whose job ended without it."""
    if state == JobState.CANCELLED:
        asked = AuditEvent.objects.filter(verb="JOB_CANCELLED", object_type="job", object_id=str(run.job_id))
        name = asked.order_by("-id").values_list("actor_name", flat=True).first()
        return JobCancelled.code, cancelled_message(kind, name)
    if error_type and error_type != WORKER_LOST:
        return error_type if _CODE.fullmatch(error_type) else "UNEXPECTED", error or error_type
    if run.error_code:
        return run.error_code, run.error or run.error_code
    return Abandoned.code, (
        "Its workers were lost before they could end it, and no attempt is left. Nothing was changed; look at the "
        f"workers' logs, then run the {kind.subject} again."
    )


def _report_failed_early(kind: JobRunKind) -> int:
    values = {"key": kind.subject_key, "job_kind": kind.job_kind, "kind": kind.name}
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_EARLY, values)
        found = cursor.fetchall()
        reported = 0
        for subject_id, job_id, error_type, error in found:
            subject = kind.find_or_none(subject_id)
            if subject is not None:
                subject, _ = kind.lock(cursor, subject)
                kind.job_failed(subject)
                alerts.job_failed(kind, subject, job_id, error_type or "", error or "")
                reported += 1
    return reported
