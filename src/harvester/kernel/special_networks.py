"""Addresses outside the public internet, each with its reason.

The table follows IANA's registries of special-purpose addresses. The standard library's `is_global` cannot replace it:
it accepts multicast, NAT64, site-local and 6to4 relay addresses, and differs between versions of Python.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
#: Domains that are not in the public name system: reserved (RFC 6761, 6762, 8375, ICANN), or used by routers.
PRIVATE_DOMAINS = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home.arpa")

_IPV4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "unspecified, this network"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's shared network (CGNAT)"),
        ("127.0.0.0/8", "this machine (loopback)"),
        # A cloud's service for the machines that run in it, although the address looks public.
        ("168.63.129.16/32", "a cloud's service for its own machines"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "documentation"),
        ("192.31.196.0/24", "a sink for misdirected queries (AS112)"),
        ("192.52.193.0/24", "multicast relays (AMT)"),
        ("192.88.99.0/24", "6to4 relays"),
        ("192.168.0.0/16", "a private network"),
        ("192.175.48.0/24", "a sink for misdirected queries (AS112)"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)

_IPV6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "this machine (loopback)"),
        ("::ffff:0:0/96", "an IPv4 address in IPv6 form (mapped)"),
        ("::ffff:0:0:0/96", "an IPv4 address in IPv6 form (translated)"),
        ("::/96", "an IPv4 address in IPv6 form (compatible)"),
        ("64:ff9b::/96", "an IPv4 address behind a translator (NAT64)"),
        ("64:ff9b:1::/48", "an IPv4 address behind a local translator (NAT64)"),
        ("100::/64", "discarded by routers"),
        ("2001::/32", "an IPv4 address in a tunnel (Teredo)"),
        ("2001:2::/48", "benchmarking"),
        ("2001:10::/28", "identifiers, no addresses (ORCHID)"),
        ("2001:20::/28", "identifiers, no addresses (ORCHID)"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "an IPv4 address in a tunnel (6to4)"),
        ("2620:4f:8000::/48", "a sink for misdirected queries (AS112)"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "a private network (ULA)"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "a private network (site-local)"),
        ("ff00::/8", "multicast"),
    )
)
#: The part of IPv6 that is assigned to the public; everything outside is special, listed above or not.
_IPV6_PUBLIC = IPv6Network("2000::/3")

#: IPv6 networks that embed IPv4 addresses -> bits after the embedded address.
_HOLDS_IPV4: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)


def special_reason(address: Address) -> str | None:
    """Return why an address is outside the public internet; None if it is inside."""
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _IPV4 if address in network), None)
    # An address with a zone (fe80::1%eth0) is in no network, so the zone is removed.
    plain = IPv6Address(int(address))
    reason = next((reason for network, reason in _IPV6 if plain in network), None)
    if reason is None and plain not in _IPV6_PUBLIC:
        return "outside of the public range of IPv6"
    return reason


def is_public_host(host: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a host, as in `WebUrl`, may be on the public internet or is in an allowed network.

    A name is not resolved. A private name counts as allowed if any private network is allowed; a name of this machine,
    if its loopback network is.
    """
    address = address_of(host)
    if address is not None:
        judged = (address, held) if (held := held_ipv4(address)) else (address,)
        return all(special_reason(one) is None or any(one in network for network in allowed) for one in judged)
    if host == "localhost" or host.endswith(".localhost"):
        return any(network.is_loopback for network in allowed)
    if "." not in host or host.endswith(tuple(f".{name}" for name in PRIVATE_DOMAINS)):
        return any(not network.is_loopback for network in allowed)
    return True


def address_of(host: str) -> Address | None:
    """Return the address if a host is an IP address and not a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def held_ipv4(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that a gateway or a tunnel would forward to."""
    if isinstance(address, IPv4Address):
        return None
    for network, shift in _HOLDS_IPV4:
        if IPv6Address(int(address)) in network:
            return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return None
