"""Affiliate networks: one file each, found by looking.

A file of this folder has a constant `NETWORK`. It is pure: no Django, no files, no network.
`docs/how-to/add-a-network.md` says how to write one.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from harvester.kernel.errors import NotFound
from harvester.kernel.network import Network


@cache
def networks() -> Mapping[str, Network]:
    """Every network by its name."""
    modules = (import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = [module.NETWORK for module in modules]
    return MappingProxyType({network.name: network for network in sorted(found, key=lambda network: network.name)})


def network_named(name: str) -> Network:
    """The network of that name.

    Raises:
        NotFound: there is none.
    """
    try:
        return networks()[name]
    except KeyError:
        raise NotFound(f"There is no network {name!r}; there are {', '.join(networks())}.") from None
