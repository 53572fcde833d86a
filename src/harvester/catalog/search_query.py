"""Queries of the search for offers. Their constructor rejects invalid ones."""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import InvalidInput

LARGEST_PAGE = 100
#: Offers that can be paged through by page number; by place there is no limit.
DEEPEST = 2_000
LONGEST_TEXT = 200


class Sort(StrEnum):
    """The order of offers."""

    RELEVANCE = "relevance"  # best match of the text first
    PRICE = "price"  # cheapest first, within one currency
    PRICE_DESCENDING = "-price"  # most expensive first, within one currency
    NEWEST = "newest"  # products added last first


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a page ended.

    Attributes:
        product_id: its last offer.
        amount: the price of that offer, if sorted by price.
        rank: its relevance, if sorted by relevance.
    """

    product_id: int
    amount: Decimal | None = None
    rank: float | None = None


@dataclass(frozen=True, kw_only=True)
class Query:
    """A search for offers.

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
        after: continue after this place, in the same order, instead of by page number.
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
        if len(self.text) > LONGEST_TEXT or "\x00" in self.text + self.category + self.brand:
            raise InvalidInput(f"at most {LONGEST_TEXT} printable characters are allowed.", field="text")
        if self.text.strip() and not re.search(r"\w", self.text):
            raise InvalidInput("must contain a word.", field="text")
        if self.sort is Sort.RELEVANCE and not self.text.strip():
            raise InvalidInput(
                "relevance requires a text; otherwise sort by newest, or by price in a currency.", field="sort"
            )
        self._check_money()
        if not 1 <= self.page_size <= LARGEST_PAGE:
            raise InvalidInput(f"use 1 to {LARGEST_PAGE}.", field="page_size")
        if self.page < 1 or self.page * self.page_size > DEEPEST:
            raise InvalidInput(f"use 1 to {DEEPEST // self.page_size}, or add a filter.", field="page")
        if self.after is not None:
            needed = {Sort.RELEVANCE: "rank", Sort.PRICE: "amount", Sort.PRICE_DESCENDING: "amount"}.get(self.order)
            if self.page != 1 or (needed and getattr(self.after, needed) is None):
                raise InvalidInput("the place belongs to a search in another order.", field="after")

    def _check_money(self) -> None:
        if self.currency and self.currency not in MINOR_UNITS:
            raise InvalidInput(f"{self.currency[:10]!r} is not an ISO 4217 code such as USD.", field="currency")
        if not self.currency and self.sort in {Sort.PRICE, Sort.PRICE_DESCENDING}:  # mutant: one-currency
            raise InvalidInput("prices of several currencies cannot be compared; choose a currency.", field="sort")
        for field in ("min_amount", "max_amount"):
            amount = getattr(self, field)
            if amount is None:
                continue
            if not self.currency:
                raise InvalidInput("an amount requires a currency; choose one.", field=field)
            if not amount.is_finite() or amount < 0:
                raise InvalidInput("must be a number from 0.", field=field)

    @property
    def order(self) -> Sort:
        return self.sort or (Sort.RELEVANCE if self.text.strip() else Sort.NEWEST)
