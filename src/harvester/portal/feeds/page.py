"""The pages of one feed: the tabs Configuration (with the setup), Runs and Metrics, and the result of a test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from harvester.catalog.exposure import Exposure, exposure_of
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.feeds.advice import advice_for
from harvester.feeds.figures import HISTORY_DAYS, figures_since, latest_runs, latest_test, test_job, totals_since
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.notices import titled
from harvester.feeds.readiness import missing_for_a_run
from harvester.feeds.runs import FEED_RUNS
from harvester.feeds.states import FeedStatus, Transport
from harvester.guards.host_keys import HostKeyUnknown
from harvester.ops.models import AuditEvent, Role
from harvester.portal.display import NOTHING, span
from harvester.portal.feeds import actions, labels
from harvester.portal.navigation import feed_tabs
from harvester.portal.requests import is_fragment, may
from harvester.portal.runs.labels import code
from harvester.portal.runs.lists import OutcomePill, RunAdmin, StatusPill, TriggerPill
from harvester.runs.models import Run
from harvester.runs.states import RunStatus

EVENTS, LAST_RUNS = 6, 5
#: Bars of a chart; more would be too thin.
CHARTED_RUNS: Final = 60
#: Settings that the first step of the setup asks for.
_SETTINGS: Final = ("network", "host", "path", "username", "transport", "expiry_hours")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the setup.

    Attributes:
        title: its label.
        text: what is missing, or what will happen.
        is_done: whether nothing is left to do.
        is_next: whether it is the first that is not done.
        way: how it is done: edit, test, approve, enable or primary.
        role: who may do it.
        may: whether the user may.
    """

    title: str
    text: str
    is_done: bool = False
    way: str
    role: Role
    is_next: bool = False
    may: bool = False


def find(feed_id: UUID) -> Feed:
    return get_object_or_404(Feed.objects.select_related("source__retailer"), pk=feed_id)


