"""Imports: paste or upload addresses of many shops, decide for each shop, and see the result for each line."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.kernel.actor import Actor
from harvester.kernel.errors import InvalidInput
from harvester.ops.models import Role
from harvester.portal.catalog.forms import Number
from harvester.portal.forms import Choice, Text, Tick
from harvester.portal.pages import Pages
from harvester.portal.requests import attempt, form_view, is_fragment, may, require
from harvester.portal.runs.labels import code
from harvester.portal.scraping.filters import MOST_SOURCES
from harvester.portal.scraping.forms import Lines, save_in_form
from harvester.portal.scraping.labels import short_url
from harvester.scraping import verbs
from harvester.scraping.imports import Group, RowState, preview
from harvester.scraping.models import ScrapeImport
from harvester.scraping.sites import sites
from harvester.scraping.verbs.imports import MOST_BYTES, MOST_ROWS

#: Imports below the form; lines of a shop, and refused lines, that a page shows.
MOST_IMPORTS: Final = 10
MOST_LINES: Final = 100
#: State of a line -> the state of a job that has the same color.
_TONES: Final = {
    RowState.NEW: "succeeded",
    RowState.DUPLICATE_OF_TARGET: "pending",
    RowState.DUPLICATE_IN_LIST: "pending",
    RowState.OFF_DOMAIN: "failed",
    RowState.UNLINKED: "retryable",
}
_LABELS: Final = {
    RowState.NEW: "New",
    RowState.DUPLICATE_OF_TARGET: "Known",
    RowState.DUPLICATE_IN_LIST: "Repeated",
    RowState.OFF_DOMAIN: "Another shop",
    RowState.UNLINKED: "No product",
}
_SCHEDULE_HELP: Final = "Cron in UTC; empty: read on request only."


class UploadInput(forms.FileInput):
    """A file, without the link to an earlier one."""

    def __init__(self) -> None:
        super().__init__({"class": "hv-input", "accept": ".csv,.txt,.tsv,.xlsx"})


class ListForm(forms.Form):
    text = forms.CharField(
        label="Addresses",
        required=False,
        widget=Lines(8, "https://shop.example/9mm-115gr\nhttps://other.example/item?sku=12"),
        help_text="One on each line, or with columns: url, sku, gtin, product id, schedule, priority, notes.",
    )
    file = forms.FileField(
        label="Or a file",
        required=False,
        widget=UploadInput(),
        help_text=f"CSV or XLSX of at most {MOST_BYTES >> 20} MB and {MOST_ROWS:,} lines.",
    )
    name = forms.CharField(required=False, widget=Text(), help_text="Of the list; that of the file if empty.")


class FeedForm(forms.Form):
    source = forms.ChoiceField(label="Source with a feed", widget=Choice())
    title = forms.CharField(label="Title contains", required=False, widget=Text())
    most = forms.IntegerField(label="At most", initial=500, widget=Number(), help_text="Products without a page.")
    schedule = forms.CharField(required=False, widget=Text({"placeholder": "0 */4 * * *"}), help_text=_SCHEDULE_HELP)
    in_stock = forms.BooleanField(label="Only in stock", required=False, widget=Tick())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = Source.objects.filter(feed__isnull=False).order_by("name").values_list("pk", "name")[:MOST_SOURCES]
        field = self.fields["source"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - says so above
        field.choices = [("", "Choose a source"), *((str(pk), name) for pk, name in known)]


class ImportPages(Pages):
    mount = "imports"
    name = "scraping_import"

    def urls(self) -> list[URLPattern]:
        key = "<uuid:import_id>/"
        return [
            self.url("", form_view(self.add), "changelist"),
            self.url("feed/", require_POST(self.add_from_feed), "feed"),
            self.url(key, require_safe(self.show), "change"),
            self.url(f"{key}choose/", require_POST(self.choose), "choose"),
            self.url(f"{key}start/", require_POST(self.start), "start"),
            self.url(f"{key}cancel/", require_POST(self.cancel), "cancel"),
        ]

    def add(self, request: HttpRequest) -> HttpResponse:
        """Show the forms and the newest imports; a POST reads a list."""
        actor = require(request, Role.OPERATOR) if request.method == "POST" else None
        form = ListForm(request.POST, request.FILES) if actor is not None else ListForm()
        if actor is not None and form.is_valid():
            # A file that is too large for memory is dropped while the request is read.
            if int(request.META.get("CONTENT_LENGTH") or 0) > settings.FILE_UPLOAD_MAX_MEMORY_SIZE:
                form.add_error("file", f"It has more than {MOST_BYTES >> 20} MB. Nothing was imported. Split it.")
                return self._forms(request, form, FeedForm())
            made = save_in_form(form, lambda: _read(actor, form.cleaned_data))
            if made is not None:
                return redirect("admin:scraping_import_change", made.pk)
        return self._forms(request, form, FeedForm(initial={"source": request.GET.get("source", "")}))

    def add_from_feed(self, request: HttpRequest) -> HttpResponse:
        actor, form = require(request, Role.OPERATOR), FeedForm(request.POST)
        if form.is_valid():
            given = form.cleaned_data
            made = save_in_form(
                form,
                lambda: verbs.import_from_feed(
                    actor, UUID(given["source"]), most=given["most"], text=given["title"],
                    in_stock_only=given["in_stock"], schedule=given["schedule"] or None,
                ),
            )  # fmt: skip
            if made is not None:
                return redirect("admin:scraping_import_change", made.pk)
        return self._forms(request, ListForm(), form)

    def _forms(self, request: HttpRequest, form: ListForm, feed_form: FeedForm) -> HttpResponse:
        newest = ScrapeImport.objects.defer("rows", "refused", "choices").order_by("-created_at")[:MOST_IMPORTS]
        context = {
            "title": "Import pages",
            "form": form,
            "feed_form": feed_form,
            "has_feeds": Source.objects.filter(feed__isnull=False).exists(),
            "imports": list(newest),
            "operator": may(request, Role.OPERATOR),
        }
        return self.render(request, "portal/scraping/imports.html", context)

    def show(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        """Show the preview of an import, its progress, or its result."""
        found = get_object_or_404(ScrapeImport, pk=import_id)
        job = Job.objects.filter(pk=found.job_id).first() if found.job_id else None
        results = found.results
        context = {
            "title": found.name,
            "found": found,
            "job": job,
            "live": found.status == "IMPORTING",
            "is_preview": found.status == "PREVIEW",
            "is_lost": found.status == "IMPORTING" and job is not None and job.state in ("failed", "cancelled"),
            "results": results,
            "total": len(found.rows["pages"]) if isinstance(found.rows, dict) else 0,
            "lines": [_line(line) for line in (results.get("lines") or [])[:MOST_LINES]],
            "refused_before": len(found.refused),
            "operator": may(request, Role.OPERATOR),
        }
        if is_fragment(request):
            return TemplateResponse(request, "portal/scraping/import_body.html", context)
        if found.status == "PREVIEW":
            context |= _preview(found)
        else:
            context["refused"] = [_refused(line) for line in found.refused[:MOST_LINES]]
        return self.render(request, "portal/scraping/import.html", context)

    def choose(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        def act(actor: Actor) -> str:
            _choose(actor, import_id, request.POST)
            return "The preview was updated."

        return self._done(request, import_id, act)

    def start(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        def act(actor: Actor) -> str:
            _choose(actor, import_id, request.POST)
            verbs.start_import(actor, import_id)
            return "The import has begun."

        return self._done(request, import_id, act)

    def cancel(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        def act(actor: Actor) -> str:
            verbs.cancel_import(actor, import_id)
            return "The import was cancelled. Pages that it has added stay."

        return self._done(request, import_id, act)

    def _done(self, request: HttpRequest, import_id: UUID, act: Callable[[Actor], str]) -> HttpResponse:
        actor = require(request, Role.OPERATOR)
        attempt(request, lambda: act(actor))
        return redirect("admin:scraping_import_change", import_id)


def _read(actor: Actor, given: Mapping[str, Any]) -> ScrapeImport:
    upload = given["file"]
    if upload is not None and given["text"].strip():
        raise InvalidInput("paste addresses or choose a file, not both.", field="file")
    if upload is not None:
        return verbs.create_import(actor, given["name"] or upload.name, upload.read())
    return verbs.create_import(actor, given["name"] or "Pasted list", given["text"])


def _choose(actor: Actor, import_id: UUID, given: QueryDict) -> None:
    """Save what was decided for each shop of the form."""
    found = ScrapeImport.objects.filter(pk=import_id).first()
    if found is None:
        raise Http404
    for domain in given.getlist("shop"):
        source = given.get(f"source:{domain}", "")
        choice: dict[str, Any] = {
            "schedule": given.get(f"schedule:{domain}", "").strip() or None,
            "skip": given.get(f"skip:{domain}") == "yes",
        }
        try:
            choice["source_id"] = UUID(source) if source else None
        except ValueError:
            raise InvalidInput(f"Choose a source for {domain}. Nothing was changed.") from None
        for name in ("adapter_id", "name"):
            if f"{name}:{domain}" in given:
                choice[name] = given[f"{name}:{domain}"]
        verbs.choose(actor, import_id, domain, **choice)


def _preview(found: ScrapeImport) -> dict[str, Any]:
    shown = preview(found)
    return {
        "preview": shown,
        "groups": [_group(group) for group in shown.groups],
        "sites": [(each.id, each.title) for each in sites()],
        "refused": [_refused(line) for line in shown.refused[:MOST_LINES]],
    }


def _group(group: Group) -> dict[str, Any]:
    marked = [row for row in group.rows if row.state is not RowState.NEW]
    shown = [*marked, *(row for row in group.rows if row.state is RowState.NEW)][:MOST_LINES]
    return {
        "group": group,
        "domain": group.domain,
        "source_id": str(group.choice.source_id or ""),
        "sources": [(str(pk), name) for pk, name in group.sources.items()],
        "counts": [
            {"label": _LABELS[state], "tone": _TONES[state], "count": group.counts[state]}
            for state in RowState
            if group.counts.get(state)
        ],
        "lines": [
            {
                "line": row.page.line,
                "url": row.page.url,
                "name": short_url(row.page.url),
                "label": _LABELS[row.state],
                "tone": _TONES[row.state],
                "reason": row.reason,
            }
            for row in shown
        ],
        "hidden": len(group.rows) - len(shown),
        "total": len(group.rows),
    }


def _refused(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line that cannot be read; its reason is about nothing but its address."""
    return {**line, "reason": str(line["reason"]).removeprefix("url: ")}


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    state = line.get("state", "")
    known = RowState(state) if state in RowState.__members__ else None
    return {**line, "label": _LABELS[known] if known else code(state), "tone": _TONES[known] if known else "pending"}
