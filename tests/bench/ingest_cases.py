"""The cases: one catalog through its whole life, the floor before each step, again and again."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from tests.bench import floor
from tests.bench.catalog_files import CHANGES
from tests.bench.seeded import SEEDED
from tests.bench.server import Server
from tests.bench.shop import Shop, Took, work
from tests.support.sftp_server import SftpServer

APPROVE = "approve"
STEPS = (*CHANGES, APPROVE)
#: How each file must end; the others are promoted.
HELD = "missing20"
_TABLES = "offers, offer_words, source_products, prices, held_changes"
#: Due is whatever was written so long ago.
_ALL_DUE = "UPDATE offers SET last_priced_at = last_priced_at - interval '48 hours' WHERE source_id = %s"

Log = Callable[[str], None]


@dataclass
class Figures:
    """What was measured for catalogs of one size."""

    rows: int
    floors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[str, list[Took]] = field(default_factory=lambda: defaultdict(list))

    @property
    def floor_s(self) -> float:
        return median(seconds for taken in self.floors.values() for seconds in taken)

    def seconds(self, step: str) -> float:
        return median(took.seconds for took in self.steps[step])

    def searchable_seconds(self, step: str) -> float:
        return median(took.searchable_seconds for took in self.steps[step])

    def wal_mb(self, step: str) -> float:
        return median(took.wal_mb for took in self.steps[step])

    def peak_mb(self) -> float:
        """The median of what the workers of each step needed, for the step that needs most."""
        return max(median(took.peak_mb for took in taken) for taken in self.steps.values())

    def ratio(self, step: str) -> float:
        """To the floors right before the step."""
        pairs = zip(self.steps[step], self.floors[step], strict=True)
        return median(took.seconds / seconds for took, seconds in pairs)

    def searchable_ratio(self, step: str) -> float:
        pairs = zip(self.steps[step], self.floors[step], strict=True)
        return median(took.searchable_seconds / seconds for took, seconds in pairs)


def measure(server: Server, sftp: SftpServer, files: dict[str, Path], rows: int, *, rounds: int, log: Log) -> Figures:
    """So many lives of a catalog of that size."""
    from harvester.catalog.search_index import come_later

    figures = Figures(rows)
    for number in range(rounds):
        server.restore(SEEDED)
        with server.connect() as connection:
            for step, took, seconds in _life(connection, Shop(sftp, "bench"), files, words=int(come_later(rows))):
                figures.floors[step].append(seconds)
                figures.steps[step].append(took)
                log(
                    f"{rows:,} rows, round {number + 1}: {step} {took.seconds:.1f} s = {took.seconds / seconds:.2f} of "
                    f"the floor ({took.searchable_seconds / seconds:.2f} until found by text), {took.wal_mb:.0f} MB "
                    f"logged, {took.peak_mb:.0f} MB of memory"
                )
    return figures


def _life(
    connection: psycopg.Connection[Any], shop: Shop, files: dict[str, Path], *, words: int
) -> Iterator[tuple[str, Took, float]]:
    """Each step of a catalog's life; with so many jobs for the words of its new products."""
    for step in STEPS:
        if step == "heartbeat":
            connection.execute(_ALL_DUE, [shop.source.id])
        settle(connection)
        seconds = floor.measure(connection, files[HELD if step == APPROVE else step])
        yield step, _step(connection, shop, step, files, words=words if step == "cold" else 0), seconds


def _step(connection: psycopg.Connection[Any], shop: Shop, step: str, files: dict[str, Path], *, words: int) -> Took:
    if step != APPROVE:
        shop.put(files[step])
    connection.execute("CHECKPOINT")
    jobs = [shop.approve() if step == APPROVE else shop.ask()]
    took = work(connection, jobs, words=words)
    expected = "HELD" if step == HELD else "APPROVED" if step == APPROVE else "PROMOTED"
    if shop.outcome() != expected:
        raise RuntimeError(f"{step} ended as {shop.outcome()} instead of {expected}")
    return took


def settle(connection: psycopg.Connection[Any]) -> None:
    """As autovacuum and the checkpointer leave the tables in the hours between two runs."""
    connection.execute(f"VACUUM ANALYZE {_TABLES}")
    connection.execute("CHECKPOINT")
