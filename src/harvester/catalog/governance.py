"""Whether a source may be asked: a breaker for each kind of run, people who pause it, and its quota.

    closed ── 5 failures in a row ──> open ── the pause is over ──> one probe at a time
      ^                                ^                                 │
      ├──────── any success ───────────┴── the probe fails: twice the ───┤
      │                                    pause, a day at most          │
      └── a person resumes it <── stopped <── refused three openings ────┘
                                              in a row, or by a person

Feeds, pages and collectors have a breaker each, so that one that works does not hide that another does not. `decide`
and `next_state` are the rules; everything else here is reading and writing.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal
from uuid import UUID

import structlog
from django.db import connection, transaction

from harvester.catalog import fields
from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.sources import locked
from harvester.guards import limits
from harvester.guards.limits import RateLimit
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import alerts, audit
from harvester.runs.kinds import all_kinds

log = structlog.get_logger(__name__)

#: Failures in a row that open a breaker.
FAILURES_TO_OPEN: Final = 5
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=24)
#: Openings in a row, each because the server refused us, after which a person decides.
REFUSED_OPENINGS: Final = 3
#: The time for which a probe keeps others waiting. It is renewed by the same holder; a request takes 30 s at most.
PROBE_LEASE: Final = timedelta(minutes=2)
#: Seconds after which others look again while one probes.
PROBE_WAIT: Final = 15.0
#: Requests that may come at once after a pause, as a share of a minute's quota.
QUOTA_BURST: Final = 0.1
PAUSED, BLOCKED = "SOURCE_PAUSED", "SOURCE_BLOCKED"


class Gate(StrEnum):
    """What a breaker lets through."""

    CLOSED = "CLOSED"  # everything
    OPEN = "OPEN"  # nothing, for a while
    PROBING = "PROBING"  # one request at a time
    STOPPED = "STOPPED"  # nothing, until a person resumes it


@dataclass(frozen=True, kw_only=True)
class Breaker:
    """The state of the breaker of a source for a kind of run.

    Attributes:
        failures: since the last success or opening.
        blocked: of them, refusals by the server.
        openings: in a row, without a success in between.
        blocked_openings: of them, the last ones in a row that refusals caused.
        paused_until: the end of the last opening's pause.
        probe_holder: who probes.
        probe_until: until when others wait for that probe.
        stopped_at: since when it waits for a person.
        stopped_by: who stopped it; None: the system.
        stopped_reason: why.
        last_success_at: the last success.
        last_failure_at: the last failure.
    """

    failures: int = 0
    blocked: int = 0
    openings: int = 0
    blocked_openings: int = 0
    paused_until: datetime | None = None
    probe_holder: str | None = None
    probe_until: datetime | None = None
    stopped_at: datetime | None = None
    stopped_by: str | None = None
    stopped_reason: str | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Permission:
    """Whether a request may be made.

    Attributes:
        gate: what the breaker lets through.
        wait: seconds after which to ask again; 0: it may be made now; None: not before a person resumes the source.
        reason: why not, as the end of a sentence; empty if it may be made.
    """

    gate: Gate
    wait: float | None = 0.0
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.wait == 0.0

    @property
    def is_stopped(self) -> bool:
        return self.wait is None


def pause_of(openings: int) -> timedelta:
    """Return for how long this opening in a row pauses."""
    return min(FIRST_PAUSE * 2 ** min(openings - 1, 16), LONGEST_PAUSE)


def gate_of(breaker: Breaker, now: datetime) -> Gate:
    if breaker.stopped_at is not None:
        return Gate.STOPPED
    if breaker.paused_until is None:
        return Gate.CLOSED
    return Gate.OPEN if now < breaker.paused_until else Gate.PROBING


def decide(breaker: Breaker, now: datetime, holder: str) -> Permission:
    """Return whether `holder` may make a request now; in the state PROBING it takes or renews the lease first."""
    gate = gate_of(breaker, now)
    if gate is Gate.STOPPED:
        reason = f"its source is stopped since {breaker.stopped_at:%Y-%m-%d %H:%M} UTC: {breaker.stopped_reason}"
        return Permission(gate=gate, wait=None, reason=reason)
    if gate is Gate.OPEN and breaker.paused_until is not None:
        wait = (breaker.paused_until - now).total_seconds()
        reason = f"its source is paused after failures until {breaker.paused_until:%Y-%m-%d %H:%M} UTC"
        return Permission(gate=gate, wait=wait, reason=reason)
    is_probed = breaker.probe_until is not None and breaker.probe_until > now and breaker.probe_holder != holder
    if gate is Gate.PROBING and is_probed:
        return Permission(gate=gate, wait=PROBE_WAIT, reason="another request finds out whether its source works again")
    return Permission(gate=gate)


def next_state(
    breaker: Breaker, result: Literal["closes", "fails"], now: datetime, *, is_blocked: bool = False
) -> Breaker:
    """Return the state after a request that "closes" or "fails"."""
    if result == "closes":
        # What a person or three refusals stopped stays stopped: the success is of a request from before.
        kept = {name: getattr(breaker, name) for name in ("stopped_at", "stopped_by", "stopped_reason")}
        return Breaker(last_success_at=now, last_failure_at=breaker.last_failure_at, **kept)
    counted = replace(breaker, failures=breaker.failures + 1, blocked=breaker.blocked + is_blocked, last_failure_at=now)
    match gate_of(breaker, now):
        case Gate.STOPPED | Gate.OPEN:
            # A request from before the pause.
            return replace(breaker, last_failure_at=now)
        case Gate.CLOSED if counted.failures < FAILURES_TO_OPEN:
            return counted
    openings = breaker.openings + 1
    is_refused = 2 * counted.blocked > counted.failures
    refused = breaker.blocked_openings + 1 if is_refused else 0
    opened = replace(
        counted, failures=0, blocked=0, openings=openings, blocked_openings=refused,
        paused_until=now + pause_of(openings), probe_holder=None, probe_until=None,
    )  # fmt: skip
    if refused < REFUSED_OPENINGS:
        return opened
    return replace(opened, stopped_at=now, stopped_reason="its server refuses us")


_NAMES: Final = tuple(Breaker.__dataclass_fields__)
_COLUMNS: Final = ", ".join(_NAMES)
_SET: Final = ", ".join(f"{name} = %({name})s" for name in _NAMES)
_READ: Final = f"""
SELECT {_COLUMNS}, clock_timestamp(), (SELECT rate_per_minute FROM sources WHERE id = %(source)s)
FROM (SELECT) one LEFT JOIN source_breakers ON source_id = %(source)s AND kind = %(kind)s
"""  # noqa: S608 - constants only
_LOCK: Final = "SELECT FROM source_breakers WHERE source_id = %(source)s AND kind = %(kind)s FOR UPDATE"
# Nobody else has it, or had it for too long.
_LEASE: Final = """
UPDATE source_breakers SET probe_holder = %(holder)s, probe_until = clock_timestamp() + %(lease)s
WHERE source_id = %(source)s AND kind = %(kind)s AND stopped_at IS NULL AND paused_until <= clock_timestamp()
  AND (probe_until IS NULL OR probe_until <= clock_timestamp() OR probe_holder = %(holder)s)
