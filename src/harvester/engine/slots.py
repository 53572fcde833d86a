"""Run handlers in a fixed number of slots, each a thread or a task of one event loop."""

import asyncio
import contextlib
import inspect
import json
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connections

from harvester.engine.errors import BadArgs, JobCancelled, LeaseLost
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import Ending, ended_by, succeeded
from harvester.engine.registry import Kind, kind_of
from harvester.guards.logs import log_context
from harvester.kernel.retry import RetryPolicy

Execute = Callable[[RunningJob], Ending | None]
ExecuteAsync = Callable[[RunningJob], Awaitable[Ending | None]]
Done = Callable[[RunningJob, Ending | None], None]


#: How long cancelled coroutines may clean up when the worker ends.
FAREWELL_SECONDS = 1.0
#: A job that has only waited for so long lends its slot. Most servers answer sooner, and then nothing has to be done.
LENT_AFTER_SECONDS = 0.5
#: The same for a lane whose last job waited longer than that: its server probably does not answer now either. Enough
#: for most connections, so that the slot is lent once, for the answer.
LENT_AGAIN_AFTER_SECONDS = 0.1
#: Slots that a worker lends at the same time: each costs a thread and what its server has sent so far.
MOST_LENT = 100
#: How long a job whose wait is over waits for a slot; with all of them taken by long jobs it then goes on without one.
RETURN_SECONDS = 5.0


@dataclass(eq=False)
class _Wait:
    """A job's wait for somebody outside: since when, and the database sessions of its thread."""

    since: float
    sessions: list[Any]
    #: The slot was lent, and the sessions were closed.
    is_lent: bool = False


