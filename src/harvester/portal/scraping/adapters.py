"""How the adapters do on each shop: whether they are on, their usual rates, and their batches."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.models import Source
from harvester.kernel.text import LONGEST_REASON
from harvester.ops.models import Role
from harvester.portal.display import NOTHING, verb, when
from harvester.portal.links import link
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.pages import Pages
from harvester.portal.requests import attempt, may, require
from harvester.portal.runs.labels import gates
from harvester.portal.scraping.labels import State, tinted
from harvester.scraping import adapters, totals
from harvester.scraping.models import AdapterState, ScrapeBatch, ScrapeTotal
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
            "batches": [_row(batch) for batch in batches[:LISTED_BATCHES]],
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


def _row(batch: ScrapeBatch) -> dict[str, Any]:
    return {
        "batch": batch,
        "state": tinted("Refused", "failed") if batch.is_refused else tinted("Promoted", "succeeded"),
        "why": " ".join(gate["reason"] for gate in gates(batch.verdict) if gate["holds"]),
        "failed": percent(batch.failures / batch.attempts if batch.attempts else 0),
    }


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
