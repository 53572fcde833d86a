"""The ends of a feed's run and their effects on the feed. `harvester.runs.endings` has what all kinds share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.catalog import offers, page_products
from harvester.catalog.models import Source
from harvester.catalog.resolver import ask_for_links
from harvester.catalog.search_index import ask_for_words
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.feeds import notices
from harvester.feeds.change_detection import INGESTED, forget_if_corrected, remember_ingested
from harvester.feeds.findings import summary_of
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.run_context import FeedRunContext, log_fields
from harvester.feeds.states import FeedStatus, SkipReason
from harvester.kernel.actor import system
from harvester.ops import audit
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.pipeline.baseline import Baseline, read_baseline
from harvester.pipeline.hold import make_held_products
from harvester.pipeline.promote import HELD, Promoted, Promotion, promote
from harvester.runs.alerts import hold_is_over, run_is_held
from harvester.runs.decision_jobs import record
from harvester.runs.endings import complete, finish, succeed
from harvester.runs.gates import Verdict
from harvester.runs.kinds import Applied
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

log = structlog.get_logger(__name__)

#: Codes that mean that a file, or its content, is larger than the feed allows.
LIMITS: Final = (
    *("FILE_SIZE_LIMIT_EXCEEDED", "INFLATE_LIMIT_EXCEEDED", "ROW_COUNT_LIMIT_EXCEEDED"),
    "UNIQUE_PRODUCT_LIMIT_EXCEEDED",
)
_DISABLED: Final = "FEED_AUTO_DISABLED"

#: Final failures in a row after which a feed is disabled.
FAILURES_TO_DISABLE: Final = 3  # mutant: failures-to-disable
ACTOR: Final = system("feeds")
_BY_SYSTEM: Final = {"kind": ACTOR.kind, "id": ACTOR.id, "name": ACTOR.name}
#: Figures of a run that was not promoted.
NOTHING_WRITTEN: Final = {"prices_written": 0, "products_expired": 0}
_SETTLED: Final = (
    *("status", "next_run_at", "consecutive_failures", "last_run_at", "manual_run_requested_at"),
    *("takes_file_as_is", *INGESTED),
)


def lock_feed_and_source(cursor: Any, feed: Feed) -> tuple[Feed, Baseline]:
    """Lock the feed and its source until the transaction ends, always in this order."""
    # mutant: feed-row-locked
    locked = Feed.objects.select_for_update(of=("self",)).select_related("source").get(pk=feed.pk)
    return locked, read_baseline(cursor, feed.source_id, lock=True)


def figures_of(promoted: Promoted) -> dict[str, int]:
    """Return the counts of a promotion under the names of the run's figures."""
    return {
        "prices_written": promoted.prices,
        "products_changed": promoted.changed,
        "products_missing": promoted.missing,
        "products_expired": promoted.expired,
    }


def end_promoted(context: FeedRunContext, feed: Feed, baseline: Baseline, promoted: Promoted) -> None:
    """End a run that passed every gate and was promoted."""
    figures = figures_of(promoted)
    succeed(context, RunOutcome.PROMOTED, baseline.moment, observed_at=promoted.observed_at)
    context.note(**figures)
    remember_ingested(feed, context.run)
    forget_if_corrected(feed, context.run)
    settle_feed(feed, context.run, failures=0)  # mutant: promoted-settles
    audit.record(ACTOR, "RUN_PROMOTED", "run", context.run.id, detail={"feed": str(feed.id), **figures})
    notices.raise_alerts(feed, context.run)
    _after_promotion(context, promoted)
    complete(context, RunOutcome.PROMOTED, summary=summary_of(context.run))


def end_held(context: FeedRunContext, feed: Feed, verdict: Verdict, baseline: Baseline) -> None:
    """End a run that a gate holds: consumers see no change until a person decides."""
    succeed(context, RunOutcome.HELD, baseline.moment)
    context.note(**NOTHING_WRITTEN)
    remember_ingested(feed, context.run)  # mutant: hold-remembers
    settle_feed(feed, context.run, failures=0)
    gates = [finding.gate for finding in verdict.holding]
    audit.record(ACTOR, "RUN_HELD", "run", context.run.id, detail={"feed": str(feed.id), "gates": gates})
    run_is_held(context.kind, feed, context.run, verdict)
    notices.raise_alerts(feed, context.run)
    complete(context, RunOutcome.HELD, summary=summary_of(context.run))


