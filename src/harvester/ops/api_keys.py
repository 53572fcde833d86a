"""API keys. Every change is audited. The key itself is shown once, when it is created, and stored only as a hash."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.ops.models import ApiKey
from harvester.ops.scopes import Scope

#: By this people, secret scanners and our redaction recognize a key.
MARK = "hvk_"
#: 256 bits: nobody can guess one, so a plain hash is as safe as a slow one.
RANDOM_BYTES = 32
#: Characters that lists show to distinguish keys; too few to use a key.
SHOWN = len(MARK) + 8
LONGEST_NAME = 100
#: Job arguments and logs contain the name; it must not look like a secret or an address.
_NAME = re.compile(r"[\w][\w .()/+-]*")
_TOKEN = re.compile(rf"{MARK}[\w-]{{43}}", re.ASCII)
# Runs at every request, so the ORM does not compile it each time.
_OF_HASH = "SELECT * FROM api_keys WHERE token_hash = %s"
#: Precision of the last use. Writing it at each request would cost more than most requests.
USE_PRECISION = timedelta(minutes=1)


def create(actor: Actor, name: str, scopes: Iterable[str], *, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """Create a key. Return its row, and the key itself, which cannot be read again.

    Args:
        actor: who creates it.
        name: its purpose, unique among keys that are not revoked.
        scopes: its permissions, see `scopes.Scope`.
        expires_at: when it expires; None: it is valid until it is revoked.
    """
    name = " ".join(name.split())
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        allowed = f"1 to {LONGEST_NAME} letters, digits, spaces and . ( ) / + - _, starting with a letter or a digit"
        raise InvalidInput(f"use {allowed}.", field="name")
    given = set(scopes)
    unknown = sorted(given - set(Scope))
    if unknown or not given:
        wrong = f"unknown scope {unknown[0][:40]!r}" if unknown else "at least one is required"
        raise InvalidInput(f"{wrong}; choose from {', '.join(Scope)}.", field="scopes")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput("the time must be in the future.", field="expires_at")
    token = MARK + secrets.token_urlsafe(RANDOM_BYTES)
    key = ApiKey(
        name=name,
        prefix=token[:SHOWN],
        token_hash=_hash(token),
        scopes=[scope.value for scope in Scope if scope in given],
        created_by=actor.name,
        expires_at=expires_at,
    )
    try:
        with transaction.atomic():
            key.save(force_insert=True)
            audit.record(actor, "API_KEY_CREATED", "api_key", key.pk, detail=_details(key))
    except IntegrityError:
        raise Conflict(
            f"a key {key.name!r} exists already; choose another name, or revoke that key.", field="name"
        ) from None
    key.refresh_from_db()
    return key, token


def revoke(actor: Actor, key_id: UUID) -> ApiKey:
    """Revoke a key; its next request is refused. It stays in lists, because the audit log refers to it."""
    with transaction.atomic():
        key = ApiKey.objects.select_for_update(no_key=True).filter(pk=key_id).first()
        if key is None:
            raise NotFound(f"There is no API key {key_id}; `harvester api-keys list` shows them all.")
        if key.revoked_at is not None:
            raise Conflict(f"The key {key.name!r} was already revoked by {key.revoked_by}. Nothing was changed.")
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=Now(), revoked_by=actor.name)
        audit.record(actor, "API_KEY_REVOKED", "api_key", key.pk, changed=["revoked_at"], detail=_details(key))
    key.refresh_from_db()
    return key


def find(text: str) -> ApiKey:
    """Return a key by its id, by the prefix that lists show, or, unless it is revoked, by its name."""
    wanted = Q(prefix=text) | Q(name=text, revoked_at=None)
    with suppress(ValueError):
        wanted |= Q(pk=UUID(text))
    found = list(ApiKey.objects.filter(wanted)[:2])
    if not found:
        raise NotFound(f"There is no valid API key {text[:LONGEST_NAME]!r}; `harvester api-keys list` shows them all.")
    if len(found) > 1:
        raise Conflict(f"Several keys match {text!r}; give the id of one.")
    return found[0]


def of_token(token: str) -> ApiKey | None:
    """Return the key of a token, valid or not."""
    if not _TOKEN.fullmatch(token):
        return None
    return next(iter(ApiKey.objects.raw(_OF_HASH, [_hash(token)])), None)


def note_use(key: ApiKey) -> None:
    """Store that a key was used, at most once a minute."""
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - USE_PRECISION:
        # The same condition in the statement: of many requests at once, one writes.
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_PRECISION)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _details(key: ApiKey) -> dict[str, object]:
    return {"name": key.name, "prefix": key.prefix, "scopes": key.scopes, "expires_at": key.expires_at}
