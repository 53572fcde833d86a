"""Why consumers see an offer, or do not: the one visibility rule, told in words for some products at once."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from harvester.catalog.named_rows import fetch
from harvester.kernel.effective_time import expires_at
from harvester.kernel.errors import NotFound

#: A product of a source: together they are the key of its offer.
Key = tuple[UUID, int]


class State(StrEnum):
    """Whether consumers see an offer; all but the first are reasons why not."""

    VISIBLE = "VISIBLE"
    SOURCE_NOT_SHOWN = "SOURCE_NOT_SHOWN"  # of its retailer, another source is shown, or none
    EXPIRED = "EXPIRED"  # not seen for longer than its source allows
    HIDDEN_BY_CORRECTION = "HIDDEN_BY_CORRECTION"  # no price is left that may be read
    RUN_IGNORED = "RUN_IGNORED"  # the run that priced it is ignored
    SCRAPED_ONLY = "SCRAPED_ONLY"  # its source does not let scraped prices count
    NEVER_PROMOTED = "NEVER_PROMOTED"  # no run that saw it was promoted


@dataclass(frozen=True, kw_only=True)
class Why:
    """One reason, in words.

    Attributes:
        state: the reason's name.
        words: whole sentences for a person.
        since: since when it holds, where that is known.
        run_no: the run that it is about.
        correction_id: the correction that it is about.
    """

    state: State
    words: str
    since: dt.datetime | None = None
    run_no: int | None = None
    correction_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How an offer stands with consumers.

    Attributes:
        whys: the reasons why they do not see it; one that says so where they do.
        has_offer: whether a price of it may be read.
        last_seen_at: when a promoted run saw the product last; None without an offer.
        is_missing: whether the last promoted run did not see it.
        expires_at: when it disappears, or did; None where that never happens.
    """

    whys: tuple[Why, ...]
    has_offer: bool
    last_seen_at: dt.datetime | None
    is_missing: bool
    expires_at: dt.datetime | None

    @property
    def state(self) -> State:
        return self.whys[0].state

    @property
    def is_visible(self) -> bool:
        return self.state is State.VISIBLE

    @property
    def words(self) -> str:
        return " ".join(why.words for why in self.whys)


#: For a statement in which corrections are `c`, prices `n` and sources `s`: the correction is about the price.
CONCERNS = """
    (c.source_id = s.id OR c.retailer_id = s.retailer_id)
    AND correction_applies(c, s.retailer_id, s.id, n.source_product_id, n.run_no, n.observed_at, n.run_type, n.amount,
                           n.currency)
"""
# Whether an offer is active and visible is asked of the views that everybody asks; the rest are the facts behind it.
_STANDINGS = """
SELECT p.source_id, p.id, o.product_id IS NOT NULL AS has_offer, w.is_shown, s.name AS source, r.name AS retailer,
       EXISTS (SELECT FROM active_offers a WHERE a.source_id = p.source_id AND a.product_id = p.id) AS is_active,
       EXISTS (SELECT FROM visible_offers v WHERE v.source_id = p.source_id AND v.product_id = p.id) AS is_visible,
       k.name AS display_primary, coalesce(o.seen_until, s.last_promoted_at) AS last_seen_at,
       o.seen_until IS NOT NULL AS is_missing, s.expiry_hours, s.frozen, s.held_since, s.max_hold_hours
FROM unnest(%(sources)s::uuid[], %(products)s::bigint[]) AS x (source_id, id)
JOIN source_products p ON p.source_id = x.source_id AND p.id = x.id
JOIN sources s ON s.id = p.source_id
JOIN retailers r ON r.id = s.retailer_id
JOIN source_windows w ON w.source_id = p.source_id
LEFT JOIN sources k ON k.retailer_id = s.retailer_id AND k.is_display_primary
LEFT JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id
"""
# Of a product without an offer the newest price tells why no price of it may be read. Asked only where there are such
# products: the partitions of prices make it dear to plan.
_WITHOUT_OFFER = f"""
SELECT x.source_id, x.id, n.run_no, i.ignored_at, i.ignored_reason, c.id AS correction_id,
       c.created_at AS corrected_at, c.reason AS correction_reason
FROM unnest(%(sources)s::uuid[], %(products)s::bigint[]) AS x (source_id, id)
LEFT JOIN sources s ON s.id = x.source_id
LEFT JOIN LATERAL (
    SELECT l.* FROM prices l WHERE l.source_id = x.source_id AND l.source_product_id = x.id
    ORDER BY l.observed_at DESC, l.run_no DESC LIMIT 1) n ON true
LEFT JOIN runs i ON i.no = n.run_no AND i.ignored_at IS NOT NULL
LEFT JOIN LATERAL (
    SELECT c.* FROM price_corrections c
    WHERE n.run_no IS NOT NULL AND c.revoked_at IS NULL AND {CONCERNS}
      AND read_price(x.source_id, x.id, n.run_no, n.observed_at, n.run_type, n.amount, n.currency, NULL) IS NULL
    ORDER BY c.action, c.created_at LIMIT 1) c ON true
"""  # noqa: S608 - constants only


