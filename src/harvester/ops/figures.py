"""What people ask about jobs: how many, how old, how fast, which are stuck. Read by portal, CLI and metrics."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from harvester.engine import sql
from harvester.engine.maintain import OLD_SNAPSHOT_SECONDS
from harvester.engine.models import Job
from harvester.engine.states import JobState

__all__ = [
    "OLD_SNAPSHOT_SECONDS",
    "QueueFigures",
    "by_state",
    "last_day",
    "oldest_snapshot_seconds",
    "open_queues",
    "queues",
    "stuck",
]

#: Window over which the rate of finished jobs is taken.
RATE_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class QueueFigures:
    """One queue at a moment.

    Attributes:
        queue: its name.
        waiting: due and not yet claimed.
        scheduled: not due yet.
        running: held by workers.
        oldest_waiting_seconds: how long the oldest due job has waited beyond its time.
        finished_per_second: succeeded and failed jobs in the last five minutes, per second.
        failed_last_hour: jobs that failed for good in the last hour.
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


_QUEUES = """
WITH open AS (
    SELECT queue,
        count(*) FILTER (WHERE state <> 'running' AND run_at <= statement_timestamp()) AS waiting,
        count(*) FILTER (WHERE state <> 'running' AND run_at > statement_timestamp()) AS scheduled,
        count(*) FILTER (WHERE state = 'running') AS running,
        coalesce(extract(epoch FROM statement_timestamp()
            - min(run_at) FILTER (WHERE state <> 'running' AND run_at <= statement_timestamp())), 0)::float8 AS oldest
    FROM jobs WHERE state IN ('pending', 'running', 'retryable') GROUP BY queue
), ended AS (
    SELECT queue,
        (count(*) FILTER (WHERE finished_at > statement_timestamp() - %(rate)s * interval '1 second')
            / %(rate)s::float8) AS rate,
        count(*) FILTER (WHERE state = 'failed') AS failed
    FROM jobs WHERE finished_at > statement_timestamp() - interval '1 hour' GROUP BY queue
)
SELECT queue, coalesce(waiting, 0), coalesce(scheduled, 0), coalesce(running, 0), coalesce(oldest, 0),
       coalesce(rate, 0), coalesce(failed, 0)
FROM open FULL JOIN ended USING (queue) ORDER BY queue
"""


def queues() -> list[QueueFigures]:
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES, {"rate": RATE_SECONDS})
        rows = cursor.fetchall()
    names = tuple(QueueFigures.__dataclass_fields__)
    return [QueueFigures(**dict(zip(names, row, strict=True))) for row in rows]


# Hops from one name to the next in each of the three small indexes, so that a long backlog costs nothing.
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
"""  # noqa: S608 - put together from constants
    for among in (f"lane IS NULL AND {sql.READY}", f"lane IS NOT NULL AND {sql.READY}", "state = 'running'")
)


def open_queues() -> list[str]:
    """Names of the queues in which something waits or runs."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_QUEUES)
        return sorted(row[0] for row in cursor.fetchall())


def by_state() -> dict[str, int]:
    """Number of jobs in each state, zeros included."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT state, count(*) FROM jobs GROUP BY state")
        found = dict(cursor.fetchall())
    return {state.value: found.get(state.value, 0) for state in JobState}


_LAST_DAY = """
SELECT h.hour, count(j.*) FILTER (WHERE j.state = 'succeeded'), count(j.*) FILTER (WHERE j.state = 'failed'),
       count(j.*) FILTER (WHERE j.state = 'cancelled')
FROM generate_series(date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), '1 hour') AS h(hour)
LEFT JOIN jobs j ON j.finished_at >= h.hour AND j.finished_at < h.hour + interval '1 hour'
GROUP BY h.hour ORDER BY h.hour
"""


def last_day() -> list[dict[str, Any]]:
    """Jobs that ended in each of the last 24 hours."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_DAY)
        rows: list[tuple[datetime, int, int, int]] = cursor.fetchall()
    return [{"hour": hour, "succeeded": good, "failed": bad, "cancelled": off} for hour, good, bad, off in rows]


def stuck(seconds: float) -> list[Job]:
    """Running jobs that nobody has heard of for this long, silent ones first."""
    return list(
        Job.objects.raw(
            "SELECT * FROM jobs WHERE state = 'running' "
            "AND heartbeat_at < clock_timestamp() - %s * interval '1 second' ORDER BY heartbeat_at",
            [seconds],
        )
    )


def oldest_snapshot_seconds() -> float:
    """Age of the oldest open transaction that holds a snapshot, as far as this role may see."""
    with connection.cursor() as cursor:
        cursor.execute(sql.OLDEST_SNAPSHOT)
        return float(cursor.fetchone()[0])
