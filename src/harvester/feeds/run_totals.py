"""The runs of a feed summed up: all of some days, and day by day."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection

from harvester.feeds.latest_runs import HISTORY_DAYS
from harvester.feeds.models import Feed


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The runs of some days.

    Attributes:
        runs: all of them.
        failed: of them, those that failed.
        held: those that a gate held, whatever became of them.
        skipped: those that found nothing new.
        rows: how many they read.
        prices: how many they wrote.
        rejects: rows that they could not use.
        median_seconds: how long the usual one took that read its file.
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
# A day on which nothing ran is told as such.
_BY_DAY = f"""
SELECT d.day::date, {_SUMS}
FROM generate_series(
    date_trunc('day', (clock_timestamp() - %(days)s * interval '1 day') AT TIME ZONE 'UTC'),
    clock_timestamp() AT TIME ZONE 'UTC', interval '1 day') AS d (day)
LEFT JOIN {_RUNS} ON date_trunc('day', r.started_at AT TIME ZONE 'UTC') = d.day
GROUP BY 1 ORDER BY 1
"""  # noqa: S608 - constants only


def totals_since(feed: Feed, *, days: int = HISTORY_DAYS) -> Totals:
    """The runs that began since this moment so many days ago."""
    [sums] = _rows(_TOTALS, feed, days)
    return _totals(sums)


def days_since(feed: Feed, *, days: int = HISTORY_DAYS) -> dict[date, Totals]:
    """The same runs by the day on which they began, in UTC, oldest first; of the first day only what is left of it."""
    return {day: _totals(sums) for day, *sums in _rows(_BY_DAY, feed, days)}


def _totals(sums: Any) -> Totals:
    return Totals(**dict(zip(Totals.__dataclass_fields__, sums, strict=True)))


def _rows(query: str, feed: Feed, days: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"source": feed.source_id, "days": days})
        return cursor.fetchall()
