"""How a run of a feed ends: each way is one transaction over run, figures, feed, audit and the job itself."""

from datetime import timedelta
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from harvester.catalog.models import Run, Source
from harvester.catalog.resolver import ask_for_links
from harvester.catalog.search_index import ask_for_words
from harvester.catalog.states import RunOutcome, RunStatus
from harvester.engine.enqueue import enqueue
from harvester.engine.errors import JobCancelled
from harvester.feeds import alerts, notices
from harvester.feeds.change_detection import INGESTED, forget_if_corrected, remember_ingested
from harvester.feeds.errors import Abandoned, Superseded
from harvester.feeds.findings import header_of, summary_of
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.reader.errors import HeaderUnreadable
from harvester.feeds.run_context import Work, fields_of
from harvester.feeds.states import FeedStatus, SkipReason, Trigger
from harvester.guards.redaction import redact_text
from harvester.kernel.actor import system
from harvester.kernel.errors import HarvesterError
from harvester.ops import audit
from harvester.pipeline.baseline import Baseline, look
from harvester.pipeline.gates import Verdict
from harvester.pipeline.promote import Promoted

log = structlog.get_logger(__name__)

#: Final failures in a row after which a feed stops by itself.
FAILURES_TO_DISABLE = 3  # mutant: failures-to-disable
#: Codes of runs that ended for no fault of the feed.
UNCOUNTED = (Superseded.code, Abandoned.code, JobCancelled.code)  # mutant: uncounted
#: Of these, the codes of runs that nobody has to be told about: a newer run exists, or a person asked for the end.
UNTOLD = (Superseded.code, JobCancelled.code)
ACTOR = system("feeds")
#: What a run that is not promoted has written.
NOTHING_WRITTEN = {"prices_written": 0, "products_expired": 0}
_SETTLED = (
    *("status", "next_run_at", "consecutive_failures", "last_run_at", "manual_run_requested_at"),
    *("takes_file_as_is", *INGESTED),
)


def lock_feed_and_source(cursor: Any, feed: Feed) -> tuple[Feed, Baseline]:
    """The feed and its source as they stay until the transaction ends. Everybody locks them in this order."""
    # mutant: feed-row-locked
    locked = Feed.objects.select_for_update(of=("self",)).select_related("source").get(pk=feed.pk)
    return locked, look(cursor, feed.source_id, lock=True)


def figures_of(promoted: Promoted) -> dict[str, int]:
    """What promotion wrote, by the names of the run's figures."""
    return {
        "prices_written": promoted.prices,
        "products_changed": promoted.changed,
        "products_missing": promoted.missing,
        "products_expired": promoted.expired,
    }


def end_promoted(work: Work, feed: Feed, baseline: Baseline, promoted: Promoted) -> None:
    """Every gate passed: the run is what consumers see."""
    figures = figures_of(promoted)
    _end_run(work.run, RunStatus.SUCCEEDED, outcome=RunOutcome.PROMOTED, observed_at=baseline.next_observed_at)
    work.note(**figures)
    remember_ingested(feed, work.run)
    forget_if_corrected(feed, work.run)
    _settle_feed(feed, work.run, failures=0)  # mutant: promoted-settles
    go_on_with_products(feed, work.run, promoted)
    audit.record(ACTOR, "RUN_PROMOTED", "run", work.run.id, detail={"feed": str(feed.id), **figures})
    alerts.run_is_good(feed)
    if baseline.held_run_no:
        alerts.hold_is_over(feed, f"Run {work.run.no} was promoted in its place.")
    notices.raise_alerts(feed, work.run)
    tell_promoted(work, promoted)
    complete(work, RunOutcome.PROMOTED)


def end_held(work: Work, feed: Feed, baseline: Baseline, verdict: Verdict) -> None:
    """A gate holds the run: nothing changed, and a person decides."""
    gates = [finding.gate for finding in verdict.holding]
    _end_run(work.run, RunStatus.SUCCEEDED, outcome=RunOutcome.HELD)
    work.note(**NOTHING_WRITTEN)
    remember_ingested(feed, work.run)  # mutant: hold-remembers
    _settle_feed(feed, work.run, failures=0)
    audit.record(ACTOR, "RUN_HELD", "run", work.run.id, detail={"feed": str(feed.id), "gates": gates})
    alerts.run_is_good(feed)
    alerts.run_is_held(feed, work.run, verdict, baseline)
    notices.raise_alerts(feed, work.run)
    complete(work, RunOutcome.HELD)


