"""The newest runs and tests of feeds, and their visible offers, from stored figures: offers are not counted."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from harvester.engine.models import Job
from harvester.feeds.jobs import TEST
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.verbs.locked_feed import database_now
from harvester.ops.models import AuditEvent
from harvester.runs.models import Run

#: Days of figures that pages and commands show. How long runs are kept is the setting `keep_runs_days`.
HISTORY_DAYS: Final = 30

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
