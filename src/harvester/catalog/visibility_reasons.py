"""Why consumers see an offer or not, for some products at once."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from harvester.catalog.named_rows import fetch
from harvester.kernel.errors import NotFound

#: A product of a source: together they are the key of its offer.
Key = tuple[UUID, int]


class State(StrEnum):
    """Whether consumers see an offer, or why not."""

    VISIBLE = "VISIBLE"
    SOURCE_NOT_SHOWN = "SOURCE_NOT_SHOWN"  # consumers see another source of its retailer, or none
    EXPIRED = "EXPIRED"  # not seen for longer than its source allows
    ENDED = "ENDED"  # only pages show it, and its page is gone or sold out without a price
    HIDDEN_BY_CORRECTION = "HIDDEN_BY_CORRECTION"  # no readable price is left
    RUN_IGNORED = "RUN_IGNORED"  # the run that priced it is ignored
    SCRAPED_ONLY = "SCRAPED_ONLY"  # scraped prices of its source do not count
    NEVER_PROMOTED = "NEVER_PROMOTED"  # no run that contains it was promoted


@dataclass(frozen=True, kw_only=True)
class Why:
    """One reason.

    Attributes:
        state: the reason's name.
        words: the reason in sentences.
        since: since when, if known.
        run_no: its run.
        correction_id: its correction.
    """

    state: State
    words: str
    since: dt.datetime | None = None
    run_no: int | None = None
    correction_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The visibility of an offer.

    Attributes:
        whys: the reasons why consumers do not see it, or one that says that they see it.
        has_offer: whether it has a readable price.
        last_seen_at: when a promoted run last contained the product, or its page was last read; None without an offer.
        is_missing: whether the last promoted run did not contain it.
        expires_at: when it disappears or disappeared; None if never.
        by_pages: whether only pages show it.
    """

    whys: tuple[Why, ...]
    has_offer: bool
    last_seen_at: dt.datetime | None
    is_missing: bool
    expires_at: dt.datetime | None
    by_pages: bool = False

    @property
    def state(self) -> State:
        return self.whys[0].state

    @property
    def is_visible(self) -> bool:
        return self.state is State.VISIBLE

    @property
    def words(self) -> str:
        return " ".join(why.words for why in self.whys)


#: For statements with corrections as `c`, prices as `n` and sources as `s`: the correction applies to the price.
CONCERNS = """
    (c.source_id = s.id OR c.retailer_id = s.retailer_id)
    AND correction_applies(c, s.retailer_id, s.id, n.source_product_id, n.run_no, n.observed_at, n.run_type, n.amount,
                           n.currency)
"""
# Whether an offer is active and visible, and when it expires, comes from the same views and functions as everywhere.
_STANDINGS = """
SELECT p.source_id, p.id, o.product_id IS NOT NULL AS has_offer, w.is_shown, s.name AS source, r.name AS retailer,
       EXISTS (SELECT FROM active_offers a WHERE a.source_id = p.source_id AND a.product_id = p.id) AS is_active,
       EXISTS (SELECT FROM visible_offers v WHERE v.source_id = p.source_id AND v.product_id = p.id) AS is_visible,
       k.name AS display_primary, coalesce(o.seen_until, s.last_promoted_at) AS last_seen_at,
       coalesce(o.seen_until IS NOT NULL AND NOT o.by_pages, false) AS is_missing,
       coalesce(o.by_pages, false) AS by_pages, o.ended_at, s.expiry_hours,
       expires_at(coalesce(o.seen_until, s.last_promoted_at), s.expiry_hours, s.frozen, s.held_since,
                  s.max_hold_hours) AS expires_at
FROM unnest(%(sources)s::uuid[], %(products)s::bigint[]) AS x (source_id, id)
JOIN source_products p ON p.source_id = x.source_id AND p.id = x.id
JOIN sources s ON s.id = p.source_id
JOIN retailers r ON r.id = s.retailer_id
JOIN source_windows w ON w.source_id = p.source_id
LEFT JOIN sources k ON k.retailer_id = s.retailer_id AND k.is_display_primary
LEFT JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id
"""
# For products without an offer, the newest price shows why none is readable. Runs only if there are such products: the
# partitions of prices make it expensive to plan.
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
    """Return the visibility of a product's offer, whether it has one or not."""
    found = standings([(source_id, product_id)])
    if not found:
        raise NotFound(f"The source {source_id} has no product {product_id}; `harvester offers search` finds offers.")
    return found[source_id, product_id]


