"""Pages per second: Harvester's workers and a Scrapy spider, in turn, on copies of one database."""

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import page_world
from tests.bench.contender import ROOT
from tests.bench.page_world import Memory, wait_until
from tests.bench.server import Server
from tests.support.page_server import PageServer

#: A round that takes longer hangs.
LONGEST_ROUND_SECONDS = 1_800.0
# From the first claim to the last end of a page, by the database's clock. A page counts if it was read well, its price
# was written and its bytes are kept.
TALLY = """
SELECT (SELECT count(*) FROM run_parts WHERE outcome = 'OFFER' AND judged_at IS NOT NULL),
    (SELECT count(*) FROM prices), (SELECT count(*) FROM kept_pages),
    extract(epoch FROM max(finished_at) - min(started_at))::float8
FROM jobs WHERE kind = 'scraping.page' AND state = 'succeeded'
"""
SCRAPY_SCHEMA = """
CREATE TABLE scrapy_items (target_id uuid PRIMARY KEY, outcome text NOT NULL, amount text, found jsonb,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE scrapy_run (began_at timestamptz NOT NULL DEFAULT clock_timestamp());
"""
# From the first request to the last commit.
SCRAPY_TALLY = """
SELECT count(*), count(*) FILTER (WHERE outcome = 'OFFER'),
    extract(epoch FROM max(at) - (SELECT began_at FROM scrapy_run))::float8 FROM scrapy_items
"""
_OPEN = "SELECT count(*) FROM runs WHERE status = 'RUNNING'"


@dataclass(kw_only=True)
class Rounds:
    """What the rounds of one size measured.

    Attributes:
        targets: pages of a round.
        ours, scrapy: pages per second of each round.
        peak_mb: of our worker processes and their children, the most of all rounds.
        scrapy_mb: of the spider's process.
        page_kb: the mean size of the pages, as text.
    """

    targets: int
    ours: list[float] = field(default_factory=list)
    scrapy: list[float] = field(default_factory=list)
    peak_mb: float = 0.0
    scrapy_mb: float = 0.0
    page_kb: float = 0.0

    @property
    def ours_pages_s(self) -> float:
        return statistics.median(self.ours)

    @property
    def scrapy_pages_s(self) -> float | None:
        return statistics.median(self.scrapy) if self.scrapy else None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every case needs.

    Attributes:
        server: of the database.
        shops: the page server.
        home: Harvester's home.
        log: of the workers.
        workers, threads: how many processes read pages, and how many pages each at once.
        say: shows a line.
    """

    server: Server
    shops: PageServer
    home: Path
    log: Path
    workers: int
    threads: int
    say: Callable[[str], None]

    def forget_pages(self) -> None:
        shutil.rmtree(self.home / "pages", ignore_errors=True)


def prepare(bench: Bench, name: str, *, targets: int, domains: int, **more: Any) -> None:
    """Keep a database in which so many pages wait."""
    bench.server.restore("empty")
    with bench.server.connect() as connection:
        page_world.fill(connection, domains=domains, pages=targets, port=bench.shops.port, **more)
    enqueued = page_world.enqueue_due()
    if enqueued != targets:
        raise RuntimeError(f"{enqueued} of {targets} pages were enqueued")
    if bench.server.keeps(name):
        # Of a run in the same home that was aborted.
        bench.server.forget(name)
    bench.server.keep(name)


def measure(bench: Bench, *, targets: int, domains: int, rounds: int, with_scrapy: bool = True) -> Rounds:
    bench.shops.behave(page_bytes=page_world.PAGE_BYTES, robots=page_world.ROBOTS)
    name = f"pages_{targets}"
    prepare(bench, name, targets=targets, domains=domains)
    found = Rounds(targets=targets)
    for number in range(rounds):
        found.ours.append(_ours(bench, name, found))
        bench.say(f"{targets:,} pages, round {number + 1}: {found.ours[-1]:.1f}/s, {found.peak_mb:.0f} MB")
        if with_scrapy:
            found.scrapy.append(_scrapy(bench, name, found))
            bench.say(
                f"{targets:,} pages, round {number + 1}: Scrapy {found.scrapy[-1]:.1f}/s, {found.scrapy_mb:.0f} MB"
            )
    bench.server.forget(name)
    return found


def _ours(bench: Bench, name: str, found: Rounds) -> float:
    bench.server.restore(name)
    bench.forget_pages()
    with bench.server.connect() as connection, page_world.workers(bench.workers, bench.threads, bench.log) as working:

        def is_done() -> bool:
            working.alive()
            return connection.execute(_OPEN).fetchone()[0] == 0

        with Memory(working.pids) as memory:
            wait_until(is_done, LONGEST_ROUND_SECONDS, f"{found.targets} pages")
        offers, prices, kept, seconds = connection.execute(TALLY).fetchone()
        found.page_kb = connection.execute("SELECT avg(bytes)::float8 / 1000 FROM kept_pages").fetchone()[0]
        outcomes = connection.execute("SELECT outcome, count(*) FROM run_parts GROUP BY 1").fetchall()
    if {offers, prices, kept} != {found.targets}:
        raise RuntimeError(
            f"of {found.targets} pages there are {offers} offers, {prices} prices, {kept} kept: {outcomes}"
        )
    found.peak_mb = max(found.peak_mb, memory.peak_mb)
    return found.targets / seconds


def _scrapy(bench: Bench, name: str, found: Rounds) -> float:
    bench.server.restore(name)
    options = {"address": bench.server.address, "concurrency": bench.workers * bench.threads}
    with bench.server.connect() as connection:
        connection.execute(SCRAPY_SCHEMA)
        command = [sys.executable, "-m", "tests.bench.peer_scrapy", json.dumps(options, default=str)]
        with bench.log.open("ab") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            with Memory(lambda: [process.pid]) as memory:
                process.wait(LONGEST_ROUND_SECONDS)
        finally:
            process.kill()
            process.wait()
        items, offers, seconds = connection.execute(SCRAPY_TALLY).fetchone()
    if {items, offers} != {found.targets}:
        raise RuntimeError(f"of {found.targets} pages Scrapy has {items} items and {offers} offers; see {bench.log}")
    found.scrapy_mb = max(found.scrapy_mb, memory.peak_mb)
    return found.targets / seconds
