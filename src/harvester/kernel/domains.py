"""The domain that identifies a shop."""

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

from harvester.kernel.errors import InvalidInput
from harvester.kernel.rejects import Fault, Rejected
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


@lru_cache(maxsize=10_000)
def registrable_domain(host: str) -> str:
    """Return the domain that somebody registered, in ASCII and lower case: all of its hosts share one pace.

    Users of shared domains such as `github.io` are different registrants. A host below an unknown suffix, an IP address
    and a single label are their own domain.

    Raises:
        Rejected: it is not a host.
    """
    in_brackets = f"[{host}]" if ":" in host and not host.startswith("[") else host
    url = split_url(f"http://{in_brackets}")
    if url.path or url.query is not None or url.fragment is not None:
        raise Rejected(Fault.URL_HOST)
    name = url.host
    if address_of(name) is not None:
        return name
    return _suffixes().privatesuffix(name) or name


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList(accept_unknown=False)
