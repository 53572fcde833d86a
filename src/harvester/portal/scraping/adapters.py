"""How the adapters do on each shop: whether they are on, their usual rates, their batches, and overrides of site files.

A shop may have overrides of its site file: they are tested on kept pages before they are used.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite, display
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.models import Source
from harvester.engine.states import OPEN
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import Role
from harvester.portal.display import NOTHING, pretty, verb, when
from harvester.portal.forms import Text
from harvester.portal.links import link
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.pages import Pages
from harvester.portal.requests import attempt, is_fragment, may, require
from harvester.portal.runs.labels import code, gates
from harvester.portal.scraping import shop_page
from harvester.portal.scraping.forms import Lines, save_in_form
from harvester.portal.scraping.labels import OFFER_LABELS, State, short_path, tinted
from harvester.scraping import adapters, totals
from harvester.scraping import overrides as verbs
from harvester.scraping.models import AdapterState, ScrapeBatch, ScrapeOverride, ScrapeTotal
from harvester.scraping.states import DisabledReason

#: Bars of a chart, and rows of the table below it.
CHARTED_BATCHES: Final = 60
LISTED_BATCHES: Final = 20
_REASONS: Final = {
    DisabledReason.MANUAL: "by a person",
    DisabledReason.DRIFT_DETECTED: "because too many of its pages failed",
    DisabledReason.TOS_VIOLATION: "because the shop's terms do not allow it",
}


def state_of(state: AdapterState) -> State:
    """Return how an adapter does on a shop."""
    if not state.enabled:
        why = _REASONS[DisabledReason(state.disabled_reason or DisabledReason.MANUAL)]
        return State("Disabled", "failed", f"Switched off {why}. Nothing is read.", "Fix the cause; then enable it.")
    if state.check_next_run:
        if state.check_run_no is None:
            return State("To check", "retryable", "It was enabled again; its next run has to be checked.")
        return State("To check", "retryable", f"Run {state.check_run_no} is the first since it was enabled again.",
                     "Compare some of its prices with the shop, then confirm the run.")  # fmt: skip
    return State("Enabled", "succeeded", "It reads the pages of this shop.")


def percent(rate: Any) -> str:
    return f"{100 * float(rate):.0f} %" if rate is not None else "–"  # noqa: RUF001 - an en dash is meant


class SourcesWithStates(KeysetChangeList):
    """A page of sources with the states of their adapters."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found: list[Any] = self.result_list
        states = AdapterState.objects.filter(source__in=[source.pk for source in found])
        known = {(state.source_id, state.adapter_id): state for state in states}
        for source in found:
            state = known.get((source.pk, source.adapter_id))
            source.adapter_state = state or AdapterState(source=source, adapter_id=source.adapter_id)


class AdapterList(PortalAdmin):
    """Sources that have an adapter."""

    mount = "adapters"
    title = "Adapters"
    page_keys = ("name", "id")
    empty = "No adapters in use yet. A shop gets one with its first page."
    list_display: Sequence[str] = ("shop", "adapter", "state", "failure_rate", "yield_rate", "last_rate", "changed")
    list_display_links = None
    numbers = ("failure_rate", "yield_rate", "last_rate")
    search_fields = ("name__icontains", "adapter_id__icontains")
    search_help_text = "Search by shop or adapter"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        return super().get_queryset(request).filter(adapter_id__isnull=False).only("name", "adapter_id")

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return SourcesWithStates

    @display(description="Shop")
    def shop(self, source: Any) -> SafeString:
        return link("shop", source.pk, text=source.name)

    @display(description="Adapter")
    def adapter(self, source: Any) -> SafeString:
        return link("adapter", source.pk, source.adapter_id, text=source.adapter_id)

    @display(description="State")
    def state(self, source: Any) -> SafeString:
        found = state_of(source.adapter_state)
        return found.badge if found.word == "Enabled" else found.explained

    @display(description="Usual failures")
    def failure_rate(self, source: Any) -> str:
        return percent(source.adapter_state.baseline_failure_rate)

    @display(description="Usual yield")
    def yield_rate(self, source: Any) -> str:
        return percent(source.adapter_state.baseline_yield_rate)

    @display(description="Last batch failed")
    def last_rate(self, source: Any) -> str:
        return percent(source.adapter_state.last_batch_failure_rate)

    @display(description="Disabled")
    def changed(self, source: Any) -> SafeString:
        return when(source.adapter_state.disabled_at) if not source.adapter_state.enabled else NOTHING


