"""Alerts about two deadlines, raised before they pass.

HOLD_ENDS_SOON          a held run stops offers from expiring only for a limited time
PRODUCTS_EXPIRE_SOON    no run is expected to confirm the offers before they expire
"""

from typing import Any

from django.db import connection
from django.utils import timezone

from harvester.engine.job import RunningJob
from harvester.ops.alerts import Severity, raise_alert, resolve_others

HOLD_ENDS_SOON, PRODUCTS_EXPIRE_SOON = "HOLD_ENDS_SOON", "PRODUCTS_EXPIRE_SOON"
#: Hours before the deadline at which the alert is raised: a working day, and a night.
HOLD_NOTICE_HOURS, EXPIRY_NOTICE_HOURS = 24, 12

# Includes passed deadlines: the alert ends only when the run is decided, or a newer run replaces it.
_HOLDS = """
SELECT f.id, s.name, s.held_run_no, s.held_since + s.max_hold_hours * interval '1 hour' - s.frozen, w.offers_expire_at
FROM feeds f JOIN sources s ON s.id = f.source_id JOIN source_windows w ON w.source_id = s.id
WHERE s.held_run_no IS NOT NULL
  AND s.held_since + s.max_hold_hours * interval '1 hour' - s.frozen
      < statement_timestamp() + %(hours)s * interval '1 hour'
"""
# Feeds whose offers expire within some hours, or have expired, and the reason why no run is expected to confirm them in
# time. A held run has a separate alert.
EXPIRING = """
SELECT f.id AS feed_id, s.name AS source, last.no AS run_no, w.offers_expire_at, w.is_shown,
       CASE WHEN f.status IN ('PAUSED', 'DISABLED') THEN f.status
            WHEN last.status = 'FAILED' THEN 'FAILED'
            WHEN last.outcome IN ('SKIPPED', 'REJECTED') THEN last.outcome
            WHEN f.schedule_hours IS NULL THEN 'MANUAL' ELSE 'LATE' END AS cause
FROM feeds f JOIN sources s ON s.id = f.source_id JOIN source_windows w ON w.source_id = s.id
CROSS JOIN LATERAL (
    SELECT r.no, r.status, r.outcome FROM runs r
    WHERE r.source_id = s.id AND r.kind = 'AFFILIATE_FEED' AND r.status <> 'RUNNING'
    ORDER BY r.started_at DESC, r.no DESC LIMIT 1
) last
WHERE s.held_run_no IS NULL AND f.retired_at IS NULL
  AND w.offers_expire_at < statement_timestamp() + %(hours)s * interval '1 hour'
  AND NOT (f.status = 'ENABLED' AND last.outcome IN ('PROMOTED', 'APPROVED', 'OVERTAKEN')
           AND f.next_run_at IS NOT NULL AND f.next_run_at < w.offers_expire_at)
"""
_EXPIRIES = f"SELECT feed_id, source, run_no, offers_expire_at, cause FROM ({EXPIRING}) e"  # noqa: S608 - of constants
#: Cause -> what happened, and what to do.
EXPIRY_CAUSES = {
    "PAUSED": "The feed is paused. Resume it if its offers should stay visible.",
    "DISABLED": "The feed is disabled. Fix the problem and re-enable it.",
    "FAILED": "The last run failed. Fix the problem and run the feed again.",
    "SKIPPED": (
        "The file has not changed since the last promoted run. Ask the partner for a new one; if unchanged files are "
        "still right, let them count as seen."
    ),
    "REJECTED": "The last run was rejected. Ask the partner for a correct file.",
    "MANUAL": "The feed runs only manually. Run it now.",
    "LATE": "The next run comes too late. Run the feed now, or schedule it more often.",
}


def watch_clocks(job: RunningJob) -> dict[str, int]:
    """Raise alerts for deadlines that are near, and resolve those that no longer apply."""
    with job.transaction():
        holds = [_warn_of_hold(*row) for row in _rows(_HOLDS, HOLD_NOTICE_HOURS)]
        resolve_others(HOLD_ENDS_SOON, holds, "The held run was decided, or a newer run replaced it.")
        expiries = [_warn_of_expiry(*row) for row in _rows(_EXPIRIES, EXPIRY_NOTICE_HOURS)]
        resolve_others(PRODUCTS_EXPIRE_SOON, expiries, "The products were seen again, or the deadline moved.")
    return {"holds": len(holds), "expiries": len(expiries)}


def _warn_of_hold(feed_id: Any, name: str, run_no: int, ends_at: Any, expires_at: Any) -> str:
    title = f"{name}: held run {run_no} needs a decision"
    gone = f" If nobody decides, they disappear on {expires_at:%Y-%m-%d %H:%M} UTC." if expires_at else ""
    body = (
        f"Run {run_no} is held, and consumers see the offers from before. Offers won't expire before "
        f"{ends_at:%Y-%m-%d %H:%M} UTC.{gone} Approve or reject the run."
    )
    if expires_at and expires_at < ends_at:
        body = (
            f"Run {run_no} is held, and the offers before it expired on {expires_at:%Y-%m-%d %H:%M} UTC. "
            "Approve or reject the run."
        )
    return _warn(HOLD_ENDS_SOON, feed_id, run_no, title, body, severity="critical")


def _warn_of_expiry(feed_id: Any, name: str, run_no: int, expires_at: Any, cause: str) -> str:
    is_gone = expires_at < timezone.now()
    moment = f"{expires_at:%Y-%m-%d %H:%M} UTC"
    title = f"{name}: offers disappeared" if is_gone else f"{name}: offers disappear soon"
    when = f"Its offers disappeared on {moment}." if is_gone else f"Otherwise its offers disappear on {moment}."
    body = f"{EXPIRY_CAUSES[cause]} {when} The last run is {run_no}."
    return _warn(PRODUCTS_EXPIRE_SOON, feed_id, run_no, title, body, severity="warning")


def _warn(kind: str, feed_id: Any, run_no: int, title: str, body: str, *, severity: Severity) -> str:
    key = f"{kind}:feed:{feed_id}"
    raise_alert(kind, key, title, body, severity=severity, detail={"feed_id": str(feed_id), "run_no": run_no})
    return key


def _rows(query: str, hours: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"hours": hours})
        return cursor.fetchall()
