"""The credentials of an owner: named texts, each sealed separately.

A verb that changes the owner calls `put` or `merge` in the same transaction; neither opens anything. Credentials are
opened in workers, just before use; the redaction then removes them from all logs and errors. Each secret is sealed as
a document of one name and text. Earlier versions sealed all of an owner's secrets as one document, which is split when
it is opened.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from harvester.guards.models import SealedSecret
from harvester.guards.redaction import remember
from harvester.guards.vault import KeyRing, Sealed, VaultError, aad_for, key_ring
from harvester.kernel.errors import InvalidInput, NotFound

#: Room for several private keys; more is a file uploaded by mistake.
LARGEST_DOCUMENT_BYTES = 64 * 1024
#: The name of the row in which an earlier version sealed all secrets of an owner.
_OLD_DOCUMENT = ""


class NotADocument(VaultError):
    """The sealed value is not a document of names and texts."""

    code = "VAULT_NOT_A_DOCUMENT"


@cache
def installed_ring() -> KeyRing:
    """The key ring of this installation, read once for each process."""
    return key_ring(settings.CONFIG)


def put(owner_kind: str, owner_id: UUID, document: Mapping[str, str], *, ring: KeyRing | None = None) -> int:
    """Replace an owner's credentials, and return their new version."""
    return merge(owner_kind, owner_id, document, keep=(), ring=ring)


def merge(
    owner_kind: str, owner_id: UUID, changes: Mapping[str, str], *, keep: Collection[str], ring: KeyRing | None = None
) -> int:
    """Seal changes, leave the secrets to `keep` unchanged, delete the others; return the owner's new version.

    Nothing is opened, so a person who enters a new password cannot see the old ones. Another change of the same owner
    waits until the caller's transaction ends.
    """
    _check_document(changes)
    for value in changes.values():
        remember(value)
    with transaction.atomic():
        _lock_owner(owner_kind, owner_id)
        stored = {row.name: row for row in _rows(owner_kind, owner_id)}
        version = max((row.version for row in stored.values()), default=0) + 1
        staying = set(keep) - set(changes)
        old = stored.get(_OLD_DOCUMENT)
        inside = staying - set(stored) if old else set[str]()
        if old and old.kept is not None:
            inside &= set(old.kept)
        _rows(owner_kind, owner_id).exclude(name__in=staying | ({_OLD_DOCUMENT} if inside else set())).delete()
        if inside:
            _rows(owner_kind, owner_id).filter(name=_OLD_DOCUMENT).update(kept=sorted(inside))
        _store(owner_kind, owner_id, version, changes, ring or installed_ring())
    return version


def open_document(owner_kind: str, owner_id: UUID, *, ring: KeyRing | None = None) -> dict[str, str]:
    """Open an owner's credentials.

    Raises:
        NotFound: there are none.
        VaultError: they do not open.
    """
    ring = ring or installed_ring()
    rows = list(_rows(owner_kind, owner_id))
    if any(row.name == _OLD_DOCUMENT for row in rows):
        with transaction.atomic():
            _lock_owner(owner_kind, owner_id)
            _split(owner_kind, owner_id, ring)
            rows = list(_rows(owner_kind, owner_id))
    if not rows:
        raise NotFound(f"There are no credentials for {owner_kind} {owner_id}; enter them first.")
    document: dict[str, str] = {}
    for row in rows:
        document |= _open(row, ring)
    for value in document.values():
        remember(value)
    return document


def forget(owner_kind: str, owner_id: UUID) -> bool:
    """Delete an owner's credentials; return whether there were any."""
    with transaction.atomic():
        # Without the lock, the secrets of an old document that is being split would remain.
        _lock_owner(owner_kind, owner_id)
        deleted, _ = _rows(owner_kind, owner_id).delete()
    return deleted > 0


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """The progress of a rotation.

    Attributes:
        rewritten: secrets that this rotation has sealed again with the writing key.
        unreadable: secrets that do not open, by owner and name, with the error code. They are unchanged.
        left: secrets that are not separately sealed with the writing key, including the unreadable ones.
            The others were being changed by another transaction: run it again.
    """

    rewritten: int
    unreadable: Mapping[str, str]
    left: int

    @property
    def busy(self) -> int:
        """Secrets that another transaction held locked."""
        return max(0, self.left - len(self.unreadable))


def rotate(ring: KeyRing | None = None, batch: int = 100) -> Iterator[Rotation]:
    """Seal everything again that is not sealed with the writing key, and report after each step.

    Each step is a separate transaction over a few rows, so it may be killed anywhere and run again: a row is sealed
    either with its old key or with the new one, and the ring reads both. Owners keep their versions.
    """
    ring = ring or installed_ring()
    rewritten, unreadable = 0, dict[str, str]()
    while True:
        before = rewritten
        # One pass over all rows in the order of their owners.
        rest = _others(ring).order_by("owner_kind", "owner_id", "name")
        while True:
            with transaction.atomic(durable=True):
                rows = list(rest.select_for_update(skip_locked=True)[:batch])
                count, failures = _rewrite(rows, ring)
            if not rows:
                break
            rewritten += count
            unreadable |= failures
            yield Rotation(rewritten=rewritten, unreadable=dict(unreadable), left=_others(ring).count())
            rest = rest.filter(pk__gt=rows[-1].pk)
        # Rows locked by another transaction were skipped; they are free by the next pass or the next run.
        left = _others(ring).count()
        if rewritten == before or left <= len(unreadable):
            break
    yield Rotation(rewritten=rewritten, unreadable=dict(unreadable), left=left)


