"""Ending the session in which a job writes, when the job's process cannot be trusted to do it."""

from datetime import datetime
from uuid import UUID

import psycopg
import structlog

from harvester.engine import sql
from harvester.engine.connect import Connection

log = structlog.get_logger(__name__)


def end_writer(connection: Connection, job_id: int, lease: UUID, heartbeat_at: datetime | None = None) -> None:
    """End the session that writes for an attempt, if there is one.

    With one URL for everything, sessions log in as the owner and give up its rights by SET ROLE. The application's
    role alone may not end them: for this one statement, the rights of the login are taken back.
    """
    values = {"id": job_id, "lease": lease, "heartbeat_at": heartbeat_at}
    try:
        with connection.transaction():
            connection.execute("SET LOCAL ROLE NONE")
            connection.execute(sql.END_WRITER, values)
    except psycopg.errors.InsufficientPrivilege as problem:
        # The job's row stays locked until the server ends that session; other jobs must not wait for it.
        log.error("WRITER_NOT_ENDED", job_id=job_id, error=str(problem).strip())
