"""Sources: how a retailer's offers arrive, how fresh they are, and whether consumers see them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_safe

from harvester.catalog import retailers, sources
from harvester.catalog.display_primary import Preview, preview, preview_kind, set_display_primary, unset_display_primary
from harvester.catalog.holds import hold_of, offers_expire_at
from harvester.catalog.models import Run, Source
from harvester.catalog.states import SourceKind
from harvester.feeds.models import Feed
from harvester.kernel.errors import Conflict
from harvester.ops.models import Role
from harvester.portal.catalog.forms import SourceForm, attempted
from harvester.portal.catalog.labels import exposure, outside
from harvester.portal.display import NOTHING, verb, when
from harvester.portal.filters import ChoicePill
from harvester.portal.links import link
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, may, require

FORM = ["GET", "HEAD", "POST"]
LATEST_RUNS = 10


class KindPill(ChoicePill):
    title = "Kind"
    field = "kind"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(kind.value, verb(kind.value)) for kind in SourceKind]


class SourceAdmin(PortalAdmin):
    mount = "sources"
    title = "Sources"
    page_keys = ("name", "id")
    empty = "No sources yet. They are added on the page of a retailer, or with `harvester source add`."
    list_display = ("source", "owner", "kind_words", "exposure", "promoted", "held", "products")
    list_display_links = None
    numbers = ("products",)
    list_filter = (KindPill,)
    search_fields = ("name__icontains", "retailer__name__icontains")
    search_help_text = "Search by name or retailer"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:  # noqa: ARG002 - Django's shape
        return sources.with_shown()

    def page_urls(self) -> list[URLPattern]:
        form = require_http_methods(FORM)
        return [
            self.url("add/<uuid:retailer_id>/", form(self.add), "add"),
            self.url("<uuid:source_id>/", require_safe(self.show), "change"),
            self.url("<uuid:source_id>/edit/", form(self.edit), "edit"),
            self.url("<uuid:source_id>/primary/", form(self.primary), "primary"),
        ]

    def show(self, request: HttpRequest, source_id: UUID) -> HttpResponse:
        source = _one(source_id)
        context = {
            "title": source.name,
            "source": source,
            "feed": Feed.objects.filter(source_id=source_id).only("pk", "status").first(),
            "address": outside(source.url),
            "expires": offers_expire_at(source),
            "hold": hold_of(source),
            "held_words": f"Run {source.held_run_no}",
            "runs": Run.objects.filter(source_id=source_id).order_by("-started_at")[:LATEST_RUNS],
            "admin": may(request, Role.ADMIN),
        }
        return self._render(request, "portal/catalog/source.html", context)

    def add(self, request: HttpRequest, retailer_id: UUID) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        owner = retailers.Retailer.objects.filter(pk=retailer_id).first()
        if owner is None:
            raise Http404
        blank = Source()
        form = SourceForm(request.POST or None, initial={name: getattr(blank, name) for name in SourceForm.base_fields})
        if request.method == "POST" and form.is_valid():
            made = attempted(form, lambda: sources.create(actor, retailer_id, **form.cleaned_data))
            if made is not None:
                messages.success(request, f"{made.name} was added to {owner.name}.")
                return redirect("admin:catalog_source_change", made.pk)
        back = reverse("admin:catalog_retailer_change", args=[retailer_id])
        return self._form(request, form, f"Add a source to {owner.name}", back)

    def edit(self, request: HttpRequest, source_id: UUID) -> HttpResponse:
        actor, source = require(request, Role.ADMIN), _one(source_id)
        known = {name: getattr(source, name) for name in SourceForm.base_fields}
        form = SourceForm(request.POST or None, initial=known)
        told = None
        if request.method == "POST" and form.is_valid():
            told = attempted(form, lambda: preview_kind(source_id, form.cleaned_data["kind"]))
            if told is not None and request.POST.get("seen", "") == told.state:
                made = attempted(form, lambda: sources.update(actor, source_id, **form.cleaned_data))
                if made is not None:
                    messages.success(request, f"{made.name} is saved.")
                    return redirect("admin:catalog_source_change", source_id)
        back = reverse("admin:catalog_source_change", args=[source_id])
        return self._form(request, form, f"Edit {source.name}", back, told)

    def primary(self, request: HttpRequest, source_id: UUID) -> HttpResponse:
        """Says what will vanish from and appear in search; a POST does it."""
        actor, source = require(request, Role.ADMIN), _one(source_id)
        wanted = request.POST.get("primary", str(not source.is_display_primary)) == "True"
        if request.method == "POST":
            attempt(request, lambda: _switch(actor, source, wanted=wanted))
            return redirect("admin:catalog_source_change", source_id)
        try:
            told = preview(source_id, primary=wanted)
        except Conflict as problem:
            messages.info(request, str(problem))
            return redirect("admin:catalog_source_change", source_id)
        context = {"title": "Display primary", "source": source, "wanted": wanted, "preview": told}
        return self._render(request, "portal/catalog/primary.html", context)

    def _form(
        self, request: HttpRequest, form: SourceForm, title: str, back: str, told: Preview | None = None
    ) -> HttpResponse:
        """The form, with what consumers would see differently if that has to be confirmed first."""
        shown = told if told is not None and told.state else None
        context = {"title": title, "form": form, "submit": "Save", "back": back, "preview": shown}
        return self._render(request, "portal/catalog/source_form.html", context)

    def _render(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        return TemplateResponse(request, template, {**self.admin_site.each_context(request), **context})

    @display(description="Source")
    def source(self, source: Source) -> SafeString:
        return link("source", source.pk, text=source.name)

    @display(description="Retailer")
    def owner(self, source: Source) -> SafeString:
        return link("retailer", source.retailer_id, text=source.retailer.name)

    @display(description="Kind")
    def kind_words(self, source: Source) -> str:
        return verb(source.kind)

    @display(description="Consumers")
    def exposure(self, source: Source) -> SafeString:
        return exposure(source)

    @display(description="Promoted")
    def promoted(self, source: Source) -> SafeString:
        return when(source.last_promoted_at)

    @display(description="Held run")
    def held(self, source: Source) -> SafeString:
        return link("run", source.held_run_no, text=f"Run {source.held_run_no}") if source.held_run_no else NOTHING

    @display(description="Products")
    def products(self, source: Source) -> str | SafeString:
        return NOTHING if source.last_promoted_count is None else f"{source.last_promoted_count:,}"


def _switch(actor: Any, source: Source, *, wanted: bool) -> str:
    if wanted:
        set_display_primary(actor, source.pk)
        return f"{source.name} is what consumers see of {source.retailer.name}, from now on."
    unset_display_primary(actor, source.pk)
    return f"{source.name} is no longer the display primary of {source.retailer.name}."


def _one(source_id: UUID) -> Any:
    found = sources.with_shown().filter(pk=source_id).first()
    if found is None:
        raise Http404
    return found
