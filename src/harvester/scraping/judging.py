"""Batches of pages: gathered until 20, judged by the gates, and then promoted or put into quarantine.

    parts that wait ─> attempts ─> gates ─> verdict ─> passed: promote ─> facts
                                     │                 refused: quarantine
                                     └─> counters of the adapter ─> two bad batches in a row: switched off

A batch belongs to one adapter on one source and may span runs. The caller has locked the source.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import F, QuerySet

from harvester.catalog.models import Source
from harvester.engine.errors import JobCancelled
from harvester.engine.job import RunningJob
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.actor import system
from harvester.pipeline.baseline import Baseline
from harvester.runs.gates import Verdict, judge
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunStatus
from harvester.scraping import alerts, kept_pages, log_events, quarantine, totals
from harvester.scraping.adapters import locked_state, switch_off
from harvester.scraping.duplicates import duplicates_of
from harvester.scraping.gates import (
    BATCH,
    GATES,
    Attempt,
    Batch,
    Counters,
    UsualRates,
    advance,
    attempts_from_json,
    batch_of,
    deviation,
)
from harvester.scraping.models import AdapterState, ScrapeBatch, ScrapeRun, ScrapeTarget
from harvester.scraping.offers import offer_from_json
from harvester.scraping.promotion import Reading, product_key, promote
from harvester.scraping.states import MEANINGS, RUN_KIND, DisabledReason, PageOutcome, rule_of

log = structlog.get_logger(__name__)
ACTOR: Final = system("scraping")

_USUAL = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY failures::float8 / attempts),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY offers::float8 / attempts), count(*)
FROM scrape_batches
WHERE source_id = %(source)s AND adapter_id = %(adapter)s AND attempts >= %(least)s AND NOT is_refused
  AND judged_at > %(moment)s - interval '7 days'
"""
#: How old medians over 7 days may be, so that a source with many batches does not read all of them for each.
USUAL_SECONDS: Final = 3600
_FORGET: Final = "DELETE FROM scrape_batches WHERE judged_at < clock_timestamp() - %s * interval '1 day'"
KEEP_DAYS: Final = 90
# The same as `waiting_parts` counts, asked for with every page. The days are values there too.
_OPEN_RUNS: Final = """
SELECT r.id, r.started_at FROM runs r JOIN scrape_runs s ON s.run_id = r.id
WHERE r.kind = %(kind)s AND r.subject_id = %(source)s AND r.status = 'RUNNING' AND s.adapter_id = %(adapter)s
"""
_COUNT_WAITING: Final = """
SELECT count(*) FROM run_parts
WHERE run_id = ANY (%(runs)s::uuid[]) AND begun_at = ANY (%(days)s::timestamptz[])
  AND outcome IS NOT NULL AND judged_at IS NULL
"""
_WAITING: Final = (PageOutcome.OFFER, PageOutcome.PRICE_MOVE)


def waiting_parts(source_id: UUID, adapter_id: str) -> QuerySet[RunPart]:
    """Return the parts of a source that an adapter read and no batch has judged, the oldest first."""
    runs = Run.objects.filter(kind=RUN_KIND, subject_id=source_id, status=RunStatus.RUNNING)
    begun = dict(runs.filter(scrape_run__adapter_id=adapter_id).values_list("pk", "started_at"))
    # The days of the runs as values: the planner reads only their partitions.
    parts = RunPart.objects.filter(run_id__in=begun, begun_at__in=set(begun.values()))
    return parts.filter(outcome__isnull=False, judged_at=None).order_by("ended_at", "pk")


def adapters_that_wait(source_id: UUID) -> list[str]:
    """Return the adapters of the runs of a source that are in progress."""
    runs = Run.objects.filter(kind=RUN_KIND, subject_id=source_id, status=RunStatus.RUNNING)
    return sorted({adapter for adapter in runs.values_list("scrape_run__adapter_id", flat=True) if adapter})


def has_batch(source_id: UUID, adapter_id: str) -> bool:
    """Whether 20 parts wait."""
    with prepared_cursor() as cursor:
        cursor.execute(_OPEN_RUNS, {"kind": RUN_KIND, "source": source_id, "adapter": adapter_id})
        runs = cursor.fetchall()
        values = {"runs": [run_id for run_id, _ in runs], "days": list({begun for _, begun in runs})}
        cursor.execute(_COUNT_WAITING, values)
        return bool(cursor.fetchone()[0] >= BATCH)


def judge_waiting(cursor: Any, baseline: Baseline, source: Source, adapter_id: str) -> None:
    """Judge all that waits; the last batch may be a rest of fewer than 20."""
    while parts := list(waiting_parts(source.pk, adapter_id).select_related("run")[:BATCH]):
        _judge(cursor, baseline, source, adapter_id, parts)


def forget_judged(job: RunningJob) -> dict[str, int]:
    """Delete batches and entries of quarantine that are older than 90 days."""
    with job.transaction():
        entries = quarantine.delete_old(KEEP_DAYS)
    with job.transaction() as database, database.cursor() as cursor:
        cursor.execute(_FORGET, [KEEP_DAYS])
        return {"entries": entries, "batches": int(cursor.rowcount)}


