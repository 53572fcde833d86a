"""The statements that find offers.

They are put together from constants; what people typed travels as parameters only.
"""

from typing import Any

from harvester.catalog.consumer_offers import OFFER_COLUMNS, OFFER_JOINS
from harvester.catalog.search_query import Place, Query, Sort

#: Offers that are ranked for a text; to rank all that have a common word takes seconds.
CANDIDATES = 2_000
#: Offers among which is looked for what fits, before all that fit are put in order.
WALKED = 4_000
#: The newest offers among which those are looked for, because sources that are not shown may have half a million.
PASSED = 50_000

# Which offers, for the fields of a query that are set.
CONDITIONS = {
    "retailer_id": "v.retailer_id = %(retailer_id)s",
    "source_id": "v.source_id = %(source_id)s",
    "in_stock": "v.in_stock = %(in_stock)s",
    "currency": "v.currency = %(currency)s",
    "min_amount": "v.amount >= %(min_amount)s",
    "max_amount": "v.amount <= %(max_amount)s",
}
# What an offer's words must hold, in one query of the text index.
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
# What comes behind a place. As a comparison of rows it is a range of the index, however deep the page.
_AFTER = {
    Sort.RELEVANCE: "(rank, product_id) < (%(after_rank)s::real, %(after_id)s)",
    Sort.PRICE: "(v.amount, v.product_id) > (%(after_amount)s, %(after_id)s)",
    Sort.PRICE_DESCENDING: "(v.amount, v.product_id) < (%(after_amount)s, %(after_id)s)",
    Sort.NEWEST: "v.product_id < %(after_id)s",
}
# Whoever looks for no word does without them.
WITH_WORDS = "JOIN offer_words w ON w.source_id = {offers}.source_id AND w.product_id = {offers}.product_id"
_NARROW = "SELECT v.source_id, v.product_id, v.amount, {rank} AS rank FROM visible_offers v {words} WHERE {conditions}"
# Of each source the newest, merged; which source is shown costs nothing, and those of one shop are found at once.
_EACH = """
SELECT x.* FROM source_windows s CROSS JOIN LATERAL (
    {narrow} AND v.source_id = s.source_id ORDER BY v.product_id DESC LIMIT {most}
) x WHERE s.is_shown {sources}
"""
_SOURCES = {"retailer_id": "AND s.retailer_id = %(retailer_id)s", "source_id": "AND s.source_id = %(source_id)s"}
# Asked once: of a shop that shows nothing, no offer is looked at.
_ANY_SHOWN = "EXISTS (SELECT FROM source_windows s WHERE s.is_shown {sources})"
# What fits of the newest offers, as far as they are looked at. One after the other, so that it ends with the page.
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
    """The values of the statement."""
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
    """All that fit, in the order asked for: first the narrow rows of the page, then what they are called."""
    words = WITH_WORDS.format(offers="v") if asked_words(query) else ""
    conditions = [*_conditions(query), *asked_words(query)]
    if query.order is Sort.RELEVANCE:
        # The rank counts only the words of the text: a filter fits all alike.
        ranked = _NARROW.format(
            rank=f"ts_rank(w.words, {WORDS['text']})", words=words, conditions=" AND ".join(conditions)
        )
        beyond = f" WHERE {_AFTER[query.order]}" if query.after else ""
        return _page(query, f"SELECT * FROM ({ranked} LIMIT %(candidates)s) c{beyond}")  # noqa: S608 - constants
    if not words and query.order is Sort.NEWEST and (_of_some_sources(query) or _is_plain(query)):
        return _page(query, _newest_of_each(query, "%(most)s + %(skipped)s"))
    narrow = _NARROW.format(rank="NULL::real", words=words, conditions=_all_of([*conditions, *_beyond(query)]))
    return _page(query, narrow, order=_by_words_first(_ORDERS[query.order]) if words else "")


def may_walk(query: Query) -> bool:
    """Whether the first offers in an order that an index has may be enough for the page."""
    return query.order is not Sort.RELEVANCE and (bool(asked_words(query)) or _is_plain(query))


def walking(query: Query) -> str:
    """What fits of the first offers in the order asked for.

    A word that many offers have is found among them, and to put all that have it in order would take much longer. If
    they do not fill the page, nothing is proven.
    """
    walked = f"SELECT v.* FROM ({_first(query)}) v"  # noqa: S608 - constants
    words = asked_words(query)
    return _page(query, f"{walked} {WITH_WORDS.format(offers='v')} WHERE {words[0]}" if words else walked)


def _first(query: Query) -> str:
    """Some of the first offers, whatever their words."""
    if query.order is not Sort.NEWEST:
        first = _NARROW.format(rank="NULL::real", words="", conditions=_all_of([*_conditions(query), *_beyond(query)]))
        return f"{first} ORDER BY {_ORDERS[query.order]} LIMIT {WALKED}"
    if _of_some_sources(query):
        # Of several sources only the first of all are complete: behind them one may have more than was looked at.
        return f"{_newest_of_each(query, str(WALKED))} ORDER BY x.product_id DESC LIMIT {WALKED}"
    return _OF_NEWEST.format(
        beyond=_all_of(_beyond(query)), passed=PASSED, walked=WALKED, conditions=_all_of(_conditions(query))
    )


def _newest_of_each(query: Query, most: str) -> str:
    narrow = _NARROW.format(rank="NULL::real", words="", conditions=_all_of([*_conditions(query), *_beyond(query)]))
    return _EACH.format(narrow=narrow, most=most, sources=_sources(query))


def _sources(query: Query) -> str:
    return " ".join(text for field, text in _SOURCES.items() if getattr(query, field))


def _of_some_sources(query: Query) -> bool:
    return any(getattr(query, field) for field in _SOURCES)


def _is_plain(query: Query) -> bool:
    """Whether simply the newest of all are asked for."""
    return query.order is Sort.NEWEST and not _conditions(query) and not asked_words(query)


def _by_words_first(order: str) -> str:
    """The same order, such that no index has it: the planner believes that a word is found sooner than it is."""
    return order.replace("amount", "v.amount + 0").replace("product_id", "v.product_id + 0")


def _page(query: Query, narrow: str, order: str = "") -> str:
    asked = _ORDERS[query.order]
    page = f"ORDER BY {order or asked} LIMIT %(most)s OFFSET %(skipped)s"
    again = asked.replace("rank", "found.rank").replace("amount", "found.amount").replace("product_id", "o.product_id")
    return _PAGE.format(narrow=narrow, page=page, columns=OFFER_COLUMNS, joins=OFFER_JOINS, order=again)


def _conditions(query: Query) -> list[str]:
    asked = [text for field, text in CONDITIONS.items() if getattr(query, field) not in (None, "")]
    return [*asked, _ANY_SHOWN.format(sources=_sources(query))] if _of_some_sources(query) else asked


def _beyond(query: Query) -> list[str]:
    return [_AFTER[query.order]] if query.after else []


def _all_of(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "true"


def asked_words(query: Any) -> list[str]:
    """What the words must hold, as one condition; none if no word is looked for."""
    words = [text for field, text in WORDS.items() if getattr(query, field).strip()]
    return [f"w.words @@ ({' && '.join(words)})"] if words else []
