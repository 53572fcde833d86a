"""The pages of one feed: what they share, and the tab Configuration."""

from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from harvester.catalog.exposure import exposure_of
from harvester.catalog.models import Run
from harvester.catalog.states import RunStatus
from harvester.engine.models import Job
from harvester.feeds.latest_runs import latest_runs, latest_test
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.readiness import missing_for_a_run
from harvester.ops.models import AuditEvent, Role
from harvester.portal.feeds import buttons, facts, labels
from harvester.portal.feeds.setup_steps import steps
from harvester.portal.navigation import feed_tabs
from harvester.portal.requests import is_fragment, may

LATEST, LAST_RUNS = 6, 5


def find(feed_id: UUID) -> Feed:
    feed = Feed.objects.select_related("source__retailer").filter(pk=feed_id).first()
    if feed is None:
        raise Http404
    return feed


def show(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    feed = find(feed_id)
    if is_fragment(request) and request.GET.get("part") == "catalog":
        context = {"feed": feed, "may_edit": may(request, Role.ADMIN), **_catalog(feed)}
        return TemplateResponse(request, "portal/feeds/catalog.html", context)
    if is_fragment(request):
        return TemplateResponse(request, "portal/feeds/headline.html", headline(request, feed))
    return TemplateResponse(request, "portal/feeds/feed.html", {**shell(site, request, feed), **_facts(request, feed)})


def shell(site: AdminSite, request: HttpRequest, feed: Feed) -> dict[str, Any]:
    """What every tab of the feed shows around itself."""
    return {
        **site.each_context(request),
        "title": str(feed),
        "view_tabs": feed_tabs(request, feed.pk),
        "dialogs": [action for action in buttons.allowed(request) if action.title],
        **headline(request, feed),
    }


def headline(request: HttpRequest, feed: Feed) -> dict[str, Any]:
    """The part that keeps itself true: status, the newest run, and what may be done now."""
    run = latest_runs([feed.source_id]).get(feed.source_id)
    offered = buttons.offered(request, feed)
    return {
        "feed": feed,
        "about": labels.about(feed),
        "run": run,
        "run_name": f"#{run.no}" if run else None,
        "run_word": labels.outcome(run) if run else None,
        "held_name": f"#{feed.source.held_run_no}",
        "run_job": _job_at_work(run),
        "buttons": [action for action in offered if not action.is_rare],
        "rare": [action for action in offered if action.is_rare],
        "may_edit": may(request, Role.ADMIN) and feed.retired_at is None,
    }


def _job_at_work(run: Run | None) -> Job | None:
    if run is None or run.job_id is None or run.status != RunStatus.RUNNING:
        return None
    return Job.objects.filter(pk=run.job_id).first()


def _facts(request: HttpRequest, feed: Feed) -> dict[str, Any]:
    problems, test = missing_for_a_run(feed), latest_test(feed)
    return {
        **_catalog(feed),
        "sections": facts.sections(feed),
        "secrets": facts.secrets(feed),
        "keys": facts.host_keys(feed),
        "thresholds": facts.thresholds(feed),
        "own_thresholds": len(feed.thresholds),
        "problems": problems.values(),
        "steps": steps(request, feed, problems, test),
        "test": test,
        "events": _events(feed),
        "last_runs": _last_runs(feed),
    }


def _catalog(feed: Feed) -> dict[str, Any]:
    """What its runs made of the catalog, which changes while somebody looks."""
    return {"network": labels.network(feed.network), "exposure": exposure_of(feed.source_id)}


def _last_runs(feed: Feed) -> list[Any]:
    found: list[Any] = list(FeedRun.objects.filter(feed=feed).select_related("run").order_by("-run__no")[:LAST_RUNS])
    for figures in found:
        figures.word = labels.outcome(figures.run)
    return found


def _events(feed: Feed) -> list[AuditEvent]:
    found = AuditEvent.objects.filter(object_type="feed", object_id=str(feed.pk))
    return list(found.order_by("-at", "-id")[:LATEST])