def show(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    feed = find(feed_id)
    if is_fragment(request) and request.GET.get("part") != "catalog":
        return TemplateResponse(request, "portal/feeds/headline.html", _headline(request, feed))
    exposure = exposure_of(feed.source_id)
    catalog = {"network": labels.network(feed.network), "exposure": exposure}
    if is_fragment(request):
        context = {"feed": feed, "may_edit": may(request, Role.ADMIN), **catalog}
        return TemplateResponse(request, "portal/feeds/catalog.html", context)
    problems, test = missing_for_a_run(feed), latest_test(feed)
    runs: list[Any] = list(FeedRun.objects.filter(feed=feed).select_related("run").order_by("-run__no")[:LAST_RUNS])
    for figures in runs:
        figures.outcome = labels.outcome(figures.run)
    events = AuditEvent.objects.filter(object_type="feed", object_id=str(feed.pk))
    context = {
        **_shell(site, request, feed),
        **catalog,
        "sections": labels.sections(feed),
        "secrets": labels.secrets(feed),
        "keys": labels.host_keys(feed),
        "thresholds": labels.thresholds(feed),
        "own_thresholds": len(feed.thresholds),
        "problems": problems.values(),
        "steps": _steps(request, feed, problems, test, exposure),
        "test": test,
        "events": list(events.order_by("-at", "-id")[:EVENTS]),
        "last_runs": runs,
    }
    return TemplateResponse(request, "portal/feeds/feed.html", context)


def _shell(site: AdminSite, request: HttpRequest, feed: Feed) -> dict[str, Any]:
    """Return what all tabs of the feed share."""
    return {
        **site.each_context(request),
        "title": str(feed),
        "view_tabs": feed_tabs(request, feed.pk),
        "dialogs": [action for action in actions.allowed(request) if action.title],
        **_headline(request, feed),
    }


def _headline(request: HttpRequest, feed: Feed) -> dict[str, Any]:
    """Return the part that refreshes itself: status, newest run and buttons."""
    run = latest_runs([feed.source_id]).get(feed.source_id)
    offered = actions.offered(request, feed)
    job_id = run.job_id if run and run.status == RunStatus.RUNNING else None
    return {
        "feed": feed,
        "about": labels.about(feed),
        "run": run,
        "run_name": f"#{run.no}" if run else None,
        "run_outcome": labels.outcome(run) if run else None,
        "held_name": f"#{feed.source.held_run_no}",
        "run_job": Job.objects.filter(pk=job_id).first() if job_id else None,
        "buttons": [action for action in offered if not action.is_rare],
        "rare": [action for action in offered if action.is_rare],
        "may_edit": may(request, Role.ADMIN) and feed.retired_at is None,
    }


def _steps(
    request: HttpRequest, feed: Feed, problems: Mapping[str, str], test: Job | None, exposure: Exposure
) -> list[Step]:
    """Return the steps until consumers see the feed's offers; of a feed that is set up, only the last one."""
    steps = []
    if feed.status == FeedStatus.DRAFT:
        settings = " ".join(problems[name] for name in _SETTINGS if name in problems)
        credentials = problems.get("credentials", "")
        enable = "The feed then runs on its schedule and when started manually."
        steps = [
            Step(title="Settings", text=settings, is_done=not settings, way="edit", role=Role.ADMIN),
            Step(title="Credentials", text=credentials, is_done=not credentials, way="edit", role=Role.ADMIN),
            *([_host_key_step(feed, problems)] if feed.transport == Transport.SFTP else []),
            _test_step(feed, test),
            Step(title="Enable", text=enable, way="enable", role=Role.ADMIN),
        ]
    if not exposure.is_shown and exposure.primary_source is None:
        text = f"{feed.source.retailer} has no display primary. Consumers see no offers of this feed until it is one."
        steps.append(Step(title="Make primary", text=text, way="primary", role=Role.ADMIN))
    first = next((step for step in steps if not step.is_done), None)
    return [replace(step, is_next=step is first, may=may(request, step.role)) for step in steps]


def _host_key_step(feed: Feed, problems: Mapping[str, str]) -> Step:
    is_done, keys = "host_keys" not in problems, labels.host_keys(feed)
    if keys and keys["waiting"]:
        text = "Compare the server's key with the partner's, then approve it."
        return Step(title="Host key", text=text, is_done=is_done, way="approve", role=Role.ADMIN)
    text = "A test reads the server's key. No credentials are sent before it is approved."
    return Step(title="Host key", text=text, is_done=is_done, way="test", role=Role.OPERATOR)


def _test_step(feed: Feed, test: Job | None) -> Step:
    """Return the step, done if a test of the current settings succeeded."""
    found = test.result if test and isinstance(test.result, dict) else {}
    is_done = bool(test and found.get("success") and test.created_at >= feed.updated_at)
    text = "The test logs in and reads the first rows of the file. It changes nothing."
    if test and test.state in OPEN:
        text = "A test is running."
    elif found.get("error"):
        text = f"The last test failed: {found['error'].get('message', '')}"
    return Step(title="Test", text=text, is_done=is_done, way="test", role=Role.OPERATOR)


class FeedRuns(RunAdmin):
    """The runs of one feed, newest first. Each request creates its own for its feed."""

    # The index of runs by source is ordered by time.
    page_keys = ("-started_at", "-no")
    empty = "No runs yet."
    list_display = ("run", "state", "trigger_words", "started", "took", "rows", "products", "prices", "missing")
    list_filter = (StatusPill, OutcomePill, TriggerPill)
    change_list_template = "portal/feeds/runs.html"

    def __init__(self, feed: Feed, site: AdminSite) -> None:
        super().__init__(Run, site)
        self.feed = feed

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return super().get_queryset(request).filter(source_id=self.feed.source_id, kind=FEED_RUNS.name)


def show_runs(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponseBase:
    feed = find(feed_id)
    return FeedRuns(feed, site).changelist_view(request, _shell(site, request, feed))


def _seconds(figures: FeedRun) -> float | None:
    return figures.run.duration_ms / 1000 if figures.run.duration_ms is not None else None


#: Name, title, state that has the same color, and the function that reads the value.
CHARTS: Final[Sequence[tuple[str, str, str, Callable[[FeedRun], float | None]]]] = (
    ("rows", "Rows read", "running", lambda figures: figures.rows_read),
    ("prices", "Prices written", "succeeded", lambda figures: figures.prices_written),
    ("rejects", "Rows rejected", "failed", lambda figures: figures.products_rejected),
    ("duration", "Duration in seconds", "pending", _seconds),
)


def show_metrics(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    feed = find(feed_id)
    runs, totals = figures_since(feed, most=CHARTED_RUNS), totals_since(feed)
    median = span(totals.median_seconds) if totals.median_seconds is not None else NOTHING
    context = {
        **_shell(site, request, feed),
        "tiles": [
            {"name": "Runs", "value": f"{totals.runs:,}", "tone": "running"},
            {"name": "Failed", "value": f"{totals.failed:,}", "tone": "failed"},
            {"name": "Held", "value": f"{totals.held:,}", "tone": "retryable"},
            {"name": "Unchanged", "value": f"{totals.skipped:,}", "tone": "pending"},
            {"name": "Prices written", "value": f"{totals.prices:,}", "tone": "succeeded"},
            {"name": "Median duration", "value": median, "tone": "pending"},
        ],
        "charts": [{"name": name, "title": title} for name, title, _, _ in CHARTS],
        # Drawn by charts.js.
        "chart_data": {
            "labels": [f"#{figures.run.no}, {figures.run.started_at:%d %b %H:%M}" for figures in runs],
            "charts": {
                name: {
                    "label": title,
                    "tone": tone,
                    "whole": read is not _seconds,
                    "values": [read(figures) for figures in runs],
                }
                for name, title, tone, read in CHARTS
            },
        },
        "shown": len(runs),
        "days": HISTORY_DAYS,
    }
    return TemplateResponse(request, "portal/feeds/metrics.html", context)


ROW_COLUMNS = (
    ("item_id", "Item ID"),
    ("sku", "SKU"),
    ("title", "Title"),
    ("amount", "Price"),
    ("currency", "Currency"),
    ("in_stock", "In stock"),
    ("url", "URL"),
)


def show_test(site: AdminSite, request: HttpRequest, feed_id: UUID, test_id: int) -> HttpResponse:
    """Show a test while it runs, and then its result."""
    feed = find(feed_id)
    job = test_job(feed, test_id)
    if job is None:
        raise Http404
    found = job.result if isinstance(job.result, dict) else {}
    error = found.get("error")
    if not error and job.error and job.state not in OPEN:
        error = {"code": job.error_type or job.state, "message": job.error}
    offered = actions.offered(request, feed)
    context = {
        "feed": feed,
        "job": job,
        "live": job.state in OPEN,
        "found": found,
        "error": error,
        "is_first_key": bool(error and error["code"] == HostKeyUnknown.code),
        "advice": advice_for(error["code"]) if error else None,
        "keys": labels.host_keys(feed) if found.get("seen_host_key") else None,
        "may_approve": may(request, Role.ADMIN),
        "buttons": _next_actions(feed, offered, succeeded=bool(found.get("success"))),
        "binding": [(code(name), names) for name, names in (found.get("binding") or {}).items()],
        "notices": titled(found.get("notices") or []),
        "rejects": [(code(name), count) for name, count in (found.get("rejects") or {}).items()],
        "warnings": [(code(name), count) for name, count in (found.get("warnings") or {}).items()],
        "samples": [(code(name), sample) for name, kept in (found.get("samples") or {}).items() for sample in kept],
        "columns": [label for _, label in ROW_COLUMNS],
        "rows": [[row.get(name) for name, _ in ROW_COLUMNS] for row in found.get("rows") or []],
    }
    if is_fragment(request):
        return TemplateResponse(request, "portal/feeds/test_body.html", context)
    dialogs = [action for action in offered if action.title and not action.is_rare]
    shell = {**site.each_context(request), "title": "Test", "dialogs": dialogs}
    return TemplateResponse(request, "portal/feeds/test.html", {**shell, **context})


def _next_actions(feed: Feed, offered: list[actions.Action], *, succeeded: bool) -> list[actions.Action]:
    if not succeeded:
        return [action for action in offered if action.name == "test"]
    wanted = ("run",) if feed.status == FeedStatus.ENABLED else ("enable", "resume", "re-enable")
    return [replace(action, look="primary") for action in offered if action.name in wanted]
