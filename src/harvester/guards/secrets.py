"""The credentials of an owner: texts with names, each sealed for itself.

A verb that changes the owner calls `put` or `merge` in the same transaction; neither opens anything. Credentials are
opened in workers, just before they are used; what was opened is remembered by the redaction, so that it appears in no
log and no error. Each secret is sealed as a document of one name and text. Earlier versions sealed all of an owner's
secrets as one document, which is split when it is opened.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from harvester.guards.models import SealedSecret
from harvester.guards.redaction import remember
from harvester.guards.vault import KeyRing, Sealed, VaultError, aad_for, key_ring
from harvester.kernel.errors import InvalidInput, NotFound

#: Several private keys; more is a file somebody uploaded by mistake.
LARGEST_DOCUMENT_BYTES = 64 * 1024
#: The name of the row in which an earlier version sealed all secrets of an owner together.
_OLD_DOCUMENT = ""


class NotADocument(VaultError):
    """What was sealed is not a document of names and texts."""

    code = "VAULT_NOT_A_DOCUMENT"


@cache
def installed_ring() -> KeyRing:
    """The key ring of this installation, read once for each process."""
    return key_ring(settings.CONFIG)


def put(owner_kind: str, owner_id: UUID, document: Mapping[str, str], *, ring: KeyRing | None = None) -> int:
    """Seal an owner's credentials in place of those it had, and return their new version."""
    return merge(owner_kind, owner_id, document, keep=(), ring=ring)


def merge(
    owner_kind: str, owner_id: UUID, changes: Mapping[str, str], *, keep: Collection[str], ring: KeyRing | None = None
) -> int:
    """Seal changes, leave the secrets to `keep` as they are, delete the others; return the owner's new version.

    Nothing is opened, so whoever enters a new password does not get to see the old ones. Another change of the same
    owner waits until the caller's transaction ends.
    """
    _check(changes)
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
        NotFound: it has none.
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
    """Delete an owner's credentials; tell whether there were any."""
    with transaction.atomic():
        # Without it, an old document that is split at this moment would leave its secrets behind.
        _lock_owner(owner_kind, owner_id)
        deleted, _ = _rows(owner_kind, owner_id).delete()
    return deleted > 0


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """How far a rotation is.

    Attributes:
        rewritten: secrets that were sealed anew with the writing key by this rotation.
        unreadable: secrets that do not open, by owner and name, with the code of the reason. They are left as they are.
        left: secrets that are not sealed with the writing key, each for itself, the unreadable ones included.
            Those that are not unreadable were being changed by somebody else: run it again.
    """

    rewritten: int
    unreadable: Mapping[str, str]
    left: int

    @property
    def busy(self) -> int:
        """Secrets that another transaction held locked."""
        return max(0, self.left - len(self.unreadable))


def rotate(ring: KeyRing | None = None, batch: int = 100) -> Iterator[Rotation]:
    """Seal everything anew that is not sealed with the writing key, and report after each step.

    Each step is a transaction of its own over a few rows, so it may be killed anywhere and run again: a row is
    sealed either with its old key or with the new one, and the ring reads both. Owners keep their versions.
    """
    ring = ring or installed_ring()
    rewritten, unreadable = 0, dict[str, str]()
    while True:
        before = rewritten
        for step in _one_pass(ring, batch):
            rewritten += step.rewritten
            unreadable |= step.unreadable
            yield Rotation(rewritten=rewritten, unreadable=dict(unreadable), left=_others(ring).count())
        # Rows that somebody else had locked are passed by; they are free by the next pass or the next run.
        left = _others(ring).count()
        if rewritten == before or left <= len(unreadable):
            break
    yield Rotation(rewritten=rewritten, unreadable=dict(unreadable), left=left)


def _rows(owner_kind: str, owner_id: UUID) -> QuerySet[SealedSecret]:
    return SealedSecret.objects.filter(owner_kind=owner_kind, owner_id=owner_id).order_by("name")


# The owner may have no row yet that could be locked. Whoever has rows locked must not wait for this lock.
_LOCK_OWNER = "SELECT {function}(hashtextextended('sealed_secrets:' || %s || ':' || %s, 0))"


