"""Where the product of a page is: from its title to the button that puts it into the cart."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harvester.scraping.reader import phrases, stock_phrases
from harvester.scraping.reader.document import Block, Mark, text_of
from harvester.scraping.reader.products import Title, closeness
from harvester.scraping.reader.visible import Role, Seen

#: Blocks after the button, and without a button after the title, that are still about the product.
NEAR: Final = 15
NEAR_TITLE: Final = 40
SUBTITLE: Final = 3
#: Elements above title and button in which a price is looked for if there is none between them.
CLIMB: Final = 3
MOST_BUTTONS: Final = 60
#: Headings above other products that are looked for.
MOST_HEADINGS: Final = 50
#: Characters of a heading, with the blanks of its source.
LONGEST_HEADING: Final = 120
LONGEST_BUTTON: Final = 80

_BUY_NAMES: Final = re.compile(
    r"add[-_]?to[-_]?(?:cart|basket|bag)|addtocart|addtobasket|btn-cart|button-cart|product-form__(?:submit|cart)|buy-?button|buybox__button|"
    r"single_add|add-to-cart|productform-submit|cart-button"
)
#: "Add" alone buys in a form that goes to the cart.
_ADD: Final = re.compile(r"^\W*add(?:\sto\s\w+)?$")
_CART: Final = re.compile(r"/(?:cart|basket|bag)\b")
_HEADINGS: Final = frozenset({"h2", "h3"})
_FIRST_OR_LAST: Final = re.compile(r"\b(?:first|last|odd|even|active|slick-\w+|swiper-slide-\w+|\w*-?\d+)\b")


@dataclass(kw_only=True)
class Button:
    """A button that buys, or says that it cannot.

    Attributes:
        element, order: where it is.
        text: in lower case.
        is_enabled: it can be pressed.
    """

    element: Any
    order: int
    text: str
    is_enabled: bool


@dataclass(kw_only=True)
class Region:
    """The part of a page that is about its product.

    Attributes:
        root: the element around title and button.
        first, last: orders of the blocks of title and button.
        end: order of the last block that can be about the product.
        button: the button, if there is one.
        blocks: those of the page without other products below it.
    """

    root: Any
    first: int
    last: int
    end: int
    button: Button | None
    blocks: list[Block]

    def prices(self, seen: Sequence[Seen]) -> list[Seen]:
        """Return the amounts next to title and button: between them, or else near them."""
        root, parents = self.root, CLIMB if self.button else CLIMB * 2
        fixed = [each for each in seen if not each.marks & Mark.STICKY] or list(seen)
        between = [each for each in fixed if self.first <= each.order <= self.last and _is_inside(each.element, root)]
        if any(each.role not in _NO_PRICES for each in between):
            return between
        while True:
            found = [
                each for each in fixed if self.first - NEAR <= each.order <= self.end and _is_inside(each.element, root)
            ]
            if any(each.role not in _NO_PRICES for each in found) or not parents or root.getparent() is None:
                return found
            root, parents = root.getparent(), parents - 1

    def near(self) -> list[Block]:
        """Return the blocks whose amounts matter: those near title and button, and of bars that repeat them."""
        return [
            block
            for block in self.blocks
            if self.first - NEAR <= block.order <= self.end + 1 or block.parts[0][2] & Mark.STICKY
        ]

    def above(self) -> list[Block]:
        """Return the blocks right above the title."""
        return [block for block in self.blocks if self.first - NEAR <= block.order < self.first]

    def texts(self) -> list[Block]:
        """Return the blocks that may say whether the product can be bought."""
        return [block for block in self.blocks if self.first <= block.order <= self.end]


def _is_inside(element: Any, root: Any) -> bool:
    return element is root or any(each is root for each in element.iterancestors())


_NO_PRICES: Final = frozenset({Role.OTHER, Role.WAS})


def find_region(blocks: list[Block], buttons: list[tuple[Any, int, int]], title: Title) -> Region | None:
    """Return where the product is; none if the title is not among the visible text."""
    if title.element is None:
        return None
    inside = set(title.element.iter())
    first = next(
        (block.order for block in blocks if block.element in inside or any(part[1] in inside for part in block.parts)),
        None,
    )
    if first is None:
        return None
    own = _without_others(blocks, first, title)
    orders = {block.order for block in own} | {block.order for block in blocks if block.order <= first}
    candidates = [
        found
        for each in buttons[:500]
        if (found := _button(*each)) and (each[1] in orders or each[1] > blocks[-1].order)
    ]
    main = [each for each in candidates[:MOST_BUTTONS] if not _is_of_others(each, candidates, title)]
    after = [each for each in main if each.order >= first]
    button = after[0] if after else main[-1] if main else None
    if button is None:
        # A heading right after the title may be a brand or a subtitle.
        later = [block for block in own if block.order > first + SUBTITLE and block.element.tag in _HEADINGS]
        end = later[0].order - 1 if later else first + NEAR_TITLE
        end = min(end, first + NEAR_TITLE)
        return Region(root=title.element.getparent(), first=first, last=end, end=end, button=None, blocks=own)
    around = {title.element, *title.element.iterancestors()}
    root = next(each for each in (button.element, *button.element.iterancestors()) if each in around)
    first, last = sorted((first, button.order))
    return Region(root=root, first=first, last=last, end=last + NEAR, button=button, blocks=own)


def _without_others(blocks: list[Block], first: int, title: Title) -> list[Block]:
    """Return the blocks without those below a heading of other products."""
    left: list[Block] = []
    until: set[Any] = set()
    found = 0
    for number, block in enumerate(blocks):
        if block.element in until:
            continue
        until = set()
        # No part is empty, so many parts are long.
        is_short = block.order > first and len(block.parts) <= LONGEST_HEADING
        is_short = is_short and sum(len(part[0]) for part in block.parts) <= LONGEST_HEADING
        text = block.plain.lower() if is_short else ""
        if text and found < MOST_HEADINGS and phrases.OTHERS.search(text) and number + 1 < len(blocks):
            found += 1
            following = blocks[number + 1].element
            container = next(
                (each for each in block.element.iterancestors() if each in set(following.iterancestors())), None
            )
            if container is not None and title.element not in set(container.iter()):
                until = set(container.iter())
            else:
                # The heading is next to the products: what follows it is theirs.
                branch = next(
                    (each for each in (block.element, *block.element.iterancestors()) if each.getparent() is container),
                    block.element,
                )
                until = {each for sibling in branch.itersiblings() for each in sibling.iter()}
            continue
        left.append(block)
    return left


def _button(element: Any, order: int, marks: int) -> Button | None:
    """Return a button that buys one product, or says that it is sold out."""
    kind = (element.get("type") or "").lower()
    if element.tag == "input" and kind not in {"submit", "button", "image"}:
        return None
    text = (text_of(element) if element.tag != "input" else element.get("value") or element.get("alt") or "").lower()
    names = " ".join(
        element.get(name) or "" for name in ("class", "id", "name", "data-action", "data-button-action")
    ).lower()
    text = text or (element.get("aria-label") or element.get("title") or "").lower()
    if len(text) > LONGEST_BUTTON or stock_phrases.BUY_OTHERS.search(text) or marks & Mark.STICKY:
        return None
    says_so = stock_phrases.BUY.search(text) or stock_phrases.PRE_ORDER_BUTTON.search(text)
    is_named = bool(_BUY_NAMES.search(names))
    if _ADD.search(text):
        form = next(element.iterancestors("form"), None)
        says_so = says_so or (_CART.search((form.get("action") or "").lower()) if form is not None else None)
    is_sold_out = element.tag != "a" and stock_phrases.SOLD_OUT_BUTTON.search(text)
    if not says_so and not is_sold_out and not (is_named and element.tag != "a"):
        return None
    if "wish" in names or "compare" in names or "quickview" in names:
        return None
    return Button(element=element, order=order, text=text, is_enabled=is_enabled(element))


def is_enabled(element: Any) -> bool:
    """Whether a button can be pressed."""
    is_disabled = element.get("disabled") is not None or element.get("aria-disabled") == "true"
    return not is_disabled and "disabled" not in (element.get("class") or "").lower().split()


def _is_of_others(button: Button, candidates: Sequence[Button], title: Title) -> bool:
    """Whether a button is in one of several cards alike, or in a card with a linked title of its own."""
    path = [button.element, *button.element.iterancestors()][::-1]
    title_path = {title.element, *title.element.iterancestors()}
    for other in candidates[:MOST_BUTTONS]:
        if other is button:
            continue
        others = [other.element, *other.element.iterancestors()][::-1]
        for own, its in zip(path, others, strict=False):
            if own is its:
                continue
            is_card = own is not button.element and its is not other.element
            if is_card and own not in title_path and own.tag == its.tag and _shape(own) == _shape(its):
                return True
            break
    branch = next((each for each in path if each not in title_path), button.element)
    linked = branch.xpath("(.//h2|.//h3|.//h4|.//h5|.//h6)[.//a[@href] or ancestor::a[@href]]")[:3]
    return any(text_of(each) and not closeness(text_of(each), title.text) for each in linked)


def _shape(element: Any) -> str:
    return " ".join(_FIRST_OR_LAST.sub("", element.get("class") or "").split())
