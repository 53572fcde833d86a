"""The feeds that need attention, and the alerts about two deadlines, which are raised before they pass.

HOLD_ENDS_SOON          a held run stops offers from expiring only for a limited time
PRODUCTS_EXPIRE_SOON    no run is expected to confirm the offers before they expire
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.utils import timezone

from harvester.catalog.exposure import SHOWS_OFFERS, VISIBLE_COUNT, exposure_of
from harvester.catalog.named_rows import fetch_tuples
from harvester.engine.job import RunningJob
from harvester.feeds.states import FeedStatus
from harvester.guards.host_keys import HostKey
from harvester.kernel.errors import InvalidInput
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
        holds = []
        for feed_id, name, run_no, ends_at, expires_at in fetch_tuples(_HOLDS, {"hours": HOLD_NOTICE_HOURS}):
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
            title = f"{name}: held run {run_no} needs a decision"
            holds.append(_warn(HOLD_ENDS_SOON, feed_id, run_no, title, body, severity="critical"))
        resolve_others(HOLD_ENDS_SOON, holds, "The held run was decided, or a newer run replaced it.")
        expiries = []
        for feed_id, name, run_no, expires_at, cause in fetch_tuples(_EXPIRIES, {"hours": EXPIRY_NOTICE_HOURS}):
            is_gone = expires_at < timezone.now()
            moment = f"{expires_at:%Y-%m-%d %H:%M} UTC"
            title = f"{name}: offers disappeared" if is_gone else f"{name}: offers disappear soon"
            when = f"Its offers disappeared on {moment}." if is_gone else f"Otherwise its offers disappear on {moment}."
            body = f"{EXPIRY_CAUSES[cause]} {when} The last run is {run_no}."
            expiries.append(_warn(PRODUCTS_EXPIRE_SOON, feed_id, run_no, title, body, severity="warning"))
        resolve_others(PRODUCTS_EXPIRE_SOON, expiries, "The products were seen again, or the deadline moved.")
    return {"holds": len(holds), "expiries": len(expiries)}


def _warn(kind: str, feed_id: Any, run_no: int, title: str, body: str, *, severity: Severity) -> str:
    key = f"{kind}:feed:{feed_id}"
    raise_alert(kind, key, title, body, severity=severity, detail={"feed_id": str(feed_id), "run_no": run_no})
    return key


#: Needs of each kind that are named; of the others only the number is shown.
NAMED = 5
#: The scheduler looks every minute; a feed that is due for longer than this waits for a scheduler that does not run.
LATE_MINUTES = 15


class NeedKind(StrEnum):
    """Why somebody should look, the most urgent first."""

    HELD = "HELD"  # a run waits for a decision
    DISABLED = "DISABLED"  # three failures stopped the feed
    FAILING = "FAILING"  # its last run failed
    OFFERS_EXPIRED = "OFFERS_EXPIRED"  # consumers see none of its offers any more
    EXPIRES_SOON = "EXPIRES_SOON"  # its offers expire, and no run is expected that confirms them
    NOT_VISIBLE = "NOT_VISIBLE"  # a run was promoted, and consumers see none of its offers
    LATE = "LATE"  # it is due, and no run has begun
    HOST_KEY = "HOST_KEY"  # its server shows a host key that nobody has approved
    DISAPPEARING = "DISAPPEARING"  # after an approval, offers are about to expire


#: Alerts about conditions that `needs` reports too, if they are about feeds.
COVERED_BY_NEEDS = (
    *("RUN_HELD", "HOLD_ENDS_SOON", "RUN_FAILED", "LIMIT_EXCEEDED", "FEED_AUTO_DISABLED"),
    "PRODUCTS_EXPIRE_SOON",
)


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing that somebody should look at.

    Attributes:
        kind: why.
        feed_id: the feed.
        feed: the name of its source.
        run_no: the run that it is about, if it is about one.
        reason: one sentence.
        at: when it happened; for a held run, when its offers disappear; None if that is unknown.
    """

    kind: NeedKind
    feed_id: UUID
    feed: str
    run_no: int | None
    reason: str
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The most urgent needs of a kind, and the number of all."""

    kind: NeedKind
    named: list[Need]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.named)


_HELD = """
SELECT f.id, s.name, s.held_run_no, coalesce((
           SELECT string_agg(v ->> 'reason', ' ') FROM jsonb_array_elements(r.verdict) v
           WHERE (v ->> 'holds')::boolean), 'It waits for a decision.'), w.offers_expire_at, count(*) OVER ()
