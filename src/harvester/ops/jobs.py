"""What a person may do to a job. Audited, in one transaction with the change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction

from harvester.engine import sql
from harvester.engine.enqueue import Enqueued
from harvester.engine.enqueue import enqueue as put_in
from harvester.engine.models import Job
from harvester.engine.registry import all_kinds
from harvester.engine.states import JobState
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What else happens when a person acts on a job of a kind; called in the same transaction.

    Attributes:
        start_again: given the actor and an ended job, puts in a new job and returns its id. The old one stays as it is.
        cancelled: given the actor and a job that was cancelled while it waited.
    """

    start_again: Callable[[Actor, int], int]
    cancelled: Callable[[Actor, int], None]


_hooks: dict[str, Hooks] = {}


def add_hooks(kind: str, hooks: Hooks) -> None:
    _hooks[kind] = hooks


def starts_again(kind: str, state: str) -> bool:
    """Whether to retry such a job means to put in a new one."""
    return kind in _hooks and state in (JobState.FAILED, JobState.CANCELLED)


def enqueue(actor: Actor, kind: str, args: Mapping[str, Any], **options: Any) -> Enqueued:
    """Put in a job by hand; options are those of `NewJob`. With a taken dedupe key the open job is the answer."""
    if kind not in all_kinds():
        raise NotFound(f"There is no kind of job {kind}; there are {', '.join(sorted(all_kinds()))}.")
    with transaction.atomic():
        made = put_in(kind, args, **options)
        if made.created:
            audit.record(actor, "JOB_ENQUEUED", "job", made.job_id, detail={"kind": kind})
    return made


def retry(actor: Actor, job_id: int) -> int:
    """Run a failed, cancelled or waiting job again, now, with all its attempts.

    Returns the job to follow: the same one, or a new one for kinds whose ended jobs cannot go on.
    """
    with transaction.atomic():
        found = Job.objects.select_for_update(no_key=True).filter(id=job_id).values_list("kind", "state").first()
        if found is not None and starts_again(*found):
            new_id = _hooks[found[0]].start_again(actor, job_id)
            audit.record(actor, "JOB_RETRIED", "job", job_id, detail={"new_job_id": new_id})
            return new_id
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(sql.RETRY, {"id": job_id})
                again = cursor.fetchone()
        except IntegrityError:
            raise Conflict(
                f"Job {job_id} has the dedupe key of a job that is open now; let that one end first."
            ) from None
        if again is None:
            raise Conflict(f"Job {job_id} is {_state(job_id)}; only failed, cancelled or retryable jobs are retried.")
        audit.record(actor, "JOB_RETRIED", "job", job_id)
    return job_id


def cancel(actor: Actor, job_id: int) -> str:
    """Ask a job to stop; answers its state: `cancelled` at once, or `running` until its handler notices."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(sql.CANCEL, {"id": job_id})
            asked = cursor.fetchone()
        if asked is None:
            raise Conflict(f"Job {job_id} is {_state(job_id)} already; there is nothing to cancel.")
        before, state, _ = asked
        audit.record(actor, "JOB_CANCELLED", "job", job_id, detail={"was": before})
        kind = Job.objects.values_list("kind", flat=True).get(id=job_id)
        if state == JobState.CANCELLED and kind in _hooks:
            _hooks[kind].cancelled(actor, job_id)
    return str(state)


def _state(job_id: int) -> str:
    found = Job.objects.filter(id=job_id).values_list("state", flat=True).first()
    if found is None:
        raise NotFound(f"There is no job {job_id}; `harvester jobs list` shows the newest.")
    return found
