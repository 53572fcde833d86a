"""The look-after loop that every worker and the scheduler run; never a job, so it cannot be the stuck one."""

import threading
import time

import structlog

from harvester.engine import sql
from harvester.engine.connections import Connection, break_off, connect
from harvester.engine.events import EngineEvent, emit
from harvester.engine.rescue import Rescuer
from harvester.engine.writers import end_frozen_dispatch

log = structlog.get_logger(__name__)

#: A transaction open for longer than this slows every claim and keeps dead rows from being cleaned up.
OLD_SNAPSHOT_SECONDS = 300

#: No look takes as long as this; a session that has not answered by then is given up.
LONGEST_LOOK_SECONDS = 120.0

#: Between the two looks that make a job stuck lies at least this part of the silence that makes it suspicious, also
#: when an operator has the looks done more often: hearts need that long to beat again after an outage.
SHARE_BETWEEN_LOOKS = 5


class Maintenance:
    """Rescues stuck jobs and wakes lanes whose wake-up was lost, once per interval."""

    def __init__(self, stuck_seconds: float, interval: float) -> None:
        self._stuck_seconds = stuck_seconds
        self._interval = interval
        between = max(interval, stuck_seconds / SHARE_BETWEEN_LOOKS)
        self._rescuer = Rescuer(stuck_seconds=stuck_seconds, between=between)
        self._stop = threading.Event()
        self._connection: Connection | None = None
        self._asked_at: float | None = None
        self._told_of_old_snapshot = False
        self._thread = threading.Thread(target=self._run, name="harvester-maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def break_off_when_silent(self) -> None:
        """Give up a look whose session does not answer; the next one gets a session of its own."""
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > LONGEST_LOOK_SECONDS:
            break_off(self._connection)

    def _run(self) -> None:
        while True:
            self._asked_at = time.monotonic()
            try:
                self.once()
            except Exception as problem:  # noqa: BLE001 - who never looks again rescues nothing any more
                log.warning("MAINTENANCE_FAILED", error=str(problem).strip())
                self._drop_connection()
            finally:
                self._asked_at = None
            if self._stop.wait(self._interval):
                break
        self._drop_connection()

    def once(self) -> list[int]:
        if self._connection is None or self._connection.closed:
            self._connection = connect("maintenance")
        end_frozen_dispatch(self._connection, self._stuck_seconds)
        taken = self._rescuer.look(self._connection)
        self._connection.execute(sql.LANES_REPAIR)
        self._watch_snapshots(self._connection)
        return taken

    def _watch_snapshots(self, connection: Connection) -> None:
        """Tell once when a transaction has been open for too long, and again only after it was gone."""
        row = connection.execute(sql.OLDEST_SNAPSHOT).fetchone()
        seconds = row[0] if row else 0.0
        if seconds > OLD_SNAPSHOT_SECONDS and not self._told_of_old_snapshot:
            emit(EngineEvent(name="SNAPSHOT_TOO_OLD", fields={"seconds": seconds}))
        self._told_of_old_snapshot = seconds > OLD_SNAPSHOT_SECONDS

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
