"""Pages, sources, adapters and quarantine as people get to see them: paged by key, in few statements."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch, fetch_tuples
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.runs.models import RunPart
from harvester.scraping import robots_cache
from harvester.scraping.addresses import address_on, domains_of
from harvester.scraping.lanes import Lanes
from harvester.scraping.models import QuarantineEntry, ScrapeBatch, ScrapeImport, ScrapeRun, ScrapeTarget
from harvester.scraping.pace import ScheduleFit, shortest_period
from harvester.scraping.readiness import origins_of
from harvester.scraping.states import TargetStatus
from harvester.scraping.target_filters import Diagnosis, TargetFilter, Trouble, diagnose

LARGEST_PAGE: Final = 200
#: Fields whose coverage is shown, in the order in which people read them.
COVERED: Final = ("title", "price", "availability", "sku", "gtin", "brand")

# Pages, parts and entries are counted for the sources of one page of the list only.
_SOURCES = """
WITH s AS MATERIALIZED (
    SELECT * FROM sources
    WHERE CASE WHEN %(ids)s::uuid[] IS NULL THEN adapter_id IS NOT NULL ELSE id = ANY (%(ids)s::uuid[]) END
      AND name > %(after)s
    ORDER BY name LIMIT %(most)s
)
SELECT s.id AS source_id, s.name, s.adapter_id, s.enabled, s.scrape_enabled, s.robots_compliant, s.robots_set_by,
    s.visibility, coalesce(a.enabled, true) AS adapter_enabled, a.disabled_reason, a.disabled_by, a.disabled_at,
    coalesce(a.check_next_run, false) AS check_next_run, a.check_run_no, a.baseline_failure_rate,
    a.baseline_yield_rate, coalesce(a.baseline_sample_size, 0) AS baseline_sample_size, a.last_batch_failure_rate,
    a.backoff_until,
    t.pages, t.readable, t.due, t.oldest_due, t.newest_success, t.oldest_success, t.never_read, p.pending,
    q.quarantined
FROM s
LEFT JOIN adapter_states a ON a.source_id = s.id AND a.adapter_id = s.adapter_id
CROSS JOIN LATERAL (
    SELECT count(*) AS pages,
        count(*) FILTER (WHERE is_read) AS readable,
        count(*) FILTER (WHERE is_read AND due_at <= statement_timestamp()) AS due,
        min(due_at) FILTER (WHERE is_read AND due_at <= statement_timestamp()) AS oldest_due,
        max(last_success_at) AS newest_success,
        min(last_success_at) FILTER (WHERE is_read) AS oldest_success,
        count(*) FILTER (WHERE is_read AND last_scraped_at IS NULL) AS never_read
    FROM (SELECT *, enabled AND status = 'ACTIVE' AND NOT robots_path_blocked AS is_read FROM scrape_targets
        WHERE source_id = s.id) each) t
CROSS JOIN LATERAL (
    SELECT count(*) AS pending FROM runs r
    JOIN run_parts p ON p.run_id = r.id AND p.begun_at = r.started_at
    WHERE r.source_id = s.id AND r.kind = 'SCRAPE' AND r.status = 'RUNNING' AND p.outcome IS NULL) p
CROSS JOIN LATERAL (
    SELECT count(*) AS quarantined FROM quarantine WHERE source_id = s.id AND status = 'OPEN') q
ORDER BY s.name
"""
_ADAPTERS = """
SELECT s.adapter_id, count(*) AS sources, count(*) FILTER (WHERE NOT a.enabled) AS disabled,
    count(*) FILTER (WHERE a.check_next_run) AS to_check
FROM sources s LEFT JOIN adapter_states a ON a.source_id = s.id AND a.adapter_id = s.adapter_id
WHERE s.adapter_id IS NOT NULL GROUP BY s.adapter_id
"""
# Without the lines themselves, which may be megabytes.
_IMPORTS = """
SELECT id, name, status, jsonb_array_length(rows -> 'pages') AS pages, jsonb_array_length(refused) AS refused, job_id,
    created_by, created_at, finished_at
FROM scrape_imports WHERE %(after)s::uuid IS NULL OR id < %(after)s::uuid ORDER BY id DESC LIMIT %(most)s
"""
_MOVED = """
SELECT t.id, t.source_id, t.url, t.moved_to FROM scrape_targets t
WHERE t.source_id = %(source)s AND t.moved_to IS NOT NULL AND t.moved_to <> t.url ORDER BY t.id LIMIT %(most)s
"""
# A page is of the product that it is linked to, or of the one that its first written offer was of.
_SAME: Final = """
SELECT source_id, coalesce(product_id, pinned_product_id) AS product, array_agg(id ORDER BY created_at, id),
    count(*) OVER ()
