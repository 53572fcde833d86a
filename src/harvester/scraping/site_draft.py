"""Writes the first version of a site file from one page: places, a fixture with its offer, and the registration."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from harvester.kernel.errors import Conflict, InvalidInput
from harvester.scraping.extraction import read
from harvester.scraping.offers import PageReading, offer_to_json
from harvester.scraping.reader import read_page
from harvester.scraping.reader.document import Document
from harvester.scraping.reader.structured import Node, product_nodes
from harvester.scraping.site import ReadContext, Site

#: Places per field of one page.
MOST_FOUND: Final = 20
#: Elements that are looked at; pages have a few thousand.
MOST_ELEMENTS: Final = 60_000
#: Characters of a text that may be a value and not a paragraph with the value in it.
LONGEST_TEXT: Final = 300
MOST_LEVELS: Final = 6
_AMOUNT: Final = re.compile(r"\d[\d.,' \u00a0]*\d|\d")
_SKIPPED: Final = frozenset({"script", "style", "noscript", "template", "head", "title"})
#: Attributes with values that shops keep next to what they show.
_ATTRIBUTES: Final = ("content", "value", "data-price", "data-product-price", "data-sku", "data-product-sku")


def find_places(body: bytes, content_type: str, url: str, known: Mapping[str, str]) -> dict[str, list[str]]:
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
            if len(found[name]) < MOST_FOUND and _is(name, text, value):
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
            if text and len(text) <= LONGEST_TEXT:
                inner = (" ".join("".join(part.itertext()).split()) for part in parts if isinstance(part.tag, str))
                if text not in inner:
                    yield element, "", text


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


SITES: Final = Path("src/harvester/scraping/sites")
FIXTURES: Final = Path("tests/fixtures/sites")
#: Fields whose places are looked for; the others are read from structured data.
SEARCHED: Final = ("title", "price", "sku")
#: Places per field: the first leads, the others are for when it is missing.
MOST_PLACES: Final = 3

_FILE: Final = '''"""{title}."""

from typing import Final

from harvester.scraping.site import Site

{name}: Final = Site(
    id="{id}",
    version="1.0.0",
    title="{title}",
    domains=("{domain}",),
    places={{
{places}    }},
)
'''


@dataclass(frozen=True, kw_only=True)
class SiteDraft:
    """What was written.

    Attributes:
        site_id: the id of the site.
        files: the files that were written, the site file first.
        places: field -> places.
        reading: what the new site reads from the page.
    """

    site_id: str
    files: tuple[Path, ...]
    places: Mapping[str, tuple[str, ...]]
    reading: PageReading


def write_draft(
    checkout: Path, *, domain: str, url: str, body: bytes, content_type: str, known: Mapping[str, str] | None = None
) -> SiteDraft:
    """Write a site file with its fixture into a checkout of Harvester, and add it to the registry.

    Args:
        checkout: the directory with `src` and `tests`.
        domain: the registrable domain of the shop; its first label becomes the id.
        url: of the page.
        body: the page.
        content_type: of the response.
        known: what a person sees on the page: title, price such as "19.99 USD", sku. Without it, what the adapter for
            any shop is certain of.

    Raises:
        Conflict: there is a site with that id or domain already.
        InvalidInput: this is not a checkout, or neither the adapter nor `known` says what is on the page.
    """
    registry = checkout / SITES / "__init__.py"
    if not registry.is_file():
        raise InvalidInput(f"{checkout} is not a checkout of Harvester: it has no {SITES}.")
    site_id = re.sub(r"[^a-z0-9]+", "_", domain.lower().rpartition(".")[0].rpartition(".")[2] or domain.lower())
    site_id = f"shop_{site_id}" if not site_id[:1].isalpha() else site_id
    path = checkout / SITES / f"{site_id}.py"
    if path.exists():
        raise Conflict(f"There is a site {site_id} already. Nothing was written.")
    context = ReadContext(url=url, retailer_domain=domain)
    found = read(body, content_type, "structured", None, context)
    offered = offer_to_json(found.offer) if found.offer else {}
    wanted = {name: str(value) for name, value in {**offered, **(known or {})}.items() if name in SEARCHED and value}
    if not {"title", "price"} <= wanted.keys():
        raise InvalidInput(
            f"It is not certain what is on the page ({found.outcome}: {found.detail}) Say what you see: title and "
            "price."
        )
    places = {
        name: tuple(each[:MOST_PLACES])
        for name, each in find_places(body, content_type, url, wanted).items()
        if name in wanted
    }
    # What people see leads; markup that says the same comes after it.
    places = {name: tuple(sorted(each, key=lambda place: place.startswith("json:"))) for name, each in places.items()}
    site = Site(id=site_id, version="1.0.0", title=domain, domains=(domain,), places=places)
    reading = read_page(body, content_type=content_type, site=site, context=context)
    lines = "".join(f"        {name!r}: {each!r},\n" for name, each in places.items()).replace("'", '"')
    name = site_id.upper()
    folder = checkout / FIXTURES / site_id
    folder.mkdir(parents=True, exist_ok=True)
    stem = reading.offer.availability.value.lower() if reading.offer else "page"
    page, expected = folder / f"{stem}.html", folder / f"{stem}.json"
    page.write_bytes(body)
    facts = {
        "url": url,
        "content_type": content_type,
        "outcome": reading.outcome.value,
        "offer": offer_to_json(reading.offer) if reading.offer else None,
    }
    expected.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    path.write_text(_FILE.format(title=f"Pages of {domain}", name=name, id=site_id, domain=domain, places=lines))
    registry.write_text(_registered(registry.read_text(), site_id, name))
    # A test compares it with the file, so that no change of what is read goes without a new version.
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    table = checkout / FIXTURES / "versions.tsv"
    with table.open("a") as versions:
        versions.write(f"{site_id}\t1.0.0\t{digest}\n")
    return SiteDraft(site_id=site_id, files=(path, page, expected, registry, table), places=places, reading=reading)


def _registered(text: str, site_id: str, name: str) -> str:
    """Return the registry with one more import, in its order, and one more entry."""
    line = f"from harvester.scraping.sites.{site_id} import {name}\n"
    imports = sorted({*re.findall(r"^from harvester\.scraping\.sites\.\w+ import \w+\n", text, re.MULTILINE), line})
    rest = re.sub(r"^from harvester\.scraping\.sites\.\w+ import \w+\n", "", text, flags=re.MULTILINE)
    anchor = "from harvester.scraping.site import Site\n"
    listed = re.search(r"(_REGISTERED: Final = \([^)]*)\)", rest)
    if anchor not in rest or listed is None:
        raise Conflict("The registry of sites does not look as expected; add the site by hand. Nothing was registered.")
    rest = rest.replace(anchor, anchor + "".join(imports), 1)
    return rest.replace(listed[0], f"{listed[1].rstrip().rstrip(',')}, {name})", 1)
