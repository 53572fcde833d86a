"""A run of a feed as a job: lock, run row, fetch, ingest, end. See `docs/architecture.md` for the picture."""

import os
from contextlib import ExitStack, suppress
from typing import Any

import structlog
from django.db import connection

from harvester.catalog.models import Run
from harvester.catalog.states import RunKind, RunOutcome, RunStatus
from harvester.engine.errors import JobCancelled, JobSignal, Snooze
from harvester.engine.job import RunningJob
from harvester.engine.outcomes import DATABASE_LOST
from harvester.feeds.change_detection import expect_a_file
from harvester.feeds.errors import DatabaseUnavailable, Superseded
from harvester.feeds.feed_lock import feed_lock
from harvester.feeds.fetch import Fetched, fetch
from harvester.feeds.ingest import ingest
from harvester.feeds.jobs import RETRY
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.orphans import close_orphans, note_job_errors
from harvester.feeds.run_context import Work, fields_of, go_on
from harvester.feeds.run_endings import end_failed, end_skipped, message_of, note_retry, supersede
from harvester.feeds.states import FeedStatus, SkipReason, Trigger
from harvester.guards.logs import log_context
from harvester.kernel.errors import ConfigError, NotFound, TerminalError

log = structlog.get_logger(__name__)

#: Seconds until a run that met a decision at work looks again.
BUSY_SECONDS = 60.0  # mutant: busy-wait
#: The same for a run that follows another one: it is put in by the transaction that ends the other, which lets go of
#: the lock right afterwards.
FOLLOWING_SECONDS = 2.0


def run_feed(job: RunningJob, feed_id: str, trigger: str) -> dict[str, Any] | None:
    """Run a feed once. The job's end is part of the transaction that ends the run."""
    try:
        return _run(job, feed_id, trigger)
    except DATABASE_LOST as problem:
        raise _unavailable(problem) from problem


def _run(job: RunningJob, feed_id: str, trigger: str) -> dict[str, Any] | None:
    feed = _feed(feed_id)
    # Left after the lock is, so that its release is told with the run.
    with ExitStack() as told, log_context(**fields_of(feed), stage="scheduler"), feed_lock(job, feed) as is_ours:
        if not is_ours:
            return _busy(job, feed, Trigger(trigger))
        work = _begin(job, feed, Trigger(trigger))
        if work is None:
            return {"outcome": None, "note": "there was nothing to do"}
        told.enter_context(log_context(run_id=str(work.run.id), run_no=work.run.no))
        _attempt(work)
    return None


def _feed(feed_id: str) -> Feed:
    try:
        return Feed.objects.select_related("source").get(pk=feed_id)
    except Feed.DoesNotExist:
        raise NotFound(f"There is no feed {feed_id} any more.") from None


def _busy(job: RunningJob, feed: Feed, trigger: Trigger) -> dict[str, Any]:
    """Somebody else has the lock: a run at work will honour this request, a decision is over soon."""
    own = Run.objects.filter(job_id=job.id, status=RunStatus.RUNNING).first()
    others = Run.objects.filter(source_id=feed.source_id, status=RunStatus.RUNNING).exclude(job_id=job.id)
    if not others.exists():  # mutant: other-run
        seconds = FOLLOWING_SECONDS if trigger is Trigger.MANUAL_PENDING else BUSY_SECONDS
        # mutant: busy-snooze
        raise Snooze(seconds, "a decision about this feed is at work, or a run of it is just ending")
    if own is not None:  # mutant: superseded
        log.warning("RETRY_LOCK_CONFLICT", run_id=str(own.id), run_no=own.no, feed_lock_id=feed.lock_no)
        with job.transaction():
            supersede(go_on(job, feed, own), "Another run of the feed is at work; it replaces this one.")
        raise Superseded("Another run of the feed is at work; it replaces this one.")
    _tell_busy(feed, trigger)
    return {"outcome": None, "note": "a run was at work"}


def _tell_busy(feed: Feed, trigger: Trigger) -> None:
    event = "SKIPPED_LOCK_BUSY" if trigger is Trigger.SCHEDULED else "MANUAL_RUN_DEFERRED"
    log.debug(event, feed_lock_id=feed.lock_no, trigger=trigger.value)


