"""Who comes in: what the audit trail keeps of it, and what keeps strangers from trying passwords all day.

Three limits stand before a password is checked. Five failures lock a name out from the address they came from (axes).
Every address may try so many names at once and few later; a person who logged in from there before is not held up by
what others try. And passwords are checked one at a time, because each check keeps a processor busy for a good part of a
second: requests to the API and to other pages go on beside it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog
from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from harvester.guards import limits
from harvester.guards.clients import client_address, client_network, network_of
from harvester.guards.limits import Pace
from harvester.kernel.actor import system
from harvester.ops import audit
from harvester.ops.models import AuditEvent, User

log = structlog.get_logger(__name__)

#: A username has no more characters; what is longer was never one.
LONGEST_USERNAME = 150
#: Logins that may be tried from one address: thirty at once, then two a minute. An office shares one.
TRIES_OF_ADDRESS = Pace(count=30, seconds=15 * 60, burst=30)
#: How long a person who logged in from an address is known there.
KNOWN_FOR = timedelta(days=30)
#: Rows of the audit trail about failed logins: one for each address and kind in this time, and so many altogether.
#: Nothing is ever deleted from the trail, and strangers must not fill it.
ROWS_OF_ADDRESS = Pace(count=1, seconds=15 * 60)
ROWS_OF_ALL = Pace(count=60, seconds=3600, burst=60)
#: Seconds a login waits for its turn to have its password checked.
TURN_SECONDS = 3.0

_turn = threading.Lock()
# Half of the threads at most wait for their turn; the others are for everything else.
_places = threading.BoundedSemaphore(max(1, settings.CONFIG.web_threads // 2))


def listen() -> None:
    user_logged_in.connect(_logged_in, dispatch_uid="portal.access")
    user_logged_out.connect(_logged_out, dispatch_uid="portal.access")
    user_login_failed.connect(_login_failed, dispatch_uid="portal.access")
    user_locked_out.connect(_locked_out, dispatch_uid="portal.access")


def tried_username(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """The name that somebody typed, short enough to be kept."""
    return _storable((credentials or {}).get("username") or request.POST.get("username"))


def locked_out(request: HttpRequest, _response: HttpResponse, _credentials: dict[str, Any] | None) -> HttpResponse:
    """The page after too many failures."""
    from harvester.portal.errors import too_many_tries

    return too_many_tries(request)


def seconds_to_wait(request: HttpRequest) -> float | None:
    """How long nobody may log in from this address, or None if this login may be tried now.

    The answer depends on the name only for people who logged in from here before; for every name the same is asked of
    the database.
    """
    grant = limits.take(f"login:{client_network(request)}", TRIES_OF_ADDRESS)
    if grant.granted or _known_here(request, tried_username(request)):
        return None
    _note(request, "USER_LOGIN_THROTTLED", tried_username(request))
    return grant.wait


@contextmanager
def turn_to_check() -> Iterator[bool]:
    """Wait for the turn to have a password checked; false if too many others wait already."""
    if not _places.acquire(blocking=False):
        yield False
        return
    try:
        if not _turn.acquire(timeout=TURN_SECONDS):
            yield False
            return
        try:
            yield True
        finally:
            _turn.release()
    finally:
        _places.release()


def _known_here(request: HttpRequest, username: str) -> bool:
    user_id = User.objects.filter(username=username).values_list("pk", flat=True).first() or uuid4()
    logins = AuditEvent.objects.filter(actor_id=str(user_id), verb="USER_LOGGED_IN", at__gte=timezone.now() - KNOWN_FOR)
    here = client_network(request)
    return any(network_of(address) == here for address in logins.values_list("detail__from", flat=True).distinct())


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
    if request is not None and not getattr(request, "axes_locked_out", False):
        _note(request, "USER_LOGIN_FAILED", _storable(credentials.get("username")))


def _locked_out(sender: Any, request: HttpRequest, username: str, **_: Any) -> None:  # noqa: ARG001
    _note(request, "USER_LOGIN_THROTTLED", username)


def _note(request: HttpRequest, verb: str, username: str) -> None:
    """Log a failure, and keep the first one of an address in the trail for a while.

    The name is kept only if somebody has it: people type passwords into the wrong field.
    """
    address = client_address(request)
    user_id = User.objects.filter(username=username).values_list("pk", flat=True).first()
    log.warning(verb, user_id=str(user_id) if user_id else None, client=address)
    name = f"login-row:{verb}:{client_network(request)}"
    if limits.take(name, ROWS_OF_ADDRESS).granted and limits.take("login-row", ROWS_OF_ALL).granted:
        with transaction.atomic():
            audit.record(system("login"), verb, "login", user_id or "(unknown)", detail={"from": address})


def _storable(username: object) -> str:
    return str(username or "").replace("\x00", "\ufffd")[:LONGEST_USERNAME]
