"""Ending sessions of processes that cannot be trusted to do it themselves."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import structlog

from harvester.engine import sql
from harvester.engine.connect import Connection

log = structlog.get_logger(__name__)


def end_writers(connection: Connection, job_id: int, lease: UUID, heartbeat_at: datetime | None = None) -> None:
    """End the sessions that write for an attempt, if there are any."""
    name = sql.WRITER_NAME.format(lease=lease)
    _end(connection, sql.END_WRITERS, {"id": job_id, "lease": lease, "heartbeat_at": heartbeat_at, "name": name})


def end_frozen_dispatch(connection: Connection, stuck_seconds: float) -> None:
    """End the sessions of workers that froze while they claimed."""
    for pid in _end(connection, sql.END_FROZEN_DISPATCH, {"stuck": stuck_seconds}):
        log.warning("FROZEN_DISPATCH_ENDED", backend=pid)


def _end(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[Any]:
    """With one URL for everything, sessions log in as the owner and give up its rights by SET ROLE.

    The application's role alone may not end them: for this one statement, the rights of the login are taken back.
    """
    try:
        with connection.transaction():
            connection.execute("SET LOCAL ROLE NONE")
            return [row[0] for row in connection.execute(statement, values).fetchall()]
    except psycopg.errors.InsufficientPrivilege as problem:
        # What the session has locked stays locked until the server ends it; other jobs must not wait for that.
        log.error("SESSION_NOT_ENDED", error=str(problem).strip())
        return []
