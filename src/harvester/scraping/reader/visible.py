"""The prices that a person sees on a page, and which of them is that of the product."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from harvester.kernel.currencies import MINOR_UNITS, SIGNS
from harvester.kernel.money import Price
from harvester.kernel.rejects import Fault
from harvester.scraping.reader import phrases
from harvester.scraping.reader.document import JOINT, Block, Mark
from harvester.scraping.reader.facts import Fact, Money, why_unreadable

#: Prices of a page that are looked at.
MOST_PRICES: Final = 400
#: Characters around an amount that say what it is.
BEFORE, AFTER = 70, 50
#: Elements around an amount whose classes say what it is.
LEVELS: Final = 4
#: Characters of a block that is the label of the next one.
LONGEST_LABEL: Final = 40
#: Elements between a label and the part of the page that it and its amount are in.
CLOSE: Final = 3
#: Less text before an amount is a sign.
LEAST_WORD: Final = 3

_SIGN: Final = "|".join(
    [
        # A sign of letters is a word of its own; "$" may stand right after one.
        (r"(?<![A-Za-z\d])" if sign[0].isalpha() else "") + re.escape(sign)
        for sign in sorted(SIGNS, key=len, reverse=True)
        if not sign.startswith("&") and sign != "US"
    ]
    + [rf"(?<![A-Za-z\d])(?:{'|'.join(sorted(MINOR_UNITS))})(?![A-Za-z])"]
)
_SIGN_AFTER: Final = _SIGN.replace(r"(?<![A-Za-z\d])", "")
_CENTS: Final = rf"(?:[.,]\d{{1,3}}(?!\d)|[.,][-\u2013\u2014]{{1,2}}|{JOINT}\d\d(?!\d)|{JOINT}?[.,]{JOINT}?\d\d(?!\d))"
_NUMBER: Final = rf"(?:\d{{1,3}}(?:[.,'\u2019\xa0\u202f]\d{{3}})+(?!\d)|\d{{1,8}}){_CENTS}?"
_SPACED: Final = rf"\d{{1,3}}(?: \d{{3}})+(?!\d){_CENTS}?"
_MONEY: Final = re.compile(
    rf"(?P<sign>{_SIGN})\s?(?:(?:{_SIGN})\s?)?{JOINT}?(?P<first>{_NUMBER})(?![\d%]|[.,]\d)(?:\s?(?P<code>(?:{'|'.join(sorted(MINOR_UNITS))}))(?![A-Za-z]))?"
    rf"|(?<![\d.,A-Za-z-])(?P<second>{_SPACED}|{_NUMBER})\s?(?:(?P<after>{_SIGN_AFTER})(?![A-Za-z\d]))"
)
_BARE: Final = re.compile(rf"\s*(?:\d{{1,3}}(?:[.,]\d{{3}})+|\d{{1,6}})(?:[.,]\d\d|{JOINT}[.,]?{JOINT}?\d\d)\s*")
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
#: No amount has no digit; few blocks of a page have one.
_DIGIT: Final = re.compile(r"\d")


class Role(StrEnum):
    """What an amount on a page is."""

    CURRENT = "current"
    UNNAMED = "unnamed"  # nothing says what it is
    REGULAR = "regular"  # the current one, unless a lower one is there
    PIECE = "per piece"
    TIER_OF_ONE = "price of one piece in a quantity table"
    WAS = "former price"
    RANGE = "one end of a range of prices"
    FROM = "lowest of several prices"
    WITHOUT_TAX = "without tax"
    WITH_TAX = "with tax"
    OTHER = "not the price of the product"


_SELLING: Final = frozenset({Role.CURRENT, Role.UNNAMED, Role.WITH_TAX})


@dataclass(kw_only=True, slots=True)
class Seen:
    """An amount on the page.

    Attributes:
        fact: its text and price.
        element: the element around its first digit.
        order: of its block.
        marks: of its place.
        role: what it is; `why` in words.
    """

    fact: Fact
    element: Any
    order: int
    marks: int
    role: Role
    why: str = ""


@lru_cache(maxsize=20_000)
def _role_of_classes(classes: str) -> Role | None:
    lower = classes.lower()
    for role, pattern in _CLASS_ROLES:
        if pattern.search(lower):
            return role
    return None


_CLASS_ROLES: Final = (
    (Role.OTHER, phrases.CLASS_OTHER),
    (Role.WAS, phrases.CLASS_WAS),
    (Role.REGULAR, phrases.CLASS_REGULAR),
    (Role.CURRENT, phrases.CLASS_CURRENT),
)


_IN_PARENTHESES: Final = re.compile(r"^\s*\([^()]*\)")
#: Between the two ends of a range.
_TO: Final = re.compile(r"\s*(?:-|\u2013|\u2014|to|bis|à|až|till|until|do|a)\s*")


def prices_in(blocks: Sequence[Block], root: Any) -> list[Seen]:  # noqa: C901 - one loop over the amounts of a page
    """Return the amounts of the blocks in their order, each with its role.

    Args:
        blocks: of a page or a part of it.
        root: classes of elements above it say nothing about an amount.
    """
    seen: list[Seen] = []
    for number, block in enumerate(blocks):
        text = block.text
        if not _DIGIT.search(text):
            continue
        matches = list(_MONEY.finditer(text))
        if not matches and (bare := _bare(block)):
            matches = [bare]
        for place, match in enumerate(matches):
            start = matches[place - 1].end() if place else 0
            end = matches[place + 1].start() if place + 1 < len(matches) else len(text)
            before, after = text[start : match.start()], text[match.end() : end]
            if place:
                before = _IN_PARENTHESES.sub("", before)  # it is about the amount before
            label = _label(blocks, number) if not place and len(before.strip()) < LEAST_WORD else ""
            tail = _tail(blocks, number) if place + 1 == len(matches) and not after.strip() else after
            element, marks = _part_at(block, match)
            found = Seen(
                fact=Fact(field="price", text=_written(match), syntax="page text", place=(element, "::text")),
                element=element,
                order=block.order,
                marks=marks,
                role=Role.UNNAMED,
            )
            is_to = bool(place + 1 < len(matches) and _TO.fullmatch(after.lower()))
            if not tail.strip() and place + 1 == len(matches) and _has_cents_below(blocks, number):
                found.role, found.why = Role.OTHER, "its cents are in another part"
                seen.append(found)
                continue
            is_last = bool(after.strip()) and (place + 1 == len(matches) or bool(_IN_PARENTHESES.match(after)))
            words = f"{label} {before}"[-BEFORE:].lower()
            found.role, found.why = _role(found, root, words, tail[:AFTER].lower(), before, is_last=is_last)
            if (
                is_to
                and found.role is not Role.WAS
                and re.search(r"reduced|\bdown\b|\bwas\b|statt|avant", before.lower())
            ):
                found.role, found.why = Role.WAS, "called a former price"
            elif is_to and found.role is not Role.WAS:
                found.role, found.why = Role.RANGE, "range"
            elif place and seen and seen[-1].why == "range":
                found.role = Role.RANGE
            seen.append(found)
            if len(seen) >= MOST_PRICES:
                return seen
    return seen


def _written(match: re.Match[str]) -> str:
    text = re.sub(rf"{JOINT}?([.,]){JOINT}?", r"\1", match[0])
    grouped = re.search(rf"\d([.,])\d{{3}}{JOINT}", text)
    if grouped:
        text = text.replace(JOINT, "," if grouped[1] == "." else ".")
    return text.replace("\u2013", "-").replace("\u2014", "-").replace(JOINT, " ").strip()


def _bare(block: Block) -> re.Match[str] | None:
    """Return the amount without a currency that is all the text of an element for prices."""
    around = [block.element, *(element for _, element, _ in block.parts[:2])]
    is_price = any(
        re.search("price|prix|preis|amount", f"{each.get('class') or ''} {each.get('itemprop') or ''}".lower())
        for each in around
    )
    return _BARE.fullmatch(block.text) if is_price else None


def _part_at(block: Block, match: re.Match[str]) -> tuple[Any, int]:
    """Return the element of the first digit of an amount, and all that its digits are marked with."""
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    first = start + next(
        (place for place, character in enumerate(match[0][start - match.start() :]) if character.isdigit()), 0
    )
    position, element, marks = 0, block.element, 0
    is_found = False
    for text, each, marked in block.joined():
        position += len(text)
        if position > first:
            if not is_found:
                element, is_found = each, True
            marks |= marked
        if position >= match.end():
            break
    return element, marks


def _label(blocks: Sequence[Block], number: int) -> str:
    """Return the text of the block before, if it is the label of this one."""
    if not number:
        return ""
    block, last = blocks[number], blocks[number - 1]
    text = last.text
    if len(text) > LONGEST_LABEL or last.element.tag in _HEADINGS or _MONEY.search(text):
        return ""
    lower = text.lower()
    if phrases.FROM.search(lower) and _is_below(block.element, last.element):
        return text
    if not text.rstrip().endswith(":") and (phrases.SHIPPING.search(lower) or phrases.OTHER_MONEY.search(lower)):
        return ""  # a badge above the price, such as "Free shipping"
    first, second = last.element.getparent(), block.element.getparent()
    is_near = first is second or first is block.element or last.element is second
    # A cell below a heading of its column, or a term and what it stands for.
    is_near = is_near or (first is not None and second is not None and first.getparent() is second.getparent())
    is_known = bool(phrases.WAS.search(lower) or phrases.MEMBER.search(lower))
    return text if is_near or (is_known and _is_below(block.element, last.element)) else ""


def _is_below(element: Any, label: Any) -> bool:
    """Whether an element and the label before it are in one small part of the page."""
    around = {label, *islice(label.iterancestors(), CLOSE)}
    return element in around or any(each in around for each in islice(element.iterancestors(), CLOSE))


def _has_cents_below(blocks: Sequence[Block], number: int) -> bool:
    """Whether the next block has only two digits, which may be the cents of an amount without any."""
    block = blocks[number]
    if number + 1 >= len(blocks) or re.search(rf"[.,{JOINT}]\d\d\D*$", block.text):
        return False
    parent = blocks[number + 1].element.getparent()
    is_near = parent is block.element or parent is block.element.getparent()
    return is_near and bool(re.fullmatch(r"[.,]?\d\d", blocks[number + 1].text))


def _tail(blocks: Sequence[Block], number: int) -> str:
    """Return the beginning of the next block, if it goes on with this one."""
    if number + 1 >= len(blocks):
        return ""
    text, near = blocks[number + 1].text, blocks[number + 1].element.getparent()
    is_near = near is not None and (near is blocks[number].element.getparent() or near is blocks[number].element)
    goes_on = is_near and _GOES_ON.match(text.lower()) and not _MONEY.search(text)
    return text if goes_on else ""


#: Begins what belongs to the amount above it.
_GOES_ON: Final = re.compile(
    r"\s*(?:/|per\b|pro\b|par\b|je\b|a month|after\b|when\b|with\b|if you\b|using\b|for \d|"
    r"excl|ex\b|incl|inc\b|zzgl|x \d|\()"
)


#: Two words or more.
_NAME: Final = re.compile(r"[^\W\d_]{2}.*[^\w'][^\W\d_]{2}")
_PRICE_WORD: Final = re.compile(r"pri[cxsj]|prezzo|preis|prec|cena")
_OF_OTHER: Final = "crossed out, next to the name of something else"
#: A former price that is more times the price is that of something else, or wrong.
MOST_TIMES: Final = 10


def _role(seen: Seen, root: Any, before: str, after: str, own_text: str, *, is_last: bool) -> tuple[Role, str]:  # noqa: PLR0911, C901, PLR0912 - one table of reasons, in order
    """Return what an amount is, by its tags, the words around it, and its classes."""
    if seen.marks & Mark.STRUCK:
        is_labeled = any(each.search(before) for each in (phrases.WAS, phrases.REGULAR, phrases.CURRENT, _PRICE_WORD))
        return Role.WAS, "crossed out" if is_labeled or not _NAME.search(own_text) else _OF_OTHER
    if not phrases.BUY_OTHERS.search(before):
        before = phrases.BUY.sub("", before)  # the button repeats the price
    sign = before.rstrip()[-1:]
    if (
        sign
        and sign in "+-\u2212\u2013"
        and not before.rstrip()[:-1].rstrip()[-1:].isdigit()
        and (before[-1:] == sign or sign == "+")
    ):
        return Role.OTHER, "a difference"
    if phrases.INSTALLMENT_AFTER.search(after) or phrases.INSTALLMENT_BEFORE.search(before):
        return Role.OTHER, "an installment"
    if phrases.PER_UNIT.search(after) or phrases.PER_UNIT_BEFORE.search(before):
        return Role.OTHER, "per round or unit of measure"
    if phrases.LOWEST_LATELY.search(before):
        return Role.OTHER, "the lowest price of some time"
    if phrases.SHIPPING_AFTER.search(after) or phrases.SHIPPING.search(before):
        return Role.OTHER, "about shipping"
    if phrases.MEMBER.search(before) or phrases.MEMBER_AFTER.search(after):
        return Role.OTHER, "for members or subscribers"
    if phrases.OTHER_MONEY.search(before) or phrases.OTHER_AFTER.search(after):
        return Role.OTHER, "about something else"
    if phrases.CONDITION_AFTER.search(after):
        return Role.OTHER, "on a condition"
    if phrases.SAVING.search(before) or re.match(r"\s*(?:off|rabatt|saved|discount|gespart)\b", after):
        return Role.OTHER, "what is saved"
    if phrases.TIER_OF_ONE.search(before):
        return Role.TIER_OF_ONE, ""
    if phrases.TIER.search(before):
        return Role.OTHER, "for a quantity"
    if phrases.FROM.search(before) or (is_last and phrases.FROM_AFTER.search(after)):
        return Role.FROM, ""
    if is_last and phrases.WAS_AFTER.search(after):
        return Role.WAS, "called a former price"
    classes, own = _classes(seen, root)
    by_class = _role_of_classes(classes)
    former, current = (_last(pattern, before) for pattern in (phrases.WAS, phrases.CURRENT))
    if former > current:
        return Role.WAS, "called a former price"
    if phrases.TAX_OUT.search(after) and phrases.TAX.search(after[:25]):
        return Role.WITHOUT_TAX, ""
    if by_class in (Role.OTHER, Role.WAS):
        closer = _role_of_classes(own)
        return (closer, "") if closer is Role.CURRENT else (by_class, f"its classes: {classes.strip()[:80]}")
    if current >= 0:
        return Role.CURRENT, ""
    if phrases.REGULAR.search(before):
        return Role.REGULAR, ""
    if phrases.PER_PIECE.search(after):
        return Role.PIECE, ""
    if phrases.TAX_IN.search(after):
        return Role.WITH_TAX, ""
    return by_class or Role.UNNAMED, ""


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Return where the last match ends, or -1."""
    return max((match.end() for match in pattern.finditer(text)), default=-1)


