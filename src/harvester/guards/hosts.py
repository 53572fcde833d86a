"""Read a host as one exact name or address, and reject all other notations.

The C library accepts `0x7f.1`, `2130706433` and `127.1` as 127.0.0.1. Nobody writes them on purpose, so they are
rejected before anything is resolved.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

import idna

from harvester.kernel.errors import ConfigError

#: The longest name in DNS.
LONGEST_NAME = 253
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.ASCII)
#: Other characters that mean a dot in international names.
_DOTS = re.compile("[\u3002\uff0e\uff61]")


class InvalidHost(ConfigError):
    """The host is not a plain name or address."""

    code = "EGRESS_INVALID_HOST"


def read_host(text: str) -> str | IPv4Address | IPv6Address:
    """Return a host's address, or its name in lower-case ASCII without a final dot.

    Raises:
        InvalidHost: it has user info, a port, spaces, a zone, or an unusual notation.
    """
    if not text or len(text) > LONGEST_NAME + 1:
        raise InvalidHost(f"A host has 1 to {LONGEST_NAME} characters; this one has {len(text)}. Check the host.")
    if text.startswith("[") and text.endswith("]"):
        return _read_ipv6(text[1:-1], text)
    if ":" in text:
        return _read_ipv6(text, text)
    if text.isascii():
        name = text.lower()
    else:
        try:
            name = idna.encode(_DOTS.sub(".", text), uts46=True).decode("ascii")
        except idna.IDNAError:
            raise InvalidHost(_message(text, "it has characters that host names cannot have")) from None
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return IPv4Address(name)
        except ValueError:
            raise InvalidHost(_message(text, "addresses are written in full, as 192.0.2.7, in decimal")) from None
    if len(name) > LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidHost(_message(text, "it must be a plain name such as sftp.example.com, or an address"))
    return name


def _read_ipv6(inner: str, text: str) -> IPv6Address:
    try:
        address = ip_address(inner)
    except ValueError:
        raise InvalidHost(_message(text, "the port and the user name have their own fields")) from None
    if not isinstance(address, IPv6Address) or address.scope_id:
        raise InvalidHost(_message(text, "only IPv6 addresses without a zone have colons or brackets"))
    return address


def _message(text: str, why: str) -> str:
    # The text before an @ may be a password.
    shown = text.rpartition("@")[2][:80]
    return f"The host {shown!r} cannot be used: {why}. Nothing was resolved or connected. Correct the host."
