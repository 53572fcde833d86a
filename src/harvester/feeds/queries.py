"""Feeds and their runs as others get to see them: paged by key, in a few statements whatever the number."""

from uuid import UUID

from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.states import FeedStatus
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.runs import queries
from harvester.runs.errors import RunNotFound

LARGEST_PAGE = 100


def feed(feed_id: UUID) -> Feed:
    found = Feed.objects.select_related("source").filter(pk=feed_id).first()
    if found is None:
        raise NotFound(f"There is no feed {feed_id}; it may have been deleted.")
    return found


def feeds(*, status: FeedStatus | None = None, after: str = "", most: int = 20) -> list[Feed]:
    """Feeds that are not retired, in the order of their names; the page begins behind the name `after`."""
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"allowed is 1 to {LARGEST_PAGE}.", field="most")
    found = Feed.objects.filter(retired_at=None).select_related("source").order_by("source__name")
    if status:
        found = found.filter(status=status)
    if after:
        found = found.filter(source__name__gt=after)
    return list(found[:most])


def feed_run(run_id: UUID) -> FeedRun:
    """A run of a feed, with its feed and its figures."""
    found = FeedRun.objects.select_related("run", "feed__source").filter(pk=run_id).first()
    if found is None:
        raise RunNotFound(f"Run {queries.run(run_id).no} is not of a feed, so this is not possible.")
    return found
