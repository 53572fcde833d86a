"""Read the stock column of a feed.

Only unambiguous text counts as in stock. Text that may be a date, a question or two statements is unknown.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from harvester.kernel.text import HYPHENS, trim

#: A stock text is a word or a short sentence; longer text belongs to another column.
LONGEST_STOCK: Final = 120


class Stock(StrEnum):
    """Whether a product can be bought now."""

    IN = "in"
    OUT = "out"
    #: Empty or ambiguous: counted as UNKNOWN_STOCK, and the feed's settings decide what it means.
    UNKNOWN = "unknown"


class Availability(StrEnum):
    """Whether a product can be bought, as a page says it."""

    IN_STOCK = "IN_STOCK"
    OUT_OF_STOCK = "OUT_OF_STOCK"
    BACKORDER = "BACKORDER"  # it can be ordered and comes later


class UnknownStock(StrEnum):
    """What an unknown stock text means in a feed."""

    IN_STOCK = "IN_STOCK"
    OUT_OF_STOCK = "OUT_OF_STOCK"
    REJECT = "REJECT"


# All words below are in lower case without blanks and punctuation, as `_joined` returns them.
_YES: Final = frozenset({"y", "yes", "t", "true"})
_NO: Final = frozenset({"n", "no", "f", "false"})
#: Words for available goods; "not" before and "no" after them reverse the meaning.
_THERE: Final = frozenset({
    "available", "availability", "inventory", "instock", "left", "leftinstock", "onhand", "onstock", "remaining",
    "stock", "stockavailable",
})  # fmt: skip
_NOT: Final = frozenset({"arent", "isnt", "no", "nolonger", "non", "none", "not", "nothing", "zero"})
_MUCH: Final = frozenset({
    "afewleft", "available", "fewleft", "instock", "limited", "limitedavailability", "limitedstock", "limitedsupply",
    "lowinstock", "lowinventory", "lowstock", "onhand", "onlineonly", "onstock", "readytoship", "stockavailable",
    "unlimited", "unlimitedstock",
})  # fmt: skip
_GONE: Final = frozenset({
    "arrivingsoon", "availablesoon", "awaitingstock", "backinstocksoon", "backorder", "backordered", "backsoon",
    "comingsoon", "discontinued", "endoflife", "eol", "instocksoon", "notifyme", "onbackorder", "onorder", "onpreorder",
    "oos", "out", "outofstock", "outstock", "preorder", "preordered", "presale", "reserved", "restocking", "retired",
    "sold", "soldout", "specialorder", "unavailable", "waitlist",
})  # fmt: skip
#: In front of other words, as in "Availability: out of stock".
_LABELS: Final = ("availability", "stock")
IN_STOCK: Final = frozenset({
    *_YES, *_MUCH, "backinstock",
    *(label + much for label in _LABELS for much in _MUCH),
    *(there + yes for there in _THERE for yes in _YES),
    *(yes + much for much in ("available", "instock", "onstock") for yes in ("yes", "true")),
})  # fmt: skip
OUT_OF_STOCK: Final = frozenset({
    *_NO, *_GONE, "zero", "availabletoorder",
    *(no + there for there in _THERE for no in _NOT),
    *(there + no for there in _THERE for no in _NO),
    *(label + gone for label in _LABELS for gone in _GONE),
    *(label + no + there for label in _LABELS for no in _NOT for there in _THERE),
    *(gone + yes for gone in _GONE for yes in _YES),
    "backorderavailable", "preorderavailable",
    *(f"available{how}{order}" for how in ("for", "on") for order in ("preorder", "backorder", "order", "request")),
})  # fmt: skip
STOCK_WORDS: Mapping[str, Stock] = MappingProxyType(
    dict.fromkeys(IN_STOCK, Stock.IN) | dict.fromkeys(OUT_OF_STOCK, Stock.OUT)
)
_THINGS: Final = ("ea", "item", "items", "pc", "pcs", "piece", "pieces", "unit", "units")
#: Words around a count, as in "only 3 units left in stock".
_COUNTED: Final = frozenset({
    "", "qty", "quantity", "qtyinstock", "stocklevel", "stockqty", "stockquantity", *_THERE, *_MUCH,
    *(thing + where for thing in _THINGS for where in ("", *_THERE)),
    *(where + thing for thing in _THINGS for where in _THERE),
})  # fmt: skip
#: With these words, a number is irrelevant.
_GONE_WITH_NUMBER: Final = frozenset({"discontinued", "nostock", "notavailable", "notinstock", "oos", "outofstock",
                                      "soldout", "unavailable"})  # fmt: skip
#: Words that do not change the meaning of the others.
_FILLERS: Final = frozenset({
    "are", "at", "been", "currently", "has", "have", "is", "item", "just", "moment", "now", "online", "only",
    "permanently", "presently", "product", "sorry", "status", "temporarily", "the", "this", "we", "yet",
})  # fmt: skip

_SCHEMA_ORG: Final = re.compile(r"(?:(?:https?:)?//)?(?:www\.)?schema\.org/|schema:", re.IGNORECASE)
_GONE_UNTIL: Final = re.compile(
    r"(?:out[\s_-]*of[\s_-]*stock|sold[\s_-]*out|(?:pre|back)[\s_-]*order(?:ed)?|unavailable|not available|"
    r"discontinued)[\s_.,:;!()-]+(?:back|by|due|eta|expected|ships?|shipping|till|until)\b",
    re.IGNORECASE,
)
_DIGITS: Final = re.compile("[0-9][0-9.,']*")
_COUNT: Final = re.compile(r"(?:[0-9]+|[0-9]{1,3}([.,'])[0-9]{3}(?:\1[0-9]{3})*)(?:[.,]([0-9]+))?")
_DATE: Final = re.compile("(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
#: "in stock - 5" has no minus; "-5", "in stock -5" and "in stock: - 5" have one.
_MINUS: Final = re.compile(r"(?:\A|[^\w\s-]\s*)-\s*\Z|\s-\Z")
_MORE_THAN: Final = re.compile(r"(>=?|\bover|\bmore than)\s*\Z", re.IGNORECASE)
#: Case, blanks and this punctuation do not matter. Any other punctuation might, so text with it is unknown.
_MARKS: Final = re.compile(r"[\s_.,!:;()\[\]\"=|?-]+")
_SPELLED: Final = str.maketrans({
    **dict.fromkeys(HYPHENS, "-"), **dict.fromkeys("\u2713\u2714\u2705\u2611", " yes "),
    **dict.fromkeys("\u2717\u2718\u274c", " no "), **dict.fromkeys("'\u2018\u2019\ufe0f\u200b"),
})  # fmt: skip
#: "in stock?" does not say that something is in stock.
_UNSURE_ENDS: Final = ("-", "?", ":", "=")


def read_stock(text: str | None) -> Stock:
    cell = trim(text)
    if len(cell) > LONGEST_STOCK:
        return Stock.UNKNOWN
    spelled = unicodedata.normalize("NFKC", cell).translate(_SPELLED).strip()
    if prefix := _SCHEMA_ORG.match(spelled):
        spelled = spelled[prefix.end() :].rstrip("/")
    if _GONE_UNTIL.match(spelled):
        return Stock.OUT
    numbers = list(_DIGITS.finditer(spelled))
    if len(numbers) > 1:
        return Stock.UNKNOWN
    if numbers:
        stock = _read_count(spelled, numbers[0])
    else:
        known = STOCK_WORDS.get(_joined(spelled)) or STOCK_WORDS.get(_joined(spelled, without=_FILLERS))
        stock = known or Stock.UNKNOWN
    is_unsure = spelled.startswith("-") or spelled.endswith(_UNSURE_ENDS)
    return Stock.UNKNOWN if stock is Stock.IN and is_unsure else stock


def _read_count(text: str, number: re.Match[str]) -> Stock:
    """Read a text with one number in it: "5", "-1", "10+", "In Stock (5)", "only 3 units left"."""
    digits = number[0].rstrip(".,'")
    count = _COUNT.fullmatch(digits)
    before, after = text[: number.start()], text[number.end() :]
    is_dated = _DATE.fullmatch(digits) or (number[0] != digits and digits.strip("0123456789"))
    if not count or is_dated or after.startswith("-") or before[-1:].isalpha():
        return Stock.UNKNOWN
    minus, more_than, is_least = _MINUS.search(before), _MORE_THAN.search(before), after.startswith("+")
    before = before[: more_than.start()] if more_than else before.removesuffix("+")
    rest = before + " " + after.removeprefix("+")
    words = {_joined(rest), _joined(rest, without=_FILLERS)}
    if words & _GONE_WITH_NUMBER:
        return Stock.OUT
    if not words & _COUNTED or (minus and (more_than or is_least)):
        return Stock.UNKNOWN
    is_zero = not digits.strip("0.,'")
    if minus or (is_zero and not is_least and not more_than):  # mutant: stock-minus
        return Stock.OUT
    is_unclear = (
        # "at least 0" may be none; accountants write -5 as "(5)"; "available 12.05" may be a date.
        (is_zero and (is_least or (more_than and more_than[1] == ">=")))
        or (not any(words) and text.startswith("("))
        or (any(words) and (count[2] or "").strip("0"))
    )
    return Stock.UNKNOWN if is_unclear else Stock.IN


def _joined(text: str, *, without: frozenset[str] = frozenset()) -> str:
    """Return the words in lower case without blanks and punctuation; "OutOfStock" equals "out of stock"."""
    spaced = re.sub("(?<=[a-z])(?=[A-Z])", " ", text)
    # mutant: stock-marks
    return "".join(word for word in _MARKS.sub(" ", spaced.lower()).split() if word not in without)
