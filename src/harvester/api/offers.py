"""Offers that consumers see, and names that searches filter by: retailers, sources, brands and categories."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, Strict

from harvester.api import cursors, responses
from harvester.api.keys import BearerKey
from harvester.api.problems import WrongField
from harvester.api.schemas import (
    OFFER_ID,
    Filters,
    History,
    Names,
    NameUsed,
    Offer,
    OfferDetails,
    Offers,
    PricePoint,
    ProductOffers,
    Retailer,
    Retailers,
    Source,
    Sources,
)
from harvester.catalog import consumer_offers, facets, history, search, search_query
from harvester.catalog.search_query import LARGEST_PAGE, LONGEST_TEXT, Sort
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import InvalidInput
from harvester.kernel.moments import in_utc
from harvester.ops.scopes import Scope

router = Router(tags=["offers"], auth=BearerKey(Scope.OFFERS_READ))

OfferId = Annotated[str, Path(pattern=OFFER_ID, description="as `id` of an offer")]
#: Pydantic would also take `1` and `yes`.
YesOrNo = Annotated[bool, BeforeValidator(lambda text: {"true": True, "false": False}.get(text, text), bool), Strict()]

Moment = Annotated[AwareDatetime, AfterValidator(in_utc)]
#: Without NUL, which the database cannot store in a text.
PRINTABLE = "^[^\x00]*$"
#: Field of the catalog -> parameter, where the names differ.
_PARAMETERS = {"text": "q", "min_amount": "min_price", "max_amount": "max_price"}

_UNITS = {currency: Decimal(1).scaleb(-digits) for currency, digits in MINOR_UNITS.items()}
_COPIED = tuple(
    name
    for name in Offer.model_fields
    if name not in ("id", "product_id", "missing_since", "amount", "original_amount")
)


class OfferFilters(Filters):
    """The offers to find, and their order."""

    q: str = Field("", max_length=LONGEST_TEXT, pattern=PRINTABLE, description=(
        'words of title and brand; "two words" finds a phrase, OR finds either word, a minus excludes a word'
    ))  # fmt: skip
    retailer: str = Field(
        "", max_length=200, pattern=PRINTABLE, description="only this retailer, by id, slug or domain"
    )
    source: str = Field("", max_length=200, pattern=PRINTABLE, description="only this source, by id or slug")
    brand: str = Field("", max_length=200, pattern=PRINTABLE, description="only this brand, in any case")
    category: str = Field("", max_length=200, pattern=PRINTABLE, description="only this category, in any case")
    in_stock: YesOrNo | None = Field(None, description="only offers that are, or are not, in stock")
    currency: str = Field("", pattern="^([A-Z]{3})?$", description="only this currency, ISO 4217")
    min_price: Decimal | None = Field(
        None, ge=0, max_digits=14, decimal_places=4, description="at this price or above; needs `currency`"
    )
    max_price: Decimal | None = Field(
        None, ge=0, max_digits=14, decimal_places=4, description="at this price or below; needs `currency`"
    )
    sort: Sort | None = Field(
        None, description="`price` and `-price` need `currency`, `relevance` needs `q`; relevance with `q`, else newest"
    )
    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(20, ge=1, le=LARGEST_PAGE)


class LookupFilters(Filters):
    """The number to look up. Exactly one of `gtin`, `sku` and `item_id` is required."""

    gtin: str = Field(
        "", max_length=40, pattern=PRINTABLE, description="a GTIN, EAN, UPC or ISBN-13, with or without leading zeros"
    )
    sku: str = Field("", max_length=200, pattern=PRINTABLE, description="the shop's number, exact match")
    item_id: str = Field("", max_length=200, pattern=PRINTABLE, description="the network's number, exact match")
    retailer: str = Field(
        "", max_length=200, pattern=PRINTABLE, description="only this retailer, by id, slug or domain"
    )
    source: str = Field("", max_length=200, pattern=PRINTABLE, description="only this source, by id or slug")


class HistoryFilters(Filters):
    """The part of a price history to return."""

    since: Moment | None = Field(None, description="only from this time on; with a time zone")
    limit: int = Field(1_000, ge=1, le=history.MOST_POINTS, description="at most this many prices, the newest")


@router.get("/offers", response=Offers, operation_id="search_offers", summary="Search offers")
def search_offers(request: HttpRequest, filters: Query[OfferFilters]) -> HttpResponse:
    """Offers that consumers see now. Get the next page with `next_cursor` and the same parameters."""
    query = to_query(filters)
    page = search.search(query)
    cursor = cursors.of_place(query, page.end) if page.has_more and page.end else None
    return responses.read(request, {"items": [offer_shape(item) for item in page.offers], "next_cursor": cursor})


@router.get("/offers/lookup", response=ProductOffers, operation_id="look_up_offers", summary="Look up offers by number")
def look_up_offers(request: HttpRequest, filters: Query[LookupFilters]) -> HttpResponse:
    """Offers that consumers see of the products with a GTIN, SKU or item id, the cheapest of each currency first.

    At most 500 offers. Different shops may use the same SKU for different products.
    """
    retailer, source = retailer_and_source(filters.retailer, filters.source)
    with _parameter_names():
        found = consumer_offers.offers_by_number(
            gtin=filters.gtin, sku=filters.sku, item_id=filters.item_id, retailer_id=retailer, source_id=source
        )
    return responses.read(request, {"items": [offer_shape(item) for item in found]})


@router.get("/offers/{offer_id}", response=OfferDetails, operation_id="get_offer", summary="Get one offer")
def get_offer(request: HttpRequest, offer_id: OfferId) -> HttpResponse:
    """One offer; 404 while consumers do not see it."""
    found = consumer_offers.visible_offer(*_parts(offer_id))
    return responses.read(request, {**offer_shape(found), "attributes": found.attributes or {}})


@router.get(
    "/offers/{offer_id}/history", response=History, operation_id="get_offer_history", summary="Get a price history"
)
def get_offer_history(request: HttpRequest, offer_id: OfferId, filters: Query[HistoryFilters]) -> HttpResponse:
    """The price history of an offer after corrections, newest first."""
    source_id, product_id = _parts(offer_id)
    consumer_offers.visible_offer(source_id, product_id)
    since: datetime | None = filters.since
    points = history.price_history(source_id, product_id, since=since, most=filters.limit)
    names = ("observed_at", "currency", "in_stock", "availability", "promotion")
    items = [PricePoint(**{name: getattr(point, name) for name in names}, **_money(point)) for point in points]
    return responses.read(request, History(items=items))


@router.get(
    "/products/{product_id}/offers",
    response=ProductOffers,
    operation_id="list_product_offers",
    summary="Compare a product's offers",
)
def list_product_offers(request: HttpRequest, product_id: UUID) -> HttpResponse:
    """The offers of one product from all retailers, the cheapest of each currency first; at most 500."""
    found = consumer_offers.offers_of_product(product_id)
    return responses.read(request, {"items": [offer_shape(item) for item in found]})


def offer_shape(offer: consumer_offers.Offer) -> dict[str, Any]:
    """Return an `Offer` as a dict: creating models would take most of the time of a page of a hundred."""
    values = vars(offer)
    return {
        "id": f"{offer.source_id}.{offer.product_id}",
        "product_id": offer.canonical_id,
        **{name: values[name] for name in _COPIED},
        **_money(offer),
        "missing_since": offer.seen_until,
    }


def _money(priced: consumer_offers.Offer | history.PricePoint) -> dict[str, Any]:
    """Return the amounts with at least as many decimals as their currency has."""
    unit = _UNITS[priced.currency]
    return {
        "amount": _written(priced.amount, unit),
        "original_amount": None if priced.original_amount is None else _written(priced.original_amount, unit),
    }


def _written(amount: Decimal, unit: Decimal) -> Decimal:
    whole = amount.quantize(unit)
    return whole if whole == amount else amount


def to_query(filters: OfferFilters) -> search_query.Query:
    """Return the query of the catalog. Errors name the parameters."""
    retailer, source = retailer_and_source(filters.retailer, filters.source)
    with _parameter_names():
        query = search_query.Query(
            text=filters.q,
            retailer_id=retailer,
            source_id=source,
            brand=filters.brand,
            category=filters.category,
            in_stock=filters.in_stock,
            currency=filters.currency,
            min_amount=filters.min_price,
            max_amount=filters.max_price,
            sort=filters.sort,
            page_size=filters.page_size,
        )
        return replace(query, after=cursors.to_place(filters.cursor, query)) if filters.cursor else query


def retailer_and_source(retailer: str, source: str) -> tuple[UUID | None, UUID | None]:
    """Return the ids of a retailer and a source that were given by id, slug or domain."""
    with _parameter_names():
        return facets.retailer_id(retailer) if retailer else None, facets.source_id(source) if source else None


@contextmanager
def _parameter_names() -> Iterator[None]:
    """Replace the names of the catalog's fields in errors with those of the parameters."""
    try:
        yield
    except InvalidInput as problem:
        field = problem.field or ""
        raise WrongField(_PARAMETERS.get(field, field), problem.reason) from None


