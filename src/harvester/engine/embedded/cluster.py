"""The public face: a cluster at a home, and the holds that keep its server running."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from harvester.engine.embedded.datadir import has_data
from harvester.engine.embedded.layout import DATABASE, Layout
from harvester.engine.embedded.locks import FileLock
from harvester.engine.embedded.places import make_home
from harvester.engine.embedded.processes import require_proc
from harvester.engine.embedded.server import RECOVERY_SECONDS, Server
from harvester.engine.embedded.users import server_user
from harvester.kernel.errors import ConfigError, TransientError

#: Seconds to wait for another process's start or stop: longer than the longest start.
LOCK_SECONDS = RECOVERY_SECONDS + 120


class Cluster:
    """The embedded PostgreSQL of one home. Nothing is touched before the first hold."""

    def __init__(self, home: Path, *, os_user: str = "", options: Mapping[str, str] | None = None) -> None:
        self.layout = Layout.of(home)
        self._os_user = os_user
        self._options = dict(options or {})

    @property
    def exists(self) -> bool:
        """Whether there is a data directory, also one that this user may not look into."""
        try:
            return has_data(self.layout.data)
        except OSError:
            return True

    @property
    def socket_dir(self) -> Path:
        return self.layout.socket_dir

    def address(self, role: str, dbname: str = DATABASE) -> dict[str, Any]:
        """Connection parameters for psycopg, right before, during and after the server's life."""
        return self.layout.address(role, dbname)

    def hold(self) -> "Hold":
        """Have the server running and answering until the hold is released or its process dies.

        The options of the process that starts the server count; a later holder joins it as it is.
        """
        require_proc()
        make_home(self.layout.home)
        with self.deciding() as lock:
            server = Server(self.layout, server_user(self.layout.data, self._os_user), self._options)
            hold = Hold(self, server)
            try:
                server.run(lock.descriptor)
            except BaseException:
                hold.let_go()
                raise
        return hold

    @contextmanager
    def deciding(self) -> Iterator[FileLock]:
        """Decide alone about starting and stopping, and say in one line what the system refused."""
        with _one_line(self.layout):
            lock = FileLock(self.layout.start_lock)
            try:
                lock.wait_exclusive(LOCK_SECONDS)
                yield lock
            finally:
                lock.close()


class Hold:
    """One reason for the server to run. A fork of the holder is no holder."""

    def __init__(self, cluster: Cluster, server: Server) -> None:
        self._cluster = cluster
        self._server = server
        self._pid = os.getpid()
        self._lock = FileLock(cluster.layout.holders_lock)
        self._lock.share()

    def release(self) -> None:
        """Let go; the last holder stops the server and returns when it is gone. Twice is harmless."""
        if self._lock.descriptor < 0 or os.getpid() != self._pid:
            return
        with self._cluster.deciding():
            self.let_go()

    def let_go(self) -> None:
        """Release under the start lock, which the caller has."""
        try:
            if self._lock.try_exclusive():
                self._server.stop()
        finally:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@contextmanager
def _one_line(layout: Layout) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise ConfigError(
            f"The embedded database in {layout.home} is closed to this user: {error}. "
            "Run Harvester as the user who made it, or set HARVESTER_HOME to a directory of your own."
        ) from error
    except (OSError, subprocess.SubprocessError, psycopg.OperationalError) as error:
        raise TransientError(
            f"The embedded database in {layout.home} cannot be used now: {' '.join(str(error).split())}. "
            "Its data was left as it is; remove the cause and try again."
        ) from error
