"""Deletion of old rows. Audit events are never deleted."""

from datetime import timedelta

import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone

from harvester.engine import sql
from harvester.engine.job import RunningJob
from harvester.engine.registry import all_kinds, job_kind, periodic
from harvester.guards import limits
from harvester.kernel.retry import RetryPolicy
from harvester.ops import idempotency
from harvester.ops.models import Alert

log = structlog.get_logger(__name__)

CLEAN_UP = "ops.clean_up"
BATCH = 1_000
#: Partitions are created this many months ahead, so that the scheduler may be down for weeks.
MONTHS_AHEAD = 3
# All our partitioned tables are partitioned by month, except parts of runs, whose days harvester.runs makes.
_MAKE_MONTHS = """
SELECT make_partitions(c.oid::regclass, %s) FROM pg_class c
WHERE c.relkind = 'p' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'run_parts'
"""
#: Dropping a month needs a moment without writers, which may take some attempts.
RETRY = RetryPolicy(base=60.0, factor=3.0, attempts=5)


def register() -> None:
    job_kind(CLEAN_UP, queue="maintenance", retry=RETRY)(clean_up)
    periodic("daily clean-up", kind=CLEAN_UP, cron="17 3 * * *")


def clean_up(job: RunningJob) -> dict[str, int]:
    """Delete old ended jobs, drop old months of their history, and create the coming months.

    Also delete old alerts, stored responses of the API, and unused rate limits.
    """
    config = settings.CONFIG
    ages = {"succeeded": config.keep_succeeded_days, "cancelled": config.keep_succeeded_days}
    ages["failed"] = config.keep_failed_days
    deleted = {f"{state}_jobs": _delete_jobs(job, state, days) for state, days in ages.items()}
    for days in {kind.keep_days for kind in all_kinds().values() if kind.keep_days is not None}:
        kinds = [kind.name for kind in all_kinds().values() if kind.keep_days == days]
        deleted["succeeded_jobs"] += _delete_jobs(job, "succeeded", days, kinds)
    # Few enough for one transaction each. An open alert is kept however old it is.
    with job.transaction():
        ended_before = timezone.now() - timedelta(days=config.keep_alerts_days)
        deleted["alerts"] = int(Alert.objects.filter(resolved_at__lt=ended_before).delete()[0])
    with job.transaction():
        deleted["api_answers"] = idempotency.delete_old()
    with job.transaction():
        deleted["rate_limits"] = limits.forget_idle()
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(sql.CLEAN_UP_LANES)
        before = timezone.now() - timedelta(days=max(ages.values()))
        cursor.execute("SELECT drop_old_job_events(%s)", [before])
        dropped = cursor.fetchone()[0]
        cursor.execute(_MAKE_MONTHS, [MONTHS_AHEAD])
    log.info("CLEANED_UP", **deleted, dropped_months=dropped)
    return {**deleted, "dropped_months": dropped}


def _delete_jobs(job: RunningJob, state: str, days: int, kinds: list[str] | None = None) -> int:
    """Delete in batches, each its own transaction, so that nothing waits for a long one."""
    total: int = 0
    while True:
        job.check()
        with job.transaction(), connection.cursor() as cursor:
            cursor.execute(sql.CLEAN_UP, {"days": days, "states": [state], "most": BATCH, "kinds": kinds})
            deleted = int(cursor.rowcount)
        total += deleted
        job.progress(total, note=f"{state} jobs deleted")
        if deleted < BATCH:
            return total
