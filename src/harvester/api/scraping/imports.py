"""Imports of lists of pages."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.jobs import enqueued
from harvester.api.keys import BearerKey, key_of
from harvester.api.problems import WrongField
from harvester.api.schemas import Filters, Job
from harvester.api.scraping import import_schemas as schemas
from harvester.api.scraping.sources import SourceId
from harvester.ops.scopes import Scope
from harvester.scraping import queries, verbs
from harvester.scraping.imports import Group, Judged, RowState, lines_of, preview
from harvester.scraping.models import ScrapeImport

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))
_OPERATE = BearerKey(Scope.SCRAPE_OPERATE)

ImportId = Annotated[UUID, Path(description="as `id` of an import")]
_OF_IMPORT = ("id", "name", "status", "job_id", "created_by", "created_at", "finished_at")
#: Shops that one response shows, lines of a shop, lines of all shops, and lines that were refused.
MOST_SHOPS: Final = 200
MOST_PROBLEMS: Final = 100
MOST_IN_ALL: Final = 1_000
MOST_REFUSED: Final = 1_000
#: Bodies that may be left out.
_FEED_PAGES: Final = schemas.FeedPages()


class ImportFilters(Filters):
    """The page to return."""

    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(20, ge=1, le=queries.LARGEST_PAGE)


class LineFilters(Filters):
    """The page to return, and which lines."""

    state: RowState | None = Field(None, description="only lines in this state, such as UNLINKED")
    domain: str = Field("", max_length=255, description="only lines of this shop")
    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(100, ge=1, le=queries.LARGEST_PAGE)


@router.get("/scrape/imports", response=schemas.Imports, operation_id="list_imports", summary="List imports")
def list_imports(request: HttpRequest, filters: Query[ImportFilters]) -> HttpResponse:
    """Imports of lists of pages, newest first."""
    found = queries.imports(after=cursors.key(filters.cursor, filters), most=filters.page_size + 1)
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda made: str(made["id"]))
    items = [schemas.ImportSummary.model_validate(made) for made in shown]
    return responses.read(request, schemas.Imports(items=items, next_cursor=cursor))


@router.post(
    "/scrape/imports",
    response={201: schemas.Import},
    operation_id="create_import",
    summary="Import a list of pages",
    auth=_OPERATE,
)
def create_import(request: HttpRequest, body: schemas.NewImport) -> HttpResponse:
    """Read a list of pages of any shops. Nothing is added before it is started.

    The response shows the expected result of each line. The body may have 2 MiB, about 20,000 addresses; split longer
    lists.
    """
    if (body.text is None) == (body.file is None):
        raise WrongField("text", "give either `text` or `file`.")
    given: bytes | str = body.text or ""
    if body.file is not None:
        try:
            given = base64.b64decode(body.file, validate=True)
        except binascii.Error as problem:
            raise WrongField("file", f"is not base64: {problem}.") from None
    actor = key_of(request).actor

    def act() -> tuple[schemas.Import, Mapping[str, str]]:
        made = verbs.create_import(actor, body.name, given)
        return _shape(made), _location(made)

    return responses.write(request, 201, act)


@router.post(
    "/scrape/sources/{source_id}/import-from-feed",
    response={202: schemas.Import},
    operation_id="import_pages_of_feed",
    summary="Add the pages of a feed's products",
    auth=_OPERATE,
)
def import_from_feed(request: HttpRequest, source_id: SourceId, body: schemas.FeedPages = _FEED_PAGES) -> HttpResponse:
    """Add the pages of a feed's own products in the background, each linked to its product. It may be repeated."""
    actor = key_of(request).actor

    def act() -> tuple[schemas.Import, Mapping[str, str]]:
        made = verbs.import_from_feed(actor, source_id, **body.model_dump())
        return _shape(made), _location(made)

    return responses.write(request, 202, act)


@router.get("/scrape/imports/{import_id}", response=schemas.Import, operation_id="get_import", summary="Get one import")
def get_import(request: HttpRequest, import_id: ImportId) -> HttpResponse:
    """An import: until it begins, the expected result of each line; afterwards, the actual one."""
    return responses.read(request, _shape(queries.scrape_import(import_id)))


@router.post(
    "/scrape/imports/{import_id}/choices",
    response=schemas.Import,
    operation_id="choose_for_shop",
    summary="Decide about a shop of an import",
    auth=_OPERATE,
)
def choose(request: HttpRequest, import_id: ImportId, body: schemas.ChoiceOfShop) -> HttpResponse:
    """Decide about the pages of one shop. Without a decision, what is proposed counts."""
    actor, choice = key_of(request).actor, body.model_dump(exclude_unset=True)
    domain = choice.pop("domain")

    def act() -> tuple[schemas.Import, Mapping[str, str]]:
        return _shape(verbs.choose(actor, import_id, domain, **choice)), {}

    return responses.write(request, 200, act)