class Slots:
    """Runs at most `size` jobs at once and reports each ending after its slot is free again.

    A job that only waits for somebody outside (`RunningJob.waiting`) lends its slot if all are taken, and gives up its
    database session. So some unresponsive servers keep no other job from running.

    More slots are reserved for urgent jobs. They fill those first and then ordinary slots, so that an urgent job can
    start even if ordinary jobs take all other slots.

    Threads are daemons on purpose: a handler that never returns must not keep the process alive after its job was
    handed back.
    """

    def __init__(
        self, size: int, execute: Execute, execute_async: ExecuteAsync, done: Done, kept_for_urgent: int = 0
    ) -> None:
        self.size = size
        self._kept = kept_for_urgent
        self._execute = execute
        self._execute_async = execute_async
        self._done = done
        self._work: queue.SimpleQueue[RunningJob | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._slot_left = threading.Condition(self._lock)
        self._active: set[RunningJob] = set()
        #: The jobs that only wait, the first one first; of abandoned ones too.
        self._waits: dict[RunningJob, _Wait] = {}
        self._lent: set[RunningJob] = set()
        #: Jobs whose wait is over, and which need a slot again.
        self._returning: set[RunningJob] = set()
        #: Lanes whose last job that waited could have lent its slot.
        self._slow_lanes: set[str | None] = set()
        self._queued = 0
        self._idle = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[RunningJob, asyncio.Task[None]] = {}

    @property
    def free(self) -> int:
        """Slots that any job may take."""
        with self._lock:
            return max(self._free_without(self._lent), 0)

    @property
    def free_for_urgent(self) -> int:
        """Slots that an urgent job may take: the free ones and the reserved ones."""
        with self._lock:
            return max(self.size + self._kept - len(self._active - self._lent), 0)

    def _free_without(self, others: Iterable[RunningJob]) -> int:
        """Return the ordinary slots that active jobs other than these leave free; negative if they have too many."""
        holders = self._active.difference(others)
        urgent = sum(job.urgent for job in holders)
        return self.size - (len(holders) - urgent) - max(urgent - self._kept, 0)

    @property
    def busy(self) -> int:
        return len(self._active)

    def active(self) -> list[RunningJob]:
        """The jobs whose handlers have not returned."""
        with self._lock:
            return list(self._active)

    def submit(self, job: RunningJob, *, is_async: bool) -> None:
        if is_async:
            with self._lock:
                self._active.add(job)
            self._event_loop().call_soon_threadsafe(self._start_task, job)
            return
        with self._lock:
            self._active.add(job)
            self._queued += 1
            short_of_threads = self._idle < self._queued
            self._idle += short_of_threads
        self._work.put(job)
        if short_of_threads:
            threading.Thread(target=self._thread, name="harvester-job", daemon=True).start()

    def abandon(self, job: RunningJob) -> None:
        """Take the job's slot away although its handler has not returned."""
        with self._lock:
            job.abandoned = True
            self._remove(job)
        self.cancel_task(job)

    def cancel_task(self, job: RunningJob) -> None:
        """Cancel a coroutine handler; a thread cannot be interrupted and must call `check`."""
        loop, task = self._loop, self._tasks.get(job)
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the task with it
                loop.call_soon_threadsafe(task.cancel)

    def lend(self) -> None:
        """Lend the slots of jobs that have only waited for a while, if all slots are taken."""
        with self._lock:
            if self._free_without(self._lent) > 0:
                return
            for moment, job, wait in self._lendable():
                if moment > time.monotonic() or len(self._lent) >= MOST_LENT:
                    break
                self._lent.add(job)
                wait.is_lent = True
                for session in wait.sessions:
                    # With the lock, because the end of the wait closes it too.
                    session.close()
            self._slot_left.notify_all()

    @property
    def lends_in(self) -> float:
        """Seconds after which to look whether a slot can be lent."""
        with self._lock:
            lendable = self._lendable()
            if not lendable or len(self._lent) >= MOST_LENT:
                return LENT_AGAIN_AFTER_SECONDS
            return min(max(lendable[0][0] - time.monotonic(), 0.001), LENT_AGAIN_AFTER_SECONDS)

    def _lendable(self) -> list[tuple[float, RunningJob, _Wait]]:
        """Return the jobs that wait in a slot, and from when it may be lent; the first one first."""
        found = []
        for job, wait in self._waits.items():
            if job in self._active and not wait.is_lent:
                is_slow = job.longest_wait >= LENT_AFTER_SECONDS or job.lane in self._slow_lanes
                patience = LENT_AGAIN_AFTER_SECONDS if is_slow else LENT_AFTER_SECONDS
                found.append((wait.since + patience, job, wait))
        return sorted(found, key=lambda each: each[0])

    @contextlib.contextmanager
    def _waiting(self, job: RunningJob) -> Iterator[None]:
        sessions = [each.connection for each in connections.all(initialized_only=True) if each.connection is not None]
        wait = _Wait(time.monotonic(), sessions)
        with self._lock:
            self._waits[job] = wait
        try:
            yield
        finally:
            with self._lock:
                del self._waits[job]
                job.longest_wait = max(job.longest_wait, time.monotonic() - wait.since)
                self._lent.discard(job)
                if wait.is_lent:
                    self._returning.add(job)
                    self._slot_left.wait_for(
                        lambda: job.abandoned or self._free_without(self._lent | self._returning) > 0, RETURN_SECONDS
                    )
                    self._returning.discard(job)
            if wait.is_lent:
                # They were closed by another thread; Django opens new ones.
                connections.close_all()

    def _remove(self, job: RunningJob) -> None:
        self._active.discard(job)
        self._lent.discard(job)
        self._slot_left.notify_all()

    def close(self) -> None:
        """Let idle threads and the event loop end; busy threads end with their job."""
        with self._lock:
            threads = self._idle + len(self._active)
        for _ in range(threads):
            self._work.put(None)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _thread(self) -> None:
        try:
            while (job := self._work.get()) is not None:
                with self._lock:
                    self._queued -= 1
                    self._idle -= 1
                job.lendable = self._waiting
                ending = None if job.abandoned else self._execute(job)
                with self._lock:
                    self._remove(job)
                    if job.longest_wait >= LENT_AFTER_SECONDS and job.lane is not None:
                        self._slow_lanes.add(job.lane)
                    elif job.longest_wait:
                        self._slow_lanes.discard(job.lane)
                    # The slot was taken away meanwhile, and this thread is one too many.
                    if job.abandoned:
                        return
                    # So is one that was started while slots were lent.
                    spare = self._idle - self._queued
                    is_needed = len(self._active - self._lent) + spare < self.size + self._kept
                    self._idle += is_needed
                self._done(job, ending)
                if not is_needed:
                    return
        finally:
            connections.close_all()

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._run_loop, args=(self._loop,), name="harvester-async", daemon=True).start()
        return self._loop

    @staticmethod
    def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=FAREWELL_SECONDS))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _start_task(self, job: RunningJob) -> None:
        if not job.abandoned:
            self._tasks[job] = self._event_loop().create_task(self._task(job))

    async def _task(self, job: RunningJob) -> None:
        ending = await self._execute_async(job)
        self._tasks.pop(job, None)
        with self._lock:
            self._remove(job)
        if not job.abandoned:
            self._done(job, ending)


