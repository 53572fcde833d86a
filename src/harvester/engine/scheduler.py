"""Enqueue periodic jobs: each due time is taken once, regardless of the number of schedulers."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.db import close_old_connections, connection, transaction
from django.db.utils import InterfaceError, OperationalError

from harvester.engine import sql
from harvester.engine.cron import next_moment
from harvester.engine.enqueue import enqueue
from harvester.engine.events import EngineEvent, emit
from harvester.engine.maintenance import Maintenance
from harvester.engine.registry import Periodic, all_periodic
from harvester.engine.wakeup import StopSignal
from harvester.engine.watchdog import WIND_DOWN_SECONDS, Watchdog, end_process, silence_limit
from harvester.kernel.errors import HarvesterError

log = structlog.get_logger(__name__)

#: A scheduler looks at least this often, so that it does not miss plans that another one registered.
LONGEST_SLEEP_SECONDS = 30.0
_AFTER_FAILURE_SECONDS = 2.0
#: How long a stopping scheduler waits for its maintenance; the watchdog limits this.
JOIN_SECONDS = 30.0
_CLOCK_WAS_WRONG = timedelta(days=1)


def register_all() -> None:
    """Register this version's periodic jobs. Times that are already planned do not change."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now = cursor.fetchone()[0]
        for item in all_periodic().values():
            values = {"name": item.name, "kind": item.kind, "cron": item.cron}
            cursor.execute(sql.REGISTER_PERIODIC, {**values, "next_at": next_moment(item.cron, now)})


def tick() -> list[str]:
    """Enqueue due jobs and plan their next times, in one transaction; return their names.

    Of several times missed while no scheduler ran, only one is made up for.
    """
    known = all_periodic()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.DUE_PERIODIC, {"names": list(known)})
        due = cursor.fetchall()
        for name, _, cron, moment, now in due:
            job_id = _enqueue(known[name], moment)
            cursor.execute(
                sql.ADVANCE_PERIODIC,
                {"name": name, "next_at": next_moment(cron, max(moment, now)), "job_id": job_id},
            )
    return [row[0] for row in due]


def _enqueue(item: Periodic, moment: datetime) -> int | None:
    """Enqueue the job of a due time. A rejected one is reported and skipped, so that it does not block the others."""
    try:
        made = enqueue(item.kind, dedupe_key=f"periodic:{item.name}")
    except HarvesterError as problem:
        log.error("PERIODIC_REFUSED", periodic=item.name, moment=moment.isoformat(), error=str(problem))
        emit(EngineEvent(name="PERIODIC_REFUSED", fields={"periodic": item.name, "error": str(problem)}))
        return None
    log.info(
        "PERIODIC_DUE",
        periodic=item.name,
        moment=moment.isoformat(),
        job_id=made.job_id,
        created=made.created,
    )
    return made.job_id


def repair_plans() -> list[str]:
    """Bring back planned times that are too far in the future because the clock was wrong for a while.

    No time is taken twice, so plans are made after the last one taken; unless that is more than a day ahead, which
    only a wrong clock can cause.
    """
    repaired = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.PERIODIC_PLANS, {"names": list(all_periodic())})
        for name, cron, next_at, last_at, now in cursor.fetchall():
            taken = last_at if last_at is not None and last_at <= now + _CLOCK_WAS_WRONG else now
            planned = next_moment(cron, max(taken, now))
            if planned < next_at:
                cursor.execute(sql.PLAN_PERIODIC, {"name": name, "next_at": planned})
                fields = {"was": next_at.isoformat(), "now": planned.isoformat()}
                log.warning("PERIODIC_PLAN_MENDED", periodic=name, **fields)  # plain: quoted
                repaired.append(name)
    return repaired


class Scheduler:
    """Ticks until it is stopped, and rescues stuck jobs meanwhile."""

    def __init__(
        self,
        stuck_seconds: float = 300.0,
        stale_check_seconds: float = 60.0,
        end_process: Callable[[str], None] = end_process,
    ) -> None:
        self._wakeup = StopSignal()
        self._maintenance = Maintenance(stuck_seconds, stale_check_seconds)
        self._asked_at: float | None = None
        self._watchdog = Watchdog(
            waits_since=lambda: self._asked_at,
            limit=silence_limit(stuck_seconds),
            stopping=lambda: self._wakeup.stopping,
            stop_seconds=WIND_DOWN_SECONDS,
            unblock=self._maintenance.break_off_when_silent,
            end=end_process,
        )

    def stop(self) -> None:
        """Ask the scheduler to stop; may be called more than once, also from a signal handler."""
        self._wakeup.stop()

    def run(self) -> None:
        log.info("SCHEDULER_STARTED", periodic=len(all_periodic()))
        self._watchdog.start()
        self._maintenance.start()
        try:
            self._loop()
        finally:
            self._maintenance.stop()
            self._maintenance.join(JOIN_SECONDS)
            connection.close()
            self._watchdog.stop()
            log.info("SCHEDULER_STOPPED")

    def _loop(self) -> None:
        registered = False
        while not self._wakeup.stopping:
            self._asked_at = time.monotonic()
            try:
                if not registered:
                    register_all()
                    registered = True
                tick()
                repair_plans()
                wait = _until_next()
            except (OperationalError, InterfaceError) as problem:
                log.warning("SCHEDULER_DATABASE_LOST", error=str(problem).strip())
                connection.close()
                wait = _AFTER_FAILURE_SECONDS
            close_old_connections()
            self._asked_at = None
            self._wakeup.pause(wait)


def _until_next() -> float:
    with connection.cursor() as cursor:
        cursor.execute(sql.NEXT_PERIODIC, {"names": list(all_periodic())})
        row = cursor.fetchone()
    if row is None or row[0] is None:
        return LONGEST_SLEEP_SECONDS
    return min(max(float(row[0]), 0.05), LONGEST_SLEEP_SECONDS)
