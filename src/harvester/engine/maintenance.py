"""Rescue stuck jobs and repair lanes: a loop in each worker and scheduler, not a job, so it cannot be stuck itself."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import structlog

from harvester.engine import sql
from harvester.engine.connections import Connection, break_off, connect
from harvester.engine.events import EngineEvent, emit
from harvester.engine.states import JobState
from harvester.engine.writers import end_frozen_dispatch, end_writers, is_locked_by_its_writers

log = structlog.get_logger(__name__)

#: A transaction that is open longer slows every claim and keeps dead rows from being vacuumed.
OLD_SNAPSHOT_SECONDS = 300

#: No look takes this long; a session that has not answered by then is aborted.
LONGEST_LOOK_SECONDS = 120.0

#: The least time between the two looks that make a job stuck is the stuck time divided by this, even if an operator
#: sets a shorter interval: heartbeats need this time to recover after an outage.
SHARE_BETWEEN_LOOKS = 5


class Silence(NamedTuple):
    """An attempt at a running job without recent heartbeats, and its last heartbeat."""

    job_id: int
    lease: UUID
    heartbeat_at: datetime


@dataclass
class Rescuer:
    """Looks for stuck jobs on one connection.

    After a long database outage, every running job looks stale. A job is therefore taken only if two looks on the same
    unbroken connection, at least `between` seconds apart, found the same last heartbeat, and its row unlocked both
    times: another lock on it also blocks the heartbeats of a running job. (A lock of its own writers does not count:
    they froze between the end of the job and its commit.)

    Attributes:
        stuck_seconds: time without a heartbeat that makes a job suspicious.
        between: least time between the two looks.
        clock: seconds that never run backwards.
    """

    stuck_seconds: float
    between: float
    clock: Callable[[], float] = time.monotonic
    _suspects: dict[Silence, float] = field(default_factory=dict)
    _session: Connection | None = None

    def look(self, connection: Connection) -> list[int]:
        """Look once; return the jobs that were taken."""
        if connection is not self._session:
            self._suspects.clear()
            self._session = connection
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

    def _take(self, connection: Connection, silence: Silence, found: Sequence[Any]) -> bool:
        """Lock the row, end the writers of the old attempt, then take the job; all or nothing.

        The row is locked first, so that no writer of a running job is ended. Whatever a writer does that resumes
        afterwards, it either holds a fence and keeps the job, or finds its lease gone.
        """
        kind, worker, attempt, max_attempts = found[3], *found[5:8]
        error = f"Worker {worker} stopped responding for {self.stuck_seconds:g} s; job reassigned."
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
            failure = {"attempt": attempt, "max_attempts": max_attempts, "error_type": "WORKER_LOST", "error": error}
            log.warning(name, job_id=silence.job_id, job_kind=kind, **failure)
        emit(EngineEvent(name=name, job_id=silence.job_id, fields=fields))
        return True


class Maintenance:
    """Rescues stuck jobs and wakes lanes whose wakeup was lost, once per interval."""

    def __init__(self, stuck_seconds: float, interval: float) -> None:
        self._stuck_seconds = stuck_seconds
        self._interval = interval
        between = max(interval, stuck_seconds / SHARE_BETWEEN_LOOKS)
        self._rescuer = Rescuer(stuck_seconds=stuck_seconds, between=between)
        self._stop = threading.Event()
        self._connection: Connection | None = None
        self._asked_at: float | None = None
        self._reported_old_snapshot = False
        self._thread = threading.Thread(target=self._run, name="harvester-maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def break_off_when_silent(self) -> None:
        """Abort a look whose session does not answer; the next one gets a new session."""
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > LONGEST_LOOK_SECONDS:
            break_off(self._connection)

    def _run(self) -> None:
        while True:
            self._asked_at = time.monotonic()
            try:
                self.once()
            except Exception as problem:  # noqa: BLE001 - no error may end the loop
                log.warning("MAINTENANCE_FAILED", error=str(problem).strip())
                self._drop_connection()
            finally:
                self._asked_at = None
            if self._stop.wait(self._interval):
                break
        self._drop_connection()

    def once(self) -> list[int]:
        if self._connection is None or self._connection.closed:
            self._connection = connect("maintenance")
        end_frozen_dispatch(self._connection, self._stuck_seconds)
        taken = self._rescuer.look(self._connection)
        self._connection.execute(sql.LANES_REPAIR)
        row = self._connection.execute(sql.OLDEST_SNAPSHOT).fetchone()
        seconds = row[0] if row else 0.0
        if seconds > OLD_SNAPSHOT_SECONDS and not self._reported_old_snapshot:
            emit(EngineEvent(name="SNAPSHOT_TOO_OLD", fields={"seconds": seconds}))
        self._reported_old_snapshot = seconds > OLD_SNAPSHOT_SECONDS
        return taken

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
