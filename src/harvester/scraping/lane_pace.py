"""Whose pace a request counts for, and how long one takes its turn, as the threads of a worker ask before each."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harvester.scraping.lanes import Lanes
from harvester.scraping.pace import request_interval

#: Seconds that the settings of other sources are kept; those of the page's own source are read before each request.
KEPT_SECONDS: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class LanePace:
    """The pace of a request.

    Attributes:
        lane: a registrable domain, or a host that is configured as an exception.
        interval: seconds from one request to the next.
    """

    lane: str
    interval: float

    @property
    def limit_name(self) -> str:
        """The name of the limit that all processes share."""
        return f"page:{self.lane}"


def pace_of(url: str, own: Mapping[str, Any], crawl_delay: float | None = None) -> LanePace:
    """Return the pace of a request.

    The slowest of all sources of the domain and the crawl-delay wins.

    Args:
        url: what is requested.
        own: the settings of the page's own source, just read; empty if it has none yet.
        crawl_delay: seconds, as robots.txt of the host asks for.
    """
    lanes = _known.lanes()
    lane = lanes.lane_of(url)
    mine = own.get("requests_per_second")
    if lane not in lanes.rates:
        return LanePace(lane=lane, interval=request_interval([mine], crawl_delay))
    interval = lanes.interval(lane, crawl_delay)
    return LanePace(lane=lane, interval=max(interval, request_interval([mine])) if mine else interval)


def forget() -> None:
    """Read the settings again with the next request."""
    _known.forget()


class _Known:
    """The lanes of all sources, at most a few seconds old."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: Lanes | None = None
        self._read_at = 0.0

    def lanes(self) -> Lanes:
        with self._lock:
            if self._lanes is None or time.monotonic() - self._read_at > KEPT_SECONDS:
                self._lanes, self._read_at = Lanes.load(), time.monotonic()
            return self._lanes

    def forget(self) -> None:
        with self._lock:
            self._lanes = None


_known: Final = _Known()
