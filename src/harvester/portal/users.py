"""Users: everybody may look, admins change. Each change is one verb of `ops.users`, and so one audit event."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import display
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import users
from harvester.ops.models import AuditEvent, Role, User
from harvester.portal.display import NOTHING, when
from harvester.portal.forms import Choice, Email, Password, Text
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, may, require

LATEST = 10


class NewUserForm(forms.Form):
    username = forms.CharField(max_length=150, widget=Text({"autofocus": True, "autocomplete": "off"}))
    email = forms.EmailField(required=False, widget=Email())
    role = forms.ChoiceField(choices=Role.choices, widget=Choice())
    password = forms.CharField(strip=False, widget=Password("new-password"), help_text="At least 10 characters.")


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices, widget=Choice())


class PasswordForm(forms.Form):
    password = forms.CharField(label="New password", strip=False, widget=Password("new-password"))


class UserAdmin(PortalAdmin):
    mount = "users"
    title = "Users"
    page_keys = ("username",)
    list_display = ("person", "role_name", "active", "address", "last_seen", "joined")
    list_display_links = None
    search_fields = ("username__icontains", "email__icontains")
    search_help_text = "Search by name or email"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        add = reverse("admin:ops_user_add") if may(request, Role.ADMIN) else None
        return super().changelist_view(request, {"add_url": add, "add_words": "Add user", **(extra_context or {})})

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("add/", require_http_methods(["GET", "HEAD", "POST"])(self.add), "add"),
            self.url("<uuid:user_id>/", require_safe(self.show), "change"),
            self.url("<uuid:user_id>/role/", require_POST(self.set_role), "role"),
            self.url("<uuid:user_id>/active/", require_POST(self.set_active), "active"),
            self.url("<uuid:user_id>/password/", require_POST(self.set_password), "password"),
        ]

    def add(self, request: HttpRequest) -> HttpResponse:
        actor = require(request, Role.ADMIN)
        form = NewUserForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            given = form.cleaned_data
            try:
                user = users.create(
                    actor, given["username"], given["password"], Role(given["role"]), email=given["email"]
                )
            except (Conflict, InvalidInput) as problem:
                form.add_error(getattr(problem, "field", None), str(problem))
            else:
                messages.success(request, f"{user.username} may log in now.")
                return redirect("admin:ops_user_change", user.pk)
        context = {**self.admin_site.each_context(request), "title": "Add user", "form": form, "submit": "Add user"}
        return TemplateResponse(request, "portal/form.html", {**context, "back": reverse("admin:ops_user_changelist")})

    def show(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        person = _person(user_id)
        events = AuditEvent.objects.filter(actor_id=str(person.pk)).order_by("-at", "-id")[:LATEST]
        context = {
            **self.admin_site.each_context(request),
            "title": person.username,
            "person": person,
            "may_change": may(request, Role.ADMIN),
            "role_form": RoleForm(initial={"role": person.role}),
            "password_form": PasswordForm(),
            "events": events,
        }
        return TemplateResponse(request, "portal/user.html", context)

    def set_role(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        actor, person = require(request, Role.ADMIN), _person(user_id)
        form = RoleForm(request.POST)

        def verb() -> str:
            if not form.is_valid():
                raise InvalidInput("There is no such role; nothing was changed.")
            role = Role(form.cleaned_data["role"])
            if role == person.role:
                return f"{person.username} is {_article(role)} already."
            users.set_role(actor, person.username, role)
            return f"{person.username} is {_article(role)} from the next request on."

        attempt(request, verb)
        return redirect("admin:ops_user_change", person.pk)

    def set_active(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        actor, person = require(request, Role.ADMIN), _person(user_id)
        active = request.POST.get("active") == "true"

        def verb() -> str:
            users.set_active(actor, person.username, active=active)
            return f"{person.username} may log in again." if active else f"{person.username} is kept out from now on."

        attempt(request, verb)
        return redirect("admin:ops_user_change", person.pk)

    def set_password(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        actor, person = require(request, Role.ADMIN), _person(user_id)

        def verb() -> str:
            users.set_password(actor, person.username, request.POST.get("password", ""))
            return f"{person.username} has a new password; all their sessions have ended."

        attempt(request, verb)
        return redirect("admin:ops_user_change", person.pk)

    @display(description="User")
    def person(self, user: User) -> SafeString:
        link = reverse("admin:ops_user_change", args=[user.pk])
        return format_html('<a class="hv-job" href="{}"><span class="hv-kind">{}</span></a>', link, user.username)

    @display(description="Role")
    def role_name(self, user: User) -> str:
        return user.role.capitalize()

    @display(description="Login")
    def active(self, user: User) -> SafeString:
        name, words = ("succeeded", "Active") if user.is_active else ("cancelled", "Deactivated")
        return format_html('<span class="hv-badge hv-{}">{}</span>', name, words)

    @display(description="Email")
    def address(self, user: User) -> str | SafeString:
        return user.email or NOTHING

    @display(description="Last login")
    def last_seen(self, user: User) -> SafeString:
        return when(user.last_login)

    @display(description="Since")
    def joined(self, user: User) -> SafeString:
        return when(user.date_joined)


def _person(user_id: UUID) -> User:
    found = User.objects.filter(pk=user_id).first()
    if found is None:
        raise Http404
    return found


def _article(role: Role) -> str:
    return f"a {role}" if role == Role.VIEWER else f"an {role}"
