"""Pages of shops: lists, settings, requests to read them now, and addresses that are tried once."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.keys import BearerKey, has_scope, key_of, require
from harvester.api.offers import PRINTABLE, YesOrNo
from harvester.api.problems import WrongField
from harvester.api.schemas import Filters
from harvester.api.scraping import page_schemas as schemas
from harvester.api.scraping.sources import SourceId
from harvester.catalog import sources as catalog_sources
from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.ops.scopes import Scope
from harvester.runs.models import Run
from harvester.scraping import page_review, quarantine, queries, single_fetches, verbs
from harvester.scraping.capacity import EnqueueResult
from harvester.scraping.models import FetchRequest
from harvester.scraping.states import TargetStatus
from harvester.scraping.target_filters import TargetFilter, Trouble
from harvester.scraping.verbs.targets import MOST_WITHOUT_ADMIN

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))
_OPERATE, _ADMIN = BearerKey(Scope.SCRAPE_OPERATE), BearerKey(Scope.SCRAPE_ADMIN)

TargetId = Annotated[UUID, Path(description="as `id` of a page")]
_SUMMARY = (
    "id", "source_id", "url", "product_id", "adapter_id", "schedule", "priority", "status", "enabled",
    "robots_path_blocked", "due_at", "last_scraped_at", "last_success_at", "last_status", "last_detail",
    "consecutive_failures", "moved_to", "notes", "created_by", "created_at", "updated_at",
)  # fmt: skip
_DETAILS = (
    "canonical_url", "recheck_at", "recheck_reason", "last_seen", "waiting", "pinned", "pinned_product_id", "chosen",
    "last_full_fetch_at",
)  # fmt: skip
#: Bodies that may be left out.
_ENQUEUE_REQUEST: Final = schemas.EnqueueRequest()


class TargetFilters(Filters):
    """The pages to list."""

    source_id: UUID | None = Field(None, description="only of this source")
    status: TargetStatus | None = Field(None, description="only in this state")
    outcome: str | None = Field(None, max_length=200, pattern=PRINTABLE, description="of the last page")
    text: str = Field("", max_length=200, pattern=PRINTABLE, description="part of the address or of the notes")
    trouble: Trouble | None = Field(None, description="why they yield nothing")
    is_enabled: YesOrNo | None = Field(None, description="only those that are, or are not, switched on")
    is_due: YesOrNo | None = Field(None, description="only those that are, or are not, due")
    has_moved: YesOrNo | None = Field(None, description="whether the shop redirects them")
    is_linked: YesOrNo | None = Field(None, description="whether they refresh a product of a feed")
    schedule: str | None = Field(
        None, max_length=200, pattern=PRINTABLE, description="this cron line; empty: on request only"
    )
    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(50, ge=1, le=queries.LARGEST_PAGE)


@router.get("/scrape/targets", response=schemas.Targets, operation_id="list_targets", summary="List pages")
def list_targets(request: HttpRequest, filters: Query[TargetFilters]) -> HttpResponse:
    """Pages of shops, newest first."""
    wanted = TargetFilter(**filters.model_dump(exclude={"cursor", "page_size"}))
    found = queries.targets(wanted, after=cursors.key(filters.cursor, filters), most=filters.page_size + 1)
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda row: str(row.target.pk))
    items = [schemas.TargetSummary.model_validate(_summary(row)) for row in shown]
    return responses.read(request, schemas.Targets(items=items, next_cursor=cursor))


@router.post(
    "/scrape/targets",
    response={201: schemas.Target},
    operation_id="add_target",
    summary="Add a page",
    auth=_OPERATE,
)
def add_target(request: HttpRequest, body: schemas.NewTarget) -> HttpResponse:
    """Add a page of a source. A page of a source with a feed must be linked to one of the feed's products.

    422 PAGE_NOT_LINKED: it is not clear which product it is of; the message has the candidates.
    """
    actor = key_of(request).actor

    def act() -> tuple[schemas.Target, Mapping[str, str]]:
        made = verbs.add_target(actor, **body.model_dump(exclude_unset=True))
        return target_shape(made.pk), {"Location": f"/api/v1/scrape/targets/{made.pk}"}

    return responses.write(request, 201, act)


@router.post(
    "/scrape/targets/bulk",
    response=schemas.Changed,
    operation_id="change_targets",
    summary="Change or delete many pages",
    auth=_OPERATE,
)
def change_targets(request: HttpRequest, body: schemas.BulkChange) -> HttpResponse:
    """Change settings of all pages that match, or delete them.

    Deleting, blocking by hand, and changing more than 1,000 pages need the scope `scrape:admin`.
    """
    if body.delete == (body.changes is not None):
        raise WrongField("changes", "give either changes or `delete`.")
    changes = body.changes.model_dump(exclude_unset=True) if body.changes else {}
    if body.delete or "robots_path_blocked" in changes:
        require(request, Scope.SCRAPE_ADMIN)
    actor = key_of(request).actor
    most = None if has_scope(request, Scope.SCRAPE_ADMIN) else MOST_WITHOUT_ADMIN
    wanted = _selected(body.filter)

    def act() -> tuple[schemas.Changed, Mapping[str, str]]:
        if body.delete:
            return schemas.Changed(pages=verbs.delete_targets(actor, wanted, most=most)), {}
        return schemas.Changed(pages=verbs.update_targets(actor, wanted, most=most, **changes)), {}

    return responses.write(request, 200, act)


@router.get("/scrape/targets/{target_id}", response=schemas.Target, operation_id="get_target", summary="Get one page")
def get_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """A page with what was read from it last, and why it yields nothing if it does not."""
    return responses.read(request, target_shape(target_id))


@router.get(
    "/scrape/targets/{target_id}/readings",
    response=schemas.Readings,
    operation_id="list_readings",
    summary="List the readings of a page",
)
def list_readings(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """How reading a page ended the last 20 times, with the places that were looked at. Kept for 30 days."""
    items = [
        schemas.Reading.model_validate(
            {
                "run": {"id": part.run.pk, "no": part.run.no},
                **{name: getattr(part, name) for name in ("outcome", "observed_at", "ended_at", "version")},
                "price": (part.found or {}).get("price"),
                "detail": part.detail.get("error") or part.detail.get("note"),
                "evidence": part.detail.get("evidence") or [],
            }
        )
        for part in queries.readings(target_id)
    ]
    return responses.read(request, schemas.Readings(items=items))


@router.patch(
    "/scrape/targets/{target_id}",
    response=schemas.Target,
    operation_id="update_target",
    summary="Change a page",
    auth=_OPERATE,
)
def update_target(request: HttpRequest, target_id: TargetId, body: schemas.TargetChanges) -> HttpResponse:
    """Change settings of a page, its address or its product. `robots_path_blocked` needs the scope `scrape:admin`."""
    changes = body.model_dump(exclude_unset=True)
    if "robots_path_blocked" in changes:
        require(request, Scope.SCRAPE_ADMIN)
    return _change(request, target_id, lambda actor: verbs.update_target(actor, target_id, **changes))


@router.delete(
    "/scrape/targets/{target_id}",
    response=schemas.Changed,
    operation_id="delete_target",
    summary="Delete a page",
    auth=_ADMIN,
)
def delete_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Delete a page with what was kept of it. Prices that it has written stay."""
    return responses.change(
        request, 200, lambda actor: verbs.delete_target(actor, target_id), lambda _: schemas.Changed(pages=1)
    )


