"""The credentials of an owner, kept as one sealed document: names and texts.

Whoever changes the owner calls `put` in the same transaction. Documents are opened in workers, just before they
are used; what was opened is remembered by the redaction, so that it appears in no log and no error.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from harvester.guards.models import SealedSecret
from harvester.guards.redaction import remember
from harvester.guards.vault import KeyRing, Sealed, VaultError, aad_for, key_ring
from harvester.kernel.errors import InvalidInput, NotFound, TransientError

#: Several private keys; more is a file somebody uploaded by mistake.
LARGEST_DOCUMENT_BYTES = 64 * 1024


class NotADocument(VaultError):
    """What was sealed is not a document of names and texts."""

    code = "VAULT_NOT_A_DOCUMENT"


@cache
def installed_ring() -> KeyRing:
    """The key ring of this installation, read once for each process."""
    return key_ring(settings.CONFIG)


def put(owner_kind: str, owner_id: UUID, document: Mapping[str, str], *, ring: KeyRing | None = None) -> int:
    """Seal an owner's credentials in place of those it had, and return their new version.

    The row stays locked until the caller's transaction ends.
    """
    plaintext = _encode(document)
    for value in document.values():
        remember(value)
    with transaction.atomic():
        version = _lock_row(owner_kind, owner_id).version + 1
        sealed = (ring or installed_ring()).seal(plaintext, aad_for(owner_kind, owner_id, version))
        _row(owner_kind, owner_id).update(
            version=version, key_id=sealed.key_id, payload=sealed.payload, updated_at=Now()
        )
    return version


def merge(
    owner_kind: str, owner_id: UUID, changes: Mapping[str, str], *, keep: Collection[str], ring: KeyRing | None = None
) -> int:
    """Seal changes together with those of an owner's credentials that stay; answers the new version.

    What stays is opened and sealed again in here and shown to nobody, so that whoever takes in a new password does
    not get to see the old ones.
    """
    with transaction.atomic():
        row = _lock_row(owner_kind, owner_id)
        opened = _decode(_open(row, ring or installed_ring()), row) if row.version else {}
        kept = {name: text for name, text in opened.items() if name in keep}
        return put(owner_kind, owner_id, {**kept, **changes}, ring=ring)


def open_document(owner_kind: str, owner_id: UUID, *, ring: KeyRing | None = None) -> dict[str, str]:
    """Open an owner's credentials.

    Raises:
        NotFound: it has none.
        VaultError: they do not open.
    """
    row = _row(owner_kind, owner_id).first()
    if row is None:
        raise NotFound(f"There are no credentials for {owner_kind} {owner_id}; enter them first.")
    document = _decode(_open(row, ring or installed_ring()), row)
    for value in document.values():
        remember(value)
    return document


def forget(owner_kind: str, owner_id: UUID) -> bool:
    """Delete an owner's credentials; tell whether there were any."""
    deleted, _ = _row(owner_kind, owner_id).delete()
    return deleted > 0


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """How far a rotation is.

    Attributes:
        rewritten: secrets that were sealed anew with the writing key by this rotation.
        unreadable: owners whose secrets do not open, with the code of the reason. They are left as they are.
        left: secrets that are not sealed with the writing key, the unreadable ones included. Those that are not
            unreadable were being changed by somebody else: run it again.
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


def _row(owner_kind: str, owner_id: UUID) -> QuerySet[SealedSecret]:
    return SealedSecret.objects.filter(owner_kind=owner_kind, owner_id=owner_id)


def _lock_row(owner_kind: str, owner_id: UUID) -> SealedSecret:
    """Lock an owner's row. Of two first changes at once, the second waits here and counts on from the first."""
    empty = SealedSecret(owner_kind=owner_kind, owner_id=owner_id, version=0, key_id="", payload=b"")
    SealedSecret.objects.bulk_create([empty], ignore_conflicts=True)
    row = _row(owner_kind, owner_id).select_for_update().first()
    if row is None:
        raise TransientError(f"The credentials of {owner_kind} {owner_id} were deleted meanwhile; try again.")
    return row


def _open(row: SealedSecret, ring: KeyRing) -> bytes:
    try:
        return ring.open(_sealed(row), _aad(row))
    except VaultError as error:
        raise type(error)(f"{row.owner}: {error}") from None


def _sealed(row: SealedSecret) -> Sealed:
    return Sealed(row.key_id, bytes(row.payload))


def _aad(row: SealedSecret) -> str:
    return aad_for(row.owner_kind, row.owner_id, row.version)


def _encode(document: Mapping[str, str]) -> bytes:
    if not document:
        raise InvalidInput("There are no credentials to store; to delete them, forget them.")
    for name, value in document.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidInput("Credentials are texts with names; one of them is not. Nothing was stored.")
    # Escaped to ASCII, so that half a character cannot fail the encoding with the secret in its error.
    encoded = json.dumps(dict(document), sort_keys=True).encode("ascii")
    if len(encoded) > LARGEST_DOCUMENT_BYTES:
        raise InvalidInput(
            f"The credentials have {len(encoded)} bytes; at most {LARGEST_DOCUMENT_BYTES} are kept. Nothing was stored."
        )
    return encoded


def _decode(plaintext: bytes, row: SealedSecret) -> dict[str, str]:
    document = None
    with suppress(ValueError):
        document = json.loads(plaintext)
    # Raised out here: the parser's error carries the plaintext, even as the context of another error.
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        raise NotADocument(f"{row.owner}: what was sealed is no set of credentials; enter them again.")
    return document


def _others(ring: KeyRing) -> QuerySet[SealedSecret]:
    return SealedSecret.objects.exclude(key_id=ring.writing_id)


@dataclass(frozen=True, kw_only=True)
class _Step:
    rewritten: int
    unreadable: Mapping[str, str]


def _one_pass(ring: KeyRing, batch: int) -> Iterator[_Step]:
    """Walk over the rows once, in the order of their owners."""
    rest = _others(ring).order_by("owner_kind", "owner_id")
    while True:
        with transaction.atomic(durable=True):
            rows = list(rest.select_for_update(skip_locked=True)[:batch])
            step = _rewrite(rows, ring)
        if not rows:
            return
        yield step
        rest = rest.filter(pk__gt=rows[-1].pk)


def _rewrite(rows: list[SealedSecret], ring: KeyRing) -> _Step:
    unreadable: dict[str, str] = {}
    for row in rows:
        try:
            sealed = ring.seal(ring.open(_sealed(row), _aad(row)), _aad(row))
        except VaultError as error:
            unreadable[row.owner] = error.code
        else:
            _row(row.owner_kind, row.owner_id).update(key_id=sealed.key_id, payload=sealed.payload)
    return _Step(rewritten=len(rows) - len(unreadable), unreadable=unreadable)
