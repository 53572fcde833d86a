"""Outgoing connections, to allowed addresses only.

A host is resolved once, all its addresses are checked, and the connection goes to a checked address, so a name that
resolves differently a moment later changes nothing. One forbidden address rejects the whole name, because nobody
publishes a private address next to a public one with good intentions.

ConfigError
├── InvalidHost             the host is not a plain name or address
└── EgressRefused           the host has an address in a network that is not allowed
TransientError
├── NameNotResolved         the name has no address
├── ResolutionTimedOut      the name servers did not respond in time
├── ConnectionRefused       nothing listens on that port
├── ConnectTimedOut         the host did not respond in time
└── HostUnreachable         there is no route to the host
"""

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from harvester.guards.hosts import InvalidHost, read_host
from harvester.kernel.config import HIGHEST_PORT, Config, Network
from harvester.kernel.errors import ConfigError, TransientError
from harvester.kernel.special_networks import Address, held_ipv4, special_reason

__all__ = [
    "CheckedAddress", "ConnectTimedOut", "ConnectionRefused", "EgressPolicy", "EgressRefused", "HostUnreachable",
    "InvalidHost", "NameNotResolved", "ResolutionTimedOut",
]  # fmt: skip

#: Takes a name and returns its addresses as texts, or raises OSError.
Resolver = Callable[[str], Sequence[str]]

VARIABLE = "HARVESTER_EGRESS_ALLOW"
#: Twice the time that the C library waits for one name server.
RESOLVE_SECONDS = 10.0
#: A name with more addresses is not a file server; trying them all would take too long.
MOST_ADDRESSES = 32
#: The C library's resolver cannot be interrupted, so a waiting thread is left running. More of them would be a leak.
MOST_RESOLVING = 64
_resolving = threading.BoundedSemaphore(MOST_RESOLVING)


class EgressRefused(ConfigError):
    """The host has an address in a network that is not allowed."""

    code = "EGRESS_REFUSED"


class NameNotResolved(TransientError):
    """The name has no address."""

    code = "DNS_FAILED"


class ResolutionTimedOut(TransientError):
    """The name servers did not respond in time."""

    code = "DNS_TIMEOUT"


class ConnectionRefused(TransientError):
    """Nothing listens at that address and port."""

    code = "CONNECTION_REFUSED"


class ConnectTimedOut(TransientError):
    """The host did not respond in time."""

    code = "CONNECT_TIMEOUT"


class HostUnreachable(TransientError):
    """There is no route to the host."""

    code = "HOST_UNREACHABLE"


def system_resolver(name: str) -> Sequence[str]:
    """Resolve by the system, for all families: an address of an unused family can also reveal a forbidden host."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True)
class CheckedAddress:
    """An address and port that the policy has checked; only the policy creates them."""

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
        """Return all addresses of a host, each checked.

        Raises:
            InvalidHost: the host is not a plain name or address.
            EgressRefused: at least one of its addresses is not allowed.
            NameNotResolved, ResolutionTimedOut: DNS failed.
        """
        if not 1 <= port <= HIGHEST_PORT:
            raise InvalidHost(f"The port {port} is not between 1 and {HIGHEST_PORT}. Correct the port.")
        target = read_host(host)
        if not isinstance(target, str):
            found: list[Address] = [target]
        else:
            found = [_address(text) for text in _resolve_within(self._resolver, target, self._resolve_seconds)]
        for address in found:
            self._check(str(target), address)
        return [CheckedAddress(address, port) for address in dict.fromkeys(found[:MOST_ADDRESSES])]

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to the first address of a host that responds.

        Args:
            host: a name or an address.
            port: its port.
            timeout: seconds for all addresses together, without resolution; it stays set on the socket.
        """
        return _connect_first(self.resolve(host, port), host, timeout)

    def connect_again(self, peer: socket.socket, port: int, timeout: float) -> socket.socket:
        """Connect to another port of the same address that a checked connection leads to."""
        address = _address(peer.getpeername()[0])
        self._check(str(address), address)
        return _connect_first([CheckedAddress(address, port)], str(address), timeout)

    def _check(self, host: str, address: Address) -> None:
        held = held_ipv4(address)
        for checked in (address, held) if held else (address,):
            reason = special_reason(checked)
            if reason and not any(checked in network for network in self._allowed):
                raise EgressRefused(
                    f"The host {host} leads to {address}, which is {reason}. No connection was made. If this is "
                    f"intended, add the network to {VARIABLE}, for example {checked}/{checked.max_prefixlen}."
                )


def _resolve_within(resolver: Resolver, name: str, seconds: float) -> Sequence[str]:
    """Return a name's addresses, at least one, within a time limit."""
    lookup = _Lookup(resolver, name)
    if not _resolving.acquire(timeout=seconds):
        raise ResolutionTimedOut(f"The name {name} was not resolved: name servers have not responded for a while.")
    threading.Thread(target=lookup.run, name="resolve", daemon=True).start()
    if not lookup.done.wait(seconds):
        raise ResolutionTimedOut(
            f"The name {name} was not resolved within {seconds:g} s. It will be retried later; check the name servers."
        )
    if not lookup.addresses:
        why = getattr(lookup.error, "strerror", None) or "it has no address"
        raise NameNotResolved(f"The name {name} was not resolved: {why}. It will be retried later; check the host.")
    return lookup.addresses


class _Lookup:
    def __init__(self, resolver: Resolver, name: str) -> None:
        self._resolver = resolver
        self._name = name
        self.done = threading.Event()
        self.addresses: Sequence[str] = ()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.addresses = self._resolver(self._name)
        except Exception as error:  # noqa: BLE001 - reported by the waiting thread
            self.error = error
        finally:
            _resolving.release()
            self.done.set()


def _address(text: str) -> Address:
    """Read an address as the system writes it, without its zone, which only names the interface."""
    return ip_address(text.partition("%")[0])


def _connect_first(addresses: Sequence[CheckedAddress], host: str, timeout: float) -> socket.socket:
    deadline = time.monotonic() + timeout
    failures: list[tuple[CheckedAddress, OSError]] = []
    for left, target in zip(range(len(addresses), 0, -1), addresses, strict=True):
        # Each address gets its share of the remaining time, so that an unresponsive first one does not use it all up.
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
    """Return the most informative failure: refused, then timed out, then no route."""

    def rank(error: OSError) -> int:
        if error.errno == errno.ECONNREFUSED:
            return 0
        return 1 if isinstance(error, TimeoutError) else 2

    target, error = min(failures, key=lambda failure: rank(failure[1]))
    kind, what = (
        (ConnectionRefused, "refused the connection"),
        (ConnectTimedOut, "did not respond in time"),
        (HostUnreachable, "cannot be reached"),
    )[rank(error)]
    reason = os.strerror(error.errno) if error.errno else "no answer"
    return kind(f"{host} ({target}) {what}: {reason}. It will be retried later; check host and port.")
