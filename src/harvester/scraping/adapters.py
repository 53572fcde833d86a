"""Whether an adapter may read the pages of a source. People switch it here, audited; drift switches it off."""

from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.ops.alerts import Severity
from harvester.pipeline.baseline import read_baseline
from harvester.runs import parts
from harvester.scraping import alerts, log_events, totals
from harvester.scraping.models import AdapterState
from harvester.scraping.states import RUN_KIND, DisabledReason

log = structlog.get_logger(__name__)

_MAKE = "INSERT INTO adapter_states (source_id, adapter_id) VALUES (%s, %s) ON CONFLICT DO NOTHING"
#: How urgent it is that an adapter is off: what people did is known to them.
_SEVERITY: Final[dict[DisabledReason, Severity]] = {
    DisabledReason.MANUAL: "info",
    DisabledReason.DRIFT_DETECTED: "critical",
    DisabledReason.TOS_VIOLATION: "warning",
}


def state_of(source_id: UUID, adapter_id: str) -> AdapterState:
    """Return how an adapter does on a source; one that has never read a page of it is enabled."""
    found = AdapterState.objects.filter(source_id=source_id, adapter_id=adapter_id).first()
    return found or AdapterState(source_id=source_id, adapter_id=adapter_id)


def locked_state(cursor: Any, source_id: UUID, adapter_id: str) -> AdapterState:
    """Return the state of an adapter on a source, locked; the source must be locked before."""
    cursor.execute(_MAKE, [source_id, adapter_id])
    return AdapterState.objects.select_for_update(no_key=True).get(source_id=source_id, adapter_id=adapter_id)


@transaction.atomic
def enable(actor: Actor, source_id: UUID, adapter_id: str | None = None) -> AdapterState:
    """Let an adapter read a source again. Its counters start at zero, and its next run is to be checked.

    Args:
        actor: who enables it, after the cause was fixed.
        source_id: the source.
        adapter_id: the adapter; that of the source if not given.
    """
    with connection.cursor() as cursor:
        source, state = _locked(cursor, source_id, adapter_id)
        if state.enabled:
            raise Conflict(f"The adapter {state.adapter_id} is enabled for {source} already. Nothing was changed.")
        reason = state.disabled_reason
        AdapterState.objects.filter(pk=state.pk).update(
            enabled=True, disabled_at=None, disabled_reason=None, disabled_by=None, check_next_run=True,
            check_run_no=None, failed_batches=0, empty_batches=0, zero_price_batches=0, uncounted=0, recent=[],
            backoff_until=None, backoff_seconds=0, updated_at=Now(),
        )  # fmt: skip
    detail = {"adapter_id": state.adapter_id, "was": reason}
    audit.record(actor, "SCRAPE_ADAPTER_ENABLED", "source", source.pk, changed=["enabled"], detail=detail)
    alerts.adapter_enabled(state, actor.name)
    _log(log_events.ADAPTER_ENABLED, state, by=actor.name)
    return state_of(source_id, state.adapter_id)


@transaction.atomic
def disable(
    actor: Actor, source_id: UUID, adapter_id: str | None = None, *, reason: DisabledReason | str, note: str
) -> AdapterState:
    """Stop an adapter on a source: its waiting pages are cancelled, and nothing is read until somebody enables it.

    Args:
        actor: who stops it.
        source_id: the source.
        adapter_id: the adapter; that of the source if not given.
        reason: MANUAL or TOS_VIOLATION.
        note: why, in a sentence.
    """
    if reason not in (DisabledReason.MANUAL, DisabledReason.TOS_VIOLATION):
        raise InvalidInput("people give MANUAL or TOS_VIOLATION.", field="reason")
    if not note.strip():
        raise InvalidInput("say in a sentence why.", field="note")
    with connection.cursor() as cursor:
        source, state = _locked(cursor, source_id, adapter_id)
        if not state.enabled and state.disabled_reason == reason:
            raise Conflict(f"The adapter {state.adapter_id} is off for {source} already. Nothing was changed.")
        switch_off(cursor, actor, source, state, reason=DisabledReason(reason), why=note)
    return state_of(source_id, state.adapter_id)


@transaction.atomic
def confirm_check(actor: Actor, source_id: UUID, adapter_id: str | None = None) -> AdapterState:
    """Confirm that what the first run after enabling read is right."""
    with connection.cursor() as cursor:
        source, state = _locked(cursor, source_id, adapter_id)
        if not state.check_next_run:
            raise Conflict(f"No run of {source} waits to be checked. Nothing was changed.")
        if state.check_run_no is None:
            raise Conflict(f"{source} has not been read since the adapter was enabled. Nothing was changed.")
        AdapterState.objects.filter(pk=state.pk).update(check_next_run=False, check_run_no=None, updated_at=Now())
    detail = {"adapter_id": state.adapter_id, "run_no": state.check_run_no}
    audit.record(actor, "SCRAPE_RUN_CHECKED", "source", source.pk, detail=detail)
    return state_of(source_id, state.adapter_id)


def switch_off(
    cursor: Any, actor: Actor, source: Source, state: AdapterState, *, reason: DisabledReason, why: str
) -> None:
    """Switch an adapter off for a source, and cancel its open pages. Source and state are locked."""
    AdapterState.objects.filter(pk=state.pk).update(
        enabled=False, disabled_at=Now(), disabled_reason=reason, disabled_by=actor.name, updated_at=Now()
    )
    state.enabled, state.disabled_reason = False, reason
    cancelled = parts.cancel_open(cursor, RUN_KIND, source.pk)
    totals.add(cursor, source.pk, state.adapter_id, {totals.DISABLED: {reason.value: 1}})
    detail = {"adapter_id": state.adapter_id, "reason": reason.value, "why": why, "cancelled": cancelled}
    audit.record(actor, "SCRAPE_ADAPTER_DISABLED", "source", source.pk, changed=["enabled"], detail=detail)
    alerts.adapter_disabled(state, str(source), why, _SEVERITY[reason])
    _log(log_events.ADAPTER_DISABLED, state, by=actor.name, reason=reason.value, cancelled=cancelled)


def _locked(cursor: Any, source_id: UUID, adapter_id: str | None) -> tuple[Source, AdapterState]:
    read_baseline(cursor, source_id, lock=True)
    source = Source.objects.get(pk=source_id)
    wanted = adapter_id or source.adapter_id
    if wanted is None:
        raise NotFound(f"{source} has no adapter; no pages of it are read.")
    return source, locked_state(cursor, source_id, wanted)


def _log(event: str, state: AdapterState, **fields: Any) -> None:
    fields |= {"source_id": str(state.source_id), "adapter_id": state.adapter_id}
    transaction.on_commit(lambda: log.info(event, **fields))
