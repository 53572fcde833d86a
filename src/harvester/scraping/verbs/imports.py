"""Imports of lists of pages, and of the pages of a feed's own products."""

from dataclasses import asdict, replace
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from harvester.catalog import fields, retailers, sources
from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.states import SourceKind
from harvester.engine.enqueue import Enqueued, enqueue
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.scraping.addresses import has_feed, read_address
from harvester.scraping.import_rows import MOST_ROWS, ImportedList, ImportRow, read_list, read_text
from harvester.scraping.imports import Choice, ListedPage, Shops, choice_for, pages_of
from harvester.scraping.jobs import IMPORT
from harvester.scraping.models import ScrapeImport
from harvester.scraping.readiness import adapter_problem
from harvester.scraping.sites import site_named
from harvester.scraping.verbs.targets import locked_source, read_schedule

#: Bytes of a file or text.
MOST_BYTES: Final = 5 * 2**20

# Products of a feed that no page is linked to, those that consumers see first.
_UNREAD_PRODUCTS = """
SELECT p.id, p.url FROM source_products p
LEFT JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id
WHERE p.source_id = %(source)s AND (%(text)s = '' OR strpos(lower(p.title), lower(%(text)s)) > 0)
  AND (NOT %(in_stock)s OR o.in_stock)
  AND NOT EXISTS (SELECT FROM scrape_targets t WHERE t.source_id = p.source_id AND t.product_id = p.id)
ORDER BY o.product_id IS NULL, p.id LIMIT %(most)s
"""


@transaction.atomic
def create_import(actor: Actor, name: str, given: bytes | str) -> ScrapeImport:
    """Read a pasted text, or a CSV or XLSX file, into an import that waits for choices. Needs: operator.

    Args:
        actor: who imports.
        name: of the list, such as that of its file.
        given: the text, or the bytes of the file.

    Raises:
        InvalidInput: the list is too large, or cannot be read as a whole.
    """
    title = fields.required_text("name", name)
    size = len(given.encode(errors="replace") if isinstance(given, str) else given)
    if size > MOST_BYTES:
        raise InvalidInput(f"it has more than {MOST_BYTES >> 20} MB; nothing was imported. Split it.", field="file")
    found = read_text(given) if isinstance(given, str) else read_list(given)
    if not found.rows and not found.refused:
        raise InvalidInput("it has no addresses; nothing was imported.", field="file")
    made = _insert(actor, title, found, {})
    detail = {"name": title, "pages": len(made.rows["pages"]), "refused": len(made.refused)}
    audit.record(actor, "SCRAPE_IMPORT_CREATED", "scrape_import", made.pk, detail=detail)
    return made


@transaction.atomic
def choose(actor: Actor, import_id: UUID, domain: str, **choice: Any) -> ScrapeImport:
    """Decide where the pages of one shop go; what is not given stays. Needs: operator.

    Args:
        actor: who decides.
        import_id: the import, which has not begun.
        domain: the shop, as the preview groups them.
        choice: fields of `imports.Choice`.
    """
    found = locked_import(import_id, "PREVIEW")
    if domain not in {page.domain for page in pages_of(found)}:
        raise NotFound(f"The import has no pages of {domain}.", field="domain")
    before = choice_for(found, domain, Shops([domain]))
    found.choices = {**found.choices, domain: _checked(before, choice).as_json()}
    found.save(update_fields=["choices"])
    detail = {"domain": domain, **found.choices[domain]}
    del detail["links"]
    audit.record(actor, "SCRAPE_IMPORT_CHOSEN", "scrape_import", found.pk, changed=choice, detail=detail)
    return found


@transaction.atomic
def start_import(actor: Actor, import_id: UUID) -> Enqueued:
    """Import in the background with the choices made; for shops without one, with what is proposed. Needs: operator.

    Retailers and sources that do not exist are made here. Nothing of a new source is read until an admin enables it.
    Starting an import that has begun returns its job.
    """
    found = locked_import(import_id)
    if found.status == "IMPORTING":
        return enqueue(IMPORT, {"import_id": str(found.pk)}, dedupe_key=f"scrape-import:{found.pk}")
    if found.status != "PREVIEW":
        raise Conflict(f"The import {found} is {found.status}. Nothing was changed; import the list again.")
    domains = sorted({page.domain for page in pages_of(found)})
    shops = Shops(domains)
    for domain in domains:
        choice = choice_for(found, domain, shops)
        if not choice.skip and choice.source_id is None:
            choice = replace(choice, source_id=_new_source(actor, domain, choice, shops).pk)
        found.choices[domain] = choice.as_json()
    return _begin(actor, found)


@transaction.atomic
def cancel_import(actor: Actor, import_id: UUID) -> ScrapeImport:
    """Import nothing more of a list; pages that were added stay. Needs: operator."""
    found = locked_import(import_id)
    if found.status not in ("PREVIEW", "IMPORTING"):
        raise Conflict(f"The import {found} is {found.status} already. Nothing was changed.")
    found.status, found.finished_at = "CANCELLED", Now()
    found.save(update_fields=["status", "finished_at"])
    audit.record(actor, "SCRAPE_IMPORT_CANCELLED", "scrape_import", found.pk, detail={"name": found.name})
    return found


