"""What goes in and out of the API. Every field says what it is: the reference is made from this."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from harvester.catalog.states import RunOutcome, RunStatus
from harvester.engine.states import JobState
from harvester.feeds.states import FeedStatus, Trigger
from harvester.kernel.text import LONGEST_REASON

#: The source's UUID, a dot, and the number of the product there.
OFFER_ID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.[1-9][0-9]{0,17}$"
HIGHEST = 2**63 - 1

Amount = Annotated[Decimal, Field(description="a decimal number as text, in the major unit of the currency")]


class Filters(BaseModel):
    """Parameters of an address. A misspelt one is refused: it would be ignored otherwise, and find too much."""

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown(cls, given: Any, info: ValidationInfo) -> Any:
        request = (info.context or {}).get("request")
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for name in request.GET if request is not None else ():
            if name not in known:
                raise ValueError(f"there is no parameter {name[:40]!r}; there are {', '.join(sorted(known))}")
        return given


class Body(BaseModel):
    """What a write needs; anything else in it is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Offer(BaseModel):
    """What a retailer asks for a product, as consumers see it now."""

    id: str = Field(
        description="keep this: it stays the same as long as the source knows the product", pattern=OFFER_ID
    )
    product_id: UUID | None = Field(description="the product across sources; null until it is recognised")
    retailer_id: UUID
    retailer: str
    source_id: UUID
    source: str
    title: str
    brand: str | None
    category: str | None = Field(description="as the source calls it")
    url: str = Field(description="the product's page, without tracking")
    tracking_url: str = Field(description="the link that a customer's click takes")
    image_url: str | None
    currency: str = Field(description="ISO 4217")
    amount: Amount
    original_amount: Decimal | None = Field(description="the price before a reduction")
    in_stock: bool
    observed_at: datetime = Field(description="when this price was seen first, or confirmed")
    missing_since: datetime | None = Field(
        description="since when the source lists it no more; it goes when it expires"
    )
    sku: str | None
    item_id: str | None = Field(description="the network's number of the product")
    gtin: str | None
    mpn: str | None


class Offers(BaseModel):
    """A page of offers."""

    items: list[Offer]
    next_cursor: str | None = Field(description="for the next page; null on the last one")


class ProductOffers(BaseModel):
    """Everything that consumers see of one product, the cheapest of each currency first."""

    items: list[Offer]


class PricePoint(BaseModel):
    """One price that was observed."""

    observed_at: datetime
    currency: str
    amount: Amount
    original_amount: Decimal | None
    in_stock: bool
    promotion: str | None


class History(BaseModel):
    """How a price went, newest first."""

    items: list[PricePoint]


class Retailer(BaseModel):
    """Somebody who sells."""

    id: UUID
    slug: str = Field(description="the name as part of an address; `retailer` of a search takes it like the id")
    name: str
    domain: str | None
    website: str


class Retailers(BaseModel):
    """A page of retailers, by name."""

    items: list[Retailer]
    next_cursor: str | None


class Source(BaseModel):
    """One way in which a retailer's offers reach us."""

    id: UUID
    slug: str = Field(description="the name as part of an address; `source` of a search takes it like the id")
    name: str
    retailer_id: UUID
    retailer: str
    kind: str
    is_display_primary: bool = Field(description="consumers see the offers of this source of the retailer")


class Sources(BaseModel):
    """A page of sources, by name."""

    items: list[Source]
    next_cursor: str | None


class NameUsed(BaseModel):
    """A brand or a category."""

    name: str = Field(description="as one of the sources writes it; a search finds it in any case")
    offers: int = Field(description="visible offers that have it")


class Names(BaseModel):
    """A page of brands or categories, by name."""

    items: list[NameUsed]
    next_cursor: str | None


class FeedSummary(BaseModel):
    """A feed in a list."""

    id: UUID
    name: str
    source_id: UUID
    network: str
    status: FeedStatus
    schedule_hours: int | None = Field(description="hours between two runs; null: it runs only when asked")
    next_run_at: datetime | None
    last_run_at: datetime | None
    run_requested_at: datetime | None = Field(description="somebody asked for a run that has not begun")
    consecutive_failures: int = Field(description="three final failures in a row disable a feed")
    visible_offers: int = Field(description="offers that consumers see")
    not_visible_because: str | None = Field(description="why consumers see none although a run was promoted")


