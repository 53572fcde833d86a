"""API keys: every user may look, admins create and revoke them. The key itself is shown once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.admin import display
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import api_keys
from harvester.ops.models import ApiKey, AuditEvent, Role
from harvester.ops.scopes import Scope
from harvester.portal.display import NOTHING, when
from harvester.portal.forms import Choice, Text
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, form_view, may, require

#: Audit events on the page of a key.
LATEST = 10
_BADGES = {"valid": "succeeded", "expired": "retryable", "revoked": "cancelled"}
_EXPIRY = [("", "Never"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year")]


class NewKeyForm(forms.Form):
    name = forms.CharField(
        max_length=api_keys.LONGEST_NAME,
        widget=Text({"autofocus": True, "autocomplete": "off"}),
        help_text="The application that uses the key, such as “price site”.",
    )
    scopes = forms.MultipleChoiceField(
        label="Permissions",
        choices=[(scope.value, scope.value) for scope in Scope],
        widget=forms.CheckboxSelectMultiple(),
    )
    days = forms.ChoiceField(label="Expires", choices=_EXPIRY, required=False, widget=Choice())

    @property
    def scope_rows(self) -> list[tuple[Any, str]]:
        """Return each checkbox with the meaning of its scope."""
        return [(box, Scope(str(box.data["value"])).meaning) for box in self["scopes"]]


class ApiKeyAdmin(PortalAdmin):
    mount = "api-keys"
    title = "API keys"
    page_keys = ("-created_at", "-id")
    empty = "No API keys yet."
    add_label = "Create key"
    list_display = ("key", "state", "scopes_text", "last_used", "created", "expires")
    list_display_links = None
    search_fields = ("name__icontains", "prefix")
    search_help_text = "Search by name or start of the key"

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("add/", form_view(self.add), "add"),
            self.url("<uuid:key_id>/", require_safe(self.show), "change"),
            self.url("<uuid:key_id>/revoke/", require_POST(self.revoke), "revoke"),
        ]

    def add(self, request: HttpRequest) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        form = NewKeyForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            given = form.cleaned_data
            end = timezone.now() + timedelta(days=int(given["days"])) if given["days"] else None
            try:
                key, token = api_keys.create(actor, given["name"], given["scopes"], expires_at=end)
            except (Conflict, InvalidInput) as problem:
                form.add_error("name" if problem.field == "name" else None, str(problem))
            else:
                # In the response to the form and not after a redirect: the token must not be stored for the next page.
                context = {"title": key.name, "key": key, "token": token}
                return self.render(request, "portal/api_key_created.html", context)
        return self.render(request, "portal/api_key_add.html", {"title": "Create API key", "form": form})

    def show(self, request: HttpRequest, key_id: UUID) -> HttpResponse:
        key = get_object_or_404(ApiKey, pk=key_id)
        context = {
            "title": key.name,
            "key": key,
            "state": self.state(key),
            "scopes": [Scope(name) for name in key.scopes],
            "events": AuditEvent.objects.filter(actor_id=str(key.pk)).order_by("-at", "-id")[:LATEST],
            "may_revoke": may(request, Role.ADMIN) and key.revoked_at is None,
        }
        return self.render(request, "portal/api_key.html", context)

    def revoke(self, request: HttpRequest, key_id: UUID) -> HttpResponse:
        actor = require(request, Role.ADMIN)

        def verb() -> str:
            return f"{api_keys.revoke(actor, key_id).name} is revoked. Requests with this key are refused from now on."

        attempt(request, verb)
        return redirect("admin:ops_apikey_change", key_id)

    @display(description="Key")
    def key(self, key: ApiKey) -> SafeString:
        link = reverse("admin:ops_apikey_change", args=[key.pk])
        return format_html(
            '<a class="hv-job" href="{}"><span class="hv-kind">{}</span> <code>{}…</code></a>',
            link,
            key.name,
            key.prefix,
        )

    @display(description="State")
    def state(self, key: ApiKey) -> SafeString:
        return format_html('<span class="hv-badge hv-{}">{}</span>', _BADGES[key.state], key.state.capitalize())

    @display(description="Permissions")
    def scopes_text(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @display(description="Last used")
    def last_used(self, key: ApiKey) -> SafeString:
        return when(key.last_used_at)

    @display(description="Created")
    def created(self, key: ApiKey) -> SafeString:
        return when(key.created_at)

    @display(description="Expires")
    def expires(self, key: ApiKey) -> SafeString:
        return when(key.revoked_at or key.expires_at) if key.revoked_at or key.expires_at else NOTHING
