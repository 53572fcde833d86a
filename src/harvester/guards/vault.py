"""Sealing credentials: AES-256-GCM under a ring of named keys.

A sealed payload is one block of bytes:

    offset 0    1 byte     layout version, now 1
    offset 1    12 bytes   IV, random for each sealing
    offset 13   16 bytes   GCM tag
    offset 29   the rest   ciphertext

The associated data names the owner (`feed:{id}:v{version}`), so a payload copied to another owner, or an
older one put back under a newer version, does not open.

What can go wrong:

TerminalError
├── VaultError                  a sealed payload does not open
│   ├── PayloadTooShort         it is cut off
│   ├── UnknownPayloadVersion   a newer Harvester wrote it, or it is no sealed payload
│   ├── UnknownKey              (also a ConfigError) its key is not in the ring
│   └── WrongKeyOrContext       another key, or moved or altered: GCM cannot tell which
└── ConfigError
    ├── InvalidKey              the setting with the keys cannot be read
    └── InvalidKeyFile          the key file is unsafe, malformed or out of reach

No message and no repr carries plaintext, key, IV, tag or ciphertext.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from harvester.guards.key_file import InvalidKeyFile, read_or_create
from harvester.kernel.config import KEY_VARIABLE, Config
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError

KEY_BYTES = 32
LAYOUT_VERSION = 1
IV_BYTES = 12
TAG_BYTES = 16
HEADER_BYTES = 1 + IV_BYTES + TAG_BYTES
#: The id of a key that was given without one.
DEFAULT_KEY_ID = "default"
KEY_FILE_NAME = "credential.key"

_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_OWNER_KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")


class VaultError(TerminalError):
    """A sealed credential does not open."""

    code = "VAULT"


class PayloadTooShort(VaultError):
    """The sealed credential is cut off."""

    code = "VAULT_PAYLOAD_TOO_SHORT"


class UnknownPayloadVersion(VaultError):
    """The sealed credential has a layout that this version does not know."""

    code = "VAULT_UNKNOWN_VERSION"


class UnknownKey(VaultError, ConfigError):
    """The credential was sealed with a key that is not in the ring."""

    code = "VAULT_UNKNOWN_KEY"


class WrongKeyOrContext(VaultError):
    """The credential does not open with the key of its id and its owner's name."""

    code = "VAULT_WRONG_KEY_OR_CONTEXT"


class InvalidKey(ConfigError):
    """The encryption keys cannot be read."""

    code = "INVALID_KEY"


@dataclass(frozen=True, repr=False)
class Sealed:
    """What is stored: the id of the key, and the payload in the layout above."""

    key_id: str
    payload: bytes

    def __repr__(self) -> str:
        return f"Sealed(key_id={self.key_id!r}, {len(self.payload)} bytes)"


class KeyRing:
    """Named keys: the first one writes, all of them read."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
            raise ValueError(f"a ring has at least one key, and each has {KEY_BYTES} bytes")
        self._keys = dict(keys)

    def __repr__(self) -> str:
        return f"KeyRing(writes={self.writing_id!r}, reads={self.key_ids!r})"

    def __reduce__(self) -> str:
        raise TypeError("a key ring is never copied out of its process")

    @classmethod
    def parse(cls, text: str, source: str = KEY_VARIABLE) -> "KeyRing":
        """Read one base64 key, or several as `id:key,id:key`.

        Args:
            text: the keys.
            source: what a person has to correct if they are wrong: a variable or a file.
        """
        entries = [entry.strip() for entry in text.split(",")]
        if len(entries) > 1 and not all(":" in entry for entry in entries):
            raise InvalidKey(
                f"{source} holds several keys and not all have an id; write id:key,id:key "
                f"(a key that was alone until now has the id {DEFAULT_KEY_ID})."
            )
        keys: dict[str, bytes] = {}
        for position, entry in enumerate(entries, start=1):
            key_id, key = _parse_entry(entry, position, source)
            if key_id in keys:
                raise InvalidKey(f"{source} names the key id {key_id!r} twice; give each key its own id.")
            keys[key_id] = key
        return cls(keys)

    @property
    def writing_id(self) -> str:
        """The id of the key that seals."""
        return next(iter(self._keys))

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all keys, the writing one first."""
        return tuple(self._keys)

    def seal(self, plaintext: bytes | str, aad: str) -> Sealed:
        """Encrypt with the writing key; the same `aad` opens it again."""
        iv = secrets.token_bytes(IV_BYTES)
        sealed = AESGCM(self._keys[self.writing_id]).encrypt(iv, _to_bytes(plaintext), aad.encode())
        # AESGCM appends the tag; the stored layout has it in front of the ciphertext.
        ciphertext, tag = sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]
        return Sealed(self.writing_id, bytes([LAYOUT_VERSION]) + iv + tag + ciphertext)

    def open(self, sealed: Sealed, aad: str) -> bytes:
        """Decrypt what `seal` made with the same `aad`.

        Raises:
            VaultError: one of the four ways in which a payload does not open.
        """
        payload = sealed.payload
        _check_layout(payload)
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise UnknownKey(
                f"A credential is sealed with the key {sealed.key_id!r}, and the ring has only "
                f"{', '.join(self.key_ids)}. Nothing was changed. Add that key again, as {sealed.key_id}:<key>, "
                f"to {KEY_VARIABLE} or to the key file."
            )
        iv, tag = payload[1 : 1 + IV_BYTES], payload[1 + IV_BYTES : HEADER_BYTES]
        try:
            return AESGCM(key).decrypt(iv, payload[HEADER_BYTES:] + tag, aad.encode())
        except InvalidTag:
            raise WrongKeyOrContext(
                f"A credential does not open with the key {sealed.key_id!r}: either it was sealed with "
                "another key of that id, or it was moved from another owner or altered; which of them cannot "
                "be told. Nothing was changed. Restore the key, or enter the credential again."
            ) from None

    def derive(self, purpose: bytes, key_id: str | None = None) -> bytes:
        """Make 32 bytes for another use, from the writing key unless another one is named (HKDF-SHA256)."""
        kdf = HKDF(SHA256(), length=KEY_BYTES, salt=None, info=b"harvester/" + purpose)
        return kdf.derive(self._keys[key_id or self.writing_id])

    def derived_keys(self, purpose: str) -> list[str]:
        """One derived secret for each key as 64 hexadecimal digits, the writing key's first."""
        return [self.derive(purpose.encode(), key_id).hex() for key_id in self._keys]


