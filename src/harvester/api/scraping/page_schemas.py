"""The shapes of pages of shops, of requests to read them, of quarantine, and of addresses that are tried."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from harvester.api.offers import PRINTABLE
from harvester.api.schemas import Body
from harvester.api.scraping.fields import (
    MOST_IDS,
    Changes,
    Id,
    Money,
    ProductId,
    Status,
    Stock,
    Text,
    TroubleState,
    Url,
    Word,
)
from harvester.scraping.capacity import Rejection
from harvester.scraping.quarantine import LONGEST_PLACE
from harvester.scraping.states import TargetStatus
from harvester.scraping.target_filters import Trouble


class RunOfPages(BaseModel):
    """The run that reads pages; `/runs/{id}` shows it."""

    id: UUID
    no: int


class PageDiagnosis(BaseModel):
    """Why a page yields nothing, and what to do."""

    trouble: Trouble
    reason: str
    next_step: str


class TargetSummary(BaseModel):
    """A page of a shop, in a list."""

    id: UUID
    source_id: UUID
    source: str
    url: str = Field(description="fetched exactly as it is")
    product_id: int | None = Field(description="the product of the source that it refreshes")
    adapter_id: str
    schedule: str | None = Field(description="a cron line in UTC; null: read on request only")
    priority: int
    status: TargetStatus
    enabled: bool
    robots_path_blocked: bool
    due_at: datetime | None
    last_scraped_at: datetime | None
    last_success_at: datetime | None
    last_status: str | None = Field(description="the outcome of the last page")
    last_detail: str | None
    consecutive_failures: int
    moved_to: str | None = Field(description="where the shop permanently redirects it to")
    price: str | None = Field(description="that was read last, such as `19.99 USD`")
    diagnosis: PageDiagnosis | None = Field(description="null: it yields something, or was never read")
    notes: str
    created_by: str
    created_at: datetime
    updated_at: datetime


class Target(TargetSummary):
    """A page of a shop with everything that is known of it."""

    canonical_url: str = Field(description="the form by which pages are compared")
    recheck_at: datetime | None = Field(description="when it is read a second time")
    recheck_reason: str | None
    last_seen: dict[str, Any] | None = Field(description="the last offer that was read")
    waiting: dict[str, Any] | None = Field(description="an offer that waits for a second look")
    pinned: dict[str, Any] | None = Field(description="by what the product of its first offer is recognized")
    pinned_product_id: int | None
    chosen: dict[str, str] = Field(description="where people said that fields are: field -> place")
    last_full_fetch_at: datetime | None


class Targets(BaseModel):
    """A page of pages, newest first."""

    items: list[TargetSummary]
    next_cursor: str | None


class Reading(BaseModel):
    """How reading a page ended once."""

    run: RunOfPages
    outcome: str
    observed_at: datetime | None = Field(description="when the shop answered; null: it was not asked")
    ended_at: datetime
    version: str | None = Field(description="of the adapter")
    price: str | None
    detail: str | None = Field(description="what was wrong, or remarkable")
    evidence: list[dict[str, Any]] = Field(description="the places that were looked at")


class Readings(BaseModel):
    """How reading a page ended, newest first."""

    items: list[Reading]


class NewTarget(Body):
    """A page to add."""

    source_id: Id
    url: Url
    product_id: ProductId | None = Field(default=None, description="the product of the source that it refreshes")
    sku: Word = Field(default="", description="names that product instead")
    gtin: Word = Field(default="", description="names that product instead")
    schedule: Word | None = Field(default=None, description="a cron line in UTC such as `0 */4 * * *`")
    priority: int = Field(default=0, ge=-100, le=100)
    enabled: bool = True
    notes: Text = ""


class SettingChanges(Changes):
    """Settings of pages. What is left out stays."""

    schedule: Word | None = None
    priority: int = Field(default=0, ge=-100, le=100)
    enabled: bool = True
    status: Status = Field(default=TargetStatus.ACTIVE, description="ACTIVE or PAUSED")
    notes: Text = ""
    robots_path_blocked: bool = Field(default=False, description="needs the scope `scrape:admin`")


class TargetChanges(SettingChanges):
    """Changes of one page."""

    url: Url = Field(default="", description="another address makes it another page")
    product_id: ProductId | None = Field(default=None, description="null: it is no longer linked")


class TargetSelection(Body):
    """Conditions that all apply; what is left out does not count."""

    ids: list[Id] | None = Field(default=None, max_length=MOST_IDS)
    source_id: Id | None = None
    status: Status | None = None
    outcome: Word | None = Field(default=None, description="of the last page")
    text: Word = Field(default="", description="part of the address or of the notes")
    trouble: TroubleState | None = None
    is_enabled: bool | None = None
    is_due: bool | None = None
    has_moved: bool | None = None
    is_linked: bool | None = None
    schedule: Word | None = Field(default=None, description="empty: pages that are read on request only")


class BulkChange(Body):
    """Change or delete all pages that match. More than 1,000, and deleting, need the scope `scrape:admin`."""

    filter: TargetSelection
    changes: SettingChanges | None = Field(default=None, description="either this, or `delete`")
    delete: bool = False


class Changed(BaseModel):
    """How many pages were changed or deleted."""

    pages: int


class EnqueueRequest(Body):
    """Which pages of a source to read now: ids, a filter, or all."""

    ids: list[Id] | None = Field(default=None, max_length=MOST_IDS)
    filter: TargetSelection | None = None
    force: bool = Field(
        default=False, description="ignore the limits of the queue, for at most 10; needs `scrape:admin`"
    )


class Enqueued(BaseModel):
    """The result of a request to read pages."""

    accepted: int
    waiting: int = Field(description="pages that wait already")
    skipped: int = Field(description="pages that are switched off, blocked or not ACTIVE")
    rejected: int = Field(description="pages that were not enqueued")
    reason: Rejection | None = Field(description="why pages were rejected")
    retry_after: int | None = Field(description="seconds after which they may be accepted")
    message: str
    run: RunOfPages | None


class EntrySummary(BaseModel):
    """A page that was read and not believed, in a list."""

    id: UUID
    source_id: UUID
    source: str
    target_id: UUID
    url: str
    reason: str
    detail: str
    price: str | None = Field(description="that was read, such as `19.99 USD`")
    run_no: int
    adapter_id: str
    version: str
    observed_at: datetime
    created_at: datetime
    status: str = Field(description="OPEN, WRITTEN, DISMISSED or SUPERSEDED")
    resolved_at: datetime | None
    resolved_by: str | None
    note: str | None


class Entries(BaseModel):
    """A page of quarantine, newest first."""

    items: list[EntrySummary]
    next_cursor: str | None


class QuarantinedPage(EntrySummary):
    """A page that was read and not believed, with what was found on it."""

    found: dict[str, Any] | None = Field(description="the offer, as far as it was read")
    evidence: list[dict[str, Any]] = Field(description="the places that were looked at")
    has_page: bool = Field(description="`/scrape/quarantine/{entry_id}/reading` reads its page again")


class PageReading(BaseModel):
    """What the adapter reads from a page."""

    outcome: str
    detail: str
    offer: dict[str, Any] | None
    evidence: list[dict[str, Any]] = Field(description="the places that were looked at")
    text: str = Field(description="the beginning of the page's text")
    warnings: list[str]
    adapter_id: str
    version: str


class OfferGiven(Body):
    """What is right; what is left out is as it was read."""

    price: Money | None = None
    currency: str | None = Field(default=None, pattern="^[A-Z]{3}$", description="needed with `price`")
    availability: Stock | None = None
    title: Annotated[str, Field(min_length=1, max_length=1000, pattern=PRINTABLE)] | None = None


class EntryWriting(Body):
    """Write the offer of an entry."""

    offer: OfferGiven | None = Field(default=None, description="null: as it was read")
    note: Text = ""


class EntryNote(Body):
    """Why."""

    note: Text = ""


class PlacesChosen(Body):
    """Where fields are on the page."""

    places: dict[Word, Annotated[str, Field(min_length=1, max_length=LONGEST_PLACE, pattern=PRINTABLE)]] = Field(
        min_length=1, description="field -> CSS selector, or `json:` and a path"
    )
    for_source: bool = Field(default=False, description="for all pages of the source, as a draft; needs `scrape:admin`")
    note: Text = ""


class Chosen(BaseModel):
    """Where the choice was saved."""

    target_id: UUID | None = Field(description="the page, whose next reading begins there")
    override_version: int | None = Field(description="the draft, which counts after it was tested on kept pages")


class Reprocessed(BaseModel):
    """What the adapter reads now, and the entry afterwards."""

    reading: PageReading
    entry: QuarantinedPage


class UrlToTry(Body):
    """An address to fetch once and read. Nothing is written."""

    url: Url
    source_id: Id | None = Field(
        default=None, description="whose adapter and settings count; null: the adapter for any shop"
    )


class TriedUrl(BaseModel):
    """An address that was tried."""

    id: UUID
    url: str
    source_id: UUID | None
    requested_by: str
    created_at: datetime
    job_id: int | None
    outcome: str | None = Field(description="null: it waits for its turn; ask again")
    finished_at: datetime | None
    result: dict[str, Any] | None = Field(
        description="`offer`, `evidence`, `text`, `warnings`, `error` and more, once there is an outcome"
    )
