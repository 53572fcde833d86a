"""Encrypt credentials with AES-256-GCM under a ring of named keys.

A sealed payload is one block of bytes:

    offset 0    1 byte     layout version, now 1
    offset 1    12 bytes   IV, random for each sealing
    offset 13   16 bytes   GCM tag
    offset 29   the rest   ciphertext

The associated data names the owner (`feed:{id}:v{version}`), so a payload that was copied to another owner, or an
older one that was restored under a newer version, does not open.

TerminalError
├── VaultError                  a sealed payload does not open
│   ├── PayloadTooShort         it is truncated
│   ├── UnknownPayloadVersion   a newer Harvester wrote it, or it is not a sealed payload
│   ├── UnknownKey              (also a ConfigError) its key is not in the ring
│   └── WrongKeyOrContext       wrong key, moved or altered: GCM cannot distinguish these
└── ConfigError
    ├── InvalidKey              the setting with the keys cannot be read
    └── InvalidKeyFile          the key file is unsafe, malformed or inaccessible

No message and no repr contains plaintext, key, IV, tag or ciphertext.
"""

import base64
import binascii
import errno
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from harvester.guards.durable_files import sync_directory
from harvester.kernel.config import KEY_VARIABLE, Config
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError

KEY_BYTES = 32
LAYOUT_VERSION = 1
IV_BYTES = 12
TAG_BYTES = 16
HEADER_BYTES = 1 + IV_BYTES + TAG_BYTES
#: The id of a key without an id.
DEFAULT_KEY_ID = "default"
KEY_FILE_NAME = "credential.key"

#: No key file is larger.
LARGEST_FILE_BYTES = 64 * 1024
#: Errors of link() on a file system without hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_OWNER_KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")


class VaultError(TerminalError):
    """A sealed credential does not open."""

    code = "VAULT"


class PayloadTooShort(VaultError):
    """The sealed credential is truncated."""

    code = "VAULT_PAYLOAD_TOO_SHORT"


class UnknownPayloadVersion(VaultError):
    """The sealed credential has an unknown layout."""

    code = "VAULT_UNKNOWN_VERSION"


class UnknownKey(VaultError, ConfigError):
    """The credential was sealed with a key that is not in the ring."""

    code = "VAULT_UNKNOWN_KEY"


class WrongKeyOrContext(VaultError):
    """The credential does not open with its key and its owner's name."""

    code = "VAULT_WRONG_KEY_OR_CONTEXT"


class InvalidKey(ConfigError):
    """The encryption keys cannot be read."""

    code = "INVALID_KEY"


class InvalidKeyFile(ConfigError):
    """The key file is unsafe, malformed or inaccessible."""

    code = "INVALID_KEY_FILE"


@dataclass(frozen=True, repr=False)
class Sealed:
    """An encrypted value: the id of its key, and the payload in the layout above."""

    key_id: str
    payload: bytes

    def __repr__(self) -> str:
        return f"Sealed(key_id={self.key_id!r}, {len(self.payload)} bytes)"


class KeyRing:
    """Named keys: the first one encrypts, all of them decrypt."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
            raise ValueError(f"a ring needs at least one key, and each key {KEY_BYTES} bytes")
        self._keys = dict(keys)

    def __repr__(self) -> str:
        return f"KeyRing(writes={self.writing_id!r}, reads={self.key_ids!r})"

    def __reduce__(self) -> str:
        raise TypeError("a key ring must not leave its process")

    @classmethod
    def parse(cls, text: str, source: str = KEY_VARIABLE) -> "KeyRing":
        """Read one base64 key, or several as `id:key,id:key`.

        Args:
            text: the keys.
            source: the variable or file to name in errors.
        """
        entries = [entry.strip() for entry in text.split(",")]
        if len(entries) > 1 and not all(":" in entry for entry in entries):
            raise InvalidKey(
                f"{source} contains several keys and not all have an id; write id:key,id:key "
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
        """The id of the key that encrypts."""
        return next(iter(self._keys))

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all keys, the writing one first."""
        return tuple(self._keys)

    def seal(self, plaintext: bytes | str, aad: str) -> Sealed:
        """Encrypt with the writing key; the same `aad` is needed to decrypt."""
        iv = secrets.token_bytes(IV_BYTES)
        sealed = AESGCM(self._keys[self.writing_id]).encrypt(iv, _to_bytes(plaintext), aad.encode())
        # AESGCM appends the tag; the stored layout has it in front of the ciphertext.
        ciphertext, tag = sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]
        return Sealed(self.writing_id, bytes([LAYOUT_VERSION]) + iv + tag + ciphertext)

    def open(self, sealed: Sealed, aad: str) -> bytes:
        """Decrypt a value that was sealed with the same `aad`.

        Raises:
            VaultError: the payload does not open.
        """
        payload = sealed.payload
        if len(payload) < HEADER_BYTES:
            raise PayloadTooShort(
                f"A sealed credential is truncated: it has {len(payload)} bytes and needs at least {HEADER_BYTES}. "
                "Nothing was changed. Enter the credential again."
            )
        if payload[0] != LAYOUT_VERSION:
            raise UnknownPayloadVersion(
                "A sealed credential has a layout that this version of Harvester does not know. "
                "Nothing was changed. Use the version that wrote it, or enter the credential again."
            )
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
                f"A credential does not open with the key {sealed.key_id!r}: it was sealed with another key of that "
                "id, moved from another owner, or altered. Nothing was changed. Restore the key, or enter the "
                "credential again."
            ) from None

    def derive(self, purpose: bytes, key_id: str | None = None) -> bytes:
        """Derive 32 bytes for another use, by default from the writing key (HKDF-SHA256)."""
        kdf = HKDF(SHA256(), length=KEY_BYTES, salt=None, info=b"harvester/" + purpose)
        return kdf.derive(self._keys[key_id or self.writing_id])

    def derived_keys(self, purpose: str) -> list[str]:
        """Return one derived secret for each key as 64 hexadecimal digits, the writing key's first."""
        return [self.derive(purpose.encode(), key_id).hex() for key_id in self._keys]


