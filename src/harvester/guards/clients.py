"""The addresses of HTTP clients."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

#: One IPv6 client usually owns a whole network of this prefix length.
_NETWORK_OF_ONE = 64
NOBODY = "0.0.0.0"  # noqa: S104 - nothing is bound to it


def client_address(request: HttpRequest) -> str:
    """Return the peer's address; behind a configured proxy, the address that the proxy saw."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.CONFIG.https:
        return peer
    # Everything further left was sent by the client.
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or peer


def client_network(request: HttpRequest) -> str:
    """Return the address to count a client by; for IPv6, its network."""
    return network_of(client_address(request))


def network_of(address: str) -> str:
    """Return the same for a stored address."""
    network = _network(address)
    if network is None:
        return "unknown"
    return str(network if network.num_addresses > 1 else network.network_address)


def counted_address(request: HttpRequest) -> str:
    """Return the same as a single address: the first one of the network, or `NOBODY` if unknown."""
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
