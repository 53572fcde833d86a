"""Who comes in: what the audit trail keeps of it, where they come from, and the page for those who tried too often."""

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from harvester.guards.clients import client_address
from harvester.kernel.actor import system
from harvester.ops import audit
from harvester.ops.models import User

#: A username has no more characters; what is longer was never one.
LONGEST_USERNAME = 150


def listen() -> None:
    user_logged_in.connect(_logged_in, dispatch_uid="portal.access")
    user_logged_out.connect(_logged_out, dispatch_uid="portal.access")
    user_login_failed.connect(_login_failed, dispatch_uid="portal.access")


def tried_username(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """The name that somebody typed, short enough to be kept."""
    return _storable((credentials or {}).get("username") or request.POST.get("username"))


def locked_out(request: HttpRequest, _response: HttpResponse, _credentials: dict[str, Any] | None) -> HttpResponse:
    """The page after too many failures."""
    from harvester.portal.errors import too_many_tries

    return too_many_tries(request)


def _logged_in(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:  # noqa: ARG001 - the signal's shape
    with transaction.atomic():
        audit.record(user.actor, "USER_LOGGED_IN", "user", user.pk, detail={"from": client_address(request)})
        # Nothing else looks after them, and this is the moment when they become more.
        Session.objects.filter(expire_date__lt=timezone.now()).delete()


def _logged_out(sender: Any, request: HttpRequest, user: User | None, **_: Any) -> None:  # noqa: ARG001
    if user is None:
        return
    with transaction.atomic():
        audit.record(user.actor, "USER_LOGGED_OUT", "user", user.pk, detail={"from": client_address(request)})


def _login_failed(sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:  # noqa: ARG001
    if getattr(request, "axes_locked_out", False):
        # Nobody looked at the password, and the trail, of which nothing is ever deleted, is not a stranger's to fill.
        return
    tried = {"username": _storable(credentials.get("username"))}
    if request is not None:
        tried["from"] = client_address(request)
    with transaction.atomic():
        audit.record(system("login"), "USER_LOGIN_FAILED", "login", tried["username"] or "(none)", detail=tried)


def _storable(username: object) -> str:
    return str(username or "").replace("\x00", "\ufffd")[:LONGEST_USERNAME]
