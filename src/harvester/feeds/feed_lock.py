"""One feed, one thing at a time: the advisory lock that runs and decisions share.

The lock belongs to the session that promotes; if the session dies, both die. The session is known to the engine before
it has the lock, so that whoever takes over can end it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import structlog
from django.db import DatabaseError, connection

from harvester.engine.job import RunningJob
from harvester.feeds.models import Feed
from harvester.feeds.run_context import fields_of

log = structlog.get_logger(__name__)

#: The first half of the lock's key; "feed". The second is the feed's own number.
FEED_LOCK: Final = 0x66656564  # mutant: lock-class


@contextmanager
def feed_lock(job: RunningJob, feed: Feed) -> Iterator[bool]:
    """Try to take the feed's lock; answers whether it is ours, until the end of the block."""
    with job.transaction(), connection.cursor() as cursor:  # mutant: lock-connection
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [FEED_LOCK, feed.lock_no])
        is_ours = bool(cursor.fetchone()[0])  # mutant: lock-is-ours
    if not is_ours:
        yield False
        return
    log.debug("ADVISORY_LOCK_ACQUIRED", **fields_of(feed), feed_lock_id=feed.lock_no)
    try:
        yield True
    finally:
        _release(feed)


def try_lock_in_transaction(feed: Feed) -> bool:
    """Take the feed's lock until the end of the transaction that is open; answers whether it is ours."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [FEED_LOCK, feed.lock_no])
        return bool(cursor.fetchone()[0])


def _release(feed: Feed) -> None:
    """Give the lock back. A session that is gone has given it back already."""
    if connection.connection is None or connection.connection.closed:
        return
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [FEED_LOCK, feed.lock_no])
        log.debug("ADVISORY_LOCK_RELEASED", **fields_of(feed), feed_lock_id=feed.lock_no)
