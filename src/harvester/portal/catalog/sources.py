"""Retailers and their sources: where offers come from, how fresh they are, and whether consumers see them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import display
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harvester.catalog import retailers, sources
from harvester.catalog.display_primary import preview, preview_kind, set_display_primary, unset_display_primary
from harvester.catalog.holds import hold_of, offers_expire_at
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.feeds.models import Feed
from harvester.kernel.errors import Conflict
from harvester.ops.models import Role
from harvester.portal.catalog.forms import RetailerForm, SourceForm, attempt_in_form
from harvester.portal.catalog.labels import exposure, outside
from harvester.portal.display import NOTHING, verb, when
from harvester.portal.filters import ChoicePill
from harvester.portal.links import link
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, form_view, may, require
from harvester.runs.models import Run
from harvester.runs.queries import described


class RetailerAdmin(PortalAdmin):
    mount = "retailers"
    title = "Retailers"
    page_keys = ("name", "id")
    empty = "No retailers yet. Admins add them here, with `harvester retailer add` or with `harvester import`."
    add_label = "Add retailer"
    list_display = ("retailer", "domain_name", "shown_sources", "added")
    list_display_links = None
    search_fields = ("name__icontains", "domain__icontains")
    search_help_text = "Search by name or domain"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Retailer]:
        known = Prefetch("sources", queryset=sources.with_shown().order_by("name"))
        return super().get_queryset(request).prefetch_related(known)

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("add/", form_view(self.add), "add"),
            self.url("<uuid:retailer_id>/", require_safe(self.show), "change"),
            self.url("<uuid:retailer_id>/edit/", form_view(self.edit), "edit"),
        ]

    def show(self, request: HttpRequest, retailer_id: UUID) -> HttpResponse:
        retailer = get_object_or_404(self.get_queryset(request), pk=retailer_id)
        context = {
            "title": retailer.name,
            "retailer": retailer,
            "website": outside(retailer.website),
            "sources": retailer.sources.all(),
            "admin": may(request, Role.ADMIN),
        }
        return self.render(request, "portal/catalog/retailer.html", context)

    def add(self, request: HttpRequest) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        form = RetailerForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            made = attempt_in_form(form, lambda: retailers.create(actor, **form.cleaned_data))
            if made is not None:
                messages.success(request, f"{made.name} was added. Add a source to get its offers.")
                return redirect("admin:catalog_retailer_change", made.pk)
        back = reverse("admin:catalog_retailer_changelist")
        context = {"title": "Add retailer", "form": form, "submit": "Add retailer", "back": back}
        return self.render(request, "portal/form.html", context)

    def edit(self, request: HttpRequest, retailer_id: UUID) -> HttpResponse:
        actor, retailer = require(request, Role.ADMIN), get_object_or_404(self.get_queryset(request), pk=retailer_id)
        form = RetailerForm(request.POST or None, initial={"name": retailer.name, "website": retailer.website})
        if request.method == "POST" and form.is_valid():
            made = attempt_in_form(form, lambda: retailers.update(actor, retailer_id, **form.cleaned_data))
            if made is not None:
                messages.success(request, f"{made.name} was saved.")
                return redirect("admin:catalog_retailer_change", retailer_id)
        back = reverse("admin:catalog_retailer_change", args=[retailer_id])
        context = {"title": f"Edit {retailer.name}", "form": form, "submit": "Save", "back": back}
        return self.render(request, "portal/form.html", context)

    @display(description="Retailer")
    def retailer(self, retailer: Retailer) -> SafeString:
        return link("retailer", retailer.pk, text=retailer.name)

    @display(description="Domain")
    def domain_name(self, retailer: Retailer) -> str | SafeString:
        return retailer.domain or NOTHING

    @display(description="Consumers see")
    def shown_sources(self, retailer: Retailer) -> SafeString:
        known: list[Any] = list(retailer.sources.all())
        shown = [source for source in known if source.is_shown]
        if not known:
            return NOTHING
        if not shown:
            return SafeString('<span class="hv-note">No display primary</span>')
        return format_html_join(", ", "{}", ((link("source", source.pk, text=source.name),) for source in shown))

    @display(description="Added")
    def added(self, retailer: Retailer) -> SafeString:
        return when(retailer.created_at)


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
    empty = "No sources yet. Admins add them on the page of a retailer or with `harvester source add`."
    list_display = ("source", "owner", "kind_label", "exposure", "promoted", "held", "products")
    list_display_links = None
    numbers = ("products",)
    list_filter = (KindPill,)
    search_fields = ("name__icontains", "retailer__name__icontains")
    search_help_text = "Search by name or retailer"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:  # noqa: ARG002 - Django's shape
        return sources.with_shown()

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("add/<uuid:retailer_id>/", form_view(self.add), "add"),
            self.url("<uuid:source_id>/", require_safe(self.show), "change"),
            self.url("<uuid:source_id>/edit/", form_view(self.edit), "edit"),
            self.url("<uuid:source_id>/primary/", form_view(self.primary), "primary"),
        ]

    def show(self, request: HttpRequest, source_id: UUID) -> HttpResponse:
        source = _find(source_id)
        context = {
            "title": source.name,
            "source": source,
            "feed": Feed.objects.filter(source_id=source_id).only("pk", "status").first(),
            "address": outside(source.url),
            "expires": offers_expire_at(source),
            "hold": hold_of(source),
            "held_name": f"Run {source.held_run_no}",
            "runs": described(Run.objects.filter(source_id=source_id).order_by("-started_at")[:LATEST_RUNS]),
            "admin": may(request, Role.ADMIN),
        }
        return self.render(request, "portal/catalog/source.html", context)

    def add(self, request: HttpRequest, retailer_id: UUID) -> HttpResponse:
        actor, owner = require(request, Role.ADMIN), get_object_or_404(Retailer, pk=retailer_id)
        blank = Source()
        form = SourceForm(request.POST or None, initial={name: getattr(blank, name) for name in SourceForm.base_fields})
        if request.method == "POST" and form.is_valid():
            made = attempt_in_form(form, lambda: sources.create(actor, retailer_id, **form.cleaned_data))
            if made is not None:
                messages.success(request, f"{made.name} was added to {owner.name}.")
                return redirect("admin:catalog_source_change", made.pk)
        back = reverse("admin:catalog_retailer_change", args=[retailer_id])
        context = {"title": f"Add a source to {owner.name}", "form": form, "submit": "Save", "back": back}
        return self.render(request, "portal/catalog/source_form.html", context)

    def edit(self, request: HttpRequest, source_id: UUID) -> HttpResponse:
        actor, source = require(request, Role.ADMIN), _find(source_id)
        known = {name: getattr(source, name) for name in SourceForm.base_fields}
        form = SourceForm(request.POST or None, initial=known)
        shown = None
        if request.method == "POST" and form.is_valid():
            shown = attempt_in_form(form, lambda: preview_kind(source_id, form.cleaned_data["kind"]))
            if shown is not None and request.POST.get("seen", "") == shown.state:
                saved = attempt_in_form(form, lambda: sources.update(actor, source_id, **form.cleaned_data))
                if saved is not None:
                    messages.success(request, f"{saved.name} was saved.")
                    return redirect("admin:catalog_source_change", source_id)
        context = {
            "title": f"Edit {source.name}",
            "form": form,
            "submit": "Save",
            "back": reverse("admin:catalog_source_change", args=[source_id]),
            # What consumers would see differently, if anything, has to be confirmed first.
            "preview": shown if shown is not None and shown.state else None,
        }
        return self.render(request, "portal/catalog/source_form.html", context)

    def primary(self, request: HttpRequest, source_id: UUID) -> HttpResponse:
        """Show what disappears from and appears in search; a POST applies it."""
        actor, source = require(request, Role.ADMIN), _find(source_id)
        wanted = request.POST.get("primary", str(not source.is_display_primary)) == "True"

        def switch() -> str:
            if wanted:
                set_display_primary(actor, source_id)
                return f"Consumers now see {source.name} for {source.retailer.name}."
            unset_display_primary(actor, source_id)
            return f"{source.name} is no longer the display primary of {source.retailer.name}."

        if request.method == "POST":
            attempt(request, switch)
            return redirect("admin:catalog_source_change", source_id)
        try:
            shown = preview(source_id, primary=wanted)
        except Conflict as problem:
            messages.info(request, str(problem))
            return redirect("admin:catalog_source_change", source_id)
        context = {"title": "Display primary", "source": source, "wanted": wanted, "preview": shown}
        return self.render(request, "portal/catalog/primary.html", context)

    @display(description="Source")
    def source(self, source: Source) -> SafeString:
        return link("source", source.pk, text=source.name)

    @display(description="Retailer")
    def owner(self, source: Source) -> SafeString:
        return link("retailer", source.retailer_id, text=source.retailer.name)

    @display(description="Kind")
    def kind_label(self, source: Source) -> str:
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


def _find(source_id: UUID) -> Any:
    return get_object_or_404(sources.with_shown(), pk=source_id)
