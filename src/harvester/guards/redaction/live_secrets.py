"""Secrets in use, so that their very value is removed from any text, wherever it comes from.

The process that opens a credential remembers it here. What it remembers ends by itself: nobody can say when
the last error that quotes a password will be logged, and a list that only grew would slow every line down.
"""

import base64
import json
import math
import threading
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

#: Shorter values would turn ordinary words into holes, and the holes would tell the value.
SHORTEST = 4
#: As long as the longest wait between two attempts of a job.
KEEP_SECONDS = 24 * 60 * 60
#: More than one process has open at once; the oldest give way, so that each line stays cheap to check.
MOST = 1000


class LiveSecrets:
    """The values to remove now. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: When each value ends, and its spellings; the newest stand last.
        self._kept: dict[str, tuple[float, frozenset[str]]] = {}
        #: When to look again, and what is looked for until then. Replaced as a whole: readers take no lock.
        self._current: tuple[float, tuple[str, ...]] = (math.inf, ())

    def remember(self, secret: str, *, seconds: float = KEEP_SECONDS) -> None:
        """Remove this value from all text for some time, also where it is quoted or encoded."""
        if len(secret) < SHORTEST:
            return
        with self._lock:
            self._kept.pop(secret, None)
            self._kept[secret] = (self._clock() + seconds, spellings(secret))
            self._refresh()

    def forget(self, secret: str) -> None:
        """Stop removing this value before its time."""
        with self._lock:
            self._kept.pop(secret, None)
            self._refresh()

    def forget_all(self) -> None:
        """Stop removing all values."""
        with self._lock:
            self._kept.clear()
            self._refresh()

    def forms(self) -> tuple[str, ...]:
        """Every spelling of every value."""
        until, forms = self._current
        if self._clock() < until:
            return forms
        with self._lock:
            self._refresh()
            return self._current[1]

    def _refresh(self) -> None:
        now = self._clock()
        kept = [(secret, entry) for secret, entry in self._kept.items() if entry[0] > now]
        self._kept = dict(kept[-MOST:])
        until = min((end for end, _ in self._kept.values()), default=math.inf)
        self._current = (until, tuple(frozenset().union(*(forms for _, forms in self._kept.values()))))


def spellings(secret: str) -> frozenset[str]:
    """The value as it is, and as URLs, JSON, Python's repr and base64 show it."""
    raw = secret.encode("utf-8", errors="surrogatepass")
    encoded = (base64.b64encode(raw), base64.urlsafe_b64encode(raw))
    return frozenset(
        {
            secret,
            quote(raw),
            quote(raw, safe=""),
            quote_plus(raw),
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            repr(secret)[1:-1],
            # Inside a longer text with both kinds of quotes, repr escapes one of them.
            repr("'\"" + secret)[4:-1],
            repr(raw)[2:-1],
            *(form.decode().rstrip("=") for form in encoded),
        }
    )
