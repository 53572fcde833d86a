"""Runs that consist of parts: each part is a job, and the last one that ends also ends the run.

A run has no job of its own. What a part found waits in it until its kind has judged enough of them together: a batch
that may span runs of one subject, and a rest at the end of a run or when nothing has ended for a while.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.engine import sql
from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.errors import JobCancelled, JobSignal
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.outcomes import DATABASE_LOST
from harvester.engine.states import JobState
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, HarvesterError, InvalidInput, TerminalError
from harvester.runs.context import RunContext
from harvester.runs.endings import code_of, message_of, settle_failed, succeed
from harvester.runs.errors import Abandoned
from harvester.runs.kinds import PartEnd, PartsKind, all_kinds, kind_named
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunStatus, RunTrigger

log = structlog.get_logger(__name__)

#: Outcome of a part that failed for another reason than those of its kind; `detail` has code and message.
FAILED: Final = "FAILED"

#: Time without another outcome after which a rest is judged.
LONGEST_WAIT_SECONDS: Final = 15 * 60

# A part with what its job and its end need to know of its run; in the order of the models.
_PART_FIELDS: Final = ("id", "begun_at", "run_id", "target_id", "job_id", "outcome", "detail", "page", "observed_at")
_RUN_FIELDS: Final = ("id", "no", "kind", "subject_id", "source_id", "trigger", "status", "started_at")
_PART: Final = f"""
SELECT {", ".join(f"p.{name}" for name in _PART_FIELDS)}, {", ".join(f"r.{name}" for name in _RUN_FIELDS)}
FROM run_parts p JOIN runs r ON r.id = p.run_id WHERE p.id = %(id)s AND p.begun_at = %(begun_at)s
"""  # noqa: S608 - constants only
# Whether the part was open until now, and the state of its run under the lock of the subject.
_END: Final = """
WITH ended AS (
    UPDATE run_parts SET outcome = %(outcome)s, detail = %(detail)s::jsonb, found = %(found)s::jsonb,
        version = %(version)s, page = %(page)s, observed_at = %(observed_at)s, ended_at = statement_timestamp()
    WHERE id = %(id)s AND begun_at = %(begun_at)s AND outcome IS NULL RETURNING id
)
SELECT EXISTS (SELECT FROM ended), status FROM runs WHERE id = %(run)s
"""
_HAS_OPEN: Final = """
SELECT EXISTS (SELECT FROM run_parts WHERE run_id = %(run)s AND begun_at = %(begun_at)s AND outcome IS NULL)
"""
# Parts of runs in progress whose job is gone or has ended without them.
_ORPHANS = """
SELECT p.run_id, p.id, j.state, j.error_type, j.error
FROM runs r JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at LEFT JOIN jobs j ON j.id = p.job_id
WHERE r.status = 'RUNNING' AND r.kind = ANY (%(kinds)s) AND p.outcome IS NULL
  AND (j.id IS NULL OR j.state NOT IN ('pending', 'running', 'retryable'))
ORDER BY r.no, p.id LIMIT %(most)s
"""
#: Parts that one transaction ends without their jobs: it locks their subjects. Stopping everything leaves thousands.
MOST_ORPHANS: Final = 100
# Runs in progress without an open part: nobody else would end them.
_FINISHED = """
SELECT r.id FROM runs r WHERE r.status = 'RUNNING' AND r.kind = ANY (%(kinds)s)
  AND NOT EXISTS (SELECT FROM run_parts p WHERE p.run_id = r.id AND p.begun_at = r.started_at AND p.outcome IS NULL)
ORDER BY r.no
"""
_WAITING = """
SELECT r.subject_id FROM runs r JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at
WHERE r.status = 'RUNNING' AND r.kind = %(kind)s AND p.outcome IS NOT NULL AND p.judged_at IS NULL
GROUP BY r.subject_id HAVING max(p.ended_at) <= clock_timestamp() - %(wait)s * interval '1 second'
ORDER BY r.subject_id
"""
_OPEN_JOBS = """
SELECT p.job_id FROM runs r JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at
WHERE r.status = 'RUNNING' AND r.kind = %(kind)s AND r.subject_id = %(subject)s AND p.outcome IS NULL
  AND p.job_id IS NOT NULL
