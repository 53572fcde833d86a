"""Host keys: by them a server proves that it is the one whose key a person approved.

A first key is shown and approved, never taken by itself. A changed key may be a new server or somebody in
between; only a person can find out which.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass

from harvester.kernel.errors import ConfigError, InvalidInput

_TYPE = re.compile(r"[a-z0-9][a-z0-9.@-]{1,63}", re.ASCII)
#: RSA keys with 16,384 bits are below it.
LARGEST_BYTES = 4096


class HostKeyUnknown(ConfigError):
    """Nobody has approved a key of this server yet."""

    code = "HOST_KEY_UNKNOWN"

    def __init__(self, message: str, seen: "HostKey") -> None:
        super().__init__(message)
        #: The key that the server showed.
        self.seen = seen


class HostKeyChanged(ConfigError):
    """The server shows a key that nobody approved, in place of the one that was."""

    code = "HOST_KEY_CHANGED"

    def __init__(self, message: str, seen: "HostKey") -> None:
        super().__init__(message)
        #: The key that the server showed.
        self.seen = seen


@dataclass(frozen=True)
class HostKey:
    """A server's public key, as a line of a known_hosts file has it.

    Attributes:
        type: its algorithm, such as ssh-ed25519.
        base64: the key.
    """

    type: str
    base64: str

    def __post_init__(self) -> None:
        if not _TYPE.fullmatch(self.type) or _inner_type(_decode(self.base64)) != self.type:
            raise InvalidInput("This is no host key; one looks like: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA...")

    @classmethod
    def parse(cls, text: str) -> "HostKey":
        """Read `type base64`, with or without a comment behind it."""
        words = text.split()
        return cls(words[0], words[1]) if len(words) > 1 else cls("", "")

    @property
    def fingerprint(self) -> str:
        """What people compare, as OpenSSH shows it."""
        digest = hashlib.sha256(base64.b64decode(self.base64)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.type} {self.base64}"


def check_host_key(seen: HostKey, approved: Collection[HostKey], host: str) -> None:
    """Refuse a server whose key is not one of those that were approved for it.

    Raises:
        HostKeyUnknown: none was approved.
        HostKeyChanged: others were.
    """
    if seen in approved:
        return
    shown = f"{host} shows the host key {seen.type} {seen.fingerprint}"
    kept = "No credentials were sent."
    if not approved:
        raise HostKeyUnknown(
            f"{shown}, which nobody has approved yet. {kept} Compare it with what the partner says, and approve it.",
            seen,
        )
    known = ", ".join(f"{key.type} {key.fingerprint}" for key in approved)
    raise HostKeyChanged(
        f"{shown}, but approved is {known}. {kept} Either the partner changed the server, or somebody is in "
        "between: ask the partner, and approve the new key only if it is theirs.",
        seen,
    )


def _decode(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    # Another spelling of the same bytes would compare as another key.
    return key if base64.b64encode(key).decode() == text and len(key) <= LARGEST_BYTES else b""


def _inner_type(key: bytes) -> str:
    """The key's own word for its type: a length of four bytes, then the word."""
    length = int.from_bytes(key[:4], "big")
    return key[4 : 4 + length].decode("ascii", errors="replace") if length <= len(key) else ""
