"""The list of all runs, newest first."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.contrib.admin import display
from django.db.models import OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.models import Source
from harvester.portal.display import NOTHING, badge, number, span, verb, when
from harvester.portal.filters import ChoicePill, Pill, TextPill
from harvester.portal.links import link
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.runs import page
from harvester.portal.runs.labels import code
from harvester.runs.kinds import all_kinds
from harvester.runs.models import Run
from harvester.runs.queries import described
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

#: Sources whose runs are looked for by a part of their name.
MOST_SOURCES = 200


class KindPill(ChoicePill):
    title = "Kind"
    field = "kind"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(kind.name, kind.label) for kind in all_kinds()]


class StatusPill(ChoicePill):
    title = "Status"
    field = "status"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(word.value, verb(word)) for word in RunStatus]


class OutcomePill(ChoicePill):
    title = "Outcome"
    field = "outcome"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(word.value, verb(word)) for word in RunOutcome]


class TriggerPill(ChoicePill):
    title = "Trigger"
    field = "trigger"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(word.value, verb(word)) for word in RunTrigger]


class SourcePill(TextPill):
    title = "Source"
    field = "feed"
    hint = "part of its name"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:  # noqa: ARG002
        wanted = self.get(self.field).replace("\x00", "")
        if not wanted:
            return queryset
        try:
            # The feed's id, as other pages link to it.
            known = Q(feed__id=UUID(wanted))
        except ValueError:
            known = Q(name__icontains=wanted)
        named = Source.objects.filter(known).values_list("pk", flat=True)
        return queryset.filter(source_id__in=list(named[:MOST_SOURCES]))


class RunList(KeysetChangeList):
    """A page of runs, with what their kinds say about them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        runs: list[Any] = self.result_list
        for run, known in zip(runs, described(runs), strict=True):
            run.described = known


class RunAdmin(PortalAdmin):
    mount = "runs"
    title = "Runs"
    page_keys: Sequence[str] = ("-no",)
    empty = "No runs yet. A feed that is enabled runs by its schedule, or when somebody asks for it."
    live_seconds = 5
    # Rows are on the tab of a feed; here they would not fit on a laptop's screen.
    list_display: Sequence[str] = (
        "run",
        "kind_label",
        "of",
        "state",
        "trigger_words",
        "started",
        "took",
        "products",
        "prices",
        "missing",
    )
    list_display_links = None
    numbers = ("took", "rows", "products", "prices", "missing")
    list_filter: Sequence[type[Pill]] = (KindPill, StatusPill, OutcomePill, TriggerPill, SourcePill)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        found = super().get_queryset(request)
        columns = (
            "no",
            "kind",
            "subject_id",
            "trigger",
            "status",
            "outcome",
            "started_at",
            "duration_ms",
            "error_code",
        )
        found = found.annotate(source_name=Source.objects.filter(pk=OuterRef("source_id")).values("name")[:1])
        return found.only(*columns, "ignored_at")

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return RunList

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("<row:run_no>/", require_safe(self.show), "change"),
            # The audit log knows runs by their ids.
            self.url("<uuid:run_id>/", require_safe(self.by_id), "change"),
            self.url("<row:run_no>/file/", require_safe(page.file), "file"),
            self.url("<row:run_no>/approve/", require_POST(page.approve), "approve"),
            self.url("<row:run_no>/reject/", require_POST(page.reject), "reject"),
            self.url("<row:run_no>/ignore/", require_POST(page.ignore), "ignore"),
            self.url("<row:run_no>/undo-ignore/", require_POST(page.undo_ignore), "undo_ignore"),
        ]

    def show(self, request: HttpRequest, run_no: int) -> HttpResponse:
        return page.show(self.admin_site, request, run_no)

    def by_id(self, request: HttpRequest, run_id: UUID) -> HttpResponse:  # noqa: ARG002
        number = Run.objects.filter(pk=run_id).values_list("no", flat=True).first()
        if number is None:
            raise Http404
        return redirect("admin:runs_run_change", number)

    @display(description="Run")
    def run(self, run: Run) -> SafeString:
        address = reverse("admin:runs_run_change", args=[run.no])
        return format_html(
            '<a class="hv-job" id="run-{0}" href="{1}"><span class="hv-kind">#{0}</span></a>', run.no, address
        )

    @display(description="Kind")
    def kind_label(self, run: Any) -> str:
        return str(run.described.kind_label)

    @display(description="Subject")
    def of(self, run: Any) -> SafeString:
        """What it is a run of; its source if that has no name."""
        known = run.described
        name = known.subject_name or run.source_name
        return link(known.subject_type, run.subject_id, text=name) if name else NOTHING

    @display(description="State")
    def state(self, run: Any) -> SafeString:
        """The word that says most, and why."""
        why = run.error_code or run.described.column("remark")
        shown = badge("ignored" if run.ignored_at else run.outcome or run.status)
        return format_html('{} <span class="hv-note">{}</span>', shown, code(why)) if why else shown

    @display(description="Trigger")
    def trigger_words(self, run: Run) -> str:
        return verb(run.trigger)

    @display(description="Started")
    def started(self, run: Run) -> SafeString:
        return when(run.started_at)

    @display(description="Took")
    def took(self, run: Run) -> str | SafeString:
        return span(run.duration_ms / 1000) if run.duration_ms is not None else NOTHING

    @display(description="Rows")
    def rows(self, run: Run) -> str | SafeString:
        return _figure(run, "rows")

    @display(description="Products")
    def products(self, run: Run) -> str | SafeString:
        return _figure(run, "products")

    @display(description="Prices")
    def prices(self, run: Run) -> str | SafeString:
        return _figure(run, "prices")

    @display(description="Missing")
    def missing(self, run: Run) -> str | SafeString:
        return _figure(run, "missing")


def _figure(run: Any, name: str) -> str | SafeString:
    value = run.described.column(name)
    return number(value) if value is not None else NOTHING
