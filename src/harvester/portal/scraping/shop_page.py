"""The page of a shop: what is left to do, how reading its pages is going, and which fields are found."""

from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils import timezone

from harvester.catalog import governance
from harvester.catalog.governance import Gate, SourceState
from harvester.catalog.models import Source
from harvester.catalog.states import Visibility
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import AuditEvent, Role
from harvester.portal.display import duration
from harvester.portal.navigation import shop_tabs
from harvester.portal.requests import is_fragment, may
from harvester.portal.scraping import shops as shop_list
from harvester.portal.scraping.labels import COVERED, price_of, short_url
from harvester.runs.models import Run
from harvester.runs.queries import described
from harvester.scraping import capacity, queries, shops
from harvester.scraping.lanes import Lanes
from harvester.scraping.readiness import Step, readiness, warnings
from harvester.scraping.sites import sites
from harvester.scraping.states import RUN_KIND, TargetStatus

LAST_RUNS: Final = 5
EVENTS: Final = 6
#: Bars of a chart of fields.
COVERED_RUNS: Final = 30


def find(source_id: UUID) -> Source:
    return get_object_or_404(Source.objects.select_related("retailer"), pk=source_id)


def shell(site: AdminSite, request: HttpRequest, source: Source) -> dict[str, Any]:
    """Return what all tabs of the shop share."""
    return {
        **site.each_context(request),
        "title": source.name,
        "view_tabs": shop_tabs(request, source.pk),
        **headline(request, source),
    }


def headline(request: HttpRequest, source: Source) -> dict[str, Any]:
    """Return the part that refreshes itself: how reading is going, and its figures."""
    figures = shops.figures_of([source])[source.pk]
    breaker = breakers_of([source.pk]).get(source.pk)
    due = figures.oldest_due_at
    return {
        "source": source,
        "figures": figures,
        "state": shop_list.state_of(source, figures, breaker),
        "breaker": breaker,
        "asked_pause": capacity.pause_text(pause) if (pause := capacity.shop_pause(source)) else "",
        "is_paused": breaker is not None and breaker.gate != Gate.CLOSED,
        "lag": duration((timezone.now() - due).total_seconds()) if due else None,
        "counts": [
            {"label": label, "count": figures.count(status), "status": status.value}
            for status, label in (
                (TargetStatus.ACTIVE, "Active"),
                (TargetStatus.BROKEN, "Broken"),
                (TargetStatus.STALE, "Stale"),
                (TargetStatus.PAUSED, "Paused"),
            )
        ],
        "operator": may(request, Role.OPERATOR),
        "admin": may(request, Role.ADMIN),
        "is_running": figures.run is not None and figures.run["status"] == "RUNNING",
    }


def show(site: AdminSite, request: HttpRequest, source_id: UUID) -> HttpResponse:
    source = find(source_id)
    if is_fragment(request):
        return TemplateResponse(request, "portal/scraping/shop_headline.html", headline(request, source))
    runs = Run.objects.filter(source_id=source_id, kind=RUN_KIND).order_by("-started_at")[:LAST_RUNS]
    events = AuditEvent.objects.filter(object_type="source", object_id=str(source_id)).order_by("-at", "-id")
    shown, fits = shell(site, request, source), queries.schedule_fits(source)
    context = {
        **shown,
        **_readiness(source),
        "interval": fits[0].fit.interval if fits else Lanes.load().interval_of(source),
        "stale": shown["figures"].count(TargetStatus.STALE),
        "fits": [{"text": str(each.fit), "is_met": each.fit.is_met} for each in fits],
        "last_runs": described(runs),
        "events": list(events[:EVENTS]),
    }
    return TemplateResponse(request, "portal/scraping/shop.html", context)


def _readiness(source: Source) -> dict[str, Any]:
    """Return the steps towards prices that consumers see, with the switch between them."""
    steps = readiness(source)
    missing = [step.label for step in steps if step.is_needed and not step.is_done]
    switch = Step(
        name="enabled",
        label="Reading enabled",
        is_done=source.scrape_enabled,
        next_step="Missing first: " + ", ".join(missing) + "." if missing else "Everything is ready.",
    )
    place = sum(step.is_needed for step in steps)
    ordered = [*steps[:place], switch, *steps[place:]]
    first = next((step for step in ordered if not step.is_done), None)
    return {
        "steps": [{"step": step, "is_next": step is first, "examples": _examples(step)} for step in ordered],
        "steps_done": all(step.is_done for step in ordered),
        "may_enable": not missing and not source.scrape_enabled,
        "is_visible": source.visibility == Visibility.ELIGIBLE,
        "sites": [(each.id, each.title) for each in sites()],
        "warnings": warnings(source),
        "samples_done": all(step.is_done for step in steps if step.name in ("samples", "first_run")),
        "allowed": [("allowed", "yes")],
        "longest_reason": LONGEST_REASON,
    }


def _examples(step: Step) -> list[dict[str, Any]]:
    """Return pages that were read, or prices that differ."""
    return [
        {
            "url": short_url(str(example.get("url", ""))),
            "title": (example.get("found") or {}).get("title", ""),
            "price": price_of(example.get("found") or {"price": example.get("page")}),
            "feed": price_of({"price": example["feed"]}) if example.get("feed") else "",
        }
        for example in step.examples
    ]


def coverage(site: AdminSite, request: HttpRequest, source_id: UUID) -> HttpResponse:
    source = find(source_id)
    runs = queries.field_coverage(source_id, most=COVERED_RUNS)

    def percent(run: queries.Coverage, name: str) -> float:
        return round(100 * run.shares[name], 1)

    context = {
        **shell(site, request, source),
        "charts": list(COVERED.items()),
        "rows": [
            {"run": run, "shares": [(title, percent(run, name)) for name, title in COVERED.items()]}
            for run in reversed(runs)
        ],
        # Drawn by charts.js.
        "chart_data": {
            "labels": [f"#{run.run_no}, {run.ended_at:%d %b %H:%M}" for run in runs],
            "charts": {
                name: {
                    "label": f"{title}, %",
                    "tone": "running",
                    "whole": False,
                    "top": 100,
                    "values": [percent(run, name) for run in runs],
                }
                for name, title in COVERED.items()
            },
        },
    }
    return TemplateResponse(request, "portal/scraping/shop_coverage.html", context)


def breakers_of(source_ids: Collection[UUID]) -> dict[UUID, SourceState]:
    """Return the state of the breaker for pages of each source that failed or was paused once."""
    return {state.source_id: state for state in governance.states(source_ids) if state.kind == RUN_KIND}
