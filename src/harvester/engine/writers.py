"""End sessions of frozen processes, which cannot end them themselves."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import psycopg
import structlog

from harvester.engine import sql
from harvester.engine.connections import Connection

log = structlog.get_logger(__name__)


def end_writers(connection: Connection, job_id: int, lease: UUID) -> None:
    """End the sessions that write for an attempt, if there are any; may be part of a transaction."""
    _as_login(connection, sql.END_WRITERS, {"id": job_id, "lease": lease, "name": sql.WRITER_NAME.format(lease=lease)})


def is_locked_by_its_writers(connection: Connection, lease: UUID, xmax: str) -> bool:
    """Whether a job's row is locked by a session that writes for this attempt, which has ended the job in it."""
    name = sql.WRITER_NAME.format(lease=lease)
    own = {row[0] for row in _as_login(connection, sql.TRANSACTIONS_OF_WRITERS, {"name": name})}
    if xmax in own or not own:
        return bool(own)
    try:
        with connection.transaction():
            return any(row[0] in own for row in connection.execute(sql.SHARERS, {"xmax": xmax}).fetchall())
    except psycopg.errors.InternalError_:
        return False


def end_frozen_dispatch(connection: Connection, stuck_seconds: float) -> None:
    """End the sessions of workers that froze while they claimed."""
    for row in _as_login(connection, sql.END_FROZEN_DISPATCH, {"stuck": stuck_seconds}):
        log.warning("FROZEN_DISPATCH_ENDED", backend=row[0])


def _as_login(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[Any]:
    """Run a statement with the rights of the login role.

    With a single database URL, sessions log in as the owner and drop its rights with SET ROLE. The application's role
    may not see or end such sessions, so this statement runs with the login's rights. The rollback drops them again,
    also inside a transaction of the caller; ended sessions stay ended.
    """
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL ROLE NONE")
            return connection.execute(statement, values).fetchall()
    except psycopg.errors.InsufficientPrivilege as problem:
        # The session's locks remain until the server ends it; other jobs must not wait for that.
        log.error("SESSION_NOT_ENDED", error=str(problem).strip())
        return []
