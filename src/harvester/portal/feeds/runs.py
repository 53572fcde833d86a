"""The tab Runs of a feed."""

from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase

from harvester.catalog.models import Run
from harvester.catalog.states import RunKind
from harvester.feeds.models import Feed
from harvester.portal.feeds import page
from harvester.portal.runs.lists import OutcomePill, RunAdmin, StatusPill, TriggerPill


class FeedRuns(RunAdmin):
    """The runs of one feed, newest first. Made for each request: it belongs to its feed."""

    # The index of runs by source is by time.
    page_keys = ("-started_at", "-no")
    empty = "This feed has not run yet."
    list_display = ("run", "state", "trigger_words", "started", "took", "rows", "products", "prices", "missing")
    list_filter = (StatusPill, OutcomePill, TriggerPill)
    change_list_template = "portal/feeds/runs.html"

    def __init__(self, feed: Feed, site: AdminSite) -> None:
        super().__init__(Run, site)
        self.feed = feed

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return super().get_queryset(request).filter(source_id=self.feed.source_id, kind=RunKind.AFFILIATE_FEED)


def show(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponseBase:
    feed = page.find(feed_id)
    extra: dict[str, Any] = page.shell(site, request, feed)
    return FeedRuns(feed, site).changelist_view(request, extra)
