"""The domain that identifies a shop."""

from harvester.kernel.errors import InvalidInput
from harvester.kernel.rejects import Rejected
from harvester.kernel.special_networks import address_of
from harvester.kernel.urls import split_url


def domain_of(address: str, field: str = "website") -> str:
    """Return the host of a web address in lower case and without `www.`.

    Raises:
        InvalidInput: it is not a web address, or its host has no dot (a whole top-level domain).
    """
    try:
        host = split_url(address).host
    except Rejected as problem:
        raise InvalidInput(f"{problem}; write an address such as https://shop.example/.", field=field) from None
    domain = host.removeprefix("www.")
    if "." not in domain and not domain.startswith("["):
        raise InvalidInput(f"the host {host} has no dot; write an address such as https://shop.example/.", field=field)
    return domain


def enclosing(host: str) -> list[str]:
    """Return the domains that contain a host, the narrowest first; only itself for an IP address."""
    if address_of(host) is not None:
        return [host]
    labels = host.split(".")
    return [".".join(labels[place:]) for place in range(len(labels) - 1)]