def _judge(cursor: Any, baseline: Baseline, source: Source, adapter_id: str, parts: Sequence[RunPart]) -> None:
    state = locked_state(cursor, source.pk, adapter_id)
    locked = ScrapeTarget.objects.select_for_update(no_key=True).order_by("pk")
    targets = locked.in_bulk([part.target_id for part in parts])
    attempts = [_attempt(part, targets.get(part.target_id)) for part in parts]
    batch = batch_of(attempts, attempts_from_json(state.recent))
    verdict = judge(GATES, batch, None)
    usual = _usual(cursor, baseline, state)
    unusual = deviation(batch, usual) if verdict.passed else None
    refusal = _refusal(verdict, state)
    offers = [part for part in parts if part.outcome in _WAITING and part.target_id in targets]
    if state.disabled_reason == DisabledReason.TOS_VIOLATION:
        # The shop may not be read: what was read before somebody found that out is not kept.
        _set_outcome(offers, JobCancelled.code)
    elif refusal is None:
        _promote(cursor, baseline, parts, targets)
    else:
        _set_outcome(offers, refusal)
        for part in offers:
            _refuse(cursor, baseline, adapter_id, part, targets[part.target_id])
    _parts(parts).update(judged_at=baseline.moment)
    kept_pages.note_readings(cursor, parts)
    totals.add(cursor, source.pk, adapter_id, {totals.OUTCOME: Counter(part.outcome or "" for part in parts)})
    _note_batch(baseline, state, parts, batch, verdict, is_refused=refusal is not None)
    alerts.batch_judged(state, str(source), verdict, unusual)
    counters = _advance(state, batch)
    if state.enabled and counters.reason:
        switch_off(cursor, ACTOR, source, state, reason=DisabledReason.DRIFT_DETECTED, why=counters.reason)
    fields: dict[str, Any] = {
        "source_id": str(source.pk), "adapter_id": adapter_id, "attempts": batch.size, "new_attempts": batch.new,
        "failures": batch.failures, "offers": batch.offers, "gates": [finding.gate for finding in verdict.holding],
    }  # fmt: skip
    event = log_events.BATCH_JUDGED if refusal is None else log_events.BATCH_REFUSED
    transaction.on_commit(lambda: log.info(event, **fields))


def _attempt(part: RunPart, target: ScrapeTarget | None) -> Attempt:
    """Return what the gates need to know about a part."""
    outcome, target_id = part.outcome or "", str(part.target_id)
    if outcome not in _WAITING or target is None:
        return Attempt(
            target=target_id,
            is_failure=rule_of(outcome).is_drift,
            is_zero=outcome == PageOutcome.ZERO_PRICE_EXTRACTED,
            is_yield=outcome == PageOutcome.NOT_MODIFIED,
        )
    offer, seen = offer_from_json(part.found or {}), (target.last_seen or {}).get("offer", {})
    # What is the same as before was believed before, such as five products of one price that a person confirmed.
    return Attempt(
        target=target_id,
        product=product_key(target, offer),
        is_yield=True,
        has_moved=outcome == PageOutcome.PRICE_MOVE,
        price=str(offer.price) if str(offer.price) != seen.get("price") else None,
        title=_digest(offer.title) if offer.title != seen.get("title") else None,
    )


def _digest(title: str) -> str:
    return hashlib.sha256(title.encode(errors="surrogatepass")).hexdigest()[:16]


def _refusal(verdict: Verdict, state: AdapterState) -> PageOutcome | None:
    """Return as what the offers of a batch are refused; None if they are promoted."""
    if not verdict.passed:
        return PageOutcome(_OUTCOMES[verdict.holding[0].gate])
    # What an adapter read right before it was switched off because it reads its pages wrongly.
    return PageOutcome.DRIFT_DETECTED if state.disabled_reason == DisabledReason.DRIFT_DETECTED else None


_OUTCOMES: Final = {
    "DRIFT": PageOutcome.DRIFT_DETECTED,
    "SAME_VALUE": PageOutcome.SAME_VALUE,
    "BULK_MOVE": PageOutcome.BULK_MOVE,
}


def _promote(cursor: Any, baseline: Baseline, parts: Sequence[RunPart], targets: dict[UUID, ScrapeTarget]) -> None:
    """Promote the offers of a batch."""
    offers = [part for part in parts if part.outcome == PageOutcome.OFFER and part.target_id in targets]
    readings = [
        Reading(
            target=targets[part.target_id],
            offer=offer_from_json(part.found or {}),
            observed_at=part.observed_at or baseline.moment,
            run_no=part.run.no,
            validators=part.detail.get("validators", {}),
        )
        for part in offers
    ]
    duplicates = duplicates_of(cursor, baseline.source_id, readings)
    for place, why in duplicates.items():
        _note_duplicate(offers[place], readings[place].target, why)
    leading = [place for place in range(len(offers)) if place not in duplicates]
    offers, readings = [offers[place] for place in leading], [readings[place] for place in leading]
    done = promote(cursor, baseline, readings)
    _set_outcome([offers[place] for place in done.superseded], PageOutcome.SUPERSEDED)
    for run_no in done.prices:
        ScrapeRun.objects.filter(run__no=run_no).update(
            prices_written=F("prices_written") + done.prices[run_no], products_new=F("products_new") + done.new[run_no]
        )


