"""How often a shop is asked, and whether a schedule can be met at that pace."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Final

from cronsim import CronSim

#: Requests per second to one domain, unless a source has its own setting.
DEFAULT_RATE: Final = 0.5
#: Moments of a schedule that are compared: enough for the shortest time between two of them in any usual one.
MOMENTS: Final = 200


def request_interval(rates: Iterable[float | None], crawl_delay: float | None = None) -> float:
    """Return the seconds from one request to a domain to the next.

    The slowest of its sources and the crawl-delay wins.

    Args:
        rates: requests per second that each source of the domain is set to; none: the default.
        crawl_delay: seconds, as `Robots.crawl_delay` returns them.

    Raises:
        ValueError: a rate is not above zero.
    """
    # A setting can come from the database as a decimal number.
    asked = [DEFAULT_RATE if rate is None else float(rate) for rate in rates] or [DEFAULT_RATE]
    if not all(rate > 0 for rate in asked):
        raise ValueError("a rate is above 0 requests per second")
    return max(1 / min(asked), crawl_delay or 0.0)


def shortest_period(cron: str, after: datetime | None = None) -> timedelta | None:
    """Return the shortest time between two moments of a checked schedule in UTC; none if it has fewer than two."""
    moments = islice(CronSim(cron, after or datetime.now(UTC)), MOMENTS)
    return min((later - earlier for earlier, later in pairwise(moments)), default=None)


@dataclass(frozen=True, kw_only=True)
class ScheduleFit:
    """Whether so many pages can be read in every period of their schedule.

    Attributes:
        pages: how many are due each time.
        period: from one moment of the schedule to the next.
        interval: seconds from one request to the next, as `request_interval` returns them.
        busy_share: the share of the domain's requests that other schedules take, from 0 to 1.
    """

    pages: int
    period: timedelta
    interval: float
    busy_share: float = 0.0

    def __post_init__(self) -> None:
        if self.pages < 0 or self.interval <= 0 or self.period <= timedelta(0) or not 0 <= self.busy_share <= 1:
            raise ValueError("a schedule has pages, a period, an interval, and a share from 0 to 1")

    @property
    def seconds(self) -> float:
        """What the pages take if nothing else is read."""
        return self.pages * self.interval

    @property
    def most_pages(self) -> int:
        """How many pages would fit."""
        return int(self.period.total_seconds() * (1 - self.busy_share) / self.interval + 1e-6)

    @property
    def share(self) -> float:
        """The share of the domain's requests that this schedule takes; above 1 it cannot be met."""
        return self.seconds / self.period.total_seconds()

    @property
    def is_met(self) -> bool:
        return self.pages <= self.most_pages

    def __str__(self) -> str:
        rate = f"{1 / self.interval:.3f}".rstrip("0").rstrip(".")
        found = (
            f"{_counted(self.pages)} every {_duration(self.period.total_seconds())} at {rate}/s: {self.seconds:,.0f} s"
        )
        if self.is_met:
            return found
        others = (
            f"; other schedules of the domain take {self.busy_share:.0%} of its requests" if self.busy_share else ""
        )
        return f"{found}, which is too long. The most is {_counted(self.most_pages)}{others}."


def _counted(pages: int) -> str:
    return "1 URL" if pages == 1 else f"{pages:,} URLs"


def _duration(seconds: float) -> str:
    """Return a duration in the largest unit that divides it, such as "4 h"."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
