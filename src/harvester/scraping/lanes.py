"""Which pages share a pace, and what that pace is.

All pages of a registrable domain share one lane, also those of different sources. A host that somebody configured as an
exception (`pace_by_host`) has its own, for all sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from django.db.models import Q

from harvester.catalog.models import Source
from harvester.kernel.domains import registrable_domain
from harvester.kernel.urls import split_url
from harvester.scraping.addresses import domains_of
from harvester.scraping.pace import request_interval


@dataclass(frozen=True, kw_only=True)
class Lanes:
    """The lanes of all sources at one moment.

    Attributes:
        own_hosts: hosts with a lane of their own.
        rates: lane -> requests per second that its sources ask for; None for the default.
    """

    own_hosts: frozenset[str]
    rates: Mapping[str, Sequence[float | None]]

    @classmethod
    def load(cls) -> Self:
        """Read what the sources say; those that are not read themselves count if they have a setting."""
        given = Q(scrape_enabled=True) | ~Q(scrape_config={})
        sources = list(Source.objects.filter(given).select_related("retailer"))
        own_hosts = frozenset(host for source in sources for host in source.scrape_config.get("pace_by_host") or ())
        rates: dict[str, list[float | None]] = {}
        for source in sources:
            for lane in {*domains_of(source), *(source.scrape_config.get("pace_by_host") or ())}:
                rates.setdefault(lane, []).append(_rate(source.scrape_config))
        return cls(own_hosts=own_hosts, rates=rates)

    def lane_of(self, url: str) -> str:
        """Return the lane of a page: its host if that is an exception, otherwise its registrable domain."""
        # The shortest address of the same host: thousands of pages have few.
        host = _host(url[: url.find("/", len("https://")) + 1] or url)
        return host if host in self.own_hosts else registrable_domain(host)

    def interval(self, lane: str, crawl_delay: float | None = None) -> float:
        """Return the seconds from one request in a lane to the next: the slowest of its sources wins."""
        return request_interval(self.rates.get(lane, ()), crawl_delay)

    def interval_of(self, source: Source) -> float:
        """Return that of the slowest lane that pages of a source are in."""
        lanes = {*domains_of(source), *(source.scrape_config.get("pace_by_host") or ())}
        return max((self.interval(lane) for lane in lanes), default=request_interval(()))


@lru_cache(maxsize=10_000)
def _host(url: str) -> str:
    return split_url(url).host


def _rate(config: Mapping[str, Any]) -> float | None:
    rate = config.get("requests_per_second")
    return float(rate) if isinstance(rate, int | float) and rate > 0 else None
