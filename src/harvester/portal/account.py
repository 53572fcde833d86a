"""A person's own doings: logging in and out, changing the password."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from harvester.guards import limits
from harvester.guards.limits import Pace
from harvester.kernel.errors import InvalidInput
from harvester.ops import users
from harvester.ops.models import Role, User
from harvester.portal.forms import Password, Text
from harvester.portal.requests import require

#: As many as the login allows: whoever found an open session must not find out its password.
TRIES = Pace(count=5, seconds=15 * 60, burst=5)


class LoginForm(AuthenticationForm):
    """Every active user may come in; what they may do is their role's matter."""

    error_messages = {
        "invalid_login": "This username and password do not belong together.",
        "inactive": "This username and password do not belong together.",
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.fields["username"].widget = Text(attrs={"autofocus": True, "autocomplete": "username"})
        self.fields["password"].widget = Password("current-password")


class OwnPasswordForm(forms.Form):
    """The old password proves that it is still the same person at the keyboard."""

    old = forms.CharField(label="Current password", strip=False, widget=Password("current-password"))
    new = forms.CharField(label="New password", strip=False, widget=Password("new-password"))
    again = forms.CharField(label="New password again", strip=False, widget=Password("new-password"))

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_old(self) -> str:
        old: str = self.cleaned_data["old"]
        if not limits.take(f"own-password:{self.user.pk}", TRIES).granted:
            raise forms.ValidationError("There were too many tries; try again in a few minutes.")
        if not self.user.check_password(old):
            raise forms.ValidationError("This is not your current password.")
        return old

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("new") != cleaned.get("again"):
            self.add_error("again", "The two new passwords differ.")
        return cleaned


def log_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("admin:login")


def change_password(site: AdminSite, request: HttpRequest, extra: dict[str, Any]) -> HttpResponse:
    """Change one's own password: other sessions end, this one goes on."""
    actor = require(request, Role.VIEWER)
    assert isinstance(request.user, User)  # noqa: S101 - `require` has seen to it
    form = OwnPasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = users.set_password(actor, request.user.username, form.cleaned_data["new"])
        except InvalidInput as problem:
            form.add_error("new", str(problem))
        else:
            update_session_auth_hash(request, user)
            messages.success(request, "Your password is changed; your other sessions have ended.")
            return redirect("admin:index")
    context = {**site.each_context(request), "title": "Change password", "form": form, "submit": "Change password"}
    return TemplateResponse(request, "portal/form.html", {**context, **extra})
