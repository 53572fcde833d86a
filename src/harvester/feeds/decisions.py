"""Decisions about a promoted run: ignore it, or undo that. Both are audited."""

from uuid import UUID

from django.db import transaction

from harvester.catalog import ignored_runs
from harvester.engine.enqueue import enqueue
from harvester.feeds import queries
from harvester.feeds.change_detection import forget_ingested
from harvester.feeds.models import Feed
from harvester.feeds.runs import FEED_RUNS
from harvester.kernel.actor import Actor
from harvester.runs.decision_jobs import REJUDGING, refuse_while_running
from harvester.runs.decisions import checked_reason
from harvester.runs.errors import SubjectBusy
from harvester.runs.jobs import REJUDGE
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome
from harvester.runs.subject_lock import try_lock_in_transaction


def ignore(actor: Actor, run_id: UUID, reason: str) -> int:
    """Hide the prices of a promoted run; return the number of products that this changes."""
    why = checked_reason(reason)
    with transaction.atomic():
        feed = _locked_feed(run_id)
        count = ignored_runs.ignore_run(actor, run_id, why)
        _judge_again(feed)
    return count


def undo_ignore(actor: Actor, run_id: UUID) -> int:
    """Restore the prices of an ignored run; return the number of products that this changes."""
    with transaction.atomic():
        feed = _locked_feed(run_id)
        count = ignored_runs.undo_ignore(actor, run_id)
        _judge_again(feed)
    return count


def _locked_feed(run_id: UUID) -> Feed:
    """Return the feed of a run, locked against runs and other decisions until the transaction ends."""
    feed_id = queries.feed_run(run_id).feed_id
    feed = Feed.objects.select_for_update(of=("self",)).select_related("source").get(pk=feed_id)
    if not try_lock_in_transaction(FEED_RUNS, feed):
        raise SubjectBusy(
            "feed", "A run or a decision is in progress on this feed. Nothing was changed; try again when it has ended."
        )
    refuse_while_running(FEED_RUNS, feed)
    return feed


def _judge_again(feed: Feed) -> None:
    """The next run reads its file even if it is unchanged; a held run is compared with what consumers see now."""
    feed.save(update_fields=forget_ingested(feed))
    held = Run.objects.filter(kind=FEED_RUNS.name, subject_id=feed.pk, outcome=RunOutcome.HELD).first()
    if held is not None:
        Run.objects.filter(pk=held.pk).update(stage=REJUDGING)
        enqueue(REJUDGE, {"run_id": str(held.id)})  # mutant: ignore-rejudges
