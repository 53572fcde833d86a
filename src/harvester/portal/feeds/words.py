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
#: The code of an error -> what helps. Others say it themselves.
HELP: Final = {
    "HOST_KEY_CHANGED": "The page of the feed shows both keys. Approve the new one only if the partner confirms it.",
    "AUTH_FAILED": "Check the user name and enter the password or the private key again.",
    "EGRESS_REFUSED": "Check the host. A private network has to be allowed first, with HARVESTER_EGRESS_ALLOW.",
    "REMOTE_FILE_NOT_FOUND": "Check the path: it is the whole path of one file, and upper and lower case differ.",
    "NOT_A_FILE": "Check the path: it has to name one file, not a directory.",
    "PERMISSION_DENIED": "Ask the partner to let this account read the file.",
    "NO_VALID_PRODUCTS": "Look at the rejected rows below; another network or a default currency may help.",
}


def network(name: str) -> str:
    """As people know it; the bare name of one that this version does not have any more."""
    known = networks().get(name)
    return known.label if known else name


def schedule(feed: Feed) -> str:
    return f"Every {feed.schedule_hours} h" if feed.schedule_hours else "When asked"


def about(feed: Feed) -> str:
    """What the status of a feed means, in a sentence; of one that runs, when it does."""
    if feed.status != FeedStatus.ENABLED:
        return STATUS[FeedStatus(feed.status)]
    return f"Runs every {feed.schedule_hours} h." if feed.schedule_hours else "Runs when somebody asks for it."


def outcome(run: Run) -> str:
    """The word that says most about a run."""
    return "IGNORED" if run.ignored_at else run.outcome or run.status
