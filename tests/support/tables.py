"""Empty tables for the next test."""

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

KEPT = ("django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions")


def empty_all() -> None:
    """Delete everything. Only the owner of an embedded cluster can silence the triggers that guard facts.

    Most tables are empty, and to truncate even one costs more than to delete some rows: new files, and a checkpoint
    that has to write them all. If no transaction has written since the last time, there is nothing to look for.
    """
    session = _emptying()
    host = session.settings_dict["HOST"]
    with session.cursor() as cursor:
        before = _writes_so_far(cursor)
        if before is not None and before == _empty_at.get(host):
            return
        cursor.execute(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace "
            "AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL (%s)",
            [list(KEPT)],
        )
        tables = [row[0] for row in cursor.fetchall()]
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in tables))
        filled = [row[0] for row in cursor.fetchall()]
        cursor.execute("SET session_replication_role = replica")
        for name in filled:
            cursor.execute(f"DELETE FROM {name}")
        cursor.execute("SET session_replication_role = origin")
        after = _writes_so_far(cursor)
    is_alone = before is not None and after == before + len(filled)
    _empty_at[host] = after if is_alone else None


#: Host -> how many transactions had written there when all tables were empty; none if others wrote meanwhile.
_empty_at: dict[str, int | None] = {}


def _writes_so_far(cursor: CursorWrapper) -> int | None:
    """Return a number that grows with the end of every transaction that writes; none if one is known to go on."""
    cursor.execute("SELECT pg_snapshot_xmin(s)::text, pg_snapshot_xmax(s)::text FROM pg_current_snapshot() s")
    [(oldest, following)] = cursor.fetchall()
    return int(following) if oldest == following else None


#: Host -> a session for emptying. A new one for each test would load the whole catalog again, three times the work.
_sessions: dict[str, BaseDatabaseWrapper] = {}


def _emptying() -> BaseDatabaseWrapper:
    owner = connections["owner"]
    host = owner.settings_dict["HOST"]
    if host not in _sessions:
        _sessions[host] = owner.copy()
    session = _sessions[host]
    if not session.is_usable():
        session.close()
    return session


def close_emptying() -> None:
    """To be done before a server is stopped for good."""
    for session in _sessions.values():
        session.close()
    _sessions.clear()
    _empty_at.clear()


def database_hosts() -> dict[str, str]:
    """Where the connections of this process lead, in every thread."""
    return {alias: connections.settings[alias]["HOST"] for alias in ("default", "owner")}


def use_database_hosts(hosts: dict[str, str]) -> None:
    """Have them lead elsewhere; those that are open are closed."""
    connections.close_all()
    for alias, host in hosts.items():
        connections.settings[alias]["HOST"] = host


def make_effects() -> None:
    """The table in which the jobs of tests leave their traces."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS test_effects (key text, note text, at timestamptz DEFAULT now())")
        cursor.execute("GRANT ALL ON test_effects TO harvester_app")


def rows(query: str, *values: object) -> list[tuple]:
    """Read with the application's role, in a fresh transaction."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()
