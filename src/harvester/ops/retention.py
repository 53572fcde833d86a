"""What is cleared away, and when. Audit events never are."""

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone

from harvester.engine import sql
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind, periodic
from harvester.guards import limits
from harvester.kernel.retry import RetryPolicy
from harvester.ops import idempotency
from harvester.ops.models import Alert

log = structlog.get_logger(__name__)

CLEAN_UP = "ops.clean_up"
BATCH = 1_000
#: Partitions are made this many months ahead, so that a scheduler may be away for a season.
MONTHS_AHEAD = 3
# Every partitioned table of the house is partitioned by month.
_MAKE_MONTHS = """
SELECT make_partitions(c.oid::regclass, %s) FROM pg_class c
WHERE c.relkind = 'p' AND c.relnamespace = 'public'::regnamespace
"""
#: To drop a month needs a moment in which nobody writes, which may take some tries.
RETRY = RetryPolicy(base=60.0, factor=3.0, attempts=5)


def register() -> None:
    job_kind(CLEAN_UP, queue="maintenance", retry=RETRY)(clean_up)
    periodic("daily clean-up", kind=CLEAN_UP, cron="17 3 * * *")


def clean_up(job: RunningJob) -> dict[str, int]:
    """Delete ended jobs that are old enough, drop old months of their history, and make the months to come.

    Also what the API remembers of requests: answers after a day, and paces that nobody asks for.
    """
    config = settings.CONFIG
    ages = {"succeeded": config.keep_succeeded_days, "cancelled": config.keep_succeeded_days}
    ages["failed"] = config.keep_failed_days
    deleted = {f"{state}_jobs": _delete(job, state, days) for state, days in ages.items()}
    deleted["alerts"] = _delete_alerts(job, config.keep_alerts_days)
    deleted["api_answers"] = _in_one(job, idempotency.forget_old)
    deleted["rate_limits"] = _in_one(job, limits.forget_idle)
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(sql.CLEAN_UP_LANES)
        before = timezone.now() - timedelta(days=max(ages.values()))
        cursor.execute("SELECT drop_old_job_events(%s)", [before])
        dropped = cursor.fetchone()[0]
        cursor.execute(_MAKE_MONTHS, [MONTHS_AHEAD])
    log.info("CLEANED_UP", **deleted, dropped_months=dropped)
    return {**deleted, "dropped_months": dropped}


def _delete(job: RunningJob, state: str, days: int) -> int:
    """In batches, each its own transaction, so that nothing waits behind a long one."""
    total: int = 0
    while True:
        job.check()
        with job.transaction(), connection.cursor() as cursor:
            cursor.execute(sql.CLEAN_UP, {"days": days, "states": [state], "most": BATCH})
            deleted = int(cursor.rowcount)
        total += deleted
        job.progress(total, note=f"{state} jobs deleted")
        if deleted < BATCH:
            return total


def _in_one(job: RunningJob, forget: Callable[[], int]) -> int:
    """What is few enough for one transaction."""
    with job.transaction():
        return forget()


def _delete_alerts(job: RunningJob, days: int) -> int:
    """Alerts are few; one that is open stays however old it is."""
    with job.transaction():
        old = Alert.objects.filter(resolved_at__lt=timezone.now() - timedelta(days=days))
        return int(old.delete()[0])
