"""The `harvester` command, forked from a process that has loaded its libraries: hundreds are started, and to load them
is most of what each would do.
"""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

SOURCE = Path(__file__).with_name("command_source.py")
LIBRARIES = SOURCE.parents[2] / "src"


class ForkedCommand:
    """A running command, handled like a process of `subprocess`."""

    def __init__(self, reader: int) -> None:
        self._reader = os.fdopen(reader)
        self.pid = int(self._reader.readline())
        self.returncode: int | None = None

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._reader], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired("harvester", seconds or 0)
            self.returncode = int(self._reader.readline())
            self._reader.close()
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_command(
    words: Sequence[str], env: Mapping[str, str], cwd: Path | None, files: tuple[IO, IO, IO]
) -> ForkedCommand:
    reader, writer = os.pipe()
    asked = {"arguments": words, "environment": env, "cwd": cwd and str(cwd)}
    socket.send_fds(_source(), [json.dumps(asked).encode()], [*(file.fileno() for file in files), writer])
    os.close(writer)
    return ForkedCommand(reader)


@functools.cache
def _source() -> socket.socket:
    """Where commands are asked for; the process there ends when nobody can ask any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = {**kept, "PYTHONPATH": str(LIBRARIES), "PYTHONWARNINGS": "error"}
    with theirs:
        number = theirs.fileno()
        process = subprocess.Popen([sys.executable, "-P", str(SOURCE), str(number)], env=env, pass_fds=[number])
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours
