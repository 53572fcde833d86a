"""Handlers of this process that stop where a test wants them, and go on when it says so."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind

#: Only ends a test that hangs.
LIMIT_SECONDS = 30.0


class Gate:
    """Jobs enter and wait until it is opened."""

    def __init__(self) -> None:
        self.entered: queue.SimpleQueue[RunningJob] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[RunningJob] = queue.SimpleQueue()
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def next_job(self) -> RunningJob:
        """The next job that enters."""
        return self.entered.get(timeout=LIMIT_SECONDS)

    def next_left(self) -> RunningJob:
        """The next job whose handler is through, whichever way."""
        return self.left.get(timeout=LIMIT_SECONDS)

    def pass_through(self, job: RunningJob) -> None:
        self.entered.put(job)
        self._opened.wait(LIMIT_SECONDS)

    async def pass_through_async(self, job: RunningJob) -> None:
        self.entered.put(job)
        while not self._opened.is_set():  # noqa: ASYNC110 - another thread opens it
            await asyncio.sleep(0.005)


_gates: dict[str, Gate] = {}


@contextmanager
def gate(name: str) -> Iterator[Gate]:
    """A closed gate for jobs of `test.gated` and its like with this name; open at the end, whatever happens."""
    made = _gates[name] = Gate()
    try:
        yield made
    finally:
        made.open()


def gate_of(name: str) -> Gate:
    return _gates[name]


@job_kind("test.gated")
def gated(job: RunningJob, gate: str) -> str:
    """Wait at the gate without ever asking whether to stop."""
    with _leaving(job, gate):
        _gates[gate].pass_through(job)
        return "passed"


@job_kind("test.gated_async")
async def gated_async(job: RunningJob, gate: str) -> str:
    with _leaving(job, gate):
        await _gates[gate].pass_through_async(job)
        return "passed"


@contextlib.contextmanager
def _leaving(job: RunningJob, name: str) -> Iterator[None]:
    try:
        yield
    finally:
        _gates[name].left.put(job)
