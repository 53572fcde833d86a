"""The tab Metrics of a feed: its last runs as charts."""

from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from harvester.feeds.latest_runs import HISTORY_DAYS, figures_since
from harvester.feeds.models import FeedRun
from harvester.feeds.run_totals import Totals, totals_since
from harvester.portal.display import NOTHING, span
from harvester.portal.feeds import page

#: More bars than these cannot be told apart.
RUNS: Final = 60


def _seconds(figures: FeedRun) -> float | None:
    return figures.run.duration_ms / 1000 if figures.run.duration_ms is not None else None


Value = Callable[[FeedRun], float | None]
#: Name, heading, what is counted, the colour's state, and where the number is.
CHARTS: Final[Sequence[tuple[str, str, str, str, Value]]] = (
    ("rows", "Rows", "read from the file", "running", lambda run: run.rows_read),
    ("prices", "Prices", "written", "succeeded", lambda run: run.prices_written),
    ("rejects", "Rejects", "rows that could not be used", "failed", lambda run: run.products_rejected),
    ("duration", "Duration", "seconds", "pending", _seconds),
)


def show(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    feed = page.find(feed_id)
    runs = figures_since(feed, most=RUNS)
    context = {
        **page.shell(site, request, feed),
        "tiles": _tiles(totals_since(feed)),
        "charts": [{"name": name, "title": title, "about": about} for name, title, about, _, _ in CHARTS],
        "chart_data": _data(runs),
        "shown": len(runs),
        "days": HISTORY_DAYS,
    }
    return TemplateResponse(request, "portal/feeds/metrics.html", context)


def _tiles(totals: Totals) -> list[dict[str, Any]]:
    typical = span(totals.median_seconds) if totals.median_seconds is not None else NOTHING
    return [
        {"name": "Runs", "value": f"{totals.runs:,}", "tone": "running"},
        {"name": "Failed", "value": f"{totals.failed:,}", "tone": "failed"},
        {"name": "Held", "value": f"{totals.held:,}", "tone": "retryable"},
        {"name": "Unchanged", "value": f"{totals.skipped:,}", "tone": "pending"},
        {"name": "Prices written", "value": f"{totals.prices:,}", "tone": "succeeded"},
        {"name": "Usual duration", "value": typical, "tone": "pending"},
    ]


def _data(runs: Sequence[FeedRun]) -> dict[str, Any]:
    """What the page's script draws."""
    return {
        "labels": [f"#{figures.run.no}, {figures.run.started_at:%d %b %H:%M}" for figures in runs],
        "charts": {
            name: {
                "label": f"{title} {about}",
                "tone": tone,
                "whole": value is not _seconds,
                "values": [value(figures) for figures in runs],
            }
            for name, title, about, tone, value in CHARTS
        },
    }