FROM scrape_targets WHERE enabled AND coalesce(product_id, pinned_product_id) IS NOT NULL
GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 1, 2 LIMIT %(most)s
"""
_TWICE = """
SELECT coalesce(product_id, pinned_product_id) AS product_id, array_agg(id ORDER BY id) AS ids,
    array_agg(url ORDER BY id) AS urls
FROM scrape_targets
WHERE source_id = %(source)s AND enabled AND coalesce(product_id, pinned_product_id) IS NOT NULL
GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT %(most)s
"""
_SCHEDULES = """
SELECT t.source_id, t.schedule, count(*) AS pages FROM scrape_targets t
JOIN sources s ON s.id = t.source_id
WHERE t.enabled AND t.status = 'ACTIVE' AND NOT t.robots_path_blocked AND t.schedule IS NOT NULL
  AND (s.scrape_enabled OR s.id = %(source)s)
GROUP BY t.source_id, t.schedule ORDER BY t.schedule
"""


@dataclass(frozen=True, kw_only=True)
class SameProduct:
    """A product of a source with more than one page, the oldest page first."""

    source_id: UUID
    product_id: int
    target_ids: list[UUID]


@dataclass(frozen=True, kw_only=True)
class SameProducts:
    """Some products with more than one page, and the number of all."""

    groups: list[SameProduct]
    total: int


@dataclass(frozen=True, kw_only=True)
class TargetRow:
    """A page in a list, with its source, and why it yields nothing if it does not."""

    target: ScrapeTarget
    diagnosis: Diagnosis | None


@dataclass(frozen=True, kw_only=True)
class SourceRow:
    """How scraping of a source goes.

    Attributes:
        source_id, name, adapter_id: of the source.
        enabled, scrape_enabled, robots_compliant, robots_set_by, visibility: its switches.
        adapter_enabled, disabled_reason, disabled_by, disabled_at: the adapter's.
        check_next_run, check_run_no: whether a run waits to be checked by a person, and which.
        baseline_failure_rate, baseline_yield_rate, baseline_sample_size, last_batch_failure_rate: usual rates.
        backoff_until: until when the scheduler pauses.
        pages, readable, due, pending, never_read, quarantined: how many pages.
        oldest_due: since when the oldest due page is due: the lag.
        newest_success, oldest_success: when pages were read well: the freshness.
    """

    source_id: UUID
    name: str
    adapter_id: str | None
    enabled: bool
    scrape_enabled: bool
    robots_compliant: bool
    robots_set_by: str | None
    visibility: str
    adapter_enabled: bool
    disabled_reason: str | None
    disabled_by: str | None
    disabled_at: datetime | None
    check_next_run: bool
    check_run_no: int | None
    baseline_failure_rate: Any
    baseline_yield_rate: Any
    baseline_sample_size: int
    last_batch_failure_rate: Any
    backoff_until: datetime | None
    pages: int
    readable: int
    due: int
    oldest_due: datetime | None
    newest_success: datetime | None
    oldest_success: datetime | None
    never_read: int
    pending: int
    quarantined: int

    @property
    def is_read(self) -> bool:
        """Whether all switches are on."""
        return self.enabled and self.scrape_enabled and self.robots_compliant and self.adapter_enabled


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A page that the shop permanently redirects; `problem` says why its replacement cannot be taken over."""

    target_id: UUID
    url: str
    moved_to: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class UrlHealth:
    """What is wrong with the addresses of a source.

    Attributes:
        moved: pages that the shop redirects.
        gone: pages that are gone.
        twice: product -> its pages, if it has more than one: id -> address.
    """

    moved: Sequence[Moved]
    gone: Sequence[ScrapeTarget]
    twice: Mapping[int, Mapping[UUID, str]]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Whether the pages of one schedule can be read in time."""

    schedule: str
    fit: ScheduleFit


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """On which share of the pages with an offer a run found each field, from 0 to 1."""

    run_no: int
    ended_at: datetime
    pages: int
    shares: Mapping[str, float]


def target(target_id: UUID) -> TargetRow:
    found = ScrapeTarget.objects.select_related("source__retailer").filter(pk=target_id).first()
    if found is None:
        raise NotFound(f"There is no page {target_id}; it may have been deleted.")
    return TargetRow(target=found, diagnosis=diagnose(found))


def targets(wanted: TargetFilter, *, after: UUID | None = None, most: int = 50) -> list[TargetRow]:
    """Return pages that match, newest first; the list begins behind the page `after`."""
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"allowed is 1 to {LARGEST_PAGE}.", field="most")
    found = wanted.targets().select_related("source__retailer").order_by("-id")
    if after is not None:
        found = found.filter(pk__lt=after)
    return [TargetRow(target=one, diagnosis=diagnose(one)) for one in found[:most]]


def readings(target_id: UUID, most: int = 20) -> list[RunPart]:
    """Return how reading a page ended, with the runs, newest first; runs are kept for 30 days."""
    ended = RunPart.objects.filter(target_id=target(target_id).target.pk, ended_at__isnull=False)
    return list(ended.select_related("run").order_by("-ended_at", "-id")[:most])


def counts(wanted: TargetFilter) -> dict[str, int]:
    """Return how many pages that match are in each status, in each plain state of trouble, due and moved; and `all`."""
    conditions: dict[str, Q] = {status.value: Q(status=status) for status in TargetStatus}
    conditions |= {f"trouble_{state.lower()}": TargetFilter(trouble=state).conditions() for state in Trouble}
    conditions["off"] = Q(enabled=False)
    conditions["due"] = TargetFilter(is_due=True).conditions()
    conditions["moved"] = TargetFilter(has_moved=True).conditions()
    totals = {f"n_{name}": Count("pk", filter=condition) for name, condition in conditions.items()}
    found = wanted.targets().aggregate(n_all=Count("pk"), **totals)
    return {name.removeprefix("n_"): number for name, number in found.items()}


def sources(ids: Collection[UUID] | None = None, *, after: str = "", most: int = 50) -> list[SourceRow]:
    """Return how scraping of sources goes, by name; the page begins behind the name `after`.

    Without ids, of all sources that have an adapter.
    Lag and freshness, adapters and switches of all of them are one statement.
    """
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"allowed is 1 to {LARGEST_PAGE}.", field="most")
    given = None if ids is None else list(ids)
    return [SourceRow(**row) for row in fetch(_SOURCES, {"ids": given, "after": after, "most": most})]


def url_health(source_id: UUID, most: int = 100) -> UrlHealth:
    """Return pages of a source that moved, are gone, or are of one product."""
    source = Source.objects.select_related("retailer").get(pk=source_id)
    found = fetch(_MOVED, {"source": source_id, "most": most})
    targets_of: dict[UUID, str] = {}
    problems: dict[UUID, str] = {}
    for row in found:
        try:
            targets_of[row["id"]] = address_on(source, row["moved_to"]).canonical
        except InvalidInput as problem:
            problems[row["id"]] = problem.reason
    pages = ScrapeTarget.objects.filter(source=source, canonical_url__in=set(targets_of.values()))
    taken = dict(pages.values_list("canonical_url", "pk"))
    for pk, canonical in targets_of.items():
        if taken.get(canonical, pk) != pk:
            problems[pk] = "the source reads that page already; delete one of both."
    moved = [
        Moved(target_id=row["id"], url=row["url"], moved_to=row["moved_to"], problem=problems.get(row["id"], ""))
        for row in found
    ]
    gone = TargetFilter(source_id=source_id, trouble=Trouble.GONE).targets().order_by("-id")[:most]
    twice = fetch(_TWICE, {"source": source_id, "most": most})
    return UrlHealth(
        moved=moved,
        gone=list(gone),
        twice={row["product_id"]: dict(zip(row["ids"], row["urls"], strict=True)) for row in twice},
    )


def same_products(most: int) -> SameProducts:
    """Return products that have more than one page, in one statement."""
    rows = fetch_tuples(_SAME, {"most": most})
    groups = [SameProduct(source_id=source, product_id=product, target_ids=ids) for source, product, ids, _ in rows]
    return SameProducts(groups=groups, total=rows[0][3] if rows else 0)


def schedule_fits(source: Source) -> list[Fit]:
    """Return for each schedule of a source, with its retailer, whether its pages can be read in time.

    Pages of other sources in the same lanes, and of its other schedules, take their share.
    """
    lanes = Lanes.load()
    delays = [known.robots.crawl_delay(robots_cache.AGENT) for origin in origins_of(source)
              if (known := robots_cache.look(origin)) is not None]  # fmt: skip
    interval = max([lanes.interval_of(source), *(delay for delay in delays if delay)])
    groups = fetch(_SCHEDULES, {"source": source.pk})
    owners = Source.objects.select_related("retailer").in_bulk({row["source_id"] for row in groups})
    mine, shares = domains_of(source), {}
    for place, row in enumerate(groups):
        period = shortest_period(row["schedule"])
        if period is not None and domains_of(owners[row["source_id"]]) & mine:
            shares[place] = (row, period, row["pages"] * interval / period.total_seconds())
    fits = []
    for place, (row, period, _) in shares.items():
        if row["source_id"] == source.pk:
            busy = sum(share for other, (_, _, share) in shares.items() if other != place)
            fit = ScheduleFit(pages=row["pages"], period=period, interval=interval, busy_share=min(busy, 1.0))
            fits.append(Fit(schedule=row["schedule"], fit=fit))
    return fits


def field_coverage(source_id: UUID, *, days: int = 30, most: int = 200) -> list[Coverage]:
    """Return on which share of pages each run of the last days found each field, oldest first."""
    runs = ScrapeRun.objects.select_related("run").filter(
        source_id=source_id, run__finished_at__isnull=False, run__started_at__gte=_since(days), offers__gt=0
    )
    return [
        Coverage(
            run_no=found.run.no,
            ended_at=found.run.finished_at,
            pages=found.offers,
            shares={name: min(found.fields_found.get(name, 0) / found.offers, 1.0) for name in COVERED},
        )
        for found in reversed(runs.order_by("-run__no")[:most])
        if found.run.finished_at is not None
    ]


def batches(source_id: UUID, adapter_id: str, *, days: int = 7, most: int = 500) -> list[ScrapeBatch]:
    """Return the judged batches of an adapter on a source, oldest first: its chart."""
    found = ScrapeBatch.objects.filter(source_id=source_id, adapter_id=adapter_id, judged_at__gte=_since(days))
    return list(reversed(found.order_by("-judged_at", "-id")[:most]))


def quarantine_counts(source_ids: Collection[UUID] | None = None) -> dict[UUID, dict[str, int]]:
    """Return source -> reason -> open entries."""
    found = QuarantineEntry.objects.filter(status="OPEN")
    if source_ids is not None:
        found = found.filter(source_id__in=list(source_ids))
    counted: dict[UUID, dict[str, int]] = {}
    rows = found.values_list("source_id", "reason").annotate(number=Count("pk")).order_by("source_id", "-number")
    for source_id, reason, number in rows:
        counted.setdefault(source_id, {})[reason] = number
    return counted


def adapter_usage() -> dict[str, dict[str, int]]:
    """Return adapter -> on how many sources it is used, disabled, and has a run that a person has to check."""
    return {row.pop("adapter_id"): row for row in fetch(_ADAPTERS, {})}


def quarantine(
    *,
    source_id: UUID | None = None,
    reason: str | None = None,
    status: str | None = None,
    after: UUID | None = None,
    most: int = 50,
) -> list[QuarantineEntry]:
    """Return entries of quarantine with source and page, newest first; the list begins behind the entry `after`."""
    wanted = {"source_id": source_id, "reason": reason, "status": status, "pk__lt": after}
    found = QuarantineEntry.objects.filter(**{name: value for name, value in wanted.items() if value is not None})
    return list(found.select_related("source", "target").defer("evidence").order_by("-id")[:most])


def entry(entry_id: UUID) -> QuarantineEntry:
    found = QuarantineEntry.objects.select_related("source", "target").filter(pk=entry_id).first()
    if found is None:
        raise NotFound(f"There is no entry {entry_id}; entries are deleted after 90 days.")
    return found


def imports(*, after: UUID | None = None, most: int = 50) -> list[dict[str, Any]]:
    """Return imports without their lines, newest first; the list begins behind the import `after`."""
    return fetch(_IMPORTS, {"after": after, "most": most})


def scrape_import(import_id: UUID) -> ScrapeImport:
    found = ScrapeImport.objects.filter(pk=import_id).first()
    if found is None:
        raise NotFound(f"There is no import {import_id}; it may have been deleted.")
    return found


def _since(days: int) -> datetime:
    [row] = fetch("SELECT clock_timestamp() - %(age)s AS since", {"age": timedelta(days=days)})
    since: datetime = row["since"]
    return since