"""  # mutant: one-probe
_WRITE: Final = f"""
INSERT INTO source_breakers (source_id, kind, {_COLUMNS})
VALUES (%(source)s, %(kind)s, {", ".join(f"%({name})s" for name in _NAMES)})
ON CONFLICT (source_id, kind) DO UPDATE SET {_SET}
"""  # noqa: S608 - constants only
_STATES: Final = f"""
SELECT source_id, kind, {_COLUMNS}, clock_timestamp() AS now FROM source_breakers
WHERE %(sources)s::uuid[] IS NULL OR source_id = ANY (%(sources)s) ORDER BY source_id, kind
"""  # noqa: S608 - constants only


def may_request(source_id: UUID, kind: str, *, holder: str) -> Permission:
    """Return whether a request of this kind of run may be made now. Not inside a transaction: others would wait for it.

    Args:
        source_id: the source to ask.
        kind: the name of the kind of run.
        holder: who asks, such as the id of a job: one that probes may ask again.

    Raises:
        TransientError: the store of the limits does not respond.
    """
    values: dict[str, Any] = {"source": source_id, "kind": kind, "holder": holder, "lease": PROBE_LEASE}
    with prepared_cursor() as cursor:
        breaker, now, rate = _read(cursor, values)
        permission = decide(breaker, now, holder)
        if permission.is_allowed and rate:
            quota = RateLimit(count=rate, seconds=60, burst=max(1, round(rate * QUOTA_BURST)))
            grant = limits.take(f"source:{source_id}", quota)
            if not grant.granted:
                reason = f"its source is asked at most {rate} times a minute"
                return replace(permission, wait=max(grant.wait, 0.1), reason=reason)
        if permission.is_allowed and permission.gate is Gate.PROBING:
            cursor.execute(_LEASE, values)
            if not cursor.rowcount:
                # Somebody else was faster, or a request in between ended; both are known at the next look.
                return replace(permission, wait=PROBE_WAIT, reason="another request was faster")
    return permission


def note(
    cursor: Any, source_id: UUID, kind: str, result: Literal["closes", "fails"], *, is_blocked: bool = False
) -> None:
    """Note how a request ended, in the caller's transaction, which has the lock of the source.

    Args:
        cursor: of the transaction.
        source_id: the source that was asked.
        kind: the name of the kind of run.
        result: "closes" for an answer that shows that the source works, "fails" for one that does not.
        is_blocked: the server refused us.
    """
    values: dict[str, Any] = {"source": source_id, "kind": kind}
    with prepared_cursor() as prepared:
        before, now, _ = _read(prepared, values)
    after = next_state(before, result, now, is_blocked=is_blocked)
    # Nothing but the time of the last success: that of the source's row is enough. It needs no lock of the breaker,
    # because only the lease of a probe changes without that of the source, and while one can be taken it is not closed.
    if replace(after, last_success_at=before.last_success_at) == before and result == "closes":
        return
    cursor.execute(_LOCK, values)
    before, now, _ = _read(cursor, values)
    after = next_state(before, result, now, is_blocked=is_blocked)
    _write(cursor, values, after)
    if after.paused_until != before.paused_until or after.stopped_at != before.stopped_at:
        _report(source_id, kind, before, after)


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """The state of a source for one kind of run.

    Attributes:
        source_id: the source.
        kind: the name of the kind of run.
        gate: what is let through now.
        breaker: the figures behind it.
    """

    source_id: UUID
    kind: str
    gate: Gate
    breaker: Breaker


def states(source_ids: Collection[UUID] | None = None) -> list[SourceState]:
    """Return the states of these sources, or of all, for every kind of run that failed or was paused once."""
    found = []
    for row in fetch(_STATES, {"sources": None if source_ids is None else list(source_ids)}):
        breaker = Breaker(**{name: row[name] for name in _NAMES})
        gate = gate_of(breaker, row["now"])
        found.append(SourceState(source_id=row["source_id"], kind=row["kind"], gate=gate, breaker=breaker))
    return found


@transaction.atomic
def pause(actor: Actor, source_id: UUID, kind: str, reason: str) -> None:
    """Stop all requests of a kind of run to a source, until a person resumes them."""
    why = fields.reason(reason)
    source, values = _locked(source_id, kind)
    with connection.cursor() as cursor:
        before, now, _ = _read(cursor, values)
        if before.stopped_at is not None and before.stopped_by is not None:
            raise Conflict(f"{source} is paused for {kind} already. Nothing was changed.")
        _write(cursor, values, replace(before, stopped_at=now, stopped_by=actor.id, stopped_reason=why))
    _end_alerts(source_id, kind, "A person paused the source.")
    audit.record(actor, "SOURCE_PAUSED", "source", source_id, detail={"kind": kind, "reason": why})


@transaction.atomic
def resume(actor: Actor, source_id: UUID, kind: str) -> None:
    """Allow requests of a kind of run to a source again, at once and as if it had never failed."""
    source, values = _locked(source_id, kind)
    with connection.cursor() as cursor:
        before, now, _ = _read(cursor, values)
        gate = gate_of(before, now)
        if gate is Gate.CLOSED:
            raise Conflict(f"{source} is not paused for {kind}. Nothing was changed.")
        kept = {name: getattr(before, name) for name in ("last_success_at", "last_failure_at")}
        _write(cursor, values, Breaker(**kept))
    _end_alerts(source_id, kind, "A person resumed the source.")
    detail = {"kind": kind, "was": gate.value, "reason": before.stopped_reason}
    audit.record(actor, "SOURCE_RESUMED", "source", source_id, detail=detail)


def _locked(source_id: UUID, kind: str) -> tuple[Source, dict[str, Any]]:
    known = [each.name for each in all_kinds()]
    if kind not in known:
        raise InvalidInput(f"choose from {', '.join(known)}.", field="kind")
    source = locked(source_id)
    values: dict[str, Any] = {"source": source_id, "kind": kind}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, values)
    return source, values


def _read(cursor: Any, values: dict[str, Any]) -> tuple[Breaker, datetime, int | None]:
    cursor.execute(_READ, values)
    *row, now, rate = cursor.fetchone()
    given = dict(zip(_NAMES, row, strict=True))
    return (Breaker() if given["failures"] is None else Breaker(**given)), now, rate


def _write(cursor: Any, values: dict[str, Any], breaker: Breaker) -> None:
    cursor.execute(_WRITE, {**values, **{name: getattr(breaker, name) for name in _NAMES}})


def _report(source_id: UUID, kind: str, before: Breaker, after: Breaker) -> None:
    """Log, and raise or end the one alert of the source: paused, or refused until a person resumes it."""
    figures = {
        "source_id": str(source_id), "run_kind": kind, "openings": after.openings,
        "paused_until": after.paused_until and after.paused_until.isoformat(),
    }  # fmt: skip
    if before.stopped_at is not None:
        return
    if after.paused_until is None:
        _end_alerts(source_id, kind, "The source works again.")
        log.info("SOURCE_CLOSED", **figures)
        return
    source, label = Source.objects.get(pk=source_id), _label(kind)
    log.warning("SOURCE_OPENED", is_stopped=after.stopped_at is not None, **figures)
    if after.stopped_at is not None:
        _end_alerts(source_id, kind, "It is blocked.")
        alerts.raise_alert(
            BLOCKED,
            f"source_blocked:{source_id}:{kind}",
            f"{source} refuses our requests",
            f"{label}: the server refused us {after.blocked_openings} times in a row, with pauses in between. Nothing "
            "is asked any more and offers stay until they expire. Find out why, and resume the source then.",
            severity="warning",
            detail=figures,
        )
        return
    alerts.raise_alert(
        PAUSED,
        f"source_paused:{source_id}:{kind}",
        f"{source} is paused after failures",
        f"{label}: {FAILURES_TO_OPEN} requests in a row failed, or the first one after a pause. Nothing is asked until "
        f"{after.paused_until:%Y-%m-%d %H:%M} UTC, and then one request at a time. Offers stay until they expire.",
        severity="info" if after.openings == 1 else "warning",
        detail=figures,
    )


def _end_alerts(source_id: UUID, kind: str, note: str) -> None:
    for name in ("paused", "blocked"):
        alerts.resolve_alert(f"source_{name}:{source_id}:{kind}", note)


def _label(kind: str) -> str:
    return next((each.label for each in all_kinds() if each.name == kind), kind)
