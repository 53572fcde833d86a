"""Lists of pages of many shops: the outcome of each line before, and adding them in the background.

A preview is made whenever somebody looks at an import, so it says what is true then. The job adds pages in chunks. How
far it is, is part of each chunk's transaction, and a source has a page once, so an import that was killed ends as if it
had not been.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection
from django.db.models.functions import Now

from harvester.catalog.models import Retailer, Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.states import SourceKind
from harvester.engine.cron import next_moment
from harvester.engine.job import RunningJob
from harvester.kernel.actor import actor_from_json
from harvester.kernel.ids import uuid7
from harvester.ops import audit
from harvester.scraping.addresses import Link, Wanted, candidates_text, domains_of, find_products, has_feed
from harvester.scraping.models import ScrapeImport, ScrapeTarget
from harvester.scraping.sites import site_for_domain

log = structlog.get_logger(__name__)

#: Pages that one transaction adds while their sources are locked.
CHUNK: Final = 500
#: Refused lines that the results keep; the counts have all of them.
MOST_REFUSED: Final = 5_000
ANY_SHOP: Final = "structured"
_KNOWN_PRODUCTS = "SELECT id FROM source_products WHERE source_id = %(source)s AND id = ANY(%(ids)s::bigint[])"


class RowState(StrEnum):
    """What a line of a list is."""

    NEW = "NEW"
    DUPLICATE_OF_TARGET = "DUPLICATE_OF_TARGET"  # the source has this page already
    DUPLICATE_IN_LIST = "DUPLICATE_IN_LIST"  # an earlier line has this page
    OFF_DOMAIN = "OFF_DOMAIN"  # it is not on the domain of the chosen source
    UNLINKED = "UNLINKED"  # its product is needed or named, and it is not clear which one that is


@dataclass(frozen=True, kw_only=True)
class ListedPage:
    """A line of a list with an address that may be fetched, as it is stored with the import.

    Attributes:
        line: its number in the list.
        url: as given.
        canonical: the form by which pages are compared.
        domain: the registrable domain of its shop.
        twin: the earlier line with the same page.
        sku, gtin, product, schedule, priority, notes: as given.
        product_id: the product that it is of, if the list was made from a feed or names its id in Harvester.
    """

    line: int
    url: str
    canonical: str
    domain: str
    twin: int | None = None
    sku: str = ""
    gtin: str = ""
    product: str = ""
    schedule: str | None = None
    priority: int = 0
    notes: str = ""
    product_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What would become of a line.

    Attributes:
        page: the line.
        state: what it is.
        reason: why it is not added.
        product_id: the product that it refreshes.
        candidates: products that it may be of.
    """

    page: ListedPage
    state: RowState
    reason: str = ""
    product_id: int | None = None
    candidates: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was decided for the pages of one shop.

    Attributes:
        source_id: the source that gets them; None: a new source, and a new retailer if nobody has this domain.
        adapter_id: the adapter of a source that has none.
        schedule: cron line of lines that name none; None: these are read on request only.
        skip: add none of them.
        name: of a new retailer and source.
        links: canonical address -> product of the source, of pages that somebody linked.
    """

    source_id: UUID | None = None
    adapter_id: str = ANY_SHOP
    schedule: str | None = None
    skip: bool = False
    name: str = ""
    links: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "source_id": str(self.source_id) if self.source_id else None}


@dataclass(frozen=True, kw_only=True)
class Group:
    """The lines of one shop.

    Attributes:
        domain: its registrable domain.
        choice: what was decided, or what is proposed.
        sources: sources of this shop that may get the pages: id -> name.
        retailer: the retailer with this domain, if there is one.
        has_feed: whether the pages must be of products of a feed.
        rows: its lines.
    """

    domain: str
    choice: Choice
    sources: Mapping[UUID, str]
    retailer: str | None
    has_feed: bool
    rows: Sequence[Judged] = field(repr=False)

    @property
    def counts(self) -> dict[RowState, int]:
        return dict(Counter(row.state for row in self.rows))


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What an import would do now.

    Attributes:
        groups: one for each shop.
        refused: lines that cannot be read: line, text and reason.
        not_read: columns and sheets that were not looked at.
    """

    groups: Sequence[Group]
    refused: Sequence[Mapping[str, Any]]
    not_read: Sequence[str]

    @property
    def new(self) -> int:
        """How many pages would be added."""
        return sum(group.counts.get(RowState.NEW, 0) for group in self.groups if not group.choice.skip)


