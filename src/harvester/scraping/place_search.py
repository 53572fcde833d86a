"""Finds where known values are on a page: runs in a child process, like every look at a page."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from harvester.scraping.reader.document import Document
from harvester.scraping.reader.structured import Node, product_nodes

#: Places per field of one page.
MOST_PLACES: Final = 20
#: Elements that are looked at; pages have a few thousand.
MOST_ELEMENTS: Final = 60_000
#: Characters of a text that may be a value and not a paragraph with the value in it.
LONGEST_TEXT: Final = 300
MOST_LEVELS: Final = 6
_AMOUNT: Final = re.compile(r"\d[\d.,' \u00a0]*\d|\d")
_SKIPPED: Final = frozenset({"script", "style", "noscript", "template", "head", "title"})
#: Attributes with values that shops keep next to what they show.
_ATTRIBUTES: Final = ("content", "value", "data-price", "data-product-price", "data-sku", "data-product-sku")


def find(body: bytes, content_type: str, url: str, known: Mapping[str, str]) -> dict[str, list[str]]:
    """Return field -> places at which its value is, those in structured data first.

    Args:
        body: the page.
        content_type: of the response.
        url: where it is from.
        known: field -> value: title, sku, or a price such as "19.99 USD".
    """
    document = Document(body, content_type, url)
    if document.root is None:
        return {}
    found: dict[str, list[str]] = {name: [] for name in known}
    nodes = product_nodes(document)
    for name, value in known.items():
        for number, node in enumerate(nodes):
            for path in _paths(node, name, value):
                place = f"json:{path}" if len(nodes) == 1 else f"json:[{number}].{path}"
                _add(found[name], place)
    for element, attribute, text in _texts(document.root):
        for name, value in known.items():
            if len(found[name]) < MOST_PLACES and _is(name, text, value):
                what = f"attr({attribute})" if attribute else "text"
                _add(found[name], f"{document.place_of(element)}::{what}")
    return {name: places for name, places in found.items() if places}


def _paths(node: Node, name: str, value: str) -> Iterator[str]:
    """Return the paths within a product of the structured data that have the value."""
    stack: list[tuple[str, Any, int]] = [("", node.data, 0)]
    while stack:
        path, held, level = stack.pop()
        if isinstance(held, dict) and level < MOST_LEVELS:
            stack.extend((f"{path}.{key}".lstrip("."), inner, level + 1) for key, inner in held.items())
        elif isinstance(held, list) and level < MOST_LEVELS:
            stack.extend((f"{path}[{place}]", inner, level + 1) for place, inner in enumerate(held[:20]))
        elif isinstance(held, str) and re.fullmatch(r"[\w@.\[\]-]+", path) and _is(name, held, value):
            yield path


def _texts(root: Any) -> Iterator[tuple[Any, str, str]]:
    """Return the texts of the page: element, attribute or an empty text, and what it says."""
    for number, element in enumerate(root.iter("*")):
        if number > MOST_ELEMENTS:
            return
        if element.tag in _SKIPPED:
            continue
        for name in _ATTRIBUTES:
            if text := element.get(name):
                yield element, name, text
        # Only the innermost element with the text: those around it change with the page.
        parts = list(element)
        if len(parts) <= MOST_LEVELS:
            text = " ".join("".join(element.itertext()).split())
            if text and len(text) <= LONGEST_TEXT and not any(_same_text(part, text) for part in parts):
                yield element, "", text


def _same_text(element: Any, text: str) -> bool:
    return isinstance(element.tag, str) and " ".join("".join(element.itertext()).split()) == text


def _is(name: str, text: str, value: str) -> bool:
    """Whether a text is a value: an amount in any spelling, anything else but for case and blanks."""
    if name != "price":
        said, wanted = " ".join(text.split()).casefold(), " ".join(value.split()).casefold()
        is_labelled = name == "sku" and re.fullmatch(rf"\W*(?:sku|item|art)\W*{re.escape(wanted)}", said)
        return said == wanted or bool(is_labelled)
    amounts = _AMOUNT.findall(text)
    if len(amounts) != 1:
        return False
    wanted_amount = Decimal(value.partition(" ")[0])
    return wanted_amount in {_amount(amounts[0], point) for point in ".,"}


def _amount(text: str, point: str) -> Decimal | None:
    other = "," if point == "." else "."
    plain = re.sub(r"['\s\u00a0]", "", text).replace(other, "").replace(point, ".")
    try:
        return Decimal(plain)
    except InvalidOperation:
        return None


def _add(places: list[str], place: str) -> None:
    if place not in places:
        places.append(place)
