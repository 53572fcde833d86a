"""API keys. Every change is audited; the key itself is shown once, to whoever made it, and stored nowhere."""

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

#: Tells people and scanners what it is when one lies around; redaction knows it too.
MARK = "hvk_"
#: 256 bits: nobody guesses one, so a plain hash keeps it as well as a slow one would.
RANDOM_BYTES = 32
#: Characters by which people tell keys apart, too few to be of use to anybody else.
SHOWN = len(MARK) + 8
LONGEST_NAME = 100
#: Job arguments and logs carry the name; it must not look like a secret or an address.
_NAME = re.compile(r"[\w][\w .()/+-]*")
_TOKEN = re.compile(rf"{MARK}[\w-]{{43}}", re.ASCII)
# Asked at every request, so it is not put together anew each time.
_OF_HASH = "SELECT * FROM api_keys WHERE token_hash = %s"
#: How exactly the last use is known. Writing it at each request would cost more than most requests.
USE_NOTED_EVERY = timedelta(minutes=1)


def create(actor: Actor, name: str, scopes: Iterable[str], *, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """Make a key; the second of the answer is the key itself, which nobody can get again.

    Args:
        actor: who makes it.
        name: what it is for, unique among those that are not revoked.
        scopes: what it may do, see `scopes.Scope`.
        expires_at: when it ends; without, it is valid until somebody revokes it.
    """
    token = MARK + secrets.token_urlsafe(RANDOM_BYTES)
    key = ApiKey(
        name=_read_name(name),
        prefix=token[:SHOWN],
        token_hash=_hash(token),
        scopes=_read_scopes(scopes),
        created_by=actor.name,
        expires_at=_read_end(expires_at),
    )
    try:
        with transaction.atomic():
            key.save(force_insert=True)
            audit.record(actor, "API_KEY_CREATED", "api_key", key.pk, detail=_told(key))
    except IntegrityError:
        raise Conflict(f"name: there is a key {key.name!r} already; choose another name, or revoke that one.") from None
    key.refresh_from_db()
    return key, token


def revoke(actor: Actor, key_id: UUID) -> ApiKey:
    """End a key, from its next request on; it stays listed, because the audit trail names it."""
    with transaction.atomic():
        key = ApiKey.objects.select_for_update(no_key=True).filter(pk=key_id).first()
        if key is None:
            raise NotFound(f"There is no API key {key_id}; `harvester api-keys list` shows them all.")
        if key.revoked_at is not None:
            raise Conflict(f"The key {key.name!r} was revoked by {key.revoked_by} before; nothing was changed.")
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=Now(), revoked_by=actor.name)
        audit.record(actor, "API_KEY_REVOKED", "api_key", key.pk, changed=["revoked_at"], detail=_told(key))
    key.refresh_from_db()
    return key


def find(text: str) -> ApiKey:
    """The key that a person means: by its id, the beginning that lists show, or the name of one that is not revoked."""
    wanted = Q(prefix=text) | Q(name=text, revoked_at=None)
    with suppress(ValueError):
        wanted |= Q(pk=UUID(text))
    found = list(ApiKey.objects.filter(wanted)[:2])
    if not found:
        raise NotFound(f"There is no valid API key {text[:LONGEST_NAME]!r}; `harvester api-keys list` shows them all.")
    if len(found) > 1:
        raise Conflict(f"{text!r} means several keys; give the id of one.")
    return found[0]


def of_token(token: str) -> ApiKey | None:
    """The key that somebody showed, whether it is still valid or not."""
    if not _TOKEN.fullmatch(token):
        return None
    return next(iter(ApiKey.objects.raw(_OF_HASH, [_hash(token)])), None)


def note_use(key: ApiKey) -> None:
    """Remember that a key was used, at most once a minute."""
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - USE_NOTED_EVERY:
        # The condition again: of many requests at the same moment one writes.
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_NOTED_EVERY)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _told(key: ApiKey) -> dict[str, object]:
    return {"name": key.name, "prefix": key.prefix, "scopes": key.scopes, "expires_at": key.expires_at}


def _read_name(name: str) -> str:
    text = " ".join(name.split())
    if len(text) > LONGEST_NAME or not _NAME.fullmatch(text):
        raise InvalidInput(
            f"name: allowed are 1 to {LONGEST_NAME} letters, digits, blanks and . ( ) / + - _, beginning with a letter "
            "or a digit."
        )
    return text


def _read_scopes(scopes: Iterable[str]) -> list[str]:
    given = set(scopes)
    unknown = sorted(given - set(Scope))
    if unknown or not given:
        wrong = f"{unknown[0][:40]!r} is no scope" if unknown else "at least one is needed"
        raise InvalidInput(f"scopes: {wrong}; there are {', '.join(Scope)}.")
    return [scope.value for scope in Scope if scope in given]


def _read_end(expires_at: datetime | None) -> datetime | None:
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput("expires_at: allowed is a moment in the future.")
    return expires_at
