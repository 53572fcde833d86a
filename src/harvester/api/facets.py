"""Names that searches filter by: retailers, sources, brands and categories."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.keys import BearerKey
from harvester.api.offers import PRINTABLE, retailer_and_source
from harvester.api.schemas import Filters, Names, NameUsed, Retailer, Retailers, Source, Sources
from harvester.catalog import facets, search_query
from harvester.ops.scopes import Scope

router = Router(tags=["names"], auth=BearerKey(Scope.OFFERS_READ))

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


@router.get("/retailers", response=Retailers, operation_id="list_retailers", summary="List retailers")
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


@router.get("/sources", response=Sources, operation_id="list_sources", summary="List sources")
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


@router.get("/brands", response=Names, operation_id="list_brands", summary="List brands")
def list_brands(request: HttpRequest, filters: Query[NameFilters]) -> HttpResponse:
    """Brands of the offers that consumers see, sorted by name; up to ten minutes old."""
    return _list_names(request, "brand", filters)


@router.get("/categories", response=Names, operation_id="list_categories", summary="List categories")
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