def end_skipped(context: FeedRunContext, reason: SkipReason) -> None:
    """End a run whose file is unchanged."""
    with context.job.transaction(), connection.cursor() as cursor:
        feed, baseline = lock_feed_and_source(cursor, context.feed)
        succeed(context, RunOutcome.SKIPPED, baseline.moment)
        context.note(skipped_reason=reason.value, **NOTHING_WRITTEN)  # mutant: skip-noted
        settle_feed(feed, context.run, failures=0)  # mutant: skip-settles
        if feed.unchanged_means_seen and _last_ingested_is_shown(feed, baseline):  # mutant: unchanged-means-seen
            Source.objects.filter(pk=feed.source_id).update(last_promoted_at=baseline.moment)
            # The feed still says what it said: where a page led over it for long enough, it counts again.
            ended = page_products.end_leads(cursor, feed.source_id, baseline.moment)
            offers.recompute(feed.source_id, ended, comparison=offers.Comparison.NEWEST)
        complete(context, RunOutcome.SKIPPED, summary=summary_of(context.run))


def settle_failed_feed(feed: Feed, run: Run, *, is_counted: bool, run_follows: bool) -> None:
    """Update a feed after a failed run. The caller has locked the feed."""
    FeedRun.objects.filter(pk=run.pk).update(**NOTHING_WRITTEN)
    failures = feed.consecutive_failures + is_counted
    if is_counted and failures >= FAILURES_TO_DISABLE and feed.status == FeedStatus.ENABLED:
        _disable(feed, failures, run.error or "")
    settle_feed(feed, run, failures=failures, run_follows=run_follows)  # mutant: failure-settles
    Source.objects.filter(pk=feed.source_id).update(last_failure_at=Now())


def apply_held(context: FeedRunContext, cursor: Any, feed: Feed, baseline: Baseline, promotion: Promotion) -> Applied:
    """Promote the difference of a held run that was approved."""
    make_held_products(cursor, baseline, context.run.no)
    context.log.info("PROMOTE_START", products_to_promote=promotion.products)
    promoted = promote(cursor, HELD, baseline, promotion)
    figures = figures_of(promoted)
    context.note(**figures)
    forget_if_corrected(feed, context.run)
    feed.save(update_fields=INGESTED)
    _after_promotion(context, promoted)
    detail = {"products_promoted": promotion.products, **figures}
    return Applied(moment=baseline.moment, observed_at=promoted.observed_at, detail=detail)


def _rejudged_promoted(context: FeedRunContext, feed: Feed, baseline: Baseline, promoted: Promoted) -> None:
    """End a held run that passes every gate now and was promoted."""
    Run.objects.filter(pk=context.run.pk).update(
        outcome=RunOutcome.PROMOTED, stage=None, decided_at=baseline.moment, observed_at=promoted.observed_at
    )
    context.note(**figures_of(promoted))
    _after_promotion(context, promoted)
    record(context, _BY_SYSTEM, "RUN_PROMOTED", figures_of(promoted))
    hold_is_over(context.kind, feed, f"Run {context.run.no} was checked again and promoted.")
    finish(context, RunOutcome.PROMOTED)


def _rejudged_held(context: FeedRunContext, _feed: Feed, verdict: Verdict, _baseline: Baseline) -> None:
    """End the new judgement of a run that is still held, with a newer difference."""
    Run.objects.filter(pk=context.run.pk).update(stage=None)
    gates = [finding.gate for finding in verdict.holding]
    record(context, _BY_SYSTEM, "RUN_HELD_AGAIN", {"gates": gates})
    finish(context, RunOutcome.HELD)


@dataclass(frozen=True, kw_only=True)
class Endings:
    """The functions that write the end of a run, in the transaction of its difference."""

    promoted: Callable[[FeedRunContext, Feed, Baseline, Promoted], None]
    held: Callable[[FeedRunContext, Feed, Verdict, Baseline], None]


ENDINGS: Final = Endings(promoted=end_promoted, held=end_held)
#: Of a held run that was judged again.
REJUDGED: Final = Endings(promoted=_rejudged_promoted, held=_rejudged_held)


