"""Limits of logins, and their entries in the audit log.

Three limits apply before a password is checked. Five failures lock a username for the address that they came from
(axes). Each address has a limited number of attempts; users who logged in from there before are exempt. And passwords
are checked one at a time, because each check keeps a processor busy for a good part of a second, and other pages and
the API need it too.
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
from harvester.guards.limits import RateLimit
from harvester.kernel.actor import system
from harvester.ops import audit
from harvester.ops.models import AuditEvent, User

log = structlog.get_logger(__name__)

#: Characters of a username.
LONGEST_USERNAME = 150
#: Login attempts from one address: thirty at once, then two a minute. An office shares one address.
ATTEMPTS_PER_ADDRESS = RateLimit(count=30, seconds=15 * 60, burst=30)
#: How long a login exempts its user from the limit of its address.
EXEMPT_FOR = timedelta(days=30)
#: Audit events about failed logins: one for each address and kind in this time, and a limited number in all. Nothing
#: is ever deleted from the audit log, and strangers must not fill it.
EVENTS_PER_ADDRESS = RateLimit(count=1, seconds=15 * 60)
EVENTS_IN_ALL = RateLimit(count=60, seconds=3600, burst=60)
#: Seconds that a login waits for its password check.
CHECK_WAIT_SECONDS = 3.0

_check = threading.Lock()
# At most half of the threads wait for a password check; the others serve everything else.
_places = threading.BoundedSemaphore(max(1, settings.CONFIG.web_threads // 2))


def listen() -> None:
    user_logged_in.connect(_logged_in, dispatch_uid="portal.access")
    user_logged_out.connect(_logged_out, dispatch_uid="portal.access")
    user_login_failed.connect(_login_failed, dispatch_uid="portal.access")
    user_locked_out.connect(_locked_out, dispatch_uid="portal.access")


def tried_username(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """Return the username of a login attempt, short enough to be stored."""
    username = str((credentials or {}).get("username") or request.POST.get("username") or "")
    return username.replace("\x00", "\ufffd")[:LONGEST_USERNAME]


def locked_out(request: HttpRequest, _response: HttpResponse, _credentials: dict[str, Any] | None) -> HttpResponse:
    """Return the page after too many failures."""
    from harvester.portal.errors import too_many_failures

    return too_many_failures(request)


def seconds_to_wait(request: HttpRequest) -> float | None:
    """Return how long this address has to wait, or None if this login may be tried now.

    Only users who logged in from this address before are exempt. Every name takes the same queries, so that their
    time does not reveal which names exist.
    """
    network, username = client_network(request), tried_username(request)
    grant = limits.take(f"login:{network}", ATTEMPTS_PER_ADDRESS)
    if grant.granted:
        return None
    user_id = User.objects.filter(username=username).values_list("pk", flat=True).first() or uuid4()
    since = timezone.now() - EXEMPT_FOR
    logins = AuditEvent.objects.filter(actor_id=str(user_id), verb="USER_LOGGED_IN", at__gte=since)
    if any(network_of(address) == network for address in logins.values_list("detail__from", flat=True).distinct()):
        return None
    _record_failure(request, "USER_LOGIN_THROTTLED", username)
    return grant.wait


@contextmanager
def password_check_slot() -> Iterator[bool]:
    """Wait for the slot of the one password check; false if it takes too long or too many others are waiting."""
    if not _places.acquire(blocking=False):
        yield False
        return
    try:
        if not _check.acquire(timeout=CHECK_WAIT_SECONDS):
            yield False
            return
        try:
            yield True
        finally:
            _check.release()
    finally:
        _places.release()


def _logged_in(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:  # noqa: ARG001 - the signal's shape
    with transaction.atomic():
        audit.record(user.actor, "USER_LOGGED_IN", "user", user.pk, detail={"from": client_address(request)})
        # Nothing else deletes expired sessions, and only logins add new ones.
        Session.objects.filter(expire_date__lt=timezone.now()).delete()


def _logged_out(sender: Any, request: HttpRequest, user: User | None, **_: Any) -> None:  # noqa: ARG001
    if user is None:
        return
    with transaction.atomic():
        audit.record(user.actor, "USER_LOGGED_OUT", "user", user.pk, detail={"from": client_address(request)})


def _login_failed(sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:  # noqa: ARG001
    if request is not None and not getattr(request, "axes_locked_out", False):
        _record_failure(request, "USER_LOGIN_FAILED", tried_username(request, credentials))


def _locked_out(sender: Any, request: HttpRequest, username: str, **_: Any) -> None:  # noqa: ARG001
    _record_failure(request, "USER_LOGIN_THROTTLED", username)


def _record_failure(request: HttpRequest, verb: str, username: str) -> None:
    """Log a failure, and record the first one of an address in the audit log.

    The user is named only if they exist: people type passwords into the wrong field.
    """
    address = client_address(request)
    user_id = User.objects.filter(username=username).values_list("pk", flat=True).first()
    log.warning(verb, user_id=str(user_id) if user_id else None, client=address)
    name = f"login-row:{verb}:{client_network(request)}"
    if limits.take(name, EVENTS_PER_ADDRESS).granted and limits.take("login-row", EVENTS_IN_ALL).granted:
        with transaction.atomic():
            audit.record(system("login"), verb, "login", user_id or "(unknown)", detail={"from": address})
