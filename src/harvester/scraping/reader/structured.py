"""The structured data of a page: JSON-LD and microdata, as the same tree of dictionaries, lists and texts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harvester.scraping.reader.document import Document, text_of
from harvester.scraping.reader.facts import Text

#: Characters of one script, scripts of a page, objects of a page: more is not meant for anybody.
LONGEST_SCRIPT: Final = 2_000_000
MOST_SCRIPTS: Final = 60
MOST_NODES: Final = 3_000
#: Structured data is nested; deeper than this it is not about the product of the page.
MOST_LEVELS: Final = 12
PRODUCTS: Final = frozenset({"Product", "ProductGroup", "IndividualProduct", "SomeProducts", "ProductModel"})
#: Below these keys of objects other than products there may be the product of the page.
_TOWARDS: Final = ("@graph", "mainEntity", "mainEntityOfPage", "itemOffered", "item", "about")


@dataclass(frozen=True, kw_only=True)
class Node:
    """A product in the structured data.

    Attributes:
        data: its properties.
        syntax: "json-ld" or "microdata".
        element: the script, or the element of its microdata.
    """

    data: dict[str, Any]
    syntax: str
    element: Any


def product_nodes(document: Document) -> list[Node]:
    """Return the products in the structured data of a page, without those inside of other products or of lists."""
    nodes: list[Node] = []
    for script in document.root.xpath("//script[contains(@type, 'ld+json')]")[:MOST_SCRIPTS]:
        text = "".join(script.itertext())
        value = read_json(text) if len(text) <= LONGEST_SCRIPT else None
        names: dict[str, dict[str, Any]] = {}
        for found in list(_products(value, MOST_LEVELS, names)):
            nodes.append(Node(data=_resolved(found, names), syntax="json-ld", element=script))
            if len(nodes) >= MOST_NODES:
                return nodes
    nodes.extend(_microdata(document))
    return nodes


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def types_of(data: Any) -> set[str]:
    """Return the names of the types of an object, without the address of the vocabulary."""
    if not isinstance(data, dict):
        return set()
    return {
        str(kind).rsplit("/", 1)[-1].rsplit("#", 1)[-1].removeprefix("schema:") for kind in listed(data.get("@type"))
    }


def texts_of(value: Any) -> list[Text]:
    """Return the texts of a value: itself, those of a list, or the name or value of an object."""
    found = []
    for each in listed(value):
        if isinstance(each, Text):
            found.append(each)
        elif isinstance(each, dict):
            found.extend(texts_of(each.get("name") or each.get("@value") or each.get("value") or each.get("url")))
    return [text for text in found if text.strip()]


def read_json(text: str) -> Any:
    """Return the value of a JSON text as people write it; none if it cannot be read without guessing.

    Comments, a wrapping CDATA, control characters, commas before a closing bracket and a last semicolon are ignored.
    """
    for attempt in (str, _repaired):
        try:
            return json.loads(
                attempt(text).strip().rstrip(";"),
                strict=False,
                parse_float=_number,
                parse_int=_number,
                object_pairs_hook=_object,
            )
        except (ValueError, RecursionError):
            continue
    return None


def _number(text: str) -> Text:
    return Text(text, is_number=True)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a key that is there twice with different values has the list of both."""
    found: dict[str, Any] = {}
    for key, given in pairs:
        value = _texts(given)
        if key in found and found[key] != value:
            value = [*listed(found[key]), *listed(value)]
        found[key] = value
    return found


def _texts(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Text):
        return Text(value)
    return [_texts(each) for each in value] if isinstance(value, list) else value


#: A string, or what does not belong to JSON outside of strings.
_NOT_JSON: Final = re.compile(
    r'("(?:[^"\\]|\\.)*(?:"|\Z))|/\*.*?(?:\*/|\Z)|<!--|-->|(?:/\*\s*)?<!\[CDATA\[|\]\]>|//[^\n]*|,(?=\s*[}\]])',
    re.DOTALL,
)


def _repaired(text: str) -> str:
    # Twice, because a comment may stand between a comma and the bracket.
    for _ in range(2):
        text = _NOT_JSON.sub(lambda match: match[1] or "", text)
    return text


def _products(value: Any, levels: int, names: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return the products of a value, and note every object with a name by which others refer to it."""
    for item in listed(value):
        if not isinstance(item, dict) or not levels:
            continue
        name = item.get("@id")
        if isinstance(name, str) and len(item) > 1:
            names.setdefault(name, item)
        if types_of(item) & PRODUCTS:
            yield item
        elif not types_of(item) & {"ItemList", "BreadcrumbList", "ListItem", "OfferCatalog"}:
            for key in _TOWARDS:
                yield from _products(item.get(key), levels - 1, names)


def _resolved(product: dict[str, Any], names: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a product whose offers and brand are objects and not references to them."""
    changed: dict[str, Any] = {}
    for key in ("offers", "brand", "hasVariant"):
        values = product.get(key)
        if isinstance(values, (dict, list)):
            found = [
                names.get(each["@id"], each)
                if isinstance(each, dict) and set(each) <= {"@id", "@type"} and isinstance(each.get("@id"), str)
                else each
                for each in listed(values)
            ]
            changed[key] = found[0] if isinstance(values, dict) else found
    return {**product, **changed}


def _microdata(document: Document) -> Iterator[Node]:
    """Return the products of the microdata, each with its own properties, not those of products inside of it."""
    # A page, an offer or a review may contain the product; a list of products is not the product of the page.
    scopes = document.root.xpath(
        "//*[@itemscope and contains(@itemtype, 'Product') and (not(@itemprop) or @itemprop='itemOffered' or "
        "@itemprop='mainEntity' or @itemprop='about' or @itemprop='itemReviewed')]"
    )
    for scope in scopes[:MOST_SCRIPTS]:
        data = _scope(document, scope, MOST_LEVELS)
        if types_of(data) & PRODUCTS:
            yield Node(data=data, syntax="microdata", element=scope)


def _scope(document: Document, scope: Any, levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {"@type": [Text(kind) for kind in (scope.get("itemtype") or "").split()]}
    names = (scope.get("itemref") or "").split()[:10] if levels == MOST_LEVELS else []
    referred = [found for name in names for found in document.root.xpath("//*[@id=$name]", name=name)]
    stack = [*reversed(scope), *referred] if levels else []
    while stack:
        element = stack.pop()
        names = (element.get("itemprop") or "").split()
        is_scope = element.get("itemscope") is not None
        if names:
            value = _scope(document, element, levels - 1) if is_scope else _property(element)
            for name in names:
                data[name] = value if name not in data else [*listed(data[name]), value]
        if not is_scope:
            stack.extend(reversed(element))
    return data


def _property(element: Any) -> Text:
    for attribute in ("content", *_VALUES.get(element.tag, ())):
        text = element.get(attribute)
        if text is not None:
            return Text(text, place=(element, f"::attr({attribute})"))
    return Text(text_of(element), place=(element, "::text"))


_VALUES: Final = {
    "a": ("href",), "link": ("href",), "area": ("href",), "img": ("src",), "source": ("src",), "object": ("data",),
    "time": ("datetime",), "data": ("value",), "meter": ("value",),
}  # fmt: skip
