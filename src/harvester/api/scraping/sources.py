"""Sources that are scraped: how they do, their settings, switches and adapters."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.keys import BearerKey
from harvester.api.schemas import Filters
from harvester.api.scraping import source_schemas as schemas
from harvester.catalog import governance
from harvester.catalog import sources as catalog_sources
from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.ops.scopes import Scope
from harvester.scraping import queries, verbs
from harvester.scraping.readiness import readiness, warnings
from harvester.scraping.settings import effective
from harvester.scraping.states import RUN_KIND
from harvester.scraping.target_filters import TargetFilter

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))
_OPERATE, _ADMIN = BearerKey(Scope.SCRAPE_OPERATE), BearerKey(Scope.SCRAPE_ADMIN)

SourceId = Annotated[UUID, Path(description="as `id` of a source")]
#: Runs whose coverage is shown.
MOST_COVERED: Final = 30
_SAME = (
    "name", "is_read", "enabled", "scrape_enabled", "robots_compliant", "robots_set_by", "visibility", "pages",
    "readable", "due", "never_read", "pending", "quarantined",
)  # fmt: skip
_OF_ADAPTER = (
    "disabled_reason", "disabled_by", "disabled_at", "check_next_run", "check_run_no", "baseline_failure_rate",
    "baseline_yield_rate", "baseline_sample_size", "last_batch_failure_rate", "backoff_until",
)  # fmt: skip
_OF_SOURCE = ("tos_reviewed_at", "tos_approved_by", "tos_note", "expiry_hours")
#: Bodies that may be left out.
_SCRAPE_ENABLING: Final = schemas.ScrapeEnabling()
_SCRAPE_STOP: Final = schemas.ScrapeStop()
_SCRAPE_SHOW: Final = schemas.ScrapeShow()


class SourceFilters(Filters):
    """The page to return."""

    cursor: str = Field("", max_length=8 * cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(50, ge=1, le=queries.LARGEST_PAGE)


@router.get(
    "/scrape/sources",
    response=schemas.ScrapedSources,
    operation_id="list_scraped_sources",
    summary="List scraped sources",
)
def list_sources(request: HttpRequest, filters: Query[SourceFilters]) -> HttpResponse:
    """Sources that have an adapter, sorted by name."""
    found = queries.sources(after=cursors.text(filters.cursor, filters), most=filters.page_size + 1)
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda row: row.name)
    items = [schemas.ScrapedSourceSummary.model_validate(_summary(row)) for row in shown]
    return responses.read(request, schemas.ScrapedSources(items=items, next_cursor=cursor))


@router.get(
    "/scrape/sources/{source_id}",
    response=schemas.ScrapedSource,
    operation_id="get_scraped_source",
    summary="Get one scraped source",
)
def get_source(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """A source with its switches, readiness, settings, adapter, pages, lag, and whether its schedules can be met."""
    return responses.read(request, source_shape(source_id))


@router.patch(
    "/scrape/sources/{source_id}",
    response=schemas.ScrapedSource,
    operation_id="update_scrape_settings",
    summary="Change settings of scraping",
    auth=_ADMIN,
)
def update_settings(request: HttpRequest, source_id: SourceId, body: schemas.ScrapeSettingsChanges) -> HttpResponse:
    """Change settings of scraping a source. Its pace and headers count from the next request on."""
    given = body.model_dump(exclude_unset=True)
    return switch(request, source_id, lambda actor: verbs.update_settings(actor, source_id, given))


@router.post(
    "/scrape/sources/{source_id}/review",
    response=schemas.ScrapedSource,
    operation_id="record_terms_review",
    summary="Record a review of terms",
    auth=_ADMIN,
)
def record_review(request: HttpRequest, source_id: SourceId, body: schemas.TermsReview) -> HttpResponse:
    """Record that somebody has reviewed the shop's terms and that they allow scraping, in the name of the key."""
    return switch(request, source_id, lambda actor: verbs.record_review(actor, source_id, body.note))


