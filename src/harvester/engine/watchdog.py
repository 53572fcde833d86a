"""Ends a process that hangs on a database that no longer answers, or that does not end although it was told to."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

import psycopg
import structlog

log = structlog.get_logger(__name__)

#: No process is ended for a silence shorter than this, however short the stuck time is.
SHORTEST_SILENCE_SECONDS = 5.0
#: The last part of the grace time, in which jobs are handed back and sessions closed.
WIND_DOWN_SECONDS = 5.0
#: Between two looks. A step never counts for more than a few of them: time in which this process itself was frozen is
#: no silence of the database.
LOOK_SECONDS = 0.2
LONGEST_STEP_SECONDS = 1.0
#: The exit code of a process that was ended here.
EXIT_CODE = 1
#: What the host of a server that was stopped lets its clients know; everything else may be a dead link, "server closed
#: the connection" too: that is how libpq reads some of its own timeouts.
#: A server that refuses a session ("starting up", "too many clients") says so with its severity, and libpq gives no
#: code for it.
_ANSWERS = ("Connection refused", "No such file", "FATAL:")


def silence_limit(stuck_seconds: float) -> float:
    """Seconds without an answer after which a process is ended: well before others count its jobs as stuck."""
    return max(stuck_seconds / 2, SHORTEST_SILENCE_SECONDS)


def drain_seconds(grace_seconds: float) -> float:
    """How much of the grace time running jobs have; the rest is for handing back what is left of them."""
    return grace_seconds - min(WIND_DOWN_SECONDS, grace_seconds / 2)


def is_answer(problem: Exception) -> bool:
    """Whether an error shows that the server, or its host, is there: it is waited for then, for as long as it takes."""
    if not isinstance(problem, psycopg.Error) or problem.sqlstate:
        return True
    return any(words in str(problem) for words in _ANSWERS)


def end_process(reason: str) -> None:
    """End this process at once: no lock, thread or session can hold it back."""
    log.error("PROCESS_ENDED_BY_WATCHDOG", reason=reason)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(EXIT_CODE)


def end_with_interpreter(seconds: float = WIND_DOWN_SECONDS) -> None:
    """Have the process end, at the latest, these seconds after its main thread: pools wait for their threads."""

    def wait() -> None:
        threading.main_thread().join()
        time.sleep(seconds)
        end_process("threads of handlers that never returned")

    threading.Thread(target=wait, name="harvester-end", daemon=True).start()


class Watchdog:
    """Looks several times a second, from a thread that never touches the database.

    Attributes of the constructor:
        waits_since: the moment since which an answer of the database is waited for; None while none is.
        limit: how long that may take before the process is ended.
        stopping: whether the process was told to stop.
        stop_seconds: how long it may take to end once it was.
        unblock: called with each look; may break off what waits for too long.
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
            self._end(f"it was told to stop {self._stopped_for:.0f} s ago")