def preview(found: ScrapeImport) -> Preview:
    """Return what an import would do now, with the choices that were made."""
    by_domain: dict[str, list[ListedPage]] = {}
    for page in pages_of(found):
        by_domain.setdefault(page.domain, []).append(page)
    shops = Shops(by_domain)
    groups = []
    for domain, pages in sorted(by_domain.items()):
        choice = choice_for(found, domain, shops)
        known = shops.sources(domain)
        source = _source(choice.source_id) if choice.source_id else None
        groups.append(
            Group(
                domain=domain,
                choice=choice,
                sources={one.pk: one.name for one in known},
                retailer=shops.retailer_name(domain),
                has_feed=source is not None and has_feed(source.pk),
                rows=judge(source, pages, choice.links),
            )
        )
    return Preview(groups=groups, refused=found.refused, not_read=found.rows["not_read"])


def lines_of(found: ScrapeImport, *, state: RowState | None = None, domain: str = "") -> list[Judged]:
    """Return the lines of shops that are not skipped, by shop, as they are now: also after the import has ended."""
    groups = [group for group in preview(found).groups if not group.choice.skip and domain in ("", group.domain)]
    return [row for group in groups for row in group.rows if state in (None, row.state)]


def pages_of(found: ScrapeImport) -> list[ListedPage]:
    return [ListedPage(**row) for row in found.rows["pages"]]


def choice_for(found: ScrapeImport, domain: str, shops: "Shops") -> Choice:
    """Return what was decided for a shop; otherwise its first source, or a new one with the adapter of its domain."""
    if domain in found.choices:
        stored = dict(found.choices[domain])
        source_id = stored.pop("source_id")
        return Choice(**stored, source_id=UUID(source_id) if source_id else None)
    known, site = shops.sources(domain), site_for_domain(domain)
    return Choice(
        source_id=known[0].pk if known else None,
        adapter_id=(known[0].adapter_id if known else None) or (site.id if site else ANY_SHOP),
        name=shops.retailer_name(domain) or domain,
    )


def judge(source: Source | None, pages: Sequence[ListedPage], chosen: Mapping[str, int] | None = None) -> list[Judged]:
    """Return what would become of lines if they were added to a source.

    Args:
        source: None: a new one of their shop.
        pages: the lines.
        chosen: canonical address -> product, of lines that somebody linked.
    """
    linked = [(chosen or {}).get(page.canonical, page.product_id) for page in pages]
    named = {place: number for place, number in enumerate(linked) if number is not None}
    allowed, have = set[str](), set[str]()
    links = {place: Link(product_id=None) for place in named}
    if source is not None:
        allowed = domains_of(source)
        known = ScrapeTarget.objects.filter(source=source, canonical_url__in=[page.canonical for page in pages])
        have = set(known.values_list("canonical_url", flat=True))
        links = _links(source, pages, named)
    judged = []
    for place, page in enumerate(pages):
        link = links.get(place)
        if source is not None and page.domain not in allowed:
            where = ", ".join(sorted(allowed)) or "no known domain"
            one = Judged(page=page, state=RowState.OFF_DOMAIN, reason=f"pages of {source} are on {where}.")
        elif page.canonical in have:
            one = Judged(page=page, state=RowState.DUPLICATE_OF_TARGET, reason=f"{source} has this page already.")
        elif page.twin is not None:
            one = Judged(page=page, state=RowState.DUPLICATE_IN_LIST, reason=f"line {page.twin} has this page.")
        elif link is not None and link.product_id is None:
            candidates = tuple(asdict(candidate) for candidate in link.candidates)
            of = source or "a new source"
            reason = f"{of} has no product {named[place]}." if place in named else _unlinked(link)
            one = Judged(page=page, state=RowState.UNLINKED, reason=reason, candidates=candidates)
        else:
            one = Judged(page=page, state=RowState.NEW, product_id=link.product_id if link else None)
        judged.append(one)
    return judged


def _links(source: Source, pages: Sequence[ListedPage], named: Mapping[int, int]) -> dict[int, Link]:
    """Return place -> the product of a page; without pages that need none."""
    known = {row["id"] for row in fetch(_KNOWN_PRODUCTS, {"source": source.pk, "ids": list(set(named.values()))})}
    links = {place: Link(product_id=product if product in known else None) for place, product in named.items()}
    if has_feed(source.pk):
        wanted = {place: page for place, page in enumerate(pages) if place not in links}
        given = [Wanted(url=page.url, sku=page.sku, gtin=page.gtin, product=page.product) for page in wanted.values()]
        links |= dict(zip(wanted, find_products(source.pk, given), strict=True))
    return links


def _unlinked(link: Link) -> str:
    choice = candidates_text(link.candidates)
    what = "the source has a feed, and it is not clear which of its products this is"
    return f"{what}; possible are {choice}." if choice else f"{what}; name its SKU, GTIN or Harvester id."