def _begin(job: RunningJob, feed: Feed, trigger: Trigger) -> Work | None:
    """The run of this job, made before anything outside is asked; none if there is nothing to do."""
    with job.transaction():
        # The feed before its runs, as everybody locks them; and once more, as ending a lost run may change it.
        feed = Feed.objects.select_for_update(of=("self",)).get(pk=feed.pk)  # mutant: feed-locked
        note_job_errors(feed)
        close_orphans(feed)
        feed = Feed.objects.select_related("source").get(pk=feed.pk)  # mutant: feed-read-again
        own = Run.objects.filter(job_id=job.id).first()  # mutant: run-of-job
        if own is not None:
            return _resume(job, feed, own)
        if not _is_wanted(feed, trigger):
            return None
        feed.save(update_fields=expect_a_file(feed))
        run = Run.objects.create(
            kind=RunKind.AFFILIATE_FEED, source_id=feed.source_id, trigger=trigger.value, status=RunStatus.RUNNING,
            job_id=job.id, lease=job.lease, attempt=job.attempt,  # mutant: run-created
        )  # fmt: skip
        FeedRun.objects.create(run=run, feed=feed)
    work = Work(job=job, feed=feed, run=run)
    work.log.info("RUN_START", trigger=trigger.value, worker=job.worker, worker_pid=os.getpid())
    return work


def _resume(job: RunningJob, feed: Feed, run: Run) -> Work | None:
    """A retry goes on with its run, unless the run has ended or a newer one took its place."""
    if run.status != RunStatus.RUNNING:
        return None
    newer = Run.objects.filter(source_id=feed.source_id, no__gt=run.no, status=RunStatus.SUCCEEDED)
    work = go_on(job, feed, run)
    if newer.exclude(outcome=RunOutcome.SKIPPED).exists():
        supersede(work, "A newer run of the feed ended before this one could go on.")
        return None
    Run.objects.filter(pk=run.pk).update(lease=job.lease, attempt=job.attempt)  # mutant: attempt-lease
    FeedRun.objects.filter(pk=run.pk).update(next_try_at=None)
    run.refresh_from_db()
    work.log_when_true("RUN_RESUMED", attempt=job.attempt, max_attempts=job.max_attempts)
    return work


def _is_wanted(feed: Feed, trigger: Trigger) -> bool:
    """Whether a run is to begin: the feed still runs, none is at work, and a request is not honoured yet."""
    if feed.status != FeedStatus.ENABLED:  # mutant: feed-enabled
        log.debug("FEED_SKIPPED_STATUS", status=feed.status)
        return False
    if Run.objects.filter(source_id=feed.source_id, status=RunStatus.RUNNING).exists():
        _tell_busy(feed, trigger)
        return False
    return trigger is Trigger.SCHEDULED or feed.manual_run_requested_at is not None  # mutant: request-open


def _attempt(work: Work) -> None:
    """Do the work; whatever goes wrong is told by the run before it is told by the job."""
    try:
        _work(work)
    except JobCancelled as stopped:
        end_failed(work, stopped)
        raise
    except JobSignal:
        # Somebody else goes on: the run stays as it is for the next attempt.
        raise
    except DATABASE_LOST as problem:
        _note_lost_database(work, problem)
        raise
    except Exception as error:
        _note_failure(work, error)
        raise


def _note_lost_database(work: Work, problem: Exception) -> None:
    """Write the error to the run if the database answers again already; otherwise `orphans` does it from the job."""
    # Errors of psycopg itself do not tell Django that the session may be gone.
    connection.errors_occurred = True
    connection.close_if_unusable_or_obsolete()
    with suppress(*DATABASE_LOST):
        _note_failure(work, _unavailable(problem))


def _unavailable(problem: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The database ended the session or did not answer ({message_of(problem).strip()}). Nothing of this attempt "
        "was written. If this lasts, look at the database's log and run `harvester doctor`."
    )


def _work(work: Work) -> None:
    if work.run.artifact_hash:  # mutant: proven-file
        figures = FeedRun.objects.get(pk=work.run.pk)
        ingest(work, work.run.artifact_hash, manifest_rows=figures.manifest_rows)
        return
    with work.step("download"):
        fetched = fetch(work)
    if isinstance(fetched, SkipReason):
        end_skipped(work, fetched)
    elif isinstance(fetched, Fetched):
        ingest(work, fetched.sha256, manifest_rows=fetched.manifest_rows, end=fetched.end)


def _note_failure(work: Work, error: Exception) -> None:
    job = work.job
    if not isinstance(error, TerminalError) and job.attempt < job.max_attempts:  # mutant: transient-only
        _retry(work, error)
        return
    if isinstance(error, TerminalError):
        kind = "config" if isinstance(error, ConfigError) else "permanent"
        work.log.info("RETRY_SKIPPED", classification=kind, code=error.code, hint=str(error))
    if work.stage == "download":
        work.log.error("DOWNLOAD_FAILED", error=str(error), attempts=job.attempt, will_retry=False)
    end_failed(work, error)


def _retry(work: Work, error: Exception) -> None:
    """Let the run wait for its next attempt."""
    job = work.job
    wait = RETRY.wait(job.attempt, 0.0)
    work.log.warning(
        "DOWNLOAD_RETRY" if work.stage == "download" else "RUN_RETRY",
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        error=str(error),
        retry_in_ms=round(wait * 1000),
    )
    note_retry(work, error, wait)
