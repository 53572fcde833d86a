"""Host keys, by which a server proves that it is the one that a person approved.

A first key must be approved, it is never trusted automatically. A changed key may mean a new server or an attack; only
a person can find out.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass

from harvester.kernel.errors import ConfigError, InvalidInput

_TYPE = re.compile(r"[a-z0-9][a-z0-9.@-]{1,63}", re.ASCII)
#: RSA keys of 16,384 bits are smaller.
LARGEST_BYTES = 4096


class HostKeyUnknown(ConfigError):
    """Nobody has approved a key of this server yet."""

    code = "HOST_KEY_UNKNOWN"

    def __init__(self, message: str, seen: "HostKey") -> None:
        super().__init__(message)
        #: The key that the server showed.
        self.seen = seen


class HostKeyChanged(ConfigError):
    """The server shows another key than the approved one."""

    code = "HOST_KEY_CHANGED"

    def __init__(self, message: str, seen: "HostKey") -> None:
        super().__init__(message)
        #: The key that the server showed.
        self.seen = seen


@dataclass(frozen=True)
class HostKey:
    """A server's public key, as in a line of a known_hosts file.

    Attributes:
        type: its algorithm, such as ssh-ed25519.
        base64: the key.
    """

    type: str
    base64: str

    def __post_init__(self) -> None:
        try:
            key = base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        # Another encoding of the same bytes would compare as another key.
        is_canonical = base64.b64encode(key).decode() == self.base64 and len(key) <= LARGEST_BYTES
        # The key contains its type: a length of four bytes, then the name.
        length = int.from_bytes(key[:4], "big")
        inner_type = key[4 : 4 + length].decode("ascii", errors="replace") if length <= len(key) else ""
        if not _TYPE.fullmatch(self.type) or not is_canonical or inner_type != self.type:
            raise InvalidInput("This is not a host key; one looks like: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA...")

    @classmethod
    def parse(cls, text: str) -> "HostKey":
        """Read `type base64`, with or without a comment after it."""
        words = text.split()
        return cls(words[0], words[1]) if len(words) > 1 else cls("", "")

    @property
    def fingerprint(self) -> str:
        """The fingerprint that people compare, as OpenSSH shows it."""
        digest = hashlib.sha256(base64.b64decode(self.base64)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.type} {self.base64}"


def check_host_key(seen: HostKey, approved: Collection[HostKey], host: str) -> None:
    """Reject a server whose key is not one of the approved ones.

    Raises:
        HostKeyUnknown: none was approved.
        HostKeyChanged: other keys were approved.
    """
    if seen in approved:
        return
    shown = f"{host} shows the host key {seen.type} {seen.fingerprint}"
    kept = "No credentials were sent."
    if not approved:
        raise HostKeyUnknown(
            f"{shown}, which nobody has approved yet. {kept} Compare it with the partner's, and approve it.",
            seen,
        )
    known = ", ".join(f"{key.type} {key.fingerprint}" for key in approved)
    raise HostKeyChanged(
        f"{shown}, but the approved key is {known}. {kept} Either the partner changed the server, or this is an "
        "attack: ask the partner, and approve the new key only if it is theirs.",
        seen,
    )
