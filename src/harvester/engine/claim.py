"""Choose the next jobs: by priority, then first in, first out, and no lane beyond its concurrency."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from harvester.engine import sql
from harvester.engine.connections import Connection
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import Ending
from harvester.engine.registry import URGENT_PRIORITY, urgent_kinds
from harvester.engine.states import JobState

#: Seconds between two full looks while remembered places keep all slots busy. A job that was committed late, or
#: handed back by a rolled-back claim, waits no longer than this.
FULL_LOOK_SECONDS = 5.0
#: While jobs without a lane fill all slots faster than they can be claimed, the shortest time between two looks at
#: lanes: each look costs more than a claim. When slots stay free, or the worker waits for one, lanes are looked at
#: immediately.
LANE_PACE_SECONDS = 0.1
#: Jobs that are due but locked by another claimer are tried again after this time: it may not claim them.
RETRY_SECONDS = 0.05
#: While in doubt: for this time after the database was reached again, it may still execute the lost session's COMMIT.
DOUBT_SECONDS = 60.0
#: Time between two queries while in doubt.
LOOK_SECONDS = 1.0
#: Where the last claim ended, by queue and priority.
Places = dict[tuple[str, int], tuple[datetime, int]]
_BEGINNING = (datetime.min.replace(tzinfo=UTC), 0)


@dataclass
class Claimer:
    """Claims for one worker, and remembers where it claimed last.

    Without remembered places, every claim would read all previously claimed rows that an old snapshot elsewhere (a
    dump, a report) keeps from being vacuumed.
    """

    worker: str
    queues: list[str]
    #: A lane changed since the last look.
    lanes_changed: bool = True
    #: Seconds until the next known job is due; None if none is known.
    next_in: float | None = None
    #: Queues and priorities of jobs that were announced since the last claim.
    _announced: set[tuple[str, int]] = field(default_factory=set)
    _places: Places = field(default_factory=dict)
    #: Pairs without urgent jobs at the last query.
    _without_urgent: set[tuple[str, int]] = field(default_factory=set)
    #: The lanes that the last look found due; there may be more, even if none of these had a job.
    _lanes: list[tuple[str, str]] = field(default_factory=list)
    _wakeups_read: int = 0
    _wakeups_left: bool = False
    _looked_at: float = float("-inf")
    _lanes_looked_at: float = float("-inf")

    def claim(self, connection: Connection, most: int, lease: UUID | None = None) -> list[RunningJob]:
        """Claim up to `most` due jobs under a lease, in a transaction that the caller has opened.

        The caller provides the lease, so that it can query the result of a claim whose answer was lost.
        """
        lease = lease or uuid4()
        jobs: list[RunningJob] = []
        if time.monotonic() - self._looked_at <= FULL_LOOK_SECONDS:
            self._add_announced()
            jobs = self._take(connection, most, lease)
        if len(jobs) < most:
            before = self._lanes
            coming = self._look(connection)
            jobs += self._take(connection, most - len(jobs), lease)
            more_lanes = bool(jobs) or self._lanes != before
            self.next_in = self._plan(connection, coming, filled=len(jobs) == most, more_lanes=more_lanes)
        return jobs

    def claim_urgent(self, connection: Connection, most: int, lease: UUID) -> list[RunningJob]:
        """Claim due jobs of urgent kinds for their reserved slot; runs no query while none is known.

        Urgent jobs in a lane wait for an ordinary slot.
        """
        self._add_announced()
        if time.monotonic() - self._looked_at > FULL_LOOK_SECONDS:
            self._look(connection)
        places = {pair: self._places[pair] for pair in self._urgent_pairs()}
        if not places:
            return []
        values = {**self._searched(places, most, lease), "kinds": urgent_kinds()}
        # The places are unchanged: jobs of other kinds may wait before these.
        jobs = self._running(connection.execute(sql.CLAIM_URGENT, values).fetchall())
        if len(jobs) < most:
            self._without_urgent.update(places)
        return jobs

    @property
    def may_have_urgent(self) -> bool:
        """Whether an urgent job may wait: one was announced or seen, or it is time to look."""
        looked_long_ago = time.monotonic() - self._looked_at > FULL_LOOK_SECONDS
        announced = any(priority >= URGENT_PRIORITY for _, priority in self._announced.copy())
        return looked_long_ago or announced or bool(self._urgent_pairs())

    def _urgent_pairs(self) -> list[tuple[str, int]]:
        return [pair for pair in self._places if pair[1] >= URGENT_PRIORITY and pair not in self._without_urgent]

    @property
    def has_lanes(self) -> bool:
        return bool(self._lanes)

    def announce(self, queue: str, priority: int) -> None:
        """Note that a job was enqueued; may be called from any thread.

        Without this, the first job of a priority would be noticed only by the next full look.
        """
        self._announced.add((queue, priority))
        self.lanes_changed = True

    def forget(self) -> None:
        """Forget the places, after the connection was lost."""
        self._places.clear()
        self._looked_at = float("-inf")

    def allow_lane_look(self) -> None:
        """Allow a look at lanes regardless of their pace, because the worker had to wait anyway."""
        self._lanes_looked_at = float("-inf")

    def _add_announced(self) -> None:
        while self._announced:
            pair = self._announced.pop()
            self._places.setdefault(pair, _BEGINNING)
            self._without_urgent.discard(pair)

    def _look(self, connection: Connection) -> float | None:
        """Find the pairs with due jobs; return the seconds until the next job is due."""
        self._announced.clear()
        self._without_urgent.clear()
        rows = connection.execute(sql.LOOK, {"queues": self.queues}).fetchall()
        self._places = {(queue, priority): _BEGINNING for queue, priority, due, _ in rows if due}
        self.lanes_changed = True
        self._lanes_looked_at = float("-inf")
        self._wakeups_read = 0
        self._looked_at = time.monotonic()
        return min((row[3] for row in rows if row[3] is not None), default=None)

    def _plan(self, connection: Connection, job_in: float | None, *, filled: bool, more_lanes: bool) -> float | None:
        """Return the seconds after which to look again without a notification.

        Queried after the claim, because the claim lists new lanes. Due jobs that could not be claimed are locked by
        another claimer, perhaps for long; so is a lane that is due again and again without a job.
        """
        coming = [] if job_in is None else [job_in]
        row = connection.execute(sql.LANES_NEXT, {"queues": self.queues}).fetchone()
        if row is not None:
            coming.append(max(row[0], 0.0 if self.has_lanes and more_lanes else RETRY_SECONDS))
        if self._wakeups_left or (self._places and not filled):
            coming.append(RETRY_SECONDS)
        return min(coming, default=None)

    def _take(self, connection: Connection, most: int, lease: UUID) -> list[RunningJob]:
        may_look = self.lanes_changed and time.monotonic() - self._lanes_looked_at >= LANE_PACE_SECONDS
        lanes = self._lock_lanes(connection, most) if may_look else []
        if not lanes and not self._places:
            return []
        values = self._searched(self._places, most, lease)
        values |= {"lane_queues": [queue for queue, _ in lanes], "lanes": [lane for _, lane in lanes]}
        rows = connection.execute(sql.CLAIM_WITH_LANES if lanes else sql.CLAIM, values).fetchall()
        if lanes:
            connection.execute(sql.LANES_SLEEP, values)
        jobs = self._running(rows)
        for job in jobs:
            pair = (job.queue, job.priority)
            if job.lane is None and pair in self._places:
                self._places[pair] = max(self._places[pair], (job.run_at, job.id))
        return jobs

    def _searched(self, places: Places, most: int, lease: UUID) -> dict[str, Any]:
        """Return the values of a claim that starts after these places."""
        return {
            "worker": self.worker,
            "most": most,
            "lease": lease,
            "pair_queues": [queue for queue, _ in places],
            "levels": sorted({priority for _, priority in places}, reverse=True),
            "pair_priorities": [priority for _, priority in places],
            "after_at": [at for at, _ in places.values()],
            "after_id": [job_id for _, job_id in places.values()],
        }

    def _running(self, rows: list[tuple[Any, ...]]) -> list[RunningJob]:
        urgent = set(urgent_kinds())
        jobs = [_running(row, self.worker, urgent) for row in rows]
        jobs.sort(key=lambda job: (-job.priority, job.run_at, job.id))
        return jobs

    def _lock_lanes(self, connection: Connection, most: int) -> list[tuple[str, str]]:
        self.lanes_changed = False
        self._lanes_looked_at = time.monotonic()
        values = {"queues": self.queues, "after": self._wakeups_read, "most": most}
        newest, left = connection.execute(sql.LANES_WAKE, values).fetchone() or (None, 0)
        self._wakeups_read = self._wakeups_read if newest is None else newest
        self._wakeups_left = left > 0
        self._lanes = connection.execute(sql.LANES_LOCK, values).fetchall()
        if self._lanes:
            self.lanes_changed = True
        return self._lanes


class ClaimsInDoubt:
    """Leases of claims whose COMMIT was sent but never answered.

    Jobs may have been claimed under them without this worker knowing, so nobody sends heartbeats for them. Without
    this class they would count as stuck after minutes and lose an attempt that never ran; a job with one attempt would
    fail without having run.
    """

    def __init__(self) -> None:
        self._doubted_until: dict[UUID, float | None] = {}
        self._look_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._doubted_until)

    def add(self, lease: UUID) -> None:
        self._doubted_until[lease] = None
        self._look_at = 0.0

    def endings(self, connection: Connection) -> list[Ending]:
        """Return endings that give back the jobs claimed under these leases."""
        now = time.monotonic()
        if not self._doubted_until or now < self._look_at:
            return []
        self._look_at = now + LOOK_SECONDS
        rows = connection.execute(sql.CLAIMED_UNDER, {"leases": list(self._doubted_until)}).fetchall()
        until = {lease: known or now + DOUBT_SECONDS for lease, known in self._doubted_until.items()}
        self._doubted_until = {lease: moment for lease, moment in until.items() if moment > now}
        detail = "claimed, but the answer to the claim was lost"
        return [
            Ending(job_id=job_id, lease=lease, state=JobState.PENDING, refund=1, detail=detail)
            for job_id, lease in rows
        ]


def _running(row: tuple[Any, ...], worker: str, urgent: set[str]) -> RunningJob:
    job_id, kind, queue, lane, args, priority, run_at, attempt, max_attempts, lease = row
    return RunningJob(
        id=job_id,
        kind=kind,
        queue=queue,
        lane=lane,
        raw_args=args,
        priority=priority,
        run_at=run_at,
        attempt=attempt,
        max_attempts=max_attempts,
        lease=lease,
        worker=worker,
        urgent=kind in urgent,
    )
