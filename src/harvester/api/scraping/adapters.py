"""Adapters: where they are used, how they do on a source, and what they would read from its kept pages.

Overrides of a source are saved as a draft, tested on kept pages in a job, then used.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router
from pydantic import BaseModel, Field

from harvester.api import responses
from harvester.api.keys import BearerKey
from harvester.api.problems import WrongField
from harvester.api.schemas import Body
from harvester.api.scraping import source_schemas as schemas
from harvester.api.scraping.sources import SourceId, adapter_shape, find_source, switch
from harvester.kernel.actor import Actor
from harvester.ops.scopes import Scope
from harvester.scraping import adapters, overrides, page_review, queries, verbs
from harvester.scraping.models import ScrapeOverride
from harvester.scraping.reader.reading import with_overrides
from harvester.scraping.sites import site_named, sites
from harvester.scraping.verbs.targets import ANY_SHOP

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))
_OPERATE, _ADMIN = BearerKey(Scope.SCRAPE_OPERATE), BearerKey(Scope.SCRAPE_ADMIN)

_OF_BATCH = (
    "judged_at", "run_no", "adapter_version", "attempts", "failures", "offers", "zero_prices", "is_refused",
)  # fmt: skip
#: A body that may be left out.
_BACKTEST_REQUEST: Final = schemas.BacktestRequest()


@router.get("/scrape/adapters", response=schemas.Adapters, operation_id="list_adapters", summary="List adapters")
def list_adapters(request: HttpRequest) -> HttpResponse:
    """All adapters, and on how many sources each of them is used."""
    usage = queries.adapter_usage()
    items = [
        schemas.Adapter(
            id=site.id,
            version=site.version,
            title=site.title,
            domains=list(site.domains),
            is_available=not site.requires_js,
            **usage.get(site.id, {"sources": 0, "disabled": 0, "to_check": 0}),
        )
        for site in sites()
    ]
    return responses.read(request, schemas.Adapters(items=items))


@router.get(
    "/scrape/sources/{source_id}/adapter",
    response=schemas.AdapterHistory,
    operation_id="get_adapter_of_source",
    summary="Get the adapter of a source",
)
def get_adapter(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """How the adapter of a source does, with the batches that were judged in the last 7 days."""
    return responses.read(request, _history(source_id))


@router.post(
    "/scrape/sources/{source_id}/adapter",
    response=schemas.ScrapedSource,
    operation_id="choose_adapter",
    summary="Choose an adapter",
    auth=_ADMIN,
)
def choose_adapter(request: HttpRequest, source_id: SourceId, body: schemas.AdapterChoice) -> HttpResponse:
    """Choose the adapter that reads the pages of a source."""
    return switch(request, source_id, lambda actor: verbs.choose_adapter(actor, source_id, body.adapter_id))


@router.post(
    "/scrape/sources/{source_id}/adapter/enable",
    response=schemas.AdapterHistory,
    operation_id="enable_adapter",
    summary="Enable an adapter again",
    auth=_ADMIN,
)
def enable_adapter(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Let the adapter of a source read again. Its counters start at zero, and its next run is to be checked."""
    return _switch_adapter(request, source_id, lambda actor: adapters.enable(actor, source_id))


@router.post(
    "/scrape/sources/{source_id}/adapter/disable",
    response=schemas.AdapterHistory,
    operation_id="disable_adapter",
    summary="Disable an adapter",
    auth=_ADMIN,
)
def disable_adapter(request: HttpRequest, source_id: SourceId, body: schemas.AdapterSwitchOff) -> HttpResponse:
    """Stop the adapter of a source. Pages that wait are cancelled."""
    reason, note = body.reason, body.note
    return _switch_adapter(
        request, source_id, lambda actor: adapters.disable(actor, source_id, reason=reason, note=note)
    )


