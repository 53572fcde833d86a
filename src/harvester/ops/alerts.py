"""Alerts: one message when a condition starts, and one when it ends.

A condition has a key, such as `feed_failing:<feed>`. Raising it again while it is open only counts it; resolving one
that is not open does nothing. Both happen in the transaction of the change that they report: if it is rolled back,
nothing is sent. Alerts always go to the log; the job that is enqueued here also sends them to Slack (`alert_delivery`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Literal

import structlog
from django.conf import settings
from django.db import connection, transaction

from harvester.engine.enqueue import enqueue
from harvester.engine.events import EngineEvent, subscribe
from harvester.engine.job import RunningJob
from harvester.engine.json_values import check_name, to_json
from harvester.engine.registry import Later, all_kinds, job_kind, periodic
from harvester.guards.redaction import redact, redact_text
from harvester.kernel.retry import RetryPolicy
from harvester.ops.models import Alert

log = structlog.get_logger(__name__)

DELIVER = "ops.deliver_alert"
WATCH = "ops.watch_job_errors"
UNKNOWN_ERROR = "UNKNOWN_ERROR"
#: Five hours in all: longer than most outages of Slack; later nobody needs the message.
RETRY = RetryPolicy(base=30.0, factor=2.0, cap=3600.0, attempts=12)
OPENED, RESOLVED = "opened", "resolved"
Severity = Literal["info", "warning", "critical"]
LONGEST_KIND, LONGEST_KEY = 100, 300
#: Characters: a line, and a page that still fits into one message.
LONGEST_TITLE, LONGEST_BODY = 200, 2_500

# The newest text is kept: figures in it may have changed since the condition was first seen.
_RAISE = """
INSERT INTO alerts (kind, key, severity, title, body, detail)
VALUES (%(kind)s, %(key)s, %(severity)s, %(title)s, %(body)s, %(detail)s::jsonb)
ON CONFLICT (key) WHERE resolved_at IS NULL DO UPDATE SET
    times = alerts.times + 1, last_seen_at = clock_timestamp(), severity = excluded.severity,
    title = excluded.title, body = excluded.body, detail = excluded.detail
RETURNING id, times
"""
_RESOLVE = """
UPDATE alerts SET resolved_at = clock_timestamp(), resolved_note = %(note)s
WHERE key = %(key)s AND resolved_at IS NULL RETURNING id, kind, title
"""
# Errors of the error tree have codes in capitals; all others have the name of their class. Failed deliveries of alerts
# must not raise more alerts.
_UNKNOWN = """
SELECT kind, error_type, count(*), max(id) FROM jobs
WHERE state IN ('failed', 'retryable') AND error_type !~ '^[A-Z][A-Z0-9_]*$' AND kind <> ALL (%s::text[])
  AND coalesce(finished_at, run_at) > statement_timestamp() - interval '24 hours'
