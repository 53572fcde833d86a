"""The shapes of imports of lists of pages."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from harvester.api.offers import PRINTABLE
from harvester.api.schemas import Body
from harvester.api.scraping.fields import Changes, Id, Word
from harvester.scraping.imports import RowState


class ImportSummary(BaseModel):
    """A list of pages, in a list."""

    id: UUID
    name: str
    status: str = Field(description="PREVIEW, IMPORTING, DONE or CANCELLED")
    pages: int
    refused: int = Field(description="lines that cannot be read")
    job_id: int | None
    created_by: str
    created_at: datetime
    finished_at: datetime | None


class Imports(BaseModel):
    """A page of imports, newest first."""

    items: list[ImportSummary]
    next_cursor: str | None


class ShopChoice(BaseModel):
    """The decision about the pages of one shop."""

    source_id: UUID | None = Field(description="null: a new source")
    adapter_id: str
    schedule: str | None = Field(description="of lines that name none")
    skip: bool
    name: str = Field(description="of a new source")


class ListedLine(BaseModel):
    """A line of a list that would not be added."""

    line: int
    url: str
    state: RowState
    reason: str
    candidates: list[dict[str, Any]] = Field(description="products that it may be of")


class ListedShop(BaseModel):
    """The lines of one shop."""

    domain: str
    choice: ShopChoice = Field(description="decided or proposed")
    sources: dict[str, str] = Field(description="sources that may get the pages: id -> name")
    retailer: str | None
    has_feed: bool = Field(description="pages must be of products of its feed")
    counts: dict[str, int] = Field(description="lines by state")
    problems: list[ListedLine] = Field(description="the first 100 lines that would not be added")


class RefusedLine(BaseModel):
    """A line that was refused."""

    line: int
    text: str
    reason: str


class Import(ImportSummary):
    """A list of pages: the expected result of each line, and the actual one."""

    shops: list[ListedShop] = Field(description="until it begins")
    not_read: list[str] = Field(description="columns and sheets that were not looked at")
    refused_lines: list[RefusedLine] = Field(description="the first 1,000, from reading and from adding")
    results: dict[str, int] = Field(description="done, added, skipped and refused, once it has begun")


class NewImport(Body):
    """A list of pages: either `text` or `file`."""

    name: Word = Field(min_length=1)
    text: Annotated[str, Field(pattern=PRINTABLE)] | None = Field(default=None, description="one address per line")
    file: Annotated[str, Field(pattern="^[A-Za-z0-9+/]*={0,2}$")] | None = Field(
        default=None, description="a CSV or XLSX file, in base64"
    )


class ChoiceOfShop(Changes):
    """Decide about the pages of one shop. What is left out stays."""

    domain: Word
    source_id: Id | None = None
    adapter_id: Word = "structured"
    schedule: Word | None = None
    skip: bool = False
    name: Word = ""


class FeedPages(Body):
    """The products of a feed whose pages to add."""

    most: int = Field(default=20_000, ge=1, le=20_000)
    text: Word = Field(default="", description="part of their titles")
    in_stock_only: bool = False
    schedule: Word | None = Field(default=None, description="of the new pages; null: read on request only")