@router.post(
    "/scrape/sources/{source_id}/enable",
    response=schemas.ScrapedSource,
    operation_id="enable_scraping",
    summary="Enable scraping",
    auth=_ADMIN,
)
def enable(request: HttpRequest, source_id: SourceId, body: schemas.ScrapeEnabling = _SCRAPE_ENABLING) -> HttpResponse:
    """Let the pages of a source be read. Consumers do not see its scraped prices until somebody shows them.

    409 SCRAPE_NOT_READY lists the steps that are missing.
    """
    keep = body.keep_visibility
    return switch(request, source_id, lambda actor: verbs.enable(actor, source_id, keep_visibility=keep))


@router.post(
    "/scrape/sources/{source_id}/stop",
    response=schemas.Stopped,
    operation_id="stop_scraping",
    summary="Stop scraping a source",
    auth=_ADMIN,
)
def stop(request: HttpRequest, source_id: SourceId, body: schemas.ScrapeStop = _SCRAPE_STOP) -> HttpResponse:
    """Stop scraping a source at once. Pages that wait are cancelled; what is shown stays until it expires."""
    return responses.change(
        request,
        200,
        lambda actor: verbs.stop(actor, source_id, body.reason),
        lambda pages: schemas.Stopped(sources=1, pages=pages),
    )


@router.post(
    "/scrape/stop-all",
    response=schemas.Stopped,
    operation_id="stop_all_scraping",
    summary="Stop all scraping",
    auth=_ADMIN,
)
def stop_all(request: HttpRequest, body: schemas.ScrapeStop = _SCRAPE_STOP) -> HttpResponse:
    """Stop scraping all sources at once. Each has to be enabled again by itself."""
    return responses.change(
        request,
        200,
        lambda actor: verbs.stop_all(actor, body.reason),
        lambda stopped: schemas.Stopped(sources=len(stopped), pages=sum(stopped.values())),
    )


@router.post(
    "/scrape/sources/{source_id}/robots",
    response=schemas.ScrapedSource,
    operation_id="set_robots_compliant",
    summary="Forbid or allow a source",
    auth=_ADMIN,
)
def set_robots(request: HttpRequest, source_id: SourceId, body: schemas.RobotsSwitch) -> HttpResponse:
    """Forbid or allow reading a source by hand. What is forbidden here, the system never allows again."""
    return switch(
        request, source_id, lambda actor: verbs.set_robots_compliant(actor, source_id, body.compliant, body.note)
    )


@router.post(
    "/scrape/sources/{source_id}/show",
    response=schemas.ScrapedSource,
    operation_id="show_scraped_prices",
    summary="Show scraped prices",
    auth=_ADMIN,
)
def show(request: HttpRequest, source_id: SourceId, body: schemas.ScrapeShow = _SCRAPE_SHOW) -> HttpResponse:
    """Show what was scraped from a source to consumers.

    409 SCRAPE_NOT_READY: nobody has seen sample pages or a first run.
    """
    return switch(request, source_id, lambda actor: verbs.show(actor, source_id, anyway=body.anyway))


