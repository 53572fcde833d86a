"""The pages that are due. To claim a due page, a tick locks its source, so parallel ticks never enqueue it twice."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch
from harvester.engine.cron import next_moment
from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.job import RunningJob
from harvester.kernel.actor import system
from harvester.kernel.errors import ConfigError
from harvester.kernel.ids import uuid7
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.runs.models import Run
from harvester.runs.states import RunTrigger
from harvester.scraping import capacity, totals
from harvester.scraping.capacity import Rejection
from harvester.scraping.jobs import QUEUE
from harvester.scraping.lanes import Lanes
from harvester.scraping.runs import SCRAPE_RUNS

log = structlog.get_logger(__name__)

ACTOR: Final = system("scheduler")
#: Sources whose rows one transaction locks, and pages that it enqueues: few, because the pages of these sources cannot
#: end meanwhile.
MOST_SOURCES, MOST_PAGES = 25, 2_000
#: Sources that a promotion or a person holds are tried again in the same tick, then in the next one.
PASSES: Final = 3
LONGEST_BACKOFF_SECONDS: Final = 3600
#: A backoff beyond this shows that the schedule cannot be met.
ALERT_BACKOFF_SECONDS: Final = 1800
BACKOFF_ALERT: Final = "SCRAPE_BACKOFF"

_MAY_BE_READ = """
    s.enabled AND s.scrape_enabled AND s.robots_compliant AND s.adapter_id IS NOT NULL AND coalesce(a.enabled, true)
    AND (a.backoff_until IS NULL OR a.backoff_until <= statement_timestamp())
    AND NOT EXISTS (SELECT FROM source_breakers b
                    WHERE b.source_id = s.id AND b.kind = 'SCRAPE' AND b.stopped_at IS NOT NULL)
"""
_IS_DUE = "t.due_at <= statement_timestamp() AND t.enabled AND t.status = 'ACTIVE' AND NOT t.robots_path_blocked"
_IS_RECHECKED = (
    "t.recheck_at <= statement_timestamp() AND t.enabled AND t.status IN ('ACTIVE', 'BROKEN') "
    "AND NOT t.robots_path_blocked"
)
# One search in an index for each source that may be read: cheap when nothing is due.
_SOURCES = f"""
SELECT s.id FROM sources s
LEFT JOIN adapter_states a ON a.source_id = s.id AND a.adapter_id = s.adapter_id
WHERE {_MAY_BE_READ} AND (
    EXISTS (SELECT FROM scrape_targets t WHERE t.source_id = s.id AND {_IS_DUE})
    OR EXISTS (SELECT FROM scrape_targets t WHERE t.source_id = s.id AND {_IS_RECHECKED}))
"""  # noqa: S608 - constants only
# What is due of these sources, with the pages that fit: the oldest first within a priority, first within the room of
# each source, then within that of all together. Pages with an open job need no room: what they missed is one job.
_PLAN = f"""
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(%(sources)s::uuid[], %(rooms)s::int[]) AS g(source_id, room)
), due AS MATERIALIZED (
    SELECT id, source_id, priority, min(since) AS since, bool_or(is_recheck) AS is_recheck FROM (
        SELECT t.id, t.source_id, t.priority, t.due_at AS since, false AS is_recheck
        FROM given g JOIN scrape_targets t ON t.source_id = g.source_id WHERE {_IS_DUE}
        UNION ALL
        SELECT t.id, t.source_id, t.priority, t.recheck_at, true
        FROM given g JOIN scrape_targets t ON t.source_id = g.source_id WHERE {_IS_RECHECKED}
    ) both_kinds GROUP BY id, source_id, priority
), looked_up AS MATERIALIZED (
    SELECT d.*, EXISTS (SELECT FROM jobs j WHERE j.dedupe_key = 'scrape:' || d.id::text
                        AND j.state IN ('pending', 'running', 'retryable')) AS is_waiting
    FROM due d
), ranked AS (
    SELECT l.*, row_number() OVER (PARTITION BY source_id, is_waiting ORDER BY priority DESC, since, id) AS place
    FROM looked_up l
), fitting AS (
    SELECT r.id, r.source_id, r.is_recheck, r.place FROM ranked r JOIN given g USING (source_id)
    WHERE NOT r.is_waiting AND r.place <= g.room
    ORDER BY r.priority DESC, r.since, r.id LIMIT %(left)s
)
SELECT source_id,
    coalesce(array_agg(id ORDER BY place) FILTER (WHERE kind = 'read'), '{{}}') AS pages,
    coalesce(array_agg(id ORDER BY place) FILTER (WHERE kind = 'recheck'), '{{}}') AS rechecks,
    coalesce(array_agg(id) FILTER (WHERE kind = 'waiting'), '{{}}') AS waiting,
    count(*) FILTER (WHERE kind = 'all') AS due
