"""Requests for runs and feed tests."""

from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction

from harvester.catalog import ignored_runs
from harvester.engine.enqueue import Enqueued, enqueue
from harvester.engine.errors import JobCancelled
from harvester.engine.models import Job
from harvester.feeds.change_detection import forget_ingested
from harvester.feeds.jobs import RUN, TEST
from harvester.feeds.models import Feed
from harvester.feeds.readiness import missing_for_a_test
from harvester.feeds.run_context import log_fields
from harvester.feeds.run_endings import drop_lost_request, lock_feed_and_source, log_enqueued
from harvester.feeds.runs import FEED_RUNS
from harvester.feeds.settings import InvalidSettings
from harvester.feeds.states import FeedStatus
from harvester.feeds.verbs.lifecycle import require_status
from harvester.feeds.verbs.locked_feed import database_now, locked, record, save
from harvester.kernel.actor import Actor
from harvester.kernel.errors import NotFound
from harvester.ops import audit
from harvester.runs.endings import settle_failed
from harvester.runs.models import Run
from harvester.runs.orphans import cancelled_message
from harvester.runs.states import RunStatus, RunTrigger

log = structlog.get_logger(__name__)

#: A person waits for a feed test, so it goes before queued runs.
TEST_PRIORITY = 10


@transaction.atomic
def run_now(actor: Actor, feed_id: UUID, *, force: bool = False) -> Enqueued:
    """Request a run, which begins at once or after the run in progress; the schedule does not change.

    With `force`, the file is read even if it is unchanged or belongs to an ignored run, and imported even if no line
    feed ends it.
    """
    return _request(actor, locked(feed_id), RunTrigger.MANUAL, force=force)


@transaction.atomic
def start_again(actor: Actor, job_id: int) -> int:
    """Start a new run in place of retrying a job that has ended; return the new job.

    The run of the old job has ended and cannot continue.
    """
    return _request(actor, locked(_feed_id(job_id)), RunTrigger.RETRY, retried_job_id=job_id).job_id


@transaction.atomic
def cancel_waiting(actor: Actor, job_id: int) -> None:
    """End the run of a job that was cancelled while it waited; without a run, withdraw its request."""
    feed = locked(_feed_id(job_id))
    run = Run.objects.filter(job_id=job_id, status=RunStatus.RUNNING).first()
    if run is None:
        drop_lost_request(feed)
        return
    with connection.cursor() as cursor:
        feed, _ = lock_feed_and_source(cursor, feed)
    message = cancelled_message(FEED_RUNS, actor.name)
    settle_failed(FEED_RUNS, feed, run, JobCancelled.code, message, stage=run.stage)
    audit.record(actor, "RUN_CANCELLED", "run", run.id, detail={"feed": str(feed.id), "job_id": job_id})


def _feed_id(job_id: int) -> UUID:
    given = Job.objects.values_list("args", flat=True).get(pk=job_id).get("feed_id")
    try:
        return UUID(str(given))
    except ValueError:
        raise NotFound(f"Job {job_id} has no feed, so nothing can run.") from None


def _request(actor: Actor, feed: Feed, trigger: RunTrigger, *, force: bool = False, **detail: Any) -> Enqueued:
    require_status(feed, FeedStatus.ENABLED, "run")
    feed.manual_run_requested_at = database_now()
    feed.takes_file_as_is |= force
    save(feed, "manual_run_requested_at", "takes_file_as_is", *(forget_ingested(feed) if force else ()))
    if force:
        ignored_runs.lift_refusals(feed.source_id)
    # Without a dedupe key: a job that is about to end would absorb this request.
    made = enqueue(RUN, {"feed_id": str(feed.id), "trigger": trigger.value})  # mutant: request-enqueues
    record(actor, feed, "MANUAL_RUN_REQUESTED", job_id=made.job_id, force=force, **detail)
    active = Run.objects.filter(source_id=feed.source_id, status=RunStatus.RUNNING).first()
    if active is not None:
        # The request waits for this run, which began before it.
        fields = {**log_fields(feed), "active_run_id": str(active.id), "stage": "scheduler"}
        transaction.on_commit(lambda: log.warning("MANUAL_RUN_PENDING_SET", **fields))
    log_enqueued(feed, trigger, made.job_id)
    return made


@transaction.atomic
def test_run(actor: Actor, feed_id: UUID) -> Enqueued:
    """Request a test of the feed, in any state; the result of the job has what was found."""
    feed = locked(feed_id)
    if problems := missing_for_a_test(feed):
        raise InvalidSettings(problems)
    made = enqueue(TEST, {"feed_id": str(feed.id)}, priority=TEST_PRIORITY)
    record(actor, feed, "FEED_TEST_REQUESTED", job_id=made.job_id)
    return made