"""


@dataclass(frozen=True, kw_only=True)
class NewPart:
    """A part to begin.

    Attributes:
        target_id: what it reads.
        lane: parts with the same lane wait for each other.
        priority: higher goes first.
        dedupe_key: no second open job has the same; two requests for one target are one.
        page: hash of a response that is kept already, so that nothing is fetched.
        observed_at: when that was observed.
    """

    target_id: UUID
    lane: str | None = None
    priority: int = 0
    dedupe_key: str | None = None
    page: str | None = None
    observed_at: datetime | None = None


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
    parts = [
        RunPart(run=run, begun_at=run.started_at, target_id=target, page=part.page, observed_at=part.observed_at)
        for target, part in wanted.items()
    ]
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
    part = _find_part(part_id, begun_at)
    if part is None or part.outcome is not None:
        return {"outcome": part.outcome if part else None, "note": "there was nothing to do"}
    kind = parts_kind(part.run)
    try:
        found = kind.do_part(job, part)
    except JobCancelled as stopped:
        # The job ends as cancelled afterwards; its part must not wait for that.
        with job.transaction():
            end_part(kind, part, PartEnd(outcome=stopped.code, detail=_said(stopped)))
        raise
    except (JobSignal, *DATABASE_LOST):
        raise
    except Exception as error:
        if isinstance(error, HarvesterError) and (isinstance(error, TerminalError) or job.attempt >= job.max_attempts):
            found = PartEnd(outcome=FAILED, detail=_said(error))
        else:
            raise
    with job.transaction():
        outcome = end_part(kind, part, found)
        job.finish({"run_no": part.run.no, "run_id": str(part.run.id), "outcome": outcome})
    return None


def _find_part(part_id: str, begun_at: str) -> RunPart | None:
    """Return a part with its run; their other columns are read when something needs them."""
    with prepared_cursor() as cursor:
        cursor.execute(_PART, {"id": UUID(part_id), "begun_at": datetime.fromisoformat(begun_at)})
        row = cursor.fetchone()
    if row is None:
        return None
    own = dict(zip(_PART_FIELDS, row, strict=False))
    part = RunPart.from_db("default", _PART_FIELDS, list({**own, "detail": json.loads(own["detail"])}.values()))
    part.run = Run.from_db("default", _RUN_FIELDS, row[len(_PART_FIELDS) :])
    return part


def end_part(kind: PartsKind, part: RunPart, found: PartEnd) -> str:
    """Write the outcome of a part, and if it was the last one, end the run. The transaction is the caller's.

    Args:
        kind: the kind of its run.
        part: the part, with its run.
        found: how it ended; what the part has already, such as its page, stays where this says nothing.

    Return the outcome as it is in the end.
    """
    with prepared_cursor() as prepared, connection.cursor() as cursor:
        # Everybody locks the subject before its runs; the lock also decides which part is the last one.
        subject, state = kind.lock(cursor, kind.subject_of(part.run))
        part.page, part.observed_at = found.page or part.page, found.observed_at or part.observed_at
        values: dict[str, Any] = {"outcome": found.outcome, "version": found.version}
        more: dict[str, Any] = {
            "page": part.page, "observed_at": part.observed_at, "detail": json.dumps(found.detail),
            "found": None if found.found is None else json.dumps(found.found),
            "id": part.pk, "begun_at": part.begun_at, "run": part.run_id,
        }  # fmt: skip
        prepared.execute(_END, values | more)
        was_open, part.run.status = prepared.fetchone()
        if not was_open:
            part.refresh_from_db(from_queryset=RunPart.objects.filter(begun_at=part.begun_at))
            return part.outcome or ""
        for name, value in {**values, "detail": found.detail, "found": found.found}.items():
            setattr(part, name, value)
        if part.run.status == RunStatus.RUNNING:
            context = RunContext(kind=kind, job=None, subject=subject, run=part.run, stage=kind.part)
            _settle(context, cursor, state, part)
            _end_run_after_last_part(kind, subject, state, part.run, cursor)
    return part.outcome or ""


def start_again(actor: Actor, job_id: int) -> int:
    """Begin a RETRY run over what an ended job read: the run of that job may have ended, and ended runs do not change.

    A response that was kept is read again without another request. Return the new job.
    """
    part = _part_of(job_id)
    job = Job.objects.get(pk=job_id)
    if part is None:
        raise Conflict(f"What job {job_id} read was deleted after the retention period. Nothing was changed.")
    kind = parts_kind(part.run)
    if part.outcome is None:
        end_part(kind, part, _end_without_job(job.state, job.error_type, job.error))
    again = NewPart(
        target_id=part.target_id, lane=job.lane, priority=job.priority, dedupe_key=job.dedupe_key,
        page=part.page, observed_at=part.observed_at if part.page else None,
    )  # fmt: skip
    subject, more = kind.find_or_none(part.run.subject_id), kind.more_for_retry(actor)
    run = begin(kind, subject, RunTrigger.RETRY, [again], **more)
    made = RunPart.objects.filter(run=run, begun_at=run.started_at).values_list("job_id", flat=True).get()
    assert made is not None, "a part begins with its job"  # noqa: S101 - for the type checker
    return made


def job_cancelled(_actor: Actor, job_id: int) -> None:
    """End the part of a job that was cancelled while it waited."""
    part = _part_of(job_id)
    if part is not None and part.outcome is None:
        end_part(parts_kind(part.run), part, _end_without_job(JobState.CANCELLED))


def cancel_open(cursor: Any, kind: str, subject_id: UUID) -> int:
    """Cancel the open jobs of a subject's runs of a kind; their parts end within a minute. Return how many.

    The transaction is the caller's, who has locked the subject. A job that is just being claimed is skipped: it looks
    at the switches of its subject again before it does anything.
    """
    cursor.execute(_OPEN_JOBS, {"kind": kind, "subject": subject_id})
    jobs = [job_id for (job_id,) in cursor.fetchall()]
    cursor.execute(sql.CANCEL_MANY, {"ids": jobs})
    return int(cursor.fetchone()[0])


def drop_target(kind: PartsKind, subject_id: UUID, target_id: UUID, why: str) -> None:
    """Drop what is just being read of a target, and what was read and waits to be judged.

    The transaction is the caller's, who has locked the subject.
    """
    runs = Run.objects.filter(kind=kind.name, subject_id=subject_id, status=RunStatus.RUNNING)
    begun = dict(runs.values_list("pk", "started_at"))
    # The days of the runs as values: the planner reads only their partitions.
    found = RunPart.objects.filter(run_id__in=begun, begun_at__in=set(begun.values()), target_id=target_id)
    for part in found.filter(judged_at=None).select_related("run"):
        if part.outcome is None:
            with connection.cursor() as cursor:
                cursor.execute(sql.CANCEL_MANY, {"ids": [part.job_id]})
            end_part(kind, part, PartEnd(outcome=JobCancelled.code, detail={"error": why}))
        else:
            own = RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at)
            own.update(outcome=JobCancelled.code, detail={**part.detail, "error": why})


def judge_waiting(job: RunningJob, kind: PartsKind) -> int:
    """Judge the rests of all subjects of which nothing has ended for a while; return the number of subjects."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"kind": kind.name, "wait": LONGEST_WAIT_SECONDS})
        subjects = [subject_id for (subject_id,) in cursor.fetchall()]
    for subject_id in subjects:
        with job.transaction(), connection.cursor() as cursor:
            subject, state = kind.lock(cursor, kind.find_or_none(subject_id))
            kind.judge_rest(cursor, subject, state)
    return len(subjects)


