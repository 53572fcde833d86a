"""Settings, logs, database and Django for a command, checked in the order that gives the most useful errors."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import TextIO

from harvester.cli.output import OUT
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError


class Tables(Enum):
    """What a command expects of the database's tables."""

    ANY = "not checked"
    CURRENT = "must be those of this version"
    MIGRATED = "migrated first if the database is embedded"


def read_config() -> Config:
    return Config.from_env(os.environ, is_root=os.geteuid() == 0)


def prepare(config: Config, *, service: bool = False, log_stream: TextIO | None = None) -> None:
    """Set up logging, and check the encryption keys before anything is created.

    A service logs at the configured level. A command logs only warnings unless HARVESTER_LOG_LEVEL is set. With --json
    it logs even less, because a script expects nothing but the error object on stderr.
    """
    from harvester.guards.logs import configure_logging, log_uncaught
    from harvester.guards.vault import key_ring

    is_verbose = service or os.environ.get("HARVESTER_LOG_LEVEL")
    quiet_level = "critical" if OUT.as_json else "warning"
    configure_logging(config.log_level if is_verbose else quiet_level, config.log_format, stream=log_stream)
    log_uncaught()
    if config.encryption_keys:
        key_ring(config)


@contextmanager
def session(
    tables: Tables = Tables.CURRENT, *, service: bool = False, log_stream: TextIO | None = None
) -> Iterator[Config]:
    """Read the settings, set up logs, hold and check the database, and set up Django."""
    config = read_config()
    prepare(config, service=service, log_stream=log_stream)
    with database_of(config):
        set_up_django()
        try:
            if tables is Tables.MIGRATED and config.embedded:
                from harvester.ops.database import migrate

                migrate()
            elif tables is not Tables.ANY:
                require_current_tables()
            yield config
        finally:
            close_connections()


def database_of(config: Config) -> AbstractContextManager[object]:
    """Keep the embedded server running; an external one needs nothing."""
    if not config.embedded:
        return nullcontext()
    from harvester.engine.embedded import Cluster

    return Cluster(config.home, os_user=config.database_os_user).hold()


def revive_database(config: Config) -> None:
    """Restart the embedded server if it died while this process holds it."""
    import structlog
    from psycopg import conninfo, pq

    from harvester.engine.embedded import APP_ROLE, Cluster

    cluster = Cluster(config.home, os_user=config.database_os_user)
    address = conninfo.make_conninfo("", **cluster.address(APP_ROLE), connect_timeout=2)
    if pq.PGconn.ping(address.encode()) == pq.Ping.NO_RESPONSE:
        structlog.get_logger(__name__).warning("DATABASE_REVIVED", home=str(config.home))
        cluster.hold().release()


def set_up_django() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "harvester.settings"
    import django

    django.setup()


def close_connections() -> None:
    from django.db import connections

    connections.close_all()


def require_redis(config: Config) -> None:
    """Raise if Redis is configured and not reachable: workers must not start without the shared rate limits."""
    if config.redis_url:
        from harvester.guards.redis_client import ping

        ping(config.redis_url)


def require_current_tables() -> None:
    """Raise unless server and tables fit this version."""
    from django.db import connection

    from harvester.ops.database import check_server, pending_migrations

    check_server(connection)
    pending = pending_migrations()
    if pending:
        raise ConfigError(
            f"The database lacks {len(pending)} migrations of this version ({pending[0]} first). Run: harvester migrate"
        )
