"""Every offer for those who look after them, seen by consumers or not, and why: found, filtered, paged by key.

Nothing is counted and nothing skipped, so a page costs the same however many offers there are and however deep it
lies. What no index knows (stock, expired, no offer) is looked for in windows of rows, and the page says where it ended.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from harvester.catalog import visibility_reasons
from harvester.catalog.named_rows import fetch
from harvester.catalog.offer_browser_sql import (
    asks_for_words_alone,
    by_number,
    is_like_a_number,
    narrow,
    ranked,
    ranked_words,
    without_offer,
)
from harvester.catalog.search import words_first
from harvester.catalog.search_query import Query, Sort
from harvester.catalog.search_sql import asked_words
from harvester.catalog.states import Shown
from harvester.catalog.visibility_reasons import Key, Standing
from harvester.kernel.errors import InvalidInput

#: Rows that are looked at together where no index helps, and how often and for how long a page goes on with that.
WINDOW = 5_000
MOST_WINDOWS = 10
LONGEST_LOOK_SECONDS = 0.1
#: Between the parts of a cursor.
SEPARATOR = "~"
LARGEST_NUMBER = 2**63 - 1
_NO_PLACE = InvalidInput("after: this is no place in the list; begin at the first page.")


@dataclass(frozen=True, kw_only=True)
class Browse(Query):
    """What is looked for.

    Attributes:
        state: only offers that stand so.
        behind: the cursor of the row before the page.
        ahead: the cursor of the row behind the page.
    """

    state: str = ""
    behind: str = ""
    ahead: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state and self.state not in list(Shown):
            raise InvalidInput(f"state: allowed are {', '.join(Shown)}.")
        if self.state == Shown.WITHOUT_OFFER:
            self._check_without_offer()

    def _check_without_offer(self) -> None:
        if self.source_id is None and self.retailer_id is None:
            raise InvalidInput("state: products without an offer are listed for one retailer or one source; choose it.")
        given = [name for name in ("brand", "category", "currency", "text") if getattr(self, name).strip()]
        if given or self.in_stock is not None:
            field = (given or ["in_stock"])[0]
            raise InvalidInput(f"{field}: a product without an offer has no price and no words to look for; clear it.")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One product of a source in the list.

    Attributes:
        source_id: with product_id the key.
        product_id: the product's number.
        source: the source's name.
        title: of the product.
        brand: of the product.
        category: as the source calls it.
        currency: of the price; None without an offer, like amount, in_stock and observed_at.
        amount: the price, corrected.
        original_amount: what it was before a reduction.
        in_stock: whether it can be had.
        observed_at: when the price was observed.
        standing: whether consumers see it, and why.
    """

    source_id: UUID
    product_id: int
    source: str
    title: str
    brand: str | None
    category: str | None
    currency: str | None
    amount: Decimal | None
    original_amount: Decimal | None
    in_stock: bool | None
    observed_at: Any
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One page.

    Attributes:
        lines: what is on it.
        next: cursor of the next page; empty where there is none.
        previous: cursor of the page before.
        is_cut: there are more that fit less well, or rows that were not looked at yet.
        by_number: the text was the number of these products.
    """

    lines: list[Line]
    next: str = ""
    previous: str = ""
    is_cut: bool = False
    by_number: bool = False


_LINES = """
SELECT p.source_id, p.id AS product_id, s.name AS source, p.title, p.brand, p.category, o.currency,
       trim_scale(o.amount) AS amount, trim_scale(o.original_amount) AS original_amount, o.in_stock, o.observed_at
FROM unnest(%(sources)s::uuid[], %(products)s::bigint[]) AS x (source_id, id)
JOIN source_products p ON p.source_id = x.source_id AND p.id = x.id
JOIN sources s ON s.id = p.source_id
LEFT JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id
"""
_SOURCES = """
SELECT w.source_id FROM source_windows w
WHERE (%(source_id)s::uuid IS NULL OR w.source_id = %(source_id)s)
  AND (%(retailer_id)s::uuid IS NULL OR w.retailer_id = %(retailer_id)s)
  AND (%(state)s <> 'SOURCE_NOT_SHOWN' OR NOT w.is_shown)
