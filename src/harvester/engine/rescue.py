"""Taking jobs from workers that are dead or frozen."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import structlog

from harvester.engine import sql
from harvester.engine.connections import Connection
from harvester.engine.events import EngineEvent, emit
from harvester.engine.states import JobState
from harvester.engine.writers import end_writers, is_locked_by_its_writers

log = structlog.get_logger(__name__)


class Silence(NamedTuple):
    """A running job that has not been heard of: which attempt, and its last sign of life."""

    job_id: int
    lease: UUID
    heartbeat_at: datetime


@dataclass
class Rescuer:
    """Looks for stuck jobs on one connection.

    After the database was away for long, every living job looks stale. A job is therefore taken only when two
    looks on the same unbroken connection, at least `between` seconds apart, found the same last heartbeat, and its
    row free both times: somebody's lock on it keeps the heartbeats of a living job out. (A lock of its own writers does
    not count: they froze between the end of the job and its commit.)

    Attributes:
        stuck_seconds: silence that makes a job suspicious.
        between: least time between the two looks.
        clock: seconds that never run backwards.
    """

    stuck_seconds: float
    between: float
    clock: Callable[[], float] = time.monotonic
    _suspects: dict[Silence, float] = field(default_factory=dict)
    _session: Connection | None = None

    def look(self, connection: Connection) -> list[int]:
        """Look once; answers the jobs that were taken."""
        self._notice_new_session(connection)
        now = self.clock()
        rows = connection.execute(sql.STUCK, {"stuck": self.stuck_seconds}).fetchall()
        values = {"stuck": self.stuck_seconds, "seen": [row[0] for row in rows]}
        locked = connection.execute(sql.STUCK_AND_LOCKED, values).fetchall()
        ending = [row for row in locked if is_locked_by_its_writers(connection, row[1], row[8])]
        seen = {Silence(row[0], row[1], row[2]): row for row in [*rows, *ending]}
        self._suspects = {silence: self._suspects.get(silence, now) for silence in seen}
        taken = []
        for silence, row in seen.items():
            if now - self._suspects[silence] < self.between:
                continue
            if row in ending:
                end_writers(connection, silence.job_id, silence.lease)
            if self._take(connection, silence, row):
                taken.append(silence.job_id)
        return taken

    def _notice_new_session(self, connection: Connection) -> None:
        if connection is not self._session:
            self._suspects.clear()
            self._session = connection

    def _take(self, connection: Connection, silence: Silence, found: Sequence[Any]) -> bool:
        """Lock the row, end what is left of the old attempt, then take the job; all or nothing.

        The row comes first, so that no writer of a living job is ended. Whatever a writer that thaws does afterwards,
        it either holds a fence, and the job stays with it, or finds the lease gone.
        """
        kind, worker, attempt, max_attempts = found[3], *found[5:8]
        error = f"Worker {worker} was not heard of for {self.stuck_seconds:g} s and lost the job."
        values = {**silence._asdict(), "id": silence.job_id, "error": error}
        try:
            with connection.transaction():
                if connection.execute(sql.RESCUE_LOCK, values).fetchone() is None:
                    return False
                end_writers(connection, silence.job_id, silence.lease)
                row = connection.execute(sql.RESCUE, values).fetchone()
        except psycopg.errors.LockNotAvailable:
            log.warning("JOB_HELD_BY_ITS_TRANSACTION", job_id=silence.job_id)
            return False
        if row is None:
            return False
        self._suspects.pop(silence, None)
        log.warning("JOB_RESCUED", job_id=silence.job_id, lost_by=worker, state=row[0])
        fields = {"kind": kind, "worker": worker, "error": error}
        name = "JOB_RESCUED"
        if row[0] == JobState.FAILED:
            name = "JOB_FAILED"
            told = {"attempt": attempt, "max_attempts": max_attempts, "error_type": "WORKER_LOST", "error": error}
            log.warning(name, job_id=silence.job_id, job_kind=kind, **told)
        emit(EngineEvent(name=name, job_id=silence.job_id, fields=fields))
        return True
