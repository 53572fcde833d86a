"""Feeds: lists, settings and the actions of operators."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.jobs import enqueued
from harvester.api.keys import BearerKey, key_of
from harvester.api.schemas import Feed, Feeds, FeedSummary, Filters, Job
from harvester.catalog.exposure import Exposure, exposure_of, exposures
from harvester.feeds import models, queries, verbs
from harvester.feeds.partner_connection import port_of
from harvester.feeds.readiness import missing_for_a_run
from harvester.feeds.settings import STORED
from harvester.feeds.states import FeedStatus
from harvester.kernel.actor import Actor
from harvester.ops.scopes import Scope
from harvester.runs.models import Run

router = Router(tags=["feeds"], auth=BearerKey(Scope.FEEDS_READ))
_OPERATE = BearerKey(Scope.FEEDS_OPERATE)

_SUMMARY = (
    "id", "source_id", "network", "status", "schedule_hours", "next_run_at", "last_run_at", "consecutive_failures",
)  # fmt: skip
_DETAILS = (*STORED, "created_at", "updated_at", "retired_at")


class FeedFilters(Filters):
    """The feeds to list."""

    status: FeedStatus | None = Field(None, description="only in this state")
    cursor: str = Field("", max_length=3 * cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(20, ge=1, le=queries.LARGEST_PAGE)


@router.get("/feeds", response=Feeds, operation_id="list_feeds", summary="List feeds")
def list_feeds(request: HttpRequest, filters: Query[FeedFilters]) -> HttpResponse:
    """Feeds, sorted by name."""
    after = cursors.text(filters.cursor, filters)
    found = queries.feeds(status=filters.status, after=after, most=filters.page_size + 1)
    shown, cursor = cursors.cut(found, filters, filters.page_size, str)
    exposure = exposures([feed.source_id for feed in shown])
    items = [FeedSummary.model_validate(_summary(feed, exposure[feed.source_id])) for feed in shown]
    return responses.read(request, Feeds(items=items, next_cursor=cursor))


@router.get("/feeds/{feed_id}", response=Feed, operation_id="get_feed", summary="Get one feed")
def get_feed(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """A feed with its settings, without secrets."""
    return responses.read(request, feed_shape(queries.feed(feed_id)))


@router.post("/feeds/{feed_id}/run", response={202: Job}, operation_id="run_feed", summary="Run a feed", auth=_OPERATE)
def run_feed(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Run an enabled feed now, or right after the run in progress. Its schedule does not change."""
    actor = key_of(request).actor
    return responses.write(request, 202, lambda: enqueued(verbs.run_now(actor, feed_id)))


@router.post(
    "/feeds/{feed_id}/test", response={202: Job}, operation_id="test_feed", summary="Test a feed", auth=_OPERATE
)
def test_feed(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Test a feed on its first rows, in any state. The findings are in the job's result."""
    actor = key_of(request).actor
    return responses.write(request, 202, lambda: enqueued(verbs.test_run(actor, feed_id)))


@router.post("/feeds/{feed_id}/pause", response=Feed, operation_id="pause_feed", summary="Pause a feed", auth=_OPERATE)
def pause_feed(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Pause an enabled feed until it is resumed. A run in progress continues."""
    return _switch(request, verbs.pause, feed_id)


@router.post(
    "/feeds/{feed_id}/resume", response=Feed, operation_id="resume_feed", summary="Resume a feed", auth=_OPERATE
)
def resume_feed(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Resume a paused feed."""
    return _switch(request, verbs.resume, feed_id)


@router.post(
    "/feeds/{feed_id}/retire",
    response=Feed,
    operation_id="retire_feed",
    summary="Retire a feed",
    auth=BearerKey(Scope.FEEDS_ADMIN),
)
def retire_feed(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Permanently retire a paused or disabled feed that has no held run.

    Its credentials are deleted, and it is removed from lists and schedules. Its runs and prices are kept; its offers
    expire as usual.
    """
    return _switch(request, verbs.retire, feed_id)


def feed_shape(feed: models.Feed) -> Feed:
    held = Run.objects.filter(no=feed.source.held_run_no or 0).values_list("id", flat=True).first()
    exposure = exposure_of(feed.source_id)
    return Feed.model_validate(
        {
            **_summary(feed, exposure),
            **{name: getattr(feed, name) for name in _DETAILS},
            "offers_expire_at": exposure.offers_expire_at,
            "disappearing_offers": exposure.disappearing,
            "disappear_by": exposure.disappear_by,
            "port": port_of(feed),
            "credentials": feed.secret_fields,
            "expiry_hours": feed.source.expiry_hours,
            "held_run_id": held,
            "lacks": list(missing_for_a_run(feed).values()),
        }
    )


def _summary(feed: models.Feed, exposure: Exposure) -> dict[str, Any]:
    return {
        **{name: getattr(feed, name) for name in _SUMMARY},
        "name": str(feed),
        "run_requested_at": feed.manual_run_requested_at,
        "visible_offers": exposure.visible,
        "not_visible_because": exposure.not_visible_because,
    }


def _switch(request: HttpRequest, verb: Callable[[Actor, UUID], models.Feed], feed_id: UUID) -> HttpResponse:
    actor = key_of(request).actor
    return responses.write(request, 200, lambda: (feed_shape(verb(actor, feed_id)), {}))
