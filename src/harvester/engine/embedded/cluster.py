"""A cluster at a home, and the holds and locks that keep its server running."""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from harvester.engine.embedded.datadir import has_data
from harvester.engine.embedded.layout import DATABASE, Layout
from harvester.engine.embedded.places import make_home
from harvester.engine.embedded.processes import require_proc
from harvester.engine.embedded.server import RECOVERY_SECONDS, Server
from harvester.engine.embedded.users import server_user
from harvester.kernel.errors import ConfigError, TransientError

#: Seconds to wait for another process's start or stop: longer than the longest start.
LOCK_SECONDS = RECOVERY_SECONDS + 120
#: Seconds between two attempts for a lock that another process has.
LOCK_POLL_SECONDS = 0.02


class FileLock:
    """A flock on a separate open file description, which the kernel releases when the process dies.

    Neither a fork nor an exec inherits it.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self.path = path
        self.descriptor = os.open(path, flags, 0o600)
        _open_locks.add(self)

    def share(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take the exclusive lock if no other process has the lock. The attempt loses a shared lock."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_exclusive(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.try_exclusive():
            if time.monotonic() > deadline:
                raise TransientError(
                    f"Another process has been starting or stopping the database for {seconds:.0f} s, "
                    f"so nothing was changed. Find it with `fuser {self.path}`, end it and try again."
                )
            time.sleep(LOCK_POLL_SECONDS)

    def close(self) -> None:
        """Unlock and close; without unlocking, a child that inherited the descriptor would keep the lock."""
        if self.descriptor >= 0:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close without unlocking, so that a forked child does not release its parent's lock."""
        _open_locks.discard(self)
        os.close(self.descriptor)
        self.descriptor = -1


_open_locks: set[FileLock] = set()


def _forget_after_fork() -> None:
    for lock in list(_open_locks):
        lock.forget()


os.register_at_fork(after_in_child=_forget_after_fork)


class Cluster:
    """The embedded PostgreSQL of one home. Nothing is changed before the first hold."""

    def __init__(self, home: Path, *, os_user: str = "", options: Mapping[str, str] | None = None) -> None:
        self.layout = Layout.of(home)
        self._os_user = os_user
        self._options = dict(options or {})

    @property
    def exists(self) -> bool:
        """Whether there is a data directory, even one that this user cannot read."""
        try:
            return has_data(self.layout.data)
        except OSError:
            return True

    @property
    def socket_dir(self) -> Path:
        return self.layout.socket_dir

    def address(self, role: str, dbname: str = DATABASE) -> dict[str, Any]:
        """Return connection parameters for psycopg, which are valid whether or not the server runs."""
        return self.layout.address(role, dbname)

    def hold(self) -> "Hold":
        """Keep the server running and answering until the hold is released or its process dies.

        Only the options of the process that starts the server count.
        """
        require_proc()
        make_home(self.layout.home)
        with self.start_locked() as lock:
            server = Server(self.layout, server_user(self.layout.data, self._os_user), self._options)
            hold = Hold(self, server)
            try:
                server.run(lock.descriptor)
            except BaseException:
                hold.release_locked()
                raise
        return hold

    @contextmanager
    def start_locked(self) -> Iterator[FileLock]:
        """Lock starting and stopping for other processes, and turn errors of the system into one line."""
        try:
            lock = FileLock(self.layout.start_lock)
            try:
                lock.wait_exclusive(LOCK_SECONDS)
                yield lock
            finally:
                lock.close()
        except PermissionError as error:
            raise ConfigError(
                f"This user has no access to the embedded database in {self.layout.home}: {error}. "
                "Run Harvester as the user who created it, or set HARVESTER_HOME to a directory of your own."
            ) from error
        except (OSError, subprocess.SubprocessError, psycopg.OperationalError) as error:
            raise TransientError(
                f"The embedded database in {self.layout.home} cannot be used now: {' '.join(str(error).split())}. "
                "Its data is unchanged; fix the cause and try again."
            ) from error


class Hold:
    """One reason for the server to run. A forked child of the holder does not hold it."""

    def __init__(self, cluster: Cluster, server: Server) -> None:
        self._cluster = cluster
        self._server = server
        self._pid = os.getpid()
        self._lock = FileLock(cluster.layout.holders_lock)
        self._lock.share()

    def release(self) -> None:
        """Release the hold; the last holder stops the server and waits for its end. May be called twice."""
        if self._lock.descriptor < 0 or os.getpid() != self._pid:
            return
        with self._cluster.start_locked():
            self.release_locked()

    def release_locked(self) -> None:
        """Release the hold; the caller has the start lock."""
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
