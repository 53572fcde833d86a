"""The statements of the search for offers.

They are built from constants; user input is passed only as parameters.
"""

from typing import Any

from harvester.catalog.consumer_offers import OFFER_COLUMNS, OFFER_JOINS
from harvester.catalog.search_query import Place, Query, Sort

#: Offers that are ranked for a text; ranking all that have a common word takes seconds.
CANDIDATES = 2_000
#: The first offers that are checked for matches, before all matches are sorted.
WALKED = 4_000
#: The newest offers among which those are found; sources that are not shown may have half a million.
PASSED = 50_000

# Field of a query -> its condition.
CONDITIONS = {
    "retailer_id": "v.retailer_id = %(retailer_id)s",
    "source_id": "v.source_id = %(source_id)s",
    "in_stock": "v.in_stock = %(in_stock)s",
    "currency": "v.currency = %(currency)s",
    "min_amount": "v.amount >= %(min_amount)s",
    "max_amount": "v.amount <= %(max_amount)s",
}
# Field of a query -> the words that the text index must contain.
WORDS = {
    "text": "websearch_to_tsquery('simple', %(text)s)",
    "category": "word_query('category:' || left(lower(%(category)s), 200))",
    "brand": "word_query('brand:' || left(lower(%(brand)s), 200))",
}
_ORDERS = {
    Sort.RELEVANCE: "rank DESC, product_id DESC",
    Sort.PRICE: "amount, product_id",
    Sort.PRICE_DESCENDING: "amount DESC, product_id DESC",
    Sort.NEWEST: "product_id DESC",
}
# The condition for offers after a place. As a comparison of rows it is a range of the index, however deep the page.
_AFTER = {
    Sort.RELEVANCE: "(rank, product_id) < (%(after_rank)s::real, %(after_id)s)",
    Sort.PRICE: "(v.amount, v.product_id) > (%(after_amount)s, %(after_id)s)",
    Sort.PRICE_DESCENDING: "(v.amount, v.product_id) < (%(after_amount)s, %(after_id)s)",
    Sort.NEWEST: "v.product_id < %(after_id)s",
}
# Only for queries with words.
WITH_WORDS = "JOIN offer_words w ON w.source_id = {offers}.source_id AND w.product_id = {offers}.product_id"
_NARROW = "SELECT v.source_id, v.product_id, v.amount, {rank} AS rank FROM visible_offers v {words} WHERE {conditions}"
# The newest offers of each source, merged; sources that are not shown cost nothing.
_EACH = """
SELECT x.* FROM source_windows s CROSS JOIN LATERAL (
    {narrow} AND v.source_id = s.source_id ORDER BY v.product_id DESC LIMIT {most}
) x WHERE s.is_shown {sources}
"""
_SOURCES = {"retailer_id": "AND s.retailer_id = %(retailer_id)s", "source_id": "AND s.source_id = %(source_id)s"}
# Evaluated once: if no source is shown, no offer is read.
_ANY_SHOWN = "EXISTS (SELECT FROM source_windows s WHERE s.is_shown {sources})"
# The matches among the newest offers. Checked one after another, so that it stops when the page is full.
_OF_NEWEST = """
SELECT n.source_id, n.product_id, v.amount, NULL::real AS rank FROM (
    SELECT * FROM (
        SELECT v.source_id, v.product_id FROM offers v WHERE {beyond} ORDER BY v.product_id DESC LIMIT {passed}
    ) p WHERE p.source_id = ANY (ARRAY(SELECT s.source_id FROM source_windows s WHERE s.is_shown))
    ORDER BY p.product_id DESC LIMIT {walked}
) n CROSS JOIN LATERAL (
    SELECT v.amount FROM visible_offers v
    WHERE v.source_id = n.source_id AND v.product_id = n.product_id AND {conditions} LIMIT 1
) v ORDER BY n.product_id DESC
"""
_PAGE = """
WITH found AS MATERIALIZED ({narrow} {page})
SELECT {columns}, found.rank
FROM found JOIN active_offers o ON o.source_id = found.source_id AND o.product_id = found.product_id
{joins}
ORDER BY {order}
"""


def parameters(query: Query) -> dict[str, Any]:
    """Return the parameters of the statements."""
    after = query.after or Place(product_id=0)
    return {
        **vars(query),
        "most": query.page_size + 1,
        "skipped": (query.page - 1) * query.page_size,
        "candidates": CANDIDATES,
        "after_id": after.product_id,
        "after_amount": after.amount,
        "after_rank": after.rank,
    }


