"""A hold in time: since when a source's offers do not expire, until when, and when they disappear undecided."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from harvester.catalog.models import Source
from harvester.kernel.effective_time import expires_at


@dataclass(frozen=True, kw_only=True)
class Hold:
    """What waiting costs.

    Attributes:
        since: when the first of the runs that wait was held.
        frozen_until: until then nothing grows old; afterwards the clock runs on by itself.
        offers_expire_at: when the offers of the last promoted run disappear if nobody decides, or did; None if they
            never do, or if no run was promoted.
    """

    since: datetime
    frozen_until: datetime
    offers_expire_at: datetime | None


def hold_of(source: Source) -> Hold | None:
    """The hold of a source, reckoned as `effective_now` does: holds stop the clock for `max_hold_hours` in all."""
    if source.held_since is None:
        return None
    most = timedelta(hours=source.max_hold_hours)
    until = source.held_since + max(most - source.frozen, timedelta())
    return Hold(since=source.held_since, frozen_until=until, offers_expire_at=offers_expire_at(source))


def offers_expire_at(source: Source) -> datetime | None:
    """Return what the view `source_windows` says: when the offers of the last promoted run disappear, if ever."""
    if source.last_promoted_at is None or source.expiry_hours is None:
        return None
    return expires_at(
        source.last_promoted_at,
        timedelta(hours=source.expiry_hours),
        frozen=source.frozen,
        held_since=source.held_since,
        max_hold=timedelta(hours=source.max_hold_hours),
    )
