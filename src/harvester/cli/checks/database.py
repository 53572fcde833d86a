"""What only the database can tell. Needs Django."""

import time
from collections.abc import Callable
from typing import Any

from django.db import connection

from harvester.cli.checks.finding import Finding, fail, fine, skip, warn
from harvester.cli.output import span
from harvester.engine.connections import connect
from harvester.guards.redaction import redact_text
from harvester.kernel.config import Config
from harvester.ops import job_figures
from harvester.ops.database import check_server, pending_migrations

#: Seconds. Jobs go by the database's clock; people compare logs of several machines.
CLOCKS_DIFFER = 5.0
#: Turns that two sessions take to find out whether they keep their places.
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
        return fine("migrations", "none is missing")
    told = f"{len(pending)} are missing, {pending[0]} first"
    if config.embedded:
        return warn("migrations", told, "`harvester up` and `harvester demo` bring them in; or run: harvester migrate")
    return fail("migrations", told, "Run: harvester migrate")


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
        return skip("role", "there is no audit trail before the first migration")
    if may_change:
        advice = "Run `harvester migrate` as the owner, and let the application log in as a member of harvester_app."
        return fail("role", "the application may change the audit trail", advice)
    if owns:
        advice = "Two logins are safer: see HARVESTER_OWNER_DATABASE_URL in docs/operations.md."
        return warn("role", "cannot change the audit trail, but its login owns the tables", advice)
    return fine("role", "cannot change the audit trail")


def sessions(_config: Config) -> Finding:
    advice = "Connect to PostgreSQL directly, or set the proxy to session pooling."
    first, second = connect("doctor"), connect("doctor")
    try:
        lost = sessions_lost(first, second)
    finally:
        first.close()
        second.close()
    if lost:
        return fail("proxy", "a transaction-pooling proxy is in between: sessions do not keep their state", advice)
    return fine("proxy", "sessions keep their state between transactions")


def sessions_lost(first: Any, second: Any) -> bool:
    """Whether two connections swap the sessions behind them.

    A pooling proxy gives a connection any free session at each transaction. While the second one is inside a
    transaction, the first one's session is busy if the proxy gave it away.
    """
    places = []
    for _ in range(TURNS):
        places.append(_place(first))
        with second.transaction():
            second.execute("SELECT 1")
            places.append(_place(first))
    return len(set(places)) > 1 or not _remembers(first, second)


def _place(session: Any) -> int:
    return int(session.execute("SELECT pg_backend_pid()").fetchone()[0])


def _remembers(first: Any, second: Any) -> bool:
    first.execute("SELECT set_config('harvester.doctor', 'first', false)")
    second.execute("SELECT set_config('harvester.doctor', 'second', false)")
    said = [
        session.execute("SELECT current_setting('harvester.doctor', true)").fetchone()[0] for session in (first, second)
    ]
    return said == ["first", "second"]


def clock(_config: Config) -> Finding:
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        there = cursor.fetchone()[0]
    difference = there - (before + time.time()) / 2
    told = f"the database's clock and this machine's differ by {abs(difference):.1f} s"
    if abs(difference) > CLOCKS_DIFFER:
        return warn("clock", told, "Let both follow a time server (NTP).")
    return fine("clock", told)


def snapshots(_config: Config) -> Finding:
    seconds = job_figures.oldest_snapshot_seconds()
    told = f"the oldest open transaction is {span(seconds)} old" if seconds else "no transaction is open"
    if seconds > job_figures.OLD_SNAPSHOT_SECONDS:
        advice = (
            "It slows every claim. Find it: SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start"
        )
        return warn("old snapshots", told, advice)
    return fine("old snapshots", told)


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
    told = f"{connected} connected; " + (
        f"the last job ended {span(ago)} ago" if ago is not None else "no job has ended yet"
    )
    if not connected:
        return warn("workers", told, "Start one: harvester worker, or everything: harvester up")
    return fine("workers", told)


CHECKS: dict[str, Callable[[Config], Finding]] = {
    "migrations": migrations,
    "role": role,
    "proxy": sessions,
    "clock": clock,
    "old snapshots": snapshots,
    "workers": workers,
}
