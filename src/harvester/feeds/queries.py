"""Feeds and their runs as others get to see them: paged by key, in a few statements whatever the number."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.states import FeedStatus
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.runs.errors import RunNotFound
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

LARGEST_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """Which runs.

    Attributes:
        feed_id: only of this feed.
        status: only in this state.
        outcome: only those of which this became.
        trigger: only those that began for this reason.
        before: only runs with a smaller number.
        most: at most this many, the newest.
    """

    feed_id: UUID | None = None
    status: RunStatus | None = None
    outcome: RunOutcome | None = None
    trigger: RunTrigger | None = None
    before: int | None = None
    most: int = 20

    def __post_init__(self) -> None:
        _check_most(self.most)


def feed(feed_id: UUID) -> Feed:
    found = Feed.objects.select_related("source").filter(pk=feed_id).first()
    if found is None:
        raise NotFound(f"There is no feed {feed_id}; it may have been deleted.")
    return found


def feeds(*, status: FeedStatus | None = None, after: str = "", most: int = 20) -> list[Feed]:
    """Feeds that are not retired, in the order of their names; the page begins behind the name `after`."""
    _check_most(most)
    found = Feed.objects.filter(retired_at=None).select_related("source").order_by("source__name")
    if status:
        found = found.filter(status=status)
    if after:
        found = found.filter(source__name__gt=after)
    return list(found[:most])


def run(run: UUID | int) -> FeedRun:
    """A run with its figures and its feed, by its id or its number."""
    wanted = {"run__no": run} if isinstance(run, int) else {"pk": run}
    found = FeedRun.objects.select_related("run", "feed__source").filter(**wanted).first()
    if found is None:
        raise RunNotFound(f"There is no run {run} of a feed; it may have been deleted after the retention period.")
    return found


def run_id(run: UUID | int) -> UUID:
    """The id of a run that may be named by its number."""
    if isinstance(run, UUID):
        return run
    found = FeedRun.objects.filter(run__no=run).values_list("pk", flat=True).first()
    if found is None:
        raise RunNotFound(f"There is no run {run} of a feed; it may have been deleted after the retention period.")
    return found


def runs(query: RunQuery) -> Sequence[FeedRun]:
    """Runs with their figures, newest first."""
    found = FeedRun.objects.select_related("run", "feed__source").order_by("-run__no")
    wanted = {
        "feed_id": query.feed_id,
        "run__status": query.status,
        "run__outcome": query.outcome,
        "run__trigger": query.trigger,
        "run__no__lt": query.before,
    }
    return list(found.filter(**{name: value for name, value in wanted.items() if value is not None})[: query.most])


def _check_most(most: int) -> None:
    if not 1 <= most <= LARGEST_PAGE + 1:
        raise InvalidInput(f"most: allowed is 1 to {LARGEST_PAGE}.")
