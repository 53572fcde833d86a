"""The page of a shop, and what people do with the shop.

It shows what is left to do, how reading its pages is going, and which fields are found. People review its terms, switch
reading it on and off, show its prices, and change its settings.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from harvester.catalog import governance
from harvester.catalog.governance import Gate, SourceState
from harvester.catalog.models import Source
from harvester.catalog.states import Visibility
from harvester.kernel.actor import Actor
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import AuditEvent, Role
from harvester.portal.display import duration
from harvester.portal.forms import Text, Tick
from harvester.portal.navigation import shop_tabs
from harvester.portal.requests import attempt, is_fragment, may, require
from harvester.portal.scraping import shops as shop_list
from harvester.portal.scraping.forms import Lines, back, save_in_form
from harvester.portal.scraping.labels import COVERED, price_of, short_url
from harvester.portal.scraping.target_page import outcome_of
from harvester.runs.models import Run
from harvester.runs.queries import described
from harvester.scraping import capacity, queries, shops
from harvester.scraping.lanes import Lanes
from harvester.scraping.readiness import Step, readiness, warnings
from harvester.scraping.settings import SETTINGS, effective
from harvester.scraping.sites import sites
from harvester.scraping.states import RUN_KIND, TargetStatus
from harvester.scraping.verbs import request as request_pages
from harvester.scraping.verbs import requeue_stale
from harvester.scraping.verbs import sources as verbs

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
        "asked_pause": capacity.pause_text(asked) if (asked := capacity.shop_pause(source)) else "",
        "is_paused": breaker is not None and breaker.gate != Gate.CLOSED,
        "needs_resume": breaker is not None and breaker.gate == Gate.STOPPED,
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
    shown = []
    for step in ordered:
        # Pages that were read, or prices that differ.
        examples = [
            {
                "url": short_url(str(example.get("url", ""))),
                "title": (example.get("found") or {}).get("title", ""),
                "price": price_of(example.get("found") or {"price": example.get("page")}),
                "feed": price_of({"price": example["feed"]}) if example.get("feed") else "",
            }
            for example in step.examples
        ]
        shown.append({"step": step, "is_next": step is first, "examples": examples})
    return {
        "steps": shown,
        "steps_done": all(step.is_done for step in ordered),
        "may_enable": not missing and not source.scrape_enabled,
        "is_visible": source.visibility == Visibility.ELIGIBLE,
        "sites": [(each.id, each.title) for each in sites()],
        "warnings": warnings(source),
        "samples_done": all(step.is_done for step in steps if step.name in ("samples", "first_run")),
        "allowed": [("allowed", "yes")],
        "longest_reason": LONGEST_REASON,
    }


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


#: Settings that are ticked.
_TICKS: Final = tuple(name for name, setting in SETTINGS.items() if isinstance(setting.default, bool))


class SettingsForm(forms.Form):
    """The settings of `scraping/settings.py`, each once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, setting in SETTINGS.items():
            field: forms.Field
            if name in _TICKS:
                field = forms.BooleanField(label=setting.label, help_text=setting.help, required=False, widget=Tick())
            else:
                widget = Lines(3, "Accept-Language: de") if name == "headers" else Text()
                field = forms.CharField(label=setting.label, help_text=setting.help, required=False, widget=widget)
            self.fields[name] = field

    @property
    def sections(self) -> list[tuple[str, list[Any]]]:
        """Return the fields by their section, in the order in which they are declared."""
        found: dict[str, list[Any]] = {}
        for name, setting in SETTINGS.items():
            found.setdefault(setting.section, []).append(self[name])
        return list(found.items())


