"""Retailers, and which of their sources consumers see."""

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
from harvester.catalog.models import Retailer
from harvester.ops.models import Role
from harvester.portal.catalog.forms import RetailerForm, attempt_in_form
from harvester.portal.catalog.labels import outside
from harvester.portal.display import NOTHING, when
from harvester.portal.links import link
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import form_view, may, require


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
