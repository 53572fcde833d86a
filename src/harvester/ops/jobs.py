"""Actions of people on jobs. Each is audited in the transaction of the change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction

from harvester.engine import sql
from harvester.engine.enqueue import Enqueued
from harvester.engine.enqueue import enqueue as enqueue_job
from harvester.engine.models import Job
from harvester.engine.registry import all_kinds
from harvester.engine.states import JobState
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What a kind of job does when a person acts on its jobs; called in the same transaction.

    Attributes:
        start_again: enqueues a new job for an ended one and returns its id. The ended one does not change.
        cancelled: called for a job that was cancelled while it waited.
    """

    start_again: Callable[[Actor, int], int]
    cancelled: Callable[[Actor, int], None]


_hooks: dict[str, Hooks] = {}


def add_hooks(kind: str, hooks: Hooks) -> None:
    _hooks[kind] = hooks


def starts_again(kind: str, state: str) -> bool:
    """Whether a retry of such a job enqueues a new one."""
    return kind in _hooks and state in (JobState.FAILED, JobState.CANCELLED)


def enqueue(actor: Actor, kind: str, args: Mapping[str, Any], **options: Any) -> Enqueued:
    """Enqueue a job; options are those of `NewJob`. If its dedupe key is taken, return the open job."""
    if kind not in all_kinds():
        raise NotFound(f"There is no job kind {kind}; known are {', '.join(sorted(all_kinds()))}.")
    with transaction.atomic():
        made = enqueue_job(kind, args, **options)
        if made.created:
            audit.record(actor, "JOB_ENQUEUED", "job", made.job_id, detail={"kind": kind})
    return made


def retry(actor: Actor, job_id: int) -> int:
    """Run a failed, cancelled or waiting job again, now, with all its attempts.

    Return the job to follow: the same one, or a new one for kinds whose ended jobs cannot run again.
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
                retried = cursor.fetchone()
        except IntegrityError:
            raise Conflict(
                f"Job {job_id} has the dedupe key of an open job. Nothing was changed; retry when that job has ended."
            ) from None
        if retried is None:
            raise Conflict(
                f"Job {job_id} is {_state(job_id)}; only failed, cancelled or retryable ones can be retried."
            )
        audit.record(actor, "JOB_RETRIED", "job", job_id)
    return job_id


def cancel(actor: Actor, job_id: int) -> str:
    """Cancel a job. Return its state: `cancelled`, or `running` until its handler notices."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(sql.CANCEL, {"id": job_id})
            cancelled = cursor.fetchone()
        if cancelled is None:
            raise Conflict(f"Job {job_id} is {_state(job_id)} already and cannot be cancelled.")
        before, state, _ = cancelled
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
