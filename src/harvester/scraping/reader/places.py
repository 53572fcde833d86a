"""Finds what a site file, an override or a person declares: places in structured data and in the tree."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from cssselect import HTMLTranslator, SelectorError
from lxml import etree

from harvester.scraping.reader.document import Document, Mark
from harvester.scraping.reader.facts import Fact, Text
from harvester.scraping.reader.structured import Node, listed, texts_of
from harvester.scraping.reader.visible import BARE, Seen, prices_in
from harvester.scraping.site import Site

#: Elements of one selector that are looked at.
MOST_FOUND: Final = 50
_CSS: Final = re.compile(r"(?P<selector>.+?)\s*::(?:(?P<text>text)|attr\((?P<attribute>[A-Za-z_][\w:.-]*)\))")
_STEP: Final = re.compile(r"(?P<name>@?[\w-]+)(?:\[(?:(?P<number>\d+)|(?P<key>@?[\w-]+)=(?P<value>[^\]]*))\])?")


@dataclass(frozen=True, kw_only=True)
class Selector:
    """A CSS selector, ready to be asked; `attribute` is empty for the text."""

    find: Any
    attribute: str


@lru_cache(maxsize=2_000)
def compile_selector(place: str) -> Selector:
    """Return the selector of a place.

    Raises:
        ValueError: it is not a CSS selector with `::text` or `::attr(name)`.
    """
    match = _CSS.fullmatch(place.strip())
    if not match:
        raise ValueError(f"a place is a CSS selector with ::text or ::attr(name), or json: and a path, not {place!r}")
    return Selector(find=_compiled(match["selector"]), attribute=match["attribute"] or "")


@lru_cache(maxsize=2_000)
def _compiled(selector: str) -> Any:
    try:
        return etree.XPath(HTMLTranslator().css_to_xpath(selector))
    except (SelectorError, etree.XPathError) as problem:
        raise ValueError(f"{selector!r} is not a CSS selector: {problem}") from None


@lru_cache(maxsize=2_000)
def compile_path(place: str) -> tuple[int | None, tuple[tuple[str, int | None, str, str], ...]]:
    """Return the number of the node that a JSON path begins with, if it names one, and its steps.

    Raises:
        ValueError: it is not a path such as `json:offers[0].price`, `json:offers[sku=A-1].price` or
            `json:[1].offers.price`.
    """
    rest = place.removeprefix("json:").strip()
    node = None
    if first := re.match(r"\[(\d+)\]\.", rest):
        node, rest = int(first[1]), rest[first.end() :]
    # A value in brackets may contain points.
    parts = re.findall(r"(?:[^.\[\]]|\[[^\]]*\])+", rest)
    steps = []
    for part in parts:
        step = _STEP.fullmatch(part)
        if not step:
            raise ValueError(f"{place!r} is not a JSON path")
        steps.append(
            (step["name"], int(step["number"]) if step["number"] else None, step["key"] or "", step["value"] or "")
        )
    if not steps or ".".join(parts) != rest:
        raise ValueError(f"{place!r} is not a JSON path")
    return node, tuple(steps)


def check_place(place: str) -> None:
    """Raise ValueError if a place cannot be used."""
    if place.startswith("json:"):
        compile_path(place)
    else:
        compile_selector(place)


def check_site(site: Site) -> None:
    """Raise ValueError if a place or a selector of a site cannot be used."""
    for places in site.places.values():
        for place in places:
            check_place(place)
    for selector in (*site.exclude, *([site.tiers] if site.tiers else [])):
        _compiled(selector)
    if site.sku_pattern is not None and re.compile(site.sku_pattern).groups < 1:
        raise ValueError(f"the pattern of the article number of {site.id} has no group")


@dataclass(kw_only=True)
class Found:
    """What the first place of a field says that says something.

    Attributes:
        facts: its values; for prices those whose role is not another.
        seen: the amounts among them that are on the page.
        elements: those of a CSS selector, in the order of the facts.
        is_there: some place was found, even if it said nothing.
    """

    facts: list[Fact]
    seen: list[Seen]
    elements: list[Any] = field(default_factory=list)
    is_there: bool = False


class Places:
    """Looks up the places of a site on one page."""

    def __init__(
        self, document: Document, nodes: Sequence[Node], site: Site, around_title: Collection[Any] = ()
    ) -> None:
        self._document = document
        self._around_title = around_title
        self._nodes = nodes
        self._site = site
        selectors = [*site.exclude, *([site.tiers] if site.tiers else [])]
        self._excluded = {each for selector in selectors for each in _compiled(selector)(document.root)}

    def find(self, name: str, places: Sequence[str]) -> Found:
        """Return what the first of the places says that says something about a field."""
        is_there = False
        for place in places:
            found = self._json(name, place) if place.startswith("json:") else self._css(name, place)
            is_there = is_there or found.is_there
            if found.facts or found.seen:
                found.is_there = True
                return found
        return Found(facts=[], seen=[], is_there=is_there)

    def _json(self, field: str, place: str) -> Found:
        number, steps = compile_path(place)
        for index, node in enumerate(self._nodes):
            if number is not None and index != number:
                continue
            values: list[Any] = [node.data]
            for name, position, key, wanted in steps:
                taken: list[Any] = []
                for value in values:
                    items = listed(value.get(name)) if isinstance(value, dict) else []
                    if position is not None:
                        items = items[position : position + 1]
                    if key:
                        items = [each for each in items if isinstance(each, dict) and wanted in texts_of(each.get(key))]
                    taken.extend(items)
                values = taken
            facts = [
                Fact(field=field, text=text, syntax=node.syntax, place=place, currency=self._currency(node))
                for text in texts_of(values)
            ]
            if facts:
                return Found(facts=facts, seen=[], is_there=True)
        return Found(facts=[], seen=[])

    def _currency(self, node: Node) -> str:
        """Return the one currency that the offers of a node name."""
        named = set()
        stack = listed(node.data.get("offers"))
        while stack:
            offer = stack.pop()
            if isinstance(offer, dict):
                named |= set(texts_of(offer.get("priceCurrency")))
                stack.extend([*listed(offer.get("offers")), *listed(offer.get("priceSpecification"))])
        return str(named.pop()) if len(named) == 1 else ""

    def _css(self, field: str, place: str) -> Found:
        selector = compile_selector(place)
        elements = [each for each in selector.find(self._document.root)[:MOST_FOUND] if not self._is_excluded(each)]
        facts: list[Fact] = []
        seen: list[Seen] = []
        said: list[Any] = []
        for element in elements:
            if selector.attribute:
                text = element.get(selector.attribute)
                syntax = "meta" if element.tag == "meta" else "data attribute"
                if text and text.strip():
                    said.append(element)
                    facts.append(Fact(field=field, text=Text(text), syntax=syntax, place=place))
            elif field in {"price", "original"}:
                blocks = self._visible(element)
                is_amount = bool(BARE.fullmatch(" ".join(block.plain for block in blocks)))
                amounts = prices_in(blocks, self._around_title, is_amount=is_amount)
                for each in amounts:
                    each.fact.field = field
                seen.extend(amounts)
            else:
                text = " ".join(block.plain for block in self._visible(element))
                if text.strip():
                    said.append(element)
                    facts.append(Fact(field=field, text=text, syntax="page text", place=place))
        return Found(facts=facts, seen=seen, elements=said, is_there=bool(elements))

    def _visible(self, element: Any) -> list[Any]:
        struck = any(each.tag in {"del", "s", "strike"} for each in element.iterancestors())
        blocks = self._document.blocks(element, {element})
        for block in blocks:
            block.parts = [
                (text, each, marks | Mark.STRUCK if struck else marks)
                for text, each, marks in block.parts
                if not self._excluded or not self._is_excluded(each)
            ]
        return [block for block in blocks if block.parts]

    def _is_excluded(self, element: Any) -> bool:
        return bool(self._excluded) and any(each in self._excluded for each in (element, *element.iterancestors()))
