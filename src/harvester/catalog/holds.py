"""A hold in time: since when a source's offers do not expire, until when, and when they disappear undecided."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch


@dataclass(frozen=True, kw_only=True)
class Hold:
    """What waiting costs.

    Attributes:
        since: when the first of the runs that wait was held.
        frozen_until: until then nothing expires; afterwards the clock continues by itself.
        offers_expire_at: when the offers of the last promoted run disappear if nobody decides, or did; None if they
            never do, or if no run was promoted.
    """

    since: datetime
    frozen_until: datetime
    offers_expire_at: datetime | None


def hold_of(source: Source) -> Hold | None:
    """Return the hold of a source. Its holds stop the clock for at most `max_hold_hours` together."""
    if source.held_since is None:
        return None
    most = timedelta(hours=source.max_hold_hours)
    until = source.held_since + max(most - source.frozen, timedelta())
    return Hold(since=source.held_since, frozen_until=until, offers_expire_at=offers_expire_at(source))


def offers_expire_at(source: Source) -> datetime | None:
    """Return when the offers of the last promoted run disappear; None if never, or if no run was promoted."""
    [row] = fetch("SELECT offers_expire_at FROM source_windows WHERE source_id = %(source)s", {"source": source.pk})
    moment: datetime | None = row["offers_expire_at"]
    return moment


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What each decision about a held run leads to, if it is made now.

    Attributes:
        removes: offers that disappear after an approval unless a later file contains them. Products that have no
            readable price or have expired already are not counted.
        removed_from: when the first of them disappears.
        removed_by: when the last of them disappears.
        offers_expire_at: when all offers disappear after a rejection if no later run is promoted; None if never.
        is_expired: they have disappeared already.
    """

    removes: int
    removed_from: datetime | None
    removed_by: datetime | None
    offers_expire_at: datetime | None
    is_expired: bool


# After a decision the clock goes on where the hold stopped it: an offer keeps the time that it has left now.
_CHOICES = """
SELECT m.removes, statement_timestamp() + (m.first - w.active_since) AS removed_from,
       statement_timestamp() + (m.last - w.active_since) AS removed_by,
       statement_timestamp() + (w.last_promoted_at - w.active_since) AS offers_expire_at,
       coalesce(w.last_promoted_at < w.active_since, false) AS is_expired
FROM source_windows w CROSS JOIN LATERAL (
    SELECT count(*) AS removes, min(coalesce(o.seen_until, w.last_promoted_at)) AS first,
           max(coalesce(o.seen_until, w.last_promoted_at)) AS last
    FROM held_changes c JOIN offers o ON o.source_id = c.source_id AND o.product_id = c.product_id
    WHERE c.source_id = w.source_id AND c.run_no = %(run)s AND c.is_missing
      AND coalesce(o.seen_until, w.last_promoted_at) >= w.active_since
) m
WHERE w.source_id = %(source)s
"""


def choices(source_id: UUID, run_no: int) -> Choices:
    """Return what an approval and a rejection of this held run would lead to now."""
    [row] = fetch(_CHOICES, {"source": source_id, "run": run_no})
    return Choices(**row)
