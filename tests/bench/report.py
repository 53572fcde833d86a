"""What was measured: the table, the bars, one JSON object and a page of the documentation."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.contender import ROOT
from tests.bench.ours import BACKLOG, COOL_LANES, HOT_SHARE
from tests.bench.pickup import Pickup

JSON_FILE = ROOT / "build" / "bench" / "engine.json"
PAGE = ROOT / "docs" / "benchmarks-engine.md"
PACKAGES = ("psycopg", "asyncpg", "uvloop", "procrastinate", "pgqueuer")

WHAT = {
    "ours_1x1": "Harvester, 1 thread",
    "ours_10x1": "Harvester, 10 threads",
    "ours_50x1": "Harvester, 50 threads",
    "ours_50x2": "Harvester, 2 processes of 50 threads",
    "ours_50x1_backlog_hot_lane": "Harvester, 50 threads, backlog",
    "bare_50x1": "bare loop, 50 at once",
    "bare_batches": "bare loop, batches of 50",
    "procrastinate_50x1": "procrastinate, 50 at once",
    "pgqueuer_50x1": "pgqueuer, 50 at once",
    "ours_many": "Harvester, 50 threads, many jobs",
    "ours_pinned": "Harvester, 50 threads, many jobs, old snapshot",
    "pgqueuer_many": "pgqueuer, 50 at once, many jobs",
    "pgqueuer_pinned": "pgqueuer, 50 at once, many jobs, old snapshot",
}
#: The contenders that are measured with an old snapshot open.
OLD_SNAPSHOT = ("ours", "pgqueuer")
#: What the JSON object holds besides the pick-up time.
KEYS = [key for key in WHAT if key != "bare_batches"]

INTRODUCTION = """
Written by `make bench-engine`; run it for the numbers of your machine. Compare ratios within one run only:
absolute numbers differ between machines and hours.
""".strip()

NOTES = f"""
- One server, started for this with the settings of the embedded database (commits are synchronous). Every contender
  works on a fresh copy of a database into which its jobs were enqueued, vacuumed and analyzed. Rounds are
  interleaved; the median counts.
- The clock runs from the first claim to the last ending, as the contender's own tables record them, so that no
  start-up counts. Every job must have run exactly once, by the handlers' count and by the tables, or there is no
  result.
- **Harvester**: its ordinary worker. Each job has a lease, a counted attempt, two events and a row that is kept.
- **Bare loop**: 50 connections of asyncpg in one event loop (uvloop); each takes one row by a SKIP LOCKED statement
  that deletes it, and commits. It has no retries, leases or history, and loses the job of a worker that dies. With
  batches of 50 on one connection it shows what the server could do at best.
- **procrastinate**: 50 coroutines, a pool of 51 open connections as its documentation says, finished jobs kept,
  uvloop. It fetches one job at a time.
- **pgqueuer**: asyncpg, one direct connection, batches of 50, the settings of `pgq autovac`, logged tables, uvloop.
  It writes endings in batches too, up to 0.1 s after the handler returned.
- **Backlog**: {BACKLOG:,} waiting jobs of the same queue, of which one lane owns {HOT_SHARE:.0%} and {COOL_LANES}
  lanes the rest. Only the jobs without a lane count, enqueued before or after the backlog, whichever is slower; the
  jobs of lanes that run meanwhile do not.
- **Old snapshot**: another session keeps a snapshot open from before the first job, as a dump or a long report does.
  Nothing that the jobs leave behind can be cleaned up meanwhile. 25 times as many jobs, one round each.
- **Pick-up**: from just before the enqueuer sends its COMMIT to the first line of the handler, in another process, of
  a worker with nothing else to do.
"""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One number that must be reached.

    Attributes:
        what: the number in words.
        figure: what was measured.
        limit: what is asked for.
        unit: behind both.
        at_most: whether the limit is an upper one.
    """

    what: str
    figure: float
    limit: float
    unit: str
    at_most: bool = False

    @property
    def reached(self) -> bool:
        return self.figure < self.limit if self.at_most else self.figure >= self.limit

    def cells(self) -> tuple[str, str, str, str]:
        asked = f"{'under' if self.at_most else 'at least'} {self.limit:g}{self.unit}"
        return self.what, f"{self.figure:.2f}{self.unit}", asked, "reached" if self.reached else "MISSED"


