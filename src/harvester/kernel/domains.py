"""Which shop an address belongs to, by its host alone."""

import ipaddress

from harvester.kernel.errors import InvalidInput
from harvester.kernel.rejects import Rejected
from harvester.kernel.urls import split_url


def domain_of(address: str, field: str = "website") -> str:
    """The host of a web address in lower case and without `www.`, as retailers are known by.

    Raises:
        InvalidInput: it is no web address, or its host is one word, which would stand for half the web.
    """
    try:
        host = split_url(address).host
    except Rejected as problem:
        raise InvalidInput(f"{field}: {problem}; write an address such as https://shop.example/.") from None
    domain = host.removeprefix("www.")
    if "." not in domain and not domain.startswith("["):
        raise InvalidInput(f"{field}: the host {host} has no dot; write an address such as https://shop.example/.")
    return domain


def enclosing(host: str) -> list[str]:
    """The domains that a host is within, the narrowest first; an address of a machine is within itself only."""
    if _is_address(host):
        return [host]
    labels = host.split(".")
    return [".".join(labels[place:]) for place in range(len(labels) - 1)]


def _is_address(host: str) -> bool:
    if host.startswith("["):
        return True
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True
