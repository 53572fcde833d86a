"""A run as a job: lock, run row, the work of the kind, end. See docs/architecture.md."""

import os
from contextlib import ExitStack, suppress
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection

from harvester.engine.errors import JobCancelled, JobSignal, Snooze
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import DATABASE_LOST
from harvester.guards.logs import log_context
from harvester.kernel.errors import ConfigError, NotFound, TerminalError
from harvester.runs.context import RunContext
from harvester.runs.endings import end_failed, message_of, note_retry, supersede
from harvester.runs.errors import DatabaseUnavailable, Superseded
from harvester.runs.kinds import JobRunKind, RunKind
from harvester.runs.models import Run
from harvester.runs.orphans import close_orphans, note_job_errors
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger
from harvester.runs.subject_lock import subject_lock

log = structlog.get_logger(__name__)

#: Seconds until a run that found a decision in progress tries again.
BUSY_SECONDS: Final = 60.0  # mutant: busy-wait
#: The same for a run that follows another one: the transaction that ends the other enqueues it, and releases the lock
#: right afterwards.
FOLLOWING_SECONDS: Final = 2.0


def execute(kind: JobRunKind, job: RunningJob, subject_id: UUID | str, trigger: str) -> dict[str, Any] | None:
    """Run a subject once. The transaction that ends the run also ends the job."""
    try:
        return _execute(kind, job, subject_id, RunTrigger(trigger))
    except DATABASE_LOST as problem:
        raise _unavailable(problem) from problem


def resumed(kind: RunKind, job: RunningJob, subject: Any, run: Run, stage: str = "scheduler") -> Any:
    """Return the context of a run that has begun."""
    return kind.context_class(kind=kind, job=job, subject=subject, run=run, stage=stage, timings=run.timings)


def _execute(kind: JobRunKind, job: RunningJob, subject_id: UUID | str, trigger: RunTrigger) -> dict[str, Any] | None:
    subject = kind.find_or_none(subject_id)
    if subject is None:
        raise NotFound(f"The {kind.subject} {subject_id} no longer exists.")
    # Left after the lock, so that the event of its release names the run.
    with (
        ExitStack() as fields,
        log_context(**kind.log_fields(subject), stage="scheduler"),
        subject_lock(kind, job, subject) as is_ours,
    ):
        if not is_ours:
            return _busy(kind, job, subject, trigger)
        context = _begin(kind, job, subject, trigger)
        if context is None:
            return {"outcome": None, "note": "there was nothing to do"}
        fields.enter_context(log_context(run_id=str(context.run.id), run_no=context.run.no))
        _attempt(kind, context)
    return None


def _busy(kind: JobRunKind, job: RunningJob, subject: Any, trigger: RunTrigger) -> dict[str, Any]:
    """End or snooze the job: a run in progress fulfills its request, and a decision is over soon."""
    running = Run.objects.filter(kind=kind.name, subject_id=subject.pk, status=RunStatus.RUNNING)
    own = running.filter(job_id=job.id).first()
    if not running.exclude(job_id=job.id).exists():  # mutant: other-run
        seconds = FOLLOWING_SECONDS if trigger is RunTrigger.MANUAL_PENDING else BUSY_SECONDS
        # mutant: busy-snooze
        raise Snooze(seconds, f"a decision about this {kind.subject} is in progress, or a run of it is just ending")
    if own is not None:  # mutant: superseded
        key = {f"{kind.subject}_lock_id": kind.lock_key(subject)[1]}
        log.warning("RETRY_LOCK_CONFLICT", run_id=str(own.id), run_no=own.no, **key)
        message = f"Another run of the {kind.subject} is in progress; it replaces this one."
        with job.transaction():
            supersede(resumed(kind, job, subject, own), message)
        raise Superseded(message)
    _log_busy(kind, subject, trigger)
    return {"outcome": None, "note": "a run was in progress"}


def _log_busy(kind: JobRunKind, subject: Any, trigger: RunTrigger) -> None:
    event = "SKIPPED_LOCK_BUSY" if trigger is RunTrigger.SCHEDULED else "MANUAL_RUN_DEFERRED"
    log.debug(event, trigger=trigger.value, **{f"{kind.subject}_lock_id": kind.lock_key(subject)[1]})