class Shops:
    """The sources and retailers of some domains, read in two statements."""

    def __init__(self, domains: Iterable[str]) -> None:
        wanted = {name for domain in domains for name in (domain, f"www.{domain}")}
        self._retailers = {
            (retailer.domain or "").removeprefix("www."): retailer
            for retailer in Retailer.objects.filter(domain__in=wanted).order_by("-created_at")
        }
        self._sources: dict[str, list[Source]] = {}
        # Domains of sources are in their addresses, so all sources are looked at; there are hundreds.
        for source in Source.objects.select_related("retailer").order_by("created_at", "id"):
            for domain in domains_of(source) & wanted:
                self._sources.setdefault(domain, []).append(source)

    def sources(self, domain: str) -> list[Source]:
        """Return the sources of a shop: those that are read first, then its own, then the oldest."""
        found = self._sources.get(domain, [])
        return sorted(found, key=lambda source: (not source.scrape_enabled, source.kind != SourceKind.DIRECT))

    def retailer(self, domain: str) -> Retailer | None:
        return self._retailers.get(domain)

    def retailer_name(self, domain: str) -> str | None:
        found = self.retailer(domain)
        return found.name if found else None


def _source(source_id: UUID) -> Source | None:
    return Source.objects.select_related("retailer").filter(pk=source_id).first()


def import_pages(job: RunningJob, import_id: str) -> dict[str, Any]:
    """Add the pages of an import, from where an earlier attempt got to."""
    pages = pages_of(ScrapeImport.objects.get(pk=import_id))
    status = "IMPORTING"
    while status == "IMPORTING":
        with job.transaction():
            found = ScrapeImport.objects.select_for_update().defer("rows").get(pk=import_id)
            if found.status == "IMPORTING":
                _import_chunk(found, pages)
        status = found.status
        job.progress(found.results.get("done", 0), len(pages), "pages")
        job.check()
    return {name: number for name, number in found.results.items() if isinstance(number, int)}


def _import_chunk(found: ScrapeImport, pages: Sequence[ListedPage]) -> None:
    """Add the next pages; if there are none left, the import has ended."""
    results = {"done": 0, "added": 0, "skipped": 0, "refused": 0, "lines": [], **found.results}
    chunk = pages[results["done"] : results["done"] + CHUNK]
    by_source: dict[UUID, list[ListedPage]] = {}
    for page in chunk:
        choice = found.choices[page.domain]
        if choice["skip"]:
            results["skipped"] += 1
        else:
            by_source.setdefault(UUID(choice["source_id"]), []).append(page)
    for source_id, wanted in sorted(by_source.items()):
        add_pages(found, source_id, wanted, results)
    results["done"] += len(chunk)
    found.results = results
    if results["done"] >= len(pages):
        found.status, found.finished_at = "DONE", Now()
        counts = {name: results[name] for name in ("added", "skipped", "refused")}
        actor = actor_from_json(found.rows["actor"])
        audit.record(actor, "SCRAPE_IMPORT_ENDED", "scrape_import", found.pk, detail={"name": found.name, **counts})
        log.info("SCRAPE_IMPORT_ENDED", import_id=str(found.pk), **counts)
    found.save(update_fields=["results", "status", "finished_at"])


def add_pages(found: ScrapeImport, source_id: UUID, pages: Sequence[ListedPage], results: dict[str, Any]) -> None:
    """Add pages to a source, as far as they are new and of it; the others are refused. Both are counted in results."""
    source = Source.objects.select_for_update(of=("self",)).select_related("retailer").get(pk=source_id)
    if source.adapter_id is None:
        source.adapter_id = found.choices[pages[0].domain]["adapter_id"]
        source.save(update_fields=["adapter_id"])
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now = cursor.fetchone()[0]
    new = []
    due: dict[str, Any] = {}
    chosen: dict[str, int] = {}
    for domain in {page.domain for page in pages}:
        chosen |= found.choices[domain].get("links", {})
    for judged in judge(source, pages, chosen):
        page = judged.page
        if judged.state is not RowState.NEW:
            results["refused"] += 1
            if len(results["lines"]) < MOST_REFUSED:
                line = {"line": page.line, "text": page.url[:200], "state": judged.state, "reason": judged.reason}
                results["lines"].append(line)
            continue
        schedule = page.schedule or found.choices[page.domain]["schedule"]
        if schedule and schedule not in due:
            due[schedule] = next_moment(schedule, now)
        new.append(
            ScrapeTarget(
                id=uuid7(),
                source=source,
                adapter_id=source.adapter_id,
                url=page.url,
                canonical_url=page.canonical,
                product_id=judged.product_id,
                schedule=schedule,
                due_at=due.get(schedule or ""),
                priority=page.priority,
                notes=page.notes,
                created_by=found.created_by,
            )
        )
    ScrapeTarget.objects.bulk_create(new)
    results["added"] += len(new)