FROM sources s JOIN feeds f ON f.source_id = s.id JOIN runs r ON r.no = s.held_run_no
JOIN source_windows w ON w.source_id = s.id
WHERE s.held_run_no IS NOT NULL ORDER BY w.offers_expire_at NULLS LAST, s.name LIMIT %(named)s
"""
_PENDING_KEY = "f.transport = 'SFTP' AND f.seen_host_key <> '' AND position(f.seen_host_key IN f.host_keys) = 0"
_FAILED = f"""
SELECT f.id, s.name, last.no, coalesce(last.error, 'Its last run failed.'), last.finished_at, count(*) OVER ()
FROM feeds f JOIN sources s ON s.id = f.source_id
LEFT JOIN LATERAL (
    SELECT r.no, r.error, r.finished_at FROM runs r
    WHERE r.source_id = s.id AND r.kind = 'AFFILIATE_FEED' AND r.status = 'FAILED'
    ORDER BY r.started_at DESC LIMIT 1
) last ON true
WHERE f.status {{status}} AND f.retired_at IS NULL AND f.consecutive_failures > 0 AND NOT ({_PENDING_KEY})
ORDER BY f.last_run_at DESC NULLS LAST, s.name LIMIT %(named)s
"""  # noqa: S608 - put together from constants
# In any status of the feed: consumers see no offers of a held, paused or failing one either.
_EXPIRED = """
SELECT f.id, s.name, s.last_promoted_run_no,
       'No run has confirmed its offers within ' || s.expiry_hours || ' h; consumers see none of them.',
       w.offers_expire_at, count(*) OVER ()
FROM feeds f JOIN sources s ON s.id = f.source_id JOIN source_windows w ON w.source_id = s.id
WHERE w.is_shown AND f.retired_at IS NULL AND w.offers_expire_at < statement_timestamp()
ORDER BY w.offers_expire_at, s.name LIMIT %(named)s
"""
_EXPIRES_SOON = f"""
SELECT e.feed_id, e.source, e.run_no, e.cause, e.offers_expire_at, count(*) OVER ()
FROM ({EXPIRING}) e WHERE e.is_shown AND e.offers_expire_at >= statement_timestamp()
ORDER BY e.offers_expire_at, e.source LIMIT %(named)s
"""  # noqa: S608 - put together from constants
# A source is hidden on purpose if its retailer shows another one, and by mistake if it shows none. A source that is
# shown may have hidden prices only.
_NOT_VISIBLE = f"""
SELECT f.id, s.name, s.last_promoted_run_no, s.id::text, s.last_promoted_at, count(*) OVER ()
FROM feeds f JOIN sources s ON s.id = f.source_id JOIN source_windows w ON w.source_id = s.id
WHERE s.last_promoted_at IS NOT NULL AND f.retired_at IS NULL AND CASE
    WHEN NOT w.is_shown THEN NOT EXISTS (
        SELECT FROM sources o WHERE o.retailer_id = s.retailer_id AND o.is_display_primary)
    ELSE {SHOWS_OFFERS} AND EXISTS (SELECT FROM hidden_offers h WHERE h.source_id = s.id) AND {VISIBLE_COUNT} <= 0 END
ORDER BY s.last_promoted_at DESC, s.name LIMIT %(named)s
"""  # noqa: S608 - put together from constants
_LATE = """
SELECT f.id, s.name, NULL::bigint, 'It is due, and nobody has begun. Are a scheduler and a worker running?',
       f.next_run_at, count(*) OVER ()
FROM feeds f JOIN sources s ON s.id = f.source_id
WHERE f.status = 'ENABLED' AND f.next_run_at < statement_timestamp() - %(late)s * interval '1 minute'
ORDER BY f.next_run_at, s.name LIMIT %(named)s
"""
_HOST_KEYS = f"""
SELECT f.id, s.name, NULL::bigint, concat_ws(' ', f.status, CASE f.host_keys WHEN '' THEN 'FIRST' ELSE 'CHANGED' END,
       f.seen_host_key), NULL::timestamptz, count(*) OVER ()
