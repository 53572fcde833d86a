"""Users and API keys, and the login and password of the current user.

Every user may see the list of users; admins change it. A new API key is shown once.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite, display
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.guards import limits
from harvester.guards.limits import RateLimit
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import api_keys, users
from harvester.ops.models import ApiKey, AuditEvent, Role, User
from harvester.ops.scopes import Scope
from harvester.portal.display import NOTHING, when
from harvester.portal.forms import Choice, Email, Password, Text
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.requests import attempt, form_view, may, require

#: Audit events on the page of a user.
LATEST = 10
#: Attempts at one's own password, as many as the login allows: an open session must not reveal it.
PASSWORD_ATTEMPTS = RateLimit(count=5, seconds=15 * 60, burst=5)


class LoginForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "Wrong username or password.",
        "inactive": "Wrong username or password.",
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.fields["username"].widget = Text(attrs={"autofocus": True, "autocomplete": "username"})
        self.fields["password"].widget = Password("current-password")


class OwnPasswordForm(forms.Form):
    """The current password proves that the session still belongs to the same person."""

    old = forms.CharField(label="Current password", strip=False, widget=Password("current-password"))
    new = forms.CharField(label="New password", strip=False, widget=Password("new-password"))
    again = forms.CharField(label="Confirm new password", strip=False, widget=Password("new-password"))

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_old(self) -> str:
        old: str = self.cleaned_data["old"]
        if not limits.take(f"own-password:{self.user.pk}", PASSWORD_ATTEMPTS).granted:
            raise forms.ValidationError("Too many attempts. The password is unchanged. Try again in a few minutes.")
        if not self.user.check_password(old):
            raise forms.ValidationError("This is not your current password.")
        return old

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("new") != cleaned.get("again"):
            self.add_error("again", "The two new passwords differ.")
        return cleaned


def change_password(site: AdminSite, request: HttpRequest, extra: dict[str, Any]) -> HttpResponse:
    """Change the user's own password: their other sessions end, this one continues."""
    actor = require(request, Role.VIEWER)
    assert isinstance(request.user, User)  # noqa: S101 - checked by `require`
    form = OwnPasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = users.set_password(actor, request.user.username, form.cleaned_data["new"])
        except InvalidInput as problem:
            form.add_error("new", str(problem))
        else:
            update_session_auth_hash(request, user)
            messages.success(request, "Your password was changed, and your other sessions were ended.")
            return redirect("admin:index")
    context = {**site.each_context(request), "title": "Change password", "form": form, "submit": "Change password"}
    return TemplateResponse(request, "portal/form.html", {**context, **extra})


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
    empty = "No users yet."
    add_label = "Add user"
    list_display = ("person", "role_name", "active", "address", "last_seen", "joined")
    list_display_links = None
    search_fields = ("username__icontains", "email__icontains")
    search_help_text = "Search by name or email"

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("add/", form_view(self.add), "add"),
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
                form.add_error(problem.field, str(problem))
            else:
                messages.success(request, f"{user.username} was added and can log in now.")
                return redirect("admin:ops_user_change", user.pk)
        back = reverse("admin:ops_user_changelist")
        context = {"title": "Add user", "form": form, "submit": "Add user", "back": back}
        return self.render(request, "portal/form.html", context)

    def show(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        person = get_object_or_404(User, pk=user_id)
        events = AuditEvent.objects.filter(actor_id=str(person.pk)).order_by("-at", "-id")[:LATEST]
        context = {
            "title": person.username,
            "person": person,
            "may_change": may(request, Role.ADMIN),
            "role_form": RoleForm(initial={"role": person.role}),
            "password_form": PasswordForm(),
            "events": events,
        }
        return self.render(request, "portal/user.html", context)

    def set_role(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        actor, person = require(request, Role.ADMIN), get_object_or_404(User, pk=user_id)
        form = RoleForm(request.POST)

        def verb() -> str:
            if not form.is_valid():
                raise InvalidInput("There is no such role. Nothing was changed.")
            role = Role(form.cleaned_data["role"])
            words = f"a {role}" if role == Role.VIEWER else f"an {role}"
            if role == person.role:
                return f"{person.username} is {words} already."
            users.set_role(actor, person.username, role)
            return f"{person.username} is {words} from the next request on."

        attempt(request, verb)
        return redirect("admin:ops_user_change", person.pk)

    def set_active(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        actor, person = require(request, Role.ADMIN), get_object_or_404(User, pk=user_id)
        active = request.POST.get("active") == "true"

        def verb() -> str:
            users.set_active(actor, person.username, active=active)
            if active:
                return f"{person.username} can log in again."
            return f"{person.username} can no longer log in. Their sessions end at the next request."

        attempt(request, verb)
        return redirect("admin:ops_user_change", person.pk)

    def set_password(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        actor, person = require(request, Role.ADMIN), get_object_or_404(User, pk=user_id)

        def verb() -> str:
            users.set_password(actor, person.username, request.POST.get("password", ""))
            return f"{person.username} has a new password, and all their sessions were ended."

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


#: Audit events on the page of a key.
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
