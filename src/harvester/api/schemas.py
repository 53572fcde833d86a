"""The shapes of requests and responses. The reference is generated from their descriptions."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from harvester.engine.states import JobState
from harvester.feeds.states import FeedStatus
from harvester.kernel.stock import Availability
from harvester.kernel.text import LONGEST_REASON
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

#: The source's UUID, a dot, and the number of its product.
OFFER_ID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.[1-9][0-9]{0,17}$"
HIGHEST = 2**63 - 1

Amount = Annotated[Decimal, Field(description="a decimal number as text, in the major unit of the currency")]


class Filters(BaseModel):
    """Parameters of an address. Unknown ones are refused: a misspelled filter that is ignored finds too much."""

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown(cls, given: Any, info: ValidationInfo) -> Any:
        request = (info.context or {}).get("request")
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for name in request.GET if request is not None else ():
            if name not in known:
                raise ValueError(f"unknown parameter {name[:40]!r}; known are {', '.join(sorted(known))}")
        return given


class Body(BaseModel):
    """The body of a write. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Offer(BaseModel):
    """A product at a retailer, with the price that consumers see now."""

    id: str = Field(
        description="store this: it does not change as long as the source lists the product", pattern=OFFER_ID
    )
    product_id: UUID | None = Field(description="the product across sources; null until it is matched")
    retailer_id: UUID
    retailer: str
    source_id: UUID
    source: str
    title: str
    brand: str | None
    category: str | None = Field(description="as the source names it")
    url: str = Field(description="the product's page, without tracking")
    tracking_url: str = Field(description="the link for a customer's click")
    image_url: str | None
    currency: str = Field(description="ISO 4217")
    amount: Amount
    original_amount: Decimal | None = Field(description="the price before a discount")
    in_stock: bool
    availability: Availability = Field(description="BACKORDER: it can be ordered and comes later")
    observed_at: datetime = Field(description="when this price was first seen or last confirmed")
    missing_since: datetime | None = Field(
        description="since when the source no longer lists it; it disappears when it expires"
    )
    sku: str | None
    item_id: str | None = Field(description="the network's product number")
    gtin: str | None
    mpn: str | None
    identity: str = Field(
        description="what the source recognizes it by: PID (the shop's product id), SKU, ITEM (the network's number) "
        "or URL (a hash), a colon, and the value"
    )


class OfferDetails(Offer):
    """An offer with everything that is known of its product."""

    attributes: dict[str, Any] = Field(
        description="what a page of the shop says besides: `caliber`, `grain_weight`, `round_count`, `case_material`, "
        "`bullet_type`, `load_type`, `shell_length`, `shipping`, `is_tax_included`, `cost_per_round`; known ones only"
    )


class Offers(BaseModel):
    """A page of offers."""

    items: list[Offer]
    next_cursor: str | None = Field(description="for the next page; null on the last one")


class ProductOffers(BaseModel):
    """All visible offers of a product, the cheapest of each currency first."""

    items: list[Offer]


class PricePoint(BaseModel):
    """An observed price."""

    observed_at: datetime
    currency: str
    amount: Amount
    original_amount: Decimal | None
    in_stock: bool
    availability: Availability
    promotion: str | None


class History(BaseModel):
    """Prices of an offer, newest first."""

    items: list[PricePoint]


class Retailer(BaseModel):
    """A retailer."""

    id: UUID
    slug: str = Field(description="the name in a form for addresses; filters accept it in place of the id")
    name: str
    domain: str | None
    website: str


class Retailers(BaseModel):
    """A page of retailers, by name."""

    items: list[Retailer]
    next_cursor: str | None


class Source(BaseModel):
    """A source of a retailer's offers."""

    id: UUID
    slug: str = Field(description="the name in a form for addresses; filters accept it in place of the id")
    name: str
    retailer_id: UUID
    retailer: str
    kind: str
    is_display_primary: bool = Field(description="of the retailer's sources, consumers see the offers of this one")


class Sources(BaseModel):
    """A page of sources, by name."""

    items: list[Source]
    next_cursor: str | None


class NameUsed(BaseModel):
    """A brand or a category."""

    name: str = Field(description="as one of the sources writes it; searches ignore case")
    offers: int = Field(description="visible offers with it")


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
    schedule_hours: int | None = Field(description="hours between two runs; null: it runs only on request")
    next_run_at: datetime | None
    last_run_at: datetime | None
    run_requested_at: datetime | None = Field(description="when a run was requested that has not started yet")
    consecutive_failures: int = Field(description="three failed runs in a row disable the feed")
    visible_offers: int = Field(description="offers that consumers see")
    not_visible_because: str | None = Field(description="why consumers see no offers although a run was promoted")


