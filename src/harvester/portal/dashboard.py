"""The first page: what needs somebody, what is going on, how it has been; and below it, how the jobs are."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from harvester.engine.models import Job
from harvester.engine.states import JobState
from harvester.ops import job_figures
from harvester.portal import overview
from harvester.portal.display import duration
from harvester.portal.requests import is_fragment
from harvester.portal.shared_reads import shared

FAILURES = 6
STUCK = 6
#: Jobs stand below what needs somebody, and to count very many takes its time.
FRESH_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The engine at a moment.

    Attributes:
        tally: number of jobs in each state, and figures of each queue.
        hours: what ended in each of the last 24 hours.
        failures: the latest failed jobs.
        stuck: running jobs without a sign of life, silent ones first.
        snapshot_seconds: age of the oldest open transaction.
    """

    tally: job_figures.Tally
    hours: list[dict[str, Any]]
    failures: list[Job]
    stuck: list[Job]
    snapshot_seconds: float


def take() -> Snapshot:
    return Snapshot(
        tally=job_figures.tally(),
        hours=job_figures.last_day(),
        failures=_failures(),
        stuck=job_figures.stuck(settings.CONFIG.stuck_seconds),
        snapshot_seconds=job_figures.oldest_snapshot_seconds(),
    )


def _failures() -> list[Job]:
    failed = Job.objects.filter(state=JobState.FAILED, finished_at__isnull=False)
    return list(failed.defer("args", "result", "traceback").order_by("-finished_at")[:FAILURES])


def latest() -> Snapshot:
    return shared("portal.dashboard.jobs", FRESH_SECONDS, take)


def page(site: AdminSite, request: HttpRequest, extra: dict[str, Any]) -> HttpResponse:
    context = {**overview.words(overview.latest()), **_words(latest())}
    if is_fragment(request):
        return TemplateResponse(request, "portal/dashboard_body.html", context)
    shell = {**site.each_context(request), "title": "Dashboard"}
    return TemplateResponse(request, "portal/dashboard.html", {**shell, **context, **extra})


def _words(now: Snapshot) -> dict[str, Any]:
    states, queues = now.tally.states, now.tally.queues
    waited = max((queue.oldest_waiting_seconds for queue in queues), default=0.0)
    slow = now.snapshot_seconds > job_figures.OLD_SNAPSHOT_SECONDS
    return {
        "no_jobs": not any(states.values()),
        "tiles": [{"state": state, "count": count} for state, count in states.items()],
        "queues": queues,
        "waiting": sum(queue.waiting for queue in queues),
        "oldest_waiting": duration(waited) if any(queue.waiting for queue in queues) else None,
        "failures": now.failures,
        "stuck": now.stuck[:STUCK],
        "stuck_count": len(now.stuck),
        "old_snapshot": duration(now.snapshot_seconds) if slow else None,
        "chart": _chart(now.hours),
        "chart_total": sum(hour["succeeded"] + hour["failed"] + hour["cancelled"] for hour in now.hours),
    }


def _chart(hours: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page's script draws."""
    names = ("succeeded", "failed", "cancelled")
    labels = [f"{hour['hour']:%H:%M}" for hour in hours]
    return {"labels": labels, **{name: [hour[name] for hour in hours] for name in names}}