GROUP BY kind, error_type ORDER BY kind, error_type LIMIT 50
"""


def register() -> None:
    job_kind(DELIVER, queue="maintenance", retry=RETRY, timeout=60.0)(
        Later("harvester.ops.alert_delivery:deliver_alert")
    )
    job_kind(WATCH, queue="maintenance", timeout=300.0)(watch_job_errors)
    periodic("unknown errors of jobs", kind=WATCH, cron="*/10 * * * *")
    subscribe(_log_engine_event)


def raise_alert(
    kind: str,
    key: str,
    title: str,
    body: str,
    *,
    severity: Severity = "warning",
    detail: Mapping[str, Any] | None = None,
) -> int:
    """Open a condition, or count it once more if it is open. Return the alert's id.

    Args:
        kind: the type of the condition, a constant name such as FEED_RUN_FAILED.
        key: the condition; it has at most one open alert.
        title: one line.
        body: what happened, what is unchanged, and what to do.
        severity: info, warning, or critical for what consumers notice.
        detail: ids and figures.
    """
    _require_transaction()
    check_name(kind, "kind", LONGEST_KIND)
    check_name(key, "key", LONGEST_KEY)
    texts = {"title": _clean(title, LONGEST_TITLE), "body": _clean(body, LONGEST_BODY)}
    details = to_json(redact(dict(detail or {})), "The detail of an alert")
    with connection.cursor() as cursor:
        cursor.execute(_RAISE, {"kind": kind, "key": key, "severity": severity, "detail": details, **texts})
        alert_id, times = cursor.fetchone()
    if times == 1:
        enqueue(DELIVER, {"alert_id": alert_id, "phase": OPENED})
        transaction.on_commit(
            partial(log.warning, "ALERT", about=kind, alert_id=alert_id, key=key, severity=severity, **texts)
        )
    return int(alert_id)


def resolve_alert(key: str, note: str = "") -> bool:
    """End an open condition. Return False if it is not open."""
    _require_transaction()
    with connection.cursor() as cursor:
        cursor.execute(_RESOLVE, {"key": key, "note": _clean(note, LONGEST_BODY)})
        row = cursor.fetchone()
    if row is None:
        return False
    alert_id, kind, title = row
    enqueue(DELIVER, {"alert_id": alert_id, "phase": RESOLVED})
    transaction.on_commit(
        partial(log.info, "ALERT_RESOLVED", about=kind, alert_id=alert_id, key=key, title=title, note=note)
    )
    return True


def resolve_others(kind: str, still_true: Iterable[str], note: str) -> int:
    """End all open conditions of a kind except these. Return how many."""
    open_keys = Alert.objects.filter(kind=kind, resolved_at=None).values_list("key", flat=True)
    return sum(resolve_alert(key, note) for key in sorted(set(open_keys) - set(still_true)))


def watch_job_errors(job: RunningJob) -> int:
    """Raise an alert for each kind of job that had an unknown error within a day, and resolve the others.

    An error outside the error tree is a bug. The engine logs it at once, but its threads must not wait for the
    database, so this job raises the alerts later. Kinds with alerts of their own are skipped: one failure, one alert.
    """
    with job.transaction():
        with connection.cursor() as cursor:
            skipped = [DELIVER, *(kind.name for kind in all_kinds().values() if kind.own_alerts)]
            cursor.execute(_UNKNOWN, [skipped])
            found = cursor.fetchall()
        keys = []
        for kind, error_type, count, newest in found:
            keys.append(f"unknown_error:{kind}:{error_type}"[:LONGEST_KEY])
            raise_alert(
                UNKNOWN_ERROR,
                keys[-1],
                f"Unknown error in {kind} jobs: {error_type}",
                f"{count} within 24 hours. `harvester jobs show {newest}` has the traceback of the newest. "
                "The jobs were retried as far as their kind allows.",
                detail={"kind": kind, "error_type": error_type, "count": count, "newest_job_id": newest},
            )
        resolve_others(UNKNOWN_ERROR, keys, "It did not occur within the last 24 hours.")
    return len(keys)


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise RuntimeError("an alert must be raised in the transaction of the change that it reports")


def _clean(text: str, longest: int) -> str:
    """Redact a text, then shorten it: half a key is still a secret."""
    printable = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    redacted = redact_text(printable)
    return redacted if len(redacted) <= longest else redacted[: longest - 1] + "…"


def _log_engine_event(event: EngineEvent) -> None:
    """Log an event of the engine; it comes from threads that must not wait for the database.

    Kinds with alerts of their own are skipped: one condition, one message.
    """
    kind = all_kinds().get(event.fields.get("kind") or "")
    if kind is None or not kind.own_alerts:
        log.warning("ALERT", about=event.name, job_id=event.job_id, **event.fields)


#: Key in the details of an alert -> type of the object.
_OBJECTS = {"feed_id": "feed", "run_no": "run", "source_id": "source"}


class Delivery(StrEnum):
    """The delivery of a message."""

    DELIVERED = "DELIVERED"
    NOT_DELIVERED = "NOT_DELIVERED"  # the last attempt failed; another follows
    WAITING = "WAITING"
    NO_CHANNEL = "NO_CHANNEL"  # only in the log; Slack is not set up


@dataclass(frozen=True, kw_only=True)
class Message:
    """The message that an alert was opened, or resolved.

    Attributes:
        delivery: its state.
        words: the same for a person.
        delivered_at: when it was delivered.
    """

    delivery: Delivery
    words: str
    delivered_at: datetime | None = None


def things(alert: Alert) -> dict[str, Any]:
    """Return type -> id or number of each object that the alert is about."""
    detail: dict[str, Any] = alert.detail if isinstance(alert.detail, dict) else {}
    return {kind: detail[name] for name, kind in _OBJECTS.items() if detail.get(name)}


def message(alert: Alert, phase: str) -> Message:
    """Return the message about the start (OPENED) or the end (RESOLVED) of an alert."""
    delivered_at = alert.delivered_at(phase)
    if delivered_at:
        return Message(delivery=Delivery.DELIVERED, words="Sent to Slack", delivered_at=delivered_at)
    if alert.delivery_error:
        return Message(delivery=Delivery.NOT_DELIVERED, words=f"Not delivered yet: {alert.delivery_error}")
    if settings.CONFIG.slack_webhook_url:
        return Message(delivery=Delivery.WAITING, words="Waiting to be sent to Slack")
    return Message(delivery=Delivery.NO_CHANNEL, words="In the log; Slack is not set up")
