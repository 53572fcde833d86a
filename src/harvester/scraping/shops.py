"""Shops whose pages are read: their figures in a few statements whatever their number, and which need attention."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch
from harvester.scraping.models import AdapterState
from harvester.scraping.states import TargetStatus

# Lag is the age of the oldest due page that may be read; freshness is that of the newest and the oldest success.
_PAGES = """
SELECT source_id, status, count(*) AS pages, count(*) FILTER (WHERE enabled) AS enabled,
    max(last_scraped_at) AS newest, min(last_success_at) FILTER (WHERE enabled AND status = 'ACTIVE') AS oldest_success,
    max(last_success_at) AS newest_success, count(*) FILTER (WHERE last_success_at IS NULL) AS never,
    min(due_at) FILTER (WHERE enabled AND status = 'ACTIVE' AND NOT robots_path_blocked
        AND due_at <= statement_timestamp()) AS oldest_due
FROM scrape_targets WHERE source_id = ANY (%(sources)s) GROUP BY source_id, status
"""
_QUARANTINE = """
SELECT source_id, count(*) AS entries FROM quarantine
WHERE status = 'OPEN' AND source_id = ANY (%(sources)s) GROUP BY source_id
"""
_LAST_RUNS = """
SELECT s.id AS source_id, r.no, r.status, r.outcome, r.started_at, r.finished_at
FROM unnest(%(sources)s::uuid[]) s (id) CROSS JOIN LATERAL (
    SELECT no, status, outcome, started_at, finished_at FROM runs
    WHERE source_id = s.id AND kind = 'SCRAPE' ORDER BY started_at DESC LIMIT 1) r
"""


@dataclass(frozen=True, kw_only=True)
class ShopFigures:
    """Pages, freshness, the last run and quarantine of a shop.

    Attributes:
        pages: status -> number of pages.
        disabled: pages that people switched off.
        never_read: pages that were never read well.
        last_read_at: when any page was read last.
        newest_success_at, oldest_success_at: of the pages that are read.
        oldest_due_at: since when the page waits that waits longest; None if nothing is late.
        quarantine: open entries.
        run: the last run: no, status, outcome, started_at, finished_at.
        state: of its adapter; None if it never read a page.
    """

    pages: Mapping[str, int] = field(default_factory=dict)
    disabled: int = 0
    never_read: int = 0
    last_read_at: datetime | None = None
    newest_success_at: datetime | None = None
    oldest_success_at: datetime | None = None
    oldest_due_at: datetime | None = None
    quarantine: int = 0
    run: Mapping[str, Any] | None = None
    state: AdapterState | None = None

    @property
    def total(self) -> int:
        return sum(self.pages.values())

    def count(self, status: TargetStatus) -> int:
        return self.pages.get(status, 0)


def figures_of(sources: Collection[Source]) -> dict[UUID, ShopFigures]:
    """Return the figures of each source."""
    ids = [source.pk for source in sources]
    pages: dict[UUID, list[dict[str, Any]]] = {source_id: [] for source_id in ids}
    for row in fetch(_PAGES, {"sources": ids}):
        pages[row["source_id"]].append(row)
    entries = {row["source_id"]: row["entries"] for row in fetch(_QUARANTINE, {"sources": ids})}
    runs = {row["source_id"]: row for row in fetch(_LAST_RUNS, {"sources": ids})}
    adapters = {source.pk: source.adapter_id for source in sources}
    states = AdapterState.objects.filter(source_id__in=ids)
    known = {state.source_id: state for state in states if adapters[state.source_id] == state.adapter_id}
    return {
        source_id: ShopFigures(
            **_page_figures(pages[source_id]),
            quarantine=entries.get(source_id, 0),
            run=runs.get(source_id),
            state=known.get(source_id),
        )
        for source_id in ids
    }


def _page_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def of(name: str, choose: Any) -> datetime | None:
        return choose((row[name] for row in rows if row[name] is not None), default=None)

    return {
        "pages": {row["status"]: row["pages"] for row in rows},
        "disabled": sum(row["pages"] - row["enabled"] for row in rows),
        "never_read": sum(row["never"] for row in rows),
        "last_read_at": of("newest", max),
        "newest_success_at": of("newest_success", max),
        "oldest_success_at": of("oldest_success", min),
        "oldest_due_at": of("oldest_due", min),
    }


#: Shops that are named; of the others only the number is shown.
NAMED: Final = 5
#: Alerts about conditions that are in `shops` too.
COVERED_BY_SHOPS: Final = (
    *("SCRAPE_ADAPTER_DISABLED", "SCRAPE_BATCH_REFUSED", "SCRAPE_ZERO_PRICE", "SCRAPE_TARGETS_BROKEN"),
    "SCRAPE_STALE_PAGES",
)


class ShopNeedKind(StrEnum):
    """Why somebody should look, the most urgent first."""

    ADAPTER_DISABLED = "ADAPTER_DISABLED"  # nothing of the shop is read
    SHOP_BLOCKED = "SHOP_BLOCKED"  # the shop refuses requests, or somebody paused it
    RUN_TO_CHECK = "RUN_TO_CHECK"  # the first run after the adapter was enabled again
    QUARANTINE = "QUARANTINE"  # pages wait for a decision
    STALE_PAGES = "STALE_PAGES"  # pages waited in the queue for a day
    BROKEN_PAGES = "BROKEN_PAGES"  # pages failed five times in a row


@dataclass(frozen=True, kw_only=True)
class ShopNeed:
    """A shop that somebody should look at.

    Attributes:
        kind: the most urgent reason.
        source_id, shop: which shop.
        reason: everything that is wrong, in one line.
        at: since when; None if that is unknown.
    """

    kind: ShopNeedKind
    source_id: UUID
    shop: str
    reason: str
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ShopNeeds:
    """The most urgent shops, and the number of all."""

    named: list[ShopNeed]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.named)


# Only shops that are read: one that is switched off needs nobody. Each part reads an index of its own.
_SHOPS: Final = """
WITH waiting AS (
    SELECT source_id, count(*) AS entries, min(created_at) AS since FROM quarantine WHERE status = 'OPEN' GROUP BY 1
), pages AS (
    SELECT source_id, count(*) FILTER (WHERE status = 'STALE') AS stale,
        count(*) FILTER (WHERE status = 'BROKEN') AS broken
    FROM scrape_targets WHERE enabled AND status IN ('STALE', 'BROKEN') GROUP BY 1
)
SELECT s.id, s.name, coalesce(a.enabled, true) AS is_on, a.disabled_at, a.check_run_no, b.stopped_at, b.stopped_by,
    coalesce(w.entries, 0) AS entries, w.since, coalesce(p.stale, 0) AS stale, coalesce(p.broken, 0) AS broken,
    CASE WHEN NOT coalesce(a.enabled, true) THEN 1 WHEN b.stopped_at IS NOT NULL THEN 2
        WHEN a.check_run_no IS NOT NULL THEN 3 WHEN w.entries > 0 THEN 4 WHEN p.stale > 0 THEN 5 ELSE 6 END AS urgency,
    count(*) OVER () AS total