FROM feeds f JOIN sources s ON s.id = f.source_id
WHERE f.retired_at IS NULL AND {_PENDING_KEY} ORDER BY s.name LIMIT %(named)s
"""  # noqa: S608 - put together from constants
# Offers that a person agreed to remove, until they have expired.
_DISAPPEARING = """
SELECT f.id, s.name, s.last_promoted_run_no, m.offers::text,
       expires_at(m.last, s.expiry_hours, s.frozen, s.held_since, s.max_hold_hours), count(*) OVER ()
FROM feeds f JOIN sources s ON s.id = f.source_id JOIN source_windows w ON w.source_id = s.id
CROSS JOIN LATERAL (
    SELECT count(*) AS offers, max(o.seen_until) AS last
    FROM offers o WHERE o.source_id = s.id AND o.seen_until >= w.active_since AND o.absence_accepted
) m
WHERE w.is_shown AND f.retired_at IS NULL AND m.offers > 0 ORDER BY m.last, s.name LIMIT %(named)s
"""
_NEEDS = {
    NeedKind.HELD: _HELD,
    NeedKind.DISABLED: _FAILED.format(status="= 'DISABLED'"),
    NeedKind.FAILING: _FAILED.format(status="IN ('ENABLED', 'PAUSED')"),
    NeedKind.OFFERS_EXPIRED: _EXPIRED,
    NeedKind.EXPIRES_SOON: _EXPIRES_SOON,
    NeedKind.NOT_VISIBLE: _NOT_VISIBLE,
    NeedKind.LATE: _LATE,
    NeedKind.HOST_KEY: _HOST_KEYS,
    NeedKind.DISAPPEARING: _DISAPPEARING,
}
# One statement, because a round trip to the database takes longer than each of them.
_ALL_NEEDS = " UNION ALL ".join(
    f"SELECT '{kind}' AS kind, row_number() OVER () AS place, x.* FROM ({query}) x"  # noqa: S608 - of constants
    for kind, query in _NEEDS.items()
)
_ALL_NEEDS += " ORDER BY kind, place"


def feeds_by_status() -> dict[str, int]:
    """Number of feeds in each status, zeros included."""
    found = dict(fetch_tuples("SELECT status, count(*) FROM feeds WHERE retired_at IS NULL GROUP BY status"))
    return {status.value: found.get(status.value, 0) for status in FeedStatus}


def needs(named: int = NAMED) -> list[Needs]:
    """Return what needs attention, by urgency; kinds without a need are left out."""
    rows = fetch_tuples(_ALL_NEEDS, {"named": named, "late": LATE_MINUTES, "hours": EXPIRY_NOTICE_HOURS})
    found = []
    for kind in NeedKind:
        of_kind = [row[2:] for row in rows if row[0] == kind]
        items = [
            Need(kind=kind, feed_id=feed_id, feed=name, run_no=run_no, reason=_reason(kind, text), at=at)
            for feed_id, name, run_no, text, at, _ in of_kind
        ]
        if items:
            found.append(Needs(kind=kind, named=items, total=of_kind[0][-1]))
    return found


def _reason(kind: NeedKind, text: str) -> str:
    if kind is NeedKind.NOT_VISIBLE:
        return exposure_of(UUID(text)).not_visible_because or "Not visible."
    if kind is NeedKind.DISAPPEARING:
        return f"The approval removes {int(text):,} offers unless a later file contains them."
    if kind is NeedKind.EXPIRES_SOON:
        return EXPIRY_CAUSES[text]
    return _about_key(*text.split(" ", 2)) if kind is NeedKind.HOST_KEY else text


def _about_key(status: str, sight: str, line: str) -> str:
    """A first key is part of setting up a feed; a key that changed may belong to an attacker in between."""
    try:
        key = HostKey.parse(line).fingerprint
    except InvalidInput:
        key = "one that cannot be read"
    if sight == "FIRST":
        return f"Its server shows a host key that nobody has approved: {key}"
    stopped = " The feed is disabled." if status == FeedStatus.DISABLED else ""
    return f"Its server shows another host key than the approved one, and every run fails: {key}.{stopped}"
