"""Pages that waited in the queue for a day, broken ones that nobody looks at again, and old imports."""

from typing import Final

import structlog
from django.db import connection

from harvester.engine import sql
from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.states import TargetStatus

log = structlog.get_logger(__name__)

#: Hours in the queue after which a page is taken out of it.
MOST_HOURS: Final = 24
#: Stale pages of all sources together that a person should look at.
MOST_STALE: Final = 100
STALE_ALERT: Final = "SCRAPE_STALE_PAGES"

# Pages whose job has not begun, of runs that are a day old.
_OLD = """
SELECT r.source_id, array_agg(p.target_id), array_agg(p.job_id) FROM runs r
JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at
JOIN jobs j ON j.id = p.job_id
WHERE r.kind = 'SCRAPE' AND r.status = 'RUNNING' AND p.outcome IS NULL
  AND r.started_at < statement_timestamp() - %(hours)s * interval '1 hour' AND j.state IN ('pending', 'retryable')
GROUP BY r.source_id ORDER BY r.source_id
"""
_LOOK_AGAIN = """
UPDATE scrape_targets SET recheck_at = statement_timestamp() + interval '7 days', recheck_reason = 'BROKEN'
WHERE status = 'BROKEN' AND recheck_at IS NULL
"""
# Lists hold every line, so they are deleted when nobody looks at them any more.
_FORGET_IMPORTS = """
DELETE FROM scrape_imports WHERE coalesce(finished_at, created_at) < statement_timestamp() - interval '30 days'
  AND status <> 'IMPORTING'
"""


def take_out(job: RunningJob) -> dict[str, int]:
    """Make pages that waited for a day STALE and cancel their jobs; have every broken page looked at once a week.

    Imports that ended 30 days ago are deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OLD, {"hours": MOST_HOURS})
        found = cursor.fetchall()
    stale = 0
    for source_id, targets, job_ids in found:
        with job.transaction(), connection.cursor() as cursor:
            cursor.execute("SELECT FROM sources WHERE id = %s FOR UPDATE", [source_id])
            cursor.execute(sql.CANCEL_MANY, {"ids": job_ids})
            waiting = ScrapeTarget.objects.filter(pk__in=targets, status=TargetStatus.ACTIVE).order_by("pk")
            ids = list(waiting.select_for_update(no_key=True).values_list("pk", flat=True))
            stale += ScrapeTarget.objects.filter(pk__in=ids).update(status=TargetStatus.STALE)
            enqueue(CLOSE_ORPHANS)
        log.warning("SCRAPE_PAGES_STALE", source_id=str(source_id), pages=len(ids))
        job.check()
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(_LOOK_AGAIN)
        rechecks = cursor.rowcount
        cursor.execute(_FORGET_IMPORTS)
        all_stale = ScrapeTarget.objects.filter(status=TargetStatus.STALE)
        count = all_stale.count()
        if count <= MOST_STALE:
            resolve_alert(STALE_ALERT, f"{count:,} pages are stale.")
        else:
            names = all_stale.values_list("source__name", flat=True).distinct()
            raise_alert(
                STALE_ALERT,
                STALE_ALERT,
                f"{count:,} pages waited for a day and are no longer read",
                f"They are of {', '.join(sorted(names)[:10])}. Check whether their schedules can be met and whether "
                "workers run, then re-queue them (`harvester scrape requeue SOURCE`).",
                severity="info",
                detail={"count": count},
            )
    return {"stale": stale, "rechecks": rechecks}
