"""The tree of a page, and the text that a person sees on it, in blocks in the order of the page."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from lxml import etree
from w3lib.encoding import html_to_unicode
from w3lib.html import get_base_url

#: Bytes of a page that are read, and elements of it that are visited.
MOST_BYTES: Final = 10_000_000
MOST_ELEMENTS: Final = 60_000
#: Characters of one block of text that are looked at.
LONGEST_BLOCK: Final = 2_000
#: Characters of the classes of one element that are looked at.
LONGEST_CLASSES: Final = 1_000
#: Different combinations of tag and classes up to which a selector with classes is made.
MOST_CLASSES: Final = 5_000
#: Put between two digits of different elements: "19" and small "99" next to it.
JOINT: Final = "\x1f"


class Mark:
    """What a part of a page is, by its tags and classes: bits, because every element of a page has some."""

    HIDDEN: Final = 1
    OTHERS: Final = 2  # other products, menus, reviews, dialogs
    STRUCK: Final = 4
    PICKER: Final = 8  # where a variant is chosen
    STICKY: Final = 16  # a bar that repeats title, price and button
    SPOKEN: Final = 32  # for screen readers only


#: Parts that never say anything about the product, by tag.
_SKIPPED: Final = frozenset(
    [
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "head",
        "iframe",
        "object",
        "video",
        "audio",
        "select",
        "textarea",
        "datalist",
        "canvas",
        "math",
        "footer",
        "nav",
        "dialog",
    ]
)
_BLOCKS: Final = frozenset(
    [
        "div",
        "p",
        "li",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "td",
        "th",
        "section",
        "article",
        "main",
        "aside",
        "header",
        "form",
        "fieldset",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "button",
        "br",
        "hr",
        "figure",
        "figcaption",
        "address",
        "blockquote",
        "details",
        "summary",
        "pre",
        "body",
    ]
)
_STRUCK: Final = frozenset({"del", "s", "strike"})
_HIDING: Final = frozenset(
    {
        "hidden",
        "hide",
        "d-none",
        "is-hidden",
        "u-hidden",
        "ng-hide",
        "display-none",
        "js-hidden",
        "no-display",
        "x-hidden",
    }
)
_SHOWN_WIDE: Final = re.compile(
    r"(?:^|\s)(?:\w+:(?:block|flex|inline|grid|inline-\w+|table)|d-\w+-(?:block|flex|inline|inline-\w+|grid))(?:\s|$)"
)
_THINGS: Final = (
    r"(?:[-_]{1,2}(?:products?|items?|list|lists|section|carousel|slider|wrapper|container|block|grid|area|content|inner|"
    r"row|box|holder|tabs?|widget|panel|col|component|module|drawer|form|popup|modal|main|root))*"
)
_OTHERS: Final = re.compile(
    r"(?:^|\s)(?:[\w-]*[-_])?(?:products?[-_])?(?:related|upsells?|up-?sell(?:s|ing)?|cross-?sell(?:s|ing)?|recommend(?:ed|ations?|er)|recently|"
    r"recent(?:ly)?-?viewed|viewed|similar|also-?(?:bought|like|viewed|purchased)|you-?may|frequently|fbt|"
    r"bundles?|accessor(?:y|ies)|mini-?cart|cart-?drawer|side-?cart|cart-?dropdown|cart-?preview|cart-?popup|quick-?view|"
    r"modal|popup|offcanvas|off-canvas|newsletter|reviews?|testimonials?|site-?footer|footer|breadcrumbs?|mega-?menu|main-?menu|"
    r"site-?nav|navbar|nav|navigation|comparison|blog|instagram|announcement(?:-bar)?|top-?bar|promo-?bar|cookies?|"
    r"best-?sellers?|trending|complementary|pairs-?with|look-?book|search-?results?|autocomplete|"
    r"warranty|protection-?plan|extend-?offer|shipping-?bar|free-?shipping-?bar|loyalty|rewards?|gift-?wrap)"
    + _THINGS
    + r"(?=\s|$)"
)
_PICKER: Final = re.compile(
    r"(?:^|[\s_-])(?:swatch(?:es)?|variants?|variations?|options?|sizes?|configurable|selling-?plans?)(?=[\s_-]|$)"
)
_STICKY: Final = re.compile(r"(?:^|[\s_-])(?:sticky|floating|fixed)[\w-]*(?:cart|atc|buy|add|product|bar)")
_SPOKEN: Final = re.compile(
    r"(?:^|[\s_-])(?:visually-?hidden|sr-?only|screen-?reader(?:-text)?|u-hiddenvisually|is-sronly|assistive-text)(?=[\s_-]|$)"
)
_HIDING_STYLE: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])"
)


@lru_cache(maxsize=20_000)
def _marks_of(classes: str) -> int:
    """Return what the classes and the id of an element say."""
    marks = 0
    lower = classes.lower()
    if not _HIDING.isdisjoint(lower.split()) and not _SHOWN_WIDE.search(lower):
        marks |= Mark.HIDDEN
    if _OTHERS.search(lower):
        marks |= Mark.OTHERS
    if "strike" in lower or "line-through" in lower or "linethrough" in lower or "crossed" in lower:
        marks |= Mark.STRUCK
    if _PICKER.search(lower):
        marks |= Mark.PICKER
    if _STICKY.search(lower):
        marks |= Mark.STICKY
    if _SPOKEN.search(lower):
        marks |= Mark.SPOKEN
    return marks


class Block:
    """A run of text without a break in it.

    Attributes:
        element: the block-level element around it.
        parts: the texts, each with its element and the marks of its place.
        order: its place in the page.
    """

    __slots__ = ("_plain", "_text", "element", "order", "parts")

    def __init__(self, element: Any, order: int) -> None:
        self.element = element
        self.order = order
        self.parts: list[tuple[str, Any, int]] = []
        self._text: str | None = None
        self._plain: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            parts = self.parts
            one = (
                " ".join(parts[0][0][:LONGEST_BLOCK].split())
                if len(parts) == 1
                else "".join(text for text, _, _ in self.joined())
            )
            self._text = one[:LONGEST_BLOCK]
        return self._text

    @property
    def plain(self) -> str:
        if self._plain is None:
            self._plain = self.text if len(self.parts) == 1 else " ".join(self.text.replace(JOINT, "").split())
        return self._plain

    def joined(self) -> Iterator[tuple[str, Any, int]]:
        """Return the parts with what separates them."""
        last, is_blank = "", False
        for text, element, marks in self.parts:
            found = " ".join(text[:LONGEST_BLOCK].split())
            is_blank = is_blank or text[:1].isspace()
            if not found:
                continue
            is_number = last.isdigit() and found[:1].isdigit()
            if is_number and (not is_blank or _are_cents(found, element)):
                lead = JOINT
            else:
                lead = " " if last and (is_blank or (_is_wordlike(last) and _is_wordlike(found[:1]))) else ""
            yield lead + found, element, marks
            last, is_blank = found[-1], text[-1:].isspace()


class Document:
    """A parsed page.

    Attributes:
        root: the tree.
        base_url: what relative addresses are relative to.
        is_cut: the tree or the text was too large or too deep to be read whole.
    """

    def __init__(self, body: bytes, content_type: str, url: str) -> None:
        _, text = html_to_unicode(content_type or None, body[:MOST_BYTES])
        encoded = text.encode("utf-8", "replace")
        # Five times as fast as looking for the pattern; few pages have any.
        if len(encoded.translate(None, _CONTROL_BYTES)) != len(encoded):
            text = _CONTROLS.sub(" ", text.replace("\0", ""))
        # The parser drops what follows the end of the document; browsers do not.
        text = _ENDS.sub("", text)
        parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
        self.root: Any = None
        with suppress(etree.XMLSyntaxError):  # it has no markup
            self.root = etree.fromstring(text.encode("utf-8", "replace"), parser) if text.strip() else None
        last = parser.error_log.last_error
        self.is_cut = len(body) > MOST_BYTES or bool(last and "depth" in last.message)
        if self.root is not None and self.root.xpath("count(//*)") > MOST_ELEMENTS:
            self.is_cut = True
        self.base_url = get_base_url(text, url) if self.root is not None else url
        self._unique: Counter[tuple[Any, str]] | None = None

    def blocks(  # noqa: C901 - one loop over the tree, which every page pays for
        self, root: Any, protected: Collection[Any] = (), *, buttons: list[tuple[Any, int, int]] | None = None
    ) -> list[Block]:
        """Return the visible blocks below an element in the order of the page.

        Args:
            root: where to begin.
            protected: elements that are visited whatever their classes say: those around the title.
            buttons: receives the buttons, each with the order of its block and the marks of its place.
        """
        blocks = [Block(root, 0)]
        current = blocks[0]
        # What is still to be visited, the next one last: an element, the marks and the element around it, or its end.
        stack: list[tuple[Any, int, Any, bool]] = [(root, 0, None, False)]
        while stack:
            element, marks, parent, is_end = stack.pop()
            tag = element.tag
            if not is_end:
                own = marks | self._marks(element, tag) if tag not in _SKIPPED else Mark.HIDDEN
                if own & _UNSEEN and element in protected:
                    own &= ~_UNSEEN
                if not own & _UNSEEN:
                    if tag in _BLOCKS:
                        current = _next(blocks, element)
                    if buttons is not None and tag in _BUTTONS and _is_button(element, tag):
                        buttons.append((element, current.order, own))
                        if tag == "input":
                            current.parts.append(("", element, own))  # its place is not that of the text after it
                    if (text := element.text) and (current.parts or not text.isspace()):
                        current.parts.append((text, element, own))
                    children = element[:]
                    if children:
                        stack.append((element, marks, parent, True))
                        children.reverse()
                        stack += [(child, own, element, False) for child in children]
                        continue
                    is_end = True
            if is_end and tag in _BLOCKS:
                current = _next(blocks, parent)
            if (text := element.tail) and element is not root and (current.parts or not text.isspace()):
                current.parts.append((text, parent, marks))
        return [block for block in blocks if block.parts]

    def _marks(self, element: Any, tag: str) -> int:
        classes = (element.get("class") or "")[:LONGEST_CLASSES]
        name = (element.get("id") or "")[:LONGEST_CLASSES]
        marks = _marks_of(f"{classes or ''} {name or ''}") if classes or name else 0
        if tag in _STRUCK:
            marks |= Mark.STRUCK
        elif tag in {"label", "fieldset"} or tag.startswith("variant-"):
            marks |= Mark.PICKER
        if element.get("hidden") is not None or (element.get("aria-hidden") == "true" and tag in _BLOCKS):
            marks |= Mark.HIDDEN
        style = element.get("style")
        if style:
            style = style.lower()
            if _HIDING_STYLE.search(style):
                marks |= Mark.HIDDEN
            if "line-through" in style:
                marks |= Mark.STRUCK
        if classes and "price__" in classes:
            marks |= _dawn_marks(element, classes)
        return marks

    def is_seen(self, element: Any) -> bool:
        """Whether an element is where people look: not hidden, not among other things, not in a bar that sticks."""
        unseen = _UNSEEN | Mark.STICKY
        return not any(self._marks(each, each.tag) & unseen for each in (element, *element.iterancestors()))

    def place_of(self, element: Any) -> str:
        """Return a CSS selector that finds this element of the page and no other."""
        if self._unique is None:
            named = self.root.xpath("descendant-or-self::*[@class or @id]")
            self._unique = Counter((each.tag, each.get("class")) for each in named if each.get("class"))
            self._unique.update(("#", each.get("id")) for each in named if each.get("id"))
        steps: list[str] = []
        for node in (element, *element.iterancestors()):
            name, classes = node.get("id"), node.get("class") or ""
            if name and _NAME.fullmatch(name) and self._unique[("#", name)] == 1:
                return " > ".join([f"#{name}", *steps])
            words = classes.split() if len(self._unique) <= MOST_CLASSES else []
            if words and self._unique[(node.tag, classes)] == 1 and all(map(_NAME.fullmatch, words)):
                own = f"{node.tag}." + ".".join(words)
                # Another element may have these classes and more.
                if self._count(node.tag, set(words)) == 1:
                    return " > ".join([own, *steps])
            before = sum(1 for _ in node.itersiblings(node.tag, preceding=True))
            steps.insert(0, f"{node.tag}:nth-of-type({before + 1})" if node.getparent() is not None else node.tag)
        return " > ".join(steps)

    def _count(self, tag: str, words: set[str]) -> int:
        assert self._unique is not None  # noqa: S101 - for the type checker
        return sum(
            count for (name, classes), count in self._unique.items() if name == tag and words <= set(classes.split())
        )


_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CONTROL_BYTES: Final = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r")
_ENDS: Final = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
_UNSEEN: Final = Mark.HIDDEN | Mark.OTHERS
_CLICKED: Final = re.compile("button|btn|cart|buy|basket|add-?to-?bag")
_BUTTONS: Final = frozenset({"button", "input", "a", "div", "span"})
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_-]*")


def _is_button(element: Any, tag: str) -> bool:
    if tag in {"div", "span"}:
        return element.get("role") == "button"
    return tag != "a" or bool(_CLICKED.search(f"{element.get('class')} {element.get('role')}".lower()))


def is_picker(element: Any) -> bool:
    """Whether an element lets people choose a variant."""
    is_tag = element.tag in {"label", "fieldset"} or str(element.tag).startswith("variant-")
    return is_tag or bool(_marks_of(f"{element.get('class') or ''} {element.get('id') or ''}") & Mark.PICKER)


def _next(blocks: list[Block], element: Any) -> Block:
    """Return a new block, or the last one if nothing is in it yet."""
    last = blocks[-1]
    if last.parts:
        last = Block(element, last.order + 1)
        blocks.append(last)
    last.element = element
    return last


def _dawn_marks(element: Any, classes: str) -> int:
    """Return what is hidden in the price of Shopify's basic theme, which shows its parts by a class around them."""
    around = next(
        (each.get("class") for each in element.iterancestors() if "price" in (each.get("class") or "").split()), ""
    )
    words, shown = set(classes.split()), set(around.split())
    is_hidden = bool(
        (words & {"price__badge-sold-out", "price__badge--sold-out"} and "price--sold-out" not in shown)
        or (words & {"price__badge-sale", "price__badge--sale"} and "price--on-sale" not in shown)
        or ("price__sale" in words and "price--on-sale" not in shown)
        or ("price__regular" in words and "price--on-sale" in shown)
    )
    return Mark.HIDDEN if is_hidden else 0