def end_skipped(work: Work, reason: SkipReason) -> None:
    """The file is as before: the run succeeded and had nothing to do."""
    with work.job.transaction(), connection.cursor() as cursor:
        feed, baseline = lock_feed_and_source(cursor, work.feed)
        _end_run(work.run, RunStatus.SUCCEEDED, outcome=RunOutcome.SKIPPED)
        work.note(skipped_reason=reason.value, **NOTHING_WRITTEN)  # mutant: skip-noted
        _settle_feed(feed, work.run, failures=0)  # mutant: skip-settles
        if feed.unchanged_means_seen and _last_ingested_is_shown(feed, baseline):  # mutant: unchanged-means-seen
            Source.objects.filter(pk=feed.source_id).update(last_promoted_at=baseline.moment)
        alerts.run_is_good(feed)
        complete(work, RunOutcome.SKIPPED)


def end_failed(work: Work, error: BaseException) -> None:
    """No attempt is left, or none could help."""
    with work.job.transaction(), connection.cursor() as cursor:
        feed, _ = lock_feed_and_source(cursor, work.feed)
        settle_failed(feed, work.run, code_of(error), message_of(error), stage=work.stage)
        work.note(**({"dialect": header_of(error)} if isinstance(error, HeaderUnreadable) and error.missing else {}))


def settle_failed(feed: Feed, run: Run, code: str, message: str, *, stage: str | None) -> None:
    """End a run as failed, with everything that follows for its feed.

    The transaction is the caller's, who has locked the feed and its source.
    """
    fail_run(run, code, message, stage=stage)
    FeedRun.objects.filter(pk=run.pk).update(**NOTHING_WRITTEN)
    is_counted = code not in UNCOUNTED
    failures = feed.consecutive_failures + is_counted
    if is_counted and failures >= FAILURES_TO_DISABLE and feed.status == FeedStatus.ENABLED:
        _disable(feed, failures, message)
    _settle_feed(feed, run, failures=failures)  # mutant: failure-settles
    Source.objects.filter(pk=feed.source_id).update(last_failure_at=Now())
    if code not in UNTOLD:
        alerts.run_has_failed(feed, run, code, message)
    _tell_failed(feed, run)


def note_retry(work: Work, error: BaseException, wait_seconds: float) -> None:
    """An attempt failed and there will be another: the run stays RUNNING and shows why."""
    with work.job.transaction():
        # mutant: retry-error
        Run.objects.filter(pk=work.run.pk).update(error_code=code_of(error), error=message_of(error))
        work.note(next_try_at=timezone.now() + timedelta(seconds=wait_seconds))  # mutant: retry-time


def supersede(work: Work, message: str) -> None:
    """Another run took this one's place, which is no failure of the feed. The transaction is the caller's."""
    fail_run(work.run, Superseded.code, message, stage=work.stage)
    _tell_failed(work.feed, work.run)  # mutant: superseded-event


def fail_run(run: Run, code: str, message: str, *, stage: str | None = None) -> None:
    """End a run as failed; the transaction is the caller's."""
    _end_run(run, RunStatus.FAILED, error_code=code, error=message, stage=stage)


def code_of(error: BaseException) -> str:
    return error.code if isinstance(error, HarvesterError) else "UNEXPECTED"


def message_of(error: BaseException) -> str:
    return redact_text(str(error) or type(error).__name__)[:2000]


def go_on_with_products(feed: Feed, run: Run, promoted: Promoted) -> None:
    """Have what the run brought found by its words, and linked to canonical products."""
    if promoted.lacks_words:
        ask_for_words(feed.source_id)
    ask_for_links(feed.source_id, run.no)


def follow_up(feed: Feed, run: Run) -> None:
    """A request from before the run was honored by it; a newer one gets a run of its own, if the feed still runs.

    A forced request is not honored by a scheduled run. However the run ended, the force ends with its request.
    """
    asked = feed.manual_run_requested_at
    is_unheeded = feed.takes_file_as_is and run.trigger == Trigger.SCHEDULED
    pending = asked is not None and (asked > run.started_at or is_unheeded)  # mutant: request-pending
    if not pending:
        feed.manual_run_requested_at = None  # mutant: request-cleared
        feed.takes_file_as_is = False
    enqueuing = pending and feed.status == FeedStatus.ENABLED  # mutant: follow-up
    log.debug("MANUAL_RUN_PENDING_CHECK", **fields_of(feed), pending=pending, enqueuing_follow_up=enqueuing)
    if enqueuing:
        made = enqueue(RUN, {"feed_id": str(feed.id), "trigger": Trigger.MANUAL_PENDING.value})
        tell_enqueued(feed, Trigger.MANUAL_PENDING, made.job_id)


