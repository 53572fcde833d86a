"""Writes the first version of a site file from one page: places, a fixture with its offer, and the registration."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harvester.kernel.errors import Conflict, InvalidInput
from harvester.scraping.extraction import read
from harvester.scraping.offers import PageReading, offer_to_json
from harvester.scraping.place_search import find
from harvester.scraping.reader import read_page
from harvester.scraping.site import ReadContext, Site

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
    title={title!r},
    domains=({domain!r},),
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
        for name, each in find(body, content_type, url, wanted).items()
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
    with (checkout / FIXTURES / "versions.tsv").open("a") as versions:
        versions.write(f"{site_id}\t1.0.0\t{digest}\n")
    return SiteDraft(site_id=site_id, files=(path, page, expected, registry), places=places, reading=reading)


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