def _rows(owner_kind: str, owner_id: UUID) -> QuerySet[SealedSecret]:
    return SealedSecret.objects.filter(owner_kind=owner_kind, owner_id=owner_id).order_by("name")


# The owner may have no row yet that could be locked. A transaction that has rows locked must not wait for this lock.
_LOCK_OWNER = "SELECT {function}(hashtextextended('sealed_secrets:' || %s || ':' || %s, 0))"


def _lock_owner(owner_kind: str, owner_id: UUID, *, wait: bool = True) -> bool:
    """Lock an owner until the transaction ends, so that versions count up; return whether it is locked."""
    function = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_OWNER.format(function=function), [owner_kind, str(owner_id)])
        return wait or bool(cursor.fetchone()[0])


def _store(owner_kind: str, owner_id: UUID, version: int, document: Mapping[str, str], ring: KeyRing) -> None:
    made = []
    for name, text in document.items():
        sealed = ring.seal(_encode({name: text}), aad_for(owner_kind, owner_id, version))
        made.append(
            SealedSecret(
                owner_kind=owner_kind,
                owner_id=owner_id,
                name=name,
                version=version,
                key_id=sealed.key_id,
                payload=sealed.payload,
            )
        )
    SealedSecret.objects.bulk_create(made)


def _split(owner_kind: str, owner_id: UUID, ring: KeyRing) -> None:
    """Seal each secret of an owner's old document separately. The caller has locked the owner."""
    stored = {row.name: row for row in _rows(owner_kind, owner_id)}
    old = stored.get(_OLD_DOCUMENT)
    if old is None:
        return
    inside = {name: text for name, text in _open(old, ring).items() if name not in stored}
    _rows(owner_kind, owner_id).filter(name=_OLD_DOCUMENT).delete()
    _store(owner_kind, owner_id, old.version, inside, ring)
    _rows(owner_kind, owner_id).filter(name__in=inside).update(updated_at=old.updated_at)


def _open(row: SealedSecret, ring: KeyRing) -> dict[str, str]:
    """Return the valid secrets of a row by name."""
    try:
        plaintext = ring.open(Sealed(row.key_id, bytes(row.payload)), _aad(row))
    except VaultError as error:
        raise type(error)(f"{row}: {error}") from None
    document: Any = None
    # Suppressed, because an error of the parser would contain the plaintext, even as the context of another error.
    with suppress(ValueError):
        document = json.loads(plaintext)
    is_document = isinstance(document, dict) and all(isinstance(value, str) for value in document.values())
    if not is_document or (row.name != _OLD_DOCUMENT and set(document) != {row.name}):
        raise NotADocument(f"{row}: the sealed value is not this secret; enter it again.")
    return {name: text for name, text in document.items() if row.kept is None or name in row.kept}


def _aad(row: SealedSecret) -> str:
    return aad_for(row.owner_kind, row.owner_id, row.version)


def _check_document(document: Mapping[str, str]) -> None:
    if not document:
        raise InvalidInput("There are no credentials to store; to delete them, forget them.")
    for name, value in document.items():
        if not isinstance(name, str) or not name or not isinstance(value, str):
            raise InvalidInput("Each credential needs a name and a text. Nothing was stored.")
    size = len(_encode(document))
    if size > LARGEST_DOCUMENT_BYTES:
        raise InvalidInput(
            f"The credentials have {size} bytes; at most {LARGEST_DOCUMENT_BYTES} are allowed. Nothing was stored."
        )


def _encode(document: Mapping[str, str]) -> bytes:
    # Escaped to ASCII, so that half a character cannot raise an encoding error that contains the secret.
    return json.dumps(dict(document), sort_keys=True).encode("ascii")


def _others(ring: KeyRing) -> QuerySet[SealedSecret]:
    return SealedSecret.objects.exclude(~Q(name=_OLD_DOCUMENT), key_id=ring.writing_id)


def _rewrite(rows: list[SealedSecret], ring: KeyRing) -> tuple[int, dict[str, str]]:
    """Seal rows again; return how many were rewritten, and the codes of those that do not open."""
    rewritten, unreadable = 0, dict[str, str]()
    for row in rows:
        try:
            if row.name == _OLD_DOCUMENT:
                if not _lock_owner(row.owner_kind, row.owner_id, wait=False):
                    continue
                _split(row.owner_kind, row.owner_id, ring)
            else:
                sealed = ring.seal(ring.open(Sealed(row.key_id, bytes(row.payload)), _aad(row)), _aad(row))
                SealedSecret.objects.filter(pk=row.pk).update(key_id=sealed.key_id, payload=sealed.payload)
        except VaultError as error:
            unreadable[str(row)] = error.code
        else:
            rewritten += 1
    return rewritten, unreadable
