"""Start the server, wait until it answers, stop it. All steps here need the start lock."""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import pq, sql

from harvester.engine.embedded import datadir, places
from harvester.engine.embedded.binaries import find_installation, reachable
from harvester.engine.embedded.layout import APP_ROLE, DATABASE, OWNER_ROLE, Layout
from harvester.engine.embedded.processes import Processes
from harvester.engine.embedded.settings import structure
from harvester.engine.embedded.users import ServerUser, server_environment
from harvester.kernel.errors import ConfigError, TransientError

#: Seconds in which a start must succeed while the remains of a killed server disappear.
START_SECONDS = 60.0

#: Seconds that a running server may not answer. While it reports recovery, it may take RECOVERY_SECONDS.
SILENCE_SECONDS = 60.0
RECOVERY_SECONDS = 600.0

#: Seconds between two pings; growing, because a recovering server logs each of them.
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.01, 0.5

#: Bytes after which the log is rotated at a start. One older file is kept.
LOG_LIMIT = 10 << 20

#: Bytes of the end of the log that are read to explain a failed start.
LOG_TAIL = 8192

#: Messages of PostgreSQL while processes of a killed server still use its memory or its files.
LINGERING = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')

#: The shell ends immediately and leaves the server to init: as a child it would stay a zombie of the process that
#: started it, and confuse supervisors that wait for any child.
LAUNCH = '"$@" </dev/null >&2 & echo $!'


@dataclass
class Server:
    """One attempt of one process to run the server."""

    layout: Layout
    user: ServerUser
    options: Mapping[str, str]
    #: The size of the log before the launch; everything after it is about that launch.
    log_before: int = 0

    @property
    def processes(self) -> Processes:
        return Processes(self.layout, self.user)

    def run(self, lock: int) -> None:
        """Return when the server answers: already running, adopted from a killed holder, or started."""
        places.check_socket_dir(self.layout, self.user)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if time.monotonic() > deadline:
                raise TransientError(
                    f"The embedded server started and ended several times in {START_SECONDS:.0f} s; "
                    f"its data is unchanged. See {self.layout.log}."
                )
            adopted = self.processes.postmaster()
            answered = self._wait_for_answer(adopted or self._launch(lock))
            if not answered and not adopted:
                self._explain_unless_lingering(deadline)

    def stop(self) -> None:
        self.processes.end()
        places.remove_socket_dir(self.layout, self.user)

    def _is_ready(self) -> bool:
        """Whether the server can be used: one that was just killed may still answer a ping."""
        if self._ping() != pq.Ping.OK:
            return False
        try:
            self._make_roles()
        except psycopg.OperationalError:
            if self._ping() == pq.Ping.OK:
                raise
            return False
        return True

    def _ping(self) -> int:
        address = {**self.layout.address(OWNER_ROLE, "postgres"), "connect_timeout": 2}
        return pq.PGconn.ping(psycopg.conninfo.make_conninfo("", **address).encode())

    def _wait_for_answer(self, pid: int) -> bool:
        """Wait until the server answers; return False if its process ended instead."""
        began = answered = time.monotonic()
        pause = FIRST_LOOK_SECONDS
        while (answer := self._ping()) != pq.Ping.OK:
            if not self.processes.is_starting(pid):
                return False
            now = time.monotonic()
            answered = now if answer == pq.Ping.REJECT else answered
            if now > answered + SILENCE_SECONDS or now > began + RECOVERY_SECONDS:
                raise TransientError(
                    f"The embedded server (process {pid}) has not answered for {now - began:.0f} s; its data is "
                    f"unchanged. See {self.layout.log}; try again."
                )
            time.sleep(pause)
            pause = min(pause * 1.3, LAST_LOOK_SECONDS)
        return True

    def _launch(self, lock: int) -> int:
        self.processes.end_orphans()
        places.require_reach(self.layout.home, self.user)
        data = self.layout.data
        major = datadir.major_of(data) if datadir.has_data(data) else None
        installation = reachable(find_installation(major), self.user, self.layout.home)
        if datadir.has_data(data):
            datadir.check_control(data, installation, self.user)
        else:
            datadir.create(self.layout, installation, self.user, lock)
        if self.processes.stale_pid():
            datadir.disown(data, self.user)
        places.make_socket_dir(self.layout, self.user)
        datadir.write_settings(self.layout, self.user, self.options)
        return self._spawn(installation.program("postgres"))

    def _spawn(self, postgres: Path) -> int:
        # On the command line too, because ALTER SYSTEM would override the file.
        fixed = [word for name, value in structure(self.layout).items() for word in ("-c", f"{name}={value}")]
        command = ["/bin/sh", "-c", LAUNCH, "sh", str(postgres), "-D", str(self.layout.data), *fixed]
        path = self.layout.log
        if path.exists() and path.stat().st_size > LOG_LIMIT:
            path.replace(path.with_name(f"{path.name}.1"))
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self.log_before = os.fstat(log).st_size
        try:
            answer = subprocess.run(
                command,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                env=server_environment(),
                start_new_session=True,
                **self.user.identity(),
            )
        finally:
            os.close(log)
        return int(answer.stdout)

    def _explain_unless_lingering(self, deadline: float) -> None:
        with self.layout.log.open("rb") as file:
            file.seek(max(self.log_before, self.layout.log.stat().st_size - LOG_TAIL))
            lines = file.read().decode(errors="replace").split("\n")
        logged = " / ".join(line.strip() for line in lines[-5:] if line.strip())
        lingers = any(sign in logged for sign in LINGERING)
        if lingers and time.monotonic() < deadline:
            time.sleep(LAST_LOOK_SECONDS)
            return
        kind = TransientError if lingers else ConfigError
        raise kind(
            f"The embedded database did not start: {logged}; its data in {self.layout.data} is unchanged. "
            f"See {self.layout.log}."
        )

    def _make_roles(self) -> None:
        """Create missing roles and the database, at each hold: a process may be killed after the first start."""
        address = self.layout.address(OWNER_ROLE, "postgres")
        with psycopg.connect(**address, autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [APP_ROLE]).rowcount:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(APP_ROLE)))
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).rowcount:
                names = sql.Identifier(DATABASE), sql.Identifier(OWNER_ROLE)
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(*names))
