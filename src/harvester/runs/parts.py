"""Runs that consist of parts: each part is a job, and the last one that ends also ends the run.

A run has no job of its own. Its parts wait with what they found until all have ended; then the kind judges and promotes
them together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.errors import JobCancelled, JobSignal
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import DATABASE_LOST
from harvester.engine.states import JobState
from harvester.kernel.errors import HarvesterError, InvalidInput, TerminalError
from harvester.runs.context import RunContext
from harvester.runs.endings import code_of, message_of, settle_failed, succeed
from harvester.runs.errors import Abandoned
from harvester.runs.kinds import PartEnd, PartsKind, all_kinds, kind_named
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunStatus, RunTrigger

log = structlog.get_logger(__name__)

#: Outcome of a part that failed for another reason than those of its kind; `detail` has code and message.
FAILED: Final = "FAILED"

# Parts of runs in progress whose job is gone or has ended without them.
_ORPHANS = """
SELECT p.id, j.state, j.error_type, j.error FROM run_parts p JOIN runs r ON r.id = p.run_id
LEFT JOIN jobs j ON j.id = p.job_id
WHERE r.status = 'RUNNING' AND r.kind = ANY (%(kinds)s) AND p.outcome IS NULL
  AND (j.id IS NULL OR j.state NOT IN ('pending', 'running', 'retryable'))
ORDER BY r.no, p.id
"""


@dataclass(frozen=True, kw_only=True)
class NewPart:
    """A part to begin.

    Attributes:
        target_id: what it reads.
        lane: parts with the same lane wait for each other.
        priority: higher goes first.
        dedupe_key: no second open job has the same; two requests for one target are one.
    """

    target_id: UUID
    lane: str | None = None
    priority: int = 0
    dedupe_key: str | None = None


def begin(kind: PartsKind, subject: Any, trigger: RunTrigger, new: Iterable[NewPart], **more: Any) -> Run:
    """Begin a run over some targets and enqueue a job for each. The transaction is the caller's.

    Args:
        kind: the kind of run.
        subject: what it is a run of.
        trigger: why it begins.
        new: its parts; a target is read once however often it is named.
        more: for the kind's own `begin`.

    Raises:
        InvalidInput: there is no target.
        DuplicateJob: a dedupe key is taken; nothing began.
    """
    with connection.cursor() as cursor:
        subject, _ = kind.lock(cursor, subject)
    wanted = {part.target_id: part for part in new}
    if not wanted:
        raise InvalidInput(f"There is nothing to read for {subject}.")
    run = Run.objects.create(
        kind=kind.name, subject_id=subject.pk, source_id=kind.source_id(subject), trigger=trigger.value,
        status=RunStatus.RUNNING,
    )  # fmt: skip
    run.refresh_from_db(fields=["started_at"])
    kind.begin(run, subject, **more)
    parts = [RunPart(run=run, begun_at=run.started_at, target_id=target_id) for target_id in wanted]
    job_ids = enqueue_many(
        NewJob(
            kind=kind.part_job_kind,
            args={"part_id": str(part.id), "begun_at": run.started_at.isoformat()},
            lane=wanted[part.target_id].lane,
            priority=wanted[part.target_id].priority,
            dedupe_key=wanted[part.target_id].dedupe_key,
        )
        for part in parts
    )
    for part, job_id in zip(parts, job_ids, strict=True):
        part.job_id = job_id
    RunPart.objects.bulk_create(parts)
    fields = {**kind.log_fields(subject), "run_id": str(run.id), "parts": len(parts), "trigger": trigger.value}
    transaction.on_commit(lambda: log.info("RUN_START", **fields))
    return run


def execute_part(job: RunningJob, part_id: str, begun_at: str) -> dict[str, Any] | None:
    """Do one part of a run. The transaction that ends the part also ends its job."""
    part = RunPart.objects.select_related("run").filter(pk=part_id, begun_at=begun_at).first()
    if part is None or part.outcome is not None:
        return {"outcome": part.outcome if part else None, "note": "there was nothing to do"}
    kind = parts_kind(part.run)
    subject = kind.find_or_none(part.run.subject_id)
    try:
        found = kind.do_part(job, subject, part)
    except JobCancelled as stopped:
        end_part(kind, part, PartEnd(outcome=stopped.code, detail=_said(stopped)), job)
        raise
    except (JobSignal, *DATABASE_LOST):
        raise
    except Exception as error:
        if isinstance(error, HarvesterError) and (isinstance(error, TerminalError) or job.attempt >= job.max_attempts):
            found = PartEnd(outcome=FAILED, detail=_said(error))
        else:
            raise
    end_part(kind, part, found, job)
    return None


def end_part(kind: PartsKind, part: RunPart, found: PartEnd, job: RunningJob) -> None:
    """Write the outcome of a part; if it was the last one, end the run."""
    with job.transaction():
        _end_part(kind, part, found)
        job.finish({"run_no": part.run.no, "run_id": str(part.run.id), "outcome": found.outcome})


def close_orphans() -> int:
    """End parts whose job has ended without them. The transaction is the caller's."""
    kinds = [kind.name for kind in all_kinds() if isinstance(kind, PartsKind)]
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS, {"kinds": kinds})
        found = cursor.fetchall()
    for part_id, state, error_type, error in found:
        part = RunPart.objects.select_related("run").get(pk=part_id)
        if state == JobState.CANCELLED:
            end = PartEnd(outcome=JobCancelled.code, detail={"error": "Somebody cancelled its job."})
        else:
            detail = {"code": error_type or Abandoned.code, "error": error or "Its job ended without it."}
            end = PartEnd(outcome=FAILED, detail=detail)
        _end_part(parts_kind(part.run), part, end)
    return len(found)


def parts_kind(run: Run) -> PartsKind:
    kind = kind_named(run.kind)
    assert isinstance(kind, PartsKind), f"{run} has no parts"  # noqa: S101 - for the type checker
    return kind


def _end_part(kind: PartsKind, part: RunPart, found: PartEnd) -> None:
    with connection.cursor() as cursor:
        # Everybody locks the subject before its runs; the lock also decides which part is the last one.
        subject, state = kind.lock(cursor, kind.find_or_none(part.run.subject_id))
        waiting = RunPart.objects.filter(pk=part.pk, outcome=None)
        written = waiting.update(
            outcome=found.outcome, detail=found.detail, observed_at=found.observed_at, ended_at=Now()
        )
        run = Run.objects.select_for_update().get(pk=part.run_id)
        if not written or run.status != RunStatus.RUNNING or run.parts.filter(outcome=None).exists():
            return
        _end_run(kind, subject, state, run, cursor)


def _end_run(kind: PartsKind, subject: Any, state: Any, run: Run, cursor: Any) -> None:
    """Judge and promote; if that fails, none of it is written and the run has failed."""
    context = RunContext(kind=kind, job=None, subject=subject, run=run, stage="promote")
    try:
        with transaction.atomic():
            parts = list(run.parts.order_by("observed_at", "id"))
            outcome = kind.end(context, cursor, state, parts)
            succeed(context, outcome, state.moment)
    except DATABASE_LOST:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the run must not stay RUNNING
        log.error("RUN_NOT_ENDED", run_no=run.no, error=message_of(error), **kind.log_fields(subject))
        settle_failed(kind, subject, run, code_of(error), message_of(error), stage="promote")
        return
    context.log_on_commit(
        "RUN_COMPLETE", status=run.status, outcome=outcome.value, duration_ms=run.duration_ms, parts=len(parts)
    )


def _said(error: Exception) -> dict[str, str]:
    return {"code": code_of(error), "error": message_of(error)}
