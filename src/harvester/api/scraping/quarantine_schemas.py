"""The shapes of quarantine, of readings of pages, and of addresses that are tried."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from harvester.api.offers import PRINTABLE
from harvester.api.schemas import Body
from harvester.api.scraping.fields import Id, Money, Stock, Text, Url, Word
from harvester.scraping.quarantine import LONGEST_PLACE


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
