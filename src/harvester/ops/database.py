"""The database's version, roles and migrations."""

from typing import Any

import structlog
from django.core.management import call_command
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ProgrammingError

from harvester.kernel.errors import ConfigError

log = structlog.get_logger(__name__)

OLDEST_SERVER = 16
#: Only one process migrates at a time; the number is arbitrary but must never change.
MIGRATION_LOCK = 0x68617276


class MigrationsByOwner:
    """Migrations run only as the role that owns the tables, never as the application's."""

    def allow_migrate(self, db: str, *_: Any, **__: Any) -> bool:
        return db == "owner"


def check_server(database: BaseDatabaseWrapper) -> int:
    """Return the server's major version, or raise ConfigError if it is too old."""
    with database.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        version = int(cursor.fetchone()[0]) // 10_000
    if version < OLDEST_SERVER:
        raise ConfigError(
            f"The database server is PostgreSQL {version}; Harvester needs {OLDEST_SERVER} or newer. "
            "Nothing was changed."
        )
    return version


_ENSURE_ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'harvester_app') THEN
        CREATE ROLE harvester_app NOLOGIN;
    END IF;
    IF NOT pg_has_role(current_user, 'harvester_app', 'SET') THEN
        EXECUTE format('GRANT harvester_app TO %I', current_user);
    END IF;
END $$
"""

# Tables of facts have the trigger `refuse_change`: for them the application gets SELECT and INSERT. It may write all
# other tables, but owns and alters none. Id and time of an event come from the database's defaults: the application may
# insert every column except these two. Only the application may call functions that run with the owner's rights.
_GRANTS = """
DO $$ DECLARE t record; BEGIN
    GRANT USAGE ON SCHEMA public TO harvester_app;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO harvester_app;
    FOR t IN
        SELECT c.oid::regclass AS name, c.relispartition AS part, EXISTS (
            SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgfoid = 'refuse_change'::regproc) AS fact, (
            SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a
            WHERE a.attrelid = c.oid AND c.relname IN ('audit_events', 'job_events')
              AND a.attnum > 0 AND NOT a.attisdropped AND a.attname NOT IN ('id', 'at')) AS event_columns
        FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM harvester_app', t.name);
        CONTINUE WHEN t.part;
        IF t.event_columns IS NOT NULL THEN
            EXECUTE format('GRANT SELECT, INSERT (%s) ON %s TO harvester_app', t.event_columns, t.name);
        ELSIF t.fact THEN
            EXECUTE format('GRANT SELECT, INSERT ON %s TO harvester_app', t.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO harvester_app', t.name);
        END IF;
    END LOOP;
    FOR t IN
        SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
          AND pg_has_role(current_user, p.proowner, 'USAGE')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', t.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO harvester_app', t.name);
    END LOOP;
    REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM harvester_app;
    -- Without this, the age of other roles' transactions stays hidden; nothing else depends on it.
    BEGIN
        GRANT pg_read_all_stats TO harvester_app;
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE NOTICE 'harvester_app may not read the statistics of other roles';
    END;
END $$
"""


def migrate(*, verbosity: int = 0) -> None:
    """Update the database to this version: role, tables, and the application's rights to them."""
    owner = connections["owner"]
    check_server(owner)
    with owner.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            try:
                cursor.execute(_ENSURE_ROLE)
            except ProgrammingError as problem:
                raise ConfigError(
                    "This login is not a member of the role harvester_app and may not grant itself the role. Nothing "
                    "was changed. As an administrator run: CREATE ROLE harvester_app (unless it exists); GRANT "
                    "harvester_app TO <the owner's login>; then migrate again."
                ) from problem
            call_command("migrate", database="owner", interactive=False, verbosity=verbosity)
            cursor.execute(_GRANTS)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    log.info("MIGRATED")


def pending_migrations(database: str = "default") -> list[str]:
    """Return the names of migrations that the database does not have yet."""
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connections[database])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
