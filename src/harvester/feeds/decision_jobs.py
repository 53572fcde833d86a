"""Decisions about a held run, as jobs: approve, reject, and judge anew after an older run was ignored.

Each is one transaction under the feed's lock; what the person saw is checked again inside it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from harvester.catalog.models import Run
from harvester.catalog.states import RunOutcome, RunStatus
from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.feeds import alerts
from harvester.feeds.change_detection import INGESTED, forget_if_corrected
from harvester.feeds.errors import (
    AlreadyApproved,
    AlreadyRejected,
    FeedBusy,
    FiguresChanged,
    NotBlocked,
    RunNotFound,
    RunNotSucceeded,
    StaleRun,
)
from harvester.feeds.feed_lock import feed_lock
from harvester.feeds.ingest import Endings, ingest, promotion_of
from harvester.feeds.jobs import APPROVE, REJECT
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.run_context import Work, fields_of, go_on
from harvester.feeds.run_endings import figures_of, finish, go_on_with_products, lock_feed_and_source, tell_promoted
from harvester.guards.logs import log_context
from harvester.kernel.actor import actor_from_json
from harvester.kernel.errors import Conflict
from harvester.ops import audit
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.gates import Verdict
from harvester.pipeline.hold import drop_held, make_held_products
from harvester.pipeline.promote import HELD, Promoted, promote

log = structlog.get_logger(__name__)

#: What is told when a rule refuses a decision.
REFUSED = {APPROVE: "ACTIVATION_APPROVAL_REJECTED", REJECT: "ACTIVATION_REJECTION_REFUSED"}
#: The stage of a held run whose difference counts no more, because what it was compared with has changed.
REJUDGING = "rejudge"
#: Seconds until a run that is to be judged anew looks again whether the feed is free.
BUSY_SECONDS = 15.0
#: What a person saw of a held run; if one of these has changed, it is another decision.
SEEN = ("products_upserted", "products_new", "products_missing", "prices_due")


def run_of(run_id: str | UUID) -> tuple[Feed, Run]:
    """A run and its feed.

    Raises:
        RunNotFound: there is no such run of a feed.
    """
    figures = FeedRun.objects.select_related("run", "feed__source").filter(pk=UUID(str(run_id))).first()
    if figures is None:
        raise RunNotFound(f"There is no run {run_id} of a feed; it may have been deleted after the retention period.")
    return figures.feed, figures.run


def figures_seen(run: Run) -> dict[str, int]:
    """The figures by which a person decides."""
    found = FeedRun.objects.filter(pk=run.pk).values(*SEEN).get()
    return {name: value or 0 for name, value in found.items()}


def require_held(run: Run, held_run_no: int | None, expected: Mapping[str, int] | None) -> None:
    """Refuse a decision that is not possible (any more), with the reason."""
    where = f"Run {run.no}"
    if run.status != RunStatus.SUCCEEDED:
        raise RunNotSucceeded(f"{where} is {run.status}; only a run that succeeded can be decided.")
    if run.outcome == RunOutcome.APPROVED:  # mutant: already-approved
        raise AlreadyApproved(f"{where} was approved by {run.decided_by} before; nothing was changed.")
    if run.outcome == RunOutcome.REJECTED:
        raise AlreadyRejected(f"{where} was rejected by {run.decided_by} before; nothing was changed.")
    if run.outcome == RunOutcome.OVERTAKEN:  # mutant: stale-run
        raise StaleRun(f"A newer run took the place of run {run.no}; decide about that one, if it is held.")
    if run.outcome != RunOutcome.HELD:  # mutant: not-blocked
        raise NotBlocked(f"{where} is not held; there is nothing to decide.")
    if held_run_no != run.no:
        raise StaleRun(f"A newer run took the place of run {run.no}; nothing was changed.")
    # mutant: expected-figures
    if expected is not None and dict(expected) != {name: figures_seen(run)[name] for name in expected}:
        raise FiguresChanged(
            f"{where} was checked again since you looked. Nothing was changed. Look at its figures and decide again."
        )


def refuse_while_judged_anew(run: Run) -> None:
    """What would be promoted is a difference to something that consumers see no more."""
    if run.stage == REJUDGING:  # mutant: rejudging
        raise FiguresChanged(
            f"Run {run.no} is being checked again. Nothing was changed. Wait for its new figures and decide then."
        )


def refuse_while_running(feed: Feed) -> None:
    """A run at work may be about to overtake the held one."""
    if Run.objects.filter(source_id=feed.source_id, status=RunStatus.RUNNING).exists():  # mutant: approve-while-running
        raise FeedBusy("A run of this feed is at work. Nothing was changed; decide when it has ended.")


def approve(job: RunningJob, run_id: str, actor: dict[str, str], expected: dict[str, int] | None = None) -> None:
    """Promote what was held, as of now. What is missing goes as it expires, and no gate counts it again."""
    with (
        _decision(job, run_id, APPROVE) as work,
        work.step("promote"),
        job.transaction(),
        connection.cursor() as cursor,
    ):
        feed, baseline = lock_feed_and_source(cursor, work.feed)
        _require(work, feed, baseline, expected)
        refuse_while_judged_anew(work.run)
        make_held_products(cursor, baseline, work.run.no)
        products = FeedRun.objects.get(pk=work.run.pk).products_upserted or 0
        work.log.info("PROMOTE_START", products_to_promote=products)
        # mutant: approve-missing
        promoted = promote(cursor, HELD, baseline, promotion_of(work, products, accept_absence=True))
        _decided(work, RunOutcome.APPROVED, actor, baseline, observed_at=baseline.next_observed_at)
        work.note(**figures_of(promoted))
        forget_if_corrected(feed, work.run)
        feed.save(update_fields=INGESTED)
        go_on_with_products(feed, work.run, promoted)
        tell_promoted(work, promoted)
        _record(actor, "ACTIVATION_APPROVED", work, {"products_promoted": products, **figures_of(promoted)})
        alerts.hold_is_over(feed, f"Run {work.run.no} was approved.")
        finish(work, RunOutcome.APPROVED)


def reject(
    job: RunningJob, run_id: str, actor: dict[str, str], reason: str, expected: dict[str, int] | None = None
) -> None:
    """Drop what was held. Nothing that consumers see changes, and the time that it was held stays lost."""
    with (
        _decision(job, run_id, REJECT) as work,
        job.transaction(),
        connection.cursor() as cursor,
    ):
        feed, baseline = lock_feed_and_source(cursor, work.feed)
        _require(work, feed, baseline, expected)
        drop_held(cursor, baseline, work.run.no)
        _decided(work, RunOutcome.REJECTED, actor, baseline, decision_reason=reason)
        _record(actor, "ACTIVATION_REJECTED", work, {"reason": reason})
        alerts.hold_is_over(feed, f"Run {work.run.no} was rejected.")
        finish(work, RunOutcome.REJECTED)


def rejudge(job: RunningJob, run_id: str) -> dict[str, Any] | None:
    """Match a held run anew, because what it was compared with has changed."""
    feed, run = run_of(run_id)
    with log_context(**_told_with(feed, run)), feed_lock(job, feed) as is_ours:
        if not is_ours:
            raise Snooze(BUSY_SECONDS, "a run or a decision is at work on this feed")
        run.refresh_from_db()
        work = go_on(job, feed, run, stage="promote")
        work.feed.source.refresh_from_db()
        if work.run.outcome != RunOutcome.HELD or work.feed.source.held_run_no != work.run.no:
            return {"outcome": work.run.outcome, "note": "the run was decided meanwhile"}
        assert work.run.artifact_hash is not None, "a held run has read a file"  # noqa: S101 - for the type checker
        endings = Endings(promoted=_rejudged_promoted, held=_rejudged_held)
        ingest(work, work.run.artifact_hash, manifest_rows=None, endings=endings)
    return None


@contextmanager
def _decision(job: RunningJob, run_id: str, kind: str) -> Iterator[Work]:
    """The feed's lock around a decision; a rule that refuses it is told by its own event."""
    feed, run = run_of(run_id)
    with tell_refusals(kind, feed, run), log_context(**_told_with(feed, run)), feed_lock(job, feed) as is_ours:
        if not is_ours:  # mutant: decision-lock
            raise FeedBusy("A run or another decision is at work. Nothing was changed; try again when it has ended.")
        run.refresh_from_db()
        yield go_on(job, feed, run, stage="promote")


