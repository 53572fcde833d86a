"""All shapes of written amounts, so that ambiguous text is detected.

A shape is one way to read digits and separators. "1,299.00" has one shape; "1.226" has two, about a thousand and about
one, and the text does not say which. Texts come without signs and currency, with plain blanks and apostrophes.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

DecimalStyle = Literal[".", ","]

_GROUP_SEPARATORS = (".", ",", " ", "'")
_DECIMAL_SEPARATORS: tuple[DecimalStyle, ...] = (".", ",")
_STYLE_OF_GROUP: dict[str, DecimalStyle] = {",": ".", ".": ","}
#: "1,29,900": lakhs and crores, and thousands in the last group.
_INDIAN = "[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One way to read a number.

    Attributes:
        pattern: matches the whole number.
        group: separator of thousands, or empty.
        decimal: separator of decimals, or empty.
        style: the decimal separator that a document with such a number uses, if that is certain.
        is_indian: groups of two digits before the thousands, used for some currencies only.
    """

    pattern: str
    group: str = ""
    decimal: str = ""
    style: DecimalStyle | None = None
    is_indian: bool = False

    def matches(self, number: str) -> bool:
        return re.fullmatch(self.pattern, number) is not None

    def plain(self, number: str) -> str:
        """Return the number as this shape reads it: digits, and a point if there are decimals."""
        ungrouped = number.replace(self.group, "") if self.group else number
        return ungrouped.replace(self.decimal, ".") if self.decimal else ungrouped


def _grouped(group: str) -> str:
    return f"[1-9][0-9]{{0,2}}(?:{re.escape(group)}[0-9]{{3}})+"


SHAPES: Final = (
    Shape(pattern="[0-9]+"),
    *(Shape(pattern=_grouped(group), group=group, style=_STYLE_OF_GROUP.get(group)) for group in _GROUP_SEPARATORS),
    *(
        Shape(pattern=f"[0-9]*{re.escape(decimal)}[0-9]+", decimal=decimal, style=decimal)
        for decimal in _DECIMAL_SEPARATORS
    ),
    *(
        Shape(pattern=f"{_grouped(group)}{re.escape(decimal)}[0-9]+", group=group, decimal=decimal, style=decimal)
        for decimal in _DECIMAL_SEPARATORS
        for group in _GROUP_SEPARATORS
        if group != decimal
    ),
    *(
        Shape(pattern=f"{_INDIAN}{decimals}", group=",", decimal=decimal, style=".", is_indian=True)
        for decimal, decimals in (("", ""), (".", "[.][0-9]+"))
    ),
    # A blank that slipped in: "$119. 95". With a comma it could be two prices.
    Shape(pattern=f"(?:[0-9]+|{_grouped(',')})[.] [0-9]{{2}}", group=",", decimal=". ", style="."),
    # Cents in small print next to the amount become "68 50" without the markup.
    Shape(pattern="[0-9]+ [0-9]{2}", decimal=" "),
)


def shapes_of(number: str) -> tuple[Shape, ...]:
    """Return all ways to read the number: none if it is not a number, several if it is ambiguous."""
    return tuple(shape for shape in SHAPES if shape.matches(number))
