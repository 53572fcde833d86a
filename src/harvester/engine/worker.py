"""The worker: claims jobs, runs them, records their endings, and rescues the jobs of dead workers."""

import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import structlog

from harvester.engine.claim import FULL_LOOK_SECONDS, Claimer, ClaimsInDoubt
from harvester.engine.connections import Connection, break_off, connect
from harvester.engine.errors import JobTimeout
from harvester.engine.events import EngineEvent, emit
from harvester.engine.heartbeat import Heartbeat
from harvester.engine.job import RunningJob
from harvester.engine.maintenance import Maintenance
from harvester.engine.outcomes import (
    AttemptKey,
    Ending,
    ended_by,
    handed_back,
    read_settled,
    settle_in,
    unwritable,
    write_endings,
)
from harvester.engine.registry import kind_of
from harvester.engine.slots import Slots, execute, execute_async, is_async, timeout_of
from harvester.engine.states import JobState
from harvester.engine.wakeup import Listener, StopSignal
from harvester.engine.watchdog import WIND_DOWN_SECONDS, Watchdog, drain_seconds, end_process, silence_limit
from harvester.engine.writers import end_writers
from harvester.kernel.retry import RetryPolicy

log = structlog.get_logger(__name__)

#: How long a forced ending waits for a fenced transaction that is being aborted.
FORCE_LOCK_TIMEOUT_MS = 5_000
#: How long a stopping worker waits for each of its threads; they are daemons, and the watchdog is still active.
JOIN_SECONDS = 30.0
#: How long a stopping worker waits between two attempts to reach the database.
_WAIT_WHILE_STOPPING = 0.2
_RECONNECT = RetryPolicy(base=0.2, factor=2, cap=10)