def aad_for(owner_kind: str, owner_id: object, version: int) -> str:
    """Name an owner's secret: `feed:{id}:v{version}` and so on.

    A kind without a colon in front and the version behind make the name unambiguous whatever the id is.
    """
    if not _OWNER_KIND.fullmatch(owner_kind):
        raise ValueError("an owner's kind is a lower-case word such as feed")
    if version < 1:
        raise ValueError("a secret's version counts from 1")
    return f"{owner_kind}:{owner_id}:v{version}"


def generate_key() -> str:
    """Make a new random key, in base64."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def key_ring(config: Config) -> KeyRing:
    """The ring of this installation: from the setting, or from the key file beside the embedded database."""
    if config.encryption_keys:
        return KeyRing.parse(config.encryption_keys)
    if not config.embedded:
        raise InvalidKey(f"{KEY_VARIABLE} is missing. One is made by: harvester keys generate")
    return load_or_create_key_file(config.home / KEY_FILE_NAME)


def load_or_create_key_file(path: Path) -> KeyRing:
    """Read the key file, and make it first if there is none; it holds the same text as the setting."""
    text = read_or_create(path, lambda: generate_key() + "\n")
    try:
        return KeyRing.parse(text.strip(), source=f"The key file {path}")
    except InvalidKey as error:
        raise InvalidKeyFile(f"{error} If it was damaged, restore it from a backup.") from None


def _parse_entry(entry: str, position: int, source: str) -> tuple[str, bytes]:
    key_id, colon, encoded = entry.rpartition(":")
    if colon and not _KEY_ID.fullmatch(key_id):
        raise InvalidKey(f"{source}, entry {position}: an id must be 1 to 32 letters, digits or any of . _ -")
    key = _decode_key(encoded.strip())
    if key is None:
        raise InvalidKey(
            f"{source} must hold {KEY_BYTES} bytes in standard base64 (44 characters); its entry {position} does not. "
            "A new one is made by: harvester keys generate"
        )
    return (key_id if colon else DEFAULT_KEY_ID), key


def _decode_key(encoded: str) -> bytes | None:
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    # The decoder ignores stray bits in the last character; a mistyped one must not pass as the same key.
    is_canonical = base64.b64encode(key).decode() == encoded
    return key if is_canonical and len(key) == KEY_BYTES else None


def _to_bytes(plaintext: bytes | str) -> bytes:
    if isinstance(plaintext, bytes):
        return plaintext
    with suppress(UnicodeEncodeError):
        return plaintext.encode()
    # Raised out here: a UnicodeEncodeError carries the plaintext, even as the context of another error.
    raise InvalidInput("The secret has half a character in it (a lone surrogate); nothing was stored.")


def _check_layout(payload: bytes) -> None:
    if len(payload) < HEADER_BYTES:
        raise PayloadTooShort(
            f"A sealed credential has {len(payload)} bytes and needs at least {HEADER_BYTES}: it is cut off. "
            "Nothing was changed. Enter the credential again."
        )
    if payload[0] != LAYOUT_VERSION:
        raise UnknownPayloadVersion(
            "A sealed credential has a layout that this version of Harvester does not know. "
            "Nothing was changed. Use the version that wrote it, or enter the credential again."
        )
