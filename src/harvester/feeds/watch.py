"""Two things that come by the clock alone, told before they happen.

HOLD_ENDS_SOON          a held run stops the clock for some time only; then offers begin to grow old
PRODUCTS_EXPIRE_SOON    the partner's file does not change, so nothing says that its products still exist
"""

from typing import Any

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.ops.alerts import Severity, raise_alert, resolve_others

HOLD_ENDS_SOON, PRODUCTS_EXPIRE_SOON = "HOLD_ENDS_SOON", "PRODUCTS_EXPIRE_SOON"
#: Hours before the end at which people are told: a working day, and a night.
HOLD_NOTICE_HOURS, EXPIRY_NOTICE_HOURS = 24, 12

# Passed deadlines count as well: the condition is over only when somebody decides, or a newer run takes its place.
_HOLDS = """
SELECT f.id, s.name, s.held_run_no, s.held_since + s.max_hold_hours * interval '1 hour' - s.frozen AS ends_at
FROM feeds f JOIN sources s ON s.id = f.source_id
WHERE s.held_run_no IS NOT NULL
  AND s.held_since + s.max_hold_hours * interval '1 hour' - s.frozen
      < statement_timestamp() + %s * interval '1 hour'
"""
# What is left is reckoned by the source's own clock, which stands still while a run is held.
_EXPIRIES = """
SELECT f.id, s.name, last.no, statement_timestamp() + (w.last_promoted_at - w.active_since) AS ends_at
FROM feeds f JOIN sources s ON s.id = f.source_id JOIN source_windows w ON w.source_id = s.id
CROSS JOIN LATERAL (
    SELECT r.no, r.outcome FROM runs r
    WHERE r.source_id = s.id AND r.kind = 'AFFILIATE_FEED' AND r.status <> 'RUNNING'
    ORDER BY r.started_at DESC, r.no DESC LIMIT 1
) last
WHERE last.outcome = 'SKIPPED' AND w.last_promoted_at < w.active_since + %s * interval '1 hour'
"""


def watch_clocks(job: RunningJob) -> dict[str, int]:
    """Raise what comes soon, and end what is over."""
    with job.transaction():
        holds = [_tell_hold(*row) for row in _rows(_HOLDS, HOLD_NOTICE_HOURS)]
        resolve_others(HOLD_ENDS_SOON, holds, "The held run was decided, or a newer one took its place.")
        expiries = [_tell_expiry(*row) for row in _rows(_EXPIRIES, EXPIRY_NOTICE_HOURS)]
        resolve_others(PRODUCTS_EXPIRE_SOON, expiries, "The products were seen again, or there is more time.")
    return {"holds": len(holds), "expiries": len(expiries)}


def _tell_hold(feed_id: Any, name: str, run_no: int, ends_at: Any) -> str:
    body = (
        f"Run {run_no} is held, and consumers see the state before it. From {ends_at:%Y-%m-%d %H:%M} UTC on that state "
        "grows old and expires. Approve or reject the run."
    )
    title = f"{name}: held run {run_no} needs a decision"
    return _tell(HOLD_ENDS_SOON, feed_id, run_no, title, body, severity="critical")


def _tell_expiry(feed_id: Any, name: str, run_no: int, ends_at: Any) -> str:
    body = (
        f"The file has not changed since the last promoted run, and run {run_no} skipped it. Its products expire at "
        f"{ends_at:%Y-%m-%d %H:%M} UTC unless a new file comes. Ask the partner; if such files are as good as new, "
        "let unchanged files count as seen."
    )
    return _tell(PRODUCTS_EXPIRE_SOON, feed_id, run_no, f"{name}: products expire soon", body, severity="warning")


def _tell(kind: str, feed_id: Any, run_no: int, title: str, body: str, *, severity: Severity) -> str:
    key = f"{kind}:feed:{feed_id}"
    raise_alert(kind, key, title, body, severity=severity, detail={"feed_id": str(feed_id), "run_no": run_no})
    return key


def _rows(query: str, hours: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, [hours])
        return cursor.fetchall()