def _begin(kind: JobRunKind, job: RunningJob, subject: Any, trigger: RunTrigger) -> RunContext | None:
    """Create the run of this job before anything outside is contacted; return nothing if there is nothing to do."""
    with job.transaction(), connection.cursor() as cursor:
        # Everybody locks the subject before its runs. It is read again afterwards, as ending a lost run may change it.
        kind.lock(cursor, subject)  # mutant: subject-locked
        note_job_errors(kind, subject)
        close_orphans(kind, subject)
        subject = kind.find_or_none(subject.pk)  # mutant: subject-read-again
        own = Run.objects.filter(job_id=job.id).first()  # mutant: run-of-job
        if own is not None:
            return _resume(kind, job, subject, own)
        if kind.is_running(subject):
            _log_busy(kind, subject, trigger)
            return None
        if not kind.is_wanted(subject, trigger):
            return None
        run = Run.objects.create(
            kind=kind.name, subject_id=subject.pk, source_id=kind.source_id(subject), trigger=trigger.value,
            status=RunStatus.RUNNING, job_id=job.id, lease=job.lease, attempt=job.attempt,  # mutant: run-created
        )  # fmt: skip
        kind.begin(run, subject)
    context: RunContext = kind.context_class(kind=kind, job=job, subject=subject, run=run)
    context.log.info("RUN_START", trigger=trigger.value, worker=job.worker, worker_pid=os.getpid())
    return context


def _resume(kind: JobRunKind, job: RunningJob, subject: Any, run: Run) -> RunContext | None:
    """Continue a run with the next attempt, unless it has ended or a newer one took its place."""
    if run.status != RunStatus.RUNNING:
        return None
    context: RunContext = resumed(kind, job, subject, run)
    newer = Run.objects.filter(kind=kind.name, subject_id=subject.pk, no__gt=run.no, status=RunStatus.SUCCEEDED)
    if newer.exclude(outcome=RunOutcome.SKIPPED).exists():
        supersede(context, f"A newer run of the {kind.subject} ended before this one could continue.")
        return None
    Run.objects.filter(pk=run.pk).update(
        lease=job.lease, attempt=job.attempt, next_try_at=None
    )  # mutant: attempt-lease
    run.refresh_from_db()
    context.log_on_commit("RUN_RESUMED", attempt=job.attempt, max_attempts=job.max_attempts)
    return context


def _attempt(kind: JobRunKind, context: RunContext) -> None:
    """Do the work of the kind; an error is written to the run before the job ends with it."""
    try:
        kind.attempt(context)
    except JobCancelled as stopped:
        end_failed(context, stopped)
        raise
    except JobSignal:
        # The run stays as it is for the next attempt.
        raise
    except DATABASE_LOST as problem:
        # Django does not learn from errors of psycopg that the session may be gone. If the database does not answer
        # yet, the run gets its error from the job (see `orphans`).
        connection.errors_occurred = True
        connection.close_if_unusable_or_obsolete()
        with suppress(*DATABASE_LOST):
            _note_failure(kind, context, _unavailable(problem))
        raise
    except Exception as error:
        _note_failure(kind, context, error)
        raise


def _note_failure(kind: JobRunKind, context: RunContext, error: Exception) -> None:
    job = context.job
    if not isinstance(error, TerminalError) and job.attempt < job.max_attempts:  # mutant: transient-only
        wait = kind.retry.wait(job.attempt, 0.0)
        kind.note_error(context, error, wait)
        note_retry(context, error, wait)
        return
    if isinstance(error, TerminalError):
        why = "config" if isinstance(error, ConfigError) else "permanent"
        context.log.info("RETRY_SKIPPED", classification=why, code=error.code, hint=str(error))
    kind.note_error(context, error, None)
    end_failed(context, error)


def _unavailable(problem: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The database ended the session or did not answer ({message_of(problem).strip()}). Nothing of this attempt "
        "was written. If this lasts, look at the database's log and run `harvester doctor`."
    )