def tell_enqueued(feed: Feed, trigger: Trigger, job_id: int) -> None:
    """The job of a run was put in, by the transaction that is open."""
    next_run_at = feed.next_run_at.isoformat() if feed.next_run_at else None
    fields = {"trigger": trigger.value, "enqueued_job_id": job_id, "next_run_at": next_run_at}
    transaction.on_commit(lambda: log.info("FEED_ENQUEUED", **fields_of(feed), stage="scheduler", **fields))


def _end_run(run: Run, status: RunStatus, **fields: Any) -> None:
    fields = {"stage": None, "error_code": None, "error": None, **fields}
    Run.objects.filter(pk=run.pk).update(status=status, finished_at=Now(), **fields)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs SET duration_ms = extract(epoch FROM finished_at - started_at) * 1000 WHERE id = %s", [run.pk]
        )
    run.refresh_from_db()
    FeedRun.objects.filter(pk=run.pk).update(next_try_at=None)


def _settle_feed(feed: Feed, run: Run, *, failures: int) -> None:
    feed.consecutive_failures = failures
    feed.last_run_at = run.finished_at
    follow_up(feed, run)
    feed.save(update_fields=_SETTLED)
    Source.objects.filter(pk=feed.source_id).update(failure_streak=failures)


def _last_ingested_is_shown(feed: Feed, baseline: Baseline) -> bool:
    last = feed.last_ingested_run_no
    if last is None or last != baseline.last_promoted_run_no:  # mutant: last-promoted
        return False
    return Run.objects.filter(no=last, ignored_at__isnull=True).exists()  # mutant: last-not-ignored


def _disable(feed: Feed, failures: int, error: str) -> None:
    """Stop the feed; nobody's request waits for a feed that does not run. Saved by the caller."""
    before, feed.status = feed.status, FeedStatus.DISABLED
    feed.next_run_at = feed.manual_run_requested_at = None  # mutant: disabled-request
    feed.takes_file_as_is = False
    audit.record(
        ACTOR,
        "FEED_AUTO_DISABLED",
        "feed",
        feed.id,
        changed=["status", "next_run_at"],
        detail={"consecutive_failures": failures},
    )
    change = {"old_status": before, "new_status": feed.status, "reason": "failed three times", "by": ACTOR.id}
    fields = {**fields_of(feed), **change}
    transaction.on_commit(lambda: log.info("FEED_STATUS_CHANGED", **fields))
    alerts.feed_is_disabled(feed, failures, error)


def tell_promoted(work: Work, promoted: Promoted) -> None:
    figures = figures_of(promoted)
    updated = promoted.changed + promoted.missing
    work.log_when_true("PROMOTE_COMPLETE", timed=True, promote_rows_updated=updated, **figures)


def complete(work: Work, outcome: RunOutcome) -> None:
    """End the run's job with it."""
    work.log_when_true(
        "RUN_COMPLETE",
        status=work.run.status,
        outcome=outcome.value,
        duration_ms=work.run.duration_ms,
        summary=summary_of(work.run),
    )
    finish(work, outcome)


def finish(work: Work, outcome: RunOutcome) -> None:
    work.job.finish({"run_no": work.run.no, "run_id": str(work.run.id), "outcome": outcome.value})


def _tell_failed(feed: Feed, run: Run) -> None:
    fields = {
        **fields_of(feed),
        "run_id": str(run.id),
        "run_no": run.no,
        "stage": run.stage or "scheduler",
        "job_id": run.job_id,
        "code": run.error_code,
        "error": run.error,
    }
    if run.error_code == Abandoned.code:
        transaction.on_commit(lambda: log.warning("RUN_ABANDONED", **fields))
    else:
        more = {"is_partial": False, "duration_ms": run.duration_ms}
        transaction.on_commit(lambda: log.info("RUN_FAILED", **fields, **more))
