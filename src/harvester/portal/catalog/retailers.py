"""Retailers: who sells, and which of their sources consumers see."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import display
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_safe

from harvester.catalog import retailers, sources
from harvester.catalog.models import Retailer
from harvester.ops.models import Role
from harvester.portal.catalog.forms import RetailerForm, attempted
from harvester.portal.catalog.labels import outside
from harvester.portal.display import NOTHING, when
from harvester.portal.links import link
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import may, require

FORM = ["GET", "HEAD", "POST"]


class RetailerAdmin(PortalAdmin):
    mount = "retailers"
    title = "Retailers"
    page_keys = ("name", "id")
    empty = "No retailers yet. An admin adds them here, with `harvester retailer add` or with `harvester import`."
    list_display = ("retailer", "known_by", "sources_seen", "since")
    list_display_links = None
    search_fields = ("name__icontains", "domain__icontains")
    search_help_text = "Search by name or domain"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Retailer]:
        known = Prefetch("sources", queryset=sources.with_shown().order_by("name"))
        return super().get_queryset(request).prefetch_related(known)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        add = reverse("admin:catalog_retailer_add") if may(request, Role.ADMIN) else None
        return super().changelist_view(request, {"add_url": add, "add_words": "Add retailer", **(extra_context or {})})

    def page_urls(self) -> list[URLPattern]:
        form = require_http_methods(FORM)
        return [
            self.url("add/", form(self.add), "add"),
            self.url("<uuid:retailer_id>/", require_safe(self.show), "change"),
            self.url("<uuid:retailer_id>/edit/", form(self.edit), "edit"),
        ]

    def show(self, request: HttpRequest, retailer_id: UUID) -> HttpResponse:
        retailer = self._one(request, retailer_id)
        context = {
            "title": retailer.name,
            "retailer": retailer,
            "website": outside(retailer.website),
            "sources": retailer.sources.all(),
            "admin": may(request, Role.ADMIN),
        }
        return self._render(request, "portal/catalog/retailer.html", context)

    def add(self, request: HttpRequest) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        form = RetailerForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            made = attempted(form, lambda: retailers.create(actor, **form.cleaned_data))
            if made is not None:
                messages.success(request, f"{made.name} was added. Its offers come with a source: add one.")
                return redirect("admin:catalog_retailer_change", made.pk)
        back = reverse("admin:catalog_retailer_changelist")
        return self._form(request, form, "Add retailer", "Add retailer", back)

    def edit(self, request: HttpRequest, retailer_id: UUID) -> HttpResponse:
        actor, retailer = require(request, Role.ADMIN), self._one(request, retailer_id)
        form = RetailerForm(request.POST or None, initial={"name": retailer.name, "website": retailer.website})
        if request.method == "POST" and form.is_valid():
            made = attempted(form, lambda: retailers.update(actor, retailer_id, **form.cleaned_data))
            if made is not None:
                messages.success(request, f"{made.name} is known by {made.domain or 'its name'}.")
                return redirect("admin:catalog_retailer_change", retailer_id)
        back = reverse("admin:catalog_retailer_change", args=[retailer_id])
        return self._form(request, form, f"Edit {retailer.name}", "Save", back)

    def _one(self, request: HttpRequest, retailer_id: UUID) -> Retailer:
        found = self.get_queryset(request).filter(pk=retailer_id).first()
        if found is None:
            raise Http404
        return found

    def _form(self, request: HttpRequest, form: RetailerForm, title: str, submit: str, back: str) -> HttpResponse:
        return self._render(request, "portal/form.html", {"title": title, "form": form, "submit": submit, "back": back})

    def _render(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        return TemplateResponse(request, template, {**self.admin_site.each_context(request), **context})

    @display(description="Retailer")
    def retailer(self, retailer: Retailer) -> SafeString:
        return link("retailer", retailer.pk, text=retailer.name)

    @display(description="Domain")
    def known_by(self, retailer: Retailer) -> str | SafeString:
        return retailer.domain or NOTHING

    @display(description="Consumers see")
    def sources_seen(self, retailer: Retailer) -> SafeString:
        known: list[Any] = list(retailer.sources.all())
        shown = [source for source in known if source.is_shown]
        if not known:
            return NOTHING
        if not shown:
            return format_html('<span class="hv-note">nothing: none of {} is the display primary</span>', len(known))
        return format_html_join(", ", "{}", ((link("source", source.pk, text=source.name),) for source in shown))

    @display(description="Known since")
    def since(self, retailer: Retailer) -> SafeString:
        return when(retailer.created_at)
