"""The runs of the last 30 days with their figures, and their audit events and alerts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.feeds.jobs import RUN
from harvester.feeds.models import FeedRun
from harvester.feeds.runs import FEED_RUNS
from harvester.runs.models import Run
from harvester.runs.states import RunStatus, RunTrigger
from tests.bench.seeding.shops import NEWEST, Shop, Story, domain, network

#: Runs that seem to be in progress; their jobs wait for a day, so that no worker takes them for real.
RUNNING = 5
_DAY_SECONDS = 86_400.0

# The same number out of the same place, whatever the machine: a draw from 0 to below size.
DRAW = """
CREATE FUNCTION pg_temp.draw(place bigint, salt bigint, size bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT mod(hashint8extended(place, salt + {salt}) & 9223372036854775807, size)
$$
"""
_SHOPS = """
CREATE TEMPORARY TABLE seed_shops (
    number bigint PRIMARY KEY, source_id uuid, feed_id uuid, story text, newest text, times integer, runs integer,
    first bigint, products bigint, spacing interval, phase interval, domain text, network text)
"""
_SHOP = "INSERT INTO seed_shops VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

# The newest runs of a feed are as its story says; then comes one that promoted, and after that it is chance.
_PLANNED = """
CREATE TEMPORARY TABLE seed_runs AS
SELECT p.*, (lpad(to_hex((extract(epoch FROM started_at) * 1000)::bigint), 12, '0') || '7' || substr(mix, 1, 3)
             || 'a' || substr(mix, 4, 15))::uuid AS id,
       started_at + took AS finished_at, NULL::bigint AS no
FROM (
    SELECT s.*, i AS place, s.number * 100000 + i AS dice, md5(s.feed_id::text || i) AS mix,
        %(moment)s - s.phase - i * s.spacing AS started_at,
        (3 + pg_temp.draw(s.number * 100000 + i, 1, 90) + s.products / 400) * interval '1 second' AS took,
        CASE WHEN i < s.times THEN s.newest WHEN i = s.times THEN 'PROMOTED'
             WHEN pg_temp.draw(s.number * 100000 + i, 2, 100) < 4 THEN 'FAILED'
             WHEN pg_temp.draw(s.number * 100000 + i, 2, 100) < 24 THEN 'SKIPPED' ELSE 'PROMOTED' END AS ending
    FROM seed_shops s CROSS JOIN LATERAL generate_series(0, s.runs - 1) i
) p
"""
_RUNS = """
INSERT INTO runs (id, kind, subject_id, source_id, trigger, status, outcome, started_at, finished_at, duration_ms,
    stage, artifact_hash, observed_at, error_code, error, verdict, timings)
SELECT id, 'AFFILIATE_FEED', feed_id, source_id,
    CASE WHEN pg_temp.draw(dice, 3, 20) = 0 THEN 'MANUAL' ELSE 'SCHEDULED' END,
    CASE ending WHEN 'FAILED' THEN 'FAILED' ELSE 'SUCCEEDED' END, nullif(ending, 'FAILED'),
    started_at, finished_at, extract(epoch FROM took) * 1000, CASE ending WHEN 'FAILED' THEN 'download' END,
    CASE WHEN ending <> 'FAILED' THEN encode(sha256(mix::bytea), 'hex') END,
    CASE WHEN ending = 'PROMOTED' THEN started_at + took / 2 END,
    CASE WHEN ending = 'FAILED' THEN CASE story WHEN 'NEW_KEY' THEN 'HOST_KEY_CHANGED' ELSE 'CONNECT_TIMEOUT' END END,
    CASE WHEN ending = 'FAILED' THEN CASE story
        WHEN 'NEW_KEY' THEN 'The host key of sftp.' || domain || ' is not the approved one. Nothing was sent.'
        ELSE 'sftp.' || domain || ' did not answer within 15 s. What was promoted before still shows.' END END,
    CASE WHEN ending = 'HELD' THEN jsonb_build_array(jsonb_build_object('gate', 'EXPIRY_SPIKE', 'holds', true,
        'reason', format('%%s of %%s products on sale are missing (40.0%%%%); at most 30.0%%%% may be.',
                         products - seen, products),
        'figures', jsonb_build_object('missing', products - seen, 'active_before', products, 'threshold_share', 0.3)))
        ELSE '[]' END,
    jsonb_build_object('download', 800, 'parse', 2 * products / 100, 'promote', w.wrote * products / 100)
FROM seed_runs
CROSS JOIN LATERAL (SELECT (ending IN ('PROMOTED', 'HELD'))::int AS read, (ending = 'PROMOTED')::int AS wrote) w
CROSS JOIN LATERAL (SELECT products - CASE ending WHEN 'HELD' THEN products * 2 / 5 ELSE products * 3 / 100 END AS seen,
                           pg_temp.draw(dice, 4, 8) * products / 1000 AS refused) c
ORDER BY started_at, number
"""
_NUMBERS = "UPDATE seed_runs p SET no = r.no FROM runs r WHERE r.id = p.id"

# How many rows a file had is that of the catalog and what was refused of it. Prices are counted when they are written.
_FIGURES = """
INSERT INTO feed_runs (run_id, feed_id, skipped_reason, remote_mtime, remote_size, download_bytes, rows_read,
    rows_parsed, products_upserted, products_new, products_changed, products_missing, products_back, products_expired,
    products_rejected, prices_written, prices_due, error_count, known_products, shocked_products,
    url_hash_fallback_count, identity_upgrades, active_count_before, seen_success_count, would_expire_count,
    rejects, dialect)
SELECT id, feed_id, CASE ending WHEN 'SKIPPED' THEN 'UNCHANGED_MTIME' END,
    started_at - interval '20 minutes', products * 96, w.read * products * 96, w.read * (seen + refused),
    w.read * seen, w.read * seen, CASE WHEN place = runs - 1 THEN w.read * seen ELSE 0 END,
    w.wrote * (products / 100), w.read * (products - seen), 0, 0, w.read * refused, 0, w.read * (products / 20),
    w.read * refused, w.read * seen, 0, 0, 0, w.read * products, w.read * seen, w.read * (products - seen),
    CASE WHEN w.read * refused > 0 THEN jsonb_build_object('MISSING_PRICE', refused) ELSE '{}' END,
    CASE WHEN w.read = 1 THEN '{"delimiter": ",", "quoted": true, "encoding": "utf-8"}'::jsonb ELSE '{}' END
FROM seed_runs
CROSS JOIN LATERAL (SELECT (ending IN ('PROMOTED', 'HELD'))::int AS read, (ending = 'PROMOTED')::int AS wrote) w
CROSS JOIN LATERAL (SELECT products - CASE ending WHEN 'HELD' THEN products * 2 / 5 ELSE products * 3 / 100 END AS seen,
                           pg_temp.draw(dice, 4, 8) * products / 1000 AS refused) c
"""
_SAMPLES = """
INSERT INTO feed_run_samples (run_id, code, place, line, row, reason)
SELECT r.id, 'MISSING_PRICE', i, 17 + 31 * i, format('%%s,SKU-%%s,,USD', i, 1000 + i), 'there is no price'
FROM seed_runs r JOIN feed_runs f ON f.run_id = r.id
CROSS JOIN LATERAL generate_series(0, least(f.products_rejected, 5) - 1) i
WHERE r.place < 2 AND f.products_rejected > 0
"""
_TRAIL = """
INSERT INTO audit_events (actor_kind, actor_id, actor_name, verb, object_type, object_id, changed, detail)
SELECT 'system', 'feeds', 'feeds', 'RUN_' || ending, 'run', id::text, '{}',
       jsonb_build_object('feed', feed_id)
FROM seed_runs WHERE ending IN ('PROMOTED', 'HELD') ORDER BY finished_at
"""
_ALERTS = """
INSERT INTO alerts (kind, key, severity, title, body, detail, opened_at, last_seen_at, resolved_at, resolved_note)
SELECT kind, kind || ':feed:' || feed_id, 'warning', format(title, name, no), body,
    jsonb_build_object('feed_id', feed_id, 'run_no', no), finished_at, finished_at, resolved_at,
    CASE WHEN resolved_at IS NULL THEN '' ELSE 'A run of the feed succeeded.' END
FROM (
    SELECT r.*, s.name, t.*, CASE WHEN r.place >= r.times THEN r.finished_at + r.spacing END AS resolved_at
    FROM seed_runs r JOIN sources s ON s.id = r.source_id
    JOIN (VALUES
        ('HELD', 'RUN_HELD', '%%s: run %%s is held',
         'EXPIRY_SPIKE: too many products are missing.' || chr(10) || 'Approve or reject the run.'),
        ('FAILED', 'RUN_FAILED', '%%s: run %%s failed (CONNECT_TIMEOUT)', 'The server did not answer within 15 s.'),
        ('DISABLED', 'FEED_AUTO_DISABLED', '%%s: disabled after 3 failures',
         'Fix the cause, then re-enable the feed.')
    ) AS t (of, kind, title, body)
        ON t.of = r.ending AND (r.place = 0 OR r.place >= r.times) OR t.of = r.story AND r.place = 0
) reported ORDER BY finished_at
"""

# What sources know of their newest runs.
_PROMOTED = """
UPDATE sources s SET last_promoted_run_no = r.no, last_promoted_at = r.finished_at,
    last_promoted_count = r.products - r.products * 3 / 100,
    last_promoted_hash = encode(sha256(r.mix::bytea), 'hex'), last_observed_at = r.started_at + r.took / 2,
    last_success_at = r.finished_at
FROM seed_runs r WHERE r.source_id = s.id AND r.place = r.times
"""
_HELD = """
UPDATE sources s SET held_run_no = r.no, held_since = r.finished_at
FROM seed_runs r WHERE r.source_id = s.id AND r.ending = 'HELD'
"""
_INGESTED = """
UPDATE feeds f SET last_ingested_run_no = r.no, last_remote_mtime = r.started_at - interval '20 minutes',
    last_remote_size = r.products * 96, last_content_hash = encode(sha256(r.mix::bytea), 'hex')
FROM (SELECT DISTINCT ON (feed_id) * FROM seed_runs WHERE ending IN ('PROMOTED', 'HELD')
      ORDER BY feed_id, place) r
WHERE f.id = r.feed_id
"""
#: By source, newest first: the runs that prices came with.
_ORIGINS = """
CREATE TEMPORARY TABLE seed_origins AS
SELECT number, array_agg(no ORDER BY place) AS nos, array_agg(started_at + took / 2 ORDER BY place) AS observed,
       array_agg(finished_at ORDER BY place) AS finished
FROM seed_runs WHERE ending = 'PROMOTED' GROUP BY number
"""
_ALL = (
    *("ANALYZE seed_shops", _PLANNED, _RUNS, _NUMBERS, "ANALYZE seed_runs", _FIGURES, _SAMPLES, _TRAIL),
    *(_ALERTS, _PROMOTED, _HELD, _INGESTED, _ORIGINS, "ANALYZE seed_origins"),
)


def write_runs(made: Sequence[Shop], moment: datetime, seed: int) -> None:
    """Everything about runs, and for the products the tables `seed_shops` and `seed_origins` of this session."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS seed_shops, seed_runs, seed_origins")
        cursor.execute("DROP FUNCTION IF EXISTS pg_temp.draw(bigint, bigint, bigint)")
        cursor.execute(DRAW.format(salt=seed * 1000))
        cursor.execute(_SHOPS)
        cursor.executemany(_SHOP, [_row(shop) for shop in made])
        for statement in _ALL:
            cursor.execute(statement, {"moment": moment})
        _run_some(made, moment)


def _row(shop: Shop) -> tuple[Any, ...]:
    return (
        *(shop.number, shop.ids[1], shop.ids[2], shop.story.value, *NEWEST.get(shop.story, (None, 0))),
        *(shop.runs, shop.first, shop.products, shop.spacing, shop.phase, domain(shop.number), network(shop.number)),
    )


def _run_some(made: Sequence[Shop], moment: datetime) -> None:
    """A few runs that wait for their next attempt."""
    chosen = [shop for shop in made if shop.story is Story.ORDINARY][:RUNNING]
    args = [{"feed_id": str(shop.ids[2]), "trigger": RunTrigger.SCHEDULED.value} for shop in chosen]
    jobs = enqueue_many(NewJob(kind=RUN, args=arg, delay=_DAY_SECONDS) for arg in args)
    for shop, job_id in zip(chosen, jobs, strict=True):
        run = Run.objects.create(
            kind=FEED_RUNS.name, subject_id=shop.ids[2], source_id=shop.ids[1], trigger=RunTrigger.SCHEDULED,
            status=RunStatus.RUNNING,
            started_at=moment, job_id=job_id, stage="download",
        )  # fmt: skip
        FeedRun.objects.create(run=run, feed_id=shop.ids[2])
