"""Reading a host as one exact name or address, and refusing every other way of writing one.

The C library takes `0x7f.1`, `2130706433` and `127.1` for 127.0.0.1. Nobody means them, so they are refused
before anything is resolved.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

import idna

from harvester.kernel.errors import ConfigError

#: The longest name that DNS can carry, and its longest part.
LONGEST_NAME = 253
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.ASCII)
#: Other characters that stand for the dot in international names.
_DOTS = re.compile("[\u3002\uff0e\uff61]")


class InvalidHost(ConfigError):
    """The host is not a plain name or address."""

    code = "EGRESS_INVALID_HOST"


def read_host(text: str) -> str | IPv4Address | IPv6Address:
    """Read a host: its address, or its name in lower-case ASCII without a final dot.

    Raises:
        InvalidHost: it has user-info, a port, spaces, a zone, or is written in an unusual form.
    """
    if not text or len(text) > LONGEST_NAME + 1:
        raise InvalidHost(f"A host has 1 to {LONGEST_NAME} characters; this one has {len(text)}. Check the host.")
    if text.startswith("[") and text.endswith("]"):
        return _read_ipv6(text[1:-1], text)
    if ":" in text:
        return _read_ipv6(text, text)
    name = _to_ascii(text).removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _read_ipv4(name, text)
    if len(name) > LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidHost(_message(text, "it must be a plain name such as sftp.example.com, or an address"))
    return name


def _to_ascii(text: str) -> str:
    if text.isascii():
        return text.lower()
    try:
        return idna.encode(_DOTS.sub(".", text), uts46=True).decode("ascii")
    except idna.IDNAError:
        raise InvalidHost(_message(text, "it has characters that no host name has")) from None


def _read_ipv4(name: str, text: str) -> IPv4Address:
    try:
        return IPv4Address(name)
    except ValueError:
        raise InvalidHost(_message(text, "addresses are written in full, as 192.0.2.7, in decimal")) from None


def _read_ipv6(inner: str, text: str) -> IPv6Address:
    try:
        address = ip_address(inner)
    except ValueError:
        raise InvalidHost(_message(text, "the port has its own field, and user names do too")) from None
    if not isinstance(address, IPv6Address) or address.scope_id:
        raise InvalidHost(_message(text, "only IPv6 addresses without a zone have colons or brackets"))
    return address


def _message(text: str, why: str) -> str:
    return f"The host {_shown(text)} cannot be used: {why}. Nothing was resolved or connected. Correct the host."


def _shown(text: str) -> str:
    """The host for a message, without what may be a password in front of an @."""
    return repr(text.rpartition("@")[2][:80]) if "@" in text else repr(text[:80])