def worker_name(configured: str = "") -> str:
    """Return the configured name of the worker, or a unique one."""
    return configured or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The options of a worker; every number is a setting.

    Attributes:
        name: the worker's name.
        queues: the queues it serves; empty for all.
        threads: how many jobs it runs at once.
        urgent_slots: how many more jobs of urgent kinds it runs.
        poll_seconds: how often it looks for jobs without a notification.
        heartbeat_seconds: time between heartbeats of its jobs.
        stuck_seconds: time without a heartbeat after which a job of any worker counts as stuck.
        stale_check_seconds: time between two looks for stuck jobs.
        grace_seconds: how long stopping may take; in the last seconds of it, unfinished jobs are handed back.
        max_jobs: it stops after claiming this many; 0 for no limit.
        until_idle: it stops when no job is due.
    """

    name: str = field(default_factory=worker_name)
    queues: tuple[str, ...] = ()
    threads: int = 8
    urgent_slots: int = 1
    poll_seconds: float = 5.0
    heartbeat_seconds: float = 20.0
    stuck_seconds: float = 300.0
    stale_check_seconds: float = 60.0
    grace_seconds: float = 30.0
    max_jobs: int = 0
    until_idle: bool = False


class Worker:
    """Runs jobs until it is stopped."""

    def __init__(self, options: WorkerOptions, end_process: Callable[[str], None] = end_process) -> None:
        self.options = options
        self.claimed = 0
        self._wakeup = StopSignal()
        self._endings: deque[Ending] = deque()
        self._in_doubt = ClaimsInDoubt()
        self._held: dict[AttemptKey, RunningJob] = {}
        self._slots = Slots(options.threads, execute, execute_async, self._ended, options.urgent_slots)
        self._claimer = Claimer(worker=options.name, queues=list(options.queues))
        self._heartbeat = Heartbeat(self._held_jobs, options.heartbeat_seconds, self._slots.cancel_task)
        self._listener = Listener(self._notified, self._cancel_requested)
        self._maintenance = Maintenance(options.stuck_seconds, options.stale_check_seconds)
        self._connection: Connection | None = None
        self._asked_at: float | None = None
        self._failures = 0
        self._silence_limit = silence_limit(options.stuck_seconds)
        self._watchdog = Watchdog(
            waits_since=lambda: self._heartbeat.waits_since if self._held else None,
            limit=self._silence_limit,
            stopping=lambda: self._wakeup.stopping,
            stop_seconds=drain_seconds(options.grace_seconds) + WIND_DOWN_SECONDS,
            unblock=self._unblock,
            end=end_process,
        )

    def run(self) -> int:
        """Run until stopped; return how many jobs were claimed."""
        log.info("WORKER_STARTED", worker=self.options.name, threads=self.options.threads)
        helpers = (self._heartbeat, self._listener, self._maintenance)
        self._watchdog.start()
        for helper in helpers:
            helper.start()
        try:
            while not self._wakeup.stopping and not 0 < self.options.max_jobs <= self.claimed:
                self._turn()
            while self._held and not self._wakeup.stopping:
                self._turn()
            self._drain()
        finally:
            self._slots.close()
            for helper in helpers:
                helper.stop()
            for helper in helpers:
                helper.join(JOIN_SECONDS)
            self._drop_connection()
            self._watchdog.stop()
            log.info("WORKER_STOPPED", worker=self.options.name, claimed=self.claimed)
        return self.claimed

    def stop(self) -> None:
        """Ask the worker to stop; may be called more than once, also from a signal handler."""
        self._wakeup.stop()

    # -- one turn -----------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Record endings, claim jobs for the free slots, and wait if there was nothing to do."""
        self._wakeup.clear()
        self._end_overdue()
        self._slots.lend()
        room, urgent_room = self._room()
        if not self._endings and not room and not (urgent_room and self._claimer.may_have_urgent):
            self._wait()
            return
        claimed = self._exchange(room, urgent_room)
        for job in claimed:
            limit = timeout_of(job)
            job.deadline = time.monotonic() + limit if limit else None
            self._slots.submit(job, is_async=is_async(job))
        # With all slots taken, the next turn waits for them.
        if claimed or self._endings or not room or self._failures:
            return
        if self.options.until_idle and not self._held and not self._claimer.has_lanes:
            self._wakeup.stop()
        else:
            self._wait()

    def _wait(self) -> None:
        if not self._wakeup.stopping or self._slots.busy:
            self._wakeup.wait(self._longest_wait())
            self._claimer.allow_lane_look()

    def _room(self) -> tuple[int, int]:
        """Return the slots for any jobs, and those that only urgent jobs can take once the others are taken."""
        if self._wakeup.stopping:
            return 0, 0
        room, all_room = self._slots.free, self._slots.free_for_urgent
        if self.options.max_jobs:
            left = self.options.max_jobs - self.claimed
            room, all_room = min(room, left), min(all_room, left)
        room = max(room, 0)
        return room, max(all_room - room, 0)

    def _longest_wait(self) -> float:
        waits = [self.options.poll_seconds]
        if not self._slots.free:
            waits += [FULL_LOOK_SECONDS, self._slots.lends_in]
        if self._claimer.next_in is not None and self._slots.free:
            waits.append(max(self._claimer.next_in, 0.001))
        deadlines = [job.deadline for job in self._slots.active() if job.deadline is not None]
        waits += [max(deadline - time.monotonic(), 0.001) for deadline in deadlines]
        return min(waits)

    # -- the database -------------------------------------------------------------------------------------------

    def _unblock(self) -> None:
        """Abort sessions that wait too long: a new one may be answered."""
        self._heartbeat.break_off_after(self._silence_limit / 2)
        self._maintenance.break_off_when_silent()
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > self._silence_limit:
            break_off(self._connection)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Note that the dispatch session waits for an answer, so that `_unblock` can abort it."""
        self._asked_at = time.monotonic()
        try:
            yield
        finally:
            self._asked_at = None

    def _exchange(self, room: int, urgent_room: int = 0) -> list[RunningJob]:
        """Write endings and claim, in one transaction.

        Nothing is lost while the database is unavailable: endings wait here, and their leases keep them from
        overwriting later changes.
        """
        endings = [self._endings.popleft() for _ in range(len(self._endings))]
        lease = uuid4()
        try:
            with self._asking():
                connection = self._connected()
                # A pipeline is one transaction, committed at its end. Each wait for the answer to one statement would
                # give the interpreter to all ready handlers, with the database idle.
                with connection.pipeline(), connection.cursor() as settling:
                    endings += self._in_doubt.endings(connection)
                    write_endings(settling, endings)
                    claimed = self._claimer.claim(connection, room, lease) if room else []
                    if urgent_room and len(claimed) == room:
                        claimed += self._claimer.claim_urgent(connection, urgent_room, lease)
                    settled = read_settled(settling) if endings else {}
        except psycopg.DataError as problem:
            if not endings:
                self._database_lost(problem)
            self._settle_one_by_one(endings, problem)
            return []
        except psycopg.Error as problem:
            self._endings.extendleft(reversed(endings))
            if (room or urgent_room) and self._connection is not None:
                self._in_doubt.add(lease)
            self._database_lost(problem)
            return []
        self._failures = 0
        self._settled(endings, settled)
        self.claimed += len(claimed)
        self._held.update((job.key, job) for job in claimed)
        return claimed

    def _settle_one_by_one(self, endings: list[Ending], problem: psycopg.DataError) -> None:
        """Write each ending alone, because the database rejects one; only that one becomes a minimal ending."""
        log.error("ENDING_NOT_STORED", error=str(problem).strip())
        for ending in endings:
            try:
                with self._asking(), self._connected().cursor() as cursor:
                    self._settled([ending], settle_in(cursor, [ending]))
            except psycopg.DataError as reason:
                self._endings.append(unwritable(ending, reason))
            except psycopg.Error:
                self._endings.append(ending)

    def _settled(self, endings: list[Ending], settled: dict[AttemptKey, str]) -> None:
        for ending in endings:
            job = self._held.pop(ending.key, None)
            if job is not None and job.lane is not None:
                self._claimer.lanes_changed = True
            _report(ending, settled.get(ending.key), job)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect("dispatch")
            self._claimer.forget()
        return self._connection

    def _database_lost(self, problem: psycopg.Error) -> None:
        self._failures += 1
        wait = _RECONNECT.wait(self._failures, 0)
        log.warning("DATABASE_LOST", error=str(problem).strip(), retry_in=wait)
        self._drop_connection()
        self._claimer.forget()
        if self._wakeup.stopping:
            time.sleep(min(wait, _WAIT_WHILE_STOPPING))
        else:
            self._wakeup.pause(wait)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- calls from other threads -------------------------------------------------------------------------------

    def _held_jobs(self) -> list[RunningJob]:
        return list(self._held.copy().values())

    def _ended(self, job: RunningJob, ending: Ending | None) -> None:
        """Record that a handler returned and its slot is free."""
        if ending is None:
            self._held.pop(job.key, None)
            self._claimer.lanes_changed = self._claimer.lanes_changed or job.lane is not None
        else:
            self._endings.append(ending)
        self._wakeup.wake()

    def _notified(self, announced: tuple[str, int] | None) -> None:
        if announced is None:
            self._claimer.lanes_changed = True
        elif not self.options.queues or announced[0] in self.options.queues:
            self._claimer.announce(*announced)
        else:
            return
        self._wakeup.wake()

    def _cancel_requested(self, job_id: int) -> None:
        if any(job.id == job_id for job in self._held_jobs()):
            self._heartbeat.hurry()

    # -- endings by force ---------------------------------------------------------------------------------------

    def _end_overdue(self) -> None:
        for job in self._slots.active():
            if job.overdue:
                log.warning("JOB_TIMED_OUT", job_id=job.id, job_kind=job.kind)
                error = JobTimeout(f"{job.kind} ran longer than {timeout_of(job):g} s; the attempt was aborted.")
                self._end_by_force([(job, ended_by(job, error, kind_of(job.kind).retry))])

    def _end_by_force(self, ends: list[tuple[RunningJob, Ending | None]]) -> None:
        """End attempts whose handlers have not returned: end their sessions first, then lock the rows."""
        for job, ending in ends:
            if ending is None or not self._force(job, ending):
                continue
            self._slots.abandon(job)
            self._held.pop(job.key, None)
            if job.lane is not None:
                self._claimer.lanes_changed = True

    def _force(self, job: RunningJob, ending: Ending) -> bool:
        try:
            with self._asking():
                connection = self._connected()
                end_writers(connection, job.id, job.lease)
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {FORCE_LOCK_TIMEOUT_MS}")
                    settled = settle_in(cursor, [ending], by_force=True)
        except psycopg.errors.LockNotAvailable:
            log.warning("JOB_HELD_BY_ITS_TRANSACTION", job_id=job.id)
            return False
        except psycopg.Error as problem:
            self._database_lost(problem)
            return False
        _report(ending, settled.get(job.key), job)
        return True

    # -- stopping -----------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Claim nothing more; let jobs finish within the grace time, then hand back the others."""
        deadline = time.monotonic() + drain_seconds(self.options.grace_seconds)
        self._wakeup.stop()
        while (self._slots.busy or self._endings) and time.monotonic() < deadline:
            self._wakeup.clear()
            self._end_overdue()
            if self._endings:
                self._exchange(0)
            else:
                self._wakeup.wait(min(0.2, deadline - time.monotonic()))
        self._hand_back()

    def _hand_back(self) -> None:
        if self._endings or self._in_doubt:
            self._exchange(0)
        left = self._slots.active()
        for job in left:
            log.warning("JOB_HANDED_BACK", job_id=job.id, job_kind=job.kind)
        self._end_by_force([(job, handed_back(job)) for job in left])
        if self._endings:
            self._exchange(0)


