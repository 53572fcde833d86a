"""Wake waiting threads: from other threads, from signal handlers, and by notifications of the database."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable

import structlog
from psycopg import Notify

from harvester.engine.connections import connect

log = structlog.get_logger(__name__)

CHANNEL = "harvester_jobs"
CANCELS = "harvester_cancels"
#: How often the listening thread checks whether it should stop, and whether its session is alive.
_CHECK_SECONDS = 0.1


class Wakeup:
    """Wakes one waiting thread, also from a signal handler.

    A `threading.Event` cannot do that: a signal handler runs inside the waiting thread, perhaps while that thread
    holds the event's own lock, and would then wait for itself forever. Putting into a SimpleQueue is reentrant.
    """

    def __init__(self) -> None:
        self._pending: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wake(self) -> None:
        if self._pending.empty():
            self._pending.put(None)

    def clear(self) -> None:
        """Forget earlier calls of `wake`."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._pending.get_nowait()

    def wait(self, seconds: float) -> None:
        """Wait for `wake`, which may have been called since the last `clear`, at most for this time."""
        with contextlib.suppress(queue.Empty):
            self._pending.get(timeout=max(seconds, 0))


class StopSignal(Wakeup):
    """A wakeup that also remembers a request to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = False

    def stop(self) -> None:
        self.stopping = True
        self.wake()

    def pause(self, seconds: float) -> None:
        """Wait for this time, regardless of `wake`, unless a stop is requested."""
        until = time.monotonic() + seconds
        while not self.stopping and (left := until - time.monotonic()) > 0:
            self.wait(left)


class Listener:
    """Calls back with the queue and priority of new jobs, and with the id of a running job that should stop.

    None instead of a queue and priority means that a notification may have been missed.

    A notification can be lost (a broken session, a failed-over server): polling is the safety net, this thread only
    makes it fast.
    """

    def __init__(self, heard: Callable[[tuple[str, int] | None], None], cancelled: Callable[[int], None]) -> None:
        self._heard = heard
        self._cancelled = cancelled
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="harvester-listen", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as problem:  # noqa: BLE001 - the next session may work, whatever the error
                log.warning("LISTENER_LOST", error=str(problem).strip())
                self._stop.wait(1)

    def _listen(self) -> None:
        with connect("listen") as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            connection.execute(f"LISTEN {CANCELS}")
            self._heard(None)
            while not self._stop.is_set():
                for notification in connection.notifies(timeout=_CHECK_SECONDS):
                    self._dispatch(notification)
                    if self._stop.is_set():
                        break

    def _dispatch(self, notification: Notify) -> None:
        if notification.channel == CANCELS:
            if notification.payload.isdecimal():
                self._cancelled(int(notification.payload))
            return
        priority, _, queue_name = notification.payload.partition(" ")
        announced: tuple[str, int] | None = None
        # Another program may send anything on this channel.
        with contextlib.suppress(ValueError):
            announced = queue_name, int(priority)
        self._heard(announced)
