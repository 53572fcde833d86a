"""Asking for a run, and for a test."""

from uuid import UUID

from django.db import transaction

from harvester.engine.enqueue import Enqueued, enqueue
from harvester.feeds.ending import RUN
from harvester.feeds.memory import forget_ingested
from harvester.feeds.readiness import missing_for_a_test
from harvester.feeds.states import FeedStatus, Trigger
from harvester.feeds.validation import InvalidSettings
from harvester.feeds.verbs.finding import database_now, locked, save, tell
from harvester.feeds.verbs.switching import require_status
from harvester.kernel.actor import Actor

#: The kind of job that tries a feed. Somebody waits for it, so it goes before runs that wait.
TEST, TEST_PRIORITY = "feeds.test", 10


@transaction.atomic
def run_now(actor: Actor, feed_id: UUID, *, force: bool = False) -> Enqueued:
    """Ask for a run, at once or right after the one that is at work; the schedule stays as it is.

    With `force`, the file is read even if it is the one that was ingested last.
    """
    feed = locked(feed_id)
    require_status(feed, FeedStatus.ENABLED, "run")
    feed.manual_run_requested_at = database_now()
    save(feed, "manual_run_requested_at", *(forget_ingested(feed) if force else ()))
    # Without a dedupe key: a job that is about to end would swallow this request.
    made = enqueue(RUN, {"feed_id": str(feed.id), "trigger": Trigger.MANUAL.value})
    tell(actor, feed, "MANUAL_RUN_REQUESTED", job_id=made.job_id, force=force)
    return made


@transaction.atomic
def test_run(actor: Actor, feed_id: UUID) -> Enqueued:
    """Have a worker try the feed, in whatever state it is; the job's result tells what was found."""
    feed = locked(feed_id)
    if problems := missing_for_a_test(feed):
        raise InvalidSettings(problems)
    made = enqueue(TEST, {"feed_id": str(feed.id)}, priority=TEST_PRIORITY)
    tell(actor, feed, "FEED_TEST_REQUESTED", job_id=made.job_id)
    return made
