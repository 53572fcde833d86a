"""How many pages may wait to be read, and why a request to read one is rejected.

Everybody who enqueues pages locks the row of their source first and `hold` last, so that two who enqueue at the same
moment cannot both take the last place.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection

from harvester.catalog.models import Source
from harvester.kernel.errors import Conflict
from harvester.runs.models import Run
from harvester.scraping.addresses import domains_of
from harvester.scraping.jobs import QUEUE

#: The advisory lock of those who enqueue pages; "room".
_LOCK: Final = 0x726F6F6D
#: A rejected caller is never asked to wait longer; the queue may be empty sooner than its pace promises.
LONGEST_WAIT_SECONDS: Final = 3600
#: The slowest pace that a shop may ask for. A lane that rests longer was asked to: by 429, or without robots.txt.
LONGEST_INTERVAL_SECONDS: Final = 60.0

# Pages that wait: the parts of runs in progress that have no outcome.
_PENDING = """
SELECT r.source_id, count(*) FROM runs r
JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at
WHERE r.kind = 'SCRAPE' AND r.status = 'RUNNING' AND p.outcome IS NULL
GROUP BY r.source_id
"""


class Rejection(StrEnum):
    """Why a page is not enqueued."""

    QUEUE_FULL = "queue_full"
    ADAPTER_DISABLED = "adapter_disabled"
    RATE_LIMITED = "rate_limited"  # the shop asked for a pause
    SOURCE_DISABLED = "source_disabled"


class EnqueueRejected(Conflict):
    """No page was enqueued.

    EnqueueRejected
    ├── TryLater        there is no room, or the shop asked for a pause: 429
    └── SwitchedOff     a person has to change something first: 409

    Attributes:
        rejection: why.
        retry_after: seconds after which it may succeed; None if only a person can change that.
    """

    code = "SCRAPE_REJECTED"

    def __init__(self, reason: str, *, rejection: Rejection, retry_after: int | None) -> None:
        super().__init__(reason)
        self.rejection, self.retry_after = rejection, retry_after


class TryLater(EnqueueRejected):
    """The queue is full, or the shop asked for a pause."""

    code = "SCRAPE_TRY_LATER"


class SwitchedOff(EnqueueRejected):
    """The source or its adapter is switched off."""

    code = "SCRAPE_SWITCHED_OFF"


@dataclass(frozen=True, kw_only=True)
class EnqueueResult:
    """The outcome of a request to read pages.

    Attributes:
        accepted: pages that were enqueued.
        waiting: pages that had an open job already.
        skipped: pages that are switched off, blocked, or not ACTIVE.
        rejected: pages that were not enqueued.
        reason: why they were not.
        retry_after: seconds after which a rejected page may be accepted; None if a person has to act first.
        message: what happened, what is unchanged, and what to do next.
        run: the run that reads the accepted pages.
    """

    accepted: int = 0
    waiting: int = 0
    skipped: int = 0
    rejected: int = 0
    reason: Rejection | None = None
    retry_after: int | None = None
    message: str = ""
    run: Run | None = None

    def require(self) -> "EnqueueResult":
        """Raise if pages were rejected and none was accepted."""
        if self.reason is None or self.accepted:
            return self
        kind = SwitchedOff if self.retry_after is None else TryLater
        raise kind(self.message, rejection=self.reason, retry_after=self.retry_after)


@dataclass(kw_only=True)
class Room:
    """How many more pages may wait.

    Attributes:
        pending: source -> its pages that wait.
        per_source: how many pages of a source may wait.
        left: how many more pages of all sources may wait.
    """

    pending: Mapping[UUID, int]
    per_source: int
    left: int

    def of(self, source_id: UUID) -> int:
        """How many more pages of this source may wait."""
        return max(min(self.per_source - self.pending.get(source_id, 0), self.left), 0)


def hold(cursor: Any) -> None:
    """Let nobody else enqueue pages until the transaction ends. The sources are locked already."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def room(cursor: Any) -> Room:
    """Count the pages that wait. The counts stay true only while they are held."""
    cursor.execute(_PENDING)
    pending = dict(cursor.fetchall())
    config = settings.CONFIG
    left = config.scrape_pending - sum(pending.values())
    return Room(pending=pending, per_source=config.scrape_pending_per_source, left=max(left, 0))


def wait_for(rejected: int, interval: float) -> int:
    """Return the seconds in which a lane with this interval makes room for the rejected pages."""
    places = min(rejected, settings.CONFIG.scrape_pending_per_source)
    return math.ceil(min(max(places * interval, 1.0), LONGEST_WAIT_SECONDS))


def long_rests(cursor: Any, queue: str) -> dict[str, int]:
    """Return lane -> seconds for which it rests because its shop asked for it; not those that only keep their pace."""
    cursor.execute(
        "SELECT lane, not_before - statement_timestamp() FROM job_lanes "
        "WHERE queue = %s AND not_before > statement_timestamp() + %s * interval '1 second'",
        [queue, LONGEST_INTERVAL_SECONDS],
    )
    return {lane: math.ceil(rest.total_seconds()) for lane, rest in cursor.fetchall()}


def shop_pause(source: Source) -> int | None:
    """Return for how many more seconds a lane of a source rests because its shop asked for it."""
    lanes = {*domains_of(source), *(source.scrape_config.get("pace_by_host") or ())}
    with connection.cursor() as cursor:
        rests = long_rests(cursor, QUEUE)
    return max((seconds for lane, seconds in rests.items() if lane in lanes), default=None)


def pause_text(seconds: float) -> str:
    """Return a pause that a shop asked for, as people say it: "a pause of 24 hours"."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"a pause of {math.ceil(seconds / size):,} {unit}"
    return f"a pause of {math.ceil(seconds):,} seconds"
