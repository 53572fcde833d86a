"""The lock of a subject: an advisory lock that allows one run or decision at a time.

The lock belongs to the session that promotes; if the session dies, both die. The engine knows the session before it has
the lock, so that a rescuer can end it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog
from django.db import DatabaseError, connection

from harvester.engine.job import RunningJob
from harvester.runs.kinds import RunKind

log = structlog.get_logger(__name__)


@contextmanager
def subject_lock(kind: RunKind, job: RunningJob, subject: Any) -> Iterator[bool]:
    """Try to take the lock until the end of the block; yield whether it is ours."""
    key = kind.lock_key(subject)
    fields = {**kind.log_fields(subject), f"{kind.subject}_lock_id": key[1]}
    with job.transaction(), connection.cursor() as cursor:  # mutant: lock-connection
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        is_ours = bool(cursor.fetchone()[0])  # mutant: lock-is-ours
    if not is_ours:
        yield False
        return
    log.debug("ADVISORY_LOCK_ACQUIRED", **fields)
    try:
        yield True
    finally:
        # A session that is gone has no lock any more.
        if connection.connection is not None and not connection.connection.closed:
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)
                log.debug("ADVISORY_LOCK_RELEASED", **fields)


def try_lock_in_transaction(kind: RunKind, subject: Any) -> bool:
    """Take the lock until the open transaction ends; return whether it is ours."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", kind.lock_key(subject))
        return bool(cursor.fetchone()[0])
