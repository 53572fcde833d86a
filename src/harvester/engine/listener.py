"""Hearing about new jobs, and about jobs that should stop, without asking."""

import threading
from collections.abc import Callable

import structlog
from psycopg import Notify

from harvester.engine.connections import connect

log = structlog.get_logger(__name__)

CHANNEL = "harvester_jobs"
CANCELS = "harvester_cancels"
#: How often the thread looks up whether it should end, and whether its session still lives.
_BREATH_SECONDS = 0.1


class Listener:
    """Calls back with the queue and priority of new jobs, and with the id of a running job that should stop.

    With None it says that something may have been missed.

    A notification can be lost (a broken session, a failed-over server): polling is the safety net, this thread
    only makes it fast.
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
            except Exception as problem:  # noqa: BLE001 - whatever it was, the next session may fare better
                log.warning("LISTENER_LOST", error=str(problem).strip())
                self._stop.wait(1)

    def _listen(self) -> None:
        with connect("listen") as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            connection.execute(f"LISTEN {CANCELS}")
            self._heard(None)
            while not self._stop.is_set():
                for notification in connection.notifies(timeout=_BREATH_SECONDS):
                    self._tell(notification)
                    if self._stop.is_set():
                        break

    def _tell(self, notification: Notify) -> None:
        if notification.channel == CANCELS:
            if notification.payload.isdecimal():
                self._cancelled(int(notification.payload))
        else:
            self._heard(_read(notification.payload))


def _read(payload: str) -> tuple[str, int] | None:
    """The queue and priority of a notification; None if somebody else wrote it."""
    priority, _, queue = payload.partition(" ")
    try:
        return queue, int(priority)
    except ValueError:
        return None
