"""The shapes of sources that are scraped, and of their adapters."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from harvester.api.schemas import HIGHEST, Body
from harvester.api.scraping.fields import Changes, Text, Word
from harvester.catalog.governance import Gate
from harvester.scraping.states import DisabledReason


class AdapterOnSource(BaseModel):
    """How the adapter of a source does there."""

    id: str | None = Field(description="null: no adapter was chosen")
    enabled: bool
    disabled_reason: str | None = Field(description="MANUAL, DRIFT_DETECTED or TOS_VIOLATION")
    disabled_by: str | None
    disabled_at: datetime | None
    check_next_run: bool = Field(description="it was enabled again, and a person has to check its next run")
    check_run_no: int | None = Field(description="the run to check")
    baseline_failure_rate: float | None = Field(description="median of the batches of 7 days, from 0 to 1")
    baseline_yield_rate: float | None
    baseline_sample_size: int
    last_batch_failure_rate: float | None
    backoff_until: datetime | None = Field(description="until when the scheduler enqueues nothing, after rejections")


class ScrapedSourceSummary(BaseModel):
    """A source whose pages are read, in a list."""

    id: UUID
    name: str
    is_read: bool = Field(description="all its switches are on")
    enabled: bool
    scrape_enabled: bool
    robots_compliant: bool
    robots_set_by: str | None = Field(description="who forbade it by hand")
    visibility: str = Field(description="INELIGIBLE: consumers see none of its scraped prices")
    adapter: AdapterOnSource
    pages: int
    readable: int = Field(description="pages that are switched on, ACTIVE and not blocked")
    due: int
    oldest_due_at: datetime | None = Field(description="when the page was due that waits longest: the lag")
    newest_success_at: datetime | None = Field(description="when a page was read well last: the freshness")
    oldest_success_at: datetime | None
    never_read: int
    pending: int = Field(description="pages that wait in the queue")
    quarantined: int = Field(description="open entries of quarantine")


class ScrapedSources(BaseModel):
    """A page of sources, by name."""

    items: list[ScrapedSourceSummary]
    next_cursor: str | None


class ReadinessStep(BaseModel):
    """A step towards prices that consumers see."""

    name: str
    label: str
    is_done: bool
    is_needed: bool = Field(description="no page is read without it")
    detail: str
    next_step: str = Field(description="what to do if it is not done")
    examples: list[dict[str, Any]]


class ScrapeSettings(BaseModel):
    """The settings that count: those that were set, and defaults."""

    requests_per_second: float | None = Field(description="null: 0.5; the slowest source of a domain counts")
    pace_by_host: list[str] = Field(description="hosts of this shop with a pace of their own")
    default_currency: str | None = Field(description="for pages that name none; ISO 4217")
    headers: list[str] = Field(description="the names of extra headers; their values are never shown")
    conditional: bool = Field(description="ask only for pages that have changed")
    cache: bool = Field(description="use a page again that was fetched a short time ago")
    cache_seconds: int


class ScheduleFit(BaseModel):
    """Whether the pages of one schedule can be read in time."""

    schedule: str = Field(description="a cron line in UTC")
    pages: int
    period_seconds: float = Field(description="from one moment of the schedule to the next")
    interval_seconds: float = Field(description="from one request to the next")
    seconds: float = Field(description="how long its pages take")
    most_pages: int = Field(description="how many would fit next to the other schedules of the domain")
    is_met: bool
    summary: str


class BreakerState(BaseModel):
    """Whether requests to the source are let through after failures."""

    gate: Gate = Field(description="STOPPED: until a person resumes it")
    failures: int
    openings: int
    paused_until: datetime | None
    stopped_at: datetime | None
    stopped_by: str | None = Field(description="null: the system")
    stopped_reason: str | None


class FieldCoverage(BaseModel):
    """On which share of its offers a run found each field, from 0 to 1."""

    run_no: int
    ended_at: datetime
    pages: int
    shares: dict[str, float]


class ScrapedSource(ScrapedSourceSummary):
    """A source whose pages are read, with everything that decides about it."""

    tos_reviewed_at: datetime | None
    tos_approved_by: str | None
    tos_note: str | None
    expiry_hours: int | None = Field(description="an offer that was not seen for so many hours disappears")
    settings: ScrapeSettings
    readiness: list[ReadinessStep]
    warnings: list[str] = Field(description="what is allowed and probably not meant")
    counts: dict[str, int] = Field(
        description="pages by status (ACTIVE, PAUSED, BROKEN, STALE), by trouble (trouble_blocked, trouble_gone, "
        "trouble_broken, trouble_our_problem), `off`, `due`, `moved` and `all`"
    )
    quarantine: dict[str, int] = Field(description="open entries by reason")
    schedules: list[ScheduleFit]
    breaker: BreakerState | None = Field(description="null: it has never failed")
    coverage: list[FieldCoverage] = Field(description="the newest runs of the last 30 days, oldest first")


class ScrapeSettingsChanges(Changes):
    """Settings to change. What is left out stays; null restores a default."""

    requests_per_second: float | None = None
    pace_by_host: list[Word] | None = None
    default_currency: Word | None = None
    headers: dict[Word, Text] | None = None
    conditional: bool | None = None
    cache: bool | None = None
    cache_seconds: Annotated[int, Field(ge=0, le=HIGHEST)] | None = None


class TermsReview(Body):
    """The review of the shop's terms."""

    note: Text = Field(min_length=1, description="what the terms say, and why that allows scraping")


