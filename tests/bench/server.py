"""The benchmark's own database server, with the settings that the embedded one has in production.

Each contender's jobs are enqueued once and kept as a database of their own; every round works on a fresh copy of
it, so that all rounds begin alike.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

WORKING = "harvester"
#: From this size on it is cheaper to copy files and write a checkpoint than to log every page.
LARGE_BYTES = 256 << 20


class Server:
    """A running cluster and the databases kept in it."""

    def __init__(self, cluster: Any, os_user: str) -> None:
        from harvester.engine.embedded import OWNER_ROLE

        self.address = cluster.address(OWNER_ROLE, WORKING)
        self._admin_address = cluster.address(OWNER_ROLE, "postgres")
        self._cluster, self._os_user = cluster, os_user
        self._holds: list[Any] = []
        self._admin = self._connect_admin()

    def keep(self, name: str) -> None:
        """Keep the working database as it is now, vacuumed and analyzed as autovacuum would have left it."""
        with self.connect() as connection:
            connection.execute("VACUUM ANALYZE")
        self._disconnect()
        self._admin.execute(f"CREATE DATABASE {name} TEMPLATE {WORKING} STRATEGY FILE_COPY")

    def keeps(self, name: str) -> bool:
        found = self._admin.execute("SELECT count(*) FROM pg_database WHERE datname = %s", [name]).fetchone()
        return bool(found[0])

    def forget(self, name: str) -> None:
        self._admin.execute(f"DROP DATABASE {name}")

    def restore(self, name: str) -> None:
        """Make the working database a copy of a kept one. Large ones are copied as files, past the log."""
        self._disconnect()
        self._admin.execute(f"DROP DATABASE {WORKING} WITH (FORCE)")
        size = self._admin.execute("SELECT pg_database_size(%s)", [name]).fetchone()[0]
        strategy = "FILE_COPY" if size > LARGE_BYTES else "WAL_LOG"
        self._admin.execute(f"CREATE DATABASE {WORKING} TEMPLATE {name} STRATEGY {strategy}")

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(**self.address, autocommit=True)

    def version(self) -> str:
        return self._admin.execute("SHOW server_version").fetchone()[0]

    def crash(self) -> None:
        """Kill the server, and return when it answers again."""
        from harvester.engine.embedded.processes import Processes
        from harvester.engine.embedded.users import server_user

        self._disconnect()
        self._admin.close()
        layout = self._cluster.layout
        pid = Processes(layout, server_user(layout.data, self._os_user)).postmaster()
        if pid is None:
            raise RuntimeError("the server does not run")
        os.kill(pid, signal.SIGKILL)
        # Ends what is left of it, and starts it again.
        self._holds.append(self._cluster.hold())
        self._admin = self._connect_admin()

    def close(self) -> None:
        self._admin.close()
        for hold in self._holds:
            hold.release()

    def _connect_admin(self) -> psycopg.Connection:
        return psycopg.connect(**self._admin_address, autocommit=True)

    @staticmethod
    def _disconnect() -> None:
        from django.db import connections

        connections.close_all()


@contextmanager
def own_server(kept: Path | None = None) -> Iterator[Server]:
    """Start a server in a home of its own and migrate it; both are removed at the end unless the home is to be kept."""
    home = _own_home(kept)
    try:
        import django

        django.setup()
        from django.conf import settings

        from harvester.engine.embedded import Cluster
        from harvester.guards.logs import configure_logging
        from harvester.ops.database import migrate

        configure_logging("warning")
        cluster = Cluster(settings.CONFIG.home, os_user=settings.CONFIG.database_os_user)
        with cluster.hold():
            migrate()
            server = Server(cluster, settings.CONFIG.database_os_user)
            try:
                yield server
            finally:
                server.close()
    finally:
        if kept is None:
            shutil.rmtree(home, ignore_errors=True)


def _own_home(kept: Path | None) -> Path:
    """Only what the benchmark says counts: a developer's own settings must not reach it."""
    for name in [name for name in os.environ if name.startswith(("HARVESTER_", "CREDENTIAL_", "WORKER_ID"))]:
        del os.environ[name]
    home = kept or Path(tempfile.mkdtemp(prefix="harvester-bench-"))
    home.mkdir(exist_ok=True)
    home.chmod(0o755)
    os.environ |= {"HARVESTER_HOME": str(home), "DJANGO_SETTINGS_MODULE": "harvester.settings"}
    return home