@router.post(
    "/scrape/targets/{target_id}/pause",
    response=schemas.Target,
    operation_id="pause_target",
    summary="Pause a page",
    auth=_OPERATE,
)
def pause_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Stop reading a page until it is resumed."""
    return _change(request, target_id, lambda actor: verbs.pause_target(actor, target_id))


@router.post(
    "/scrape/targets/{target_id}/resume",
    response=schemas.Target,
    operation_id="resume_target",
    summary="Resume a page",
    auth=_OPERATE,
)
def resume_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Read a paused, broken or stale page again. Its failures are counted from zero."""
    return _change(request, target_id, lambda actor: verbs.resume_target(actor, target_id))


@router.post(
    "/scrape/targets/{target_id}/move",
    response=schemas.Target,
    operation_id="move_target",
    summary="Take over a redirect",
    auth=_OPERATE,
)
def move_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Read a page from now on where the shop permanently redirects it to. It stays the same product."""
    return _change(request, target_id, lambda actor: verbs.replace_moved(actor, target_id))


@router.post(
    "/scrape/targets/{target_id}/unpin",
    response=schemas.Target,
    operation_id="unpin_target",
    summary="Let a page show another product",
    auth=_OPERATE,
)
def unpin_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Let a page show another product than before: the next offer that is written pins it again."""
    return _change(request, target_id, lambda actor: quarantine.unpin(actor, target_id))