def aad_for(owner_kind: str, owner_id: object, version: int) -> str:
    """Return the associated data of an owner's secret: `feed:{id}:v{version}` and so on.

    The kind has no colon and the version is last, so the name is unambiguous for any id.
    """
    if not _OWNER_KIND.fullmatch(owner_kind):
        raise ValueError("the kind of an owner must be a lower-case word such as feed")
    if version < 1:
        raise ValueError("the version of a secret must be at least 1")
    return f"{owner_kind}:{owner_id}:v{version}"


def generate_key() -> str:
    """Return a new random key in base64."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def key_ring(config: Config) -> KeyRing:
    """Return the ring of this installation: from the setting, or from the key file next to the embedded database."""
    if config.encryption_keys:
        return KeyRing.parse(config.encryption_keys)
    if not config.embedded:
        raise InvalidKey(f"{KEY_VARIABLE} is missing. Create a key with: harvester keys generate")
    return load_or_create_key_file(config.home / KEY_FILE_NAME)


def load_or_create_key_file(path: Path) -> KeyRing:
    """Return the ring in the key file, which has the same text as the setting; create the file if it is missing.

    Processes that start at the same time get the same key: the file appears once, complete.
    """
    try:
        text = _read_key_file(path)
        if text is None:
            _create_key_file(path)
            text = _read_key_file(path)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        if error.errno in _NO_LINKS:
            raise InvalidKeyFile(
                f"The key file {path} cannot be created, its file system has no hard links ({reason}). "
                f"Put HARVESTER_HOME elsewhere or set {KEY_VARIABLE}."
            ) from None
        raise InvalidKeyFile(
            f"The key file {path} cannot be read or created: {reason}. Check the owner of the file and its directory, "
            "or start Harvester as that user."
        ) from None
    if text is None:
        raise InvalidKeyFile(f"The key file {path} is a dangling link; remove the link or restore its target.")
    try:
        return KeyRing.parse(text.strip(), source=f"The key file {path}")
    except InvalidKey as error:
        raise InvalidKeyFile(f"{error} If it was damaged, restore it from a backup.") from None


def _read_key_file(path: Path) -> str | None:
    try:
        # O_NONBLOCK: a pipe in place of the file must not block the process at start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE_BYTES:
            raise InvalidKeyFile(f"The key file {path} is not a file with a key; move it away or restore it.")
        if status.st_mode & 0o077:
            raise InvalidKeyFile(f"The key file {path} is open to other users; run: chmod 600 {path}")
        return os.read(descriptor, LARGEST_FILE_BYTES).decode("ascii", errors="replace")
    finally:
        os.close(descriptor)


def _create_key_file(path: Path) -> None:
    """Write a complete temporary file and link it into place: the first process to link wins, the others read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            # The umask may have removed the owner's permissions.
            os.fchmod(descriptor, 0o600)
            file.write(generate_key() + "\n")
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _parse_entry(entry: str, position: int, source: str) -> tuple[str, bytes]:
    key_id, colon, encoded = entry.rpartition(":")
    if colon and not _KEY_ID.fullmatch(key_id):
        raise InvalidKey(f"{source}, entry {position}: an id must be 1 to 32 letters, digits or any of . _ -")
    encoded = encoded.strip()
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    # The decoder ignores stray bits in the last character; a mistyped one must not count as the same key.
    if len(key) != KEY_BYTES or base64.b64encode(key).decode() != encoded:
        raise InvalidKey(
            f"{source} must contain {KEY_BYTES} bytes in standard base64 (44 characters); its entry {position} does "
            "not. Create a new one with: harvester keys generate"
        )
    return (key_id if colon else DEFAULT_KEY_ID), key


def _to_bytes(plaintext: bytes | str) -> bytes:
    if isinstance(plaintext, bytes):
        return plaintext
    with suppress(UnicodeEncodeError):
        return plaintext.encode()
    # Raised outside of the handler: a UnicodeEncodeError contains the plaintext, even as the context of another error.
    raise InvalidInput("The secret contains half a character (a lone surrogate); nothing was stored.")
