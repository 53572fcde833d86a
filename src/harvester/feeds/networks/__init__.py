"""Affiliate networks: one file each, discovered in this folder.

Each file has a constant `NETWORK` and is pure: no Django, no files, no network connections.
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
    """Return all networks by name."""
    modules = (import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = [module.NETWORK for module in modules]
    return MappingProxyType({network.name: network for network in sorted(found, key=lambda network: network.name)})


def network_named(name: str) -> Network:
    """Return the network of that name.

    Raises:
        NotFound: there is none.
    """
    try:
        return networks()[name]
    except KeyError:
        raise NotFound(f"There is no network {name!r}; there are {', '.join(networks())}.") from None
