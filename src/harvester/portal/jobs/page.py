"""The page of one job, and what may be done to it."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from harvester.engine.models import Job, JobEvent
from harvester.engine.states import ENDED, OPEN, JobState
from harvester.feeds.display_names import subjects_of
from harvester.ops import jobs
from harvester.ops.models import Role
from harvester.portal.display import pretty, span
from harvester.portal.requests import attempt, is_fragment, may, require

#: More would be a job that fails over and over; its events page has the rest.
EVENTS = 100


def show(site: AdminSite, request: HttpRequest, job_id: int) -> HttpResponse:
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise Http404
    context = _facts(request, job)
    if is_fragment(request):
        return TemplateResponse(request, "portal/jobs/job_body.html", context)
    shell = {**site.each_context(request), "title": f"Job {job.pk}"}
    return TemplateResponse(request, "portal/jobs/job.html", {**shell, **context})


def _facts(request: HttpRequest, job: Job) -> dict[str, Any]:
    operator = may(request, Role.OPERATOR)
    return {
        "job": job,
        "about": subjects_of([job.pk]).get(job.pk),
        "args": pretty(job.args),
        "result": pretty(job.result) if job.result is not None else None,
        "took": _took(job),
        "events": _events(job),
        "events_cut": EVENTS,
        "live": job.state in OPEN,
        "may_retry": operator and job.state in (JobState.FAILED, JobState.CANCELLED, JobState.RETRYABLE),
        "starts_again": jobs.starts_again(job.kind, job.state),
        "may_cancel": operator and job.state in OPEN and not job.cancel_requested_at,
        "operator": operator,
    }


def _took(job: Job) -> str | None:
    if job.started_at is None or job.finished_at is None or job.state not in ENDED:
        return None
    return span(max(0.0, (job.finished_at - job.started_at).total_seconds()))


def _events(job: Job) -> Sequence[JobEvent]:
    return list(JobEvent.objects.filter(job_id=job.pk).order_by("-at", "-id")[:EVENTS])


def retry(request: HttpRequest, job_id: int) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    followed = job_id

    def verb() -> str:
        nonlocal followed
        followed = jobs.retry(actor, job_id)
        if followed != job_id:
            return f"Job {followed} starts a new run. Job {job_id} and its run stay as they are."
        return f"Job {job_id} runs again, with all its attempts."

    attempt(request, verb)
    return redirect("admin:engine_job_change", followed)


def cancel(request: HttpRequest, job_id: int) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def verb() -> str:
        if jobs.cancel(actor, job_id) == JobState.CANCELLED:
            return f"Job {job_id} is cancelled."
        return f"Job {job_id} is asked to stop; it ends as soon as its handler notices."

    attempt(request, verb)
    return redirect("admin:engine_job_change", job_id)