"""


def lines(keys: Sequence[Key]) -> list[Line]:
    """These products, in this order, each with how it stands."""
    if not keys:
        return []
    values = {"sources": [source for source, _ in keys], "products": [product for _, product in keys]}
    known = {(row["source_id"], row["product_id"]): row for row in fetch(_LINES, values)}
    stand = visibility_reasons.standings(known)
    return [Line(**known[key], standing=stand[key]) for key in keys if key in known]


def browse(query: Browse) -> Listing:
    """One page of the offers that fit."""
    sources = _sources(query)
    if is_like_a_number(query.text):
        return _numbered(query, sources) or _listed(query, sources)
    found = _listed(query, sources)
    return found if found.lines else _numbered(query, sources) or found


def _numbered(query: Browse, sources: list[UUID] | None) -> Listing | None:
    """To look for a number in every source takes as long as to look for a word in all of them."""
    found = by_number(query.text, sources)
    return Listing(lines=lines(found), by_number=True) if found else None


def _listed(query: Browse, sources: list[UUID] | None) -> Listing:
    return _best(query, sources) if query.order is Sort.RELEVANCE else _page(query, sources)


def _sources(query: Browse) -> list[UUID] | None:
    """Which sources are looked at; None for all."""
    if query.source_id is None and query.retailer_id is None and query.state != Shown.SOURCE_NOT_SHOWN:
        return None
    return [row["source_id"] for row in fetch(_SOURCES, vars(query))]


def _best(query: Browse, sources: list[UUID] | None) -> Listing:
    values = {**_values(query, sources), "window": query.page_size + 1}
    found = fetch(ranked_words(query, sources), values) if asks_for_words_alone(query) else []
    if len(found) <= query.page_size:
        found = fetch(ranked(query, sources), values)
    keys = [_key(row) for row in found[: query.page_size]]
    return Listing(lines=lines(keys), is_cut=len(found) > query.page_size)


def _page(query: Browse, sources: list[UUID] | None) -> Listing:
    most = query.page_size + 1
    window = max(most, WINDOW // max(1, len(sources or ()))) if _looks_through(query) else most
    with words_first() if asked_words(query) else nullcontext():
        found, looked = _look(query, sources, window=window, most=most)
    page = found[: query.page_size]
    # The look ended before the page was full: who goes on begins behind the last row that was looked at.
    is_cut = len(found) < most and len(looked) == window
    onward = page[-1] if len(found) > query.page_size else looked[-1] if is_cut else None
    return _listing(query, page, onward, is_cut=is_cut)


def _look(
    query: Browse, sources: list[UUID] | None, *, window: int, most: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Windows of rows until the page is full, nothing is left, or it took long enough; and the last window."""
    made = without_offer if query.state == Shown.WITHOUT_OFFER else narrow
    found: list[dict[str, Any]] = []
    looked: list[dict[str, Any]] = []
    began = time.monotonic()
    for _ in range(MOST_WINDOWS):
        statement = made(query, sources, backwards=bool(query.ahead))
        looked = fetch(statement, {**_values(query, sources), **_cursor(query), "window": window})
        found += [row for row in looked if row["fits"]]
        if len(found) >= most or len(looked) < window or time.monotonic() - began >= LONGEST_LOOK_SECONDS:
            break
        place = _written(query, looked[-1])
        query = replace(query, ahead=place) if query.ahead else replace(query, behind=place)
    return found, looked


def _looks_through(query: Browse) -> bool:
    return query.in_stock is not None or query.state in (Shown.EXPIRED, Shown.WITHOUT_OFFER)


def _listing(query: Browse, page: list[dict[str, Any]], onward: dict[str, Any] | None, *, is_cut: bool) -> Listing:
    forth = _written(query, onward) if onward else ""
    if query.ahead:
        shown = lines([_key(row) for row in reversed(page)])
        return Listing(lines=shown, previous=forth, next=_written(query, page[0]) if page else "", is_cut=is_cut)
    start = _written(query, page[0]) if page and query.behind else ""
    return Listing(lines=lines([_key(row) for row in page]), next=forth, previous=start, is_cut=is_cut)


def _values(query: Browse, sources: list[UUID] | None) -> dict[str, Any]:
    return {**vars(query), "sources": sources}


def _key(row: dict[str, Any]) -> Key:
    return row["source_id"], row["product_id"]


def _by_price(query: Browse) -> bool:
    return query.order in (Sort.PRICE, Sort.PRICE_DESCENDING)


def _written(query: Browse, row: dict[str, Any]) -> str:
    return f"{row['amount']}{SEPARATOR}{row['product_id']}" if _by_price(query) else str(row["product_id"])


def _cursor(query: Browse) -> dict[str, Any]:
    given = query.ahead or query.behind
    if not given:
        return {}
    amount, _, number = given.rpartition(SEPARATOR)
    try:
        product, price = int(number), Decimal(amount or 0)
    except (ValueError, InvalidOperation):
        raise _NO_PLACE from None
    if abs(product) > LARGEST_NUMBER or not price.is_finite() or bool(amount) != _by_price(query):
        raise _NO_PLACE
    return {"at_product": product, "at_amount": price}