@transaction.atomic
def import_from_feed(
    actor: Actor,
    source_id: UUID,
    *,
    most: int = MOST_ROWS,
    text: str = "",
    in_stock_only: bool = False,
    schedule: str | None = None,
) -> ScrapeImport:
    """Add the pages of a feed's own products in the background, each linked to exactly its product. Needs: operator.

    Products that a page is linked to already are left out, so that it may be called again.

    Args:
        actor: who imports.
        source_id: a source with a feed.
        most: of how many products.
        text: part of their titles.
        in_stock_only: only products in stock.
        schedule: of the new pages; None: read on request only.
    """
    number = fields.whole(1, MOST_ROWS)("most", most)
    line = read_schedule("schedule", schedule)
    source = locked_source(source_id)
    if not has_feed(source.pk):
        raise Conflict(f"{source} has no feed, so its products have no pages to import. Nothing was changed.")
    values = {"source": source.pk, "text": text.strip(), "in_stock": in_stock_only, "most": number}
    products = dict(enumerate(fetch(_UNREAD_PRODUCTS, values), 1))
    rows = tuple(ImportRow(line=place, url=row["url"]) for place, row in products.items())
    if not products:
        raise Conflict(f"Every such product of {source} has a page already. Nothing was changed.")
    listed = ImportedList(rows=rows, refused=())
    made = _insert(actor, f"Feed of {source}", listed, {place: row["id"] for place, row in products.items()})
    choice = Choice(source_id=source.pk, adapter_id=source.adapter_id or "structured", schedule=line)
    made.choices = {page.domain: choice.as_json() for page in pages_of(made)}
    _begin(actor, made)
    return made


def _insert(actor: Actor, name: str, found: ImportedList, products: dict[int, int]) -> ScrapeImport:
    """Store a list. Lines whose address may not be fetched are refused now, and repeated ones know their twin."""
    refused = [asdict(line) for line in found.refused]
    pages: list[ListedPage] = []
    first: dict[str, int] = {}
    for row in found.rows:
        try:
            address = read_address(row.url)
        except InvalidInput as problem:
            refused.append({"line": row.line, "text": row.url[:200], "reason": str(problem)})
            continue
        if "." not in address.domain:
            # No retailer can have it, and one such line must not keep the others from being imported.
            reason = "url: its host has no dot, and the domain of a retailer needs one."
            refused.append({"line": row.line, "text": row.url[:200], "reason": reason})
            continue
        twin = first.get(address.canonical)
        first.setdefault(address.canonical, row.line)
        pages.append(
            ListedPage(
                line=row.line,
                url=address.url,
                canonical=address.canonical,
                domain=address.domain,
                twin=twin,
                sku=row.sku or "",
                gtin=row.gtin or "",
                product=row.product_id or "",
                schedule=" ".join(row.schedule.split()) if row.schedule else None,
                priority=row.priority or 0,
                notes=row.notes or "",
                product_id=products.get(row.line, row.harvester_id),
            )
        )
    who = {"kind": actor.kind, "id": actor.id, "name": actor.name}
    rows = {"pages": [asdict(page) for page in pages], "not_read": list(found.not_read), "actor": who}
    refused.sort(key=lambda line: line["line"])
    return ScrapeImport.objects.create(name=name, rows=rows, refused=refused, created_by=actor.name)


def _begin(actor: Actor, found: ScrapeImport) -> Enqueued:
    found.status = "IMPORTING"
    made = enqueue(IMPORT, {"import_id": str(found.pk)}, dedupe_key=f"scrape-import:{found.pk}")
    found.job_id = made.job_id
    found.save(update_fields=["choices", "status", "job_id"])
    detail = {"name": found.name, "pages": len(found.rows["pages"]), "shops": len(found.choices)}
    audit.record(actor, "SCRAPE_IMPORT_STARTED", "scrape_import", found.pk, detail=detail)
    return made


def locked_import(import_id: UUID, status: str | None = None) -> ScrapeImport:
    """Return an import, locked; if a status is named, only one that has it."""
    found = ScrapeImport.objects.select_for_update().filter(pk=import_id).first()
    if found is None:
        raise NotFound(f"There is no import {import_id}; it may have been deleted.")
    if status is not None and found.status != status:
        raise Conflict(f"The import {found} is {found.status}. Nothing was changed.")
    return found


def _checked(before: Choice, changes: dict[str, Any]) -> Choice:
    """Return a choice with changes. Links are to products of a source, so another source has none."""
    allowed = [name for name in asdict(before) if name != "links"]
    unknown = sorted(changes.keys() - set(allowed))
    if unknown:
        raise InvalidInput(f"there are {', '.join(allowed)}.", field=unknown[0])
    choice = replace(before, **changes)
    if choice.source_id != before.source_id:
        choice = replace(choice, links={})
    source = None
    if choice.source_id is not None:
        source = Source.objects.select_related("retailer").filter(pk=choice.source_id).first()
        if source is None:
            raise sources.unknown(choice.source_id)
    try:
        site_named(choice.adapter_id)
    except KeyError:
        raise InvalidInput(f"there is no adapter {choice.adapter_id}.", field="adapter_id") from None
    if source is not None and source.adapter_id is None and (problem := adapter_problem(source, choice.adapter_id)):
        raise InvalidInput(problem, field="adapter_id")
    return replace(
        choice,
        schedule=read_schedule("schedule", choice.schedule),
        skip=fields.flag("skip", choice.skip),
        name=fields.optional_text("name", choice.name),
    )


def _new_source(actor: Actor, domain: str, choice: Choice, shops: Shops) -> Source:
    """Make a source of a shop, and its retailer if nobody has the domain."""
    name = choice.name or domain
    owner = shops.retailer(domain) or retailers.create(actor, name=name, website=f"https://{domain}/")
    taken = Source.objects.filter(name=name).exists()
    source = sources.create(
        actor, owner.pk, name=f"{name} pages" if taken else name, kind=SourceKind.DIRECT, url=f"https://{domain}/"
    )
    source.adapter_id = choice.adapter_id
    source.save(update_fields=["adapter_id"])
    return source
