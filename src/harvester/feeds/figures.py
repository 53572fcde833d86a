"""Figures of feeds: their newest runs and tests, totals of one feed, and all feeds per day.

Offers are not counted: the number of visible offers is computed from the counts of promoted runs. Past days are stored
by an hourly job, because computing a month takes too long for a page.
"""

from collections.abc import Collection
from dataclasses import astuple, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from harvester.catalog.exposure import VISIBLE_COUNT
from harvester.catalog.named_rows import fetch_tuples
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.feeds.jobs import TEST
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.verbs.locked_feed import database_now
from harvester.ops.models import AuditEvent
from harvester.runs.models import Run

#: Days of figures that pages and commands show. How long runs are kept is the setting `keep_runs_days`.
HISTORY_DAYS: Final = 30


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
    [sums] = fetch_tuples(_TOTALS, {"source": feed.source_id, "days": days})
    return _totals(sums)


def days_since(feed: Feed, *, days: int = HISTORY_DAYS) -> dict[date, Totals]:
    """Return the same runs by the day on which they began, in UTC, oldest first; the first day is only a part."""
    rows = fetch_tuples(_BY_DAY, {"source": feed.source_id, "days": days})
    return {day: _totals(sums) for day, *sums in rows}


def _totals(sums: Any) -> Totals:
    return Totals(**dict(zip(Totals.__dataclass_fields__, sums, strict=True)))


_LATEST = """
SELECT r.* FROM unnest(%s::uuid[]) AS wanted (source_id)
CROSS JOIN LATERAL (
    SELECT * FROM runs WHERE source_id = wanted.source_id AND kind = 'AFFILIATE_FEED'
    ORDER BY started_at DESC, no DESC LIMIT 1
) r
"""
#: The figures of a run in charts.
_DRAWN = (
    *("rows_read", "prices_written", "products_rejected"),
    *("run__no", "run__started_at", "run__duration_ms"),
)


def latest_runs(source_ids: Collection[UUID]) -> dict[UUID, Run]:
    """Return the newest run of each source's feed, for those that have one."""
    found = Run.objects.raw(_LATEST, [list(source_ids)])
    return {run.source_id: run for run in found if run.source_id}


def figures_since(feed: Feed, *, days: int = HISTORY_DAYS, most: int) -> list[FeedRun]:
    """Return the newest runs of these days with the figures of charts, oldest first."""
    since = database_now() - timedelta(days=days)
    found = FeedRun.objects.filter(run__source_id=feed.source_id, run__started_at__gte=since)
    newest = found.select_related("run").only(*_DRAWN).order_by("-run__started_at", "-run__no")[:most]
    return list(newest)[::-1]


def latest_test(feed: Feed) -> Job | None:
    """Return the job of the newest feed test, if it was not deleted."""
    asked = AuditEvent.objects.filter(object_type="feed", object_id=str(feed.pk), verb="FEED_TEST_REQUESTED")
    newest = asked.order_by("-at", "-id").first()
    return test_job(feed, newest.detail["job_id"]) if newest else None


def test_job(feed: Feed, job_id: int) -> Job | None:
    """Return this job if it is a test of the feed."""
    job = Job.objects.filter(pk=job_id, kind=TEST).first()
    return job if job and job.args.get("feed_id") == str(feed.pk) else None


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
    return int(fetch_tuples(_VISIBLE_NOW)[0][0])


def today() -> Day:
    """Return the current day so far."""
    now = datetime.now(UTC).date()
    counts = {row[0]: row[1:] for row in fetch_tuples(_DAYS, _span(now, now))}
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
    return {row[0]: Day(**dict(zip(names, row, strict=True))) for row in fetch_tuples(_KEPT, {"first": first})}


def _compute(first: date, last: date) -> dict[date, Day]:
    span = _span(first, last)
    counts = {row[0]: row[1:] for row in fetch_tuples(_DAYS, span)}
    visible = dict(fetch_tuples(_VISIBLE_THEN, span))
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
