"""Requests to approve or reject a held run. They are checked and audited here; a job then carries them out."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from harvester.engine.enqueue import Enqueued, enqueue
from harvester.engine.models import Job
from harvester.guards.redaction import redact_text
from harvester.kernel.actor import Actor
from harvester.kernel.errors import InvalidInput
from harvester.kernel.text import LONGEST_REASON, is_encodable
from harvester.ops import audit
from harvester.ops.models import AuditEvent
from harvester.runs.decision_jobs import (
    log_refusals,
    refuse_while_judged_again,
    refuse_while_running,
    require_held,
    run_of,
)
from harvester.runs.errors import SubjectBusy
from harvester.runs.jobs import APPROVE, REJECT
from harvester.runs.models import Run

#: Job -> the event of the audit log when a person asks for it.
REQUESTS = {APPROVE: "ACTIVATION_APPROVAL_REQUESTED", REJECT: "ACTIVATION_REJECTION_REQUESTED"}


def request_approval(actor: Actor, run_id: UUID, expected: Mapping[str, int] | None = None) -> Enqueued:
    """Request the promotion of a held run.

    Args:
        actor: who decides.
        run_id: the held run.
        expected: figures that the person saw (`decision_figures` of the kind); if one has changed, the decision is
            refused.

    Raises:
        RunNotFound, Conflict: it cannot be approved (any more); the code says why.
    """
    return _request(actor, run_id, APPROVE, expected)


def request_rejection(actor: Actor, run_id: UUID, reason: str, expected: Mapping[str, int] | None = None) -> Enqueued:
    """Request that a held run is dropped, with a reason. Arguments and errors as for `request_approval`."""
    return _request(actor, run_id, REJECT, expected, reason=checked_reason(reason))


def last_decision(run: Run) -> Job | None:
    """Return the job of the newest requested decision."""
    asked = AuditEvent.objects.filter(verb__in=REQUESTS.values(), object_type="run", object_id=str(run.pk))
    detail = asked.order_by("-id").values_list("detail", flat=True).first()
    return Job.objects.filter(pk=detail["job_id"]).first() if detail else None


def checked_reason(text: str) -> str:
    """Return a reason in the form in which it is stored.

    Raises:
        InvalidInput: it is empty, too long, or cannot be stored.
    """
    if "\x00" in text or not is_encodable(text):
        raise InvalidInput(
            "it has a NUL or a broken character, which no text here can hold; leave it out.", field="reason"
        )
    reason = redact_text(text.strip())
    if not reason or len(reason) > LONGEST_REASON:  # mutant: reason-required
        raise InvalidInput(f"A reason is needed, of at most {LONGEST_REASON:,} characters: others will ask why.")
    return reason


def _request(actor: Actor, run_id: UUID, job_name: str, expected: Mapping[str, int] | None, **more: str) -> Enqueued:
    kind, subject, run = run_of(run_id)
    for name in expected or ():
        if name not in kind.decision_figures:
            names = ", ".join(kind.decision_figures)
            raise InvalidInput(f"{name} is not a figure that a decision can depend on; these are: {names}.")
    with log_refusals(job_name, kind, subject, run), transaction.atomic(), connection.cursor() as cursor:
        subject, _ = kind.lock(cursor, subject)
        run.refresh_from_db()
        require_held(kind, run, expected)
        if job_name == APPROVE:
            refuse_while_judged_again(run)
        refuse_while_running(kind, subject)
        who = {"kind": actor.kind, "id": actor.id, "name": actor.name}
        args: dict[str, Any] = {"run_id": str(run.id), "actor": who, "expected": dict(expected) if expected else None}
        made = enqueue(job_name, {**args, **more}, dedupe_key=f"runs.decide:{run.id}")  # mutant: one-decision
        if not made.created:
            raise SubjectBusy(
                kind.subject, f"A decision about run {run.no} is already in progress as job {made.job_id}."
            )
        detail = {kind.subject: str(subject.pk), "job_id": made.job_id, **more}
        audit.record(actor, REQUESTS[job_name], "run", run.id, detail=detail)
    return made