FROM (
    SELECT source_id, id, place, CASE WHEN is_recheck THEN 'recheck' ELSE 'read' END AS kind FROM fitting
    UNION ALL
    SELECT source_id, id, 0, 'waiting' FROM looked_up WHERE is_waiting
    UNION ALL
    SELECT source_id, id, 0, 'all' FROM looked_up WHERE NOT is_waiting
) found
GROUP BY source_id ORDER BY source_id
"""  # noqa: S608 - constants only
_LOCK_SOURCES = f"""
WITH locked AS MATERIALIZED (
    SELECT * FROM sources WHERE id = ANY (%(sources)s::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
)
SELECT s.id, {_MAY_BE_READ} AS may_be_read, coalesce(a.backoff_seconds, 0) AS backoff_seconds
FROM locked s LEFT JOIN adapter_states a ON a.source_id = s.id AND a.adapter_id = s.adapter_id
"""  # noqa: S608 - constants only
_SCHEDULES = "SELECT DISTINCT schedule FROM scrape_targets WHERE id = ANY (%(pages)s::uuid[])"
# Moves the due moments on: a schedule to its next moment, whatever was missed; a second look to a later one, in case
# this one finds nothing out. Rows are locked in the order of their ids, as by everybody who locks many.
_CLAIM = f"""
WITH picked AS MATERIALIZED (
    SELECT t.id, {_IS_DUE} AS is_due, {_IS_RECHECKED} AS is_rechecked FROM scrape_targets t
    WHERE t.id = ANY (%(pages)s::uuid[]) ORDER BY t.id FOR NO KEY UPDATE
), moved AS (
    UPDATE scrape_targets t SET
        due_at = CASE WHEN p.is_due THEN m.next_at ELSE t.due_at END,
        recheck_at = CASE WHEN p.is_rechecked THEN statement_timestamp() + CASE t.recheck_reason
            WHEN 'BROKEN' THEN interval '7 days' WHEN 'GONE' THEN interval '1 hour' ELSE interval '10 minutes' END
            ELSE t.recheck_at END
    FROM picked p, unnest(%(schedules)s::text[], %(moments)s::timestamptz[]) AS m(schedule, next_at)
    WHERE t.id = p.id AND (p.is_due OR p.is_rechecked) AND m.schedule = coalesce(t.schedule, '')
    RETURNING t.id, t.url, t.priority
)
SELECT m.id, m.url, m.priority FROM moved m
WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.dedupe_key = 'scrape:' || m.id::text
                  AND j.state IN ('pending', 'running', 'retryable'))
"""  # noqa: S608 - constants only
_BEGIN_RUNS = """
INSERT INTO runs (id, kind, subject_id, source_id, trigger, status)
SELECT i.id, %(kind)s, i.source_id, i.source_id, i.trigger, 'RUNNING'
FROM unnest(%(ids)s::uuid[], %(sources)s::uuid[], %(triggers)s::text[]) AS i(id, source_id, trigger)
RETURNING id, no, started_at
"""
_BEGIN_PARTS = """
INSERT INTO run_parts (id, begun_at, run_id, target_id, job_id)
SELECT * FROM unnest(
    %(ids)s::uuid[], %(begun)s::timestamptz[], %(runs)s::uuid[], %(targets)s::uuid[], %(jobs)s::bigint[])
