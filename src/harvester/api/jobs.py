"""Jobs: how far something is that was asked for."""

from collections.abc import Mapping
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router

from harvester.api import answers
from harvester.api.keys import BearerKey
from harvester.api.shapes import HIGHEST, Job
from harvester.engine import models
from harvester.engine.enqueue import Enqueued
from harvester.kernel.errors import NotFound
from harvester.ops.scopes import Scope

router = Router(tags=["jobs"], auth=BearerKey(Scope.JOBS_READ))


@router.get("/jobs/{job_id}", response=Job, operation_id="get_job", summary="Get one job")
def get_job(request: HttpRequest, job_id: Annotated[int, Path(ge=1, le=HIGHEST)]) -> HttpResponse:
    """How far a job is, and what came of it. Ended jobs are kept for some days."""
    return answers.read(request, job_shape(job_id))


def enqueued(made: Enqueued) -> tuple[Job, Mapping[str, str]]:
    """The job that was asked for, and where to look after it."""
    return job_shape(made.job_id), {"Location": f"/api/v1/jobs/{made.job_id}"}


def job_shape(job_id: int) -> Job:
    job = models.Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}; ended jobs are cleared away after some days.")
    names = ("id", "kind", "state", "attempt", "max_attempts", "result", "error", "created_at", "started_at")
    told = {name: getattr(job, name) for name in (*names, "finished_at")}
    progress = job.progress if isinstance(job.progress, dict) else None
    return Job.model_validate({**told, "progress": progress, "error_code": job.error_type})
