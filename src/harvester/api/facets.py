"""What a search can be narrowed by: retailers, sources, brands and categories."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.keys import BearerKey
from harvester.api.offers import PRINTABLE, narrowed_to
from harvester.api.schemas import Filters, Names, NameUsed, Retailer, Retailers, Source, Sources
from harvester.catalog import facets, search_query
from harvester.ops.scopes import Scope

router = Router(tags=["names"], auth=BearerKey(Scope.OFFERS_READ))

Slug = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]


class Paged(Filters):
    """Which page."""

    cursor: str = Field("", max_length=8 * cursors.LONGEST, description="`next_cursor` of the page before")
    page_size: int = Field(50, ge=1, le=search_query.LARGEST_PAGE)


class SourceFilters(Paged):
    """Which sources."""

    retailer: Slug = Field("", description="only of this retailer, by id, slug or domain")


class NameFilters(SourceFilters):
    """Which brands or categories."""

    source: Slug = Field("", description="only of this source, by id or slug")


@router.get("/retailers", response=Retailers, operation_id="list_retailers", summary="List retailers")
def list_retailers(request: HttpRequest, filters: Query[Paged]) -> HttpResponse:
    """Retailers in the order of their names."""
    after = None
    if filters.cursor:
        name, _, number = cursors.text(filters.cursor, filters).rpartition("\n")
        after = (name, str(_uuid(number)))
    found = facets.retailers(after=after, most=filters.page_size + 1)
    shown = found[: filters.page_size]
    cursor = cursors.after(filters, f"{shown[-1].name}\n{shown[-1].pk}") if len(found) > len(shown) else None
    items = [
        Retailer(id=item.pk, slug=facets.slug_of(item.name), name=item.name, domain=item.domain, website=item.website)
        for item in shown
    ]
    return responses.read(request, Retailers(items=items, next_cursor=cursor))


@router.get("/sources", response=Sources, operation_id="list_sources", summary="List sources")
def list_sources(request: HttpRequest, filters: Query[SourceFilters]) -> HttpResponse:
    """Sources in the order of their names, those that consumers do not see too."""
    after = cursors.text(filters.cursor, filters) if filters.cursor else ""
    retailer, _ = narrowed_to(filters.retailer, "")
    found = facets.sources(retailer=retailer, after=after, most=filters.page_size + 1)
    shown = found[: filters.page_size]
    cursor = cursors.after(filters, shown[-1].name) if len(found) > len(shown) else None
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


@router.get("/brands", response=Names, operation_id="list_brands", summary="List brands")
def list_brands(request: HttpRequest, filters: Query[NameFilters]) -> HttpResponse:
    """Brands of the offers that consumers see, by name, as of at most ten minutes ago."""
    return _used(request, "brand", filters)


@router.get("/categories", response=Names, operation_id="list_categories", summary="List categories")
def list_categories(request: HttpRequest, filters: Query[NameFilters]) -> HttpResponse:
    """Categories of the offers that consumers see, as sources call them, by name, as of at most ten minutes ago."""
    return _used(request, "category", filters)


def _used(request: HttpRequest, term: facets.Term, filters: NameFilters) -> HttpResponse:
    after = cursors.text(filters.cursor, filters) if filters.cursor else ""
    retailer, source = narrowed_to(filters.retailer, filters.source)
    found = [item for item in facets.used(term, retailer=retailer, source=source) if item.key > after]
    shown = found[: filters.page_size]
    cursor = cursors.after(filters, shown[-1].key) if len(found) > len(shown) else None
    items = [NameUsed(name=item.name, offers=item.offers) for item in shown]
    return responses.read(request, Names(items=items, next_cursor=cursor))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise cursors.invalid() from None
