"""Finding offers: text, filters, sort and page over what consumers see.

The statement is put together from constants; what people typed travels as parameters only.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from harvester.catalog.reading import OFFER_COLUMNS, OFFER_JOINS, Offer, fetch_offers
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import InvalidInput

LARGEST_PAGE = 100
#: Offers that can be paged through by number; by place there is no end.
DEEPEST = 2_000
#: Offers that are ranked for a text; to rank all that have a common word takes seconds.
CANDIDATES = 2_000
#: Offers among which a word is looked for before all that have it are put in order.
WALKED = 4_000
LONGEST_TEXT = 200


class Sort(StrEnum):
    """In which order offers come."""

    RELEVANCE = "relevance"  # best match of the text first
    PRICE = "price"  # cheapest first, within one currency
    PRICE_DESCENDING = "-price"  # dearest first, within one currency
    NEWEST = "newest"  # products that were listed last first


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a page ended, in the order that it had.

    Attributes:
        product_id: its last offer.
        amount: the price of that offer, if prices are the order.
        rank: how well it fitted, if that is the order.
    """

    product_id: int
    amount: Decimal | None = None
    rank: float | None = None


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is looked for. It refuses at birth what cannot be answered.

    Attributes:
        text: words of title and brand; quotes, OR and a minus work as on the web.
        retailer_id: only offers of this retailer.
        source_id: only offers of this source.
        category: only this category, in any case.
        brand: only this brand, in any case.
        in_stock: only offers that are, or are not, in stock.
        currency: only this currency.
        min_amount: only at this price or above; needs a currency.
        max_amount: only at this price or below; needs a currency.
        sort: by default relevance with a text, newest without.
        page: the first is 1.
        page_size: offers on a page.
        after: go on behind this place, in the same order, instead of by the number of the page.
    """

    text: str = ""
    retailer_id: UUID | None = None
    source_id: UUID | None = None
    category: str = ""
    brand: str = ""
    in_stock: bool | None = None
    currency: str = ""
    min_amount: Decimal | None = None
    max_amount: Decimal | None = None
    sort: Sort | None = None
    page: int = 1
    page_size: int = 20
    after: Place | None = None

    def __post_init__(self) -> None:
        self._check_text()
        self._check_money()
        if not 1 <= self.page_size <= LARGEST_PAGE:
            raise InvalidInput(f"page_size: allowed is 1 to {LARGEST_PAGE}.")
        if self.page < 1 or self.page * self.page_size > DEEPEST:
            raise InvalidInput(f"page: allowed is 1 to {DEEPEST // self.page_size}; narrow the search by a filter.")
        self._check_after()

    def _check_after(self) -> None:
        if self.after is None:
            return
        needed = {Sort.RELEVANCE: "rank", Sort.PRICE: "amount", Sort.PRICE_DESCENDING: "amount"}.get(self.order)
        if self.page != 1 or (needed and getattr(self.after, needed) is None):
            raise InvalidInput("after: the place belongs to a search in another order.")

    def _check_text(self) -> None:
        if len(self.text) > LONGEST_TEXT or "\x00" in self.text + self.category + self.brand:
            raise InvalidInput(f"text: at most {LONGEST_TEXT} printable characters are allowed.")
        if self.text.strip() and not re.search(r"\w", self.text):
            raise InvalidInput("text: it has no word to look for.")
        if self.sort is Sort.RELEVANCE and not self.text.strip():
            raise InvalidInput("sort: relevance needs a text; without one sort by newest, or by price in a currency.")

    def _check_money(self) -> None:
        if self.currency and self.currency not in MINOR_UNITS:
            raise InvalidInput(f"currency: {self.currency[:10]!r} is no ISO 4217 code such as USD.")
        if not self.currency and self.sort in {Sort.PRICE, Sort.PRICE_DESCENDING}:
            raise InvalidInput("sort: prices of several currencies cannot be compared; give one currency.")
        for field in ("min_amount", "max_amount"):
            amount = getattr(self, field)
            if amount is None:
                continue
            if not self.currency:
                raise InvalidInput(f"{field}: an amount means nothing without a currency; give one.")
            if not amount.is_finite() or amount < 0:
                raise InvalidInput(f"{field}: allowed is a number from 0 on.")

    @property
    def order(self) -> Sort:
        return self.sort or (Sort.RELEVANCE if self.text.strip() else Sort.NEWEST)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some of the offers that were found, whether more follow, and behind which place."""

    offers: list[Offer]
    has_more: bool
    end: Place | None = None


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
_PAGE = """
WITH found AS MATERIALIZED ({narrow} {page})
SELECT {columns}, found.rank
FROM found JOIN active_offers o ON o.source_id = found.source_id AND o.product_id = found.product_id
{joins}
ORDER BY {order}
"""


