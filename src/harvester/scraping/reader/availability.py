"""Whether a page says that its product can be bought."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from harvester.kernel.stock import Availability, Stock, read_stock
from harvester.scraping.reader import stock_phrases
from harvester.scraping.reader.document import Mark, is_picker
from harvester.scraping.reader.facts import Fact
from harvester.scraping.reader.region import Region
from harvester.scraping.site import Site

#: Characters of a text about stock.
LONGEST_PHRASE: Final = 120
SHORTEST_PHRASE: Final = 4
#: Words of schema.org and of catalogs, letters only.
_WORDS: Final = {
    **dict.fromkeys(("instock", "limitedavailability", "onlineonly"), Availability.IN_STOCK),
    **dict.fromkeys(("outofstock", "soldout", "discontinued", "instoreonly", "oos"), Availability.OUT_OF_STOCK),
    **dict.fromkeys(("backorder", "preorder", "presale"), Availability.BACKORDER),
}
#: Classes of WooCommerce and others on the element around the product, or on the text about stock.
CLASS_WORDS: Final = {
    **dict.fromkeys(("instock", "in-stock"), Availability.IN_STOCK),
    **dict.fromkeys(("outofstock", "out-of-stock", "soldout", "sold-out"), Availability.OUT_OF_STOCK),
    **dict.fromkeys(("onbackorder", "available-on-backorder", "backorder"), Availability.BACKORDER),
}
#: Classes of Magento next to the class "stock".
_OF_STOCK: Final = {"available": Availability.IN_STOCK, "unavailable": Availability.OUT_OF_STOCK}
#: Signs and letters of icon fonts before a text.
_ICONS: Final = re.compile(r"^[^\w\s(+\-\u2212]+\s*")
#: The kernel's reader of stock cells is asked only about texts with one of these words.
_ABOUT_STOCK: Final = re.compile(r"stock|avail|sold|order|inventory|\bleft\b|on hand|discontinued")


def read_word(text: str) -> Availability | None:
    """Return what a word of structured data means."""
    word = re.sub(
        "[^a-z]", "", text.strip().rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1].removeprefix("schema:").lower()
    )
    return _WORDS.get(word)


def read_phrase(text: str, site: Site) -> Availability | None:
    """Return what a short text says about this product; none if it says nothing certain."""
    lower = _ICONS.sub("", " ".join(text.lower().split()))
    if not lower or len(lower) > LONGEST_PHRASE:
        return None
    own = {
        meaning
        for phrases_of_site, meaning in (
            (site.in_stock, Availability.IN_STOCK),
            (site.out_of_stock, Availability.OUT_OF_STOCK),
            (site.backorder, Availability.BACKORDER),
        )
        if any(phrase in lower for phrase in phrases_of_site)
    }
    if own:
        return own.pop() if len(own) == 1 else None
    return _read_common(lower)


#: The pages of one shop have many texts in common.
@lru_cache(maxsize=10_000)
def _read_common(lower: str) -> Availability | None:
    """Return what a short text says in the words of any shop."""
    is_in = bool(stock_phrases.IN.search(lower)) and not stock_phrases.NOT_NOW.search(lower)
    if is_in and not stock_phrases.OUT.search(lower):
        return Availability.IN_STOCK
    if stock_phrases.BACKORDER.search(lower) and not re.search(r"\b(?:no|not|non|nicht|kein\w*)\b", lower):
        return Availability.BACKORDER
    if stock_phrases.OUT.search(lower):
        if is_in or re.search(r"\b(?:if|when|never|variant|policy|items|products|show|pick-?\s?up)\b", lower):
            return None
        return Availability.OUT_OF_STOCK
    stock = read_stock(lower) if _ABOUT_STOCK.search(lower) else Stock.UNKNOWN
    if stock is Stock.OUT:
        return Availability.OUT_OF_STOCK
    return Availability.IN_STOCK if stock is Stock.IN and not stock_phrases.NOT_NOW.search(lower) else None


@dataclass(kw_only=True)
class Stocked:
    """What markup and page say about one product.

    Attributes:
        markup, page: the facts of each, those that say nothing certain included.
        button: what the button alone says.
        doubts: texts that say that the product is not simply there now.
    """

    markup: list[Fact] = field(default_factory=list)
    page: list[Fact] = field(default_factory=list)
    button: Fact | None = None
    doubts: list[Fact] = field(default_factory=list)

    @property
    def facts(self) -> list[Fact]:
        return [*self.markup, *self.page, *self.doubts, *([self.button] if self.button else [])]

    def said(self, facts: Iterable[Fact]) -> set[Availability]:
        return {fact.value for fact in facts if fact.value is not None}

    def on_page(self) -> set[Availability]:
        """Return what the page says: its words, or else its button."""
        said = self.said(self.page)
        if (
            self.button is not None
            and self.button.value is not None
            and (not said or self.button.value is not Availability.IN_STOCK)
        ):
            said.add(self.button.value)
        elif (
            self.button is not None and self.button.value is Availability.IN_STOCK and Availability.OUT_OF_STOCK in said
        ):
            said.add(Availability.IN_STOCK)
        return said - {Availability.IN_STOCK} if self.doubts else said

    def words_and_button(self) -> set[Availability]:
        """Return what a text that names the stock and the button say, if it is the same; nothing if there is a doubt.

        The text comes from what the shop knows about its stock, the button from whether it takes an order now. A text
        about something sold out may be there for a script to show, so a button has to be disabled or to say it too.
        """
        words = {fact.value for fact in self.page if stock_phrases.NAMES_STOCK.search(fact.text.lower())}
        said = {self.button.value} if self.button is not None and self.button.value is not None else set()
        is_out = words == {Availability.OUT_OF_STOCK} and self.button is not None and not said
        agreed = words if is_out or words == said else set()
        return set() if self.doubts or self.said(self.page) != words else agreed


def collect(markup: list[Fact], region: Region | None, site: Site) -> Stocked:  # noqa: C901 - one loop for each source
    """Return what structured data, classes, words and the button say about stock."""
    for fact in markup:
        fact.value = read_word(fact.text)
        if fact.value is None:
            fact.note = "this word is not known"
    found = Stocked(markup=list(markup))
    if region is None:
        return found
    for element in (region.root, *region.root.iterancestors()):
        for word in (element.get("class") or "").split():
            if element.tag != "body" and word in CLASS_WORDS:
                place = (element, "::attr(class)")
                found.markup.append(
                    Fact(field="availability", text=word, syntax="data attribute", place=place, value=CLASS_WORDS[word])
                )
    for fact in _words(region, site):
        if fact.value is None:
            found.doubts.append(fact)
            continue
        found.page.append(fact)
        found.markup.extend(_class_around(fact.place[0], fact.value))
    if region.button is not None:
        found.button = _of_button(region)
        if region.button.element in {fact.place[0] for fact in found.page}:
            found.page = [fact for fact in found.page if fact.place[0] is not region.button.element]
    return found


def _words(region: Region, site: Site) -> list[Fact]:
    """Return the texts of the page that say whether the product can be bought, or leave doubt, which have no value.

    Texts to choose a variant do not count.
    """
    found = []
    label = ""
    for block in region.above():
        # A notice, or a badge on the image; it can only deny.
        if len(block.text) <= LONGEST_PHRASE and read_phrase(block.plain, site) is Availability.OUT_OF_STOCK:
            place, note = (block.element, "::text"), "above the title"
            found.append(Fact(field="availability", text=block.plain, syntax="page text", place=place, note=note))
    for block in region.texts():
        marks = block.parts[0][2]
        if (
            len(block.text) > LONGEST_PHRASE
            or marks & Mark.STICKY
            or all(marked & Mark.SPOKEN for _, _, marked in block.parts)
            or (marks & Mark.PICKER and _is_choice(block, region))
        ):
            continue
        lower = f"{label}{block.plain.lower()}"
        is_labeled = stock_phrases.STOCK_LABEL.match(lower)
        label = f"{lower} " if is_labeled and is_labeled.end() == len(lower) else ""
        if label:
            continue
        for text, element in _texts(block):
            meaning = read_phrase(text, site)
            if meaning is not None:
                place = (element, "::text")
                found.append(Fact(field="availability", text=text, syntax="page text", place=place, value=meaning))
                break
        else:
            said = lower[is_labeled.end() :] if is_labeled else lower
            is_unclear = is_labeled and not stock_phrases.IN_TIME.search(said)
            if is_unclear or _is_doubt(said):
                place, note = (block.element, "::text"), "it may not be there now"
                found.append(Fact(field="availability", text=block.plain, syntax="page text", place=place, note=note))
    return found


@lru_cache(maxsize=10_000)
def _is_doubt(text: str) -> bool:
    """Whether a short text says that the product is not simply there now."""
    return bool(stock_phrases.NOT_SIMPLY_THERE.search(text))


def _is_choice(block: Any, region: Region) -> bool:
    """Whether a text is about one of the variants to choose from, and not about the form around them."""
    button = region.button.element if region.button else region.root
    around = {button, *button.iterancestors()}
    for element in (block.element, *block.element.iterancestors()):
        if element in around:
            return False
        if is_picker(element):
            return True
    return False


def _texts(block: Any) -> list[tuple[str, Any]]:
    """Return the text of a block, and each of its parts, with their elements."""
    whole = (block.plain, block.parts[0][1] if len(block.parts) == 1 else block.element)
    parts = [(text, element) for text, element, _ in block.parts if len(text.strip()) >= SHORTEST_PHRASE]
    return [whole, *parts] if len(parts) > 1 else [whole]


def _class_around(element: Any, meaning: Availability) -> list[Fact]:
    """Return the class of a text about stock as a piece of markup: `class="stock in-stock"`."""
    for each in (element, element.getparent()):
        words = (each.get("class") or "").lower().split() if each is not None else []
        for word in words:
            value = CLASS_WORDS.get(word) or (_OF_STOCK.get(word) if "stock" in words else None)
            if value is not None:
                note = "" if value is meaning else "its class and its words differ"
                return [
                    Fact(
                        field="availability",
                        text=word,
                        syntax="data attribute",
                        place=(each, "::attr(class)"),
                        value=value,
                        note=note,
                    )
                ]
    return []


def _of_button(region: Region) -> Fact:
    button = region.button
    assert button is not None  # noqa: S101 - for the type checker
    fact = Fact(
        field="availability", text=button.text or "(button)", syntax="page text", place=(button.element, "::text")
    )
    fact.value = button_says(button.text, is_enabled=button.is_enabled)
    if fact.value is None:
        fact.note = "the button is disabled and does not say why"
    return fact


def button_says(text: str, *, is_enabled: bool) -> Availability | None:
    """Return what the button says that puts the product into the cart."""
    lower = text.lower()
    if stock_phrases.SOLD_OUT_BUTTON.search(lower):
        return Availability.OUT_OF_STOCK
    if stock_phrases.PRE_ORDER_BUTTON.search(lower):
        return Availability.BACKORDER
    return Availability.IN_STOCK if is_enabled else None
