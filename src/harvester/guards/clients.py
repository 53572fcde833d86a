"""Where requests come from."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

#: Whoever has one address of IPv6 has as many as there are in such a network.
_NETWORK_OF_ONE = 64


def client_address(request: HttpRequest) -> str:
    """The peer's address; behind a proxy that the operator told of, the one that this proxy saw."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.CONFIG.https:
        return peer
    # Whatever stands further left was written by whoever sent the request.
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or peer


def client_network(request: HttpRequest) -> str:
    """What to count a client by: its address, or the network that is one client's in IPv6."""
    try:
        address = ipaddress.ip_address(client_address(request))
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, _NETWORK_OF_ONE), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)
