"""The end of a feed whose partner is gone: what it brought stays, what could reach the partner goes."""

from uuid import UUID

from django.db import connection, transaction

from harvester.feeds.change_detection import forget_ingested
from harvester.feeds.decision_jobs import refuse_while_running
from harvester.feeds.errors import FeedBusy
from harvester.feeds.feed_lock import try_lock_in_transaction
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import OWNER_KIND
from harvester.feeds.run_endings import lock_feed_and_source
from harvester.feeds.states import FeedStatus
from harvester.feeds.verbs.activation import WrongStatus
from harvester.feeds.verbs.configuration import RunHeld
from harvester.feeds.verbs.locked_feed import database_now, locked, save, tell
from harvester.guards import secrets
from harvester.kernel.actor import Actor
from harvester.ops.alerts import resolve_alert
from harvester.ops.models import Alert

RETIRABLE = (FeedStatus.PAUSED, FeedStatus.DISABLED)


@transaction.atomic
def retire(actor: Actor, feed_id: UUID) -> Feed:
    """Retire a paused or disabled feed for good.

    It leaves lists and schedules and loses its credentials. Its runs and prices stay, and its offers expire as usual.
    The feed's lock and the locks of both rows keep out a run that is just being held.
    """
    feed = locked(feed_id)
    if feed.status not in RETIRABLE:
        raise WrongStatus(
            f"The feed {feed} is {feed.status}; only PAUSED or DISABLED feeds can be retired. Nothing was changed. "
            + ("Delete the draft instead." if feed.status == FeedStatus.DRAFT else "Pause it first.")
        )
    if not try_lock_in_transaction(feed):
        raise FeedBusy("A run or a decision is at work on this feed. Nothing was changed; try again when it has ended.")
    refuse_while_running(feed)
    with connection.cursor() as cursor:
        feed, baseline = lock_feed_and_source(cursor, feed)
    if baseline.held_run_no is not None:
        raise RunHeld(
            f"Run {baseline.held_run_no} of the feed {feed} waits for a decision. Nothing was changed; approve or "
            "reject it first."
        )
    had = [*feed.secret_fields, *(["username"] if feed.username else [])]
    secrets.forget(OWNER_KIND, feed.id)
    feed.secret_fields, feed.username = [], ""
    feed.retired_at, feed.manual_run_requested_at = database_now(), None
    columns = ("secret_fields", "username", "retired_at", "manual_run_requested_at", *forget_ingested(feed))
    save(feed, *columns)
    for key in Alert.objects.filter(resolved_at=None, detail__feed_id=str(feed.id)).values_list("key", flat=True):
        resolve_alert(key, "The feed was retired.")
    tell(actor, feed, "FEED_RETIRED", changed=["retired_at", *had])
    return feed
