"""Totals of the runs of a feed: of some days, and per day."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection

from harvester.feeds.latest_runs import HISTORY_DAYS
from harvester.feeds.models import Feed


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Totals of the runs of some days.

    Attributes:
        runs: number of runs.
        failed: those that failed.
        held: those that a gate held, with any decision.
        skipped: those that found an unchanged file.
        rows: number of rows read.
        prices: number of prices written.
        rejects: number of rows rejected.
        median_seconds: median duration of the runs that read their file.
    """

    runs: int
    failed: int
    held: int
    skipped: int
    rows: int
    prices: int
    rejects: int
    median_seconds: float | None


#: In the order of the fields above.
_SUMS = """
count(r.id), count(*) FILTER (WHERE r.status = 'FAILED'),
count(*) FILTER (WHERE r.outcome IN ('HELD', 'APPROVED', 'REJECTED', 'OVERTAKEN')),
count(*) FILTER (WHERE r.outcome = 'SKIPPED'),
coalesce(sum(f.rows_read), 0)::bigint, coalesce(sum(f.prices_written), 0)::bigint,
coalesce(sum(f.products_rejected), 0)::bigint,
percentile_cont(0.5) WITHIN GROUP (ORDER BY r.duration_ms / 1000.0)
    FILTER (WHERE r.status = 'SUCCEEDED' AND r.outcome <> 'SKIPPED')
"""
_RUNS = """
(runs r JOIN feed_runs f ON f.run_id = r.id
    AND r.source_id = %(source)s AND r.started_at >= clock_timestamp() - %(days)s * interval '1 day')
"""
_TOTALS = f"SELECT {_SUMS} FROM {_RUNS}"  # noqa: S608 - constants only
# Days without a run are included.
_BY_DAY = f"""
SELECT d.day::date, {_SUMS}
FROM generate_series(
    date_trunc('day', (clock_timestamp() - %(days)s * interval '1 day') AT TIME ZONE 'UTC'),
    clock_timestamp() AT TIME ZONE 'UTC', interval '1 day') AS d (day)
LEFT JOIN {_RUNS} ON date_trunc('day', r.started_at AT TIME ZONE 'UTC') = d.day
GROUP BY 1 ORDER BY 1
"""  # noqa: S608 - constants only


def totals_since(feed: Feed, *, days: int = HISTORY_DAYS) -> Totals:
    """Return the totals of the runs that began in the last days."""
    [sums] = _rows(_TOTALS, feed, days)
    return _totals(sums)


def days_since(feed: Feed, *, days: int = HISTORY_DAYS) -> dict[date, Totals]:
    """Return the same runs by the day on which they began, in UTC, oldest first; the first day is only a part."""
    return {day: _totals(sums) for day, *sums in _rows(_BY_DAY, feed, days)}


def _totals(sums: Any) -> Totals:
    return Totals(**dict(zip(Totals.__dataclass_fields__, sums, strict=True)))


def _rows(query: str, feed: Feed, days: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"source": feed.source_id, "days": days})
        return cursor.fetchall()
