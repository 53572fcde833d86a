"""The list of all offers, visible or not, with the reasons: searched, filtered, paged by key.

Nothing is counted or skipped, so every page costs the same. Conditions without an index (stock, expired, no offer) are
checked in windows of rows, and the page says if it stopped early.
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
from harvester.catalog.search import words_first
from harvester.catalog.search_query import Query, Sort
from harvester.catalog.search_sql import CANDIDATES, CONDITIONS, WITH_WORDS, WORDS, asked_words
from harvester.catalog.states import Shown
from harvester.catalog.visibility_reasons import Key, Standing
from harvester.kernel.errors import InvalidInput

#: Products with one number in the list; more would share it by mistake.
MOST_BY_NUMBER = 50
LONGEST_NUMBER = 255
#: Our numbers are bigint and never have more digits.
MOST_DIGITS = 18

# The offers of all sources in the order of an index, or the first ones of each source, merged.
_ALL = "SELECT o.source_id, o.product_id, o.amount, {fits} AS fits FROM {offers} WHERE {where} {order}"
_EACH = """
SELECT x.* FROM unnest(%(sources)s::uuid[]) AS each (id) CROSS JOIN LATERAL (
    SELECT o.source_id, o.product_id, o.amount, {fits} AS fits FROM {offers}
    WHERE o.source_id = each.id AND {where} {order}
) x {outer}
"""
# Only the page leaves the database: transferring all ranked offers takes as long as ranking them.
_RANKED = """
SELECT source_id, product_id, amount, fits FROM (
    SELECT o.source_id, o.product_id, o.amount, {fits} AS fits, ts_rank(w.words, {text}) AS rank
    FROM {offers} WHERE {where} LIMIT {candidates}
) c WHERE fits ORDER BY rank DESC, product_id DESC LIMIT %(window)s
"""
# Without conditions on the offers themselves, only those of the page are read.
_RANKED_WORDS = """
SELECT o.source_id, o.product_id, o.amount, true AS fits FROM (
    SELECT * FROM (
        SELECT w.source_id, w.product_id, ts_rank(w.words, {text}) AS rank
        FROM offer_words w WHERE {where} LIMIT {candidates}
    ) c ORDER BY rank DESC, product_id DESC LIMIT %(window)s
) c JOIN offers o ON o.source_id = c.source_id AND o.product_id = c.product_id
ORDER BY c.rank DESC, c.product_id DESC
"""
_WITHOUT_OFFER = """
SELECT x.* FROM unnest(%(sources)s::uuid[]) AS each (id) CROSS JOIN LATERAL (
    SELECT o.source_id, o.id AS product_id, NULL::numeric AS amount, NOT EXISTS (
        SELECT FROM offers f WHERE f.source_id = o.source_id AND f.product_id = o.id) AS fits
    FROM source_products o WHERE o.source_id = each.id AND {where} {order}
) x {outer}
"""
# A number may be the identity of a product or another number of it; each branch has its index.
_BY_NUMBER = """
SELECT p.source_id, p.id FROM source_products p
WHERE p.gtin = ANY (%(gtins)s) AND (%(sources)s::uuid[] IS NULL OR p.source_id = ANY (%(sources)s))
UNION
SELECT f.source_id, f.id FROM sources s CROSS JOIN LATERAL (
    SELECT p.source_id, p.id FROM source_products p
    WHERE p.source_id = s.id AND p.identity_type IN (1, 2, 3) AND p.identity_value = %(text)s
    UNION ALL
    SELECT p.source_id, p.id FROM source_products p
    WHERE p.source_id = s.id AND p.sku = %(text)s AND p.identity_type <> 3
    UNION ALL
    SELECT p.source_id, p.id FROM source_products p
    WHERE p.source_id = s.id AND p.item_id = %(text)s AND p.identity_type <> 1
    UNION ALL SELECT p.source_id, p.id FROM source_products p WHERE p.source_id = s.id AND p.id = %(number)s
) f WHERE %(sources)s::uuid[] IS NULL OR s.id = ANY (%(sources)s)
LIMIT {most}
"""


def by_number(number: str, sources: list[UUID] | None) -> list[Key]:
    """Return the products with this number: ours, a SKU, an item id or a GTIN."""
    text = number.strip()
    if not text or len(text) > LONGEST_NUMBER or not text.isprintable() or " " in text:
        return []
    digits = text if text.isascii() and text.isdigit() else ""
    values = {
        "text": text,
        "sources": sources,
        "number": int(digits) if digits and len(digits) <= MOST_DIGITS else None,
        "gtins": sorted({text, *(digits.lstrip("0").zfill(size) for size in (8, 12, 13, 14) if digits)}),
    }
    return [(row["source_id"], row["id"]) for row in fetch(_BY_NUMBER.format(most=MOST_BY_NUMBER), values)]


def is_like_a_number(text: str) -> bool:
    """Whether a text has a digit: nearly all product numbers have one, and nearly no words."""
    return any(letter.isdigit() for letter in text)


def narrow(query: "Browse", sources: list[UUID] | None, *, backwards: bool) -> str:
    """Return the statement for a window of offers in the order of the query."""
    order = _order(query.order, backwards=backwards)
    if asked_words(query):
        # No index has this order, so the planner searches the words first; see catalog.search_sql.
        order = order.replace("o.amount", "o.amount + 0").replace("o.product_id", "o.product_id + 0")
    parts = {"fits": _fits(query), "offers": _offers(query)}
    where = [*_conditions(query), *_beyond(query, backwards=backwards)]
    if sources is not None and query.order is Sort.NEWEST:
        return _EACH.format(**parts, where=_all_of(where), order=order, outer=order.replace("o.", "x."))
    if sources is not None:
        where.append("o.source_id = ANY (%(sources)s)")
    return _ALL.format(**parts, where=_all_of(where), order=order)


def ranked(query: "Browse", sources: list[UUID] | None) -> str:
    """Return the statement for the best matches of a text, of as many as can be ranked."""
    where = [*_conditions(query), *(["o.source_id = ANY (%(sources)s)"] if sources is not None else [])]
    return _RANKED.format(
        fits=_fits(query), offers=_offers(query), text=WORDS["text"], where=_all_of(where), candidates=CANDIDATES
    )


def asks_for_words_alone(query: "Browse") -> bool:
    """Whether the query has words and no other conditions."""
    asked = (query.currency, query.in_stock, query.min_amount, query.max_amount)
    return not query.state and all(value in (None, "") for value in asked)


def ranked_words(query: "Browse", sources: list[UUID] | None) -> str:
    """Return the same for a query with words only. Some of them may belong to products without an offer."""
    where = [*asked_words(query), *(["w.source_id = ANY (%(sources)s)"] if sources is not None else [])]
    return _RANKED_WORDS.format(text=WORDS["text"], where=_all_of(where), candidates=CANDIDATES)


def without_offer(query: "Browse", sources: list[UUID] | None, *, backwards: bool) -> str:  # noqa: ARG001 - the signature of `narrow`
    """Return the statement for a window of products, each with whether it has no offer."""
    order = _order(Sort.NEWEST, backwards=backwards)
    where = _all_of([part.replace("o.product_id", "o.id") for part in _beyond(query, backwards=backwards)])
    return _WITHOUT_OFFER.format(
        where=where, order=order.replace("o.product_id", "o.id"), outer=order.replace("o.", "x.")
    )


def _offers(query: "Browse") -> str:
    offers = "visible_offers o" if query.state == "VISIBLE" else "offers o"
    return f"{offers} {WITH_WORDS.format(offers='o')}" if asked_words(query) else offers


def _fits(query: "Browse") -> str:
    """Return the conditions without an index."""
    conditions = []
    if query.in_stock is not None:
        conditions.append("o.in_stock = %(in_stock)s")
    if query.state == "EXPIRED":
        conditions.append(
            "NOT EXISTS (SELECT FROM active_offers a WHERE a.source_id = o.source_id AND a.product_id = o.product_id)"
        )
    return _all_of(conditions)


def _conditions(query: "Browse") -> list[str]:
    indexed = ("currency", "min_amount", "max_amount")
    given = [CONDITIONS[field].replace("v.", "o.") for field in indexed if getattr(query, field) not in (None, "")]
    return [*given, *asked_words(query)]


def _order(sort: Sort, *, backwards: bool) -> str:
    direction = " DESC" if (sort is not Sort.PRICE) != backwards else ""
    keys = ("o.product_id",) if sort is Sort.NEWEST else ("o.amount", "o.product_id")
    return f"ORDER BY {', '.join(key + direction for key in keys)} LIMIT %(window)s"


def _beyond(query: "Browse", *, backwards: bool) -> list[str]:
    if not (query.behind or query.ahead):
        return []
    comparison = "<" if (query.order is not Sort.PRICE) != backwards else ">"
    if query.order is Sort.NEWEST:
        return [f"o.product_id {comparison} %(at_product)s"]
    return [f"(o.amount, o.product_id) {comparison} (%(at_amount)s, %(at_product)s)"]


def _all_of(parts: list[Any]) -> str:
    return " AND ".join(parts) or "true"


#: Rows that are read at once where no index helps, and the most windows and seconds of one page.
WINDOW = 5_000
MOST_WINDOWS = 10
LONGEST_SCAN_SECONDS = 0.1
#: Between the parts of a cursor.
SEPARATOR = "~"
LARGEST_NUMBER = 2**63 - 1
_NO_PLACE = InvalidInput("not a place in this list; start with the first page.", field="after")


@dataclass(frozen=True, kw_only=True)
class Browse(Query):
    """The offers to list.

    Attributes:
        state: only offers in this state.
        behind: the cursor of the row before the page.
        ahead: the cursor of the row after the page.
    """

    state: str = ""
    behind: str = ""
    ahead: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state and self.state not in list(Shown):
            raise InvalidInput(f"choose from {', '.join(Shown)}.", field="state")
        if self.state != Shown.WITHOUT_OFFER:
            return
        if self.source_id is None and self.retailer_id is None:
            raise InvalidInput(
                "products without an offer are listed for one retailer or one source; choose it.", field="state"
            )
        given = [name for name in ("brand", "category", "currency", "text") if getattr(self, name).strip()]
        if given or self.in_stock is not None:
            field = (given or ["in_stock"])[0]
            raise InvalidInput("products without an offer cannot be searched or filtered by it; clear it.", field=field)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One product of a source in the list.

    Attributes:
        source_id: with product_id, the key.
        product_id: the product's number.
        source: the source's name.
        title: of the product.
        brand: of the product.
        category: as the source names it.
        currency: of the price; None without an offer, like amount, in_stock and observed_at.
        amount: the corrected price.
        original_amount: the price before a discount.
        in_stock: whether it is in stock.
        availability: IN_STOCK, OUT_OF_STOCK or BACKORDER; None without an offer.
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
    availability: str | None
    observed_at: Any
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One page.

    Attributes:
        lines: its products.
        next: cursor of the next page; empty on the last one.
        previous: cursor of the previous page.
        is_cut: there are more matches of lower rank, or rows that were not checked yet.
        by_number: the text is the number of these products.
    """

    lines: list[Line]
    next: str = ""
    previous: str = ""
    is_cut: bool = False
    by_number: bool = False


