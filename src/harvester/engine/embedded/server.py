"""Start the server, wait until it answers, stop it. Every step here needs the start lock."""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import pq, sql

from harvester.engine.embedded import datadir, places
from harvester.engine.embedded.binaries import Installation, find_installation, reachable
from harvester.engine.embedded.layout import APP_ROLE, DATABASE, OWNER_ROLE, Layout
from harvester.engine.embedded.processes import Processes
from harvester.engine.embedded.settings import structure
from harvester.engine.embedded.users import ServerUser, server_environment
from harvester.kernel.errors import ConfigError, TransientError

#: Seconds in which a start must work while what a killed server left behind goes away.
START_SECONDS = 60.0

#: Seconds that a living server may be silent. While it says that it recovers, it may take RECOVERY_SECONDS.
SILENCE_SECONDS = 60.0
RECOVERY_SECONDS = 600.0

#: Seconds between two looks; growing, because a recovering server logs each of them.
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.01, 0.5

#: Bytes of log over which the file is put aside at a start. One older file is kept.
LOG_LIMIT = 10 << 20

#: Bytes of the end of the log that are looked at to explain a failed start.
LOG_TAIL = 8192

#: What PostgreSQL says while processes of a killed server still use its memory or its files.
LINGERING = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')

#: The shell ends at once and leaves the server to init: as a child it would stay a zombie in whatever
#: process happened to start it, and confuse supervisors that wait for any child.
LAUNCH = '"$@" </dev/null >&2 & echo $!'


@dataclass
class Server:
    """One attempt of one process to have the server running."""

    layout: Layout
    user: ServerUser
    options: Mapping[str, str]
    #: How long the log was when the server was launched; what comes later is about that launch.
    log_before: int = 0

    @property
    def processes(self) -> Processes:
        return Processes(self.layout, self.user)

    def run(self, lock: int) -> None:
        """Return when the server answers: found running, adopted from a killed holder, or started."""
        places.check_socket_dir(self.layout, self.user)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if time.monotonic() > deadline:
                raise self._ends_again()
            adopted = self.processes.postmaster()
            answered = self._wait_for_answer(adopted or self._launch(lock))
            if not answered and not adopted:
                self._explain_unless_lingering(deadline)

    def stop(self) -> None:
        self.processes.end()
        places.remove_socket_dir(self.layout, self.user)

    def _is_ready(self) -> bool:
        """By using it: a server that was killed a moment ago may still answer a ping."""
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
        """Whether the server came to answer; False when its process ended instead."""
        began = spoken = time.monotonic()
        pause = FIRST_LOOK_SECONDS
        while (answer := self._ping()) != pq.Ping.OK:
            if not self.processes.is_starting(pid):
                return False
            now = time.monotonic()
            spoken = now if answer == pq.Ping.REJECT else spoken
            if now > spoken + SILENCE_SECONDS or now > began + RECOVERY_SECONDS:
                raise self._silent(pid, now - began)
            time.sleep(pause)
            pause = min(pause * 1.3, LAST_LOOK_SECONDS)
        return True

    def _ends_again(self) -> TransientError:
        return TransientError(
            f"The embedded server started and ended several times in {START_SECONDS:.0f} s; "
            f"its data was left as it is. {self.layout.log} says more."
        )

    def _silent(self, pid: int, seconds: float) -> TransientError:
        return TransientError(
            f"The embedded server (process {pid}) has not answered for {seconds:.0f} s; its data was left "
            f"as it is. {self.layout.log} says more; try again."
        )

    def _launch(self, lock: int) -> int:
        self.processes.end_orphans()
        places.require_reach(self.layout.home, self.user)
        installation = self._installation()
        if datadir.has_data(self.layout.data):
            datadir.check_control(self.layout.data, installation, self.user)
        else:
            datadir.create(self.layout, installation, self.user, lock)
        if self.processes.stale_pid():
            datadir.disown(self.layout.data, self.user)
        places.make_socket_dir(self.layout, self.user)
        datadir.write_settings(self.layout, self.user, self.options)
        return self._spawn(installation.program("postgres"))

    def _installation(self) -> Installation:
        data = self.layout.data
        major = datadir.major_of(data) if datadir.has_data(data) else None
        return reachable(find_installation(major), self.user, self.layout.home)

    def _spawn(self, postgres: Path) -> int:
        # On the command line too, because ALTER SYSTEM would win over the file.
        fixed = [word for name, value in structure(self.layout).items() for word in ("-c", f"{name}={value}")]
        command = ["/bin/sh", "-c", LAUNCH, "sh", str(postgres), "-D", str(self.layout.data), *fixed]
        log = _open_log(self.layout.log)
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
        said = _tail(self.layout.log, self.log_before)
        lingers = any(sign in said for sign in LINGERING)
        if lingers and time.monotonic() < deadline:
            time.sleep(LAST_LOOK_SECONDS)
            return
        kind = TransientError if lingers else ConfigError
        raise kind(
            f"The embedded database did not start: {said}; its data in {self.layout.data} was left as it is. "
            f"The whole story is in {self.layout.log}."
        )

    def _make_roles(self) -> None:
        """At each hold, because a process may be killed between the start of a new server and this."""
        address = self.layout.address(OWNER_ROLE, "postgres")
        with psycopg.connect(**address, autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [APP_ROLE]).rowcount:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(APP_ROLE)))
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).rowcount:
                names = sql.Identifier(DATABASE), sql.Identifier(OWNER_ROLE)
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(*names))


def _open_log(path: Path) -> int:
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_name(f"{path.name}.1"))
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _tail(path: Path, begin: int) -> str:
    """The last lines of the log as one."""
    with path.open("rb") as file:
        file.seek(max(begin, path.stat().st_size - LOG_TAIL))
        lines = file.read().decode(errors="replace").split("\n")
    return " / ".join(line.strip() for line in lines[-5:] if line.strip())
