"""Lines of an import whose product is not clear: a person names it, before the import or after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from django.db import transaction

from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import audit
from harvester.scraping.addresses import Link, candidates_text, find_products, wanted_by
from harvester.scraping.imports import Choice, ListedPage, RowState, Shops, add_pages, choice_for, judge, pages_of
from harvester.scraping.models import ScrapeImport
from harvester.scraping.settings import InvalidSettings
from harvester.scraping.verbs.imports import locked_import

#: Lines that are linked at once, and links that the audit log names.
MOST_LINKS: Final = 1_000
MOST_LOGGED: Final = 50


@dataclass(frozen=True, kw_only=True)
class LineLink:
    """Of which product a line of a list is.

    Attributes:
        line: its number.
        product: `id:34567`, `sku:A-1`, `gtin:...`, or the number alone; empty: as if nobody had linked the line.
        url: its address, needed if the line has several.
    """

    line: int
    product: str
    url: str = ""


@transaction.atomic
def link_lines(actor: Actor, import_id: UUID, links: Sequence[LineLink]) -> ScrapeImport:
    """Name the products that lines are of. Needs: operator.

    Before the import begins, this is kept until then. After it has ended, the pages are added at once. All links are
    saved or none.

    Raises:
        InvalidSettings: a line cannot be linked like this, or would not be added anyway; it names all of them, by their
            place in `links`.
    """
    found = locked_import(import_id)
    if found.status not in ("PREVIEW", "DONE"):
        raise Conflict(f"The import {found} is {found.status}. Nothing was changed; link lines before or after it.")
    if not 1 <= len(links) <= MOST_LINKS:
        raise InvalidInput(
            f"choose the products of 1 to {MOST_LINKS:,} lines at once. Nothing was changed.", field="links"
        )
    problems: dict[int, str] = {}
    meant = _meant(found, links, problems)
    by_shop: dict[str, dict[int, ListedPage]] = {}
    for place, page in meant.items():
        by_shop.setdefault(page.domain, {})[place] = page
    shops, chosen = Shops(by_shop), dict[str, Choice]()
    for domain, pages in by_shop.items():
        choice = choice_for(found, domain, shops)
        products = {place: links[place].product.strip() for place in pages}
        chosen[domain] = replace(choice, links=_with_links(choice, pages, products, problems))
    if found.status == "DONE":
        problems |= {place: "name a product." for place in meant if not links[place].product.strip()}
    if problems:
        texts = {f"links.{place}": f"Line {links[place].line}: {problems[place]}" for place in sorted(problems)}
        raise InvalidSettings(texts)
    found.choices = {**found.choices, **{domain: choice.as_json() for domain, choice in chosen.items()}}
    if found.status == "DONE":
        _add_linked(found, by_shop, chosen)
    found.save(update_fields=["choices", "results"])
    detail = {"count": len(links), "links": {str(link.line): link.product for link in links[:MOST_LOGGED]}}
    audit.record(actor, "SCRAPE_IMPORT_LINKED", "scrape_import", found.pk, detail={"name": found.name, **detail})
    return found


def _meant(found: ScrapeImport, links: Sequence[LineLink], problems: dict[int, str]) -> dict[int, ListedPage]:
    """Return place in `links` -> the line that is meant, and note links without one."""
    by_line: dict[int, list[ListedPage]] = {}
    for page in pages_of(found):
        by_line.setdefault(page.line, []).append(page)
    meant: dict[int, ListedPage] = {}
    named = set[str]()
    for place, link in enumerate(links):
        pages = [page for page in by_line.get(link.line, []) if link.url in ("", page.url)]
        if not pages:
            problems[place] = "the list has no such address."
        elif len(pages) > 1:
            problems[place] = f"it has {len(pages)} addresses; give the address too."
        elif pages[0].canonical in named:
            problems[place] = "its page is named twice."
        else:
            meant[place] = pages[0]
            named.add(pages[0].canonical)
    return meant


def _with_links(
    choice: Choice, pages: Mapping[int, ListedPage], products: Mapping[int, str], problems: dict[int, str]
) -> dict[str, int]:
    """Return the links of a shop with those of `pages` and `products`, by place, and note what is not possible."""
    source = None
    if choice.source_id is not None:
        source = Source.objects.select_related("retailer").filter(pk=choice.source_id).first()
    if source is None or choice.skip:
        why = "its shop is skipped." if choice.skip else "a new source has no products; choose one that has."
        problems |= dict.fromkeys(pages, why)
        return {}
    others = {page.canonical for page in pages.values()}
    links = {canonical: product for canonical, product in choice.links.items() if canonical not in others}
    wanted = {place: page for place, page in pages.items() if products[place]}
    found = find_products(source.pk, [wanted_by(products[place]) for place in wanted])
    for (place, page), product in zip(wanted.items(), found, strict=True):
        if product.product_id is None:
            problems[place] = _not_found(source, products[place], product)
        else:
            links[page.canonical] = product.product_id
    for place, row in zip(wanted, judge(source, list(wanted.values()), links), strict=True):
        if row.state is not RowState.NEW:
            problems.setdefault(place, row.reason)
    return links


def _not_found(source: Source, given: str, found: Link) -> str:
    if not found.candidates:
        return f"{source} has no product {given[:100]!r}; give its id, SKU or GTIN."
    return f"{given[:100]!r} may be {candidates_text(found.candidates)}; write id: or sku: in front of the number."


def _add_linked(
    found: ScrapeImport, by_shop: Mapping[str, Mapping[int, ListedPage]], chosen: Mapping[str, Choice]
) -> None:
    """Add pages that an ended import has left out."""
    results = found.results
    pages = [page for shop in by_shop.values() for page in shop.values()]
    named = {(page.line, page.url[:200]) for page in pages}
    left = [line for line in results["lines"] if (line["line"], line["text"]) not in named]
    # The results name only the first refused lines; the others are in the count.
    listed, unlisted = len(results["lines"]) - len(left), results["refused"] - len(results["lines"])
    results["lines"], results["refused"] = left, results["refused"] - listed - min(len(pages) - listed, unlisted)
    for domain, shop in by_shop.items():
        source_id = chosen[domain].source_id
        if source_id is not None:
            add_pages(found, source_id, list(shop.values()), results)
