"""The worker: claims jobs, runs them, records how they ended, and looks after the jobs of dead workers."""

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

from harvester.engine.claim import FULL_LOOK_SECONDS, Claimer
from harvester.engine.connections import Connection, break_off, connect
from harvester.engine.errors import JobTimeout
from harvester.engine.events import EngineEvent, emit
from harvester.engine.execution import execute, execute_async, is_async, timeout_of
from harvester.engine.heartbeat import Heart
from harvester.engine.in_doubt import UnansweredClaims
from harvester.engine.job import RunningJob
from harvester.engine.listener import Listener
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
from harvester.engine.slots import Slots
from harvester.engine.states import JobState
from harvester.engine.wakeup import StopBell
from harvester.engine.watchdog import WIND_DOWN_SECONDS, Watchdog, drain_seconds, end_process, silence_limit
from harvester.engine.writers import end_writers
from harvester.kernel.retry import RetryPolicy

log = structlog.get_logger(__name__)

#: How long a forced ending waits for a fenced transaction that is just being broken off.
FORCE_LOCK_TIMEOUT_MS = 5_000
#: How long the end of a worker waits for each of its threads; they are daemons, and the watchdog still watches.
JOIN_SECONDS = 30.0
#: How long a stopping worker waits between two tries to reach the database.
_WAIT_WHILE_STOPPING = 0.2
_RECONNECT = RetryPolicy(base=0.2, factor=2, cap=10)