class Feed(FeedSummary):
    """A feed with its settings. Credentials are never shown; `credentials` names those that were entered."""

    transport: str
    host: str
    port: int
    path: str
    username: str
    credentials: list[str]
    compression: str
    encoding: str
    default_currency: str
    unknown_stock: str = Field(
        description="what a stock text means that is empty or not understood: IN_STOCK, OUT_OF_STOCK or REJECT"
    )
    kept_parameters: list[str] = Field(description="parameters of links that choose a product of this feed")
    decimal_style: str = Field(
        description='the decimal separator where a price has two readings: "." or ","; empty: such a price is refused'
    )
    use_manifest: bool = Field(description="compare a file with the partner's manifest, where the network has one")
    accepts_url_identity: bool = Field(description="do not hold a run whose products have nothing but their address")
    unchanged_means_seen: bool = Field(description="a file that is still the same confirms the products in it")
    expiry_hours: int | None = Field(description="after so many hours unseen, a product is shown no more")
    offers_expire_at: datetime | None = Field(
        description="when the offers of the last promoted run disappear, or did, if no run is promoted or decided"
    )
    disappearing_offers: int = Field(description="visible offers that the last promoted run did not contain")
    disappear_by: datetime | None = Field(description="when the last of those disappears")
    max_file_bytes: int | None
    max_rows: int | None
    max_products: int | None
    thresholds: dict[str, float]
    held_run_id: UUID | None = Field(description="the run that waits for a decision")
    lacks: list[str] = Field(description="what it needs before it can run")
    created_at: datetime
    retired_at: datetime | None = Field(description="when it was retired for good")
    updated_at: datetime


class Feeds(BaseModel):
    """A page of feeds, by name."""

    items: list[FeedSummary]
    next_cursor: str | None


class Expected(Body):
    """The figures of a held run as whoever decides saw them; if one has changed, the decision is refused."""

    products_upserted: int = Field(ge=0, le=HIGHEST)
    products_new: int = Field(ge=0, le=HIGHEST)
    products_missing: int = Field(ge=0, le=HIGHEST)
    prices_due: int = Field(ge=0, le=HIGHEST)


class RunSummary(BaseModel):
    """A run in a list."""

    id: UUID
    no: int = Field(description="counts up; people call runs by it")
    feed_id: UUID
    feed: str
    trigger: Trigger
    status: RunStatus
    outcome: RunOutcome | None = Field(description="what became of a run that succeeded")
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    job_id: int | None
    error_code: str | None
    products: int | None = Field(description="unique valid products of the file")
    prices_written: int | None


class Gate(BaseModel):
    """What a gate said about a run."""

    gate: str
    holds: bool
    reason: str
    figures: dict[str, float]


class Notice(BaseModel):
    """A warning about a run as a whole; it neither rejects rows nor holds the run."""

    code: str
    message: str
    count: int | None
    examples: list[str]


class Choices(BaseModel):
    """What each decision about a held run leads to, if it is made now."""

    removes: int = Field(description="offers that disappear after an approval unless a later file contains them")
    removed_from: datetime | None = Field(description="when the first of them disappears")
    removed_by: datetime | None = Field(description="when the last of them disappears")
    offers_expire_at: datetime | None = Field(
        description="when all offers disappear after a rejection if no later run is promoted"
    )
    is_expired: bool = Field(description="they have disappeared already")


class Disappearing(BaseModel):
    """Offers that are visible still, and disappear unless a later file contains them."""

    offers: int
    disappear_by: datetime | None


class Run(RunSummary):
    """A run with its figures."""

    attempt: int
    stage: str | None
    error: str | None
    skipped_reason: str | None
    advice: str | None = Field(description="of a failed run: what to do, if there is advice for its code")
    file: str | None = Field(description="where to download the run's file, while it is kept")
    decided_at: datetime | None
    decided_by: str | None
    decision_reason: str | None
    ignored_at: datetime | None
    expected: Expected | None = Field(description="of a held run: what a decision has to send back")
    choices: Choices | None = Field(description="of a held run: what an approval and a rejection lead to")
    disappearing: Disappearing | None = Field(
        description="of a promoted run: visible offers that it did not contain, and when they disappear"
    )
    figures: dict[str, int | None]
    gates: list[Gate]
    rejects: dict[str, int] = Field(description="refused rows by code")
    warnings: dict[str, int]
    notices: list[Notice] = Field(description="warnings about the run as a whole")


class Runs(BaseModel):
    """A page of runs, newest first."""

    items: list[RunSummary]
    next_cursor: str | None


class Progress(BaseModel):
    """How far a job is."""

    done: float | None = None
    total: float | None = None
    note: str | None = None


class Job(BaseModel):
    """A piece of work that is done in the background."""

    id: int
    kind: str
    state: JobState
    attempt: int
    max_attempts: int
    feed: str | None = Field(description="the name of the feed that it is about, if it is about one")
    progress: Progress | None = Field(description="while it has not ended")
    result: Any = Field(description="what came of it; its form depends on the kind")
    error_code: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Approval(Body):
    """Have a held run promoted."""

    expected: Expected


class Rejection(Body):
    """Have a held run dropped."""

    expected: Expected
    reason: str = Field(min_length=1, max_length=LONGEST_REASON, pattern=r"\S", description="others will ask why")
