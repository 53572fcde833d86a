"""What the buttons of a feed do: one verb each."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from harvester.feeds import verbs
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.feeds.buttons import NAMED
from harvester.portal.requests import attempt, require


def _act(name: str, verb: Callable[[Actor, UUID], str]) -> Callable[[HttpRequest, UUID], HttpResponse]:
    def view(request: HttpRequest, feed_id: UUID) -> HttpResponse:
        actor = require(request, NAMED[name].role)
        attempt(request, lambda: verb(actor, feed_id))
        return redirect(_back(request, feed_id))

    return view


def _back(request: HttpRequest, feed_id: UUID) -> str:
    """Where the button was: a page of the portal, or the page of the feed."""
    where = request.POST.get("back", "")
    if where.startswith("/") and url_has_allowed_host_and_scheme(where, allowed_hosts=None):
        return where
    return reverse("admin:feeds_feed_change", args=[feed_id])


def _run(actor: Actor, feed_id: UUID) -> str:
    verbs.run_now(actor, feed_id)
    return "Run queued. It begins at once, or right after the run that is at work."


def _force(actor: Actor, feed_id: UUID) -> str:
    verbs.run_now(actor, feed_id, force=True)
    return "Run queued. It reads the file even if it is unchanged."


def _enable(actor: Actor, feed_id: UUID) -> str:
    return f"{verbs.enable(actor, feed_id)} is enabled."


def _pause(actor: Actor, feed_id: UUID) -> str:
    return f"{verbs.pause(actor, feed_id)} is paused."


def _resume(actor: Actor, feed_id: UUID) -> str:
    return f"{verbs.resume(actor, feed_id)} is enabled again."


run, force = _act("run", _run), _act("force", _force)
enable, pause, resume = _act("enable", _enable), _act("pause", _pause), _act("resume", _resume)


def re_enable(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor = require(request, NAMED["re-enable"].role)
    promised = request.POST.get("promise") == "yes"
    attempt(request, lambda: f"{verbs.re_enable(actor, feed_id, acknowledged=promised)} is enabled again.")
    return redirect("admin:feeds_feed_change", feed_id)


def delete(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor = require(request, NAMED["delete"].role)

    def verb() -> str:
        verbs.delete_draft(actor, feed_id)
        return "The draft is deleted; its source stays."

    if attempt(request, verb):
        return redirect("admin:feeds_feed_changelist")
    return redirect("admin:feeds_feed_change", feed_id)


def retire(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor = require(request, NAMED["retire"].role)

    def verb() -> str:
        return f"{verbs.retire(actor, feed_id)} is retired. Its credentials are deleted; its runs and prices stay."

    attempt(request, verb)
    return redirect("admin:feeds_feed_change", feed_id)


def test(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Have the feed tried, and go where the result will be."""
    actor = require(request, NAMED["test"].role)
    return _test(request, actor, feed_id)


def approve_host_key(request: HttpRequest, feed_id: UUID) -> HttpResponse:
    """Trust the key that the server showed, and if wanted try the feed with it at once."""
    actor = require(request, Role.ADMIN)
    key, keep = request.POST.get("key", ""), request.POST.get("keep") == "yes"

    def verb() -> str:
        verbs.approve_host_key(actor, feed_id, key, keep_others=keep)
        return "The host key is approved."

    if attempt(request, verb) and request.POST.get("then") == "test":
        return _test(request, actor, feed_id)
    return redirect("admin:feeds_feed_change", feed_id)


def _test(request: HttpRequest, actor: Actor, feed_id: UUID) -> HttpResponse:
    """The page of the result says how it goes; only a refusal is told by a message."""
    try:
        job_id = verbs.test_run(actor, feed_id).job_id
    except NotFound as problem:
        raise Http404 from problem
    except (InvalidInput, Conflict) as problem:
        messages.error(request, str(problem))
        return redirect("admin:feeds_feed_change", feed_id)
    return redirect("admin:feeds_feed_test_result", feed_id, job_id)
