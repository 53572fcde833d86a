"""Ends a process that hangs on an unresponsive database, or that does not stop in time."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

import psycopg
import structlog

log = structlog.get_logger(__name__)

#: No process is ended for a shorter silence, however short the stuck time is.
SHORTEST_SILENCE_SECONDS = 5.0
#: The last part of the grace time, in which jobs are handed back and sessions closed.
WIND_DOWN_SECONDS = 5.0
#: Between two looks. A step counts for at most a few of them: time in which this process itself was frozen is not a
#: silence of the database.
LOOK_SECONDS = 0.2
LONGEST_STEP_SECONDS = 1.0
#: The exit code of a process that was ended here.
EXIT_CODE = 1
#: Messages from the host of a stopped server. Any other message may mean a dead link, even "server closed the
#: connection", which libpq also reports for some of its own timeouts.
#: A server that refuses a session ("starting up", "too many clients") reports a severity, and libpq has no code for it.
_ANSWERS = ("Connection refused", "No such file", "FATAL:")


def silence_limit(stuck_seconds: float) -> float:
    """Return the seconds without an answer after which a process is ended: well before its jobs count as stuck."""
    return max(stuck_seconds / 2, SHORTEST_SILENCE_SECONDS)


def drain_seconds(grace_seconds: float) -> float:
    """Return how much of the grace time running jobs get; the rest is for handing back unfinished jobs."""
    return grace_seconds - min(WIND_DOWN_SECONDS, grace_seconds / 2)


def is_answer(problem: Exception) -> bool:
    """Whether an error shows that the server or its host is reachable, and is therefore waited for indefinitely."""
    if not isinstance(problem, psycopg.Error) or problem.sqlstate:
        return True
    return any(words in str(problem) for words in _ANSWERS)


def end_process(reason: str) -> None:
    """End this process immediately: no lock, thread or session can delay it."""
    log.error("PROCESS_ENDED_BY_WATCHDOG", reason=reason)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(EXIT_CODE)


def end_with_interpreter(seconds: float = WIND_DOWN_SECONDS) -> None:
    """End the process at most these seconds after its main thread: pools would wait for their threads."""

    def wait() -> None:
        threading.main_thread().join()
        time.sleep(seconds)
        end_process("threads of handlers that never returned")

    threading.Thread(target=wait, name="harvester-end", daemon=True).start()


class Watchdog:
    """Looks several times a second, from a thread that never touches the database.

    Attributes of the constructor:
        waits_since: since when the process waits for an answer of the database; None if it does not.
        limit: how long that may take before the process is ended.
        stopping: whether the process was asked to stop.
        stop_seconds: how long it may take to stop.
        unblock: called with each look; may abort anything that waits too long.
        end: ends the process for a reason.
    """

    def __init__(
        self,
        *,
        waits_since: Callable[[], float | None],
        limit: float,
        stopping: Callable[[], bool],
        stop_seconds: float,
        unblock: Callable[[], None] = lambda: None,
        end: Callable[[str], None] = end_process,
    ) -> None:
        self._waits_since = waits_since
        self._limit = limit
        self._stopping = stopping
        self._stop_seconds = stop_seconds
        self._unblock = unblock
        self._end = end
        self._awaited: float | None = None
        self._silent = 0.0
        self._stopped_for = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="harvester-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS):
            now = time.monotonic()
            self.look(min(now - last, LONGEST_STEP_SECONDS))
            last = now

    def look(self, passed: float) -> None:
        """Look once, this many seconds after the last time."""
        awaited = self._waits_since()
        self._silent = self._silent + passed if awaited is not None and awaited == self._awaited else 0.0
        self._awaited = awaited
        self._stopped_for = self._stopped_for + passed if self._stopping() else 0.0
        self._unblock()
        if self._silent > self._limit:
            self._end(f"the database has not answered a heartbeat for {self._silent:.0f} s")
        elif self._stopped_for > self._stop_seconds:
            self._end(f"it was asked to stop {self._stopped_for:.0f} s ago")