def standings(keys: Iterable[Key]) -> dict[Key, Standing]:
    """Return the visibility of these products' offers, without products that do not exist."""
    rows = _read(_STANDINGS, list(keys))
    without = [key for key, row in rows.items() if not row["has_offer"]]
    reasons = _read(_WITHOUT_OFFER, without) if without else {}
    return {key: _standing(row | reasons.get(key, {})) for key, row in rows.items()}


def _read(statement: str, keys: list[Key]) -> dict[Key, dict[str, Any]]:
    values = {"sources": [source for source, _ in keys], "products": [product for _, product in keys]}
    return {(row["source_id"], row["id"]): row for row in fetch(statement, values)}


def _standing(row: dict[str, Any]) -> Standing:
    if not row["has_offer"]:
        why = _no_offer(row)
        return Standing(whys=(why,), has_offer=False, last_seen_at=None, is_missing=row["is_missing"], expires_at=None)
    whys = []
    if row["is_visible"]:
        words = "Consumers see it."
        if row["is_missing"]:
            words = "Consumers see it until it expires, although it was missing from the last promoted run."
        whys.append(Why(state=State.VISIBLE, words=words))
    elif not row["is_shown"]:
        words = f"{row['source']} is not the display primary of {row['retailer']}"
        words += f"; {row['display_primary']} is." if row["display_primary"] else ". Make it primary."
        whys.append(Why(state=State.SOURCE_NOT_SHOWN, words=words))
    if row["ended_at"] is not None:
        words = "Its page is gone, or shows it as sold out without a price. The next page with a price brings it back."
        whys.append(Why(state=State.ENDED, words=words, since=row["ended_at"]))
    elif not row["is_active"]:
        seen = "No run with it was promoted" if row["last_seen_at"] is None else "No promoted run has contained it"
        seen = "No page has shown it" if row["by_pages"] else seen
        words = f"{seen} for longer than the {row['expiry_hours']} h after which offers of {row['source']} expire."
        whys.append(Why(state=State.EXPIRED, words=words, since=row["expires_at"]))
    return Standing(
        whys=tuple(whys),
        has_offer=True,
        last_seen_at=row["last_seen_at"],
        is_missing=row["is_missing"],
        expires_at=row["expires_at"],
        by_pages=row["by_pages"],
    )


def _no_offer(row: dict[str, Any]) -> Why:
    if row["run_no"] is None:
        return Why(state=State.NEVER_PROMOTED, words="It has no price yet: no run that contains it was promoted.")
    if row["ignored_at"] is not None:
        words = f"Its last price is from run {row['run_no']}, which is ignored: {_sentence(row['ignored_reason'])}"
        return Why(state=State.RUN_IGNORED, words=words, since=row["ignored_at"], run_no=row["run_no"])
    if row["correction_id"] is not None:
        words = f"A correction hides its prices: {_sentence(row['correction_reason'])}"
        return Why(
            state=State.HIDDEN_BY_CORRECTION,
            words=words,
            since=row["corrected_at"],
            correction_id=row["correction_id"],
        )
    words = f"It has only scraped prices, and those of {row['source']} do not count."
    return Why(state=State.SCRAPED_ONLY, words=words, run_no=row["run_no"])


def _sentence(reason: str | None) -> str:
    """Return the reason of a person as the end of a sentence."""
    return f"{(reason or '').rstrip('. ')}."
