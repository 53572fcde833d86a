"""Feeds as others get to see them: paged by key, in a few statements whatever the number."""

from uuid import UUID

from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus
from harvester.kernel.errors import InvalidInput, NotFound

LARGEST_PAGE = 100


def feed(feed_id: UUID) -> Feed:
    found = Feed.objects.select_related("source").filter(pk=feed_id).first()
    if found is None:
        raise NotFound(f"There is no feed {feed_id}; it may have been deleted.")
    return found


def feeds(*, status: FeedStatus | None = None, after: str = "", most: int = 20) -> list[Feed]:
    """Feeds that are not retired, in the order of their names; the page begins behind the name `after`."""
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"most: allowed is 1 to {LARGEST_PAGE}.")
    found = Feed.objects.filter(retired_at=None).select_related("source").order_by("source__name")
    if status:
        found = found.filter(status=status)
    if after:
        found = found.filter(source__name__gt=after)
    return list(found[:most])
