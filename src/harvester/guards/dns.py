"""Names to addresses, within a time limit."""

import socket
import threading
from collections.abc import Callable, Sequence

from harvester.kernel.errors import TransientError

#: Takes a name and returns its addresses as texts, or raises OSError.
Resolver = Callable[[str], Sequence[str]]

#: The C library's resolver cannot be interrupted. A thread that waits for it is left behind; more than these
#: would be a leak.
MOST_WAITING = 64
_places = threading.BoundedSemaphore(MOST_WAITING)


class NameNotResolved(TransientError):
    """The name has no address."""

    code = "DNS_FAILED"


class ResolutionTimedOut(TransientError):
    """The name servers did not answer in time."""

    code = "DNS_TIMEOUT"


def system_resolver(name: str) -> Sequence[str]:
    """Ask the system, for all families: also an address that is not used here would betray a bad name."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def resolve_within(resolver: Resolver, name: str, seconds: float) -> Sequence[str]:
    """Ask a resolver for a name's addresses, at least one, and wait no longer than this."""
    lookup = _Lookup(resolver, name)
    if not _places.acquire(timeout=seconds):
        raise ResolutionTimedOut(f"The name {name} was not resolved: name servers have been silent for a while.")
    threading.Thread(target=lookup.run, name="resolve", daemon=True).start()
    if not lookup.done.wait(seconds):
        raise ResolutionTimedOut(
            f"The name {name} was not resolved within {seconds:g} s. It is tried again later; check the name servers."
        )
    if not lookup.addresses:
        why = getattr(lookup.error, "strerror", None) or "it has no address"
        raise NameNotResolved(f"The name {name} was not resolved: {why}. It is tried again later; check the host.")
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
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            self.error = error
        finally:
            _places.release()
            self.done.set()
