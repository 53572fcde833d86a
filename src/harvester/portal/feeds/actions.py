"""The buttons of a feed: who may press them, in which states, what they ask first, and what they do."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.requests import attempt, may, require


@dataclass(frozen=True, kw_only=True)
class Action:
    """A button.

    Attributes:
        name: the last part of its address.
        label: its text.
        role: who may press it.
        states: states of a feed in which it is shown.
        title: the question of its dialog; without one it has no dialog.
        text: what will happen.
        checkbox: label of a checkbox that is required in the dialog.
        look: primary, danger or nothing.
        is_rare: shown under "More".
    """

    name: str
    label: str
    role: Role
    states: tuple[FeedStatus, ...]
    title: str = ""
    text: str = ""
    checkbox: str = ""
    look: str = ""
    is_rare: bool = False

    @property
    def route(self) -> str:
        return f"admin:feeds_feed_{self.name}"


ACTIONS: Final = (
    Action(name="run", label="Run now", role=Role.OPERATOR, states=(FeedStatus.ENABLED,), look="primary"),
    Action(
        name="enable",
        label="Enable",
        role=Role.ADMIN,
        states=(FeedStatus.DRAFT,),
        title="Enable this feed?",
        text="It runs on its schedule and when started manually. Each run is checked before consumers see its changes.",
    ),
    Action(
        name="resume",
        label="Resume",
        role=Role.OPERATOR,
        states=(FeedStatus.PAUSED,),
        look="primary",
        title="Resume this feed?",
        text="Its next run starts after one full interval of its schedule. Use Run now to start one immediately.",
    ),
    Action(
        name="re-enable",
        label="Re-enable",
        role=Role.ADMIN,
        states=(FeedStatus.DISABLED,),
        look="primary",
        title="Re-enable this feed?",
        text="It was disabled due to repeated failures. The failure count restarts at zero; three more disable it "
        "again.",
        checkbox="I have checked why its runs failed.",
    ),
    Action(name="test", label="Test connection", role=Role.OPERATOR, states=tuple(FeedStatus)),
    Action(
        name="pause",
        label="Pause",
        role=Role.OPERATOR,
        states=(FeedStatus.ENABLED,),
        title="Pause this feed?",
        text="No new runs start until it is resumed. A run in progress continues. Offers stay visible until they "
        "expire.",
    ),
    Action(
        name="force",
        label="Run even if unchanged",
        role=Role.ADMIN,
        states=(FeedStatus.ENABLED,),
        is_rare=True,
        title="Re-import the file?",
        text="The next run re-imports the file even if unchanged.",
    ),
    Action(
        name="delete",
        label="Delete draft",
        role=Role.ADMIN,
        states=(FeedStatus.DRAFT,),
        look="danger",
        is_rare=True,
        title="Delete this draft?",
        text="Its settings and credentials are deleted. The source and the retailer are kept.",
    ),
    Action(
        name="retire",
        label="Retire feed",
        role=Role.ADMIN,
        states=(FeedStatus.PAUSED, FeedStatus.DISABLED),
        look="danger",
        is_rare=True,
        title="Retire this feed?",
        text="Its credentials are deleted, and it is removed from lists and schedules. You cannot undo this. Its runs "
        "and prices are kept, and its offers stay visible until they expire.",
    ),
)
BY_NAME: Final = {action.name: action for action in ACTIONS}


def offered(request: HttpRequest, feed: Feed) -> list[Action]:
    """Return the buttons that the user may press now."""
    if feed.retired_at is not None:
        return []
    return [action for action in allowed(request) if feed.status in action.states]


def allowed(request: HttpRequest) -> list[Action]:
    return [action for action in ACTIONS if may(request, action.role)]


def _view(
    name: str, verb: Callable[[Actor, UUID], object], message: str
) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Return the view of a button: it runs a verb and goes back to the page of the button."""

    def view(request: HttpRequest, feed_id: UUID) -> HttpResponse:
        actor = require(request, BY_NAME[name].role)
        attempt(request, lambda: message.format(verb(actor, feed_id)))
        back = request.POST.get("back", "")
        if back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None):
            return redirect(back)
        return redirect("admin:feeds_feed_change", feed_id)

    return view


run = _view("run", verbs.run_now, "Run queued.")
force = _view("force", partial(verbs.run_now, force=True), "Run queued. It re-imports the file even if unchanged.")
enable = _view("enable", verbs.enable, "{} is enabled.")
pause = _view("pause", verbs.pause, "{} is paused.")
resume = _view("resume", verbs.resume, "{} is resumed.")
retire = _view("retire", verbs.retire, "{} is retired. Its credentials were deleted; its runs and prices are kept.")


def re_enable(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor = require(request, BY_NAME["re-enable"].role)
    checked = request.POST.get("promise") == "yes"
    attempt(request, lambda: f"{verbs.re_enable(actor, feed_id, acknowledged=checked)} is enabled again.")
    return redirect("admin:feeds_feed_change", feed_id)


def delete(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor = require(request, BY_NAME["delete"].role)

    def verb() -> str:
        verbs.delete_draft(actor, feed_id)
        return "The draft was deleted. Its source is kept."

    if attempt(request, verb):
        return redirect("admin:feeds_feed_changelist")
    return redirect("admin:feeds_feed_change", feed_id)


def test(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    return _start_test(request, require(request, BY_NAME["test"].role), feed_id)


def approve_host_key(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Approve the key of the server, and test the connection if requested."""
    actor = require(request, Role.ADMIN)
    key, keep = request.POST.get("key", ""), request.POST.get("keep") == "yes"

    def verb() -> str:
        verbs.approve_host_key(actor, feed_id, key, keep_others=keep)
        return "The host key is approved."

    if attempt(request, verb) and request.POST.get("then") == "test":
        return _start_test(request, actor, feed_id)
    return redirect("admin:feeds_feed_change", feed_id)


def _start_test(request: HttpRequest, actor: Actor, feed_id: UUID) -> HttpResponse:
    """Queue a test and go to the page of its result, or show why it was refused."""
    try:
        job_id = verbs.test_run(actor, feed_id).job_id
    except NotFound as problem:
        raise Http404 from problem
    except (InvalidInput, Conflict) as problem:
        messages.error(request, str(problem))
        return redirect("admin:feeds_feed_change", feed_id)
    return redirect("admin:feeds_feed_test_result", feed_id, job_id)