@router.post(
    "/scrape/targets/{target_id}/forget-places",
    response=schemas.Target,
    operation_id="forget_places",
    summary="Forget the places chosen for a page",
    auth=_OPERATE,
)
def forget_places(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Read a page by the places of its shop alone again, without those that were chosen in quarantine."""
    return _change(request, target_id, lambda actor: quarantine.forget_places(actor, target_id))


@router.post(
    "/scrape/targets/{target_id}/reprocess",
    response={202: schemas.RunOfPages},
    operation_id="reprocess_target",
    summary="Read a kept page again",
    auth=_OPERATE,
)
def reprocess_target(request: HttpRequest, target_id: TargetId) -> HttpResponse:
    """Begin a run that reads the newest kept page with the current adapter. Nothing is requested from the shop."""
    actor = key_of(request).actor

    def act() -> tuple[schemas.RunOfPages, Mapping[str, str]]:
        queries.target(target_id)
        run = page_review.reprocess(actor, target_id)
        return schemas.RunOfPages(id=run.pk, no=run.no), _location(run)

    return responses.write(request, 202, act)


@router.post(
    "/scrape/sources/{source_id}/enqueue",
    response={202: schemas.Enqueued},
    operation_id="enqueue_pages",
    summary="Read pages now",
    auth=_OPERATE,
)
def enqueue(request: HttpRequest, source_id: SourceId, body: schemas.EnqueueRequest = _ENQUEUE_REQUEST) -> HttpResponse:
    """Read pages of a source now: some, or all of them. The run is in `Location`.

    If no page was accepted: 429 SCRAPE_QUEUE_FULL or SCRAPE_RATE_LIMITED with `Retry-After`, or 409
    SCRAPE_SOURCE_DISABLED or SCRAPE_ADAPTER_DISABLED. Part of them may be accepted; `rejected` has the others.
    """
    if body.ids is not None and body.filter is not None:
        raise WrongField("ids", "give either ids or a filter.")
    if body.force:
        require(request, Scope.SCRAPE_ADMIN)
    actor = key_of(request).actor
    wanted = _selected(body.filter) if body.filter is not None else body.ids

    def act() -> tuple[schemas.Enqueued, Mapping[str, str]]:
        return _enqueued(verbs.request(actor, source_id, wanted, force=body.force).require())

    return responses.write(request, 202, act)


@router.post(
    "/scrape/sources/{source_id}/requeue",
    response={202: schemas.Enqueued},
    operation_id="requeue_stale_pages",
    summary="Re-queue stale pages",
    auth=_OPERATE,
)
def requeue(request: HttpRequest, source_id: SourceId) -> HttpResponse:
    """Read the stale pages of a source, as many as there is room for. The others stay STALE. Refused like `enqueue`."""
    actor = key_of(request).actor

    def act() -> tuple[schemas.Enqueued, Mapping[str, str]]:
        # A refused request changes nothing: its pages stay STALE.
        with transaction.atomic():
            return _enqueued(verbs.requeue_stale(actor, source_id).require())

    return responses.write(request, 202, act)


def target_shape(target_id: UUID) -> schemas.Target:
    row = queries.target(target_id)
    more = {name: getattr(row.target, name) for name in _DETAILS}
    return schemas.Target.model_validate({**_summary(row), **more})


def _summary(row: queries.TargetRow) -> dict[str, Any]:
    target, diagnosis = row.target, row.diagnosis
    return {
        **{name: getattr(target, name) for name in _SUMMARY},
        "source": str(target.source),
        "price": (target.last_seen or {}).get("offer", {}).get("price"),
        "diagnosis": vars(diagnosis) if diagnosis else None,
    }


def _selected(given: schemas.TargetSelection) -> TargetFilter:
    return TargetFilter(**given.model_dump())


def _enqueued(result: EnqueueResult) -> tuple[schemas.Enqueued, Mapping[str, str]]:
    run = result.run
    shape = schemas.Enqueued.model_validate({**vars(result), "run": {"id": run.pk, "no": run.no} if run else None})
    return shape, _location(run) if run else {}


def _location(run: Run) -> Mapping[str, str]:
    return {"Location": f"/api/v1/runs/{run.pk}"}


def _change(request: HttpRequest, target_id: UUID, verb: Callable[[Actor], object]) -> HttpResponse:
    """Call a verb and return the page afterwards."""
    return responses.change(request, 200, verb, lambda _: target_shape(target_id))


tried = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))

_OF_TRIED = (
    "id", "url", "source_id", "requested_by", "created_at", "job_id", "outcome", "finished_at", "result",
)  # fmt: skip


@tried.post(
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
        return _tried_url(made), {"Location": f"/api/v1/scrape/try/{made.pk}"}

    return responses.write(request, 202, act)


@tried.get(
    "/scrape/try/{request_id}", response=schemas.TriedUrl, operation_id="get_tried_url", summary="Get a tried address"
)
def get_tried_url(
    request: HttpRequest, request_id: Annotated[UUID, Path(description="as `id` of the response to a try")]
) -> HttpResponse:
    """What was read from an address that was tried, from where and why. Results are deleted after a week."""
    return responses.read(request, _tried_url(single_fetches.request_named(request_id)))


def _tried_url(made: FetchRequest) -> schemas.TriedUrl:
    return schemas.TriedUrl.model_validate({name: getattr(made, name) for name in _OF_TRIED})