def _note_duplicate(part: RunPart, target: ScrapeTarget, why: str) -> None:
    """Write nothing of a page of which another one leads the product, and say so."""
    part.outcome, part.detail = PageOutcome.DUPLICATE_WITHIN_RUN.value, {**part.detail, "error": why}
    _parts([part]).update(outcome=part.outcome, detail=part.detail)
    target.last_status, target.last_detail = part.outcome, why
    target.save(update_fields=["last_status", "last_detail"])


def _refuse(cursor: Any, baseline: Baseline, adapter_id: str, part: RunPart, target: ScrapeTarget) -> None:
    """Put an offer of a refused batch into quarantine, also one that waits for a second look: that is over."""
    quarantine.keep(cursor, baseline, target, adapter_id, part)
    if (target.waiting or {}).get("reason") == PageOutcome.PRICE_MOVE:
        target.waiting = target.recheck_at = target.recheck_reason = None
    at = part.observed_at or baseline.moment
    if target.last_scraped_at is None or target.last_scraped_at <= at:
        outcome = PageOutcome(part.outcome or "")
        target.last_status, target.last_detail = outcome.value, MEANINGS[outcome]
    target.save(update_fields=["waiting", "recheck_at", "recheck_reason", "last_status", "last_detail"])


def _set_outcome(parts: Sequence[RunPart], outcome: str) -> None:
    for part in parts:
        part.outcome = str(outcome)
    _parts(parts).update(outcome=outcome)


def _parts(parts: Sequence[RunPart]) -> QuerySet[RunPart]:
    """Return the rows of these parts; only their days are read."""
    return RunPart.objects.filter(pk__in=[part.pk for part in parts], begun_at__in={part.begun_at for part in parts})


def _usual(cursor: Any, baseline: Baseline, state: AdapterState) -> UsualRates:
    """Return the usual rates of an adapter on a source, and store them with it."""
    age = (baseline.moment - state.baseline_updated_at).total_seconds() if state.baseline_updated_at else None
    if age is None or age > USUAL_SECONDS or state.baseline_sample_size < BATCH:
        values = {"source": state.source_id, "adapter": state.adapter_id, "least": BATCH, "moment": baseline.moment}
        cursor.execute(_USUAL, values)
        failure_rate, yield_rate, state.baseline_sample_size = cursor.fetchone()
        state.baseline_failure_rate, state.baseline_yield_rate = failure_rate, yield_rate
        state.baseline_updated_at = baseline.moment
    rates = [None if rate is None else float(rate) for rate in (state.baseline_failure_rate, state.baseline_yield_rate)]
    return UsualRates(failure_rate=rates[0], yield_rate=rates[1], batches=state.baseline_sample_size)


def _advance(state: AdapterState, batch: Batch) -> Counters:
    before = Counters(
        uncounted=state.uncounted, failed=state.failed_batches, empty=state.empty_batches,
        zero_prices=state.zero_price_batches,
    )  # fmt: skip
    after = advance(before, batch)
    state.uncounted, state.failed_batches = after.uncounted, after.failed
    state.empty_batches, state.zero_price_batches = after.empty, after.zero_prices
    state.last_batch_failure_rate = round(batch.failure_rate, 4)
    state.recent = [attempt.as_json() for attempt in batch.attempts[-(BATCH - 1) :]]
    state.save(
        update_fields=[
            *("uncounted", "failed_batches", "empty_batches", "zero_price_batches", "last_batch_failure_rate"),
            *("recent", "baseline_failure_rate", "baseline_yield_rate", "baseline_sample_size", "baseline_updated_at"),
        ]
    )
    return after


def _note_batch(
    baseline: Baseline, state: AdapterState, parts: Sequence[RunPart], batch: Batch, verdict: Verdict, *,
    is_refused: bool,
) -> None:  # fmt: skip
    """Store the verdict with the batch and with its runs; a run keeps the worst finding of each gate."""
    newest = parts[-1]
    ScrapeBatch.objects.create(
        source_id=state.source_id, adapter_id=state.adapter_id, adapter_version=newest.version or "",
        run_no=newest.run.no, judged_at=baseline.moment, attempts=batch.size, new_attempts=batch.new,
        failures=batch.failures, offers=batch.offers, zero_prices=batch.zero_prices, verdict=verdict.as_json(),
        is_refused=is_refused,
    )  # fmt: skip
    for run in Run.objects.filter(pk__in={part.run_id for part in parts}).order_by("no"):
        kept = {item["gate"]: item for item in run.verdict}
        for item in verdict.as_json():
            if item["holds"] or not kept.get(item["gate"], {}).get("holds"):
                kept[item["gate"]] = item
        Run.objects.filter(pk=run.pk).update(verdict=list(kept.values()))
        if is_refused:
            ScrapeRun.objects.filter(pk=run.pk).update(batches_refused=F("batches_refused") + 1)
