"""Where requests come from."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

#: Whoever has one address of IPv6 has as many as there are in such a network.
_NETWORK_OF_ONE = 64
NOBODY = "0.0.0.0"  # noqa: S104 - nothing is bound to it


def client_address(request: HttpRequest) -> str:
    """The peer's address; behind a proxy that the operator told of, the one that this proxy saw."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.CONFIG.https:
        return peer
    # Whatever stands further left was written by whoever sent the request.
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or peer


def client_network(request: HttpRequest) -> str:
    """What to count a client by: its address, or the network that is one client's in IPv6."""
    return network_of(client_address(request))


def network_of(address: str) -> str:
    """The same for an address that was noted."""
    network = _network(address)
    if network is None:
        return "unknown"
    return str(network if network.num_addresses > 1 else network.network_address)


def counted_address(request: HttpRequest) -> str:
    """The same for whoever keeps nothing but addresses: the network by its first one, the unknown by nobody's."""
    network = _network(client_address(request))
    return str(network.network_address) if network else NOBODY


def _network(client: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return ipaddress.IPv4Network(address)
    if address.ipv4_mapped:
        return ipaddress.IPv4Network(address.ipv4_mapped)
    return ipaddress.IPv6Network((int(address), _NETWORK_OF_ONE), strict=False)
