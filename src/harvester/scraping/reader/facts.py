"""What one place of a page says: the text, and the money in it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Self

from harvester.kernel.money import Price, parse_price
from harvester.kernel.numerals import DecimalStyle, shapes_of
from harvester.kernel.rejects import Fault, Rejected
from harvester.scraping.offers import Evidence

#: Characters of a value shown to people.
LONGEST_VALUE = 160
LONGEST_PLACE = 500


class Text(str):  # noqa: SLOT000 - a str with slots cannot have these
    """A value of structured data that knows where it is from.

    Attributes:
        place: the element and what is read of it, such as "::text"; none in JSON.
        is_number: JSON wrote it as a number, so a point in it stands before decimals.
    """

    place: "Place | None"
    is_number: bool

    def __new__(cls, text: str, *, place: "Place | None" = None, is_number: bool = False) -> Self:
        made = super().__new__(cls, text)
        made.place, made.is_number = place, is_number
        return made


#: An element, and what is read of it: "::text" or "::attr(content)".
Place = tuple[Any, str]


@dataclass(kw_only=True, slots=True)
class Fact:
    """One value at one place; it becomes `Evidence`.

    Attributes:
        field: what it is about.
        text: as written.
        syntax: as in `Evidence`.
        place: a JSON path or a CSS selector, or the element for which one is made when somebody looks.
        currency: the one named next to an amount.
        value: what was read from the text, a `Price` or an `Availability`.
        fault: why the text could not be read.
        note: why it was not used.
        is_used: the offer has its value from here.
    """

    field: str
    text: str
    syntax: str
    place: str | Place
    currency: str = ""
    value: Any = None
    fault: Fault | None = None
    note: str = ""
    is_used: bool = False

    def evidence(self, selector: Callable[[Any], str]) -> Evidence:
        place = self.place if isinstance(self.place, str) else selector(self.place[0]) + self.place[1]
        return Evidence(
            field=self.field,
            value=" ".join(self.text.split())[:LONGEST_VALUE],
            syntax=self.syntax,
            place=place[:LONGEST_PLACE],
            is_used=self.is_used,
            note=self.note or (self.fault.sentence if self.fault else ""),
        )


@dataclass(frozen=True, kw_only=True)
class Money:
    """How amounts of a page are read.

    Attributes:
        currency: for amounts without one, and which of several a sign such as "$" means.
        style: the decimal separator that the page uses, if its amounts prove one.
    """

    currency: str | None = None
    style: DecimalStyle | None = None

    def read(self, fact: Fact) -> Fact:
        """Set the price of a fact, or why it has none."""
        style: DecimalStyle | None = "." if getattr(fact.text, "is_number", False) else self.style
        default = None if fact.currency else self.currency
        try:
            fact.value = parse_price(
                fact.text, currency=fact.currency or None, default_currency=default, decimal_style=style
            )
        except Rejected as problem:
            fact.fault = problem.fault
            if fact.fault is Fault.PRICE_TOO_FINE and fact.syntax != "page text" and _COMPUTED.fullmatch(fact.text):
                rounded = Fact(field="", text=f"{Decimal(fact.text):.2f}", syntax="", place="", currency=fact.currency)
                fact.value, fact.fault = self.read(rounded).value, rounded.fault
        return fact


#: What shop systems write that compute prices from those without tax: 36.949999.
_COMPUTED: Final = re.compile(r"\d{1,8}\.\d{4,18}")


def why_unreadable(fault: Fault) -> str:
    """Return why the price of a page cannot be read, and what a person can do about it."""
    if fault is Fault.CURRENCY_AMBIGUOUS:
        return (
            "the sign stands for several currencies, and the page does not say which; set the source's default_currency"
        )
    if fault is Fault.NO_CURRENCY:
        return "the page names no currency; set the source's default_currency"
    return fault.sentence


def proven_style(numbers: Iterable[str]) -> DecimalStyle | None:
    """Return the decimal separator that the unambiguous numbers agree on."""
    styles = set()
    for number in numbers:
        found = {shape.style for shape in shapes_of(number)}
        if len(found) == 1:
            styles |= found
    styles.discard(None)
    return styles.pop() if len(styles) == 1 else None


def prices_of(facts: Iterable[Fact]) -> list[Price]:
    """Return the different prices, in the order of the facts."""
    return list(dict.fromkeys(fact.value for fact in facts if isinstance(fact.value, Price)))
