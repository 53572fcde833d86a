"""Which processes belong to a cluster, by what they are and never by a pid file alone.

A command line is readable by everyone. The working directory would tell the same, but root in a common
container may not read it.
"""

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harvester.engine.embedded.datadir import pid_in_file
from harvester.engine.embedded.layout import Layout
from harvester.engine.embedded.users import ServerUser
from harvester.kernel.errors import ConfigError, TransientError

PROC = Path("/proc")
POLL_SECONDS = 0.02

#: Seconds for each way to end a server: first it writes a checkpoint, then it stops at once and recovers at
#: the next start, at last it is killed. Committed work survives each of them.
ENDINGS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0), (signal.SIGKILL, 10.0))

#: The same for processes whose postmaster is dead: there is nobody left who could write a checkpoint.
ORPHAN_ENDINGS = ((signal.SIGQUIT, 5.0), (signal.SIGKILL, 10.0))


@dataclass(frozen=True)
class Processes:
    """The processes of one cluster, found anew at each look."""

    layout: Layout
    user: ServerUser

    def all(self) -> set[int]:
        """Those that end count as well: their command line is gone before they let go of memory and files."""
        return {pid for pid in _pids() if self._is_ours(pid) or self._is_leaving(pid)}

    def postmaster(self) -> int | None:
        """The living server that the pid file names, if it is one."""
        pid = pid_in_file(self.layout.data)
        return pid if pid is not None and self._is_ours(pid) else None

    def stale_pid(self) -> int | None:
        """The pid of a dead postmaster that some other process has now."""
        pid = pid_in_file(self.layout.data)
        return pid if pid is not None and not self._is_ours(pid) and _exists(pid) else None

    def is_starting(self, pid: int) -> bool:
        """Whether a process that was just launched lives, be it still the shell that becomes the server.

        In the moment in which it does, it has no command line.
        """
        arguments = _arguments(pid)
        return os.fsencode(self.layout.data) in arguments or (arguments == [b""] and _lives(pid))

    def end(self) -> None:
        """End the whole cluster and return only when no process of it is left."""
        pid = self.postmaster()
        if pid is not None:
            self._end_postmaster(pid)
        self.end_orphans()

    def _end_postmaster(self, pid: int) -> None:
        for sign, seconds in ENDINGS:
            _send(pid, sign)
            if _wait(lambda: not self._is_ours(pid), seconds):
                return

    def end_orphans(self) -> None:
        """End what a killed postmaster left: a busy child of it goes on for as long as its statement does."""
        for sign, seconds in ORPHAN_ENDINGS:
            # Without a command line it may just be becoming another cluster's server: that one is waited for only.
            for pid in filter(self._is_ours, self.all()):
                _send(pid, sign)
            if _wait(lambda: not self.all(), seconds):
                return
        left = ", ".join(str(pid) for pid in sorted(self.all()))
        raise TransientError(
            f"The processes {left} of the embedded database in {self.layout.data} do not end; "
            "its data was left as it is. Look at them with `ps` and try again."
        )

    def _is_ours(self, pid: int) -> bool:
        arguments = _arguments(pid)
        named = arguments[0].startswith(os.fsencode(f"postgres: {self.layout.tag}: "))
        return (named or self._is_server(arguments)) and _owner(pid) == self.user.uid

    def _is_leaving(self, pid: int) -> bool:
        """Of this cluster or of another of the same user; which one can no longer be seen, nor matters."""
        return _owner(pid) == self.user.uid and _arguments(pid) == [b""] and _is_dying_postgres(pid)

    def _is_server(self, arguments: list[bytes]) -> bool:
        at_data = (b"-D", os.fsencode(self.layout.data)) in itertools.pairwise(arguments)
        return at_data and arguments[0].rpartition(b"/")[2] == b"postgres"


def require_proc() -> None:
    if not (PROC / "self" / "cmdline").exists():
        raise ConfigError(
            f"The embedded database needs /proc, which is missing here ({sys.platform}). "
            "Set HARVESTER_DATABASE_URL to a PostgreSQL server."
        )


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def _arguments(pid: int) -> list[bytes]:
    """Empty words for a process that is gone, and for one that is dead and only waits for its parent."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def _owner(pid: int) -> int | None:
    try:
        return (PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def _is_dying_postgres(pid: int) -> bool:
    return _name_and_state(pid)[0] == "postgres" and _lives(pid)


def _lives(pid: int) -> bool:
    """Not so a zombie, which has let go of everything and waits for its parent, perhaps for ever."""
    return _name_and_state(pid)[1] not in "ZX"


def _name_and_state(pid: int) -> tuple[str, str]:
    """As gone counts what is not to be seen."""
    try:
        name, _, rest = (PROC / str(pid) / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", "X"
    return name, rest.split()[0]


def _exists(pid: int) -> bool:
    return (PROC / str(pid)).exists()


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