def worker_name(configured: str = "") -> str:
    """The name under which a worker's jobs are listed."""
    return configured or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How a worker behaves; every number is a setting.

    Attributes:
        name: the worker's name.
        queues: the queues it serves; empty for all.
        threads: how many jobs it runs at once.
        urgent_slots: how many more it runs of urgent kinds alone.
        poll_seconds: how often it looks for work without being woken.
        heartbeat_seconds: how often it says that its jobs live.
        stuck_seconds: silence after which a job of any worker counts as stuck.
        stale_check_seconds: time between two looks for stuck jobs.
        grace_seconds: how long it may live after it was told to stop; its jobs may go on for all of that but the last
            seconds, in which they are handed back.
        max_jobs: it stops after claiming this many; 0 for no limit.
        until_idle: it stops when nothing is due any more.
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
    """Runs jobs until it is told to stop."""

    def __init__(self, options: WorkerOptions, end_process: Callable[[str], None] = end_process) -> None:
        self.options = options
        self.claimed = 0
        self._bell = StopBell()
        self._endings: deque[Ending] = deque()
        self._unanswered = UnansweredClaims()
        self._held: dict[AttemptKey, RunningJob] = {}
        self._slots = Slots(options.threads, execute, execute_async, self._ended, options.urgent_slots)
        self._claimer = Claimer(worker=options.name, queues=list(options.queues))
        self._heart = Heart(self._held_jobs, options.heartbeat_seconds, self._cancel_async)
        self._listener = Listener(self._notified, self._asked_to_cancel)
        self._maintenance = Maintenance(options.stuck_seconds, options.stale_check_seconds)
        self._connection: Connection | None = None
        self._asked_at: float | None = None
        self._failures = 0
        self._silence_limit = silence_limit(options.stuck_seconds)
        self._watchdog = Watchdog(
            waits_since=lambda: self._heart.waits_since if self._held else None,
            limit=self._silence_limit,
            stopping=lambda: self._bell.stopping,
            stop_seconds=drain_seconds(options.grace_seconds) + WIND_DOWN_SECONDS,
            unblock=self._unblock,
            end=end_process,
        )

    def run(self) -> int:
        """Work until stopped; answers how many jobs were claimed."""
        log.info("WORKER_STARTED", worker=self.options.name, threads=self.options.threads)
        helpers = (self._heart, self._listener, self._maintenance)
        self._watchdog.start()
        for helper in helpers:
            helper.start()
        try:
            while not self._enough():
                self._turn()
            while self._held and not self._bell.stopping:
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
        """Ask the worker to stop; may be called at any time, from a signal handler too, more than once."""
        self._bell.stop()

    # -- one turn -----------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Record what ended, claim what fits, and wait if there was nothing to do."""
        self._bell.hush()
        self._end_overdue()
        room = self._room()
        urgent_room = self._urgent_room(room)
        if not self._endings and not room and not (urgent_room and self._claimer.urgent_wanted):
            self._wait(self._longest_wait())
            return
        claimed = self._exchange(room, urgent_room)
        for job in claimed:
            self._start(job)
        if not claimed and not self._endings:
            self._idle(room)

    def _idle(self, room: int) -> None:
        """Nothing was due: wait for news, or call it a day. With all slots taken, the next turn waits for them."""
        if not room or self._failures:
            return
        if self.options.until_idle and not self._held and not self._claimer.got_lanes:
            self._bell.stop()
            return
        self._wait(self._longest_wait())

    def _wait(self, seconds: float) -> None:
        if not self._bell.stopping or self._slots.busy:
            self._bell.wait(seconds)
            self._claimer.rested()

    def _room(self) -> int:
        if self._bell.stopping:
            return 0
        room = self._slots.free
        if self.options.max_jobs:
            room = min(room, self.options.max_jobs - self.claimed)
        return max(room, 0)

    def _urgent_room(self, room: int) -> int:
        """Slots that only urgent jobs can take, once `room` other jobs were claimed."""
        if self._bell.stopping:
            return 0
        left = self._slots.free_for_urgent - room
        if self.options.max_jobs:
            left = min(left, self.options.max_jobs - self.claimed - room)
        return max(left, 0)

    def _longest_wait(self) -> float:
        waits = [self.options.poll_seconds]
        if not self._slots.free:
            waits.append(FULL_LOOK_SECONDS)
        if self._claimer.next_in is not None and self._slots.free:
            waits.append(max(self._claimer.next_in, 0.001))
        deadlines = [job.deadline for job in self._slots.active() if job.deadline is not None]
        waits += [max(deadline - time.monotonic(), 0.001) for deadline in deadlines]
        return min(waits)

    def _enough(self) -> bool:
        """Told to stop, or as many jobs claimed as it may."""
        reached = self.options.max_jobs and self.claimed >= self.options.max_jobs
        return bool(reached) or self._bell.stopping

    def _start(self, job: RunningJob) -> None:
        limit = timeout_of(job)
        job.deadline = time.monotonic() + limit if limit else None
        self._slots.submit(job, is_async=is_async(job))

    # -- the database -------------------------------------------------------------------------------------------

    def _unblock(self) -> None:
        """Break off what waits for too long on one session: a new one may be answered."""
        self._heart.break_off_after(self._silence_limit / 2)
        self._maintenance.break_off_when_silent()
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > self._silence_limit:
            break_off(self._connection)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Note that the dispatch session waits for an answer, so that `_unblock` can break it off."""
        self._asked_at = time.monotonic()
        try:
            yield
        finally:
            self._asked_at = None

    def _exchange(self, room: int, urgent_room: int = 0) -> list[RunningJob]:
        """Write endings and claim, in one transaction.

        While the database is away nothing is lost: endings wait here, and their leases keep them from overwriting
        what happened meanwhile.
        """
        endings = [self._endings.popleft() for _ in range(len(self._endings))]
        lease = uuid4()
        try:
            with self._asking():
                connection = self._connected()
                # A pipeline is one transaction, which its end commits. To wait for the answer to every statement would
                # each time hand the interpreter to all handlers that are ready to run, with the database idle.
                with connection.pipeline(), connection.cursor() as settling:
                    endings += self._unanswered.endings(connection)
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
                self._unanswered.add(lease)
            self._database_lost(problem)
            return []
        self._failures = 0
        self._settled(endings, settled)
        self.claimed += len(claimed)
        self._held.update((job.key, job) for job in claimed)
        return claimed

    def _settle_one_by_one(self, endings: list[Ending], problem: psycopg.DataError) -> None:
        """One ending holds something the database refuses: it alone is written in plainer words."""
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
                self._claimer.lanes_stirred = True
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
        if self._bell.stopping:
            time.sleep(min(wait, _WAIT_WHILE_STOPPING))
        else:
            self._bell.pause(wait)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- news from other threads --------------------------------------------------------------------------------

    def _held_jobs(self) -> list[RunningJob]:
        return list(self._held.copy().values())

    def _ended(self, job: RunningJob, ending: Ending | None) -> None:
        """A handler returned and its slot is free."""
        if ending is None:
            self._held.pop(job.key, None)
            self._claimer.lanes_stirred = self._claimer.lanes_stirred or job.lane is not None
        else:
            self._endings.append(ending)
        self._bell.ring()

    def _notified(self, announced: tuple[str, int] | None) -> None:
        if announced is None:
            self._claimer.lanes_stirred = True
        elif not self.options.queues or announced[0] in self.options.queues:
            self._claimer.announce(*announced)
        else:
            return
        self._bell.ring()

    def _asked_to_cancel(self, job_id: int) -> None:
        if any(job.id == job_id for job in self._held_jobs()):
            self._heart.hurry()

    def _cancel_async(self, job: RunningJob) -> None:
        self._slots.cancel_task(job)

    # -- endings by force ---------------------------------------------------------------------------------------

    def _end_overdue(self) -> None:
        for job in self._slots.active():
            if job.overdue:
                log.warning("JOB_TIMED_OUT", job_id=job.id, job_kind=job.kind)
                error = JobTimeout(f"{job.kind} ran longer than {timeout_of(job):g} s; the attempt was broken off.")
                self._end_by_force([(job, ended_by(job, error, kind_of(job.kind).retry))])

    def _end_by_force(self, ends: list[tuple[RunningJob, Ending | None]]) -> None:
        """End attempts whose handlers have not returned: break off their sessions first, then take the rows."""
        for job, ending in ends:
            if ending is None or not self._force(job, ending):
                continue
            self._slots.abandon(job)
            self._held.pop(job.key, None)
            if job.lane is not None:
                self._claimer.lanes_stirred = True

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
        """Claim nothing more; let jobs finish within the grace time, then hand the rest back."""
        deadline = time.monotonic() + drain_seconds(self.options.grace_seconds)
        self._bell.stop()
        while (self._slots.busy or self._endings) and time.monotonic() < deadline:
            self._bell.hush()
            self._end_overdue()
            if self._endings:
                self._exchange(0)
            else:
                self._bell.wait(min(0.2, deadline - time.monotonic()))
        self._hand_back()

    def _hand_back(self) -> None:
        if self._endings or self._unanswered:
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
    """Log and tell how an attempt ended, once it is committed."""
    if state is None:
        log.warning("JOB_LEASE_LOST", job_id=ending.job_id, would_have_been=ending.state.value)
        return
    if state == JobState.SUCCEEDED:
        log.debug("JOB_SUCCEEDED", job_id=ending.job_id)
        return
    kind = job.kind if job else None
    fields = {"kind": kind, "error_type": ending.error_type, "error": ending.error}
    told: dict[str, Any] = {"job_kind": kind, "error_type": ending.error_type}
    if state in (JobState.FAILED, JobState.RETRYABLE):
        told |= {"attempt": job and job.attempt, "max_attempts": job and job.max_attempts, "error": ending.error}
    if state == JobState.RETRYABLE:
        told["next_run_at"] = (datetime.now(UTC) + timedelta(seconds=ending.delay or 0)).isoformat()
    tell = log.warning if state == JobState.FAILED else log.info
    tell(_ENDED_EVENTS[JobState(state)], job_id=ending.job_id, **told)
    if state == JobState.FAILED:
        emit(EngineEvent(name="JOB_FAILED", job_id=ending.job_id, fields=fields))
    if ending.unknown:
        emit(EngineEvent(name="JOB_ERROR_UNKNOWN", job_id=ending.job_id, fields=fields))
