"""Jobs: progress and results of background work."""

from collections.abc import Mapping
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router

from harvester.api import responses
from harvester.api.keys import BearerKey, key_of
from harvester.api.schemas import HIGHEST, Job
from harvester.engine import models
from harvester.engine.enqueue import Enqueued
from harvester.engine.states import OPEN
from harvester.feeds.display_names import subjects_of
from harvester.kernel.errors import NotFound
from harvester.ops import job_figures, jobs
from harvester.ops.scopes import Scope

router = Router(tags=["jobs"], auth=BearerKey(Scope.JOBS_READ))
_OPERATE = BearerKey(Scope.JOBS_OPERATE)
_FIELDS = (
    "id", "kind", "state", "attempt", "max_attempts", "result", "error", "created_at", "started_at", "finished_at",
)  # fmt: skip
JobId = Annotated[int, Path(ge=1, le=HIGHEST)]


@router.get("/jobs/{job_id}", response=Job, operation_id="get_job", summary="Get one job")
def get_job(request: HttpRequest, job_id: JobId) -> HttpResponse:
    """The progress and the result of a job. Ended jobs are deleted after some days."""
    return responses.read(request, job_shape(job_id))


@router.post(
    "/jobs/{job_id}/retry", response={202: Job}, operation_id="retry_job", summary="Retry a job", auth=_OPERATE
)
def retry_job(request: HttpRequest, job_id: JobId) -> HttpResponse:
    """Run a failed, cancelled or waiting job again, with all its attempts.

    The response is the job to follow. Retrying the ended job of a feed run starts a new run of the feed (trigger RETRY)
    as a new job, after the run in progress if there is one.
    """
    actor = key_of(request).actor
    return responses.write(request, 202, lambda: _at(jobs.retry(actor, job_id)))


@router.post(
    "/jobs/{job_id}/cancel", response={202: Job}, operation_id="cancel_job", summary="Cancel a job", auth=_OPERATE
)
def cancel_job(request: HttpRequest, job_id: JobId) -> HttpResponse:
    """Stop a job: at once while it waits, at its next check while it runs.

    A feed run ends with its job, as FAILED with the code CANCELLED; none of its data is written.
    """
    actor = key_of(request).actor

    def cancel() -> tuple[Job, Mapping[str, str]]:
        jobs.cancel(actor, job_id)
        return _at(job_id)

    return responses.write(request, 202, cancel)


def enqueued(made: Enqueued) -> tuple[Job, Mapping[str, str]]:
    """Return the new job and the header with its address."""
    return _at(made.job_id)


def _at(job_id: int) -> tuple[Job, Mapping[str, str]]:
    return job_shape(job_id), {"Location": f"/api/v1/jobs/{job_id}"}


def job_shape(job_id: int) -> Job:
    job = models.Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}; ended jobs are deleted after the retention period.")
    subject = subjects_of([job_id]).get(job_id)
    return Job.model_validate(
        {
            **{name: getattr(job, name) for name in _FIELDS},
            "feed": subject.name if subject else None,
            "progress": job.progress if isinstance(job.progress, dict) and job.state in OPEN else None,
            "waits_for": job_figures.snooze_reason(job),
            "error_code": job.error_type,
        }
    )