#: Signs next to which a word begins: "Price" and "$20" of two elements are two words.
_SIGNS: Final = frozenset("$€£¥₹₺₽₴₪₫₱₦₩฿₡₲₵₸")


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or character in _SIGNS


_TWO_DIGITS: Final = re.compile(r"\d\d")
_CENTS: Final = re.compile("(?<!per)cent|fraction|decimal|superscript")


def _are_cents(text: str, element: Any) -> bool:
    """Whether two digits are the cents of the amount before them although there is a blank between."""
    return bool(_TWO_DIGITS.fullmatch(text)) and (
        element.tag == "sup" or bool(_CENTS.search((element.get("class") or "").lower()))
    )


def is_inside(element: Any, root: Any) -> bool:
    """Whether an element is another one or below it."""
    return element is root or any(each is root for each in element.iterancestors())


def text_of(element: Any) -> str:
    """Return the text of an element on one line, hidden or not; a long one only in part."""
    texts, length = [], 0
    for text in element.itertext():
        texts.append(text)
        length += len(text)
        if length > LONGEST_BLOCK:
            break
    return " ".join("".join(texts)[:LONGEST_BLOCK].split())


def key_of(text: str) -> str:
    """Return the letters and digits of a text in lower case, by which two titles are compared."""
    return "".join(character for character in text.casefold() if character.isalnum())
