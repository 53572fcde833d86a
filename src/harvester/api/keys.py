"""Authentication: the API key of a request, its scopes and its rate limit."""

import math
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.security import HttpBearer

from harvester.api.problems import Refused
from harvester.guards import limits
from harvester.guards.clients import client_network
from harvester.guards.limits import Grant, RateLimit
from harvester.ops import api_keys
from harvester.ops.models import ApiKey
from harvester.ops.scopes import Scope

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="harvester"'}
#: A quarter of a minute's requests may come at once.
_BURST = 4
#: Requests with invalid keys, for each address. Nobody can guess a key; this protects the database and the log.
WRONG_KEYS = RateLimit(count=30, seconds=60.0, burst=30)


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
            # Valid keys from the same address are not limited: many applications may share one.
            grant = limits.take(f"api-refused:{client_network(request)}", WRONG_KEYS)
            if not grant.granted:
                raise _rate_limited("This address sent too many requests with invalid API keys", grant)
            if key is None:
                raise Refused(401, "KEY_INVALID", "This API key does not exist.", _CHALLENGE)
            code = "KEY_REVOKED" if key.revoked_at else "KEY_EXPIRED"
            raise Refused(401, code, f"The key {key.name!r} is {key.state}. Ask an admin for a new one.", _CHALLENGE)
        grant = limits.take(f"api:{key.pk}", rate_limit())
        if not grant.granted:
            raise _rate_limited(f"The key {key.name!r} exceeded {rate_limit().count} requests per minute", grant)
        headers = {"RateLimit-Limit": str(rate_limit().count), "RateLimit-Remaining": str(grant.left)}
        request.rate_headers = headers  # type: ignore[attr-defined]
        request.auth = key  # type: ignore[attr-defined]
        require(request, self.scope)
        api_keys.note_use(key)
        return key


def key_of(request: HttpRequest) -> ApiKey:
    """Return the key that authenticated a request."""
    key: ApiKey = request.auth  # type: ignore[attr-defined]
    return key


def require(request: HttpRequest, scope: Scope) -> None:
    """Raise if the key of a request does not have a scope: some addresses need another one for some requests."""
    if not has_scope(request, scope):
        detail = f"The key {key_of(request).name!r} does not have the scope {scope}. Ask an admin for a key with it."
        raise Refused(403, "SCOPE_MISSING", detail)


def has_scope(request: HttpRequest, scope: Scope) -> bool:
    return scope in key_of(request).scopes


def rate_limit() -> RateLimit:
    """Return the rate limit of each key."""
    rate = settings.CONFIG.api_rate_per_minute
    return RateLimit(count=rate, seconds=60.0, burst=max(rate // _BURST, 1))


def _rate_limited(why: str, grant: Grant) -> Refused:
    seconds = max(math.ceil(grant.wait), 1)
    return Refused(429, "RATE_LIMITED", f"{why}; try again in {seconds} s.", {"Retry-After": str(seconds)})


def rate_headers(request: HttpRequest) -> dict[str, str]:
    """Return the rate limit headers of an authenticated request."""
    found: Any = getattr(request, "rate_headers", None)
    return dict(found or {})