def _parts(offer_id: str) -> tuple[UUID, int]:
    source_id, _, number = offer_id.partition(".")
    return UUID(source_id), int(number)


names = Router(tags=["names"], auth=BearerKey(Scope.OFFERS_READ))

Slug = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]


class PageFilters(Filters):
    """The page to return."""

    cursor: str = Field("", max_length=8 * cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(50, ge=1, le=search_query.LARGEST_PAGE)


class SourceFilters(PageFilters):
    """The sources to list."""

    retailer: Slug = Field("", description="only this retailer, by id, slug or domain")


class NameFilters(SourceFilters):
    """The brands or categories to list."""

    source: Slug = Field("", description="only this source, by id or slug")


@names.get("/retailers", response=Retailers, operation_id="list_retailers", summary="List retailers")
def list_retailers(request: HttpRequest, filters: Query[PageFilters]) -> HttpResponse:
    """Retailers, sorted by name."""
    after = None
    if filters.cursor:
        name, _, retailer_id = cursors.text(filters.cursor, filters).rpartition("\n")
        try:
            after = (name, str(UUID(retailer_id)))
        except ValueError:
            raise cursors.invalid() from None
    found = facets.retailers(after=after, most=filters.page_size + 1)
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda item: f"{item.name}\n{item.pk}")
    items = [
        Retailer(id=item.pk, slug=facets.slug_of(item.name), name=item.name, domain=item.domain, website=item.website)
        for item in shown
    ]
    return responses.read(request, Retailers(items=items, next_cursor=cursor))


