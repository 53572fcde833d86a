"""Keeps child processes running, restarts those that end, and stops all of them in order."""

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

#: Seconds before a child that ended is started again: doubling from the first to the last.
FIRST_WAIT_SECONDS, LAST_WAIT_SECONDS = 1.0, 60.0
#: A child that ran this long was well; its next end counts as the first again.
WELL_SECONDS = 60.0
#: Between two looks when nothing happens; a child that ends is noticed at once.
LOOK_SECONDS = 2.0
#: What a child may take beyond the grace time of its jobs before it is killed.
BEYOND_GRACE_SECONDS = 15.0


def wait_after(failures: int) -> float:
    """Seconds before a child is started again that has ended this often in a row."""
    return min(FIRST_WAIT_SECONDS * 2.0 ** (failures - 1), LAST_WAIT_SECONDS)


@dataclass
class Child:
    """One process to keep running.

    Attributes:
        name: as people see it.
        arguments: what follows `harvester`.
        env: changes to the environment.
        log_file: where its output goes; where the supervisor's own goes, unless set.
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
        """In a session of its own: Ctrl-C in a terminal reaches the supervisor alone."""
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
        """Nothing happens to a child that has ended: Popen knows, so no stranger with its pid is met."""
        if self.process is not None:
            self.process.send_signal(number)

    def ended(self) -> bool:
        """Whether it has just ended; if so, when it starts again is decided."""
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
    """Starts children in order and keeps them running until a stop is asked for."""

    def __init__(self, children: Sequence[Child], stop: StopRequest, *, grace_seconds: float) -> None:
        self.children = list(children)
        self._stop = stop
        self._patience = grace_seconds + BEYOND_GRACE_SECONDS
        # Without a handler a child's end would wake nobody.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self) -> None:
        for child in self.children:
            child.start()

    def run(self, tend: Callable[[], None]) -> None:
        """Until a stop is asked for; `tend` is called now and then."""
        while not self._stop.asked:
            self._stop.wait(self.look_after())
            try:
                tend()
            except HarvesterError as error:
                log.warning("TENDING_FAILED", error=str(error))

    def look_after(self) -> float:
        """Start what is due again; answers the seconds until the next look."""
        waits = [LOOK_SECONDS]
        for child in self.children:
            child.ended()
            if child.process is None and time.monotonic() >= child.restart_at:
                child.start()
            elif child.process is None:
                waits.append(max(child.restart_at - time.monotonic(), 0.01))
        return min(waits)

    def stop(self) -> None:
        """Ask all to stop, in the reverse order of their start; kill what does not within the grace time."""
        for child in reversed(self.children):
            child.send(signal.SIGTERM)
        deadline = time.monotonic() + self._patience
        for child in reversed(self.children):
            self._await_end(child, deadline)

    @staticmethod
    def _await_end(child: Child, deadline: float) -> None:
        if child.process is None:
            return
        try:
            child.process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            log.warning("PROCESS_KILLED", process=child.name, pid=child.pid)
            child.process.kill()
            child.process.wait()
        log.info("PROCESS_STOPPED", process=child.name, status=child.process.returncode)
        child.process = None
