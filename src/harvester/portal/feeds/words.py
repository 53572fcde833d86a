"""What the pages of feeds say."""

from typing import Final

from harvester.catalog.models import Run
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.states import FeedStatus

STATUS: Final = {
    FeedStatus.DRAFT: "It is being set up and does not run yet.",
    FeedStatus.PAUSED: "Paused by admin. It runs again once somebody resumes it.",
    FeedStatus.DISABLED: "Disabled due to repeated failures. Mend the cause; an admin re-enables it.",
}


def network(name: str) -> str:
    """As people know it; the bare name of one that this version does not have any more."""
    known = networks().get(name)
    return known.label if known else name


def schedule(feed: Feed) -> str:
    return f"Every {feed.schedule_hours} h" if feed.schedule_hours else "When asked"


def about(feed: Feed) -> str:
    """What the status of a feed means, in a sentence; of one that runs, when it does."""
    if feed.retired_at is not None:
        return f"Retired on {feed.retired_at:%Y-%m-%d}. It cannot be used again; its runs and prices are kept."
    if feed.status != FeedStatus.ENABLED:
        return STATUS[FeedStatus(feed.status)]
    return f"Runs every {feed.schedule_hours} h." if feed.schedule_hours else "Runs when somebody asks for it."


def outcome(run: Run) -> str:
    """The word that says most about a run."""
    return "IGNORED" if run.ignored_at else run.outcome or run.status
