"""Shops whose pages are read: their figures for lists and pages, in a few statements whatever their number."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
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
