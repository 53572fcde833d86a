"""Who asks: the API key of a request, whether it may, and how often."""

import math
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.security import HttpBearer

from harvester.api.problems import Refused
from harvester.guards import limits
from harvester.guards.clients import client_network
from harvester.guards.limits import Grant, Pace
from harvester.ops import api_keys
from harvester.ops.models import ApiKey
from harvester.ops.scopes import Scope

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="harvester"'}
#: The part of a minute's requests that may come at once.
_BURST = 4
#: Requests with keys that are not valid, for each address. A key is not to be guessed; this spares database and log.
WRONG_KEYS = Pace(count=30, seconds=60.0, burst=30)


class BearerKey(HttpBearer):
    """A valid key with a scope, sent as `Authorization: Bearer hvk_...`."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> ApiKey:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused(401, "KEY_MISSING", "Send an API key as `Authorization: Bearer hvk_...`.", _CHALLENGE)
        return self.authenticate(request, token.strip())

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey:
        key = api_keys.of_token(token)
        if key is None or key.state != "valid":
            _count_refusal(request)
            raise _refusal(key)
        grant = _take(key)
        _note_on(request, key, grant)
        if self.scope not in key.scopes:
            detail = f"The key {key.name!r} lacks the scope {self.scope}; an admin makes a key that has it."
            raise Refused(403, "SCOPE_MISSING", detail)
        api_keys.note_use(key)
        return key


def key_of(request: HttpRequest) -> ApiKey:
    """The key that a request was let in by."""
    key: ApiKey = request.auth  # type: ignore[attr-defined]
    return key


def pace() -> Pace:
    """How often one key may ask."""
    rate = settings.CONFIG.api_rate_per_minute
    return Pace(count=rate, seconds=60.0, burst=max(rate // _BURST, 1))


def _refusal(key: ApiKey | None) -> Refused:
    if key is None:
        return Refused(401, "KEY_INVALID", "There is no such API key.", _CHALLENGE)
    code = "KEY_REVOKED" if key.revoked_at else "KEY_EXPIRED"
    detail = f"The key {key.name!r} is {key.state}; an admin makes a new one."
    return Refused(401, code, detail, _CHALLENGE)


def _count_refusal(request: HttpRequest) -> None:
    """Valid keys from the same address are let in all the same: many applications may share one."""
    grant = limits.take(f"api-refused:{client_network(request)}", WRONG_KEYS)
    if not grant.granted:
        detail = "Too many requests with API keys that are not valid came from this address"
        raise _too_often(detail, grant)


def _too_often(why: str, grant: Grant) -> Refused:
    seconds = max(math.ceil(grant.wait), 1)
    return Refused(429, "RATE_LIMITED", f"{why}; try again in {seconds} s.", {"Retry-After": str(seconds)})


def _take(key: ApiKey) -> Grant:
    grant = limits.take(f"api:{key.pk}", pace())
    if grant.granted:
        return grant
    raise _too_often(f"The key {key.name!r} asks more often than {pace().count} times a minute", grant)


def _note_on(request: HttpRequest, key: ApiKey, grant: Grant) -> None:
    headers = {"RateLimit-Limit": str(pace().count), "RateLimit-Remaining": str(grant.left)}
    request.rate_headers = headers  # type: ignore[attr-defined]
    request.auth = key  # type: ignore[attr-defined]


def rate_headers(request: HttpRequest) -> dict[str, str]:
    """What an answer says about the pace, for a request that was let in."""
    found: Any = getattr(request, "rate_headers", None)
    return dict(found or {})
