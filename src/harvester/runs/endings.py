"""The ends of runs: each is one transaction over the run, its figures, its subject, the audit log and the job."""

from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from harvester.engine.errors import JobCancelled
from harvester.guards.redaction import redact_text
from harvester.kernel.errors import HarvesterError
from harvester.runs import alerts
from harvester.runs.context import RunContext
from harvester.runs.errors import Abandoned, Superseded
from harvester.runs.kinds import RunKind
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome, RunStatus

log = structlog.get_logger(__name__)

#: Codes of failed runs that do not count as failures of their subject.
UNCOUNTED: Final = (Superseded.code, Abandoned.code, JobCancelled.code)  # mutant: uncounted
#: Of these, the codes without an alert: a newer run exists, or a person asked for the end.
WITHOUT_ALERT: Final = (Superseded.code, JobCancelled.code)


def succeed(context: RunContext, outcome: RunOutcome, moment: datetime, *, observed_at: datetime | None = None) -> None:
    """End a run that succeeded; one that is promoted or held takes the place of a held run of the same subject.

    The transaction is the caller's, who has locked the subject.
    """
    if outcome in (RunOutcome.PROMOTED, RunOutcome.HELD):
        _overtake_held(context, outcome, moment)
    _end(context.run, RunStatus.SUCCEEDED, outcome=outcome, observed_at=observed_at)
    alerts.run_succeeded(context.kind, context.subject)


def _overtake_held(context: RunContext, outcome: RunOutcome, moment: datetime) -> None:
    kind, run = context.kind, context.run
    held = Run.objects.filter(kind=kind.name, subject_id=context.subject.pk, outcome=RunOutcome.HELD)
    # mutant: overtakes
    if held.exclude(pk=run.pk).update(outcome=RunOutcome.OVERTAKEN, decided_at=moment):
        what = "is held" if outcome is RunOutcome.HELD else "was promoted"
        alerts.hold_is_over(kind, context.subject, f"Run {run.no} {what} in its place.")


def complete(context: RunContext, outcome: RunOutcome, **fields: Any) -> None:
    """End the job together with its run."""
    run = context.run
    context.log_on_commit(
        "RUN_COMPLETE", status=run.status, outcome=outcome.value, duration_ms=run.duration_ms, **fields
    )
    finish(context, outcome)


def finish(context: RunContext, outcome: RunOutcome) -> None:
    run = context.run
    context.job.finish({"run_no": run.no, "run_id": str(run.id), "outcome": outcome.value})


def end_failed(context: RunContext, error: BaseException) -> None:
    """End a run as failed: no further attempt would help, or none is left."""
    with context.job.transaction(), connection.cursor() as cursor:
        subject, _ = context.kind.lock(cursor, context.subject)
        context.note()
        settle_failed(context.kind, subject, context.run, code_of(error), message_of(error), stage=context.stage)


def settle_failed(
    kind: RunKind, subject: Any, run: Run, code: str, message: str, *, stage: str | None, run_follows: bool = False
) -> None:
    """End a run as failed, with everything that follows for its subject.

    The transaction is the caller's, who has locked the subject.
    """
    _end(run, RunStatus.FAILED, error_code=code, error=message, stage=stage)
    kind.failed(subject, run, is_counted=code not in UNCOUNTED, run_follows=run_follows)
    if code not in WITHOUT_ALERT:
        alerts.run_failed(kind, subject, run, code, message)  # mutant: failure-alert
    _log_failed(kind, subject, run)


def supersede(context: RunContext, message: str) -> None:
    """End a run that another one replaced; not counted as a failure of the subject. The transaction is the caller's."""
    _end(context.run, RunStatus.FAILED, error_code=Superseded.code, error=message, stage=context.stage)
    _log_failed(context.kind, context.subject, context.run)  # mutant: superseded-event


def note_retry(context: RunContext, error: BaseException, wait_seconds: float) -> None:
    """Show on the run why the attempt failed and when the next one starts."""
    with context.job.transaction():
        context.note()
        Run.objects.filter(pk=context.run.pk).update(
            error_code=code_of(error),
            error=message_of(error),  # mutant: retry-error
            next_try_at=timezone.now() + timedelta(seconds=wait_seconds),  # mutant: retry-time
        )


def code_of(error: BaseException) -> str:
    return error.code if isinstance(error, HarvesterError) else "UNEXPECTED"


def message_of(error: BaseException) -> str:
    return redact_text(str(error) or type(error).__name__)[:2000]


def _end(run: Run, status: RunStatus, **fields: Any) -> None:
    fields = {"stage": None, "error_code": None, "error": None, "next_try_at": None, **fields}
    Run.objects.filter(pk=run.pk).update(status=status, finished_at=Now(), **fields)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs SET duration_ms = extract(epoch FROM finished_at - started_at) * 1000 WHERE id = %s", [run.pk]
        )
    run.refresh_from_db()


def _log_failed(kind: RunKind, subject: Any, run: Run) -> None:
    fields = {
        **kind.log_fields(subject),
        "run_id": str(run.id),
        "run_no": run.no,
        "stage": run.stage or "scheduler",
        "job_id": run.job_id,
        "code": run.error_code,
        "error": run.error,
    }
    if run.error_code == Abandoned.code:
        transaction.on_commit(lambda: log.warning("RUN_ABANDONED", **fields))
    else:
        more = {"is_partial": False, "duration_ms": run.duration_ms}
        transaction.on_commit(lambda: log.info("RUN_FAILED", **fields, **more))