"""
_BACK_OFF = """
INSERT INTO adapter_states AS a (source_id, adapter_id, backoff_seconds, backoff_until)
VALUES (%(source)s, %(adapter)s, %(seconds)s, statement_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (source_id, adapter_id) DO UPDATE SET backoff_seconds = excluded.backoff_seconds,
    backoff_until = excluded.backoff_until, updated_at = clock_timestamp()
"""
_END_BACK_OFF = """
UPDATE adapter_states SET backoff_seconds = 0, backoff_until = NULL, updated_at = clock_timestamp()
WHERE (source_id, adapter_id) = (%s, %s)
"""


@dataclass(frozen=True, kw_only=True)
class Due:
    """What is due of one source.

    Attributes:
        source_id: the source.
        pages: those to read by their schedule.
        rechecks: those to look at a second time.
        waiting: those with an open job.
        due: how many are due without one.
    """

    source_id: UUID
    pages: tuple[UUID, ...]
    rechecks: tuple[UUID, ...]
    waiting: tuple[UUID, ...]
    due: int

    @property
    def size(self) -> int:
        """How many pages are to be enqueued."""
        return len(self.pages) + len(self.rechecks)

    def without(self, left_out: Collection[UUID]) -> "Due":
        """Return the same without some of its pages."""
        pages, rechecks = ([page for page in of if page not in left_out] for of in (self.pages, self.rechecks))
        return replace(self, pages=tuple(pages), rechecks=tuple(rechecks))

    def within(self, places: int) -> "Due":
        """Return the same with no more pages than there are places, rechecks first."""
        rechecks = self.rechecks[:places]
        return replace(self, rechecks=rechecks, pages=self.pages[: places - len(rechecks)])


def backoff_key(source: Source) -> str:
    """Return the key of the alert about a source that pauses too long."""
    return f"{BACKOFF_ALERT}:source:{source.pk}"


def tick(job: RunningJob) -> dict[str, int]:
    """Begin a run for each source with due pages; return how many pages were enqueued and rejected."""
    began = time.monotonic()
    counts = {"sources": 0, "enqueued": 0, "rejected": 0, "busy": 0}
    plan = _plan()
    lanes = Lanes.load() if plan else Lanes(own_hosts=frozenset(), rates={})
    for _ in range(PASSES):
        busy: list[Due] = []
        chunks: list[list[Due]] = []
        for due in plan:
            size = sum(each.size for each in chunks[-1]) if chunks else 0
            if not chunks or len(chunks[-1]) == MOST_SOURCES or size + due.size > MOST_PAGES:
                chunks.append([])
            chunks[-1].append(due)
        for chunk in chunks:
            with job.transaction(), connection.cursor() as cursor:
                busy += _enqueue(cursor, chunk, lanes, counts)
            job.check()
        plan = busy
    counts["busy"] = len(plan)
    took = round((time.monotonic() - began) * 1000)
    log.debug("SCRAPE_TICK", stage="scheduler", tick_duration_ms=took, **counts)
    return counts


def _plan() -> list[Due]:
    """Return what is due, as far as there seems to be room."""
    with connection.cursor() as cursor:
        cursor.execute(_SOURCES)
        sources = [row[0] for row in cursor.fetchall()]
        if not sources:
            return []
        room = capacity.room(cursor)
    rooms = [room.of(source) for source in sources]
    rows = fetch(_PLAN, {"sources": sources, "rooms": rooms, "left": room.left})
    return [
        Due(
            source_id=row["source_id"], pages=tuple(row["pages"]), rechecks=tuple(row["rechecks"]),
            waiting=tuple(row["waiting"]), due=row["due"],
        )
        for row in rows
    ]  # fmt: skip


def _enqueue(cursor: Any, chunk: Sequence[Due], lanes: Lanes, counts: dict[str, int]) -> list[Due]:
    """Claim the due pages of some sources and begin their runs; return those whose sources are locked by others."""
    cursor.execute(_LOCK_SOURCES, {"sources": [due.source_id for due in chunk]})
    states = {source_id: (may_be_read, backoff) for source_id, may_be_read, backoff in cursor.fetchall()}
    readable = [due for due in chunk if states.get(due.source_id, (False, 0))[0]]
    sources = Source.objects.select_related("retailer").in_bulk([due.source_id for due in readable])
    capacity.hold(cursor)
    room, resting = capacity.room(cursor), _resting(cursor, lanes, readable)
    fitting: list[Due] = []
    for due in readable:
        awake = due.without(resting)
        fitting.append(awake.within(room.of(due.source_id)))
        room.left -= fitting[-1].size
    claimed = _claim(cursor, fitting)
    counts["enqueued"] += _begin_runs(cursor, sources, fitting, claimed, lanes)
    rejected = []
    for due, fits in zip(readable, fitting, strict=True):
        source = sources[due.source_id]
        counts["sources"] += 1
        rests = [resting[page] for page in (*due.pages, *due.rechecks) if page in resting]
        rejections = {Rejection.RATE_LIMITED: len(rests), Rejection.QUEUE_FULL: due.due - fits.size - len(rests)}
        counts["rejected"] += sum(rejections.values())
        adapter = str(source.adapter_id)
        rejected += [(source.pk, adapter, reason, number) for reason, number in rejections.items() if number]
        before, total = states[source.pk][1], sum(rejections.values())
        if total * 2 > due.due:
            queue_wait = capacity.wait_for(rejections[Rejection.QUEUE_FULL], lanes.interval_of(source))
            _back_off(cursor, source, before, max(rests, default=0) or queue_wait, f"{total:,} of {due.due:,}")
        elif before:
            cursor.execute(_END_BACK_OFF, [source.pk, source.adapter_id])
            resolve_alert(backoff_key(source), "Its pages are enqueued again.")
    totals.add_many(cursor, totals.REJECTED, rejected)
    return [due for due in chunk if due.source_id not in states]


def _resting(cursor: Any, lanes: Lanes, readable: Sequence[Due]) -> dict[UUID, int]:
    """Return the due pages whose lanes rest because the shop asked for it, and for how many seconds."""
    rests = capacity.long_rests(cursor, QUEUE)
    pages = [page for due in readable for page in (*due.pages, *due.rechecks)] if rests else []
    if not pages:
        return {}
    cursor.execute("SELECT id, url FROM scrape_targets WHERE id = ANY (%s)", [pages])
    found = {page: lanes.lane_of(url) for page, url in cursor.fetchall()}
    return {page: rests[lane] for page, lane in found.items() if lane in rests}


def _claim(cursor: Any, fitting: Sequence[Due]) -> dict[UUID, tuple[str, int]]:
    """Move the due moments on; return page -> its address and priority, for those that no job waits for."""
    pages = [page for due in fitting for page in (*due.pages, *due.rechecks, *due.waiting)]
    if not pages:
        return {}
    cursor.execute("SELECT clock_timestamp()")
    now = cursor.fetchone()[0]
    cursor.execute(_SCHEDULES, {"pages": pages})
    moments = {schedule or "": _next_due(schedule, now) for (schedule,) in cursor.fetchall()}
    values = {"pages": pages, "schedules": list(moments), "moments": list(moments.values())}
    cursor.execute(_CLAIM, values)
    return {page: (url, priority) for page, url, priority in cursor.fetchall()}


def _next_due(schedule: str | None, now: datetime) -> datetime | None:
    try:
        return next_moment(schedule, now) if schedule else None
    except ConfigError as problem:
        # It was checked when it was entered; one bad row must not stop all others.
        log.error("SCRAPE_SCHEDULE_INVALID", schedule=schedule, error=str(problem))
        return None


def _begin_runs(
    cursor: Any,
    sources: Mapping[UUID, Source],
    fitting: Sequence[Due],
    claimed: Mapping[UUID, tuple[str, int]],
    lanes: Lanes,
) -> int:
    """Begin the runs of some locked sources, as `runs.parts.begin` does for one; return how many pages they have."""
    runs: dict[Run, list[UUID]] = {}
    for due in fitting:
        for trigger, wanted in ((RunTrigger.RECHECK, due.rechecks), (RunTrigger.SCHEDULED, due.pages)):
            if pages := [page for page in wanted if page in claimed]:
                run = Run(kind=SCRAPE_RUNS.name, subject_id=due.source_id, source_id=due.source_id, trigger=trigger)
                runs[run] = pages
    if not runs:
        return 0
    ids, owners, triggers = map(list, zip(*((run.id, run.source_id, run.trigger) for run in runs), strict=True))
    values = {"kind": SCRAPE_RUNS.name, "ids": ids, "sources": owners, "triggers": triggers}
    cursor.execute(_BEGIN_RUNS, values)
    begun = {run_id: (no, started_at) for run_id, no, started_at in cursor.fetchall()}
    new, jobs = [], []
    for run, pages in runs.items():
        run.no, run.started_at = begun[run.id]
        for page in pages:
            url, priority = claimed[page]
            new.append((uuid7(), run.started_at, run.id, page))
            jobs.append(
                NewJob(
                    kind=SCRAPE_RUNS.part_job_kind,
                    args={"part_id": str(new[-1][0]), "begun_at": run.started_at.isoformat()},
                    lane=lanes.lane_of(url),
                    priority=priority,
                    dedupe_key=f"scrape:{page}",
                )
            )
        log.info("RUN_START", source_id=str(run.source_id), run_id=str(run.id), parts=len(pages), trigger=run.trigger)
    SCRAPE_RUNS.begin_all([(run, sources[run.subject_id]) for run in runs], requested_by=ACTOR.name)
    job_ids = enqueue_many(jobs)
    part_ids, moments, run_ids, targets = map(list, zip(*new, strict=True))
    parts = {"ids": part_ids, "begun": moments, "runs": run_ids, "targets": targets, "jobs": job_ids}
    cursor.execute(_BEGIN_PARTS, parts)
    return len(new)


def _back_off(cursor: Any, source: Source, before: int, wait: int, rejected: str) -> None:
    """Pause a source of which most was rejected: for the wait, or twice as long as the time before [8.2]."""
    seconds = min(before * 2 or wait, LONGEST_BACKOFF_SECONDS)
    values = {"source": source.pk, "adapter": source.adapter_id, "seconds": seconds}
    cursor.execute(_BACK_OFF, values)
    log.warning("SCRAPE_BACKOFF", source_id=str(source.pk), rejected=rejected, seconds=seconds)
    if seconds > ALERT_BACKOFF_SECONDS:
        raise_alert(
            BACKOFF_ALERT,
            backoff_key(source),
            f"{source}: most due pages are rejected",
            f"{rejected} due pages were rejected, so the scheduler pauses for {seconds // 60} minutes. Their due "
            "moments stay. Read them less often, raise the pace if the shop allows it, or raise "
            "HARVESTER_SCRAPE_PENDING_PER_SOURCE or HARVESTER_SCRAPE_PENDING.",
            detail={"source_id": str(source.pk), "seconds": seconds},
        )
