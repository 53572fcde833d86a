"""Heartbeats for all jobs of a worker, from a separate thread and connection."""

import threading
import time
from collections.abc import Callable
from typing import Any

import structlog

from harvester.engine import sql
from harvester.engine.connections import Connection, break_off, connect
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import AttemptKey
from harvester.engine.wakeup import StopSignal
from harvester.engine.watchdog import is_answer

log = structlog.get_logger(__name__)

#: Progress that handlers reported, as values and as JSON.
Progress = dict[RunningJob, tuple[dict[str, Any] | None, str | None]]

#: How often progress that a handler reported is written.
PROGRESS_SECONDS = 0.5
#: How soon a beat that could not reach a locked row is tried again.
RETRY_SECONDS = 0.05


class Heartbeat:
    """Beats until it is stopped, also while the worker drains.

    A beat also returns which jobs were asked to stop, and which another worker has taken over.
    """

    def __init__(
        self, held: Callable[[], list[RunningJob]], interval: float, on_cancel: Callable[[RunningJob], None]
    ) -> None:
        self._held = held
        self._interval = interval
        self._on_cancel = on_cancel
        self._wakeup = StopSignal()
        self._hurried = False
        #: Attempts whose rows were locked at the last beat, so that it did not reach them.
        self._skipped: set[AttemptKey] = set()
        self._connection: Connection | None = None
        self._beat_at = time.monotonic()
        self._failing = False
        #: Since when no beat was answered; None if the last one was.
        self.waits_since: float | None = None
        #: When the current beat began.
        self._asked_at: float | None = None
        self._broken_off = False
        self._thread = threading.Thread(target=self._run, name="harvester-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._wakeup.stop()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def hurry(self) -> None:
        """Beat now, because one of the jobs was asked to stop."""
        self._hurried = True
        self._wakeup.wake()

    def break_off_after(self, seconds: float) -> None:
        """Abort a beat that was not answered in this time; the next one gets a new session."""
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > seconds:
            self._broken_off = True
            break_off(self._connection)

    def _run(self) -> None:
        while not self._wakeup.stopping:
            self.beat_if_due()
            self._wakeup.wait(RETRY_SECONDS if self._skipped else min(PROGRESS_SECONDS, self._interval))
        self._drop_connection()

    def beat_if_due(self) -> None:
        """Beat if it is time. No error ends the heartbeat: without it all jobs of this worker would be reassigned."""
        try:
            self._tick()
        except Exception as problem:  # noqa: BLE001 - see above
            if not self._failing:
                log.warning("HEARTBEAT_FAILED", error=str(problem).strip())
            self._failing = True
            self._drop_connection()
            if is_answer(problem) and not self._broken_off:
                self.waits_since = None
        else:
            self._failing = False
            self.waits_since = None
        finally:
            self._asked_at = None
            self._broken_off = False

    def _tick(self) -> None:
        """Beat if due. A failed beat stays due, so that it is repeated as soon as the database is back."""
        jobs = self._held()
        now = time.monotonic()
        due = self._hurried or now - self._beat_at >= self._interval
        self._hurried = False
        if due:
            self._beat_at = float("-inf")
        progress = {job: job.look_at_progress() for job in jobs}
        beating = jobs if due else [job for job in jobs if progress[job][1] is not None or job.key in self._skipped]
        self._skipped = self._beat(beating, progress) if beating else set()
        if due:
            self._beat_at = now

    def _beat(self, jobs: list[RunningJob], progress: Progress) -> set[AttemptKey]:
        """Beat for these jobs; return the attempts that are still held but were not reached."""
        self._asked_at = time.monotonic()
        self.waits_since = self.waits_since or self._asked_at
        if self._connection is None or self._connection.closed:
            self._connection = connect("heartbeat")
        values = {
            "ids": [job.id for job in jobs],
            "leases": [job.lease for job in jobs],
            "progress": [progress[job][1] for job in jobs],
        }
        rows = self._connection.execute(sql.HEARTBEAT, values).fetchall()
        reached = {(job_id, lease): stop for job_id, lease, stop in rows}
        for job in jobs:
            if job.key in reached:
                # Only now: a skipped row may be locked by the end of the job, which then writes the progress.
                job.progress_written(progress[job][0])
            if reached.get(job.key) and not job.cancel_requested:
                job.request_cancel()
                self._on_cancel(job)
        missed = [job for job in jobs if job.key not in reached]
        if not missed:
            return set()
        # A row may be locked for a moment, then its beat is still due; a lease that is gone is lost.
        values = {"ids": [job.id for job in missed], "leases": [job.lease for job in missed]}
        held = {(job_id, lease) for job_id, lease in self._connection.execute(sql.STILL_HELD, values)}
        for job in missed:
            if job.key not in held:
                job.mark_lost()
        return held

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