class Feed(FeedSummary):
    """A feed with its settings. Credentials are never shown; `credentials` lists those that are set."""

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
        description="how to read an empty or unknown stock text: IN_STOCK, OUT_OF_STOCK or REJECT"
    )
    kept_parameters: list[str] = Field(description="link parameters that select a product of this feed")
    decimal_style: str = Field(
        description='the decimal separator of ambiguous prices: "." or ","; empty: ambiguous prices are rejected'
    )
    use_manifest: bool = Field(description="compare files with the partner's manifest, if the network has one")
    accepts_url_identity: bool = Field(description="do not hold runs whose products are matched by URL only")
    unchanged_means_seen: bool = Field(description="an unchanged file confirms its products")
    expiry_hours: int | None = Field(description="a product that was not seen for so many hours disappears")
    offers_expire_at: datetime | None = Field(
        description="when the offers of the last promoted run disappear, unless a run is promoted or decided"
    )
    disappearing_offers: int = Field(description="visible offers that were missing from the last promoted run")
    disappear_by: datetime | None = Field(description="when the last of them disappears")
    max_file_bytes: int | None
    max_rows: int | None
    max_products: int | None
    thresholds: dict[str, float]
    held_run_id: UUID | None = Field(description="the run that needs a decision")
    lacks: list[str] = Field(description="what is missing before it can run")
    created_at: datetime
    retired_at: datetime | None = Field(description="when it was retired")
    updated_at: datetime


class Feeds(BaseModel):
    """A page of feeds, by name."""

    items: list[FeedSummary]
    next_cursor: str | None


#: Figure -> value, as decisions expect them.
Expected = dict[str, Annotated[int, Field(ge=0, le=HIGHEST)]]


class Subject(BaseModel):
    """What a run is a run of."""

    id: UUID
    name: str | None = Field(description="null if it no longer exists")
    type: str | None = Field(description="such as feed; null if this version does not know the kind of run")


class RunSummary(BaseModel):
    """A run in a list."""

    id: UUID
    no: int = Field(description="consecutive number, which people use for runs")
    kind: str = Field(description="such as AFFILIATE_FEED")
    subject: Subject
    feed_id: UUID | None = Field(description="of a run of a feed")
    feed: str | None = Field(description="of a run of a feed: its name")
    trigger: RunTrigger
    status: RunStatus
    outcome: RunOutcome | None = Field(description="the outcome of a run that succeeded")
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    job_id: int | None
    error_code: str | None
    products: int | None = Field(description="products that it brought; of a feed, unique valid ones of the file")
    prices_written: int | None


class Gate(BaseModel):
    """The result of a gate for a run."""

    gate: str
    holds: bool
    reason: str
    figures: dict[str, float]


class Notice(BaseModel):
    """A warning about a whole run. It neither rejects rows nor holds the run."""

    code: str
    message: str
    count: int | None
    examples: list[str]


class Choices(BaseModel):
    """The effects of each decision about a held run, if it is made now."""

    removes: int = Field(description="offers that disappear after an approval unless a later file contains them")
    removed_from: datetime | None = Field(description="when the first of them disappears")
    removed_by: datetime | None = Field(description="when the last of them disappears")
    offers_expire_at: datetime | None = Field(
        description="when all offers disappear after a rejection unless a later run is promoted"
    )
    is_expired: bool = Field(description="the offers have disappeared already")


class Disappearing(BaseModel):
    """Visible offers that disappear unless a later file contains them."""

    offers: int
    disappear_by: datetime | None


class Run(RunSummary):
    """A run with its figures."""

    attempt: int
    stage: str | None
    error: str | None
    skipped_reason: str | None
    advice: str | None = Field(description="of a failed run: what to do")
    file: str | None = Field(description="the address of the run's file, until it is deleted")
    decided_at: datetime | None
    decided_by: str | None
    decision_reason: str | None
    ignored_at: datetime | None
    expected: Expected | None = Field(description="of a held run: the figures that a decision has to contain")
    choices: Choices | None = Field(description="of a held run: the effects of an approval and of a rejection")
    disappearing: Disappearing | None = Field(
        description="of a promoted run: visible offers that were missing from it, and when they disappear"
    )
    figures: dict[str, int | None]
    parts: dict[str, int] = Field(description="of a run made of parts, such as pages: their number by outcome")
    gates: list[Gate]
    rejects: dict[str, int] = Field(description="rejected rows by code")
    warnings: dict[str, int]
    notices: list[Notice] = Field(description="warnings about the whole run")


class Runs(BaseModel):
    """A page of runs, newest first."""

    items: list[RunSummary]
    next_cursor: str | None


class Progress(BaseModel):
    """The progress of a job."""

    done: float | None = None
    total: float | None = None
    note: str | None = None


class Job(BaseModel):
    """Work in the background."""

    id: int
    kind: str
    state: JobState
    attempt: int
    max_attempts: int
    feed: str | None = Field(description="the name of its feed, if it has one")
    progress: Progress | None = Field(description="until the job ends")
    waits_for: str | None = Field(description="why it waits again, while it does")
    result: Any = Field(description="the result; its form depends on the kind")
    error_code: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Decision(Body):
    """A decision about a held run."""

    expected: Expected = Field(
        description="`expected` of the run that the decision is based on; if a figure has changed, it is refused"
    )


class Approval(Decision):
    """Approve a held run."""


class Rejection(Decision):
    """Reject a held run."""

    reason: str = Field(min_length=1, max_length=LONGEST_REASON, pattern=r"\S", description="shown with the run")


class Ignoring(Body):
    """Ignore a promoted run."""

    reason: str = Field(min_length=1, max_length=LONGEST_REASON, pattern=r"\S", description="shown with the run")


class IgnoredRun(BaseModel):
    """A run whose prices were hidden, or are read again."""

    id: UUID
    no: int
    ignored_at: datetime | None = Field(description="none: its prices count")
    products: int = Field(description="how many products this concerns")
