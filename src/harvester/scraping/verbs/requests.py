"""Requests to read pages now."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from harvester.catalog import governance
from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import audit
from harvester.runs import parts
from harvester.runs.models import Run
from harvester.runs.states import RunTrigger
from harvester.scraping import capacity, totals
from harvester.scraping.capacity import EnqueueResult, Rejection
from harvester.scraping.jobs import QUEUE
from harvester.scraping.lanes import Lanes
from harvester.scraping.models import AdapterState, ScrapeTarget
from harvester.scraping.runs import SCRAPE_RUNS
from harvester.scraping.states import RUN_KIND, TargetStatus
from harvester.scraping.target_filters import TargetFilter
from harvester.scraping.verbs.targets import locked_source

log = structlog.get_logger(__name__)

#: A person waits for these pages, so they go before scheduled ones.
MANUAL_PRIORITY: Final = 200
#: Forced pages ignore the limits of the queue, so they must stay few.
MOST_FORCED: Final = 10
_HAS_OPEN_JOB: Final = (
    "EXISTS (SELECT FROM jobs j WHERE j.dedupe_key = 'scrape:' || scrape_targets.id::text "
    "AND j.state IN ('pending', 'running', 'retryable'))"
)


@transaction.atomic
def request(
    actor: Actor,
    source_id: UUID,
    targets: Sequence[UUID] | TargetFilter | None = None,
    *,
    trigger: RunTrigger = RunTrigger.MANUAL,
    force: bool = False,
) -> EnqueueResult:
    """Read pages of a source now, by priority and then those that have waited longest. Needs: operator; force: admin.

    A page with an open job is not enqueued again. Pages that are switched off, blocked or not ACTIVE are skipped.

    Args:
        actor: who asks.
        source_id: whose pages.
        targets: which of them: ids, or a filter; all by default.
        trigger: why.
        force: ignore the limits of the queue, for at most 10 pages. All switches and the pace still count.

    Returns:
        What was accepted and rejected; `require()` raises if nothing was accepted.
    """
    source = locked_source(source_id)
    chosen = ScrapeTarget.objects.filter(source=source)
    if targets is not None:
        wanted = targets if isinstance(targets, TargetFilter) else TargetFilter(ids=targets)
        chosen = wanted.targets().filter(source=source)
    if force and chosen.count() > MOST_FORCED:
        raise InvalidInput(
            f"force is for at most {MOST_FORCED} pages; {chosen.count():,} were named. Nothing was changed.",
            field="force",
        )
    readable = chosen.filter(enabled=True, status=TargetStatus.ACTIVE, robots_path_blocked=False)
    is_open = RawSQL(_HAS_OPEN_JOB, [], BooleanField())  # noqa: S611 - a constant
    free = readable.alias(is_open=is_open).filter(is_open=False)
    total, able, ready = chosen.count(), readable.count(), free.count()
    result = EnqueueResult(waiting=able - ready, skipped=total - able)
    if switch := switched_off(source):
        return _rejected(source, result, ready, switch[0], None, switch[1])
    lanes = Lanes.load()
    with connection.cursor() as cursor:
        capacity.hold(cursor)
        room = ready if force else capacity.room(cursor).of(source.pk)
        ordered = free.order_by("-priority", F("due_at").asc(nulls_last=True), "id")
        pages = list(ordered.values_list("pk", "url", "priority")[: min(room, ready)])
        lane_of = {page: lanes.lane_of(url) for page, url, _ in pages}
        rests = capacity.long_rests(cursor, QUEUE)
    new = [
        parts.NewPart(
            target_id=page, lane=lane_of[page], priority=MANUAL_PRIORITY + priority, dedupe_key=f"scrape:{page}"
        )
        for page, _, priority in pages
        if lane_of[page] not in rests
    ]
    if new:
        run = parts.begin(SCRAPE_RUNS, source, trigger, new, requested_by=actor.name)
        result = replace(result, accepted=len(new), run=run)
        detail = {"source": str(source.pk), "pages": len(new), "trigger": trigger.value, "force": force}
        audit.record(actor, "SCRAPE_RUN_REQUESTED", "run", run.id, detail=detail)
    if len(new) < len(pages):
        wait = max(rests[lane] for lane in lane_of.values() if lane in rests)
        return _rejected(
            source, result, ready - len(new), Rejection.RATE_LIMITED, wait,
            f"The shop of {source} asked for {capacity.pause_text(wait)}. Its pages were not enqueued; try again then.",
        )  # fmt: skip
    if len(pages) < ready:
        wait = capacity.wait_for(ready - len(pages), lanes.interval_of(source))
        return _rejected(
            source, result, ready - len(pages), Rejection.QUEUE_FULL, wait,
            f"As many pages wait as are allowed; there will be room in about {wait:,} seconds.",
        )  # fmt: skip
    return result


@transaction.atomic
def run_now(actor: Actor, source_id: UUID) -> Run:
    """Read all pages of a source once; return the run. Needs: operator.

    Raises:
        EnqueueRejected: nothing could be enqueued now.
        Conflict: there is nothing that could be read and does not wait already.
    """
    result = request(actor, source_id).require()
    if result.run is None:
        raise Conflict(
            f"There is nothing to read: {result.waiting} pages wait already, {result.skipped} are switched off, "
            "blocked or not ACTIVE."
        )
    return result.run


@transaction.atomic
def requeue_stale(actor: Actor, source_id: UUID) -> EnqueueResult:
    """Make the stale pages of a source ACTIVE and read them, as many as there is room for. Needs: operator.

    The others stay STALE, so that the verb can be called again.
    """
    source = locked_source(source_id)
    stale = ScrapeTarget.objects.filter(source=source, status=TargetStatus.STALE)
    if switch := switched_off(source):
        return _rejected(source, EnqueueResult(), stale.count(), switch[0], None, switch[1])
    with connection.cursor() as cursor:
        capacity.hold(cursor)
        room = capacity.room(cursor).of(source.pk)
    ordered = stale.filter(enabled=True, robots_path_blocked=False).order_by("-priority", "id")
    ids = list(ordered.values_list("pk", flat=True)[:room])
    left = ordered.count() - len(ids)
    ScrapeTarget.objects.filter(pk__in=ids).update(status=TargetStatus.ACTIVE)
    audit.record(actor, "SCRAPE_TARGETS_REQUEUED", "source", source.pk, detail={"pages": len(ids), "left": left})
    result = request(actor, source_id, ids)
    if left and result.reason is None:
        wait = capacity.wait_for(left, Lanes.load().interval_of(source))
        message = f"As many pages wait as are allowed; {left:,} stay STALE. Try again in about {wait:,} seconds."
        return _rejected(source, result, left, Rejection.QUEUE_FULL, wait, message)
    return result


def switched_off(source: Source) -> tuple[Rejection, str] | None:
    """Return why no page of a locked source may be read now: the reason and a message; None if they may."""
    for is_on, what in (
        (source.enabled, "is switched off"),
        (source.scrape_enabled, "is not enabled for scraping; enable it first"),
        (source.robots_compliant, "may not be read: its robots.txt or a person forbids it"),
    ):
        if not is_on:
            return Rejection.SOURCE_DISABLED, f"{source} {what}. Nothing was enqueued."
    for each in governance.states([source.pk]):
        if each.kind == RUN_KIND and each.gate is governance.Gate.STOPPED:
            why = f"{source} is paused until a person resumes it: {(each.breaker.stopped_reason or '').rstrip('.')}."
            return Rejection.SOURCE_DISABLED, f"{why} Nothing was enqueued."
    state = AdapterState.objects.filter(source=source, adapter_id=source.adapter_id).first()
    if state is not None and not state.enabled:
        adapter = f"The adapter {source.adapter_id} is switched off for {source} ({state.disabled_reason})."
        step = "Nothing was enqueued. Enable it again once its cause was fixed."
        return Rejection.ADAPTER_DISABLED, f"{adapter} {step}"
    return None


def _rejected(  # noqa: PLR0917 - what a rejection consists of
    source: Source, result: EnqueueResult, count: int, reason: Rejection, retry_after: int | None, message: str
) -> EnqueueResult:
    """Return the result with the rejected pages, which are counted and logged."""
    if count == 0:
        return result
    with connection.cursor() as cursor:
        if source.adapter_id is not None:
            totals.add(cursor, source.pk, source.adapter_id, {totals.REJECTED: {reason.value: count}})
    fields: dict[str, Any] = {"source_id": str(source.pk), "pages": count, "reason": reason.value}
    transaction.on_commit(lambda: log.warning("SCRAPE_REJECTED", **fields, retry_after=retry_after))
    return replace(result, rejected=count, reason=reason, retry_after=retry_after, message=message)
