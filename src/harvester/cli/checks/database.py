"""Checks of the database. Needs Django."""

import time
from collections.abc import Callable
from typing import Any

from django.db import connection

from harvester.cli.checks.machine import Finding, fail, fine, skip, warn
from harvester.cli.output import span
from harvester.engine.connections import connect
from harvester.guards.redaction import redact_text
from harvester.kernel.config import Config
from harvester.ops import job_figures
from harvester.ops.database import check_server, pending_migrations

#: Seconds. Jobs use the database's clock, and people compare the logs of several machines.
CLOCKS_DIFFER = 5.0
#: Transactions on each of two connections, to detect a pooling proxy.
TURNS = 4


def server(config: Config) -> Finding:
    version = check_server(connection)
    if not config.embedded:
        return fine("database", f"PostgreSQL {version} at {redact_text(config.database_url)}")
    host, name = connection.settings_dict["HOST"], connection.settings_dict["NAME"]
    return fine("database", f"PostgreSQL {version}, embedded: psql -h {host} -U harvester_owner {name}")


def migrations(config: Config) -> Finding:
    pending = pending_migrations()
    if not pending:
        return fine("migrations", "all applied")
    missing = f"{len(pending)} are missing, {pending[0]} first"
    if config.embedded:
        return warn("migrations", missing, "`harvester up` and `harvester demo` apply them; or run: harvester migrate")
    return fail("migrations", missing, "Run: harvester migrate")


_AUDIT_RIGHTS = """
SELECT coalesce(bool_or(has_table_privilege(current_user, c.oid, right_name)), false),
       coalesce(bool_or(pg_has_role(session_user, c.relowner, 'MEMBER')), false), count(*)
FROM pg_class c CROSS JOIN unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS right_name
WHERE c.oid = to_regclass('audit_events')
"""


def role(_config: Config) -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(_AUDIT_RIGHTS)
        may_change, owns, found = cursor.fetchone()
    if not found:
        return skip("role", "there is no audit log before the first migration")
    if may_change:
        advice = "Run `harvester migrate` as the owner, and let the application log in as a member of harvester_app."
        return fail("role", "the application may change the audit log", advice)
    if owns:
        advice = "Two logins are safer: see HARVESTER_OWNER_DATABASE_URL in docs/operations.md."
        return warn("role", "cannot change the audit log, but its login owns the tables", advice)
    return fine("role", "cannot change the audit log")


def sessions(_config: Config) -> Finding:
    advice = "Connect to PostgreSQL directly, or set the proxy to session pooling."
    first, second = connect("doctor"), connect("doctor")
    try:
        lost = sessions_lost(first, second)
    finally:
        first.close()
        second.close()
    if lost:
        return fail("proxy", "a transaction-pooling proxy: sessions lose their state between transactions", advice)
    return fine("proxy", "sessions keep their state between transactions")


def sessions_lost(first: Any, second: Any) -> bool:
    """Return whether the server sessions of two connections change between transactions.

    A pooling proxy gives a connection any free session at each transaction. While the second connection is inside a
    transaction, the session of the first is busy if the proxy gave it away.
    """
    pids = []
    for _ in range(TURNS):
        pids.append(_backend_pid(first))
        with second.transaction():
            second.execute("SELECT 1")
            pids.append(_backend_pid(first))
    first.execute("SELECT set_config('harvester.doctor', 'first', false)")
    second.execute("SELECT set_config('harvester.doctor', 'second', false)")
    values = [
        session.execute("SELECT current_setting('harvester.doctor', true)").fetchone()[0] for session in (first, second)
    ]
    return len(set(pids)) > 1 or values != ["first", "second"]


def _backend_pid(session: Any) -> int:
    return int(session.execute("SELECT pg_backend_pid()").fetchone()[0])


def clock(_config: Config) -> Finding:
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        database_time = cursor.fetchone()[0]
    difference = abs(database_time - (before + time.time()) / 2)
    text = f"the clocks of the database and this machine differ by {difference:.1f} s"
    if difference > CLOCKS_DIFFER:
        return warn("clock", text, "Synchronize both with a time server (NTP).")
    return fine("clock", text)


def snapshots(_config: Config) -> Finding:
    seconds = job_figures.oldest_snapshot_seconds()
    age = f"the oldest open transaction is {span(seconds)} old" if seconds else "no open transactions"
    if seconds > job_figures.OLD_SNAPSHOT_SECONDS:
        query = "SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start"
        return warn("old snapshots", age, f"It slows down every claim of a job. Find it: {query}")
    return fine("old snapshots", age)


# A worker's dispatch session is open as long as it runs.
_WORKERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'harvester dispatch'
"""

_LAST_END = """
SELECT extract(epoch FROM clock_timestamp() - max(finished_at))::float8 FROM jobs WHERE finished_at IS NOT NULL
"""


def workers(_config: Config) -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('jobs') IS NULL")
        if cursor.fetchone()[0]:
            return skip("workers", "there are no jobs before the first migration")
        cursor.execute(_WORKERS)
        connected = cursor.fetchone()[0]
        cursor.execute(_LAST_END)
        ago = cursor.fetchone()[0]
    last = f"the last job ended {span(ago)} ago" if ago is not None else "no job has ended yet"
    text = f"{connected} connected; {last}"
    if not connected:
        return warn("workers", text, "Start a worker: harvester worker; or all processes: harvester up")
    return fine("workers", text)


CHECKS: dict[str, Callable[[Config], Finding]] = {
    "migrations": migrations,
    "role": role,
    "proxy": sessions,
    "clock": clock,
    "old snapshots": snapshots,
    "workers": workers,
}
