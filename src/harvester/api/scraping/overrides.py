"""Overrides of a source: saved as a draft, tested on kept pages in a job, then used."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router
from pydantic import BaseModel, Field

from harvester.api import responses
from harvester.api.keys import BearerKey, key_of
from harvester.api.schemas import Body
from harvester.api.scraping.sources import SourceId, find_source
from harvester.kernel.actor import Actor
from harvester.ops.scopes import Scope
from harvester.scraping import overrides
from harvester.scraping.models import ScrapeOverride

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))
_ADMIN = BearerKey(Scope.SCRAPE_ADMIN)
Version = Annotated[int, Path(ge=1, le=2**31 - 1, description="the version of the overrides")]
LONGEST_LIST = 100


class NewOverride(Body):
    """Where a source differs from its site file."""

    places: dict[str, Any] = Field(description='such as {"places": {"price": ["json:offers.price"]}}')
    note: str = Field(default="", description="why; others will ask")


class Override(BaseModel):
    """A version of a source's overrides."""

    version: int
    status: str = Field(description="DRAFT, ACTIVE or RETIRED")
    places: dict[str, Any]
    backtest: dict[str, Any] | None = Field(description="what it reads from kept pages; null: not tested yet")
    note: str
    created_by: str
    created_at: datetime
    activated_by: str | None
    activated_at: datetime | None


class Overrides(BaseModel):
    """Versions of a source's overrides, the newest first."""

    items: list[Override]


class StartedTest(BaseModel):
    """The job that tests a version."""

    job_id: int


@router.get(
    "/scrape/sources/{source_id}/overrides",
    response=Overrides,
    operation_id="list_overrides",
    summary="List overrides of a source",
)
def list_overrides(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """The newest hundred versions, with the results of their tests."""
    found = ScrapeOverride.objects.filter(source=find_source(source_id)).order_by("-version")[:LONGEST_LIST]
    return responses.read(request, Overrides(items=[_shape(each) for each in found]))


@router.post(
    "/scrape/sources/{source_id}/overrides",
    response={201: Override},
    operation_id="save_override",
    summary="Save overrides as a draft",
    auth=_ADMIN,
)
def save_override(request: HttpRequest, source_id: SourceId, body: NewOverride) -> HttpResponse:
    """Save a new version. It counts once it was tested on kept pages and is used."""
    return _write(request, 201, lambda actor: overrides.save(actor, source_id, body.places, body.note))


@router.post(
    "/scrape/sources/{source_id}/overrides/{version}/test",
    response={202: StartedTest},
    operation_id="test_override",
    summary="Test overrides on kept pages",
    auth=_ADMIN,
)
def test_override(request: HttpRequest, source_id: SourceId, version: Version) -> HttpResponse:
    """Read the kept pages with a version, in a job. Nothing is requested or written."""
    actor = key_of(request).actor

    def act() -> tuple[StartedTest, Mapping[str, str]]:
        return StartedTest(job_id=overrides.test(actor, source_id, version)), {}

    return responses.write(request, 202, act)


@router.post(
    "/scrape/sources/{source_id}/overrides/{version}/use",
    response=Override,
    operation_id="use_override",
    summary="Use tested overrides",
    auth=_ADMIN,
)
def use_override(request: HttpRequest, source_id: SourceId, version: Version) -> HttpResponse:
    """Read the pages of the source with a tested version from now on; the one before is retired."""
    return _write(request, 200, lambda actor: overrides.use(actor, source_id, version))


@router.post(
    "/scrape/sources/{source_id}/overrides/{version}/retire",
    response=Override,
    operation_id="retire_override",
    summary="Retire overrides",
    auth=_ADMIN,
)
def retire_override(request: HttpRequest, source_id: SourceId, version: Version) -> HttpResponse:
    """Read the pages of the source by its site file alone again."""
    return _write(request, 200, lambda actor: overrides.retire(actor, source_id, version))


def _shape(found: ScrapeOverride) -> Override:
    return Override.model_validate({name: getattr(found, name) for name in Override.model_fields})


def _write(request: HttpRequest, status: int, verb: Callable[[Actor], ScrapeOverride]) -> HttpResponse:
    actor = key_of(request).actor

    def act() -> tuple[Override, Mapping[str, str]]:
        return _shape(verb(actor)), {}

    return responses.write(request, status, act)
