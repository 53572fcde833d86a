"""The source as a run finds it: one look, at one moment, that everything of the run is reckoned by."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from harvester.kernel.errors import NotFound

# FOR UPDATE: whoever writes offers, or decides about a run, holds the source's row.
_LOOK = """
SELECT s.id, s.retailer_id, t.moment, effective_now(t.moment, s.frozen, s.held_since, s.max_hold_hours),
       s.expiry_hours, s.price_heartbeat_hours, s.held_run_no, s.held_since, s.last_promoted_run_no,
       s.last_promoted_at, s.last_promoted_count, s.last_observed_at
FROM sources s, (SELECT clock_timestamp() AS moment) t
WHERE s.id = %s {lock}
"""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A source at one moment.

    Attributes:
        source_id: the source.
        retailer_id: its retailer.
        moment: now, by the database's clock.
        effective_now: now, by the source's own clock, which stands still while a run is held.
        expiry_hours: how long a product counts as on sale after it was last seen; for ever if there is none.
        heartbeat_hours: after which a price is written although it is as before.
        held_run_no: the run that waits for a decision, if any.
        held_since: since when runs have been waiting.
        last_promoted_run_no: the run that consumers see.
        last_promoted_at: when that was.
        last_promoted_count: how many products it had.
        last_observed_at: the newest moment that a price of this source has.
    """

    source_id: UUID
    retailer_id: UUID
    moment: datetime
    effective_now: datetime
    expiry_hours: int | None
    heartbeat_hours: int
    held_run_no: int | None
    held_since: datetime | None
    last_promoted_run_no: int | None
    last_promoted_at: datetime | None
    last_promoted_count: int | None
    last_observed_at: datetime | None

    @property
    def active_since(self) -> datetime | None:
        """Products last seen before this moment are not on sale any more; none if they never grow old."""
        # mutant: active-since
        return self.effective_now - timedelta(hours=self.expiry_hours) if self.expiry_hours else None

    @property
    def lost_time(self) -> timedelta:
        """How far the source's clock is behind."""
        return self.moment - self.effective_now

    @property
    def next_observed_at(self) -> datetime:
        """The moment of this run's prices: now, but always later than any before."""
        if self.last_observed_at is None:
            return self.moment
        return max(self.moment, self.last_observed_at + timedelta(microseconds=1))


def look(cursor: Any, source_id: UUID, *, lock: bool = False) -> Baseline:
    """See a source as it is now; with a lock, as it stays until the transaction ends."""
    cursor.execute(_LOOK.format(lock="FOR UPDATE OF s" if lock else ""), [source_id])
    row = cursor.fetchone()
    if row is None:
        raise NotFound(f"There is no source {source_id}.")
    names = [name for name in Baseline.__dataclass_fields__]  # noqa: C416 - the order of the columns
    return Baseline(**dict(zip(names, row, strict=True)))
