"""Figures of jobs: counts, ages, rates, stuck jobs. Used by portal, CLI and metrics."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from harvester.engine import sql
from harvester.engine.maintenance import OLD_SNAPSHOT_SECONDS
from harvester.engine.models import Job, JobEvent
from harvester.engine.outcomes import SNOOZED
from harvester.engine.registry import all_periodic
from harvester.engine.states import JobState

__all__ = [
    "OLD_SNAPSHOT_SECONDS",
    "QueueFigures",
    "Tally",
    "last_day",
    "oldest_snapshot_seconds",
    "open_queues",
    "periodic_done",
    "stuck",
    "tally",
]

#: Window of the rate of finished jobs.
RATE_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class QueueFigures:
    """One queue at one time.

    Attributes:
        queue: its name.
        waiting: due and not claimed yet.
        scheduled: not due yet.
        running: claimed by workers.
        oldest_waiting_seconds: how long the oldest waiting job has been due.
        finished_per_second: succeeded and failed jobs in the last five minutes, per second.
        failed_last_hour: jobs that failed permanently in the last hour.
    """

    queue: str
    waiting: int
    scheduled: int
    running: int
    oldest_waiting_seconds: float
    finished_per_second: float
    failed_last_hour: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """All jobs at one time.

    Attributes:
        states: number of jobs in each state, zeros included.
        queues: those with jobs that wait, run or ended within the hour, by name.
    """

    states: dict[str, int]
    queues: list[QueueFigures]


# States and queues in one pass: with a long backlog it is most of the cost of a dashboard.
_COUNTED = """
SELECT queue, state, count(*), count(*) FILTER (WHERE run_at > statement_timestamp()),
       extract(epoch FROM statement_timestamp() - min(run_at))::float8
FROM jobs GROUP BY queue, state
"""
_ENDED = """
SELECT queue,
       count(*) FILTER (WHERE finished_at > statement_timestamp() - %(rate)s * interval '1 second') / %(rate)s::float8,
       count(*) FILTER (WHERE state = 'failed')
FROM jobs WHERE finished_at > statement_timestamp() - interval '1 hour' GROUP BY queue
"""
_WAITING = (JobState.PENDING, JobState.RETRYABLE)


def tally() -> Tally:
    """Return the counts of all jobs."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED)
        counted = cursor.fetchall()
        cursor.execute(_ENDED, {"rate": RATE_SECONDS})
        ended = {queue: figures for queue, *figures in cursor.fetchall()}
    states = {state.value: sum(row[2] for row in counted if row[1] == state) for state in JobState}
    opened = {row[0] for row in counted if row[1] in (*_WAITING, JobState.RUNNING)}
    queues = []
    for name in sorted(opened | set(ended)):
        waiting = [row[2:] for row in counted if row[0] == name and row[1] in _WAITING]
        later = sum(jobs for _, jobs, _ in waiting)
        rate, failed = ended.get(name, (0.0, 0))
        queues.append(
            QueueFigures(
                queue=name,
                waiting=sum(jobs for jobs, _, _ in waiting) - later,
                scheduled=later,
                running=sum(row[2] for row in counted if row[:2] == (name, JobState.RUNNING)),
                oldest_waiting_seconds=max(0.0, *(age for _, _, age in waiting)) if waiting else 0.0,
                finished_per_second=rate,
                failed_last_hour=failed,
            )
        )
    return Tally(states=states, queues=queues)


# Jumps from one name to the next in each of three small indexes, so a long backlog costs nothing.
_OPEN_QUEUES = " UNION ".join(
    f"""
SELECT queue FROM (
    WITH RECURSIVE names AS (
        (SELECT queue FROM jobs WHERE {among} ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT queue FROM jobs WHERE {among} AND queue > n.queue ORDER BY queue LIMIT 1)
        FROM names n WHERE n.queue IS NOT NULL
    ) SELECT queue FROM names
) AS hop WHERE queue IS NOT NULL
"""  # noqa: S608 - built from constants
    for among in (f"lane IS NULL AND {sql.READY}", f"lane IS NOT NULL AND {sql.READY}", "state = 'running'")
)


def open_queues() -> list[str]:
    """Return the names of the queues with jobs that wait or run."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_QUEUES)
        return sorted(row[0] for row in cursor.fetchall())


_LAST_DAY = """
SELECT h.hour, count(j.*) FILTER (WHERE j.state = 'succeeded'), count(j.*) FILTER (WHERE j.state = 'failed'),
       count(j.*) FILTER (WHERE j.state = 'cancelled')
FROM generate_series(date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), '1 hour') AS h(hour)
LEFT JOIN jobs j ON j.finished_at >= h.hour AND j.finished_at < h.hour + interval '1 hour'
GROUP BY h.hour ORDER BY h.hour
"""


def last_day() -> list[dict[str, Any]]:
    """Return the jobs that ended in each of the last 24 hours."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_DAY)
        rows: list[tuple[datetime, int, int, int]] = cursor.fetchall()
    return [{"hour": hour, "succeeded": good, "failed": bad, "cancelled": off} for hour, good, bad, off in rows]


def stuck(seconds: float) -> list[Job]:
    """Return running jobs without a heartbeat for this long, the oldest heartbeat first."""
    return list(
        Job.objects.raw(
            "SELECT * FROM jobs WHERE state = 'running' "
            "AND heartbeat_at < clock_timestamp() - %s * interval '1 second' ORDER BY heartbeat_at",
            [seconds],
        )
    )


def oldest_snapshot_seconds() -> float:
    """Return the age of the oldest open transaction with a snapshot that this role can see."""
    with connection.cursor() as cursor:
        cursor.execute(sql.OLDEST_SNAPSHOT)
        return float(cursor.fetchone()[0])


def periodic_done() -> dict[str, Any]:
    """Return the filter for periodic jobs that succeeded: thousands a day that nobody needs to see."""
    return {"kind__in": sorted({item.kind for item in all_periodic().values()}), "state": JobState.SUCCEEDED.value}


def snooze_reason(job: Job) -> str | None:
    """Return why a job waits again, as it said itself; None if it does not, or if its events are no longer kept."""
    if job.state != JobState.PENDING:
        return None
    newest = JobEvent.objects.filter(job_id=job.pk).order_by("-at", "-id").values_list("detail", flat=True).first()
    return newest.removeprefix(SNOOZED) if newest and newest.startswith(SNOOZED) else None
