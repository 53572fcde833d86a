"""The statements of the list of all offers.

They are built from constants; user input is passed only as parameters. Each returns source_id, product_id, amount and
whether the row meets the conditions without an index.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from harvester.catalog.named_rows import fetch
from harvester.catalog.search_query import Sort
from harvester.catalog.search_sql import CANDIDATES, CONDITIONS, WITH_WORDS, WORDS, asked_words
from harvester.catalog.visibility_reasons import Key

if TYPE_CHECKING:
    from harvester.catalog.offer_browser import Browse

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