def bars(figures: dict[str, float], pickup: Pickup) -> list[Bar]:
    """What the engine must reach, from figures of one run."""
    ours = figures["ours_50x1"]
    backlog = figures["ours_50x1_backlog_hot_lane"]
    pinned = pinned_of_clean(figures)
    return [
        Bar(what="against procrastinate", figure=ours / figures["procrastinate_50x1"], limit=7, unit=" times"),
        Bar(what="against the bare loop", figure=100 * ours / figures["bare_50x1"], limit=20, unit=" %"),
        Bar(what="with the backlog, of without", figure=100 * backlog / ours, limit=80, unit=" %"),
        Bar(
            what=f"with an old snapshot, of without (pgqueuer: {100 * pinned['pgqueuer_pinned_of_clean']:.0f} %)",
            figure=100 * pinned["ours_pinned_of_clean"],
            limit=80,
            unit=" %",
        ),
        Bar(
            what=f"pick-up by an idle worker, p50 (p95: {pickup.p95:.1f} ms)",
            figure=pickup.p50,
            limit=50,
            unit=" ms",
            at_most=True,
        ),
    ]


def pinned_of_clean(figures: dict[str, float]) -> dict[str, float]:
    """What is left of the speed while an old snapshot is open."""
    return {f"{name}_pinned_of_clean": figures[f"{name}_pinned"] / figures[f"{name}_many"] for name in OLD_SNAPSHOT}


def speed_rows(figures: dict[str, float], rounds: dict[str, list[float]]) -> list[tuple[str, ...]]:
    """Name, median, slowest to fastest round, ratio to ours with 50 threads."""
    ours = figures["ours_50x1"]
    rows = []
    for key, what in WHAT.items():
        slowest, fastest = min(rounds[key]), max(rounds[key])
        ratio = f"{figures[key] / ours:.2f}"
        rows.append((what, f"{figures[key]:,.0f}", f"{slowest:,.0f} to {fastest:,.0f}", ratio))
    return rows


SPEED_HEAD = ("no-op jobs", "jobs/s, median", "slowest and fastest round", "of Harvester with 50 threads")
BAR_HEAD = ("bar", "measured", "asked", "")


def show(speed: Sequence[Sequence[str]], asked: Sequence[Bar]) -> None:
    console = Console()
    for head, rows in ((SPEED_HEAD, speed), (BAR_HEAD, [bar.cells() for bar in asked])):
        table = Table(*head)
        for row in rows:
            table.add_row(*row, style="bold red" if row[-1] == "MISSED" else None)
        console.print(table)


def write_json(figures: dict[str, float]) -> None:
    JSON_FILE.parent.mkdir(parents=True, exist_ok=True)
    JSON_FILE.write_text(json.dumps({key: round(value, 2) for key, value in figures.items()}, indent=2) + "\n")


def write_page(speed: Sequence[Sequence[str]], asked: Sequence[Bar], server: str) -> None:
    parts = [
        "# Benchmarks: the engine",
        INTRODUCTION,
        f"Measured {datetime.now(UTC):%Y-%m-%d} with `{command()}` on {machine()}; {versions(server)}.",
        markdown(SPEED_HEAD, speed),
        markdown(BAR_HEAD, [bar.cells() for bar in asked]),
        "## Method",
        NOTES.strip(),
    ]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n\n".join(parts) + "\n")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def command(target: str = "bench-engine") -> str:
    """What to type; where this machine keeps its databases is nobody's business."""
    given = sys.argv[1:]
    while "--home" in given:
        place = given.index("--home")
        del given[place : place + 2]
    return " ".join([f"make {target}", *([f'ARGS="{" ".join(given)}"'] if given else [])])


def machine() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GB of memory, {platform.system()}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def versions(server: str, names: Sequence[str] = PACKAGES) -> str:
    packages = [f"{name} {version(name)}" for name in names]
    return ", ".join([f"Python {platform.python_version()}", f"PostgreSQL {server}", *packages])
