"""What a person decides about a run: approve, reject, ignore, undo. Audited; the two first go on as jobs."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from harvester.catalog import ignored_runs
from harvester.catalog.models import Run, Source
from harvester.catalog.states import RunOutcome
from harvester.engine.enqueue import Enqueued, enqueue
from harvester.feeds.change_detection import forget_ingested
from harvester.feeds.decision_jobs import (
    REJUDGING,
    SEEN,
    refuse_while_judged_anew,
    refuse_while_running,
    require_held,
    run_of,
    tell_refusals,
)
from harvester.feeds.errors import FeedBusy
from harvester.feeds.feed_lock import try_lock_in_transaction
from harvester.feeds.jobs import APPROVE, REJECT, REJUDGE
from harvester.feeds.models import Feed
from harvester.guards.redaction import redact_text
from harvester.kernel.actor import Actor
from harvester.kernel.errors import InvalidInput
from harvester.kernel.text import LONGEST_REASON, is_encodable
from harvester.ops import audit

#: Kind of the job -> what the audit trail says when a person asks for it.
REQUESTS = {APPROVE: "ACTIVATION_APPROVAL_REQUESTED", REJECT: "ACTIVATION_REJECTION_REQUESTED"}


def request_approval(actor: Actor, run_id: UUID, expected: Mapping[str, int] | None = None) -> Enqueued:
    """Have a held run promoted.

    Args:
        actor: who decides.
        run_id: the held run.
        expected: figures that the person saw (see `decision_jobs.figures_seen`); if one has changed, the decision is
            refused.

    Raises:
        RunNotFound, Conflict: it cannot be approved (any more); the code says why.
    """
    return _request(actor, run_id, APPROVE, expected)


def request_rejection(actor: Actor, run_id: UUID, reason: str, expected: Mapping[str, int] | None = None) -> Enqueued:
    """Have a held run dropped; a reason is needed. Arguments and errors as for `request_approval`."""
    return _request(actor, run_id, REJECT, expected, reason=_reason(reason))


def ignore(actor: Actor, run_id: UUID, reason: str) -> int:
    """Hide the prices of a promoted run; answers how many products that concerns."""
    why = _reason(reason)
    with transaction.atomic():
        feed, run = _free(run_id)
        count = ignored_runs.ignore_run(actor, run.pk, why)
        _judge_anew(feed)
    return count


def undo_ignore(actor: Actor, run_id: UUID) -> int:
    """Let the prices of an ignored run be read again; answers how many products that concerns."""
    with transaction.atomic():
        feed, run = _free(run_id)
        count = ignored_runs.undo_ignore(actor, run.pk)
        _judge_anew(feed)
    return count


def _request(actor: Actor, run_id: UUID, kind: str, expected: Mapping[str, int] | None, **more: str) -> Enqueued:
    _check_expected(expected)
    with tell_refusals(kind, *run_of(run_id)), transaction.atomic():
        feed, run = _locked(run_id)
        held = Source.objects.filter(pk=feed.source_id).values_list("held_run_no", flat=True).get()
        require_held(run, held, expected)
        if kind == APPROVE:
            refuse_while_judged_anew(run)
        refuse_while_running(feed)
        who = {"kind": actor.kind, "id": actor.id, "name": actor.name}
        args: dict[str, Any] = {"run_id": str(run.id), "actor": who, "expected": dict(expected) if expected else None}
        made = enqueue(kind, {**args, **more}, dedupe_key=f"feeds.decide:{run.id}")  # mutant: one-decision
        if not made.created:
            raise FeedBusy(f"A decision about run {run.no} is already under way as job {made.job_id}.")
        detail = {"feed": str(feed.id), "job_id": made.job_id, **more}
        audit.record(actor, REQUESTS[kind], "run", run.id, detail=detail)
    return made


def _check_expected(expected: Mapping[str, int] | None) -> None:
    for name in expected or ():
        if name not in SEEN:
            raise InvalidInput(f"{name} is no figure that a decision can depend on; there are {', '.join(SEEN)}.")


def _locked(run_id: UUID) -> tuple[Feed, Run]:
    feed, run = run_of(run_id)
    feed = Feed.objects.select_for_update(of=("self",)).select_related("source").get(pk=feed.pk)
    run.refresh_from_db()
    return feed, run


def _free(run_id: UUID) -> tuple[Feed, Run]:
    """The run and its feed, with nothing else at work on the feed until the transaction ends."""
    feed, run = _locked(run_id)
    if not try_lock_in_transaction(feed):
        raise FeedBusy("A run or a decision is at work on this feed. Nothing was changed; try again when it has ended.")
    refuse_while_running(feed)
    return feed, run


def _judge_anew(feed: Feed) -> None:
    """The next run reads its file whatever it is; a held run is compared with what there is now."""
    feed.save(update_fields=forget_ingested(feed))
    # Asked anew: beside a feed whose lock was waited for, its source is as it was before.
    held = Run.objects.filter(source_id=feed.source_id, outcome=RunOutcome.HELD).first()
    if held is not None:
        Run.objects.filter(pk=held.pk).update(stage=REJUDGING)
        enqueue(REJUDGE, {"run_id": str(held.id)})  # mutant: ignore-rejudges


def _reason(text: str) -> str:
    if "\x00" in text or not is_encodable(text):
        raise InvalidInput("reason: it has a NUL or a broken character, which no text here can hold; leave it out.")
    reason = redact_text(text.strip())
    if not reason or len(reason) > LONGEST_REASON:  # mutant: reason-required
        raise InvalidInput(f"A reason is needed, of at most {LONGEST_REASON:,} characters: others will ask why.")
    return reason