def close_orphans() -> int:
    """End parts whose job has ended without them, and runs without an open part. The transaction is the caller's.

    Return how many; if there are `MOST_ORPHANS` or more, some may be left.
    """
    kinds = {"kinds": [kind.name for kind in all_kinds() if isinstance(kind, PartsKind)]}
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS, {**kinds, "most": MOST_ORPHANS})
        found = cursor.fetchall()
        for run_id, part_id, *job in found:
            run = Run.objects.get(pk=run_id)
            part = RunPart.objects.get(pk=part_id, begun_at=run.started_at)
            part.run = run
            end_part(parts_kind(run), part, _end_without_job(*job))
        cursor.execute(_FINISHED, kinds)
        left = cursor.fetchall()
        for (run_id,) in left:
            run = Run.objects.get(pk=run_id)
            kind = parts_kind(run)
            _end_run_after_last_part(kind, *kind.lock(cursor, kind.find_or_none(run.subject_id)), run, cursor)
    return len(found) + len(left)


def keep_days(job: RunningJob) -> dict[str, int]:
    """Create the coming days of the table of parts, and drop those that are older than 30 days."""
    done = {}
    for name, call in (("made", "make_part_days(14)"), ("dropped", "drop_old_part_days(clock_timestamp())")):
        # One transaction each: both wait for writers, and the coming days matter more.
        with job.transaction(), connection.cursor() as cursor:
            cursor.execute(f"SELECT {call}")
            done[name] = int(cursor.fetchone()[0])
    return done


