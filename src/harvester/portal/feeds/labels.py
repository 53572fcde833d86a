"""What the pages of feeds say."""

from typing import Final

from harvester.catalog.models import Run
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.states import FeedStatus

STATUS: Final = {
    FeedStatus.DRAFT: "Not set up yet, so it does not run.",
    FeedStatus.PAUSED: "Paused by admin. It runs again when it is resumed.",
    FeedStatus.DISABLED: "Disabled due to repeated failures. Fix the problem; then an admin can re-enable it.",
}


def network(name: str) -> str:
    """As people know it; the bare name of one that this version does not have any more."""
    known = networks().get(name)
    return known.label if known else name


def schedule(feed: Feed) -> str:
    return f"Every {feed.schedule_hours} h" if feed.schedule_hours else "Manual"


def about(feed: Feed) -> str:
    """What the status of a feed means, in a sentence; of one that runs, when it does."""
    if feed.retired_at is not None:
        return f"Retired on {feed.retired_at:%Y-%m-%d}. It cannot be used again; its runs and prices are kept."
    if feed.status != FeedStatus.ENABLED:
        return STATUS[FeedStatus(feed.status)]
    return f"Runs every {feed.schedule_hours} h." if feed.schedule_hours else "Runs only when started manually."


def outcome(run: Run) -> str:
    """The word that says most about a run."""
    return "IGNORED" if run.ignored_at else run.outcome or run.status
