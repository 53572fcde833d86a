"""Where Harvester may connect to.

A host is resolved once, every address it has is judged, and the connection goes to an address that was judged:
a name that answers differently a moment later changes nothing. One forbidden address among several refuses the
whole name, because nobody publishes a private address beside a public one by good intention.

What can go wrong:

ConfigError
├── InvalidHost             the host is no plain name or address
└── EgressRefused           it leads to a network that is not allowed
TransientError
├── NameNotResolved         the name has no address, or its servers do not answer
├── ResolutionTimedOut      no answer in time
├── ConnectionRefused       nobody listens there
├── ConnectTimedOut         no answer in time
└── HostUnreachable         there is no way to it
"""

import errno
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from harvester.guards.dns import NameNotResolved, ResolutionTimedOut, Resolver, resolve_within, system_resolver
from harvester.guards.hosts import InvalidHost, read_host
from harvester.kernel.config import HIGHEST_PORT, Config, Network
from harvester.kernel.errors import ConfigError, TransientError
from harvester.kernel.special_networks import Address, held_ipv4, special_reason

__all__ = [
    "CheckedAddress", "ConnectTimedOut", "ConnectionRefused", "EgressPolicy", "EgressRefused", "HostUnreachable",
    "InvalidHost", "NameNotResolved", "ResolutionTimedOut",
]  # fmt: skip

VARIABLE = "HARVESTER_EGRESS_ALLOW"
#: Twice what the C library waits for one name server.
RESOLVE_SECONDS = 10.0
#: A name with more addresses is no file server; trying them all would take for ever.
MOST_ADDRESSES = 32


class EgressRefused(ConfigError):
    """The host leads to a network that is not allowed."""

    code = "EGRESS_REFUSED"


class ConnectionRefused(TransientError):
    """Nobody listens at that address and port."""

    code = "CONNECTION_REFUSED"


class ConnectTimedOut(TransientError):
    """The host did not answer in time."""

    code = "CONNECT_TIMEOUT"


class HostUnreachable(TransientError):
    """There is no way to the host."""

    code = "HOST_UNREACHABLE"


@dataclass(frozen=True)
class CheckedAddress:
    """An address and port that the policy has judged; only the policy makes them."""

    address: Address
    port: int

    def __str__(self) -> str:
        return (
            f"[{self.address}]:{self.port}" if isinstance(self.address, IPv6Address) else f"{self.address}:{self.port}"
        )


class EgressPolicy:
    """Public addresses, and the networks that the operator allowed."""

    def __init__(
        self,
        allowed_networks: Sequence[Network] = (),
        *,
        resolver: Resolver = system_resolver,
        resolve_seconds: float = RESOLVE_SECONDS,
    ) -> None:
        self._allowed = tuple(allowed_networks)
        self._resolver = resolver
        self._resolve_seconds = resolve_seconds

    @classmethod
    def from_config(cls, config: Config) -> "EgressPolicy":
        return cls(config.egress_networks)

    def resolve(self, host: str, port: int) -> list[CheckedAddress]:
        """All addresses of a host, each judged.

        Raises:
            InvalidHost: the host is no plain name or address.
            EgressRefused: at least one of its addresses is not allowed.
            NameNotResolved, ResolutionTimedOut: DNS does not help now.
        """
        if not 1 <= port <= HIGHEST_PORT:
            raise InvalidHost(f"The port {port} is not between 1 and {HIGHEST_PORT}. Correct the port.")
        target = read_host(host)
        if not isinstance(target, str):
            found: list[Address] = [target]
        else:
            found = [_address(text) for text in resolve_within(self._resolver, target, self._resolve_seconds)]
        for address in found:
            self._judge(str(target), address)
        return [CheckedAddress(address, port) for address in dict.fromkeys(found[:MOST_ADDRESSES])]

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to the first address of a host that answers.

        Args:
            host: a name or an address.
            port: its port.
            timeout: seconds for all of its addresses together, resolution not included; it stays on the socket.
        """
        return _connect_first(self.resolve(host, port), host, timeout)

    def connect_again(self, peer: socket.socket, port: int, timeout: float) -> socket.socket:
        """Connect to another port of the very host that a checked connection leads to."""
        address = _address(peer.getpeername()[0])
        self._judge(str(address), address)
        return _connect_first([CheckedAddress(address, port)], str(address), timeout)

    def _judge(self, host: str, address: Address) -> None:
        held = held_ipv4(address)
        for judged in (address, held) if held else (address,):
            reason = special_reason(judged)
            if reason and not self._is_allowed(judged):
                raise EgressRefused(
                    f"The host {host} leads to {address}, which is {reason}. Nothing was connected. "
                    f"If that is meant, an operator adds the network to {VARIABLE}, for example {_example(judged)}."
                )

    def _is_allowed(self, address: Address) -> bool:
        return any(address in network for network in self._allowed)


def _address(text: str) -> Address:
    """Read an address as the system writes it; a zone says only through which interface it goes."""
    return ip_address(text.partition("%")[0])


def _example(address: Address) -> str:
    return f"{address}/{address.max_prefixlen}"


def _connect_first(addresses: Sequence[CheckedAddress], host: str, timeout: float) -> socket.socket:
    deadline = time.monotonic() + timeout
    failures: list[tuple[CheckedAddress, OSError]] = []
    for left, target in zip(range(len(addresses), 0, -1), addresses, strict=True):
        # Each address gets its share of what is left, so that a silent first one does not use it all up.
        share = (deadline - time.monotonic()) / left
        try:
            return _connect_one(target, max(share, 0.001), timeout)
        except OSError as error:
            failures.append((target, error))
    raise _connect_error(host, failures)


def _connect_one(target: CheckedAddress, seconds: float, timeout: float) -> socket.socket:
    family = socket.AF_INET6 if isinstance(target.address, IPv6Address) else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((str(target.address), target.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.settimeout(timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_error(host: str, failures: Sequence[tuple[CheckedAddress, OSError]]) -> TransientError:
    """Tell the most telling failure: a refusal says more than a silence, a silence more than no route."""
    target, error = min(failures, key=lambda failure: _telling(failure[1]))
    kind, what = (
        (ConnectionRefused, "refused the connection"),
        (ConnectTimedOut, "did not answer in time"),
        (HostUnreachable, "cannot be reached"),
    )[_telling(error)]
    reason = os.strerror(error.errno) if error.errno else "no answer"
    return kind(f"{host} ({target}) {what}: {reason}. It is tried again later; check host and port.")


def _telling(error: OSError) -> int:
    if error.errno == errno.ECONNREFUSED:
        return 0
    return 1 if isinstance(error, TimeoutError) else 2