@names.get("/sources", response=Sources, operation_id="list_sources", summary="List sources")
def list_sources(request: HttpRequest, filters: Query[SourceFilters]) -> HttpResponse:
    """Sources, sorted by name, including those that consumers do not see."""
    after = cursors.text(filters.cursor, filters)
    retailer, _ = retailer_and_source(filters.retailer, "")
    found = facets.sources(retailer=retailer, after=after, most=filters.page_size + 1)
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda item: item.name)
    items = [
        Source(
            id=item.pk,
            slug=facets.slug_of(item.name),
            name=item.name,
            retailer_id=item.retailer_id,
            retailer=item.retailer.name,
            kind=item.kind,
            is_display_primary=item.is_display_primary,
        )
        for item in shown
    ]
    return responses.read(request, Sources(items=items, next_cursor=cursor))


@names.get("/brands", response=Names, operation_id="list_brands", summary="List brands")
def list_brands(request: HttpRequest, filters: Query[NameFilters]) -> HttpResponse:
    """Brands of the offers that consumers see, sorted by name; up to ten minutes old."""
    return _list_names(request, "brand", filters)


@names.get("/categories", response=Names, operation_id="list_categories", summary="List categories")
def list_categories(request: HttpRequest, filters: Query[NameFilters]) -> HttpResponse:
    """Categories of the offers that consumers see, as sources name them, sorted by name; up to ten minutes old."""
    return _list_names(request, "category", filters)


def _list_names(request: HttpRequest, term: facets.Term, filters: NameFilters) -> HttpResponse:
    after = cursors.text(filters.cursor, filters)
    retailer, source = retailer_and_source(filters.retailer, filters.source)
    found = [item for item in facets.used(term, retailer=retailer, source=source) if item.key > after]
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda item: item.key)
    items = [NameUsed(name=item.name, offers=item.offers) for item in shown]
    return responses.read(request, Names(items=items, next_cursor=cursor))