def _lock_owner(owner_kind: str, owner_id: UUID) -> None:
    """Of two changes at once, the second waits here and counts on from the first."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_OWNER.format(function="pg_advisory_xact_lock"), [owner_kind, str(owner_id)])


def _owner_is_free(owner_kind: str, owner_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_OWNER.format(function="pg_try_advisory_xact_lock"), [owner_kind, str(owner_id)])
        return bool(cursor.fetchone()[0])


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
    """Seal each secret of an owner's old document for itself. The caller has locked the owner."""
    stored = {row.name: row for row in _rows(owner_kind, owner_id)}
    old = stored.get(_OLD_DOCUMENT)
    if old is None:
        return
    inside = {name: text for name, text in _open(old, ring).items() if name not in stored}
    _rows(owner_kind, owner_id).filter(name=_OLD_DOCUMENT).delete()
    _store(owner_kind, owner_id, old.version, inside, ring)
    _rows(owner_kind, owner_id).filter(name__in=inside).update(updated_at=old.updated_at)


def _open(row: SealedSecret, ring: KeyRing) -> dict[str, str]:
    """What a row holds, as far as it still counts."""
    try:
        plaintext = ring.open(Sealed(row.key_id, bytes(row.payload)), _aad(row))
    except VaultError as error:
        raise type(error)(f"{row}: {error}") from None
    document = _decode(plaintext)
    if document is None or (row.name != _OLD_DOCUMENT and set(document) != {row.name}):
        raise NotADocument(f"{row}: something else was sealed than this secret; enter it again.")
    return document if row.kept is None else {name: text for name, text in document.items() if name in row.kept}


def _aad(row: SealedSecret) -> str:
    return aad_for(row.owner_kind, row.owner_id, row.version)


def _check(document: Mapping[str, str]) -> None:
    if not document:
        raise InvalidInput("There are no credentials to store; to delete them, forget them.")
    for name, value in document.items():
        if not isinstance(name, str) or not name or not isinstance(value, str):
            raise InvalidInput("Credentials are texts with names; one of them is not. Nothing was stored.")
    size = len(_encode(document))
    if size > LARGEST_DOCUMENT_BYTES:
        raise InvalidInput(
            f"The credentials have {size} bytes; at most {LARGEST_DOCUMENT_BYTES} are kept. Nothing was stored."
        )


def _encode(document: Mapping[str, str]) -> bytes:
    # Escaped to ASCII, so that half a character cannot fail the encoding with the secret in its error.
    return json.dumps(dict(document), sort_keys=True).encode("ascii")


def _decode(plaintext: bytes) -> dict[str, str] | None:
    """Names and texts, or None: an error of the parser would carry the plaintext, even as the context of another."""
    with suppress(ValueError):
        document = json.loads(plaintext)
        if isinstance(document, dict) and all(isinstance(value, str) for value in document.values()):
            return document
    return None


def _others(ring: KeyRing) -> QuerySet[SealedSecret]:
    return SealedSecret.objects.exclude(~Q(name=_OLD_DOCUMENT), key_id=ring.writing_id)


@dataclass(frozen=True, kw_only=True)
class _Step:
    rewritten: int
    unreadable: Mapping[str, str]


def _one_pass(ring: KeyRing, batch: int) -> Iterator[_Step]:
    """Walk over the rows once, in the order of their owners."""
    rest = _others(ring).order_by("owner_kind", "owner_id", "name")
    while True:
        with transaction.atomic(durable=True):
            rows = list(rest.select_for_update(skip_locked=True)[:batch])
            step = _rewrite(rows, ring)
        if not rows:
            return
        yield step
        rest = rest.filter(pk__gt=rows[-1].pk)


def _rewrite(rows: list[SealedSecret], ring: KeyRing) -> _Step:
    rewritten, unreadable = 0, dict[str, str]()
    for row in rows:
        try:
            if row.name == _OLD_DOCUMENT:
                if not _owner_is_free(row.owner_kind, row.owner_id):
                    continue
                _split(row.owner_kind, row.owner_id, ring)
            else:
                sealed = ring.seal(ring.open(Sealed(row.key_id, bytes(row.payload)), _aad(row)), _aad(row))
                SealedSecret.objects.filter(pk=row.pk).update(key_id=sealed.key_id, payload=sealed.payload)
        except VaultError as error:
            unreadable[str(row)] = error.code
        else:
            rewritten += 1
    return _Step(rewritten=rewritten, unreadable=unreadable)
