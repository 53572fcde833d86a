"""The supervisor of child processes: it restarts those that end, and stops all of them in order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from harvester.cli.signals import StopRequest
from harvester.kernel.errors import HarvesterError

log = structlog.get_logger(__name__)

#: Before a child that ended is restarted: doubling from the first to the last.
FIRST_WAIT_SECONDS, LAST_WAIT_SECONDS = 1.0, 60.0
#: A child that ran this long counts as healthy: the wait after its next end is the first again.
WELL_SECONDS = 60.0
#: Between checks; a child that ends wakes the supervisor at once.
LOOK_SECONDS = 2.0
#: Time to stop in addition to the grace time of a child's jobs, before it is killed.
BEYOND_GRACE_SECONDS = 15.0


def wait_after(failures: int) -> float:
    """Return the seconds before the restart of a child that ended this many times in a row."""
    return min(FIRST_WAIT_SECONDS * 2.0 ** (failures - 1), LAST_WAIT_SECONDS)


@dataclass
class Child:
    """One process to keep running.

    Attributes:
        name: for people.
        arguments: of the `harvester` command.
        env: added to the environment.
        log_file: gets its output; without one it goes where the supervisor's goes.
    """

    name: str
    arguments: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    log_file: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    failures: int = 0

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def start(self) -> None:
        """Start it in its own session, so that Ctrl-C in a terminal reaches only the supervisor."""
        with self.log_file.open("ab") if self.log_file else nullcontext() as log_file:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "harvester", *self.arguments, "--parent", str(os.getpid())],
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
            )
        self.started_at = time.monotonic()
        log.info("PROCESS_STARTED", process=self.name, pid=self.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal. Popen sends none to a child that has ended, so another process with its pid is safe."""
        if self.process is not None:
            self.process.send_signal(number)

    def ended(self) -> bool:
        """Return whether it has just ended, and then set the time of its restart."""
        if self.process is None or self.process.poll() is None:
            return False
        now = time.monotonic()
        self.failures = 1 if now - self.started_at >= WELL_SECONDS else self.failures + 1
        wait = wait_after(self.failures)
        self.restart_at = now + wait
        log.warning(
            "PROCESS_ENDED", process=self.name, pid=self.pid, status=self.process.returncode, restart_in_seconds=wait
        )
        self.process = None
        return True


class Supervisor:
    """Starts children in order and keeps them running until a stop is requested."""

    def __init__(self, children: Sequence[Child], stop: StopRequest, *, grace_seconds: float) -> None:
        self.children = list(children)
        self._stop = stop
        self._patience = grace_seconds + BEYOND_GRACE_SECONDS
        # Without a handler, the end of a child would not wake the supervisor.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self) -> None:
        for child in self.children:
            child.start()

    def run(self, tend: Callable[[], None]) -> None:
        """Keep the children running until a stop is requested, and call `tend` about every LOOK_SECONDS."""
        while not self._stop.asked:
            self._stop.wait(self.look_after())
            try:
                tend()
            except HarvesterError as error:
                log.warning("TENDING_FAILED", error=str(error))

    def look_after(self) -> float:
        """Restart the children that are due, and return the seconds until the next check."""
        waits = [LOOK_SECONDS]
        for child in self.children:
            child.ended()
            if child.process is None and time.monotonic() >= child.restart_at:
                child.start()
            elif child.process is None:
                waits.append(max(child.restart_at - time.monotonic(), 0.01))
        return min(waits)

    def stop(self) -> None:
        """Stop all children in reverse order, and kill those that do not stop within the grace time."""
        for child in reversed(self.children):
            child.send(signal.SIGTERM)
        deadline = time.monotonic() + self._patience
        for child in reversed(self.children):
            if child.process is None:
                continue
            try:
                child.process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                log.warning("PROCESS_KILLED", process=child.name, pid=child.pid)
                child.process.kill()
                child.process.wait()
            log.info("PROCESS_STOPPED", process=child.name, status=child.process.returncode)
            child.process = None