def statement(query: Query) -> str:
    """Return the statement for all matches, sorted: first the narrow rows of the page, then their contents."""
    words = WITH_WORDS.format(offers="v") if asked_words(query) else ""
    conditions = [*_conditions(query), *asked_words(query)]
    if query.order is Sort.RELEVANCE:
        # Only the words of the text count for the rank: filters match all alike.
        ranked = _NARROW.format(
            rank=f"ts_rank(w.words, {WORDS['text']})", words=words, conditions=" AND ".join(conditions)
        )
        beyond = f" WHERE {_AFTER[query.order]}" if query.after else ""
        return _page(query, f"SELECT * FROM ({ranked} LIMIT %(candidates)s) c{beyond}")  # noqa: S608 - constants
    if not words and query.order is Sort.NEWEST and (_of_some_sources(query) or _is_plain(query)):
        return _page(query, _newest_of_each(query, "%(most)s + %(skipped)s"))
    narrow = _NARROW.format(rank="NULL::real", words=words, conditions=_all_of([*conditions, *_beyond(query)]))
    order = ""
    if words:
        # An order without an index: the planner underestimates how long it takes to find a word in an index of prices.
        order = _ORDERS[query.order].replace("amount", "v.amount + 0").replace("product_id", "v.product_id + 0")
    return _page(query, narrow, order=order)


def may_walk(query: Query) -> bool:
    """Whether the first offers in an indexed order may be enough for the page."""
    return query.order is not Sort.RELEVANCE and (bool(asked_words(query)) or _is_plain(query))


def walking(query: Query) -> str:
    """Return the statement for the matches among the first offers in the order of the query.

    They contain enough matches of a common word, and sorting all its matches would take much longer. If they do not
    fill the page, the full statement has to run.
    """
    if query.order is not Sort.NEWEST:
        narrow = _NARROW.format(rank="NULL::real", words="", conditions=_all_of([*_conditions(query), *_beyond(query)]))
        first = f"{narrow} ORDER BY {_ORDERS[query.order]} LIMIT {WALKED}"
    elif _of_some_sources(query):
        # Only the first offers of all sources together are complete: after them one source may have more.
        first = f"{_newest_of_each(query, str(WALKED))} ORDER BY x.product_id DESC LIMIT {WALKED}"
    else:
        first = _OF_NEWEST.format(
            beyond=_all_of(_beyond(query)), passed=PASSED, walked=WALKED, conditions=_all_of(_conditions(query))
        )
    walked = f"SELECT v.* FROM ({first}) v"  # noqa: S608 - constants
    words = asked_words(query)
    return _page(query, f"{walked} {WITH_WORDS.format(offers='v')} WHERE {words[0]}" if words else walked)


def _newest_of_each(query: Query, most: str) -> str:
    narrow = _NARROW.format(rank="NULL::real", words="", conditions=_all_of([*_conditions(query), *_beyond(query)]))
    return _EACH.format(narrow=narrow, most=most, sources=_sources(query))


def _sources(query: Query) -> str:
    return " ".join(text for field, text in _SOURCES.items() if getattr(query, field))


def _of_some_sources(query: Query) -> bool:
    return any(getattr(query, field) for field in _SOURCES)


def _is_plain(query: Query) -> bool:
    """Whether the query is for the newest offers, without conditions."""
    return query.order is Sort.NEWEST and not _conditions(query) and not asked_words(query)


def _page(query: Query, narrow: str, order: str = "") -> str:
    sort = _ORDERS[query.order]
    page = f"ORDER BY {order or sort} LIMIT %(most)s OFFSET %(skipped)s"
    again = sort.replace("rank", "found.rank").replace("amount", "found.amount").replace("product_id", "o.product_id")
    return _PAGE.format(narrow=narrow, page=page, columns=OFFER_COLUMNS, joins=OFFER_JOINS, order=again)


def _conditions(query: Query) -> list[str]:
    given = [text for field, text in CONDITIONS.items() if getattr(query, field) not in (None, "")]
    return [*given, _ANY_SHOWN.format(sources=_sources(query))] if _of_some_sources(query) else given


def _beyond(query: Query) -> list[str]:
    return [_AFTER[query.order]] if query.after else []


def _all_of(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "true"


def asked_words(query: Any) -> list[str]:
    """Return the condition for the words of a query; empty if it has none."""
    words = [text for field, text in WORDS.items() if getattr(query, field).strip()]
    return [f"w.words @@ ({' && '.join(words)})"] if words else []