def execute(job: RunningJob) -> Ending | None:
    """Run the handler in this thread. No exception leaves this function, not even SystemExit."""
    retry = RetryPolicy()
    try:
        kind = kind_of(job.kind)
        retry = kind.retry
        call = kind.bind(job, _decode(job))
        with log_context(job_id=job.id, job_kind=job.kind, attempt=job.attempt):
            result = kind.handler(*call.args, **call.kwargs)
            if inspect.isawaitable(result):
                # A function that returns a coroutine has done nothing yet, and nothing would ever await it.
                if inspect.iscoroutine(result):
                    result.close()
                message = f"The handler of {kind.name} returned an awaitable; make the handler itself `async def`."
                raise TypeError(message)  # noqa: TRY301 - it ends the attempt like any error of the handler
        return None if job.finished else succeeded(job, result)
    except BaseException as error:  # noqa: BLE001 - no exception of a handler may end the worker
        return None if job.finished else ended_by(job, error, retry)
    finally:
        _clean_connections()


async def execute_async(job: RunningJob) -> Ending | None:
    """Run a coroutine handler as a task of the worker's event loop."""
    retry = RetryPolicy()
    try:
        kind = kind_of(job.kind)
        retry = kind.retry
        call = kind.bind(job, _decode(job))
        with log_context(job_id=job.id, job_kind=job.kind, attempt=job.attempt):
            result = await kind.handler(*call.args, **call.kwargs)
        return None if job.finished else succeeded(job, result)
    except asyncio.CancelledError as error:
        if job.finished:
            return None
        # If the worker did not cancel the handler, a task of the handler's own was cancelled.
        if job.abandoned or job.is_lost:
            return ended_by(job, LeaseLost("the slot was taken away"), retry)
        return ended_by(job, JobCancelled("stopped as asked") if job.cancel_requested else error, retry)
    except BaseException as error:  # noqa: BLE001 - no exception of a handler may end the worker
        return None if job.finished else ended_by(job, error, retry)


def is_async(job: RunningJob) -> bool:
    kind = _kind_or_none(job)
    return kind is not None and kind.is_async


def timeout_of(job: RunningJob) -> float | None:
    kind = _kind_or_none(job)
    return kind.timeout if kind else None


def _kind_or_none(job: RunningJob) -> Kind | None:
    try:
        return kind_of(job.kind)
    except Exception:  # noqa: BLE001 - an unknown kind fails in its own attempt, not here
        return None


def _decode(job: RunningJob) -> object:
    try:
        return json.loads(job.raw_args)
    except (ValueError, RecursionError):
        raise BadArgs(f"The arguments of {job.kind} cannot be read.") from None


def _clean_connections() -> None:
    """Leave no broken session and no open transaction for the next job of this thread."""
    for connection in connections.all(initialized_only=True):
        try:
            if connection.in_atomic_block:
                connection.connection.close()
                del connections[connection.alias]
            else:
                connection.close_if_unusable_or_obsolete()
        except Exception:  # noqa: BLE001 - a session that cannot be closed is replaced on next use
            del connections[connection.alias]
