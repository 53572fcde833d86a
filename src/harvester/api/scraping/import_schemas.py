"""The shapes of imports of lists of pages."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from harvester.api.offers import PRINTABLE
from harvester.api.schemas import Body
from harvester.api.scraping.fields import Changes, Id, ProductId, Url, Word
from harvester.scraping.imports import RowState
from harvester.scraping.verbs.import_links import MOST_LINKS


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
    """A line of a list."""

    line: int
    url: str
    state: RowState
    reason: str = Field(description="why it is not added")
    product_id: int | None = Field(description="the product of the source that it would refresh")
    candidates: list[dict[str, Any]] = Field(description="products that it may be of")


class ListedLines(BaseModel):
    """A page of lines, by shop."""

    items: list[ListedLine]
    next_cursor: str | None


class ListedShop(BaseModel):
    """The lines of one shop."""

    domain: str
    choice: ShopChoice = Field(description="decided or proposed")
    sources: dict[str, str] = Field(description="sources that may get the pages: id -> name")
    retailer: str | None
    has_feed: bool = Field(description="pages must be of products of its feed")
    counts: dict[str, int] = Field(description="lines by state")
    problems: list[ListedLine] = Field(description="the first lines that would not be added; `lines` has all")


class RefusedLine(BaseModel):
    """A line that was refused."""

    line: int
    text: str
    reason: str


class Import(ImportSummary):
    """A list of pages: the expected result of each line, and the actual one."""

    shops: list[ListedShop] = Field(description="until it begins; the first 200")
    more_shops: int = Field(description="shops that are left out here")
    not_read: list[str] = Field(description="columns and sheets that were not looked at")
    refused_lines: list[RefusedLine] = Field(description="the first 1,000, from reading and from adding")
    results: dict[str, int] = Field(description="done, added, skipped and refused, once it has begun")


class NewImport(Body):
    """A list of pages: either `text` or `file`. Columns `sku`, `gtin` and `harvester_id` link lines to products."""

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


class LineLink(Body):
    """The product that a line is of: one of `product_id`, `sku` and `gtin`. None of them: the line is not linked."""

    line: int = Field(ge=1)
    url: Url | None = Field(default=None, description="needed if the line has several addresses")
    product_id: ProductId | None = None
    sku: Word | None = None
    gtin: Word | None = None


class LineLinks(Body):
    """Products of lines."""

    links: list[LineLink] = Field(min_length=1, max_length=MOST_LINKS)


class FeedPages(Body):
    """The products of a feed whose pages to add."""

    most: int = Field(default=20_000, ge=1, le=20_000)
    text: Word = Field(default="", description="part of their titles")
    in_stock_only: bool = False
    schedule: Word | None = Field(default=None, description="of the new pages; null: read on request only")
