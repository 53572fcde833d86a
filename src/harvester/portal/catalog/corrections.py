"""Corrections: the list, a new one after a preview, and revoking one."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import display
from django.db.models import CharField, OuterRef, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.catalog import corrections, retailers, sources
from harvester.catalog.correction_previews import preview
from harvester.catalog.models import PriceCorrection
from harvester.catalog.offer_browser import Line, lines
from harvester.catalog.states import CorrectionAction, CorrectionScope
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role, User
from harvester.portal.catalog.forms import CorrectionForm, attempt_in_form
from harvester.portal.catalog.labels import about, effect
from harvester.portal.display import badge, verb, when
from harvester.portal.filters import ChoicePill
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, form_view, may, require

#: Digits of a product number that fit into its column.
LONGEST_NUMBER = 18


class ScopePill(ChoicePill):
    title = "Scope"
    field = "scope"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(scope.value, verb(scope.value)) for scope in CorrectionScope]


class ForcePill(ChoicePill):
    title = "State"
    field = "state"

    def values(self) -> Iterable[tuple[str, str]]:
        return [("in_force", "In force"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        chosen = self.get(self.field)
        return queryset.filter(revoked_at__isnull=chosen == "in_force") if chosen else queryset


class CorrectionAdmin(PortalAdmin):
    mount = "corrections"
    title = "Corrections"
    page_keys = ("-created_at", "-id")
    empty = "No corrections yet. Operators correct prices here or on the page of an offer."
    add_label, add_role = "Correct prices", Role.OPERATOR
    list_display = ("effect", "about", "reason_text", "state", "creator", "created")
    list_display_links = None
    list_filter = (ForcePill, ScopePill)
    search_fields = ("reason__icontains",)
    search_help_text = "Search by reason"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PriceCorrection]:
        rows = super().get_queryset(request).select_related("source", "retailer")
        return rows.annotate(maker=_username("created_by"), revoker=_username("revoked_by"))

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("add/", form_view(self.add), "add"),
            self.url("<uuid:correction_id>/", require_safe(self.show), "change"),
            self.url("<uuid:correction_id>/revoke/", require_POST(self.revoke), "revoke"),
        ]

    def show(self, request: HttpRequest, correction_id: UUID) -> HttpResponse:
        correction = get_object_or_404(self.get_queryset(request), pk=correction_id)
        context = {
            "title": "Correction",
            "correction": correction,
            "about": about(correction),
            "effect": effect(correction),
            "operator": may(request, Role.OPERATOR),
        }
        return self.render(request, "portal/catalog/correction.html", context)

    def add(self, request: HttpRequest) -> HttpResponse:
        """Show a preview, and create the correction when the preview is confirmed and still true."""
        actor = require(request, Role.OPERATOR)
        target = _target(request.POST or request.GET)
        known = {"source": target.source, "set_currency": target.currency} if target else {}
        form = CorrectionForm(request.POST or None, initial={**request.GET.dict(), **known})
        shown = None
        if request.method == "POST" and form.is_valid():
            seen = request.POST.get("seen")
            if "confirm" in request.POST and seen:
                created = attempt_in_form(form, lambda: corrections.create(actor, expected=seen, **_settings(form)))
                if created is not None:
                    messages.success(request, "The correction is in force.")
                    return redirect("admin:catalog_pricecorrection_change", created.pk)
            shown = attempt_in_form(form, lambda: preview(**_settings(form)))
        context = {"title": "Correct prices", "form": form, "preview": shown, "target": target}
        return self.render(request, "portal/catalog/correct.html", context)

    def revoke(self, request: HttpRequest, correction_id: UUID) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def act() -> str:
            corrections.revoke(actor, correction_id)
            return "The correction is revoked. Prices are shown as observed, unless another correction applies."

        attempt(request, act)
        return redirect("admin:catalog_pricecorrection_change", correction_id)

    @display(description="Effect")
    def effect(self, correction: PriceCorrection) -> SafeString:
        where = reverse("admin:catalog_pricecorrection_change", args=[correction.pk])
        return format_html('<a class="hv-job" href="{}"><span class="hv-kind">{}</span></a>', where, effect(correction))

    @display(description="Prices")
    def about(self, correction: PriceCorrection) -> SafeString:
        return about(correction)

    @display(description="Reason")
    def reason_text(self, correction: PriceCorrection) -> SafeString:
        return format_html('<span class="hv-cut" title="{0}">{0}</span>', correction.reason)

    @display(description="State")
    def state(self, correction: PriceCorrection) -> SafeString:
        return badge("revoked" if correction.revoked_at else "in_force")

    @display(description="Created by")
    def creator(self, correction: Any) -> str:
        return str(correction.maker)

    @display(description="Created")
    def created(self, correction: PriceCorrection) -> SafeString:
        return when(correction.created_at)


def _username(field: str) -> Coalesce:
    """Return the username for a stored id, or the stored text: the command line stores a name instead of an id."""
    people = User.objects.annotate(key=Cast("pk", TextField())).filter(key=OuterRef(field))
    return Coalesce(Subquery(people.values("username")[:1], output_field=CharField()), field, output_field=TextField())


def _settings(form: CorrectionForm) -> dict[str, Any]:
    """Return the verb's arguments: of the scope and the action only the fields that they use."""
    typed = form.cleaned_data
    named: dict[str, Any] = {
        "retailer_id": typed["retailer"] and retailers.find(typed["retailer"]).pk,
        "source_id": typed["source"] and sources.find(typed["source"]).pk,
        "product_id": typed["product"],
        "run_no": typed["run"],
    }
    needed = corrections.SELECTED_BY[typed["scope"]]
    multiplies, sets = typed["action"] == CorrectionAction.MULTIPLIER, typed["action"] == CorrectionAction.SET
    return {
        **{name: named[name] or None for name in needed},
        **{name: typed[name] for name in ("scope", "action", "reason", "observed_from", "observed_to")},
        "extent": typed["extent"] or None,
        "multiplier": typed["multiplier"] if multiplies else None,
        "set_amount": typed["set_amount"] if sets else None,
        "set_currency": typed["set_currency"].strip().upper() if sets else None,
    }


def _target(given: Mapping[str, str]) -> Line | None:
    """Return the product that the form names, if it exists."""
    source, product = given.get("source", ""), given.get("product", "")
    if not source or not (product.isascii() and product.isdigit() and len(product) <= LONGEST_NUMBER):
        return None
    try:
        found = lines([(sources.find(source).pk, int(product))])
    except (Conflict, InvalidInput, NotFound):
        return None
    return found[0] if found else None