FROM sources s
LEFT JOIN adapter_states a ON a.source_id = s.id AND a.adapter_id = s.adapter_id
LEFT JOIN source_breakers b ON b.source_id = s.id AND b.kind = 'SCRAPE'
LEFT JOIN waiting w ON w.source_id = s.id
LEFT JOIN pages p ON p.source_id = s.id
WHERE s.scrape_enabled AND s.enabled AND (
    NOT coalesce(a.enabled, true) OR b.stopped_at IS NOT NULL OR a.check_run_no IS NOT NULL OR w.entries > 0
    OR p.stale > 0 OR p.broken > 0)
ORDER BY urgency, coalesce(w.entries, 0) DESC, s.name LIMIT %(most)s
"""
_KINDS: Final = tuple(ShopNeedKind)


def shop_needs(most: int = NAMED) -> ShopNeeds:
    """Return the shops that need attention, the most urgent first."""
    rows = fetch(_SHOPS, {"most": most})
    named = []
    for row in rows:
        who = "it was paused by a person" if row["stopped_by"] else "it refuses our requests"
        facts = [
            ("its adapter is disabled", not row["is_on"]),
            (who, row["stopped_at"] is not None),
            (f"run {row['check_run_no']} is to be checked", row["check_run_no"] is not None),
            (_counted(row["entries"], "in quarantine"), row["entries"]),
            (_counted(row["stale"], "stale"), row["stale"]),
            (_counted(row["broken"], "broken"), row["broken"]),
        ]
        reason = ", ".join(text for text, applies in facts if applies)
        kind = _KINDS[row["urgency"] - 1]
        at = {
            ShopNeedKind.ADAPTER_DISABLED: row["disabled_at"],
            ShopNeedKind.SHOP_BLOCKED: row["stopped_at"],
            ShopNeedKind.QUARANTINE: row["since"],
        }.get(kind)
        text = f"{reason[:1].upper()}{reason[1:]}."
        named.append(ShopNeed(kind=kind, source_id=row["id"], shop=row["name"], reason=text, at=at))
    return ShopNeeds(named=named, total=rows[0]["total"] if rows else 0)


def _counted(number: int, what: str) -> str:
    return f"{number:,} page{'' if number == 1 else 's'} {what}"