@contextmanager
def tell_refusals(kind: str, feed: Feed, run: Run) -> Iterator[None]:
    """A decision that a rule refuses is told by an event."""
    try:
        yield
    except Conflict as refusal:
        log.warning(REFUSED[kind], **_told_with(feed, run), reason=refusal.code)  # mutant: refusal-logged
        raise


def _told_with(feed: Feed, run: Run) -> dict[str, Any]:
    return {**fields_of(feed), "run_id": str(run.id), "run_no": run.no, "stage": "promote"}


def _require(work: Work, feed: Feed, baseline: Baseline, expected: Mapping[str, int] | None) -> None:
    work.run.refresh_from_db()  # mutant: held-refreshed
    require_held(work.run, baseline.held_run_no, expected)  # mutant: held-required
    refuse_while_running(feed)


def _decided(work: Work, outcome: RunOutcome, actor: dict[str, str], baseline: Baseline, **fields: Any) -> None:
    """As of the moment from which what was decided counts."""
    Run.objects.filter(pk=work.run.pk).update(
        outcome=outcome, stage=None, decided_at=baseline.moment, decided_by=actor["name"], **fields
    )


def _record(actor: dict[str, str], verb: str, work: Work, detail: Mapping[str, Any]) -> None:
    audit.record(
        actor_from_json(actor),
        verb,
        "run",
        work.run.id,
        changed=["outcome"],
        detail={"feed": str(work.feed.id), **detail},
    )
    work.log_when_true(verb, by=actor["id"], **detail)


def _rejudged_promoted(work: Work, feed: Feed, baseline: Baseline, promoted: Promoted) -> None:
    """Nothing holds the run any more."""
    Run.objects.filter(pk=work.run.pk).update(
        outcome=RunOutcome.PROMOTED, stage=None, decided_at=baseline.moment, observed_at=baseline.next_observed_at
    )
    work.note(**figures_of(promoted))
    go_on_with_products(feed, work.run, promoted)
    tell_promoted(work, promoted)
    _record({"kind": "system", "id": "feeds", "name": "feeds"}, "RUN_PROMOTED", work, figures_of(promoted))
    alerts.hold_is_over(feed, f"Run {work.run.no} was checked again and promoted.")
    finish(work, RunOutcome.PROMOTED)


def _rejudged_held(work: Work, _feed: Feed, _baseline: Baseline, verdict: Verdict) -> None:
    """It is held as before, with a difference of its own time."""
    gates = [finding.gate for finding in verdict.holding]
    Run.objects.filter(pk=work.run.pk).update(stage=None)
    _record({"kind": "system", "id": "feeds", "name": "feeds"}, "RUN_HELD_ANEW", work, {"gates": gates})
    finish(work, RunOutcome.HELD)
