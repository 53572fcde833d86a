"""Which of the amounts of a page is the price, if they leave one reading."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harvester.kernel.money import Price
from harvester.kernel.rejects import Fault
from harvester.scraping.reader.facts import Fact, Money, why_unreadable
from harvester.scraping.reader.visible import (
    A_TOTAL,
    INSTALLMENT,
    MEMBERS,
    OF_OTHER,
    PER_UNIT,
    SAVED,
    SAVED_NOW,
    SELLING,
    SOMETHING_ELSE,
    Role,
    Seen,
)

#: A former price that is more times the price is that of something else, or wrong.
MOST_TIMES: Final = 10


@dataclass(kw_only=True)
class Choice:
    """Which of the amounts is the price.

    Attributes:
        price: what the product costs, if the amounts leave one reading.
        used: the amounts that say so.
        original: the former price.
        is_tax_included: if the page says so next to the price.
        problem: why there is no price, in words; empty if nothing is there that looks like one.
        is_zero: the amount is zero.
    """

    price: Price | None = None
    used: tuple[Seen, ...] = ()
    original: Seen | None = None
    is_tax_included: bool | None = None
    problem: str = ""
    is_zero: bool = False


def choose(  # noqa: C901, PLR0911, PLR0912 - one reason each, in the order in which they count
    seen: Sequence[Seen], money: Money, expected: str | None = None
) -> Choice:
    """Return the one selling price among amounts next to each other.

    Args:
        seen: the amounts.
        money: how they are read.
        expected: the currency that the markup names; amounts in others are conversions if one in it is there.
    """
    for each in seen:
        if each.fact.value is None and each.fact.fault is None:
            money.read(each.fact)
    selling = [each for each in seen if each.role in SELLING]
    regular = [each for each in seen if each.role in (Role.REGULAR, Role.PIECE)]
    is_weak = not selling
    if not selling:
        selling = regular or [each for each in seen if each.role is Role.TIER_OF_ONE]
        if not selling:
            selling = [each for each in seen if each.role is Role.WITHOUT_TAX]
        regular = []
    if expected and selling and _currency(selling[0]) in (expected, None):
        for each in selling:
            if _currency(each) not in (expected, None):
                each.why = "in another currency"
        selling = [each for each in selling if _currency(each) in (expected, None)]
    unreadable = [each for each in selling if each.fact.fault]
    if unreadable:
        first = unreadable[0].fact
        sentence = why_unreadable(first.fault) if first.fault else ""
        return Choice(
            problem=f"the price {first.text!r} cannot be read: {sentence}",
            is_zero=all(each.fact.fault is Fault.PRICE_ZERO for each in selling),
        )
    amounts = list(dict.fromkeys(each.fact.value for each in selling))
    taxed = {each.fact.value for each in selling if each.role is Role.WITH_TAX}
    open_ends = {each.role for each in seen} & {Role.RANGE, Role.FROM}
    if len(amounts) == 1 and (Role.RANGE in open_ends or (open_ends and is_weak)):
        return Choice(problem="there is a range of prices")
    if len(amounts) != 1:
        inexact = any(each.role in (Role.RANGE, Role.FROM) for each in seen)
        shown = ", ".join(map(str, amounts[:5]))
        return Choice(
            problem=f"there are several prices: {shown}" if amounts else "there is a range of prices" if inexact else ""
        )
    price: Price = amounts[0]
    is_named = any(each.role is Role.CURRENT for each in selling)
    doubtful = ("its classes", *((SAVED, SOMETHING_ELSE) if is_weak else ()))
    hidden = [
        each
        for each in seen
        if each.role is Role.OTHER and each.why.startswith(doubtful) and not _REPEATED.search(each.why)
    ]
    if not is_named and (lower_one := next((each for each in hidden if _is_near_below(each.fact, price)), None)):
        return Choice(problem=f"the page shows {price} and {lower_one.fact.value}, and either may be the price")
    for each in seen:
        is_unclear = each.why == SAVED_NOW or (each.why in (SAVED, A_TOTAL) and _is_near_below(each.fact, price))
        if is_unclear and isinstance(each.fact.value, Price) and not _is_saved(each.fact, price, seen):
            return Choice(problem=f"the page shows {price} and {each.fact.value}, and either may be the price")
        if each.why in (INSTALLMENT, PER_UNIT, MEMBERS, SOMETHING_ELSE) and each.fact.value == price:
            return Choice(problem=f"the page says of {price} that it is {each.why}")
    if any(each.role is Role.FROM and each.fact.value == price for each in seen):
        return Choice(problem="the page shows the lowest of several prices")
    same = [each for each in seen if each.role is Role.TIER_OF_ONE and each.fact.value]
    lower = [
        each
        for each in regular
        if each.fact.value
        and each.fact.value.currency == price.currency
        and each.fact.value.amount < price.amount
        and each.role is Role.REGULAR
    ]
    if lower or any(each.fact.value != price for each in same):
        other = (lower or [each for each in same if each.fact.value != price])[0]
        return Choice(problem=f"the page shows {price} and {other.fact.value}, and either may be the price")
    return Choice(
        price=price, used=tuple(selling), original=_original(seen, regular, price), is_tax_included=_tax(selling, taxed)
    )


#: Classes of what is bought again and again.
_REPEATED: Final = re.compile(r"(?i)subscri|autoship|selling-?plan|recurring|\bsns\b")


def _is_near_below(fact: Fact, price: Price) -> bool:
    """Whether an amount is lower than a price and more than half of it, as what it costs now would be."""
    other = fact.value
    return (
        isinstance(other, Price) and other.currency == price.currency and price.amount / 2 < other.amount < price.amount
    )


def _is_saved(saved: Fact, price: Price, seen: Iterable[Seen]) -> bool:
    """Whether an amount is the difference between a former price and the price, give or take what was rounded."""
    return any(
        isinstance(each.fact.value, Price)
        and each.fact.value.currency == price.currency
        and abs(each.fact.value.amount - price.amount - saved.value.amount) <= 1
        for each in seen
    )


def _currency(seen: Seen) -> str | None:
    return seen.fact.value.currency if isinstance(seen.fact.value, Price) else None


def _tax(selling: Iterable[Seen], taxed: set[Price]) -> bool | None:
    if taxed:
        return True
    return False if all(each.role is Role.WITHOUT_TAX for each in selling) else None


def _original(seen: Sequence[Seen], regular: Sequence[Seen], price: Price) -> Seen | None:
    """Return the one former price that is higher."""
    former = [
        each
        for each in [
            *(one for one in seen if one.role is Role.WAS),
            *(one for one in regular if one.role is Role.REGULAR),
        ]
        if isinstance(each.fact.value, Price)
        and each.fact.value.currency == price.currency
        and price.amount < each.fact.value.amount < price.amount * MOST_TIMES
        and each.why != OF_OTHER
    ]
    return former[0] if len({each.fact.value for each in former}) == 1 else None
