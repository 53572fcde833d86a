"""Whether a feed runs: the arrows of `FeedStatus` that people take."""

from uuid import UUID

from django.db import transaction

from harvester.feeds.alerts import feed_runs_again
from harvester.feeds.models import Feed
from harvester.feeds.readiness import missing_for_a_run
from harvester.feeds.settings import InvalidSettings
from harvester.feeds.states import FeedStatus
from harvester.feeds.verbs.locked_feed import locked, next_run, save, tell
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput

#: What leads out of each state, for people who tried something else.
_WAYS_OUT = {
    FeedStatus.DRAFT: "Enable it.",
    FeedStatus.ENABLED: "Pause it first if it should not run.",
    FeedStatus.PAUSED: "Resume it.",
    FeedStatus.DISABLED: "Look at why its runs failed, then re-enable it.",
}


class WrongStatus(Conflict):
    """The feed is in a state that forbids this."""

    code = "FEED_WRONG_STATUS"


@transaction.atomic
def enable(actor: Actor, feed_id: UUID) -> Feed:
    """Let a draft run, by its schedule and when asked, once it has everything that a run needs."""
    return _switch(actor, feed_id, FeedStatus.DRAFT, FeedStatus.ENABLED, "enabled")


@transaction.atomic
def pause(actor: Actor, feed_id: UUID) -> Feed:
    """Stop a feed until somebody resumes it; a run at work goes on to its end, a requested one does not begin."""
    return _switch(actor, feed_id, FeedStatus.ENABLED, FeedStatus.PAUSED, "paused")


@transaction.atomic
def resume(actor: Actor, feed_id: UUID) -> Feed:
    """Let a paused feed run again."""
    return _switch(actor, feed_id, FeedStatus.PAUSED, FeedStatus.ENABLED, "resumed")


@transaction.atomic
def re_enable(actor: Actor, feed_id: UUID, *, acknowledged: bool) -> Feed:
    """Let a feed run again that three failures stopped. Somebody has to say that they looked at the cause."""
    if acknowledged is not True:
        raise InvalidInput(
            "acknowledged is missing; it must be true (on the command line --acknowledge): the feed was stopped by "
            "repeated failures, and it will be again unless their cause was looked at."
        )
    return _switch(actor, feed_id, FeedStatus.DISABLED, FeedStatus.ENABLED, "re-enabled")


def require_status(feed: Feed, wanted: FeedStatus, done: str) -> None:
    """Refuse what is possible in another state only."""
    if feed.status != wanted:
        way_out = _WAYS_OUT[FeedStatus(feed.status)]
        raise WrongStatus(f"The feed {feed} is {feed.status}; only {wanted} feeds can be {done}. {way_out}")


def _switch(actor: Actor, feed_id: UUID, before: FeedStatus, after: FeedStatus, done: str) -> Feed:
    feed = locked(feed_id)
    if feed.status == after:
        raise WrongStatus(f"The feed {feed} is {feed.status} already. Nothing was changed.")
    require_status(feed, before, done)
    if after is FeedStatus.ENABLED and (problems := missing_for_a_run(feed)):
        raise InvalidSettings(problems)
    feed.status = after
    feed.next_run_at = next_run(feed) if after is FeedStatus.ENABLED else None
    if after is not FeedStatus.ENABLED:
        # Its job will not run it, and nobody should wait for a run that would come after a later resume.
        feed.manual_run_requested_at, feed.takes_file_as_is = None, False
    changed = ["status"]
    if before is FeedStatus.DISABLED:
        feed.consecutive_failures = 0  # mutant: enable-clears-count
        changed.append("consecutive_failures")
        feed_runs_again(feed)
    save(feed, "next_run_at", "manual_run_requested_at", "takes_file_as_is", *changed)
    tell(actor, feed, "FEED_STATUS_CHANGED", changed=changed, old_status=before, new_status=after, reason=done)
    return feed
