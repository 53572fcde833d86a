"""Choosing the next jobs: priority, then first in, first out, and no lane beyond its concurrency."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from harvester.engine import sql
from harvester.engine.connections import Connection
from harvester.engine.job import RunningJob
from harvester.engine.registry import URGENT_PRIORITY, urgent_kinds

#: Seconds between two looks from the very beginning while remembered places keep all slots busy. A job that was
#: committed late, or handed back by a rolled-back claim, waits no longer than this.
FULL_LOOK_SECONDS = 5.0
#: While jobs without a lane fill all slots faster than they can be claimed, lanes are looked at no more often than
#: this: each look costs more than a claim. When slots stay free, or the worker waits for one, that does not matter and
#: lanes are looked at right away.
LANE_PACE_SECONDS = 0.1
#: What is due but locked by another claimer is asked for again after this long: that one may leave it.
RETRY_SECONDS = 0.05
#: Where the last claim ended, by queue and priority.
Places = dict[tuple[str, int], tuple[datetime, int]]
_BEGINNING = (datetime.min.replace(tzinfo=UTC), 0)


@dataclass
class Claimer:
    """Claims for one worker, and remembers where it claimed last.

    Without the memory, every claim would step over all rows that were claimed before and that an old snapshot
    elsewhere (a dump, a report) keeps from being cleaned up.
    """

    worker: str
    queues: list[str]
    #: Something happened to a lane since it was last looked at.
    lanes_stirred: bool = True
    #: Seconds until the next job that is known to come due; None when none is known.
    next_in: float | None = None
    #: Queues and priorities of jobs that were announced since the last claim.
    _announced: set[tuple[str, int]] = field(default_factory=set)
    _places: Places = field(default_factory=dict)
    #: Pairs in which no urgent job was left when last asked.
    _without_urgent: set[tuple[str, int]] = field(default_factory=set)
    #: The lanes that the last look found due; more may be, also when none of these had a job.
    _lanes: list[tuple[str, str]] = field(default_factory=list)
    _wakeups_read: int = 0
    _wakeups_left: bool = False
    _looked_at: float = float("-inf")
    _lanes_looked_at: float = float("-inf")

    def claim(self, connection: Connection, most: int, lease: UUID | None = None) -> list[RunningJob]:
        """Take up to `most` due jobs under a lease, in a transaction that the caller has opened.

        The lease is the caller's, because only then can it ask what became of a claim that was never answered.
        """
        lease = lease or uuid4()
        jobs: list[RunningJob] = []
        if time.monotonic() - self._looked_at <= FULL_LOOK_SECONDS:
            self._hear()
            jobs = self._take(connection, most, lease)
        if len(jobs) < most:
            before = self._lanes
            coming = self._look(connection)
            jobs += self._take(connection, most - len(jobs), lease)
            more_lanes = bool(jobs) or self._lanes != before
            self.next_in = self._plan(connection, coming, filled=len(jobs) == most, more_lanes=more_lanes)
        return jobs

    def claim_urgent(self, connection: Connection, most: int, lease: UUID) -> list[RunningJob]:
        """Take due jobs of urgent kinds for the slot that is kept for them; asks nothing while none is known of.

        Urgent jobs in a lane wait for an ordinary slot.
        """
        self._hear()
        if time.monotonic() - self._looked_at > FULL_LOOK_SECONDS:
            self._look(connection)
        places = {pair: self._places[pair] for pair in self._urgent_pairs()}
        if not places:
            return []
        values = {**self._searched(places, most, lease), "kinds": urgent_kinds()}
        # The places stay: jobs of other kinds may wait in front of these.
        jobs = self._running(connection.execute(sql.CLAIM_URGENT, values).fetchall())
        if len(jobs) < most:
            self._without_urgent.update(places)
        return jobs

    @property
    def urgent_wanted(self) -> bool:
        """Something urgent may wait: it was announced or seen, or it is time to look."""
        looked_long_ago = time.monotonic() - self._looked_at > FULL_LOOK_SECONDS
        announced = any(priority >= URGENT_PRIORITY for _, priority in self._announced.copy())
        return looked_long_ago or announced or bool(self._urgent_pairs())

    def _urgent_pairs(self) -> list[tuple[str, int]]:
        return [pair for pair in self._places if pair[1] >= URGENT_PRIORITY and pair not in self._without_urgent]

    @property
    def got_lanes(self) -> bool:
        return bool(self._lanes)

    def announce(self, queue: str, priority: int) -> None:
        """A job was enqueued; may be called from any thread.

        Without this a priority that nobody waited in before would be noticed only by the next full look.
        """
        self._announced.add((queue, priority))
        self.lanes_stirred = True

    def forget(self) -> None:
        """Start from the beginning, after the connection was lost."""
        self._places.clear()
        self._looked_at = float("-inf")

    def rested(self) -> None:
        """The worker had to wait, so it has the time for another look at the lanes."""
        self._lanes_looked_at = float("-inf")

    def _hear(self) -> None:
        while self._announced:
            pair = self._announced.pop()
            self._places.setdefault(pair, _BEGINNING)
            self._without_urgent.discard(pair)

    def _look(self, connection: Connection) -> float | None:
        """Find the pairs in which jobs are due; answers when the next one is."""
        self._announced.clear()
        self._without_urgent.clear()
        rows = connection.execute(sql.LOOK, {"queues": self.queues}).fetchall()
        self._places = {(queue, priority): _BEGINNING for queue, priority, due, _ in rows if due}
        self.lanes_stirred = True
        self._lanes_looked_at = float("-inf")
        self._wakeups_read = 0
        self._looked_at = time.monotonic()
        return min((row[3] for row in rows if row[3] is not None), default=None)

    def _plan(self, connection: Connection, job_in: float | None, *, filled: bool, more_lanes: bool) -> float | None:
        """When to look again without being woken.

        Read after the claim, because that is what lists new lanes. What is due and was not to be had is locked by
        somebody else, perhaps for long: so is a lane that comes again and again without a job.
        """
        coming = [] if job_in is None else [job_in]
        row = connection.execute(sql.LANES_NEXT, {"queues": self.queues}).fetchone()
        if row is not None:
            coming.append(max(row[0], 0.0 if self.got_lanes and more_lanes else RETRY_SECONDS))
        if self._wakeups_left or (self._places and not filled):
            coming.append(RETRY_SECONDS)
        return min(coming, default=None)

    def _take(self, connection: Connection, most: int, lease: UUID) -> list[RunningJob]:
        lanes = self._lock_lanes(connection, most) if self._lanes_wanted() else []
        if not lanes and not self._places:
            return []
        values = self._searched(self._places, most, lease)
        values |= {"lane_queues": [queue for queue, _ in lanes], "lanes": [lane for _, lane in lanes]}
        rows = connection.execute(sql.CLAIM_WITH_LANES if lanes else sql.CLAIM, values).fetchall()
        if lanes:
            connection.execute(sql.LANES_SLEEP, values)
        jobs = self._running(rows)
        self._remember(jobs)
        return jobs

    def _searched(self, places: Places, most: int, lease: UUID) -> dict[str, Any]:
        """The values of a claim that starts behind these places."""
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

    def _remember(self, jobs: list[RunningJob]) -> None:
        for job in jobs:
            pair = (job.queue, job.priority)
            if job.lane is None and pair in self._places:
                self._places[pair] = max(self._places[pair], (job.run_at, job.id))

    def _lanes_wanted(self) -> bool:
        return self.lanes_stirred and time.monotonic() - self._lanes_looked_at >= LANE_PACE_SECONDS

    def _lock_lanes(self, connection: Connection, most: int) -> list[tuple[str, str]]:
        self.lanes_stirred = False
        self._lanes_looked_at = time.monotonic()
        values = {"queues": self.queues, "after": self._wakeups_read, "most": most}
        newest, left = connection.execute(sql.LANES_WAKE, values).fetchone() or (None, 0)
        self._wakeups_read = self._wakeups_read if newest is None else newest
        self._wakeups_left = left > 0
        self._lanes = connection.execute(sql.LANES_LOCK, values).fetchall()
        if self._lanes:
            self.lanes_stirred = True
        return self._lanes


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