class AdapterPages(Pages):
    mount = "adapters"
    name = "scraping_adapter"

    def urls(self) -> list[URLPattern]:
        key = "<uuid:source_id>/<slug:adapter_id>/"
        listing = AdapterList(Source, self.site)
        return [
            self.url("", require_safe(listing.changelist_view), "changelist"),
            self.url(key, require_safe(self.show), "change"),
            self.url(f"{key}enable/", require_POST(self.enable), "enable"),
            self.url(f"{key}disable/", require_POST(self.disable), "disable"),
            self.url(f"{key}confirm/", require_POST(self.confirm), "confirm"),
        ]

    def show(self, request: HttpRequest, source_id: UUID, adapter_id: str) -> HttpResponse:
        source = get_object_or_404(Source, pk=source_id)
        batches = list(
            ScrapeBatch.objects.filter(source=source, adapter_id=adapter_id).order_by("-judged_at")[:CHARTED_BATCHES]
        )
        state = adapters.state_of(source_id, adapter_id)
        if source.adapter_id != adapter_id and not batches:
            raise Http404
        context = {
            "title": f"{adapter_id} on {source}",
            "source": source,
            "adapter_id": adapter_id,
            "is_current": source.adapter_id == adapter_id,
            "state": state,
            "shown": state_of(state),
            "usual": [
                ("Failures", percent(state.baseline_failure_rate)),
                ("Yield", percent(state.baseline_yield_rate)),
                ("Batches", f"{state.baseline_sample_size:,}"),
            ],
            "batches": [
                {
                    "batch": batch,
                    "state": tinted("Refused", "failed") if batch.is_refused else tinted("Promoted", "succeeded"),
                    "why": " ".join(gate["reason"] for gate in gates(batch.verdict) if gate["holds"]),
                    "failed": percent(batch.failures / batch.attempts if batch.attempts else 0),
                }
                for batch in batches[:LISTED_BATCHES]
            ],
            "chart_data": chart_of(batches[::-1]),
            "charted": len(batches),
            "rejections": [
                (verb(word), total)
                for word, total in ScrapeTotal.objects.filter(
                    source=source, adapter_id=adapter_id, figure=totals.REJECTED
                )
                .order_by("word")
                .values_list("word", "total")
            ],
            "reasons": [
                (DisabledReason.MANUAL.value, "Other reason"),
                (DisabledReason.TOS_VIOLATION.value, "The shop's terms do not allow it"),
            ],
            "admin": may(request, Role.ADMIN),
            "longest_reason": LONGEST_REASON,
        }  # fmt: skip
        return self.render(request, "portal/scraping/adapter.html", context)

    def enable(self, request: HttpRequest, source_id: UUID, adapter_id: str) -> HttpResponse:
        actor = require(request, Role.ADMIN)

        def act() -> str:
            adapters.enable(actor, source_id, adapter_id)
            return "The adapter is enabled. Check its next run."

        return self._done(request, source_id, adapter_id, act)

    def disable(self, request: HttpRequest, source_id: UUID, adapter_id: str) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        reason, note = request.POST.get("reason", ""), request.POST.get("note", "")

        def act() -> str:
            adapters.disable(actor, source_id, adapter_id, reason=reason, note=note)
            return "The adapter is disabled. Waiting pages were cancelled."

        return self._done(request, source_id, adapter_id, act)

    def confirm(self, request: HttpRequest, source_id: UUID, adapter_id: str) -> HttpResponse:
        actor = require(request, Role.ADMIN)

        def act() -> str:
            adapters.confirm_check(actor, source_id, adapter_id)
            return "The run is confirmed."

        return self._done(request, source_id, adapter_id, act)

    def _done(self, request: HttpRequest, source_id: UUID, adapter_id: str, act: Any) -> HttpResponse:
        attempt(request, act)
        return redirect(reverse("admin:scraping_adapter_change", args=[source_id, adapter_id]))


def chart_of(batches: Sequence[ScrapeBatch]) -> dict[str, Any]:
    """Return the data of charts.js, the oldest batch first."""

    def shares(name: str) -> list[float]:
        return [round(100 * getattr(batch, name) / (batch.attempts or 1), 1) for batch in batches]

    return {
        "labels": [f"#{batch.run_no}, {batch.judged_at:%d %b %H:%M}" for batch in batches],
        "charts": {
            "failures": {"label": "Failed, %", "tone": "failed", "whole": False, "values": shares("failures")},
            "yield": {"label": "Offers, %", "tone": "succeeded", "whole": False, "values": shares("offers")},
        },
    }


MOST_VERSIONS: Final = 50
EXAMPLE: Final = '{"places": {"price": ["json:offers.price"]}}'
#: Outcome of reading a kept page again -> its label and color.
_KINDS: Final = {
    "same": ("Same", "succeeded"),
    "changed": ("Changed", "retryable"),
    "gained": ("Gained an offer", "succeeded"),
    "lost": ("Lost the offer", "failed"),
    "other": ("Another reason", "pending"),
    "missing": ("File gone", "pending"),
}


class OverrideForm(forms.Form):
    places = forms.CharField(
        label="Places",
        widget=Lines(6, EXAMPLE),
        help_text="JSON of what differs from the site file: places, exclude, tiers, in_stock, out_of_stock, backorder. "
        "A place is a CSS selector with ::text or ::attr(name), or json: and a path.",
    )
    note = forms.CharField(required=False, widget=Text(), help_text="Why, for the others.")

    def clean_places(self) -> Any:
        try:
            return json.loads(self.cleaned_data["places"])
        except ValueError as problem:
            raise forms.ValidationError(f"This is not JSON: {problem}.") from None


