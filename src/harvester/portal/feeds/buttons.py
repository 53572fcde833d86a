"""The buttons of a feed: who may press them, in which of its states, and what they ask first."""

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest

from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus
from harvester.ops.models import Role
from harvester.portal.requests import may

EVERY: Final = tuple(FeedStatus)


@dataclass(frozen=True, kw_only=True)
class Action:
    """A button.

    Attributes:
        name: the last part of its address.
        words: on it.
        role: who may press it.
        states: of a feed that has it.
        title: what its confirmation asks; none is asked without one.
        text: what will happen.
        promise: what has to be ticked first.
        look: primary, danger or nothing.
        is_rare: kept under "More".
    """

    name: str
    words: str
    role: Role
    states: tuple[FeedStatus, ...]
    title: str = ""
    text: str = ""
    promise: str = ""
    look: str = ""
    is_rare: bool = False

    @property
    def route(self) -> str:
        return f"admin:feeds_feed_{self.name}"


ACTIONS: Final = (
    Action(name="run", words="Run now", role=Role.OPERATOR, states=(FeedStatus.ENABLED,), look="primary"),
    Action(
        name="enable",
        words="Enable",
        role=Role.ADMIN,
        states=(FeedStatus.DRAFT,),
        title="Let this feed run?",
        text="From now on it runs by its schedule and when somebody asks. What its runs find is checked before anybody "
        "sees it.",
    ),
    Action(
        name="resume",
        words="Resume",
        role=Role.OPERATOR,
        states=(FeedStatus.PAUSED,),
        look="primary",
        title="Let this feed run again?",
        text="It was paused by a person. Its next run is one whole interval of its schedule away; Run now starts one "
        "at once.",
    ),
    Action(
        name="re-enable",
        words="Re-enable",
        role=Role.ADMIN,
        states=(FeedStatus.DISABLED,),
        look="primary",
        title="Enable this feed again?",
        text="It was disabled because its runs failed again and again. The count of failures begins anew; three more "
        "disable it again.",
        promise="I have looked at why its runs failed.",
    ),
    Action(name="test", words="Test connection", role=Role.OPERATOR, states=EVERY),
    Action(
        name="pause",
        words="Pause",
        role=Role.OPERATOR,
        states=(FeedStatus.ENABLED,),
        title="Pause this feed?",
        text="No further run begins until somebody resumes it; a run at work goes on to its end. Its offers are shown "
        "as long as their expiry allows, and no longer.",
    ),
    Action(
        name="force",
        words="Run even if unchanged",
        role=Role.ADMIN,
        states=(FeedStatus.ENABLED,),
        is_rare=True,
        title="Read the file again?",
        text="The next run reads the file even if it is the one that was read last.",
    ),
    Action(
        name="delete",
        words="Delete draft",
        role=Role.ADMIN,
        states=(FeedStatus.DRAFT,),
        look="danger",
        is_rare=True,
        title="Delete this draft?",
        text="Its settings and its credentials go. The source and the retailer stay.",
    ),
    Action(
        name="retire",
        words="Retire feed",
        role=Role.ADMIN,
        states=(FeedStatus.PAUSED, FeedStatus.DISABLED),
        look="danger",
        is_rare=True,
        title="Retire this feed for good?",
        text="Its credentials are deleted, and it leaves the lists and schedules. This cannot be undone. Its runs and "
        "prices are kept; its offers are shown until they expire.",
    ),
)
NAMED: Final = {action.name: action for action in ACTIONS}


def offered(request: HttpRequest, feed: Feed) -> list[Action]:
    """The buttons that whoever asks may press now."""
    if feed.retired_at is not None:
        return []
    return [action for action in allowed(request) if feed.status in action.states]


def allowed(request: HttpRequest) -> list[Action]:
    return [action for action in ACTIONS if may(request, action.role)]
