"""What every command that needs the database goes through, in the order in which errors are most useful."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import TextIO

from harvester.cli.output import OUT
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError


class Tables(Enum):
    """What a command needs of the database's tables."""

    ANY = "the command brings them about, or looks at what is there"
    CURRENT = "they must be those of this version"
    MIGRATED = "they are brought to this version first, if the database is the embedded one"


def read_config() -> Config:
    return Config.from_env(os.environ, is_root=os.geteuid() == 0)


def prepare(config: Config, *, service: bool = False, log_stream: TextIO | None = None) -> None:
    """Logs, and the keys that can be checked before anything is made.

    A service logs what it does. A command says it on stdout, and logs only what is wrong unless asked for more; with
    --json its error tells that, and a log line beside it would be a second object for whoever reads stderr.
    """
    from harvester.guards.logs import configure_logging, log_uncaught
    from harvester.guards.vault import key_ring

    asked = service or os.environ.get("HARVESTER_LOG_LEVEL")
    least = "critical" if OUT.as_json else "warning"
    configure_logging(config.log_level if asked else least, config.log_format, stream=log_stream)
    log_uncaught()
    if config.encryption_keys:
        key_ring(config)


@contextmanager
def session(
    tables: Tables = Tables.CURRENT, *, service: bool = False, log_stream: TextIO | None = None
) -> Iterator[Config]:
    """Settings read, logs set up, database held and checked, Django ready."""
    config = read_config()
    prepare(config, service=service, log_stream=log_stream)
    with database_of(config):
        set_up_django()
        try:
            _check_database(config, tables)
            yield config
        finally:
            close_connections()


def database_of(config: Config) -> AbstractContextManager[object]:
    """Hold the embedded server; an external one holds itself."""
    if not config.embedded:
        return nullcontext()
    from harvester.engine.embedded import Cluster

    return Cluster(config.home, os_user=config.database_os_user).hold()


def revive_database(config: Config) -> None:
    """Start the embedded server again if it has died under this process, which goes on holding it."""
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


def _check_database(config: Config, tables: Tables) -> None:
    if tables is Tables.ANY:
        return
    from harvester.ops.database import migrate

    if tables is Tables.MIGRATED and config.embedded:
        migrate()
    else:
        require_current_tables()


def require_redis(config: Config) -> None:
    """Workers that were told to share rate limits must not begin without them."""
    if config.redis_url:
        from harvester.guards.redis_client import ping

        ping(config.redis_url)


def require_current_tables() -> None:
    """An old table under a new program, or the other way round, is refused before it does harm."""
    from django.db import connection

    from harvester.ops.database import check_server, pending_migrations

    check_server(connection)
    pending = pending_migrations()
    if pending:
        raise ConfigError(
            f"The database lacks {len(pending)} migrations of this version ({pending[0]} first). Run: harvester migrate"
        )
