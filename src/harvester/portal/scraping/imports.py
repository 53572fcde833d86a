"""Imports: paste or upload addresses of many shops, decide for each shop, and see the result for each line.

Lines whose product is not clear have a page of their own, where a person names their products.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops.models import Role
from harvester.portal.catalog.forms import Number
from harvester.portal.catalog.labels import outside
from harvester.portal.forms import Choice, Text, Tick
from harvester.portal.pages import Pages
from harvester.portal.requests import attempt, form_view, is_fragment, may, require
from harvester.portal.runs.labels import code
from harvester.portal.scraping.filters import MOST_SOURCES
from harvester.portal.scraping.forms import Lines, save_in_form
from harvester.portal.scraping.labels import short_url
from harvester.scraping import verbs
from harvester.scraping.import_rows import MOST_ROWS
from harvester.scraping.imports import Group, Judged, RowState, Shops, choice_for, preview
from harvester.scraping.models import ScrapeImport
from harvester.scraping.settings import InvalidSettings
from harvester.scraping.sites import sites
from harvester.scraping.verbs.imports import MOST_BYTES

#: Imports below the form; lines of a shop, and refused lines, that a page shows.
MOST_IMPORTS: Final = 10
MOST_LINES: Final = 100
#: Shops that have fields on the preview; Django accepts a thousand fields.
MOST_SHOPS: Final = 100
#: Lines to link that a page shows.
MOST_LINKS: Final = 50
#: State of a line -> the state of a job that has the same color.
_TONES: Final = {
    RowState.NEW: "succeeded",
    RowState.DUPLICATE_OF_TARGET: "pending",
    RowState.DUPLICATE_IN_LIST: "pending",
    RowState.OFF_DOMAIN: "failed",
    RowState.UNLINKED: "retryable",
}
_LABELS: Final = {
    RowState.UNLINKED: "No product",
    RowState.OFF_DOMAIN: "Another shop",
    RowState.DUPLICATE_IN_LIST: "Repeated",
    RowState.DUPLICATE_OF_TARGET: "Known",
    RowState.NEW: "New",
}
#: Digits of the number of a line.
LONGEST_LINE: Final = 9
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
        help_text="One on each line, or with columns: url, sku, gtin, product id, harvester id, schedule, priority, "
        "notes.",
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
            self.url(f"{key}links/", form_view(self.link), "links"),
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
            "hidden_lines": max((results.get("refused") or 0) - MOST_LINES, 0),
            "unlinked": 0,
            "refused_before": len(found.refused),
            "operator": may(request, Role.OPERATOR),
        }
        if found.status == "DONE":
            context["unlinked"] = sum(line.get("state") == RowState.UNLINKED for line in results.get("lines") or [])
        if found.status == "PREVIEW":
            context |= _preview(found)
        if is_fragment(request):
            return TemplateResponse(request, "portal/scraping/import_body.html", context)
        if found.status != "PREVIEW":
            context["refused"] = [_refused(line) for line in found.refused[:MOST_LINES]]
        return self.render(request, "portal/scraping/import.html", context)

    def choose(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        def act(actor: Actor) -> str:
            _choose(actor, import_id, request.POST)
            return "The preview was updated."

        return self._done(request, import_id, act)

    def link(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        """Show lines whose product is not clear, with what they may be of; a POST links them."""
        found = get_object_or_404(ScrapeImport, pk=import_id)
        problems: dict[str, str] = {}
        if request.method == "POST":
            actor = require(request, Role.OPERATOR)
            links = _given_links(request.POST)
            try:
                found = verbs.link_lines(actor, import_id, [link for _, link in links])
                pages = f"{len(links):,} page{'s are' if len(links) > 1 else ' is'}"
                later = "linked, and added when you import." if found.status == "PREVIEW" else "linked and added."
                messages.success(request, f"{pages} {later}")
                if _unlinked(found):
                    return redirect("admin:scraping_import_links", import_id)
                return redirect("admin:scraping_import_change", import_id)
            except InvalidSettings as refused:
                places = {f"links.{number}": place for number, (place, _) in enumerate(links)}
                problems = {places[name]: message for name, message in refused.problems.items()}
                messages.error(request, "Nothing was changed; see the marked lines.")
            except (Conflict, InvalidInput) as problem:
                messages.error(request, str(problem))
        rows = _unlinked(found)
        context = {
            "title": "Choose products",
            "found": found,
            "rows": [_link_row(place, each, request.POST, problems) for place, each in enumerate(rows[:MOST_LINKS])],
            "total": len(rows),
            "sources": {
                group.choice.source_id: group.sources.get(source_id, "")
                for group, _ in rows[:MOST_LINKS]
                if (source_id := group.choice.source_id)
            },
            "may_link": may(request, Role.OPERATOR) and found.status in ("PREVIEW", "DONE"),
            "is_preview": found.status == "PREVIEW",
        }
        return self.render(request, "portal/scraping/import_links.html", context)

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
    shops = Shops(given.getlist("shop"))
    for domain in given.getlist("shop"):
        before = choice_for(found, domain, shops)
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
        if any(getattr(before, name) != value for name, value in choice.items()):
            verbs.choose(actor, import_id, domain, **choice)


def _unlinked(found: ScrapeImport) -> list[tuple[Group, Judged]]:
    """Return the lines whose product is not clear, with their shops."""
    groups = [group for group in preview(found).groups if not group.choice.skip]
    return [(group, row) for group in groups for row in group.rows if row.state is RowState.UNLINKED]


def _given_links(given: QueryDict) -> list[tuple[str, verbs.LineLink]]:
    """Return the links of a form with their places in it; what somebody wrote counts, otherwise what was chosen."""
    links = []
    for place in given.getlist("place")[:MOST_LINKS]:
        line, product = given.get(f"line:{place}", ""), given.get(f"product:{place}", "").strip()
        product = product or given.get(f"choice:{place}", "")
        if line.isdecimal() and len(line) <= LONGEST_LINE and product:
            links.append((place, verbs.LineLink(line=int(line), url=given.get(f"url:{place}", ""), product=product)))
    return links


def _link_row(place: int, each: tuple[Group, Judged], given: QueryDict, problems: Mapping[str, str]) -> dict[str, Any]:
    group, row = each
    # After a refused form the lines are the same, in the same order, unless somebody else linked one meanwhile.
    is_same = given.get(f"url:{place}") == row.page.url
    chosen = given.get(f"choice:{place}", "") if is_same else ""
    return {
        "place": place,
        "line": row.page.line,
        "url": row.page.url,
        "address": outside(row.page.url),
        "shop": group.sources.get(group.choice.source_id, group.domain) if group.choice.source_id else group.domain,
        "candidates": [
            {
                "value": f"id:{one['id']}",
                "label": f"{one['title'][:80]} ({'SKU ' + one['sku'] if one['sku'] else 'no SKU'})",
                "is_chosen": chosen == f"id:{one['id']}",
            }
            for one in row.candidates
        ],
        "product": given.get(f"product:{place}", "") if is_same else "",
        "problem": problems.get(str(place), "") if is_same else "",
        "reason": "" if row.candidates else row.reason,
    }


def _preview(found: ScrapeImport) -> dict[str, Any]:
    shown = preview(found)
    groups = [group for group in shown.groups if not group.choice.skip]
    return {
        "preview": shown,
        "groups": [_group(group) for group in shown.groups[:MOST_SHOPS]],
        "more_shops": len(shown.groups[MOST_SHOPS:]),
        "unlinked": sum(group.counts.get(RowState.UNLINKED, 0) for group in groups),
        "sites": [(each.id, each.title) for each in sites()],
        "refused": [_refused(line) for line in shown.refused[:MOST_LINES]],
    }


def _group(group: Group) -> dict[str, Any]:
    # What a person may have to decide comes first.
    order = list(_LABELS)
    shown = sorted(group.rows, key=lambda row: order.index(row.state))[:MOST_LINES]
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
