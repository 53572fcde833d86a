"""The jobs of held runs: approve, reject, and judge again after the state that it was compared with has changed.

Each is one transaction under the subject's lock; the figures that the person saw are checked again inside it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection

from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.guards.logs import log_context
from harvester.kernel.actor import actor_from_json
from harvester.kernel.errors import Conflict
from harvester.ops import audit
from harvester.runs import alerts, queries
from harvester.runs.context import RunContext
from harvester.runs.endings import finish
from harvester.runs.errors import (
    AlreadyApproved,
    AlreadyRejected,
    FiguresChanged,
    NotBlocked,
    RunNotFound,
    RunNotSucceeded,
    StaleRun,
    SubjectBusy,
)
from harvester.runs.jobs import APPROVE, REJECT
from harvester.runs.kinds import Applied, HoldingKind, RunKind, holding_kind
from harvester.runs.lifecycle import resumed
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome, RunStatus
from harvester.runs.subject_lock import subject_lock

log = structlog.get_logger(__name__)

#: Job -> the event about a decision that a rule refused.
REFUSED: Final = {APPROVE: "ACTIVATION_APPROVAL_REJECTED", REJECT: "ACTIVATION_REJECTION_REFUSED"}
#: The stage of a held run whose difference is outdated, because what it was compared with has changed.
REJUDGING: Final = "rejudge"
#: Seconds until a run that is to be judged again checks again whether its subject is free.
BUSY_SECONDS: Final = 15.0


def run_of(run_id: str | UUID) -> tuple[HoldingKind, Any, Run]:
    """Return a run that can be held, with its kind and its subject.

    Raises:
        RunNotFound: there is no such run.
        NotBlocked: runs of its kind are never held.
    """
    run = queries.run(UUID(str(run_id)))
    kind = holding_kind(run.kind)
    if kind is None:
        raise NotBlocked(f"Run {run.no} is not held; there is nothing to decide.")
    subject = kind.find_or_none(run.subject_id)
    if subject is None:
        raise RunNotFound(f"The {kind.subject} of run {run.no} no longer exists.")
    return kind, subject, run


def require_held(kind: HoldingKind, run: Run, expected: Mapping[str, int] | None) -> None:
    """Raise an error with the reason if the run cannot be decided (any more)."""
    where = f"Run {run.no}"
    if run.status != RunStatus.SUCCEEDED:
        raise RunNotSucceeded(f"{where} is {run.status}; only a run that succeeded can be decided.")
    if run.outcome == RunOutcome.APPROVED:  # mutant: already-approved
        raise AlreadyApproved(f"{where} was approved by {run.decided_by} before; nothing was changed.")
    if run.outcome == RunOutcome.REJECTED:
        raise AlreadyRejected(f"{where} was rejected by {run.decided_by} before; nothing was changed.")
    if run.outcome == RunOutcome.OVERTAKEN:  # mutant: stale-run
        raise StaleRun(f"A newer run took the place of run {run.no}; decide about that one, if it is held.")
    if run.outcome != RunOutcome.HELD:  # mutant: not-blocked
        raise NotBlocked(f"{where} is not held; there is nothing to decide.")
    # mutant: expected-figures
    if expected is not None and dict(expected) != {name: kind.figures(run)[name] for name in expected}:
        raise FiguresChanged(
            f"{where} was checked again since you looked. Nothing was changed. Look at its figures and decide again."
        )


def refuse_while_judged_again(run: Run) -> None:
    """Raise an error while a run is judged again: its difference is to a state that consumers no longer see."""
    if run.stage == REJUDGING:  # mutant: rejudging
        raise FiguresChanged(
            f"Run {run.no} is being checked again. Nothing was changed. Wait for its new figures and decide then."
        )


def refuse_while_running(kind: RunKind, subject: Any) -> None:
    """Raise an error while a run is in progress, because it may overtake the held one."""
    if kind.is_running(subject):  # mutant: approve-while-running
        raise SubjectBusy(
            kind.subject,
            f"A run of this {kind.subject} is in progress. Nothing was changed; decide when it has ended.",
        )


def approve(job: RunningJob, run_id: str, actor: dict[str, str], expected: dict[str, int] | None = None) -> None:
    """Promote the difference of a held run."""
    with (
        _decision(job, run_id, APPROVE) as (kind, context),
        context.step("promote"),
        job.transaction(),
        connection.cursor() as cursor,
    ):
        subject, state = kind.lock(cursor, context.subject)
        _require(kind, context, expected)
        refuse_while_judged_again(context.run)
        applied = kind.apply(context, cursor, subject, state)
        context.note()
        _decided(context, RunOutcome.APPROVED, actor, applied, observed_at=applied.observed_at)
        record(context, actor, "ACTIVATION_APPROVED", applied.detail)
        alerts.hold_is_over(kind, subject, f"Run {context.run.no} was approved.")
        finish(context, RunOutcome.APPROVED)


def reject(
    job: RunningJob, run_id: str, actor: dict[str, str], reason: str, expected: dict[str, int] | None = None
) -> None:
    """Drop the difference of a held run. Nothing that consumers see changes, and the clock is not moved back."""
    with (
        _decision(job, run_id, REJECT) as (kind, context),
        job.transaction(),
        connection.cursor() as cursor,
    ):
        subject, state = kind.lock(cursor, context.subject)
        _require(kind, context, expected)
        applied = kind.discard(context, cursor, state)
        _decided(context, RunOutcome.REJECTED, actor, applied, decision_reason=reason)
        record(context, actor, "ACTIVATION_REJECTED", {"reason": reason, **applied.detail})
        alerts.hold_is_over(kind, subject, f"Run {context.run.no} was rejected.")
        finish(context, RunOutcome.REJECTED)


def rejudge(job: RunningJob, run_id: str) -> dict[str, Any] | None:
    """Judge a held run again, because the state that it was compared with has changed."""
    kind, subject, run = run_of(run_id)
    with log_context(**_log_fields(kind, subject, run)), subject_lock(kind, job, subject) as is_ours:
        if not is_ours:
            raise Snooze(BUSY_SECONDS, f"a run or a decision is in progress on this {kind.subject}")
        run.refresh_from_db()
        if run.outcome != RunOutcome.HELD:
            return {"outcome": run.outcome, "note": "the run was decided meanwhile"}
        kind.judge_again(resumed(kind, job, kind.find_or_none(subject.pk), run, stage="promote"))
    return None


@contextmanager
def log_refusals(job_name: str, kind: RunKind, subject: Any, run: Run) -> Iterator[None]:
    """Log a decision that a rule refuses."""
    try:
        yield
    except Conflict as refusal:
        log.warning(REFUSED[job_name], **_log_fields(kind, subject, run), reason=refusal.code)  # mutant: refusal-logged
        raise


def record(context: RunContext, actor: Mapping[str, str], verb: str, detail: Mapping[str, Any]) -> None:
    """Write a decision to the audit log and, once it is committed, to the log."""
    about = {context.kind.subject: str(context.subject.pk)}
    audit.record(
        actor_from_json(dict(actor)),
        verb,
        "run",
        context.run.id,
        changed=["outcome"],
        detail={**about, **detail},
    )
    context.log_on_commit(verb, by=actor["id"], **detail)


@contextmanager
def _decision(job: RunningJob, run_id: str, job_name: str) -> Iterator[tuple[HoldingKind, RunContext]]:
    """Take the subject's lock for a decision."""
    kind, subject, run = run_of(run_id)
    with (
        log_refusals(job_name, kind, subject, run),
        log_context(**_log_fields(kind, subject, run)),
        subject_lock(kind, job, subject) as is_ours,
    ):
        if not is_ours:  # mutant: decision-lock
            raise SubjectBusy(
                kind.subject,
                "A run or another decision is in progress. Nothing was changed; try again when it has ended.",
            )
        run.refresh_from_db()
        yield kind, resumed(kind, job, subject, run, stage="promote")


def _require(kind: HoldingKind, context: RunContext, expected: Mapping[str, int] | None) -> None:
    context.run.refresh_from_db()  # mutant: held-refreshed
    require_held(kind, context.run, expected)  # mutant: held-required
    refuse_while_running(kind, context.subject)


def _decided(
    context: RunContext, outcome: RunOutcome, actor: Mapping[str, str], applied: Applied, **fields: Any
) -> None:
    Run.objects.filter(pk=context.run.pk).update(
        outcome=outcome, stage=None, decided_at=applied.moment, decided_by=actor["name"], **fields
    )


def _log_fields(kind: RunKind, subject: Any, run: Run) -> dict[str, Any]:
    return {**kind.log_fields(subject), "run_id": str(run.id), "run_no": run.no, "stage": "promote"}
