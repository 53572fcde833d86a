"""The prices that a person sees on a page, and which of them is that of the product."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from harvester.kernel.currencies import MINOR_UNITS, SIGNS
from harvester.scraping.reader import phrases, stock_phrases
from harvester.scraping.reader.document import JOINT, Block, Mark
from harvester.scraping.reader.facts import Fact

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
_NUMBER: Final = (
    rf"(?:\d{{1,3}}(?:[.,'\u2019\xa0\u202f]\d{{3}})+(?!\d)|\d{{1,2}}(?:,\d\d)+,\d{{3}}(?!\d)|\d{{1,8}}){_CENTS}?"
)
_SPACED: Final = rf"\d{{1,3}}(?: \d{{3}})+(?!\d){_CENTS}?"
_MONEY: Final = re.compile(
    rf"(?P<sign>{_SIGN})\s?(?:(?:{_SIGN})\s?)?{JOINT}?(?P<first>{_NUMBER})(?![\d%]|[.,]\d)(?:\s?(?P<code>(?:{'|'.join(sorted(MINOR_UNITS))}))(?![A-Za-z]))?"
    # Euros before the sign and cents after it.
    rf"|(?<![\d.,A-Za-z-])(?P<euros>\d{{1,3}}(?:[.\xa0\u202f ]\d{{3}})+|\d{{1,6}})"
    r"\s?\u20ac\s?(?P<cents>\d\d)(?![\d.,%]|\s?[\w\u20ac])"
    rf"|(?<![\d.,A-Za-z-])(?P<second>{_SPACED}|{_NUMBER})\s?(?:(?P<after>{_SIGN_AFTER})(?![A-Za-z\d]))"
    # A whole amount without a currency, as in Scandinavia: 1 290:- or 199,-
    rf"|(?<![\d.,A-Za-z-])(?P<whole>\d{{1,3}}(?:[. \xa0\u202f]\d{{3}})+|\d{{1,6}})\s?[:,][-\u2013\u2014](?![\w-])"
)
BARE: Final = re.compile(rf"\s*(?:\d{{1,3}}(?:[.,]\d{{3}})+|\d{{1,6}})(?:[.,]\d\d|{JOINT}[.,]?{JOINT}?\d\d)\s*")
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


SELLING: Final = frozenset({Role.CURRENT, Role.UNNAMED, Role.WITH_TAX})


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


def prices_in(  # noqa: C901 - one loop over the amounts of a page
    blocks: Sequence[Block], around: Collection[Any] = (), *, is_amount: bool = False
) -> list[Seen]:
    """Return the amounts of the blocks in their order, each with its role.

    Args:
        blocks: of a page or a part of it.
        around: elements around the title; what their classes say is not about one amount.
        is_amount: they are a place for the price and say nothing but one amount, which needs no currency.
    """
    seen: list[Seen] = []
    for number, block in enumerate(blocks):
        text = block.text
        if not _DIGIT.search(text):
            continue
        matches = list(_MONEY.finditer(text))
        if not matches and (bare := BARE.fullmatch(text) if is_amount else _bare(block)):
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
            found.role, found.why = _role(found, around, words, tail[:AFTER].lower(), before, is_last=is_last)
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
            elif place and seen[-1].why == SHIPPING and found.role is Role.UNNAMED and not _ENDS.search(before):
                found.role, found.why = Role.OTHER, SHIPPING  # "shipping from $8, express $15"
            seen.append(found)
            if len(seen) >= MOST_PRICES:
                return seen
    return seen


def _written(match: re.Match[str]) -> str:
    if (split := match.groupdict()).get("cents"):
        return f"{split['euros']},{split['cents']} \u20ac"
    if split.get("whole"):
        return f"{split['whole']},-"
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
    return BARE.fullmatch(block.text) if is_price else None


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
OF_OTHER: Final = "next to the name of something else"
SAVED: Final = "what is saved"
SAVED_NOW: Final = "what is saved at once"
#: "Save 20%: $80" may be what is left as well as what is saved.
_AT_ONCE: Final = re.compile(r"instant|\d\s?%\s?(?:off|rabatt)?\s?[:=\-\u2013]?\s*$")
SHIPPING: Final = "about shipping"
INSTALLMENT: Final = "an installment"
PER_UNIT: Final = "per round or unit of measure"
_ENDS: Final = re.compile(r"[.;|\u2022]")
#: Between the label of a former price and its amount: anything else is the name of another thing.
_OF_LABELS: Final = re.compile(
    r"(?:\W|\d|\b(?:price|value|was|is|at|of|to|only|from|each|the|a|prix|preis|prezzo|precio|cena|pris|prijs|lei)\b)*"
)
A_TOTAL: Final = "a total"
MEMBERS: Final = "for members or subscribers"
SOMETHING_ELSE: Final = "about something else"


def _role(  # noqa: PLR0911, C901, PLR0912 - one table of reasons, in order
    seen: Seen, around: Collection[Any], before: str, after: str, own_text: str, *, is_last: bool
) -> tuple[Role, str]:
    """Return what an amount is, by its tags, the words around it, and its classes."""
    if seen.marks & Mark.STRUCK:
        is_labeled = any(each.search(before) for each in (phrases.WAS, phrases.REGULAR, phrases.CURRENT, _PRICE_WORD))
        return Role.WAS, "crossed out" if is_labeled or not _NAME.search(own_text) else OF_OTHER
    if not stock_phrases.BUY_OTHERS.search(before):
        before = stock_phrases.BUY.sub("", before)  # the button repeats the price
    sign = before.rstrip()[-1:]
    if (
        sign
        and sign in "+-\u2212\u2013"
        and not before.rstrip()[:-1].rstrip()[-1:].isdigit()
        and (before[-1:] == sign or sign == "+")
    ):
        return Role.OTHER, "a difference"
    if phrases.INSTALLMENT_AFTER.search(after) or phrases.INSTALLMENT_BEFORE.search(before):
        return Role.OTHER, INSTALLMENT
    if phrases.PER_UNIT.search(after) or phrases.PER_UNIT_BEFORE.search(before):
        return Role.OTHER, PER_UNIT
    if phrases.MEMBER.search(before):
        return Role.OTHER, MEMBERS
    if phrases.MEMBER_AFTER.search(after):
        return Role.OTHER, "followed by words about members or subscribers"
    if phrases.NET.search(before):
        return Role.CURRENT, ""
    if phrases.LOWEST_LATELY.search(before):
        return Role.OTHER, "the lowest price of some time"
    if phrases.SHIPPING_AFTER.search(after) or phrases.SHIPPING.search(before):
        return Role.OTHER, SHIPPING
    if phrases.TOTAL.search(before):
        return Role.OTHER, A_TOTAL
    if phrases.OTHER_MONEY.search(before) or phrases.OTHER_AFTER.search(after):
        return Role.OTHER, SOMETHING_ELSE
    if phrases.CONDITION_AFTER.search(after):
        return Role.OTHER, "on a condition"
    if phrases.SAVING.search(before) or re.match(r"\s*(?:off|rabatt|saved|discount(?!\sprice)|gespart)\b", after):
        return Role.OTHER, SAVED_NOW if _AT_ONCE.search(before) else SAVED
    if phrases.TIER_OF_ONE.search(before):
        return Role.TIER_OF_ONE, ""
    if phrases.TIER.search(before):
        return Role.OTHER, "for a quantity"
    if phrases.FROM.search(before) or (is_last and phrases.FROM_AFTER.search(after)):
        return Role.FROM, ""
    if is_last and phrases.WAS_AFTER.search(after):
        return Role.WAS, "called a former price"
    classes, own = _classes(seen, around)
    by_class = _role_of_classes(classes)
    former, current = (_last(pattern, before) for pattern in (phrases.WAS, phrases.CURRENT))
    if former > current:
        return Role.WAS, "called a former price" if _is_of_this(before[former:], after) else OF_OTHER
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


def _is_of_this(between: str, after: str) -> bool:
    """Whether a former price is that of the product, and not of another thing or in another shop."""
    return bool(_OF_LABELS.fullmatch(between)) and not re.match(r"\s*(?:at|bei|chez|elsewhere)\b", after)


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Return where the last match ends, or -1."""
    return max((match.end() for match in pattern.finditer(text)), default=-1)


#: A class that says what is next to the price, not what it is: "with-list-price".
_HAVING: Final = re.compile(r"(?<!\S)(?:with|has|no|without)-\S*")


#: Parts that compare several products: "compare" is not about a former price there.
_COMPARING: Final = frozenset({"table", "tbody", "thead", "tr", "td", "th", "ul", "ol", "section", "article"})


def _classes(seen: Seen, around: Collection[Any]) -> tuple[str, str]:
    """Return the classes, ids and names of the elements around an amount, and those of the closest that has any."""
    found: list[str] = []
    element, levels = seen.element, 0
    while (
        element is not None
        and levels < LEVELS
        and element not in around
        and element.tag not in {"body", "main", "form"}
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