_ENDED_EVENTS = {
    JobState.PENDING: "JOB_PUT_BACK",
    JobState.RETRYABLE: "JOB_RETRYABLE",
    JobState.FAILED: "JOB_FAILED",
    JobState.CANCELLED: "JOB_CANCELLED",
}


def _report(ending: Ending, state: str | None, job: RunningJob | None) -> None:
    """Log how an attempt ended, and emit events, once it is committed."""
    if state is None:
        log.warning("JOB_LEASE_LOST", job_id=ending.job_id, would_have_been=ending.state.value)
        return
    if state == JobState.SUCCEEDED:
        log.debug("JOB_SUCCEEDED", job_id=ending.job_id)
        return
    kind = job.kind if job else None
    fields = {"kind": kind, "error_type": ending.error_type, "error": ending.error}
    logged: dict[str, Any] = {"job_kind": kind, "error_type": ending.error_type}
    if state in (JobState.FAILED, JobState.RETRYABLE):
        logged |= {"attempt": job and job.attempt, "max_attempts": job and job.max_attempts, "error": ending.error}
    if state == JobState.RETRYABLE:
        logged["next_run_at"] = (datetime.now(UTC) + timedelta(seconds=ending.delay or 0)).isoformat()
    write = log.warning if state == JobState.FAILED else log.info
    write(_ENDED_EVENTS[JobState(state)], job_id=ending.job_id, **logged)
    if state == JobState.FAILED:
        emit(EngineEvent(name="JOB_FAILED", job_id=ending.job_id, fields=fields))
    if ending.unknown:
        emit(EngineEvent(name="JOB_ERROR_UNKNOWN", job_id=ending.job_id, fields=fields))