def parts_kind(run: Run) -> PartsKind:
    kind = kind_named(run.kind)
    assert isinstance(kind, PartsKind), f"{run} has no parts"  # noqa: S101 - for the type checker
    return kind


def _part_of(job_id: int) -> RunPart | None:
    return RunPart.objects.select_related("run").filter(job_id=job_id).order_by("-begun_at").first()


def _end_without_job(state: str | None, error_type: str | None = None, error: str | None = None) -> PartEnd:
    """Return the end of a part whose job has ended without it."""
    if state == JobState.CANCELLED:
        return PartEnd(outcome=JobCancelled.code, detail={"error": "Somebody cancelled its job."})
    detail = {"code": error_type or Abandoned.code, "error": error or "Its job ended without it."}
    return PartEnd(outcome=FAILED, detail=detail)


def _settle(context: RunContext, cursor: Any, state: Any, part: RunPart) -> None:
    """Let the kind note the end of a part, and judge what waits if it is enough.

    A part that the kind could not note has failed, so that it is never promoted. If judging fails, the parts
    wait on, and the end of their run tries once more.
    """
    kind = context.kind
    assert isinstance(kind, PartsKind)  # noqa: S101 - for the type checker
    is_noted = False
    try:
        with transaction.atomic():
            kind.part_ended(context, cursor, state, part)
        is_noted = True
        if kind.has_batch(context, cursor, state):
            with transaction.atomic():
                kind.judge_batch(context, cursor, state)
    except DATABASE_LOST:
        raise
    except Exception as error:
        fields = {"run_no": part.run.no, "part_id": str(part.pk), "error": message_of(error)}
        log.exception("PART_NOT_SETTLED", is_noted=is_noted, **fields, **kind.log_fields(context.subject))
        if not is_noted:
            part.outcome, part.detail = FAILED, {**part.detail, **_said(error)}
            own = RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at)
            own.update(outcome=part.outcome, detail=part.detail, judged_at=Now())


def _end_run_after_last_part(kind: PartsKind, subject: Any, state: Any, run: Run, cursor: Any) -> None:
    """End a run whose parts have all ended: promote, and if that fails, none of it is written and the run failed."""
    # The subject is locked, so no part can end meanwhile: with an open one, the run needs no lock.
    with prepared_cursor() as prepared:
        prepared.execute(_HAS_OPEN, {"run": run.pk, "begun_at": run.started_at})
        if prepared.fetchone()[0]:
            return
    run = Run.objects.select_for_update().get(pk=run.pk)
    if run.status != RunStatus.RUNNING:
        return
    context = RunContext(kind=kind, job=None, subject=subject, run=run, stage="promote")
    try:
        with transaction.atomic():
            outcome = kind.end(context, cursor, state)
            succeed(context, outcome, state.moment)
    except DATABASE_LOST:
        raise
    except Exception as error:
        log.exception("RUN_NOT_ENDED", run_no=run.no, error=message_of(error), **kind.log_fields(subject))
        settle_failed(kind, subject, run, code_of(error), message_of(error), stage="promote")
        return
    context.log_on_commit("RUN_COMPLETE", status=run.status, outcome=outcome.value, duration_ms=run.duration_ms)


def _said(error: Exception) -> dict[str, str]:
    return {"code": code_of(error), "error": message_of(error)}