class ScrapeEnabling(Body):
    """Let the pages of a source be read."""

    keep_visibility: bool = Field(default=False, description="consumers may see its prices at once")


class ScrapeStop(Body):
    """Stop reading pages."""

    reason: Text = ""


class ScrapePause(Body):
    """Stop requests for a while."""

    reason: Text = Field(min_length=1)


class RobotsSwitch(Body):
    """Forbid or allow reading a source as a whole. Single pages are read only if robots.txt allows them, always."""

    compliant: bool
    note: Text = Field(min_length=1)


class ScrapeShow(Body):
    """Show scraped prices to consumers."""

    anyway: bool = Field(default=False, description="although sample pages or a first run are missing")


class AdapterChoice(Body):
    """The adapter that reads the pages of a source."""

    adapter_id: Word


class AdapterSwitchOff(Body):
    """Stop the adapter of a source."""

    reason: Annotated[DisabledReason, Field(strict=False)] = Field(
        default=DisabledReason.MANUAL, description="MANUAL or TOS_VIOLATION"
    )
    note: Text = Field(min_length=1, description="why, in a sentence")


class RobotsCheck(BaseModel):
    """Files that are fetched now."""

    requests: list[UUID] = Field(description="as `request_id` of `/scrape/try/{request_id}`")


class Stopped(BaseModel):
    """What was stopped."""

    sources: int
    pages: int = Field(description="pages that waited and were cancelled")


class Adapter(BaseModel):
    """An adapter that is available."""

    id: str
    version: str
    title: str
    domains: list[str] = Field(description="empty: it reads any shop")
    is_available: bool = Field(description="false: it needs a browser, which is not available")
    sources: int = Field(description="sources that have it")
    disabled: int = Field(description="of them, those on which it is disabled")
    to_check: int = Field(description="of them, those with a run that a person has to check")


class Adapters(BaseModel):
    """All adapters, the one for any shop first."""

    items: list[Adapter]


class Batch(BaseModel):
    """A batch of pages that was judged."""

    judged_at: datetime
    run_no: int
    adapter_version: str
    attempts: int
    failures: int
    offers: int
    zero_prices: int
    is_refused: bool
    gates: list[dict[str, Any]] = Field(description="what each gate decided")


class AdapterHistory(BaseModel):
    """How the adapter of a source did in the last 7 days."""

    adapter: AdapterOnSource
    batches: list[Batch] = Field(description="oldest first; at most 500")


class MovedPage(BaseModel):
    """A page that the shop permanently redirects."""

    target_id: UUID
    url: str
    moved_to: str
    problem: str = Field(description="why the new address cannot be taken over; empty if it can")


class GonePage(BaseModel):
    """A page that the shop no longer has."""

    target_id: UUID
    url: str


class SameProduct(BaseModel):
    """Pages of one product."""

    product_id: int
    pages: dict[str, str] = Field(description="id -> address")


class UrlHealth(BaseModel):
    """What is wrong with the addresses of a source; at most 100 of each."""

    moved: list[MovedPage]
    gone: list[GonePage]
    same_product: list[SameProduct]


class BacktestRequest(Body):
    """Read kept pages again, and compare."""

    overrides: dict[str, Any] | None = Field(
        default=None, description="where the source differs from its site file; null: as it is now, {}: not at all"
    )
    most: int = Field(default=20, ge=1, le=50, description="how many kept pages, the newest first")


class Backtest(BaseModel):
    """What the adapter reads from kept pages now, compared with then."""

    adapter_id: str
    version: str
    pages: int
    same: int
    changed: int
    lost: int = Field(description="pages that had an offer and would have none")
    gained: int
    other: int = Field(description="no offer, for another reason than then")
    missing: int = Field(description="pages that are not kept any more")
    fields: dict[str, int] = Field(description="field -> on how many pages it changed")
    changes: list[dict[str, Any]] = Field(description="the pages that are read differently")


class RepairHint(BaseModel):
    """A place where the last known values of products are found on their new pages."""

    field: str
    place: str
    found: int = Field(description="on how many pages the known value is there")
    pages: int = Field(description="how many pages were searched")
    override: dict[str, Any] = Field(description="as `overrides` of a back-test")


class RepairHints(BaseModel):
    """Places to try, the best of each field first."""

    items: list[RepairHint]