def search(query: Query) -> Page:
    """One page of the offers that consumers see and that fit."""
    found = _found(query)
    shown = found[: query.page_size]
    return Page(offers=shown, has_more=len(found) > len(shown), end=_place(shown[-1]) if shown else None)


def _found(query: Query) -> list[Offer]:
    """As many as the page shows, and one more if there is one."""
    values = parameters(query)
    if not may_walk(query):
        return fetch_offers(statement(query), values)
    found = fetch_offers(walking(query), values)
    if len(found) > query.page_size:
        return found
    with words_first():
        return fetch_offers(statement(query), values)


@contextmanager
def words_first() -> Iterator[None]:
    """Go from words to offers, one by one: the planner takes that for dearer than to read every offer."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        yield


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


def _place(offer: Offer) -> Place:
    return Place(product_id=offer.product_id, amount=offer.amount, rank=offer.rank)


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
    narrow = _NARROW.format(rank="NULL::real", words=words, conditions=_all_of([*conditions, *_beyond(query)]))
    return _page(query, narrow, order=_by_words_first(_ORDERS[query.order]) if words else "")


def may_walk(query: Query) -> bool:
    """Whether words are looked for in an order that an index has."""
    return query.order is not Sort.RELEVANCE and bool(asked_words(query))


def walking(query: Query) -> str:
    """What fits of the first offers in the order asked for, whatever their words.

    A word that many offers have is found among them, and to put all that have it in order would take much longer. If
    they do not fill the page, nothing is proven.
    """
    first = _NARROW.format(rank="NULL::real", words="", conditions=_all_of([*_conditions(query), *_beyond(query)]))
    walked = f"({first} ORDER BY {_ORDERS[query.order]} LIMIT {WALKED}) v"
    [words] = asked_words(query)
    return _page(query, f"SELECT v.* FROM {walked} {WITH_WORDS.format(offers='v')} WHERE {words}")  # noqa: S608


def _by_words_first(order: str) -> str:
    """The same order, such that no index has it: the planner believes that a word is found sooner than it is."""
    return order.replace("amount", "v.amount + 0").replace("product_id", "v.product_id + 0")


def _page(query: Query, narrow: str, order: str = "") -> str:
    asked = _ORDERS[query.order]
    page = f"ORDER BY {order or asked} LIMIT %(most)s OFFSET %(skipped)s"
    again = asked.replace("rank", "found.rank").replace("amount", "found.amount").replace("product_id", "o.product_id")
    return _PAGE.format(narrow=narrow, page=page, columns=OFFER_COLUMNS, joins=OFFER_JOINS, order=again)


def _conditions(query: Query) -> list[str]:
    return [text for field, text in CONDITIONS.items() if getattr(query, field) not in (None, "")]


def _beyond(query: Query) -> list[str]:
    return [_AFTER[query.order]] if query.after else []


def _all_of(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "true"


def asked_words(query: Any) -> list[str]:
    """What the words must hold, as one condition; none if no word is looked for."""
    words = [text for field, text in WORDS.items() if getattr(query, field).strip()]
    return [f"w.words @@ ({' && '.join(words)})"] if words else []
