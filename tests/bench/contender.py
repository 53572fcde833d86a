"""What every contender is asked to do, and how its speed is read from its own tables."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import psycopg

ROOT = Path(__file__).parents[2]
#: Ends a contender that hangs; no contender comes near it.
LONGEST_ROUND_SECONDS = 300


class Tally(NamedTuple):
    """What a contender's tables say after a round, by the database's clock."""

    first_claim: datetime
    last_ending: datetime
    claims: int
    endings: int

    @property
    def rate(self) -> float:
        return self.endings / (self.last_ending - self.first_claim).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One line of the table.

    Attributes:
        name: its key in the results.
        module: where its `prepare(address, jobs, ...)`, `start(address, ...)` and `tally(connection)` are.
        jobs: how many jobs a round has.
        setup: further arguments of `prepare`.
        processes: how many worker processes share the work.
        how: further arguments of `start`.
        jobs_of: the contender whose enqueued jobs it works on; its own by default.
        rounds: how many rounds it takes part in; all by default.
        pinned: whether another session keeps a snapshot open from before the first job.
    """

    name: str
    module: str
    jobs: int
    setup: dict[str, Any] = field(default_factory=dict)
    processes: int = 1
    how: dict[str, Any] = field(default_factory=dict)
    jobs_of: str = ""
    rounds: int | None = None
    pinned: bool = False

    def code(self) -> ModuleType:
        return importlib.import_module(f"tests.bench.{self.module}")


class Child:
    """A worker process that is ready to work and waits for the word."""

    def __init__(self, contender: Contender, address: dict[str, Any]) -> None:
        options = json.dumps({"module": contender.module, "address": address, "how": contender.how})
        command = [sys.executable, "-m", "tests.bench.contender", options]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.expect("ready")

    def expect(self, word: str) -> None:
        line = self.read()
        if line != word:
            raise RuntimeError(f"a worker process said {line!r} instead of {word!r}")

    def read(self) -> str:
        return self._process.stdout.readline().strip()

    def go(self) -> None:
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> list[int]:
        """The ids of the jobs whose handler ran, as the process itself counted them."""
        output, _ = self._process.communicate(timeout=LONGEST_ROUND_SECONDS)
        if self._process.returncode:
            raise RuntimeError(f"a worker process ended with code {self._process.returncode}")
        return json.loads(output)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def measure(contender: Contender, address: dict[str, Any], connection: psycopg.Connection) -> float:
    """Jobs per second of one round; every job must have run exactly once."""
    if contender.pinned:
        with psycopg.connect(**address) as old:
            old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            old.execute("SELECT count(*) FROM pg_class")
            return measure(replace(contender, pinned=False), address, connection)
    children: list[Child] = []
    try:
        children += [Child(contender, address) for _ in range(contender.processes)]
        for child in children:
            child.go()
        handled = [job_id for child in children for job_id in child.result()]
    finally:
        for child in children:
            child.end()
    tally = contender.code().tally(connection)
    _check(contender, handled, tally)
    return tally.rate


def _check(contender: Contender, handled: list[int], tally: Tally) -> None:
    found = (len(handled), len(set(handled)), tally.claims, tally.endings)
    if set(found) != {contender.jobs}:
        raise RuntimeError(
            f"{contender.name} had {contender.jobs} jobs, but handlers ran {found[0]} times for {found[1]} jobs, "
            f"and its tables know {tally.claims} claims and {tally.endings} endings."
        )


def _child() -> None:
    options = json.loads(sys.argv[1])
    module = importlib.import_module(f"tests.bench.{options['module']}")
    work: Callable[[], list[int]] = module.start(options["address"], **options["how"])
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    sys.stdin.readline()
    print(json.dumps(work()), flush=True)  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    _child()
