"""A shop whose feed is run by worker processes, from a local SFTP server, and what that took."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.contender import ROOT
from tests.support.sftp_server import SftpServer

QUEUES = "feeds,decisions"
_TOOK = "SELECT state, error, started_at, finished_at FROM jobs WHERE id = ANY (%s)"
# One more may wait, which finds nothing left to do.
_WORDS = """
SELECT state, error, started_at, finished_at FROM jobs WHERE queue = 'search' AND state <> 'pending' AND id > %s
"""


@dataclass(frozen=True, kw_only=True)
class Took:
    """What a job took.

    Attributes:
        seconds: from its claim to its end, by the database's clock, so that the start of a process does not count.
        searchable_seconds: the same, to the end of the job that makes its offers found by text.
        wal_mb: what the server logged meanwhile.
        peak_mb: the most memory that the worker process had.
    """

    seconds: float
    searchable_seconds: float
    wal_mb: float
    peak_mb: float


class Shop:
    """One feed, and what its partner serves."""

    def __init__(self, server: SftpServer, name: str) -> None:
        from harvester.catalog.models import Retailer, Source
        from tests.support.feed_world import make_feed

        self._server, self._name = server, name
        retailer = Retailer.objects.create(name=name, website=f"https://{name}.example", domain=f"{name}.example")
        self.source = Source.objects.create(
            retailer=retailer, name=name, kind="AFFILIATE_FEED", expiry_hours=48, is_display_primary=True
        )
        self.feed = make_feed(self.source, server, path=f"/{name}.csv.gz")
        self._puts = 0

    def put(self, file: Path) -> None:
        """The partner replaces the catalog."""
        path = self._server.root / f"{self._name}.csv.gz"
        shutil.copy(file, path)
        # Servers report whole seconds; no two files may look alike.
        self._puts += 1
        os.utime(path, (1_700_000_000 + self._puts * 10,) * 2)

    def ask(self) -> int:
        from harvester.engine.enqueue import enqueue
        from harvester.feeds.jobs import RUN

        return enqueue(RUN, {"feed_id": str(self.feed.id), "trigger": "SCHEDULED"}).job_id

    def approve(self) -> int:
        from harvester.kernel.actor import Actor
        from harvester.runs import decisions as run_decisions
        from harvester.runs.models import Run

        run = Run.objects.get(source_id=self.source.pk, outcome="HELD")
        return run_decisions.request_approval(Actor(kind="person", id="bench", name="Bench"), run.id).job_id

    def outcome(self) -> str | None:
        from harvester.runs.models import Run

        return Run.objects.filter(source_id=self.source.pk).latest("no").outcome


class WorkerProcess:
    """`harvester worker --once` in a process of its own."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-S", "-E", str(ROOT / "tests" / "bench" / "measured.py")]
        command += [sys.executable, "-m", "tests.bench.warm_worker", "worker", *options]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "HARVESTER_LOG_LEVEL": "error"}
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    def peak_mb(self) -> float:
        """Wait for its end."""
        output, _ = self._process.communicate()
        report = json.loads(output)
        if report["code"]:
            raise RuntimeError(f"a worker process ended with code {report['code']}")
        return float(report["peak_mb"])


def work(connection: psycopg.Connection[Any], jobs: list[int], *, words: int = 0) -> Took:
    """Run jobs one after the other, each in a worker process of its own.

    Another worker waits all the while for `words` jobs that write search words.
    """
    before = _wal(connection)
    peak = 0.0
    searching = [WorkerProcess("--queues", "search", "--max-jobs", str(words))] if words else []
    for _ in jobs:
        peak = max(peak, WorkerProcess("--once", "--queues", QUEUES).peak_mb())
    peak = max(peak, *(process.peak_mb() for process in searching), 0.0)
    rows = _ended(connection.execute(_TOOK, [jobs]).fetchall())
    # The starts of processes in between do not count.
    seconds = sum((finished - started).total_seconds() for _, _, started, finished in rows)
    made = _ended(connection.execute(_WORDS, [max(jobs)]).fetchall())
    behind = [(row[3] - max(run[3] for run in rows)).total_seconds() for row in made]
    return Took(
        seconds=seconds,
        searchable_seconds=seconds + max(0.0, *behind, 0.0),
        wal_mb=(_wal(connection) - before) / (1 << 20),
        peak_mb=peak,
    )


def _ended(rows: list[Any]) -> list[Any]:
    for state, error, _, _ in rows:
        if state != "succeeded":
            raise RuntimeError(f"a job ended as {state}: {error}")
    return rows


def _wal(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
    return int(row[0])
