"""What consumers see of a source: the number of offers, when they disappear, and why there are none."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from harvester.catalog.named_rows import fetch

# Products of the last promoted run of a feed that have a readable price, unless all of them expired, plus those with a
# time of their own: missing ones, and those that only pages show. Counting all offers would read them all. For
# statements with sources as `s` and their windows as `w`.
VISIBLE_COUNT: Final = """
    CASE WHEN w.expiry_hours IS NULL OR w.last_promoted_at >= w.active_since THEN coalesce(s.last_promoted_count, 0) - (
        SELECT count(*) FROM hidden_offers h
        WHERE h.source_id = s.id AND h.last_promoted_run_no = s.last_promoted_run_no AND h.seen_until IS NULL
          AND NOT EXISTS (SELECT FROM offers o WHERE o.source_id = h.source_id AND o.product_id = h.product_id
                          AND NOT o.by_pages)
    ) ELSE 0 END + (
        SELECT count(*) FROM offers o
        WHERE o.source_id = s.id AND o.seen_until >= coalesce(w.active_since, '-infinity') AND o.ended_at IS NULL)
"""
#: For the same statements: the source is shown, and not all that its feed has has expired.
SHOWS_OFFERS: Final = "w.is_shown AND (w.expiry_hours IS NULL OR w.last_promoted_at >= w.active_since)"
_EXPOSURES = f"""
SELECT s.id AS source_id, s.name AS source, r.name AS retailer, s.visibility = 'ELIGIBLE' AS is_eligible,
       EXISTS (SELECT FROM page_products g WHERE g.source_id = s.id) AS has_pages, p.name AS primary_source, w.is_shown,
       s.last_promoted_at, w.offers_expire_at, coalesce(w.last_promoted_at < w.active_since, false) AS is_expired,
       CASE WHEN w.is_shown THEN {VISIBLE_COUNT} ELSE 0 END AS visible, coalesce(m.offers, 0) AS disappearing,
       expires_at(m.first, s.expiry_hours, s.frozen, s.held_since, s.max_hold_hours) AS disappear_from,
       expires_at(m.last, s.expiry_hours, s.frozen, s.held_since, s.max_hold_hours) AS disappear_by
FROM source_windows w JOIN sources s ON s.id = w.source_id JOIN retailers r ON r.id = s.retailer_id
LEFT JOIN sources p ON p.retailer_id = s.retailer_id AND p.is_display_primary
LEFT JOIN LATERAL (
    SELECT count(*) AS offers, min(o.seen_until) AS first, max(o.seen_until) AS last
    FROM offers o WHERE o.source_id = s.id AND o.seen_until >= w.active_since AND NOT o.by_pages
) m ON w.is_shown
WHERE s.id = ANY(%(sources)s)
"""  # noqa: S608 - constants only


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What consumers see of a source now.

    Attributes:
        source_id: the source.
        source: its name.
        retailer: the name of its retailer.
        is_eligible: whether scraped prices of the source count.
        has_pages: whether a page of the source was promoted.
        primary_source: the name of the retailer's display primary, if it has one.
        is_shown: whether consumers see this source.
        last_promoted_at: when a run was last promoted.
        offers_expire_at: when the offers of that run disappear, unless a run is promoted or decided.
        is_expired: they have disappeared.
        visible: number of offers that consumers see.
        disappearing: number of these that were missing from the last promoted run; each disappears when it expires.
        disappear_from: when the first of them expires.
        disappear_by: when the last of them expires.
    """

    source_id: UUID
    source: str
    retailer: str
    is_eligible: bool
    has_pages: bool
    primary_source: str | None
    is_shown: bool
    last_promoted_at: datetime | None
    offers_expire_at: datetime | None
    is_expired: bool
    visible: int
    disappearing: int
    disappear_from: datetime | None
    disappear_by: datetime | None

    @property
    def not_visible_because(self) -> str | None:
        """Why consumers see no offers although a run was promoted; None if they see some, or if none was promoted."""
        if self.visible > 0 or (self.last_promoted_at is None and not self.has_pages):
            return None
        if not self.is_shown and self.primary_source:
            return f"Not visible because {self.primary_source} is the display primary of {self.retailer}."
        if not self.is_shown:
            return f"Not visible because {self.source} is not the display primary of {self.retailer}. Make it primary."
        if self.is_expired:
            return f"Not visible because all offers expired on {self.offers_expire_at:%Y-%m-%d %H:%M} UTC."
        why = "corrections or ignored runs hide all prices."
        if self.last_promoted_at is None and not self.is_eligible:
            why = f"scraped prices of {self.source} do not count. Change its visibility to ELIGIBLE."
        elif self.last_promoted_at is None:
            why = "its pages are gone, sold out without a price, or could not be read for too long."
        return f"Not visible because {why}"


def exposures(source_ids: Collection[UUID]) -> dict[UUID, Exposure]:
    """Return what consumers see of each of these sources, by id."""
    found = fetch(_EXPOSURES, {"sources": list(source_ids)})
    return {row["source_id"]: Exposure(**row) for row in found}


def exposure_of(source_id: UUID) -> Exposure:
    return exposures([source_id])[source_id]


@dataclass(frozen=True, kw_only=True)
class Disappearing:
    """Visible offers that disappear unless a later file contains them."""

    offers: int
    disappear_by: datetime | None


_MISSED = """
SELECT count(*) AS offers, expires_at(max(o.seen_until), min(s.expiry_hours), min(s.frozen), min(s.held_since),
                                      min(s.max_hold_hours)) AS disappear_by
FROM run_absences a CROSS JOIN LATERAL unnest(a.product_ids) AS m (product_id)
JOIN offers o ON o.source_id = a.source_id AND o.product_id = m.product_id
JOIN sources s ON s.id = a.source_id JOIN source_windows w ON w.source_id = a.source_id
WHERE a.source_id = %(source)s AND a.run_no = %(run)s AND w.is_shown AND o.seen_until >= w.active_since
"""


def missed_by(source_id: UUID, run_no: int) -> Disappearing:
    """Return the visible offers that were missing from a promoted run, and when they disappear."""
    [row] = fetch(_MISSED, {"source": source_id, "run": run_no})
    return Disappearing(**row)