@router.post(
    "/scrape/sources/{source_id}/hide",
    response=schemas.ScrapedSource,
    operation_id="hide_scraped_prices",
    summary="Hide scraped prices",
    auth=_ADMIN,
)
def hide(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Hide what was scraped from a source from consumers. It is still read."""
    return switch(request, source_id, lambda actor: verbs.hide(actor, source_id))


@router.post(
    "/scrape/sources/{source_id}/pause",
    response=schemas.ScrapedSource,
    operation_id="pause_scraping",
    summary="Pause requests to a source",
    auth=_ADMIN,
)
def pause(request: HttpRequest, source_id: SourceId, body: schemas.ScrapePause) -> HttpResponse:
    """Stop all requests for pages of a source until somebody resumes them. Its pages keep waiting."""
    return switch(request, source_id, lambda actor: governance.pause(actor, source_id, RUN_KIND, body.reason))


@router.post(
    "/scrape/sources/{source_id}/resume",
    response=schemas.ScrapedSource,
    operation_id="resume_scraping",
    summary="Resume requests to a source",
    auth=_ADMIN,
)
def resume(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Allow requests to a source again that was paused, or that its breaker has stopped, as if it had never failed."""
    return switch(request, source_id, lambda actor: governance.resume(actor, source_id, RUN_KIND))


@router.post(
    "/scrape/sources/{source_id}/check-robots",
    response={202: schemas.RobotsCheck},
    operation_id="check_robots",
    summary="Check robots.txt now",
    auth=_OPERATE,
)
def check_robots(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Fetch the robots.txt of a source again, in the background; the readiness of the source shows the result."""
    return responses.change(
        request,
        202,
        lambda actor: verbs.check_robots(actor, source_id),
        lambda made: schemas.RobotsCheck(requests=[each.pk for each in made]),
    )


@router.get(
    "/scrape/sources/{source_id}/urls",
    response=schemas.UrlHealth,
    operation_id="get_url_health",
    summary="Get the health of addresses",
)
def get_url_health(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Pages of a source that moved, are gone, or are of one product."""
    health = queries.url_health(find_source(source_id).pk)
    shape = schemas.UrlHealth(
        moved=[schemas.MovedPage.model_validate(asdict(page)) for page in health.moved],
        gone=[schemas.GonePage(target_id=page.pk, url=page.url) for page in health.gone],
        same_product=[
            schemas.SameProduct(product_id=product, pages={str(page): url for page, url in pages.items()})
            for product, pages in health.twice.items()
        ],
    )
    return responses.read(request, shape)


def source_shape(source_id: UUID) -> schemas.ScrapedSource:
    source = find_source(source_id)
    [row] = queries.sources([source_id])
    settings = effective(source.scrape_config)
    breaker = next((state for state in governance.states([source_id]) if state.kind == RUN_KIND), None)
    return schemas.ScrapedSource.model_validate(
        {
            **_summary(row),
            **{name: getattr(source, name) for name in _OF_SOURCE},
            "settings": {**settings, "headers": sorted(settings["headers"])},
            "readiness": [{**asdict(step), "examples": list(step.examples)} for step in readiness(source)],
            "warnings": warnings(source),
            "counts": queries.counts(TargetFilter(source_id=source_id)),
            "quarantine": queries.quarantine_counts([source_id]).get(source_id, {}),
            "schedules": [
                {
                    "schedule": found.schedule,
                    "pages": found.fit.pages,
                    "period_seconds": found.fit.period.total_seconds(),
                    "interval_seconds": found.fit.interval,
                    "seconds": found.fit.seconds,
                    "most_pages": found.fit.most_pages,
                    "is_met": found.fit.is_met,
                    "summary": str(found.fit),
                }
                for found in queries.schedule_fits(source)
            ],
            "breaker": {**asdict(breaker.breaker), "gate": breaker.gate} if breaker else None,
            "coverage": [asdict(found) for found in queries.field_coverage(source_id, most=MOST_COVERED)],
        }
    )


def find_source(source_id: UUID) -> Source:
    found = Source.objects.select_related("retailer").filter(pk=source_id).first()
    if found is None:
        raise catalog_sources.unknown(source_id)
    return found


def _summary(row: queries.SourceRow) -> dict[str, Any]:
    return {
        "id": row.source_id,
        **{name: getattr(row, name) for name in _SAME},
        "adapter": adapter_shape(row),
        "oldest_due_at": row.oldest_due,
        "newest_success_at": row.newest_success,
        "oldest_success_at": row.oldest_success,
    }


def adapter_shape(row: queries.SourceRow) -> dict[str, Any]:
    own = {name: getattr(row, name) for name in _OF_ADAPTER}
    return {"id": row.adapter_id, "enabled": row.adapter_enabled, **own}


def switch(request: HttpRequest, source_id: UUID, verb: Callable[[Actor], object]) -> HttpResponse:
    """Call a verb and return the source afterwards."""
    return responses.change(request, 200, verb, lambda _: source_shape(source_id))
