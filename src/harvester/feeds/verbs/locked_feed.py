"""Shared by all verbs: the locked feed, the database's clock, and the audit event."""

import difflib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.feeds.errors import FeedRetired
from harvester.feeds.models import Feed
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, NotFound
from harvester.ops import audit

log = structlog.get_logger(__name__)


class RunHeld(Conflict):
    """A held run has to be decided first."""

    code = "RUN_HELD"


def feed_named(name: str) -> Feed:
    """Return the feed of the source of that name."""
    feed = Feed.objects.select_related("source").filter(source__name=name).first()
    if feed is None:
        names = list(Feed.objects.values_list("source__name", flat=True)[:1000])
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`harvester feed list` shows them all."
        raise NotFound(f"There is no feed {name!r}; {hint}")
    return feed


def name_of(feed_id: Any) -> str:
    """Return the name of a feed, or its id if it was deleted."""
    feed = Feed.objects.filter(pk=feed_id).select_related("source").first()
    return str(feed) if feed else f"{feed_id} (deleted)"


def locked(feed_id: UUID) -> Feed:
    """Return the feed, locked against other changes until the transaction ends. New runs can still refer to it.

    Raises:
        NotFound: there is none.
        FeedRetired: the feed cannot be used any more.
    """
    found = Feed.objects.select_for_update(of=("self",), no_key=True).select_related("source")
    feed = found.filter(pk=feed_id).first()
    if feed is None:
        raise NotFound(f"There is no feed {feed_id}; it may have been deleted. `harvester feed list` shows them all.")
    if feed.retired_at is not None:
        raise FeedRetired(
            f"The feed {feed} was retired on {feed.retired_at:%Y-%m-%d} and cannot be used again. Nothing was changed. "
            "Its runs and prices are kept; for the same partner, add a new source and feed."
        )
    return feed


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def next_run(feed: Feed) -> datetime | None:
    """Return when an enabled feed runs next, counted from now."""
    return database_now() + timedelta(hours=feed.schedule_hours) if feed.schedule_hours else None


def save(feed: Feed, *names: str) -> None:
    feed.updated_at = Now()
    feed.save(update_fields=[*names, "updated_at"])
    feed.refresh_from_db(fields=["updated_at"])


def record(
    actor: Actor, feed: Feed, event: str, *, changed: Iterable[str] = (), level: str = "info", **detail: Any
) -> None:
    """Record an audit event, and log it when the transaction commits."""
    names = sorted(changed)
    audit.record(actor, event, "feed", feed.id, changed=names, detail={"feed": str(feed), **detail})
    fields = {"feed_id": str(feed.id), "source_id": str(feed.source_id), "network": feed.network, "by": actor.id}
    logged = {name: value for name, value in detail.items() if name not in ("before", "after")}
    if names:
        logged["changed_fields"] = names
    transaction.on_commit(lambda: getattr(log, level)(event, **fields, **logged))
