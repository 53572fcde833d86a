"""A second database server, which a test may stop, kill and start again."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connections

from harvester.engine.embedded import APP_ROLE, Cluster
from harvester.engine.embedded.processes import Processes
from harvester.engine.embedded.users import server_user
from tests.support import copied_database
from tests.support.tables import close_emptying, database_hosts, make_effects, use_database_hosts
from tests.support.waiting import wait_for

#: How a server ends: with a checkpoint, at once and to be recovered, or without a word.
ENDINGS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "crash": signal.SIGKILL}
#: A backend that cannot send its frozen client the reason for its end waits forever, and a fast shutdown waits for it.
FAST_SECONDS = 10.0


class OwnCluster:
    """A migrated cluster in a home of its own."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="harvester-own-"))
        self.home.chmod(0o755)
        copied_database.copy_to(self.home)
        self._cluster = Cluster(self.home, os_user=settings.CONFIG.database_os_user, options=options)
        self._hold = self._cluster.hold()

    @property
    def socket_dir(self) -> Path:
        return self._cluster.socket_dir

    def connect(self, role: str = APP_ROLE) -> psycopg.Connection:
        return psycopg.connect(**self._cluster.address(role), autocommit=True)

    def stop(self, how: str = "fast") -> None:
        """End the server, and return when none of its processes is left; this thread connects again."""
        pid = self._processes.postmaster()
        assert pid is not None, "the server does not run"
        os.kill(pid, ENDINGS[how])
        if not self._is_gone_within(FAST_SECONDS):
            os.kill(pid, ENDINGS["immediate"])
        wait_for(self._is_gone, "the end of the server")
        connections.close_all()

    def _is_gone(self) -> bool:
        return not self._processes.all()

    def _is_gone_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._is_gone() and time.monotonic() < until:
            time.sleep(0.02)
        return self._is_gone()

    def start(self) -> None:
        before, self._hold = self._hold, self._cluster.hold()
        before.release()

    def restart(self, how: str = "fast") -> None:
        self.stop(how)
        self.start()

    def remove(self) -> None:
        close_emptying()
        self._hold.release()
        shutil.rmtree(self.home, ignore_errors=True)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The connections of this process, in every thread, lead here, and so do those of workers that it starts."""
        before = database_hosts()
        use_database_hosts(dict.fromkeys(before, str(self.socket_dir)))
        try:
            yield
        finally:
            use_database_hosts(before)

    @property
    def _processes(self) -> Processes:
        return Processes(self._cluster.layout, server_user(self._cluster.layout.data, settings.CONFIG.database_os_user))


@contextmanager
def migrated_cluster(options: Mapping[str, str] | None = None) -> Iterator[OwnCluster]:
    from harvester.ops.database import migrate

    own = OwnCluster(options)
    try:
        with own.in_use():
            migrate()
            make_effects()
        yield own
    finally:
        own.remove()
