"""Find the processes of a cluster by their command lines, never by a pid file alone.

A command line is readable for all users. The working directory would also identify a process, but root in a typical
container cannot read it.
"""

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harvester.engine.embedded.datadir import pid_in_file
from harvester.engine.embedded.layout import Layout
from harvester.engine.embedded.users import ServerUser
from harvester.kernel.errors import ConfigError, TransientError

PROC = Path("/proc")
POLL_SECONDS = 0.02

#: Seconds for each way to end a server: with a checkpoint, without one (it recovers at the next start), or killed.
#: Committed work survives all of them.
ENDINGS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0), (signal.SIGKILL, 10.0))

#: The same for processes whose postmaster is dead, so that no checkpoint is possible.
ORPHAN_ENDINGS = ((signal.SIGQUIT, 5.0), (signal.SIGKILL, 10.0))


@dataclass(frozen=True)
class Processes:
    """The processes of one cluster, as they are at each call."""

    layout: Layout
    user: ServerUser

    def all(self) -> set[int]:
        """Return all processes, including ending ones: their command line is gone before their memory and files.

        An ending process may belong to another cluster of the same user, which cannot be distinguished and does not
        matter.
        """
        pids = {int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()}
        return {pid for pid in pids if self._is_ours(pid) or (_owner(pid) == self.user.uid and _is_ending(pid))}

    def postmaster(self) -> int | None:
        """Return the pid in the pid file if it is the running server."""
        pid = pid_in_file(self.layout.data)
        return pid if pid is not None and self._is_ours(pid) else None

    def stale_pid(self) -> int | None:
        """Return the pid of a dead postmaster if another process has it now."""
        pid = pid_in_file(self.layout.data)
        return pid if pid is not None and not self._is_ours(pid) and (PROC / str(pid)).exists() else None

    def is_starting(self, pid: int) -> bool:
        """Whether a process that was just launched is alive, even if it is still the shell that becomes the server.

        At the moment of that change, it has no command line.
        """
        arguments = _arguments(pid)
        return os.fsencode(self.layout.data) in arguments or (arguments == [b""] and _is_alive(pid))

    def end(self) -> None:
        """End the whole cluster and return only when none of its processes is left."""
        pid = self.postmaster()
        if pid is not None:
            for sign, seconds in ENDINGS:
                _send(pid, sign)
                if _wait(lambda: not self._is_ours(pid), seconds):
                    break
        self.end_orphans()

    def end_orphans(self) -> None:
        """End the processes of a killed postmaster: a busy child continues as long as its statement runs."""
        for sign, seconds in ORPHAN_ENDINGS:
            # A process without a command line may be becoming another cluster's server: do not signal it, only wait.
            for pid in filter(self._is_ours, self.all()):
                _send(pid, sign)
            if _wait(lambda: not self.all(), seconds):
                return
        left = ", ".join(str(pid) for pid in sorted(self.all()))
        raise TransientError(
            f"The processes {left} of the embedded database in {self.layout.data} do not end; "
            "its data is unchanged. Look at them with `ps` and try again."
        )

    def _is_ours(self, pid: int) -> bool:
        arguments = _arguments(pid)
        is_child = arguments[0].startswith(os.fsencode(f"postgres: {self.layout.tag}: "))
        at_data = (b"-D", os.fsencode(self.layout.data)) in itertools.pairwise(arguments)
        is_server = at_data and arguments[0].rpartition(b"/")[2] == b"postgres"
        return (is_child or is_server) and _owner(pid) == self.user.uid


def require_proc() -> None:
    if not (PROC / "self" / "cmdline").exists():
        raise ConfigError(
            f"The embedded database needs /proc, which is missing here ({sys.platform}). "
            "Set HARVESTER_DATABASE_URL to a PostgreSQL server."
        )


def _arguments(pid: int) -> list[bytes]:
    """Return the command line; one empty word for a process that is gone or a zombie."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def _owner(pid: int) -> int | None:
    try:
        return (PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def _is_ending(pid: int) -> bool:
    return _arguments(pid) == [b""] and _name_and_state(pid)[0] == "postgres" and _is_alive(pid)


def _is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not, and may wait for its parent forever."""
    return _name_and_state(pid)[1] not in "ZX"


def _name_and_state(pid: int) -> tuple[str, str]:
    """Return the name and state; the state X if the process is gone."""
    try:
        name, _, rest = (PROC / str(pid) / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", "X"
    return name, rest.split()[0]


def _send(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