@router.get(
    "/scrape/imports/{import_id}/lines",
    response=schemas.ListedLines,
    operation_id="list_import_lines",
    summary="List lines of an import",
)
def list_lines(request: HttpRequest, import_id: ImportId, filters: Query[LineFilters]) -> HttpResponse:
    """Lines of an import with their state and their candidates, as they are now: also after the import has ended."""
    rows = lines_of(queries.scrape_import(import_id), state=filters.state, domain=filters.domain)
    begin = cursors.number(filters.cursor, filters) if filters.cursor else 0
    found = list(enumerate(rows, 1))[begin : begin + filters.page_size + 1]
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda numbered: numbered[0])
    return responses.read(request, schemas.ListedLines(items=[_line(row) for _, row in shown], next_cursor=cursor))


@router.post(
    "/scrape/imports/{import_id}/links",
    response=schemas.Import,
    operation_id="link_lines",
    summary="Link lines of an import to products",
    auth=_OPERATE,
)
def link(request: HttpRequest, import_id: ImportId, body: schemas.LineLinks) -> HttpResponse:
    """Name the products of lines: before the import begins, or after it has ended, when their pages are added at once.

    All links are saved or none. Lines whose state is `UNLINKED` need one.
    """
    actor = key_of(request).actor
    links = []
    for place, each in enumerate(body.links):
        given = {"id": each.product_id, "sku": each.sku, "gtin": each.gtin}
        named = [f"{kind}:{number}" for kind, number in given.items() if number is not None]
        if len(named) > 1:
            raise WrongField(f"links.{place}", "give only one of `product_id`, `sku` and `gtin`.")
        links.append(verbs.LineLink(line=each.line, url=each.url or "", product="".join(named)))

    def act() -> tuple[schemas.Import, Mapping[str, str]]:
        return _shape(verbs.link_lines(actor, import_id, links)), {}

    return responses.write(request, 200, act)


@router.post(
    "/scrape/imports/{import_id}/start",
    response={202: Job},
    operation_id="start_import",
    summary="Start an import",
    auth=_OPERATE,
)
def start(request: HttpRequest, import_id: ImportId) -> HttpResponse:
    """Add the pages in the background. Retailers and sources that do not exist are made, and not read yet."""
    actor = key_of(request).actor
    return responses.write(request, 202, lambda: enqueued(verbs.start_import(actor, import_id)))


@router.post(
    "/scrape/imports/{import_id}/cancel",
    response=schemas.Import,
    operation_id="cancel_import",
    summary="Cancel an import",
    auth=_OPERATE,
)
def cancel(request: HttpRequest, import_id: ImportId) -> HttpResponse:
    """Import nothing more of a list. Pages that were added stay."""
    actor = key_of(request).actor

    def act() -> tuple[schemas.Import, Mapping[str, str]]:
        verbs.cancel_import(actor, import_id)
        return _shape(queries.scrape_import(import_id)), {}

    return responses.write(request, 200, act)


def _shape(made: ScrapeImport) -> schemas.Import:
    groups = preview(made).groups if made.status == "PREVIEW" else []
    left = MOST_IN_ALL
    shops = []
    for group in groups[:MOST_SHOPS]:
        problems = [row for row in group.rows if row.state is not RowState.NEW][: min(MOST_PROBLEMS, left)]
        left -= len(problems)
        shops.append(_shop(group, problems))
    results = {name: number for name, number in made.results.items() if isinstance(number, int)}
    refused = [*made.refused, *made.results.get("lines", [])]
    return schemas.Import.model_validate(
        {
            **{name: getattr(made, name) for name in _OF_IMPORT},
            "pages": len(made.rows["pages"]),
            "refused": len(made.refused),
            "shops": shops,
            "more_shops": len(groups) - len(shops),
            "not_read": made.rows["not_read"],
            "refused_lines": refused[:MOST_REFUSED],
            "results": results,
        }
    )


def _shop(group: Group, problems: Sequence[Judged]) -> dict[str, Any]:
    return {
        "domain": group.domain,
        "choice": vars(group.choice),
        "sources": {str(source): name for source, name in group.sources.items()},
        "retailer": group.retailer,
        "has_feed": group.has_feed,
        "counts": group.counts,
        "problems": [_line(row) for row in problems],
    }


def _line(row: Judged) -> schemas.ListedLine:
    return schemas.ListedLine(
        line=row.page.line,
        url=row.page.url,
        state=row.state,
        reason=row.reason,
        product_id=row.product_id,
        candidates=[dict(candidate) for candidate in row.candidates],
    )


def _location(made: ScrapeImport) -> Mapping[str, str]:
    return {"Location": f"/api/v1/scrape/imports/{made.pk}"}