def overrides(site: AdminSite, request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Show the versions; a POST saves a new one as a draft."""
    source = shop_page.find(source_id)
    actor = require(request, Role.ADMIN) if request.method == "POST" else None
    form = OverrideForm(request.POST or None)
    if actor is not None and form.is_valid():
        given = form.cleaned_data
        made = save_in_form(form, lambda: verbs.save(actor, source_id, given["places"], given["note"]))
        if made is not None:
            messages.success(request, f"Override {made.version} was saved as a draft. Test it on kept pages.")
            return redirect("admin:scraping_shop_override", source_id, made.version)
    versions = []
    for each in ScrapeOverride.objects.filter(source=source).order_by("-version")[:MOST_VERSIONS]:
        report = each.backtest or {}
        parts = [f"{report[kind]:,} {label.lower()}" for kind, (label, _) in _KINDS.items() if report.get(kind)]
        tested = f"{report.get('pages', 0):,} pages: {', '.join(parts) or 'none kept'}" if report else ""
        versions.append({"override": each, "tested": tested})
    job = verbs.job_of_hints(source_id)
    result = job.result if job is not None and isinstance(job.result, dict) else {}
    context = {
        **shop_page.shell(site, request, source),
        "form": form,
        "versions": versions,
        # Where lost values are found now, as the last search reported them.
        "hints": {
            "job": job,
            "live": job is not None and job.state in OPEN,
            "was_searched": bool(result),
            "rows": [
                {**hint, "label": OFFER_LABELS.get(hint["field"], hint["field"]),
                 "places": json.dumps({"places": {hint["field"]: [hint["place"]]}})}
                for hint in result.get("hints", ())
            ],
        },
    }  # fmt: skip
    return TemplateResponse(request, "portal/scraping/overrides.html", context)


def show_override(site: AdminSite, request: HttpRequest, source_id: UUID, version: int) -> HttpResponse:
    source = shop_page.find(source_id)
    found = get_object_or_404(ScrapeOverride, source=source, version=version)
    job = verbs.job_of_test(found)
    report: Mapping[str, Any] = found.backtest or {}
    changes = []
    for change in report.get("changes") or ():
        label, tone = _KINDS.get(change["kind"], (change["kind"], "pending"))
        fields = [
            (OFFER_LABELS.get(name, code(name.upper())), then, now)
            for name, (then, now) in (change.get("fields") or {}).items()
        ]
        changes.append(
            {
                "target_id": UUID(change["target_id"]),
                "name": short_path(change["url"]),
                "label": label,
                "tone": tone,
                "then": change["then"],
                "now": change["now"],
                "detail": change.get("detail", ""),
                "fields": fields,
            }
        )
    context = {
        "source": source,
        "override": found,
        "places": pretty(found.places),
        "job": job,
        "live": job is not None and job.state in OPEN,
        "error": job.error if job is not None and job.state == "failed" else None,
        "report": report,
        "tested_at": datetime.fromisoformat(report["at"]) if report.get("at") else None,
        "tiles": [
            {"name": label, "tone": tone, "count": report.get(kind, 0)} for kind, (label, tone) in _KINDS.items()
        ],
        "changed_fields": [
            (OFFER_LABELS.get(name, code(name.upper())), count) for name, count in (report.get("fields") or {}).items()
        ],
        "changes": changes,
        "admin": may(request, Role.ADMIN),
    }
    if is_fragment(request):
        return TemplateResponse(request, "portal/scraping/override_body.html", context)
    shell = {**site.each_context(request), "title": f"Override {version}"}
    return TemplateResponse(request, "portal/scraping/override.html", {**shell, **context})


def _button(
    act: Callable[..., str],
) -> Callable[[HttpRequest, UUID, int], HttpResponse]:
    """Return the view of a button of one version."""

    def view(request: HttpRequest, source_id: UUID, version: int) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        attempt(request, lambda: act(actor, source_id, version))
        return redirect("admin:scraping_shop_override", source_id, version)

    return view


@_button
def test(*key: Any) -> str:
    verbs.test(*key)
    return "The test is queued. It reads kept pages and requests nothing."


@_button
def use(*key: Any) -> str:
    return f"Override {verbs.use(*key).version} is used from now on."


@_button
def retire(*key: Any) -> str:
    return f"Override {verbs.retire(*key).version} is retired. The site file alone counts again."


def find_hints(request: HttpRequest, source_id: UUID) -> HttpResponse:
    actor = require(request, Role.OPERATOR)

    def act() -> str:
        verbs.find_hints(actor, source_id)
        return "The search is queued. Open this page again in a moment."

    attempt(request, act)
    return redirect("admin:scraping_shop_overrides", source_id)
