"""What happens to the workers and to the database while jobs run."""

import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.own_cluster import OwnCluster
from tests.support.waiting import wait_for
from tests.support.workers import Process, start_worker_process

OPTIONS = ("heartbeat_seconds=0.3", "stuck_seconds=3", "stale_check_seconds=0.6", "grace_seconds=2")

#: Enough workers must be left to take over, so that frozen ones come back when their jobs were done by others.
MOST_FROZEN = 3


@dataclass(eq=False)
class Victim:
    """A worker process, and what is going to happen to it."""

    process: Process
    log: Path
    frozen_until: float | None = None
    thaws: bool = False


@dataclass
class Storm:
    """Kills, freezes, stops and replaces workers, and restarts the database, as the seed has it."""

    cluster: OwnCluster
    seed: int
    logs: Path
    workers: int = 4
    threads: int = 6
    counts: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._victims: list[Victim] = []

    def rage(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._replace()
        while time.monotonic() < until:
            time.sleep(self._random.uniform(0.3, 2.5))
            self._end_freezes()
            self._random.choices([self._kill, self._freeze, self._stop, self._restart], [4, 4, 1, 1])[0]()
            self._replace()

    def calm_down(self) -> None:
        """Thaw everybody and have all workers working."""
        for victim in self._victims:
            victim.frozen_until = victim.frozen_until and 0.0
        self._end_freezes()
        self._replace()

    def end(self) -> None:
        """Have all workers stop as asked."""
        for victim in self._victims:
            wait_for(lambda: "WORKER_STARTED" in victim.log.read_text(), "the start of a worker", 60)  # noqa: B023
            victim.process.send_signal(signal.SIGTERM)
        for victim in self._victims:
            if victim.process.wait(60) != 0:
                self.unexplained.append(f"a worker ended with {victim.process.returncode} when it was asked to stop")

    def clear_away(self) -> None:
        for victim in self._victims:
            if victim.process.poll() is None:
                victim.process.kill()
            victim.process.wait()

    def _replace(self) -> None:
        for victim in [victim for victim in self._victims if victim.process.poll() is not None]:
            self._victims.remove(victim)
            self.unexplained.append(f"a worker ended by itself with {victim.process.returncode}")
        while len(self._awake()) < self.workers:
            self.counts["workers started"] += 1
            number = self.counts["workers started"]
            log = self.logs / f"worker-{number}.log"
            log.touch()
            arguments = (f"name=w{number}", f"threads={self.threads}", *OPTIONS)
            process = start_worker_process(*arguments, TEST_LOG=str(log))
            self._victims.append(Victim(process, log))

    def _awake(self) -> list[Victim]:
        return [victim for victim in self._victims if victim.frozen_until is None]

    def _one_awake(self) -> Victim | None:
        awake = self._awake()
        return self._random.choice(awake) if awake else None

    def _kill(self) -> None:
        victim = self._one_awake()
        if victim:
            self._bury(victim, signal.SIGKILL, "killed (-9)")

    def _stop(self) -> None:
        victim = self._one_awake()
        if victim:
            self._bury(victim, signal.SIGTERM, "stopped (SIGTERM)")

    def _bury(self, victim: Victim, sign: signal.Signals, how: str) -> None:
        victim.process.send_signal(sign)
        wait_for(lambda: victim.process.poll() is not None, f"the end of a worker that was {how}", 60)
        self._victims.remove(victim)
        self.counts[how] += 1

    def _freeze(self) -> None:
        victim = self._one_awake()
        if victim and len(self._victims) - len(self._awake()) < MOST_FROZEN:
            victim.process.send_signal(signal.SIGSTOP)
            victim.frozen_until = time.monotonic() + self._random.uniform(0.5, 15)
            victim.thaws = self._random.random() < 0.8
            self.counts["frozen (SIGSTOP)"] += 1

    def _end_freezes(self) -> None:
        for victim in [victim for victim in self._victims if victim.frozen_until is not None]:
            if victim.frozen_until < time.monotonic():
                self._thaw(victim) if victim.thaws else self._bury(victim, signal.SIGKILL, "killed while frozen")

    def _thaw(self, victim: Victim) -> None:
        victim.process.send_signal(signal.SIGCONT)
        victim.frozen_until = None
        self.counts["thawed (SIGCONT)"] += 1

    def _restart(self) -> None:
        how = self._random.choice(["fast", "immediate", "crash"])
        self.cluster.restart(how)
        self.counts[f"database restarted ({how})"] += 1
