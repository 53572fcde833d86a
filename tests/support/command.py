"""The real `harvester` command in a separate process, by default on the database of this test run."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.support.forked_command import ForkedCommand, fork_command
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-P", "-m", "harvester"]
#: Threads of a service that ends may leave a connection to the interpreter's own clean-up.
WARNINGS_OF_SERVICES = "error,ignore::ResourceWarning"
#: Commands that start further processes, which are found through /proc.
STARTS_OTHERS = {"up", "demo"}
#: Only ends a test that hangs.
PATIENCE_SECONDS = 270


def _hear_interrupts() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C, and the tests may be such a thing."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Ran:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error in JSON."""
        return json.loads(self.err)["error"]


def environment(**changes: str | None) -> dict[str, str]:
    """Nothing of the developer's own settings, and every warning an error; a change to None removes a variable."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "HARVESTER_HOME") if name in os.environ}
    kept |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "error"}
    return {name: value for name, value in {**kept, **changes}.items() if value is not None}


def harvester(*arguments: object, stdin: str = "", cwd: Path | None = None, **env: str | None) -> Ran:
    """One command to its end."""
    with _started(arguments, environment(**env), stdin, cwd) as process:
        return process.ends()


@contextmanager
def running(*arguments: object, cwd: Path | None = None, **env: str | None) -> Iterator["Process"]:
    """A command that is still running; killed at the end if the test has not ended it."""
    with _started(arguments, environment(**{"PYTHONWARNINGS": WARNINGS_OF_SERVICES, **env}), "", cwd) as process:
        yield process


@contextmanager
def _started(arguments: tuple[object, ...], env: dict[str, str], stdin: str, cwd: Path | None) -> Iterator["Process"]:
    words = [str(word) for word in arguments]
    with tempfile.TemporaryDirectory(prefix="harvester-output-") as place:
        given, out, err = (Path(place, name) for name in ("in", "out", "err"))
        given.write_text(stdin)
        with given.open("rb") as in_file, out.open("wb") as out_file, err.open("wb") as err_file:
            files = (in_file, out_file, err_file)
            start = _start_plainly if STARTS_OTHERS.intersection(words) else fork_command
            process = start(words, env, cwd, files)
        try:
            yield Process(process, out, err)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _start_plainly(
    words: list[str], env: dict[str, str], cwd: Path | None, files: tuple[IO, IO, IO]
) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, *words],
        env=env,
        cwd=cwd,
        stdin=files[0],
        stdout=files[1],
        stderr=files[2],
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - one system call, and no thread is about to fork
    )


@dataclass
class Process:
    """A running command and its output so far."""

    process: subprocess.Popen | ForkedCommand
    out_file: Path
    err_file: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def out(self) -> str:
        return self.out_file.read_text()

    @property
    def err(self) -> str:
        return self.err_file.read_text()

    def says(self, words: str) -> None:
        """Wait until these words stand in its output or its log."""
        wait_for(lambda: words in self.out + self.err or self._ended(), repr(words), PATIENCE_SECONDS)
        assert words in self.out + self.err, f"ended without {words!r}: {self.out}{self.err}"

    def _ended(self) -> bool:
        return self.process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self) -> Ran:
        code = self.process.wait(PATIENCE_SECONDS)
        assert "Traceback" not in self.err, self.err
        return Ran(code, self.out, self.err)


@contextmanager
def empty_home() -> Iterator[Path]:
    """A home that does not exist yet, in a place that the embedded server's user can reach."""
    base = Path(tempfile.mkdtemp(prefix="harvester-home-"))
    base.chmod(0o755)
    try:
        yield base / "home"
    finally:
        shutil.rmtree(base)


@contextmanager
def taken_port() -> Iterator[str]:
    """An address of this machine on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def processes_of(home: Path) -> list[str]:
    """Every process that works on a home: by its environment, or by its command line as the server's do."""
    return [line for pid in _pids() if (line := _command_line(pid, str(home).encode()))]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _command_line(pid: int, home: bytes) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        around = Path(f"/proc/{pid}/environ").read_bytes() if os.access(f"/proc/{pid}/environ", os.R_OK) else b""
    except OSError:
        return ""
    is_ours = home in words or b"HARVESTER_HOME=" + home in around
    return f"{pid} {words.replace(bytes(1), b' ').decode(errors='replace')}" if is_ours and words else ""