#: A class that says what is next to the price, not what it is: "with-list-price".
_HAVING: Final = re.compile(r"(?<!\S)(?:with|has|no|without)-\S*")


#: Parts that compare several products: "compare" is not about a former price there.
_COMPARING: Final = frozenset({"table", "tbody", "thead", "tr", "td", "th", "ul", "ol", "section", "article"})


def _classes(seen: Seen, root: Any) -> tuple[str, str]:
    """Return the classes, ids and names of the elements around an amount, and those of the closest that has any."""
    found: list[str] = []
    element, levels = seen.element, 0
    while (
        element is not None and levels < LEVELS and element is not root and element.tag not in {"body", "main", "form"}
    ):
        names = [_HAVING.sub("", element.get("class") or ""), element.get("id"), element.get("data-price-type")]
        if element.tag in _COMPARING:
            names = [re.sub(r"compar\w*", "comparing", name or "", flags=re.IGNORECASE) for name in names]
        named = " ".join(filter(None, names)).strip()
        tag = element.tag if "-" in element.tag else ""
        if named or tag:
            found.append(f"{tag} {named}".strip())
        element, levels = element.getparent(), levels + 1
    return " ".join(found), found[0] if found else ""


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
    selling = [each for each in seen if each.role in _SELLING]
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
    doubtful = ("its classes", "what is saved", "about something else") if is_weak else ("its classes",)
    hidden = [
        each
        for each in seen
        if each.role is Role.OTHER and each.why.startswith(doubtful) and not _REPEATED.search(each.why)
    ]
    if not is_named and (lower_one := next((each for each in hidden if _is_near_below(each.fact, price)), None)):
        return Choice(problem=f"the page shows {price} and {lower_one.fact.value}, and either may be the price")
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
        and each.why != _OF_OTHER
    ]
    return former[0] if len({each.fact.value for each in former}) == 1 else None