def settle_feed(feed: Feed, run: Run, *, failures: int, run_follows: bool = False) -> None:
    """Update the feed at the end of any run.

    A request from before the run was fulfilled by it; a newer one gets another run. A forced request is not fulfilled
    by a scheduled run. The force ends with its request, even if the run failed.
    """
    feed.consecutive_failures = failures
    feed.last_run_at = run.finished_at
    asked = feed.manual_run_requested_at
    is_unfulfilled = feed.takes_file_as_is and run.trigger == RunTrigger.SCHEDULED
    pending = asked is not None and (asked > run.started_at or is_unfulfilled)  # mutant: request-pending
    if not pending:
        feed.manual_run_requested_at = None  # mutant: request-cleared
        feed.takes_file_as_is = False
    # A feed that was paused or disabled meanwhile has no request any more.
    enqueuing = pending and not run_follows
    log.debug("MANUAL_RUN_PENDING_CHECK", **log_fields(feed), pending=pending, enqueuing_follow_up=enqueuing)
    if enqueuing:
        made = enqueue(RUN, {"feed_id": str(feed.id), "trigger": RunTrigger.MANUAL_PENDING.value})
        log_enqueued(feed, RunTrigger.MANUAL_PENDING, made.job_id)
    feed.save(update_fields=_SETTLED)


def log_enqueued(feed: Feed, trigger: RunTrigger, job_id: int) -> None:
    """Log the job of a run once the open transaction is committed."""
    next_run_at = feed.next_run_at.isoformat() if feed.next_run_at else None
    fields = {"trigger": trigger.value, "enqueued_job_id": job_id, "next_run_at": next_run_at}
    transaction.on_commit(lambda: log.info("FEED_ENQUEUED", **log_fields(feed), stage="scheduler", **fields))


def drop_lost_request(feed: Feed) -> None:
    """Withdraw a request for a run that no job will fulfill, and any force. The feed is locked by the caller."""
    is_coming = Job.objects.filter(kind=RUN, state__in=OPEN, args__feed_id=str(feed.id)).exists()
    is_running = Run.objects.filter(subject_id=feed.id, status=RunStatus.RUNNING).exists()
    if feed.manual_run_requested_at is not None and not is_coming and not is_running:
        feed.manual_run_requested_at = None
    feed.takes_file_as_is = False
    feed.save(update_fields=["manual_run_requested_at", "takes_file_as_is"])


def feed_runs_again(feed: Feed) -> None:
    """Resolve the alert of a feed that was re-enabled; if it is disabled again, that is a new alert."""
    resolve_alert(f"{_DISABLED}:feed:{feed.id}", "The feed was re-enabled.")  # mutant: enabled-again


def _after_promotion(context: FeedRunContext, promoted: Promoted) -> None:
    """Enqueue the jobs that index the run's products for search and link them to canonical products."""
    if promoted.lacks_words:
        ask_for_words(context.feed.source_id)
    ask_for_links(context.feed.source_id, context.run.no)
    updated = promoted.changed + promoted.missing
    context.log_on_commit("PROMOTE_COMPLETE", timed=True, promote_rows_updated=updated, **figures_of(promoted))


def _last_ingested_is_shown(feed: Feed, baseline: Baseline) -> bool:
    last = feed.last_ingested_run_no
    if last is None or last != baseline.last_promoted_run_no:  # mutant: last-promoted
        return False
    return Run.objects.filter(no=last, ignored_at__isnull=True).exists()  # mutant: last-not-ignored


def _disable(feed: Feed, failures: int, error: str) -> None:
    """Disable the feed, drop the request for a run, if there is one, and raise the alert. The caller saves it."""
    before, feed.status = feed.status, FeedStatus.DISABLED
    feed.next_run_at = feed.manual_run_requested_at = None  # mutant: disabled-request
    feed.takes_file_as_is = False
    changed, detail = ["status", "next_run_at"], {"consecutive_failures": failures}
    audit.record(ACTOR, "FEED_AUTO_DISABLED", "feed", feed.id, changed=changed, detail=detail)
    change = {"old_status": before, "new_status": feed.status, "reason": "failed three times", "by": ACTOR.id}
    fields = {**log_fields(feed), **change}
    transaction.on_commit(lambda: log.info("FEED_STATUS_CHANGED", **fields))
    warning = {**log_fields(feed), "consecutive_failures": failures, "last_error": error}
    transaction.on_commit(lambda: log.warning(_DISABLED, **warning))
    title = f"{feed}: disabled after {failures} failures"
    body = f"{failures} runs in a row failed; the last one said: {error}\nFix the cause, then re-enable the feed."
    key = f"{_DISABLED}:feed:{feed.id}"
    raise_alert(_DISABLED, key, title, body, severity="warning", detail={"feed_id": str(feed.id)})
