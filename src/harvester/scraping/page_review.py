"""Kept pages, read again: with today's adapter, with a changed override, and to find where values have moved to."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit
from harvester.runs import parts
from harvester.runs.models import Run
from harvester.runs.states import RunTrigger
from harvester.scraping import kept_pages
from harvester.scraping.errands import Situation, situation_of
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.models import KeptPage, QuarantineEntry, ScrapeTarget
from harvester.scraping.offers import PageReading, offer_to_json
from harvester.scraping.promotion import other_after_redirect
from harvester.scraping.quarantine import write_one
from harvester.scraping.reading import context_of, read_body
from harvester.scraping.runs import SCRAPE_RUNS
from harvester.scraping.sandbox import AdapterFailed, sandbox
from harvester.scraping.states import READ, PageOutcome

#: Kept pages that a back-test reads, the newest first; at 30 ms each that is half a minute.
MOST_PAGES: Final = 1_000
#: Pages of which a report shows what changed.
MOST_SHOWN: Final = 200
#: Pages that are searched for places.
MOST_SEARCHED: Final = 50
#: Fields that are looked for, most important first.
HINTED: Final = ("price", "title", "sku")
SEARCH: Final = "harvester.scraping.site_draft:find_places"


@dataclass(frozen=True, kw_only=True)
class PageChange:
    """A kept page that is read differently now.

    Attributes:
        target_id: whose page it is.
        url: its address.
        page: hash of its bytes.
        kind: "changed", "lost" or "gained" an offer, or "other": another reason for none.
        then: the outcome that it had, and `now`.
        fields: field -> what was read then, and now; None: nothing.
        detail: why there is no offer now.
    """

    target_id: str
    url: str
    page: str
    kind: str
    then: str
    now: str
    fields: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class BacktestReport:
    """What an adapter reads from kept pages, compared with what was read then.

    Attributes:
        adapter_id: the adapter.
        version: its version, with that of the override.
        pages: how many were read.
        same: the same offer, or the same reason for none.
        changed: another offer.
        lost: no offer any more.
        gained: an offer that was not there.
        other: no offer, for another reason.
        missing: pages whose file is gone.
        fields: field -> on how many pages it changed.
        changes: the first pages that are read differently.
    """

    adapter_id: str
    version: str
    pages: int
    same: int
    changed: int
    lost: int
    gained: int
    other: int
    missing: int
    fields: dict[str, int]
    changes: tuple[PageChange, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Hint:
    """A place at which the last known values of products are found on their new pages.

    Attributes:
        field: title, price or sku.
        place: as in a site file.
        found: on how many pages the known value is there.
        pages: how many pages were searched.
        override: usable as it is for `backtest` and as an override of the source.
    """

    field: str
    place: str
    found: int
    pages: int

    @property
    def override(self) -> dict[str, Any]:
        return {"places": {self.field: [self.place]}}


def read_kept(target_id: UUID, page: str | None = None) -> tuple[KeptPage, PageReading]:
    """Return what the current adapter reads from the newest kept page of a target, or from the one with this hash.

    Raises:
        PageMissing: it is not kept any more.
        NotFound: there is no such target.
    """
    target = ScrapeTarget.objects.filter(pk=target_id).first()
    if target is None:
        raise NotFound(f"There is no page {target_id}.")
    pages = KeptPage.objects.filter(target_id=target_id, **({} if page is None else {"hash": page}))
    kept = pages.order_by("-fetched_at", "-id").first()
    if kept is None:
        raise PageMissing("The page is not kept any more. Read it from the shop again.")
    return kept, _read(kept, target.url, situation_of(target.pk))


def reprocess(actor: Actor, target_id: UUID) -> Run:
    """Begin a run that reads the newest kept page of a target with the current adapter. Nothing is requested.

    The page keeps its time: if a newer observation exists, the outcome is SUPERSEDED.
    """
    kept = kept_pages.newest(target_id)
    if kept is None:
        raise PageMissing("The page is not kept any more. Read it from the shop again.")
    kept_pages.read_body(kept.hash)
    new = parts.NewPart(
        target_id=target_id, dedupe_key=f"scrape:{target_id}", page=kept.hash, observed_at=kept.fetched_at
    )
    with transaction.atomic():
        source = SCRAPE_RUNS.find_or_none(str(kept.source_id))
        run = parts.begin(SCRAPE_RUNS, source, RunTrigger.RETRY, [new], requested_by=actor.name)
        audit.record(actor, "SCRAPE_PAGE_REPROCESSED", "scrape_target", target_id, detail={"run_no": run.no})
    return run


def reprocess_entry(actor: Actor, entry_id: UUID, *, note: str = "") -> tuple[PageReading, QuarantineEntry]:
    """Read the page of an entry of quarantine again and, if that gives an offer, write it.

    Afterwards the entry is WRITTEN, or SUPERSEDED if a newer page was written before; without an offer it stays OPEN,
    and the reading says why.
    """
    entry = QuarantineEntry.objects.filter(pk=entry_id).first()
    if entry is None or entry.page is None:
        raise NotFound(f"There is no entry {entry_id} with a kept page.")
    kept, reading = read_kept(entry.target_id, entry.page)
    if reading.outcome is PageOutcome.OFFER and reading.offer is not None:
        if reason := other_after_redirect(ScrapeTarget.objects.get(pk=entry.target_id), reading.offer, kept.url):
            raise Conflict(f"{reason} Nothing was changed.")
        entry = write_one(actor, entry_id, reading.offer, note=note or "Its page was read again.")
    return reading, entry


def backtest(source: Source, overrides: Mapping[str, Any] | None = None, *, most: int = MOST_PAGES) -> BacktestReport:
    """Read the kept pages of a source with the current adapter, and compare with what was read then.

    Args:
        source: whose pages.
        overrides: instead of the active ones; {} for none.
        most: how many pages, the newest first.
    """
    counts: Counter[str] = Counter()
    changed_fields: Counter[str] = Counter()
    changes: list[PageChange] = []
    version = ""

    def look(kept: KeptPage) -> tuple[KeptPage, PageReading | None]:
        situation = situations[kept.target_id]
        if overrides is not None:
            situation = replace(situation, override=(0, overrides) if overrides else None)
        try:
            return kept, _read(kept, situation.url, situation)
        except PageMissing:
            return kept, None

    kept_of_source = KeptPage.objects.filter(source=source, target__isnull=False, status=200).select_related("target")
    pages = list(kept_of_source.order_by("-fetched_at")[:most])
    situations = {kept.target_id: situation_of(kept.target_id) for kept in pages}
    for kept, reading in _in_parallel(look, pages):
        if reading is None:
            counts["missing"] += 1
            continue
        counts["pages"] += 1
        version = reading.adapter_version
        change = _compared(kept, reading)
        counts[change.kind] += 1
        changed_fields.update(list(change.fields))
        if change.kind != "same" and len(changes) < MOST_SHOWN:
            changes.append(change)
    kinds = ("pages", "same", "changed", "lost", "gained", "other", "missing")
    return BacktestReport(
        adapter_id=source.adapter_id or "",
        version=version,
        fields=dict(changed_fields),
        changes=tuple(changes),
        **{kind: counts[kind] for kind in kinds},
    )


def hints(source: Source) -> list[Hint]:
    """Return where the last known values of the source's products are on their newest pages.

    Places that have the value on most pages come first; each can be tried as an override.
    """
    targets = ScrapeTarget.objects.filter(source=source, last_seen__isnull=False).order_by("-last_scraped_at")
    found: dict[str, Counter[str]] = {name: Counter() for name in HINTED}
    searched: Counter[str] = Counter()

    def search(target: ScrapeTarget) -> tuple[dict[str, str], dict[str, list[str]]] | None:
        kept = kept_pages.newest(target.pk)
        if kept is None:
            return None
        offer = (target.last_seen or {}).get("offer", {})
        known = {name: str(offer[name]) for name in HINTED if offer.get(name)}
        try:
            body = kept_pages.read_body(kept.hash)
            return known, sandbox().read(SEARCH, body, kept.content_type, target.url, known)
        except (PageMissing, AdapterFailed):
            return None

    for result in _in_parallel(search, targets[:MOST_SEARCHED]):
        if result is not None:
            known, places = result
            searched.update(list(known))
            for name, each in places.items():
                found[name].update(each)
    made = [
        Hint(field=name, place=place, found=count, pages=searched[name])
        for name, places in found.items()
        for place, count in places.items()
        # What is found on one page of many is a coincidence.
        if count * 2 > searched[name]
    ]
    return sorted(made, key=lambda hint: (HINTED.index(hint.field), -hint.found, len(hint.place)))


def _read(kept: KeptPage, url: str, situation: Situation) -> PageReading:
    body = kept_pages.read_body(kept.hash)
    context = context_of(url, situation, source_id=kept.source_id, target_id=kept.target_id, run_no=kept.run_no)
    return read_body(body, kept.content_type, situation, context)


def _in_parallel(work: Callable[[Any], Any], given: Iterable[Any]) -> Iterator[Any]:
    """Return what the work makes of each, in their order: as many at once as there are children that read."""

    def done(each: Any) -> Any:
        try:
            return work(each)
        finally:
            connection.close()

    with ThreadPoolExecutor(sandbox().children) as pool:
        yield from pool.map(done, given)


def _compared(kept: KeptPage, reading: PageReading) -> PageChange:
    """Return how a page is read now, compared with then."""
    then, now = kept.found, offer_to_json(reading.offer) if reading.offer else None
    had = then is not None and kept.outcome in READ
    has = reading.outcome is PageOutcome.OFFER
    fields: dict[str, tuple[Any, Any]] = {}
    if had and has:
        names = {*(then or {}), *(now or {})}
        fields = {
            name: ((then or {}).get(name), (now or {}).get(name))
            for name in sorted(names)
            if (then or {}).get(name) != (now or {}).get(name)
        }
        kind = "changed" if fields else "same"
    elif had or has:
        kind = "lost" if had else "gained"
    else:
        kind = "same" if kept.outcome in (None, reading.outcome) else "other"
    return PageChange(
        target_id=str(kept.target_id),
        url=kept.url,
        page=kept.hash,
        kind=kind,
        then=kept.outcome or "not judged",
        now=reading.outcome.value,
        fields=fields,
        detail=reading.detail,
    )