def standing(source_id: UUID, product_id: int) -> Standing:
    """How the offer of one product stands, whether there is one or not."""
    found = standings([(source_id, product_id)])
    if not found:
        raise NotFound(f"The source {source_id} has no product {product_id}; `harvester offers search` finds offers.")
    return found[source_id, product_id]


def standings(keys: Iterable[Key]) -> dict[Key, Standing]:
    """How the offers of these products stand; products that do not exist are left out."""
    rows = _read(_STANDINGS, list(keys))
    without = [key for key, row in rows.items() if not row["has_offer"]]
    reasons = _read(_WITHOUT_OFFER, without) if without else {}
    return {key: _standing(row | reasons.get(key, {})) for key, row in rows.items()}


def _read(statement: str, keys: list[Key]) -> dict[Key, dict[str, Any]]:
    values = {"sources": [source for source, _ in keys], "products": [product for _, product in keys]}
    return {(row["source_id"], row["id"]): row for row in fetch(statement, values)}


def _standing(row: dict[str, Any]) -> Standing:
    expires = _expires_at(row) if row["has_offer"] else None
    return Standing(
        whys=_whys(row, expires),
        has_offer=row["has_offer"],
        last_seen_at=row["last_seen_at"] if row["has_offer"] else None,
        is_missing=row["is_missing"],
        expires_at=expires,
    )


def _expires_at(row: dict[str, Any]) -> dt.datetime | None:
    if row["expiry_hours"] is None or row["last_seen_at"] is None:
        return None
    return expires_at(
        row["last_seen_at"],
        dt.timedelta(hours=row["expiry_hours"]),
        frozen=row["frozen"],
        held_since=row["held_since"],
        max_hold=dt.timedelta(hours=row["max_hold_hours"]),
    )


def _whys(row: dict[str, Any], expires: dt.datetime | None) -> tuple[Why, ...]:
    if row["is_visible"]:
        return (Why(state=State.VISIBLE, words=_visible(row)),)
    if not row["has_offer"]:
        return (_no_offer(row),)
    whys = []
    if not row["is_shown"]:
        whys.append(Why(state=State.SOURCE_NOT_SHOWN, words=_not_shown(row)))
    if not row["is_active"]:
        whys.append(Why(state=State.EXPIRED, words=_expired(row), since=expires))
    return tuple(whys)


def _visible(row: dict[str, Any]) -> str:
    if row["is_missing"]:
        return "Consumers see it, though the last promoted run did not: it stays until it expires."
    return "Consumers see it."


def _not_shown(row: dict[str, Any]) -> str:
    if row["display_primary"]:
        return f"Of {row['retailer']} consumers see {row['display_primary']}; {row['source']} is not the primary."
    return (
        f"{row['source']} is not the display primary of {row['retailer']}, which has none; without one only direct "
        "sources are shown."
    )


def _expired(row: dict[str, Any]) -> str:
    seen = "No run with it was promoted" if row["last_seen_at"] is None else "No promoted run has seen it"
    return f"{seen} for longer than the {row['expiry_hours']} h after which offers of {row['source']} expire."


def _no_offer(row: dict[str, Any]) -> Why:
    if row["run_no"] is None:
        words = "No run that saw it was promoted, so it has no price yet."
        return Why(state=State.NEVER_PROMOTED, words=words)
    if row["ignored_at"] is not None:
        words = f"Run {row['run_no']}, which priced it last, is ignored: {_sentence(row['ignored_reason'])}"
        return Why(state=State.RUN_IGNORED, words=words, since=row["ignored_at"], run_no=row["run_no"])
    if row["correction_id"] is not None:
        words = f"A correction hides its prices: {_sentence(row['correction_reason'])}"
        return Why(
            state=State.HIDDEN_BY_CORRECTION,
            words=words,
            since=row["corrected_at"],
            correction_id=row["correction_id"],
        )
    words = f"Only scraped prices of it are known, and {row['source']} does not let those count."
    return Why(state=State.SCRAPED_ONLY, words=words, run_no=row["run_no"])


def _sentence(reason: str | None) -> str:
    """What a person wrote, as the end of a sentence."""
    return f"{(reason or '').rstrip('. ')}."
