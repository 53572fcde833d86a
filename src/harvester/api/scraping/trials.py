"""Addresses that are tried once; nothing is written."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router

from harvester.api import responses
from harvester.api.keys import BearerKey, key_of
from harvester.api.scraping import quarantine_schemas as schemas
from harvester.catalog import sources as catalog_sources
from harvester.catalog.models import Source
from harvester.ops.scopes import Scope
from harvester.scraping import single_fetches
from harvester.scraping.models import FetchRequest

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))

_FIELDS = (
    "id", "url", "source_id", "requested_by", "created_at", "job_id", "outcome", "finished_at", "result",
)  # fmt: skip


@router.post(
    "/scrape/try",
    response={202: schemas.TriedUrl},
    operation_id="try_url",
    summary="Try an address",
    auth=BearerKey(Scope.SCRAPE_OPERATE),
)
def try_url(request: HttpRequest, body: schemas.UrlToTry) -> HttpResponse:
    """Fetch an address once and read it, also before its source is enabled. Nothing is written.

    It waits for its turn like every page, with robots.txt and pace: ask at `Location` until it has an outcome. At most
    10 addresses an hour and domain; more are 429 SCRAPE_RATE_LIMITED. 409 CONFIG: there is no contact for shops.
    """
    actor = key_of(request).actor

    def act() -> tuple[schemas.TriedUrl, Mapping[str, str]]:
        source = None
        if body.source_id is not None:
            source = Source.objects.filter(pk=body.source_id).first()
            if source is None:
                raise catalog_sources.unknown(body.source_id)
        made = single_fetches.try_url(actor, body.url, source)
        made.refresh_from_db()
        return _shape(made), {"Location": f"/api/v1/scrape/try/{made.pk}"}

    return responses.write(request, 202, act)


@router.get(
    "/scrape/try/{request_id}", response=schemas.TriedUrl, operation_id="get_tried_url", summary="Get a tried address"
)
def get_tried_url(
    request: HttpRequest, request_id: Annotated[UUID, Path(description="as `id` of the response to a try")]
) -> HttpResponse:
    """What was read from an address that was tried, from where and why. Results are deleted after a week."""
    return responses.read(request, _shape(single_fetches.request_named(request_id)))


def _shape(made: FetchRequest) -> schemas.TriedUrl:
    return schemas.TriedUrl.model_validate({name: getattr(made, name) for name in _FIELDS})
