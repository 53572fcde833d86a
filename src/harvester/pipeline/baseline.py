"""The state of a source at one moment, with which a run compares and computes everything."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from harvester.kernel.errors import NotFound

# FOR UPDATE: every transaction that writes offers or decides about a run locks the row of the source.
_READ = """
SELECT s.id, s.retailer_id, t.moment, effective_now(t.moment, s.frozen, s.held_since, s.max_hold_hours),
       s.expiry_hours, s.price_heartbeat_hours, s.held_run_no, s.held_since, s.last_promoted_run_no,
       s.last_promoted_at, s.last_promoted_count, s.last_observed_at
FROM sources s, (SELECT clock_timestamp() AS moment) t
WHERE s.id = %s {lock}
"""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The state of a source at one moment.

    Attributes:
        source_id: the source.
        retailer_id: its retailer.
        moment: now, by the database's clock.
        effective_now: now, by the source's own clock, which stops while a run is held.
        expiry_hours: hours after which a product that is not seen expires; None if products never expire.
        heartbeat_hours: hours after which an unchanged price is recorded again.
        held_run_no: the run that waits for a decision, if any.
        held_since: when the first run since the last promotion was held.
        last_promoted_run_no: the run that consumers see.
        last_promoted_at: when it was promoted.
        last_promoted_count: the number of its products.
        last_observed_at: the newest `observed_at` of the source's prices.
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
        """Products last seen before this moment have expired; None if products never expire."""
        # mutant: active-since
        return self.effective_now - timedelta(hours=self.expiry_hours) if self.expiry_hours else None

    @property
    def lost_time(self) -> timedelta:
        """The time by which the source's clock is behind."""
        return self.moment - self.effective_now

    def observed_at(self, fetched_at: datetime | None = None) -> datetime:
        """The time of this run's prices: when its file was fetched, or now, but always later than any before."""
        moment = fetched_at or self.moment
        if self.last_observed_at is None:
            return moment
        return max(moment, self.last_observed_at + timedelta(microseconds=1))


def read_baseline(cursor: Any, source_id: UUID, *, lock: bool = False) -> Baseline:
    """Read the state of a source; with a lock, nothing can change it until the transaction ends."""
    cursor.execute(_READ.format(lock="FOR UPDATE OF s" if lock else ""), [source_id])
    row = cursor.fetchone()
    if row is None:
        raise NotFound(f"There is no source {source_id}.")
    names = [name for name in Baseline.__dataclass_fields__]  # noqa: C416 - the order of the columns
    return Baseline(**dict(zip(names, row, strict=True)))
