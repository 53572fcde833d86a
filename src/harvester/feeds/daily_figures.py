"""Figures of all feeds per day: runs, prices, rejects, and visible offers.

Offers are not counted: the number of visible offers is computed from the counts of promoted runs. Past days are stored
by an hourly job, because computing a month takes too long for a page.
"""

from dataclasses import astuple, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connection

from harvester.catalog.exposure import VISIBLE_COUNT
from harvester.engine.job import RunningJob
from harvester.feeds.latest_runs import HISTORY_DAYS

#: An offer expires at most a week after it was last seen, so older promotions do not matter for a day.
_LONGEST_EXPIRY = timedelta(days=8)
#: Past days that may still change, because a run that was held then may be decided.
CHANGING_DAYS = 8


@dataclass(frozen=True, kw_only=True)
class Day:
    """One day of all feeds, in UTC.

    Attributes:
        day: the date.
        promoted: runs that began on that day and were promoted or approved.
        skipped: runs that had nothing to do.
        held: runs that a gate held, whatever was decided.
        failed: runs that failed.
        prices: prices that these runs wrote.
        rejects: rows that they rejected.
        visible: offers that consumers saw at the end of the day, as counted by the promoted runs.
    """

    day: date
    promoted: int
    skipped: int
    held: int
    failed: int
    prices: int
    rejects: int
    visible: int


_DAYS = """
SELECT (r.started_at AT TIME ZONE 'UTC')::date,
       count(*) FILTER (WHERE r.outcome IN ('PROMOTED', 'APPROVED')), count(*) FILTER (WHERE r.outcome = 'SKIPPED'),
       count(*) FILTER (WHERE r.outcome IN ('HELD', 'REJECTED', 'OVERTAKEN')),
       count(*) FILTER (WHERE r.status = 'FAILED'),
       coalesce(sum(g.prices_written), 0)::bigint, coalesce(sum(g.products_rejected), 0)::bigint
FROM runs r JOIN feed_runs g ON g.run_id = r.id
WHERE r.started_at >= %(first)s AND r.started_at < %(end)s GROUP BY 1
"""
# The count of a promoted run applies at the end of each day until the next promotion, or until its offers expired.
_VISIBLE_THEN = """
SELECT (e.ends AT TIME ZONE 'UTC')::date - 1, coalesce(sum(p.seen), 0)::bigint
FROM (
    SELECT r.source_id, r.finished_at, g.products_upserted AS seen,
           lead(r.finished_at) OVER (PARTITION BY r.source_id ORDER BY r.finished_at) AS next_at
    FROM runs r JOIN feed_runs g ON g.run_id = r.id
    WHERE r.outcome IN ('PROMOTED', 'APPROVED') AND r.started_at >= %(before)s AND r.started_at < %(end)s
) p
JOIN source_windows w ON w.source_id = p.source_id AND w.is_shown
CROSS JOIN LATERAL generate_series(
    (date_trunc('day', p.finished_at AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC',
    least(p.next_at - interval '1 microsecond', p.finished_at + w.expiry_hours * interval '1 hour', %(end)s),
    interval '1 day') AS e (ends)
WHERE e.ends > %(first)s GROUP BY 1
"""
_VISIBLE_NOW = f"""
SELECT coalesce(sum({VISIBLE_COUNT}), 0)::bigint
FROM sources s JOIN source_windows w ON w.source_id = s.id
WHERE w.is_shown
"""  # noqa: S608 - constants only
_KEPT = "SELECT day, promoted, skipped, held, failed, prices, rejects, visible FROM feed_days WHERE day >= %(first)s"
_KEEP = """
INSERT INTO feed_days (day, promoted, skipped, held, failed, prices, rejects, visible)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (day) DO UPDATE SET promoted = excluded.promoted, skipped = excluded.skipped, held = excluded.held,
    failed = excluded.failed, prices = excluded.prices, rejects = excluded.rejects, visible = excluded.visible
"""


def note_days(job: RunningJob) -> dict[str, int]:
    """Store past days that are missing or may have changed."""
    with job.transaction():
        return {"days": keep_days()}


def keep_days() -> int:
    """Store past days that are missing or may have changed; return how many."""
    wanted = _days_before_today(HISTORY_DAYS)
    kept = _kept(wanted[0])
    missing = [day for day in wanted if day not in kept]
    first = min([*missing, wanted[-CHANGING_DAYS]])
    computed = _compute(first, wanted[-1])
    with connection.cursor() as cursor:
        cursor.executemany(_KEEP, [astuple(day) for day in computed.values()])
    return len(computed)


def visible_now() -> int:
    """Return how many offers consumers see, as counted by the last promoted runs, without hidden and expired ones."""
    return int(_rows(_VISIBLE_NOW, {})[0][0])


def today() -> Day:
    """Return the current day so far."""
    now = datetime.now(UTC).date()
    counts = {row[0]: row[1:] for row in _rows(_DAYS, _span(now, now))}
    return _day(now, counts, visible_now())


def past_days(count: int) -> list[Day]:
    """Return the days before today, oldest first; those that are not stored are computed."""
    wanted = _days_before_today(count)
    known = _kept(wanted[0])
    missing = [day for day in wanted if day not in known]
    if missing:
        known |= _compute(missing[0], missing[-1])
    return [known[day] for day in wanted]


def _days_before_today(count: int) -> list[date]:
    end = datetime.now(UTC).date()
    return [end - timedelta(days=back) for back in range(count, 0, -1)]


def _kept(first: date) -> dict[date, Day]:
    names = tuple(Day.__dataclass_fields__)
    return {row[0]: Day(**dict(zip(names, row, strict=True))) for row in _rows(_KEPT, {"first": first})}


def _compute(first: date, last: date) -> dict[date, Day]:
    span = _span(first, last)
    counts = {row[0]: row[1:] for row in _rows(_DAYS, span)}
    visible = dict(_rows(_VISIBLE_THEN, span))
    wanted = [first + timedelta(days=later) for later in range((last - first).days + 1)]
    return {day: _day(day, counts, visible.get(day, 0)) for day in wanted}


def _span(first: date, last: date) -> dict[str, datetime]:
    begins = datetime(first.year, first.month, first.day, tzinfo=UTC)
    ends = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1)
    return {"first": begins, "end": ends, "before": begins - _LONGEST_EXPIRY}


def _day(day: date, counts: dict[date, tuple[Any, ...]], visible: int) -> Day:
    promoted, skipped, held, failed, prices, rejects = counts.get(day, (0, 0, 0, 0, 0, 0))
    return Day(
        day=day,
        promoted=promoted,
        skipped=skipped,
        held=held,
        failed=failed,
        prices=prices,
        rejects=rejects,
        visible=visible,
    )


def _rows(query: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()
