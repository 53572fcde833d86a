"""What people do with a feed: enable, pause, resume, re-enable, retire it, and request runs and tests."""

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
from harvester.feeds.partner_connection import OWNER_KIND
from harvester.feeds.readiness import missing_for_a_run, missing_for_a_test
from harvester.feeds.run_context import log_fields
from harvester.feeds.run_endings import drop_lost_request, feed_runs_again, lock_feed_and_source, log_enqueued
from harvester.feeds.runs import FEED_RUNS
from harvester.feeds.settings import InvalidSettings
from harvester.feeds.states import FeedStatus
from harvester.feeds.verbs.locked_feed import RunHeld, database_now, locked, next_run, record, save
from harvester.guards import secrets
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.ops.alerts import resolve_alert
from harvester.ops.models import Alert
from harvester.runs.decision_jobs import refuse_while_running
from harvester.runs.endings import settle_failed
from harvester.runs.errors import SubjectBusy
from harvester.runs.models import Run
from harvester.runs.orphans import cancelled_message
from harvester.runs.states import RunStatus, RunTrigger
from harvester.runs.subject_lock import try_lock_in_transaction

RETIRABLE = (FeedStatus.PAUSED, FeedStatus.DISABLED)
#: State -> how to leave it, for people who tried something else.
_NEXT_STEPS = {
    FeedStatus.DRAFT: "Enable it.",
    FeedStatus.ENABLED: "Pause it first if it should not run.",
    FeedStatus.PAUSED: "Resume it.",
    FeedStatus.DISABLED: "Find out why its runs failed, then re-enable it.",
}


class WrongStatus(Conflict):
    """The state of the feed does not allow this."""

    code = "FEED_WRONG_STATUS"


@transaction.atomic
def enable(actor: Actor, feed_id: UUID) -> Feed:
    """Let a draft run, on its schedule and on request, if it has everything that a run needs."""
    return _switch(actor, feed_id, FeedStatus.DRAFT, FeedStatus.ENABLED, "enabled")


@transaction.atomic
def pause(actor: Actor, feed_id: UUID) -> Feed:
    """Stop a feed until it is resumed. A run in progress continues to its end; a requested one does not begin."""
    return _switch(actor, feed_id, FeedStatus.ENABLED, FeedStatus.PAUSED, "paused")


@transaction.atomic
def resume(actor: Actor, feed_id: UUID) -> Feed:
    """Let a paused feed run again."""
    return _switch(actor, feed_id, FeedStatus.PAUSED, FeedStatus.ENABLED, "resumed")


@transaction.atomic
def re_enable(actor: Actor, feed_id: UUID, *, acknowledged: bool) -> Feed:
    """Let a feed run again that was stopped after three failures. The actor confirms to have checked the cause."""
    if acknowledged is not True:
        raise InvalidInput(
            "acknowledged is missing; it must be true (on the command line --acknowledge): the feed was stopped after "
            "repeated failures, and it will stop again unless their cause was fixed."
        )
    return _switch(actor, feed_id, FeedStatus.DISABLED, FeedStatus.ENABLED, "re-enabled")


@transaction.atomic
def retire(actor: Actor, feed_id: UUID) -> Feed:
    """Retire a paused or disabled feed permanently.

    It leaves lists and schedules and loses its credentials. Its runs and prices stay, and its offers expire as usual.
    The feed's lock and the locks of both rows exclude a run that is just being held.
    """
    feed = locked(feed_id)
    if feed.status not in RETIRABLE:
        raise WrongStatus(
            f"The feed {feed} is {feed.status}; only PAUSED or DISABLED feeds can be retired. Nothing was changed. "
            + ("Delete the draft instead." if feed.status == FeedStatus.DRAFT else "Pause it first.")
        )
    if not try_lock_in_transaction(FEED_RUNS, feed):
        raise SubjectBusy(
            "feed", "A run or decision of this feed is in progress. Nothing was changed. Try again when it ends."
        )
    refuse_while_running(FEED_RUNS, feed)
    with connection.cursor() as cursor:
        feed, baseline = lock_feed_and_source(cursor, feed)
    if baseline.held_run_no is not None:
        raise RunHeld(
            f"Run {baseline.held_run_no} of the feed {feed} waits for a decision. Nothing was changed; approve or "
            "reject it first."
        )
    dropped = [*feed.secret_fields, *(["username"] if feed.username else [])]
    secrets.forget(OWNER_KIND, feed.id)
    feed.secret_fields, feed.username = [], ""
    feed.retired_at, feed.manual_run_requested_at = database_now(), None
    columns = ("secret_fields", "username", "retired_at", "manual_run_requested_at", *forget_ingested(feed))
    save(feed, *columns)
    for key in Alert.objects.filter(resolved_at=None, detail__feed_id=str(feed.id)).values_list("key", flat=True):
        resolve_alert(key, "The feed was retired.")
    record(actor, feed, "FEED_RETIRED", changed=["retired_at", *dropped])
    return feed


def require_status(feed: Feed, wanted: FeedStatus, done: str) -> None:
    """Raise WrongStatus if the feed is in another state."""
    if feed.status != wanted:
        next_step = _NEXT_STEPS[FeedStatus(feed.status)]
        raise WrongStatus(f"The feed {feed} is {feed.status}; only {wanted} feeds can be {done}. {next_step}")


def _switch(actor: Actor, feed_id: UUID, before: FeedStatus, after: FeedStatus, done: str) -> Feed:
    feed = locked(feed_id)
    if feed.status == after:
        raise WrongStatus(f"The feed {feed} is {feed.status} already. Nothing was changed.")
    require_status(feed, before, done)
    if after is FeedStatus.ENABLED and (problems := missing_for_a_run(feed)):
        raise InvalidSettings(problems)
    feed.status = after
    feed.next_run_at = next_run(feed) if after is FeedStatus.ENABLED else None
    if after is not FeedStatus.ENABLED:
        # The requested run will not begin, and must not begin after a later resume either.
        feed.manual_run_requested_at, feed.takes_file_as_is = None, False  # mutant: pause-withdraws-request
    changed = ["status"]
    if before is FeedStatus.DISABLED:
        feed.consecutive_failures = 0  # mutant: enable-clears-count
        changed.append("consecutive_failures")
        feed_runs_again(feed)
    save(feed, "next_run_at", "manual_run_requested_at", "takes_file_as_is", *changed)
    record(actor, feed, "FEED_STATUS_CHANGED", changed=changed, old_status=before, new_status=after, reason=done)
    return feed


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