@router.post(
    "/scrape/sources/{source_id}/adapter/confirm",
    response=schemas.AdapterHistory,
    operation_id="confirm_run",
    summary="Confirm a checked run",
    auth=_ADMIN,
)
def confirm_adapter(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Confirm that what the first run after enabling read is right."""
    return _switch_adapter(request, source_id, lambda actor: adapters.confirm_check(actor, source_id))


@router.post(
    "/scrape/sources/{source_id}/backtest",
    response=schemas.Backtest,
    operation_id="backtest_source",
    summary="Read kept pages again",
    auth=_OPERATE,
)
def backtest(
    request: HttpRequest, source_id: SourceId, body: schemas.BacktestRequest = _BACKTEST_REQUEST
) -> HttpResponse:
    """Read the newest kept pages of a source with its adapter, or with other overrides, and compare with then.

    Nothing is requested or written. The response may take some seconds.
    """
    source = find_source(source_id)
    if body.overrides:
        try:
            with_overrides(site_named(source.adapter_id or ANY_SHOP), body.overrides)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise WrongField("overrides", f"they cannot be used: {problem}.") from None

    def act() -> tuple[schemas.Backtest, Mapping[str, str]]:
        report = page_review.backtest(source, body.overrides, most=body.most)
        return schemas.Backtest.model_validate(report.as_json()), {}

    return responses.write(request, 200, act)


@router.get(
    "/scrape/sources/{source_id}/hints",
    response=schemas.RepairHints,
    operation_id="get_repair_hints",
    summary="Find where values have moved to",
    auth=_OPERATE,
)
def get_hints(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Where the last known titles, prices and SKUs are found on the newest kept pages; for a redesigned shop.

    At most 50 pages are searched. The response may take some seconds.
    """
    found = page_review.hints(find_source(source_id))
    items = [schemas.RepairHint(**asdict(hint), override=hint.override) for hint in found]
    return responses.read(request, schemas.RepairHints(items=items))


def _history(source_id: UUID) -> schemas.AdapterHistory:
    source = find_source(source_id)
    [row] = queries.sources([source_id])
    found = queries.batches(source_id, source.adapter_id or "")
    batches = [{**{name: getattr(batch, name) for name in _OF_BATCH}, "gates": batch.verdict} for batch in found]
    return schemas.AdapterHistory.model_validate({"adapter": adapter_shape(row), "batches": batches})


def _switch_adapter(request: HttpRequest, source_id: UUID, verb: Callable[[Actor], object]) -> HttpResponse:
    """Call a verb and return the adapter of the source afterwards."""
    return responses.change(request, 200, verb, lambda _: _history(source_id))


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
    return responses.read(request, Overrides(items=[_override(each) for each in found]))


@router.post(
    "/scrape/sources/{source_id}/overrides",
    response={201: Override},
    operation_id="save_override",
    summary="Save overrides as a draft",
    auth=_ADMIN,
)
def save_override(request: HttpRequest, source_id: SourceId, body: NewOverride) -> HttpResponse:
    """Save a new version. It counts once it was tested on kept pages and is used."""
    return responses.change(
        request, 201, lambda actor: overrides.save(actor, source_id, body.places, body.note), _override
    )


@router.post(
    "/scrape/sources/{source_id}/overrides/{version}/test",
    response={202: StartedTest},
    operation_id="test_override",
    summary="Test overrides on kept pages",
    auth=_ADMIN,
)
def test_override(request: HttpRequest, source_id: SourceId, version: Version) -> HttpResponse:
    """Read the kept pages with a version, in a job. Nothing is requested or written."""
    return responses.change(
        request, 202, lambda actor: overrides.test(actor, source_id, version), lambda job: StartedTest(job_id=job)
    )


@router.post(
    "/scrape/sources/{source_id}/overrides/{version}/use",
    response=Override,
    operation_id="use_override",
    summary="Use tested overrides",
    auth=_ADMIN,
)
def use_override(request: HttpRequest, source_id: SourceId, version: Version) -> HttpResponse:
    """Read the pages of the source with a tested version from now on; the one before is retired."""
    return responses.change(request, 200, lambda actor: overrides.use(actor, source_id, version), _override)


@router.post(
    "/scrape/sources/{source_id}/overrides/{version}/retire",
    response=Override,
    operation_id="retire_override",
    summary="Retire overrides",
    auth=_ADMIN,
)
def retire_override(request: HttpRequest, source_id: SourceId, version: Version) -> HttpResponse:
    """Read the pages of the source by its site file alone again."""
    return responses.change(request, 200, lambda actor: overrides.retire(actor, source_id, version), _override)


def _override(found: ScrapeOverride) -> Override:
    return Override.model_validate({name: getattr(found, name) for name in Override.model_fields})
