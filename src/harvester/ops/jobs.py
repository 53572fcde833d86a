"""What a person may do to a job. Audited, in one transaction with the change."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, connection, transaction

from harvester.engine import sql
from harvester.engine.enqueue import Enqueued
from harvester.engine.enqueue import enqueue as put_in
from harvester.engine.models import Job
from harvester.engine.registry import all_kinds
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit


def enqueue(actor: Actor, kind: str, args: Mapping[str, Any], **options: Any) -> Enqueued:
    """Put in a job by hand; options are those of `NewJob`. With a taken dedupe key the open job is the answer."""
    if kind not in all_kinds():
        raise NotFound(f"There is no kind of job {kind}; there are {', '.join(sorted(all_kinds()))}.")
    with transaction.atomic():
        made = put_in(kind, args, **options)
        if made.created:
            audit.record(actor, "JOB_ENQUEUED", "job", made.job_id, detail={"kind": kind})
    return made


def retry(actor: Actor, job_id: int) -> None:
    """Drive a failed, cancelled or waiting job again, now, with all its attempts."""
    with transaction.atomic():
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
    return str(state)


def _state(job_id: int) -> str:
    found = Job.objects.filter(id=job_id).values_list("state", flat=True).first()
    if found is None:
        raise NotFound(f"There is no job {job_id}; `harvester jobs list` shows the newest.")
    return found
