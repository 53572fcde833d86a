"""Where handlers run: a fixed number of slots, each a thread or a task of one event loop."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable

from django.db import connections

from harvester.engine.job import RunningJob
from harvester.engine.outcomes import Ending

Execute = Callable[[RunningJob], Ending | None]
ExecuteAsync = Callable[[RunningJob], Awaitable[Ending | None]]
Done = Callable[[RunningJob, Ending | None], None]


#: How long interrupted coroutines have to put their things in order when the worker ends.
FAREWELL_SECONDS = 1.0


class Slots:
    """Runs at most `size` jobs at once and reports each ending after its slot is free again.

    More slots are kept for urgent jobs. They fill those first and take ordinary slots only beyond them, so that
    however many ordinary jobs run, an urgent one can start.

    Threads are daemons on purpose: a handler that never returns must not keep the process alive after its job
    was handed back.
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
        self._active: set[RunningJob] = set()
        self._waiting = 0
        self._idle = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[RunningJob, asyncio.Task[None]] = {}

    @property
    def free(self) -> int:
        """Slots that any job may take."""
        with self._lock:
            urgent = sum(job.urgent for job in self._active)
            return self.size - (len(self._active) - urgent) - max(urgent - self._kept, 0)

    @property
    def free_for_urgent(self) -> int:
        """Slots that an urgent job may take: the free ones and those that are kept."""
        return self.size + self._kept - len(self._active)

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
            self._waiting += 1
            short_of_threads = self._idle < self._waiting
            self._idle += short_of_threads
        self._work.put(job)
        if short_of_threads:
            threading.Thread(target=self._thread, name="harvester-job", daemon=True).start()

    def abandon(self, job: RunningJob) -> None:
        """Give the job's slot away although its handler has not returned."""
        with self._lock:
            job.abandoned = True
            self._active.discard(job)
        self.cancel_task(job)

    def cancel_task(self, job: RunningJob) -> None:
        """Interrupt a coroutine handler; a thread cannot be interrupted and has to ask by itself."""
        loop, task = self._loop, self._tasks.get(job)
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the task with it
                loop.call_soon_threadsafe(task.cancel)

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
                    self._waiting -= 1
                    self._idle -= 1
                ending = None if job.abandoned else self._execute(job)
                if self._leave(job):
                    return
                self._done(job, ending)
        finally:
            connections.close_all()

    def _leave(self, job: RunningJob) -> bool:
        """Free the slot; true when it was given away meanwhile, and this thread is one too many."""
        with self._lock:
            self._active.discard(job)
            self._idle += not job.abandoned
            return job.abandoned

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
            self._active.discard(job)
        if not job.abandoned:
            self._done(job, ending)
