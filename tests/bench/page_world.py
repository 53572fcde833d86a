"""Shops on this machine whose pages are due, and real workers that read them."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.bench.contender import ROOT
from tests.bench.scrape_ticks import Attempt

#: Between which sizes pages are, as text.
PAGE_BYTES = [150_000, 300_000]
#: So high that nobody ever waits for a turn.
UNBOUND = 10_000.0
SETTINGS = {
    "HARVESTER_EGRESS_ALLOW": "127.0.0.0/8",
    "HARVESTER_SCRAPE_CONTACT_URL": "https://bot.harvester.example/",
    "HARVESTER_SCRAPE_CONTACT_MAIL": "bot@harvester.example",
    "HARVESTER_SCRAPE_PENDING": "1000000",
    "HARVESTER_SCRAPE_PENDING_PER_SOURCE": "1000000",
}
ROBOTS = "User-agent: *\nDisallow: /checkout/\nDisallow: /*?sort=\nAllow: /\n"
MEGABYTE_KB = 1024

_FILL = """
INSERT INTO retailers (id, name, website, domain)
SELECT gen_random_uuid(), d, 'http://' || d, d
FROM (SELECT 'shop' || n || '.urn.arpa' AS d FROM generate_series(0, %(domains)s - 1) n) shops;
INSERT INTO sources (id, retailer_id, name, kind, url, adapter_id, scrape_enabled, tos_reviewed_at, tos_approved_by,
    scrape_config, expiry_hours)
SELECT gen_random_uuid(), id, name, 'DIRECT', website, 'structured', true, now(), 'bench',
    jsonb_build_object('requests_per_second', %(rate)s::float8), 72 FROM retailers;
INSERT INTO scrape_targets (id, source_id, url, canonical_url, adapter_id, schedule, due_at, created_by)
SELECT gen_random_uuid(), s.id, u.url, u.url, 'structured', '17 */4 * * *', now() - interval '1 hour', 'bench'
FROM sources s, generate_series(0, %(each)s - 1) n,
    LATERAL (SELECT 'http://' || CASE WHEN %(subdomains)s AND n %% 2 = 1 THEN 'www.' ELSE '' END || s.name || ':'
             || %(port)s || '/product/' || n AS url) u;
"""


def fill(
    connection: Any, *, domains: int, pages: int, port: int, rate: float = UNBOUND, subdomains: bool = False
) -> None:
    """Make shops with pages that are due: as many pages of each shop."""
    values = {"domains": domains, "each": pages // domains, "port": port, "rate": rate, "subdomains": subdomains}
    # The others do not take several statements with values.
    with psycopg.ClientCursor(connection) as cursor:
        cursor.execute(_FILL, values)
        cursor.execute("ANALYZE")


def enqueue_due() -> int:
    """Let a tick of the scheduler enqueue all due pages; return how many."""
    from django.conf import settings

    from harvester.scraping.schedule import tick

    before = settings.CONFIG
    settings.CONFIG = replace(before, scrape_pending=1_000_000, scrape_pending_per_source=1_000_000)
    try:
        return tick(Attempt())["enqueued"]
    finally:
        settings.CONFIG = before


class Workers:
    """Processes of `harvester worker`; more can be started, and each can be killed."""

    def __init__(self, threads: int, log: Path, **env: str) -> None:
        self._threads, self._log, self._env = threads, log, {**os.environ, **SETTINGS, **env}
        self.running: list[subprocess.Popen] = []

    def start(self, count: int, *more: str) -> None:
        for _ in range(count):
            command = [
                sys.executable,
                "-m",
                "tests.bench.page_worker",
                "worker",
                "--threads",
                str(self._threads),
                *more,
            ]
            with self._log.open("ab") as log:
                process = subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=log, stderr=log)
            self.running.append(process)

    def kill(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait()
        self.running.remove(process)

    def stop(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(40)
            process.kill()
            process.wait()
        self.running.clear()

    def pids(self) -> list[int]:
        """Return the workers and their children."""
        return [pid for process in self.running for pid in (process.pid, *_children(process.pid))]

    def alive(self) -> None:
        """Raise if one has ended by itself."""
        if ended := [process.returncode for process in self.running if process.poll() is not None]:
            raise RuntimeError(f"workers ended with {ended}; see {self._log}")

    def cpu_seconds(self) -> float:
        """Return the processor time of the workers so far, with that of children that ended."""
        ticks = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def workers(count: int, threads: int, log: Path, *more: str, **env: str) -> Iterator[Workers]:
    made = Workers(threads, log, **env)
    try:
        made.start(count, *more)
        yield made
    finally:
        made.stop()


class Memory:
    """The most proportional memory that some processes had together."""

    def __init__(self, pids: Callable[[], list[int]], seconds: float = 0.5) -> None:
        self.peak_mb = 0.0
        self._pids, self._seconds, self._ended = pids, seconds, threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._seconds):
            self.peak_mb = max(self.peak_mb, sum(map(_pss_mb, self._pids())))


def _pss_mb(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / MEGABYTE_KB
    return 0.0


def _children(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return [each for child in found for each in (child, *_children(child))]


def wait_until(is_true: Callable[[], bool], seconds: float, what: str, every: float = 0.5) -> None:
    until = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} took longer than {seconds:g} s")
        time.sleep(every)
