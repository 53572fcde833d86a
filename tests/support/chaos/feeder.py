"""Enqueuing over time, through every outage."""

import contextlib
import random
import threading
import time

from django.db import InterfaceError, OperationalError, close_old_connections, connections

from harvester.engine.enqueue import enqueue
from tests.support.chaos.kinds import BEFORE, FINISHING, INSIDE, KEYED

#: The share of the time in which jobs are enqueued; the rest is left for the last of them.
SHARE_OF_TIME = 0.8
LONGEST_JOB_SECONDS = 0.8
LANES = 5


class Feeder(threading.Thread):
    """Enqueues until as many jobs are acknowledged as asked for. What was not acknowledged may or may not exist."""

    def __init__(self, seed: int, jobs: int, seconds: float) -> None:
        super().__init__(name="chaos-feeder")
        self.acknowledged: dict[str, int] = {}
        self._random = random.Random(seed)
        self._jobs = jobs
        self._pause = seconds * SHARE_OF_TIME / jobs
        self._given_up = False

    def give_up(self) -> None:
        self._given_up = True
        self.join()

    def run(self) -> None:
        number = 0
        began = time.monotonic()
        while len(self.acknowledged) < self._jobs and not self._given_up:
            number += 1
            self._enqueue(f"job {number}", (FINISHING, KEYED)[number % 2])
            close_old_connections()
            time.sleep(max(0.0, began + number * self._pause - time.monotonic()))
        connections.close_all()

    def _enqueue(self, key: str, kind: str) -> None:
        fails = self._random.choices(["", BEFORE, INSIDE], [8, 1, 1])[0]
        lane = f"lane {self._random.randrange(LANES)}" if self._random.random() < 0.2 else None
        seconds = self._random.uniform(0, LONGEST_JOB_SECONDS) / (5 if lane else 1)
        with contextlib.suppress(OperationalError, InterfaceError):
            made = enqueue(kind, {"key": key, "seconds": seconds, "fails": fails}, lane=lane)
            self.acknowledged[key] = made.job_id