def entered(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a source as they are typed; what is not set is empty."""
    values: dict[str, Any] = {}
    for name in SETTINGS:
        value = stored.get(name)
        if name in _TICKS:
            value = effective(stored)[name]
        elif isinstance(value, dict):
            value = "\n".join(f"{header}: {text}" for header, text in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        values[name] = "" if value is None else value
    return values


def edit_settings(site: AdminSite, request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Show the settings; a POST by an admin changes them."""
    source = find(source_id)
    actor = require(request, Role.ADMIN) if request.method == "POST" else None
    form = SettingsForm(request.POST or None, initial=entered(source.scrape_config))
    if actor is not None and form.is_valid():
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if save_in_form(form, lambda: verbs.update_settings(actor, source_id, changes)) is not None:
            messages.success(request, "The settings were saved. They count from the next request on.")
            return redirect("admin:scraping_shop_change", source_id)
    values = effective(source.scrape_config)
    # The settings that everybody may see.
    shown = [(setting.label, _plain(values[name])) for name, setting in SETTINGS.items() if setting.public]
    context = {**shell(site, request, source), "form": form, "shown": shown}
    return TemplateResponse(request, "portal/scraping/shop_settings.html", context)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value or "") or "default"


def _button(
    act: Callable[[Actor, UUID, QueryDict], str], role: Role = Role.ADMIN
) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Return the view of a button: it runs a verb and goes back to the page of the button."""

    def view(request: HttpRequest, source_id: UUID) -> HttpResponse:
        actor = require(request, role)
        attempt(request, lambda: act(actor, source_id, request.POST))
        return back(request, "admin:scraping_shop_change", source_id)

    return view


@_button
def terms(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    verbs.record_review(actor, source_id, given.get("note", ""))
    return "The review of the terms was recorded."


@_button
def adapter(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    source = verbs.choose_adapter(actor, source_id, given.get("adapter", ""))
    return f"The adapter {source.adapter_id} reads the pages from now on."


@_button
def robots(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    is_allowed = given.get("allowed") == "yes"
    verbs.set_robots_compliant(actor, source_id, is_allowed, given.get("note", ""))
    if is_allowed:
        return "The shop may be read again, where its robots.txt allows it."
    return "Nothing of this shop is read until an admin allows it again."


@partial(_button, role=Role.OPERATOR)
def check_robots(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    asked = verbs.check_robots(actor, source_id)
    if not asked:
        return "The robots.txt of every host is known and current."
    return "The robots.txt is fetched at the shop's pace. Reload this page in a moment."


@_button
def enable(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    source = verbs.enable(actor, source_id, keep_visibility=given.get("keep") == "yes")
    seen = "see" if source.visibility == Visibility.ELIGIBLE else "do not see"
    return f"{source} is enabled. Consumers {seen} the prices of its pages."


@_button
def stop(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    cancelled = verbs.stop(actor, source_id, given.get("reason", ""))
    return f"Stopped. {cancelled:,} waiting pages were cancelled. Offers stay until they expire."


@_button
def show_prices(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    source = verbs.show(actor, source_id, anyway=given.get("anyway") == "yes")
    return f"Consumers see the prices of {source} now."


@_button
def hide_prices(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    return f"The prices of {verbs.hide(actor, source_id)} are hidden. Its pages are still read."


@partial(_button, role=Role.OPERATOR)
def read(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    return outcome_of(request_pages(actor, source_id).require())


@partial(_button, role=Role.OPERATOR)
def requeue(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    return outcome_of(requeue_stale(actor, source_id).require())


@_button
def pause(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    governance.pause(actor, source_id, RUN_KIND, given.get("reason", ""))
    return "The shop is paused. Nothing is requested until it is resumed."


@_button
def resume(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    governance.resume(actor, source_id, RUN_KIND)
    return "The shop is resumed."


def stop_all(request: HttpRequest) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def act() -> str:
        stopped = verbs.stop_all(actor, request.POST.get("reason", ""))
        return f"{len(stopped):,} shops were stopped, and {sum(stopped.values()):,} waiting pages were cancelled."

    attempt(request, act)
    return back(request, "admin:scraping_shop_changelist")
