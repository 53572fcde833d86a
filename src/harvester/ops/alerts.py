"""Telling people what they should know: once for each condition, and once more when it is over.

A condition has a key, such as `feed_failing:<feed>`. Raising it again while it is open only counts; resolving one that
is not open does nothing. Both belong to the transaction of what they tell of: if that is rolled back, nobody is told.
The log is always a channel; others are served by the job that is enqueued here (`alert_delivery`).
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal

import structlog
from django.db import connection, transaction

from harvester.engine.enqueue import enqueue
from harvester.engine.events import EngineEvent, subscribe
from harvester.engine.json_values import check_name, to_json
from harvester.engine.registry import Later, all_kinds, job_kind
from harvester.guards.redaction import redact, redact_text
from harvester.kernel.retry import RetryPolicy
from harvester.ops.models import Alert

log = structlog.get_logger(__name__)

DELIVER = "ops.deliver_alert"
#: Five hours in all: longer than Slack is away, shorter than the news is worth.
RETRY = RetryPolicy(base=30.0, factor=2.0, cap=3600.0, attempts=12)
OPENED, RESOLVED = "opened", "resolved"
Severity = Literal["info", "warning", "critical"]
LONGEST_KIND, LONGEST_KEY = 100, 300
#: Characters: a line, and a page that still fits into one message.
LONGEST_TITLE, LONGEST_BODY = 200, 2_500

# The newest words count: figures in them may have changed since the condition was first seen.
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


def register() -> None:
    """Have alerts delivered, and listen to the engine."""
    job_kind(DELIVER, queue="maintenance", retry=RETRY, timeout=60.0)(
        Later("harvester.ops.alert_delivery:deliver_alert")
    )
    subscribe(_tell)


def raise_alert(
    kind: str,
    key: str,
    title: str,
    body: str,
    *,
    severity: Severity = "warning",
    detail: Mapping[str, Any] | None = None,
) -> int:
    """Open a condition, or count it once more if it is open; answers the alert's id.

    Args:
        kind: what sort of condition, a constant name such as FEED_RUN_FAILED.
        key: which condition of that sort; one alert at a time is open for it.
        title: one line.
        body: what happened, what is left as it was, and what to do.
        severity: info, warning, or critical for what consumers notice.
        detail: ids and figures.
    """
    _require_transaction()
    check_name(kind, "kind", LONGEST_KIND)
    check_name(key, "key", LONGEST_KEY)
    words = {"title": _clean(title, LONGEST_TITLE), "body": _clean(body, LONGEST_BODY)}
    told = to_json(redact(dict(detail or {})), "The detail of an alert")
    with connection.cursor() as cursor:
        cursor.execute(_RAISE, {"kind": kind, "key": key, "severity": severity, "detail": told, **words})
        alert_id, times = cursor.fetchone()
    if times == 1:
        _announce(alert_id, OPENED)
        transaction.on_commit(
            partial(log.warning, "ALERT", about=kind, alert_id=alert_id, key=key, severity=severity, **words)
        )
    return int(alert_id)


def resolve_alert(key: str, note: str = "") -> bool:
    """End an open condition; False if there is none."""
    _require_transaction()
    with connection.cursor() as cursor:
        cursor.execute(_RESOLVE, {"key": key, "note": _clean(note, LONGEST_BODY)})
        row = cursor.fetchone()
    if row is None:
        return False
    alert_id, kind, title = row
    _announce(alert_id, RESOLVED)
    transaction.on_commit(
        partial(log.info, "ALERT_RESOLVED", about=kind, alert_id=alert_id, key=key, title=title, note=note)
    )
    return True


def resolve_others(kind: str, still_true: Iterable[str], note: str) -> int:
    """End the open conditions of a kind whose keys are not among these; answers how many."""
    kept = set(still_true)
    open_keys = Alert.objects.filter(kind=kind, resolved_at=None).values_list("key", flat=True)
    return sum(resolve_alert(key, note) for key in sorted(set(open_keys) - kept))


def _announce(alert_id: int, phase: str) -> None:
    enqueue(DELIVER, {"alert_id": alert_id, "phase": phase})


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise RuntimeError("an alert belongs in the transaction of what it tells of")


def _clean(text: str, longest: int) -> str:
    """Without secrets, and only then cut: half a key is still a secret."""
    printable = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    redacted = redact_text(printable)
    return redacted if len(redacted) <= longest else redacted[: longest - 1] + "…"


def _tell(event: EngineEvent) -> None:
    """Log what the engine noticed; it speaks from threads that must not wait for the database.

    A kind that raises alerts of its own tells of its failures itself: one condition, one message.
    """
    kind = all_kinds().get(event.fields.get("kind") or "")
    if kind is not None and kind.own_alerts:
        return
    log.warning("ALERT", about=event.name, job_id=event.job_id, **event.fields)