_LINES = """
SELECT p.source_id, p.id AS product_id, s.name AS source, p.title, p.brand, p.category, o.currency,
       trim_scale(o.amount) AS amount, trim_scale(o.original_amount) AS original_amount, o.in_stock,
       CASE WHEN o.in_stock THEN 'IN_STOCK' WHEN o.on_backorder THEN 'BACKORDER'
            WHEN NOT o.in_stock THEN 'OUT_OF_STOCK' END AS availability, o.observed_at
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
    """Return these products, in this order, with their visibility."""
    if not keys:
        return []
    values = {"sources": [source for source, _ in keys], "products": [product for _, product in keys]}
    found = {(row["source_id"], row["product_id"]): row for row in fetch(_LINES, values)}
    standings = visibility_reasons.standings(found)
    return [Line(**found[key], standing=standings[key]) for key in keys if key in found]


def browse(query: Browse) -> Listing:
    """Return one page of the offers that match."""
    sources = None
    if query.source_id is not None or query.retailer_id is not None or query.state == Shown.SOURCE_NOT_SHOWN:
        sources = [row["source_id"] for row in fetch(_SOURCES, vars(query))]
    if is_like_a_number(query.text):
        return _by_number(query, sources) or _by_filters(query, sources)
    found = _by_filters(query, sources)
    # Searching a number in every source takes as long as searching a word in all of them.
    return found if found.lines else _by_number(query, sources) or found


def _by_number(query: Browse, sources: list[UUID] | None) -> Listing | None:
    found = by_number(query.text, sources)
    return Listing(lines=lines(found), by_number=True) if found else None


def _by_filters(query: Browse, sources: list[UUID] | None) -> Listing:
    if query.order is not Sort.RELEVANCE:
        return _page(query, sources)
    values = {**vars(query), "sources": sources, "window": query.page_size + 1}
    found = fetch(ranked_words(query, sources), values) if asks_for_words_alone(query) else []
    if len(found) <= query.page_size:
        found = fetch(ranked(query, sources), values)
    keys = [_key(row) for row in found[: query.page_size]]
    return Listing(lines=lines(keys), is_cut=len(found) > query.page_size)


def _page(query: Browse, sources: list[UUID] | None) -> Listing:
    most = window = query.page_size + 1
    if query.in_stock is not None or query.state in (Shown.EXPIRED, Shown.WITHOUT_OFFER):
        window = max(most, WINDOW // max(1, len(sources or ())))
    with words_first() if asked_words(query) else nullcontext():
        found, last_window = _scan(query, sources, window=window, most=most)
    page = found[: query.page_size]
    # If the scan stopped before the page was full, the next page starts after the last row that was checked.
    is_cut = len(found) < most and len(last_window) == window
    last = page[-1] if len(found) > query.page_size else last_window[-1] if is_cut else None
    onward = _cursor(query, last) if last else ""
    if query.ahead:
        shown = lines([_key(row) for row in reversed(page)])
        return Listing(lines=shown, previous=onward, next=_cursor(query, page[0]) if page else "", is_cut=is_cut)
    previous = _cursor(query, page[0]) if page and query.behind else ""
    return Listing(lines=lines([_key(row) for row in page]), next=onward, previous=previous, is_cut=is_cut)


def _scan(
    query: Browse, sources: list[UUID] | None, *, window: int, most: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read windows of rows until the page is full, no rows are left, or time is up. Return matches and last window."""
    statement_of = without_offer if query.state == Shown.WITHOUT_OFFER else narrow
    found: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    started = time.monotonic()
    for _ in range(MOST_WINDOWS):
        statement = statement_of(query, sources, backwards=bool(query.ahead))
        rows = fetch(statement, {**vars(query), "sources": sources, **_place(query), "window": window})
        found += [row for row in rows if row["fits"]]
        if len(found) >= most or len(rows) < window or time.monotonic() - started >= LONGEST_SCAN_SECONDS:
            break
        place = _cursor(query, rows[-1])
        query = replace(query, ahead=place) if query.ahead else replace(query, behind=place)
    return found, rows


def _key(row: dict[str, Any]) -> Key:
    return row["source_id"], row["product_id"]


def _by_price(query: Browse) -> bool:
    return query.order in (Sort.PRICE, Sort.PRICE_DESCENDING)


def _cursor(query: Browse, row: dict[str, Any]) -> str:
    return f"{row['amount']}{SEPARATOR}{row['product_id']}" if _by_price(query) else str(row["product_id"])


def _place(query: Browse) -> dict[str, Any]:
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
