"""Read exact prices from text.

Ambiguous text is rejected, because a wrong price is worse than a missing one. The caller provides what can resolve the
ambiguity: the currency column, the feed's default currency, the decimal separator of the document.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from harvester.kernel.currencies import (
    MINOR_UNITS,
    WRITTEN_WHOLE,
    agreed_currency,
    column_currencies,
    currency_code,
    named_currencies,
)
from harvester.kernel.numerals import DecimalStyle, Shape, shapes_of
from harvester.kernel.rejects import Fault, RejectCode, Rejected, WarningCode
from harvester.kernel.text import BLANKS, HYPHENS, SPACES, trim

#: No price with its currency needs more, and the patterns below never see a megabyte.
LONGEST_PRICE = 64
#: A column of numeric(12,2) holds ten digits before the point.
WHOLE_DIGITS = 10

# Phrases next to a price are in lower case without blanks, as `named_currencies` compares them.
#: Before a price: what it is called.
LABELS = frozenset(
    """
    price ourprice yourprice saleprice specialprice currentprice onlineprice now only nowonly just sale
    preis unserpreis nur jetzt jetztnur prix notreprix precio prezzo prijs pris cena
    """.split()  # noqa: SIM905 - as a table it can be read
)
#: After a price: for one piece, tax included, footnotes. Never for a weight, a length, a pack or a month.
TRIMMINGS = frozenset(
    """
    * ! \u2020 \u2021 /- &nbsp; sale onsale only now freeshipping +freeshipping freedelivery
    each ea ea. apiece /ea /each /pc /piece /item /unit perea pereach perpiece peritem perunit
    /st /st\u00fcck /stk prost\u00fcck jest\u00fcck /unit\u00e9 /pi\u00e8ce c/u
    inclvat incvat incl.vat inc.vat includingvat includesvat vatincluded vatincl vatinc withvat
    incltax inctax incl.tax inc.tax includingtax taxincluded taxesincluded incl.taxes inclgst incgst incl.gst inc.gst
    inkl.mwst. inkl.mwst inklmwst incl.mwst inclmwst inkl.ust inkl.moms inklmoms incl.btw inclbtw ttc
    ivaincluido ivaincl ivainclusa ivainclu\u00edda i.v.a.incluido tvaincluse
    """.split()  # noqa: SIM905 - as a table it can be read
)
#: With one of these words anywhere, the text is not the exact price of this product.
INEXACT_WORDS = frozenset(
    """
    from starting starts start low lowest up upto upwards upward above below between under over than to more less or
    about around approx approximately circa est estimated estimate average avg min max minimum maximum
    obo ono offer offers negotiable vb vhb
    ab bis partir d\u00e8s partire da desde hasta vanaf vanafprijs od fra fr\u00e5n alk alkaen \u043e\u0442
    """.split()  # noqa: SIM905 - as a table it can be read
)
INEXACT_SIGNS = frozenset("~\u2248<>\u2264\u2265\u00b1")

_APOSTROPHES = "'\u2018\u2019\u02bc\u2032`\u00b4"
_DIRECTIONS = "\u200e\u200f\u061c"
#: Spellings of the same character, unified first.
ONE_SPELLING = {
    **dict.fromkeys(map(ord, SPACES), " "),
    **dict.fromkeys(map(ord, HYPHENS), "-"),
    **dict.fromkeys(map(ord, _APOSTROPHES), "'"),
}
#: Ignored next to the number; inside it, invisible characters make it unreadable.
UNSEEN = {
    **dict.fromkeys(map(ord, BLANKS), " "),
    **dict.fromkeys(map(ord, "\u200b\ufeff" + _DIRECTIONS)),
}
#: The text before the first digit, from the first to the last digit, and after it.
PARTS = "([^0-9]*)([0-9](?:.*[0-9])?)([^0-9]*)"
#: "129,-" and "129:-": the dash means no cents.
DASHED_CENTS = "([.,:])--?(|[^-].*)"
#: Two numbers with a dash or a word between them.
RANGE = "[0-9.,' ]+[^0-9]*(?:-|to|bis)[^0-9]*[0-9.,' ]+"
#: Currencies whose amounts are grouped as in "1,29,900", and in which a comma never stands before decimals.
INDIAN_GROUPS = frozenset({"BDT", "INR", "LKR", "NPR", "PKR"})
#: A separator with nothing but a sign or a blank before it belongs to the number: "$.99", but not "kr.99".
LEADING_SEPARATOR = "(|.*[^A-Za-z\u00c0-\u024f\u0400-\u04ff])([.,])"


@dataclass(frozen=True, kw_only=True)
class Price:
    """An amount above zero with exactly the decimals of its currency.

    Attributes:
        amount: finite, above zero.
        currency: ISO 4217 code.
    """

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if self.currency not in MINOR_UNITS:
            raise ValueError("a price needs an ISO 4217 code")
        if not self.amount.is_finite() or not 0 < self.amount < 10**WHOLE_DIGITS:
            raise ValueError(f"an amount is above zero and has at most {WHOLE_DIGITS} digits before the point")
        if self.amount.as_tuple().exponent != -MINOR_UNITS[self.currency]:
            raise ValueError("an amount has exactly the decimals of its currency")

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


class Offered(NamedTuple):
    """The prices of one row.

    Attributes:
        price: what a customer pays now.
        original: the former price, only if it is higher.
        warnings: counted, never a reason to reject the row.
    """

    price: Price
    original: Price | None
    warnings: tuple[WarningCode, ...]


class _Cell(NamedTuple):
    """The parts of a price cell.

    Attributes:
        number: digits and separators.
        shapes: all ways to read the number.
        currencies: allowed by the text before and after the number; none where it names no currency.
    """

    number: str
    shapes: tuple[Shape, ...]
    currencies: tuple[frozenset[str] | None, frozenset[str] | None]


def parse_price(
    text: str | None,
    *,
    currency: str | None = None,
    default_currency: str | None = None,
    decimal_style: DecimalStyle | None = None,
) -> Price:
    """Read a price cell.

    Args:
        text: the cell.
        currency: the row's own currency column.
        default_currency: the feed's currency for rows that name none.
        decimal_style: the document's decimal separator, used only where text and currency leave two readings.

    Raises:
        Rejected: with the code to count and the sentence to show.
    """
    cell = _split_cell(text)
    # mutant: agreed-currency
    code = agreed_currency([*cell.currencies, column_currencies(currency)], currency_code(default_currency))
    shape = _only_shape(cell.shapes, decimal_style, code)
    amount = _exact(shape.plain(cell.number), MINOR_UNITS[code])
    if amount == 0:
        raise Rejected(Fault.PRICE_ZERO)
    return Price(amount=amount, currency=code)


def offered_prices(
    sale: str | None,
    listed: str | None,
    original: str | None,
    *,
    currency: str | None = None,
    default_currency: str | None = None,
    decimal_style: DecimalStyle | None = None,
) -> Offered:
    """Return the current price and the original price: its own column, or the list price next to a sale price."""
    read = partial(parse_price, currency=currency, decimal_style=decimal_style)
    price, on_sale = _current_price(sale, listed, partial(read, default_currency=default_currency))
    # An original price without a currency has that of the current price.
    read_original = partial(read, default_currency=price.currency)
    try:
        before = _first_price(read_original, original, listed if on_sale else None)
    except Rejected:
        return Offered(price, None, (WarningCode.BAD_ORIGINAL_PRICE,))
    if before is None or before == price:
        return Offered(price, None, ())
    if before.currency != price.currency or before.amount < price.amount:
        return Offered(price, None, (WarningCode.BAD_ORIGINAL_PRICE,))
    return Offered(price, before, ())


def _current_price(sale: str | None, listed: str | None, read: Callable[[str | None], Price]) -> tuple[Price, bool]:
    """Return what a customer pays now, and whether it is the sale price.

    A sale price of zero next to a list price above zero means "not on sale". A sale price that cannot be read rejects
    the row: the list price may be far from what the shop charges.
    """
    try:
        return read(sale), True
    except Rejected as rejection:
        if rejection.code is RejectCode.MISSING_PRICE:
            return read(listed), False
        if rejection.code is not RejectCode.PRICE_WITHHELD:
            raise
        try:
            return read(listed), False
        except Rejected:
            raise rejection from None


def _first_price(read: Callable[[str | None], Price], *texts: str | None) -> Price | None:
    """Return the first price that is neither missing nor zero."""
    for text in texts:
        try:
            return read(text)
        except Rejected as rejection:
            if rejection.code not in (RejectCode.MISSING_PRICE, RejectCode.PRICE_WITHHELD):
                raise
    return None


def sale_holds_at(period: str | None, moment: datetime) -> bool:
    """Whether a sale price with this period is valid at a moment. Without a period it is always valid.

    A period is two ISO 8601 times with a slash between them. Times without an offset are UTC, as in the specification
    of Google's feeds.

    Raises:
        Rejected: the period cannot be read, so it is unknown which of two prices is valid.
    """
    text = trim(period)
    if not text:
        return True
    begin, _, end = text.partition("/")
    try:
        return _moment(begin) <= moment <= _moment(end)
    except ValueError:
        raise Rejected(Fault.PERIOD_UNREADABLE) from None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(trim(text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _split_cell(text: str | None) -> _Cell:
    trimmed = trim(text)
    if not trimmed:
        raise Rejected(Fault.NO_PRICE)
    if len(trimmed) > LONGEST_PRICE:
        raise Rejected(Fault.PRICE_TOO_LONG)
    parts = re.fullmatch(PARTS, trimmed.translate(ONE_SPELLING))
    if not parts:
        raise Rejected(Fault.PRICE_UNREADABLE)
    before, number, after = parts.groups()
    if leading := re.fullmatch(LEADING_SEPARATOR, before):
        before, number = leading[1], leading[2] + number
    before, after = before.translate(UNSEEN).strip(" "), after.translate(UNSEEN).strip(" ")
    if "-" in before or after == "-" or (before.startswith("(") and after.endswith(")")):
        raise Rejected(Fault.PRICE_NEGATIVE)
    around = f"{before} {after}"
    words = "".join(character if character.isalpha() else " " for character in around.lower()).split()
    if after.endswith("+") or not INEXACT_SIGNS.isdisjoint(around) or not INEXACT_WORDS.isdisjoint(words):
        raise Rejected(Fault.PRICE_NOT_EXACT)
    shapes = shapes_of(number)
    if dashed := re.fullmatch(DASHED_CENTS, after):
        shapes = tuple(shape for shape in shapes if not shape.decimal and shape.group != dashed[1])
        after = dashed[2]
    # The end of a sentence or of an abbreviation; directly after a number it may be a rest of truncated decimals.
    if after[-1:] == "." and after[-2:-1].isalpha():
        after = after[:-1]
    if not shapes:
        raise Rejected(Fault.PRICE_NOT_EXACT if re.fullmatch(RANGE, number) else Fault.PRICE_UNREADABLE)
    return _Cell(number, shapes, (named_currencies(before, LABELS), named_currencies(after, TRIMMINGS)))


def _only_shape(shapes: tuple[Shape, ...], style: DecimalStyle | None, currency: str) -> Shape:
    """Return the one way to read a number; three digits after a single separator have two.

    Raises:
        Rejected: neither the currency nor the document's decimal separator decides, or this grouping is not used for
            that currency.
    """
    if len(shapes) == 1:
        if shapes[0].is_indian and currency not in INDIAN_GROUPS:
            raise Rejected(Fault.PRICE_UNREADABLE)
        return shapes[0]
    thousands, decimals = sorted(shapes, key=lambda shape: shape.decimal)
    # Nobody writes three decimals in a currency that has none: "1,226 JPY" can only be thousands.
    if MINOR_UNITS[currency] == 0 or style == thousands.style:
        return thousands
    if thousands.group == "," and style is None and currency in INDIAN_GROUPS:
        return thousands
    # Databases export "12.500" for 12.50, and none exports "12,500": there the separator of the feed is in doubt.
    is_decimal = style == decimals.style and (style == "." or MINOR_UNITS[currency] == 3)  # noqa: PLR2004
    if is_decimal and currency not in WRITTEN_WHOLE:
        return decimals
    raise Rejected(Fault.PRICE_AMBIGUOUS)


def _exact(plain: str, decimals: int) -> Decimal:
    """Return the amount with exactly this number of decimals; only zeros may be added or dropped."""
    whole, _, fraction = plain.partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > decimals:
        raise Rejected(Fault.PRICE_TOO_FINE)
    whole = whole.lstrip("0")
    if len(whole) > WHOLE_DIGITS:
        raise Rejected(Fault.PRICE_TOO_LARGE)
    digits = (whole + fraction.ljust(decimals, "0")) or "0"
    return Decimal(f"{digits}E-{decimals}")
