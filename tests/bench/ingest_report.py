"""What was measured of catalogs: tables, bars, one JSON object and a page of the documentation."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

from rich.console import Console
from rich.table import Table

from tests.bench.contender import ROOT
from tests.bench.ingest_cases import STEPS, Figures
from tests.bench.ingest_more import Readers, Reruns, Taken, of_floor
from tests.bench.report import BAR_HEAD, Bar, command, machine, markdown, versions

JSON_FILE = ROOT / "build" / "bench" / "ingest.json"
PAGE = ROOT / "docs" / "benchmarks.md"
PACKAGES = ("psycopg", "polars", "dlt", "pyarrow", "asyncssh")
WHAT = {
    "cold": "cold: every product is new",
    "unchanged": "unchanged, one byte differs",
    "changed5": "5 % of prices changed",
    "changed100": "100 % of prices changed",
    "heartbeat": "unchanged, every price due",
    "titles50": "50 % of titles changed",
    "missing20": "20 % missing: held",
    "approve": "20 % missing: approved",
}
#: Fewer are not enough for a claim: the floor alone varies by a third.
LEAST_ROUNDS = 5
#: Times the floor.
MOST = {"cold": 6.0, "unchanged": 2.5, "changed5": 3.0, "changed100": 7.0, "heartbeat": 7.0, "approve": 1.5}
#: How many times as fast as the tuned peers, which keep neither prices nor gates nor a search index.
LEAST_OF_PEERS = {
    ("dlt", "cold"): 1.3,
    ("dlt", "unchanged"): 4.0,
    ("chunked", "cold"): 1.5,
    ("chunked", "unchanged"): 4.0,
}
CASE_HEAD = ("rows", "case", "seconds", "of the floor", "slowest to fastest", "logged MB", "memory MB")
MORE_HEAD = ("also measured", "")

INTRODUCTION = """
Written by `make bench-ingest`; run it for the numbers of your machine. Compare ratios within one run only:
absolute numbers differ between machines and hours.
""".strip()
NOTES = """
- One server, started for this with the settings of the embedded database (commits are synchronous), with the offers
  and prices of other sources in it. Every round begins with a copy of that database, and a shop that is new.
- **Floor**: gunzip in Python and COPY of the same file into one logged table of texts without an index, right before
  each step. A ratio is the median of the ratios of each round to the floor right before it.
- **Steps**: a feed run as a job, by `harvester worker --once` in a process of its own, from an SFTP server of this
  machine, 13 columns, gzip. The clock is the job's: from its claim to its end, by the database, with the worker's code
  loaded before. Offers are visible when the run ends. Of a cold run the words by which they are found are written by
  a job of their own, on a second worker, and "until found by text" ends with that.
- Before each step the tables are vacuumed and a checkpoint is written, as autovacuum and the checkpointer would have
  done in the hours between two runs. Every page that is touched for the first time is therefore logged as a whole.
- **Memory**: the most that the worker process had at any time, as the kernel counts it.
- **dlt**: Arrow tables, CSV files loaded by COPY, `merge` with the strategy `upsert`, into one table with a primary
  key: no prices, gates or search. It reads the file from the disk.
- **Chunked upserts**: 1,000 rows a chunk, `INSERT ... ON CONFLICT` through a pipelined executemany, the newest prices
  of a chunk in one query, one commit a chunk; no gates or search. It reads the file from the disk.
- **Faster than a peer**: how many times the floor the peer took, by how many times the floor Harvester took; each floor
  was measured right before. So it is for the runs of one feed, the first ones and those after 100.
- **Readers**: a mix of searches over the API, one after the other, with nothing else going on and while a run
  promotes a change of every price.
""".strip()


@dataclass
class Results:
    """All that one run measured; what was left out is empty."""

    sizes: list[Figures] = field(default_factory=list)
    peers: dict[str, Taken] = field(default_factory=dict)
    readers: Readers = field(default_factory=Readers)
    reruns: Reruns = field(default_factory=Reruns)
    server: str = ""

    @property
    def large(self) -> Figures | None:
        return self.sizes[-1] if self.sizes else None

    @property
    def small(self) -> Figures | None:
        """A fifth of the large one."""
        return next((size for size in self.sizes if size.rows * 5 == self.sizes[-1].rows), None)


def report(results: Results, console: Console, *, write: bool) -> int:
    """Show everything and write it down; whether a bar was missed is the exit code."""
    figures, asked = as_json(results), list(bars(results))
    cases, more = case_rows(results), more_rows(figures, results)
    for head, rows in ((CASE_HEAD, cases), (MORE_HEAD, more), (BAR_HEAD, [bar.cells() for bar in asked])):
        table = Table(*head)
        for row in rows:
            table.add_row(*row, style="bold red" if row[-1] == "MISSED" else None)
        console.print(table)
    JSON_FILE.parent.mkdir(parents=True, exist_ok=True)
    JSON_FILE.write_text(json.dumps(figures, indent=2) + "\n")
    if write:
        _write_page(results, cases, more, asked)
    return 0 if all(bar.reached for bar in asked) else 1


def as_json(results: Results) -> dict[str, float | int | None]:
    """Every key, whether it was measured or not."""
    large, small = results.large, results.small

    def step(figures: Figures | None, name: str) -> float | None:
        return round(figures.seconds(name), 3) if figures else None

    def middle(taken: Sequence[float]) -> float | None:
        return round(median(taken), 3) if taken else None

    return {
        "rows": large.rows if large else None,
        "floor_s": round(large.floor_s, 3) if large else None,
        "cold_s": step(large, "cold"),
        "cold_searchable_s": round(large.searchable_seconds("cold"), 3) if large else None,
        "unchanged_s": step(large, "unchanged"),
        "changed5_s": step(large, "changed5"),
        "changed100_s": step(large, "changed100"),
        "approve_s": step(large, "approve"),
        **{f"{name}_s": middle(_seconds(results.peers.get(name, []))) for name in _PEER_KEYS},
        "peak_mb_500k": round(large.peak_mb(), 1) if large else None,
        "peak_mb_100k": round(small.peak_mb(), 1) if small else None,
        "cold_s_100k": step(small, "cold"),
        "rerun_s_after_100_runs": middle(_seconds(results.reruns.late)),
        "search_p95_ms_idle": _p95(results.readers.idle),
        "search_p95_ms_promoting": _p95(results.readers.promoting),
    }


_PEER_KEYS = ("dlt_cold", "dlt_unchanged", "chunked_cold", "chunked_unchanged")


def _seconds(taken: Taken) -> list[float]:
    return [seconds for seconds, _ in taken]


def _p95(taken: list[float]) -> float | None:
    return round(Readers.p95(taken), 3) if len(taken) > 1 else None


def bars(results: Results) -> Iterator[Bar]:
    """What was asked for, as far as it was measured."""
    large, small, measured = results.large, results.small, as_json(results)
    if large:
        for step, most in MOST.items():
            yield _at_most(WHAT[step], large.ratio(step), most, " x floor")
        yield _at_most("cold, until found by text", large.searchable_ratio("cold"), 8.0, " x floor")
        yield _at_most("memory of the worker", large.peak_mb(), 400, " MB")
    if large and small:
        yield _at_most("its growth from a fifth of the rows", large.peak_mb() / small.peak_mb(), 1.1, " times")
        growth = large.seconds("cold") / small.seconds("cold")
        yield _at_most("time for five times the rows, cold", growth / 5, 1.15, " times linear")
    if large and results.peers:
        for (name, case), least in LEAST_OF_PEERS.items():
            ratio = of_floor(results.peers[f"{name}_{case}"]) / large.ratio(case)
            yield Bar(what=f"faster than {name}, {case}", figure=ratio, limit=least, unit=" times")
    yield from _reader_bars(results, measured)


def _reader_bars(results: Results, measured: dict[str, float | int | None]) -> Iterator[Bar]:
    if results.reruns.late:
        growth = of_floor(results.reruns.late) / of_floor(results.reruns.early)
        yield _at_most("unchanged after 100 runs, of the first ones", growth, 1.2, " times")
    if measured["search_p95_ms_promoting"] and measured["search_p95_ms_idle"]:
        ratio = measured["search_p95_ms_promoting"] / measured["search_p95_ms_idle"]
        yield _at_most("searches while promoting, p95 of idle", ratio, 2, " times")
        yield _at_most("waits for a lock over 100 ms", float(results.readers.waits), 1, "")


def _at_most(what: str, figure: float, limit: float, unit: str) -> Bar:
    return Bar(what=what, figure=figure, limit=limit, unit=unit, at_most=True)


def more_rows(figures: dict[str, float | int | None], results: Results) -> list[tuple[str, str]]:
    names = (*(f"{key}_s" for key in _PEER_KEYS), "rerun_s_after_100_runs")
    names += ("search_p95_ms_idle", "search_p95_ms_promoting")
    return [(name, f"{figures[name]:.2f}") for name in names if figures[name] is not None]


def case_rows(results: Results) -> list[tuple[str, ...]]:
    return [row for figures in results.sizes for row in _rows_of(figures)]


def _rows_of(figures: Figures) -> list[tuple[str, ...]]:
    floors = [seconds for taken in figures.floors.values() for seconds in taken]
    floor = (f"{figures.rows:,}", "floor: gunzip and COPY", f"{figures.floor_s:.2f}", "1.00", _range(floors), "", "")
    return [floor, *(_row(figures, step) for step in STEPS)]


def _row(figures: Figures, step: str) -> tuple[str, ...]:
    taken = figures.steps[step]
    return (
        f"{figures.rows:,}",
        WHAT[step],
        f"{figures.seconds(step):.2f}",
        f"{figures.ratio(step):.2f}",
        _range([took.seconds for took in taken]),
        f"{figures.wal_mb(step):,.0f}",
        f"{median(took.peak_mb for took in taken):.0f}",
    )


def _range(seconds: list[float]) -> str:
    return f"{max(seconds):.2f} to {min(seconds):.2f}"


def _caution(results: Results) -> str:
    """What a reader must know before believing a figure."""
    rounds = len(results.large.steps["cold"]) if results.large else 0
    if rounds >= LEAST_ROUNDS:
        return ""
    load = os.getloadavg()[2]
    return (
        f"**{rounds} of {LEAST_ROUNDS} rounds, at a load of {load:.1f} over the last 15 minutes**: an indication. "
        "A claim needs the median of five on a machine that does nothing else."
    )


def _write_page(
    results: Results, cases: Sequence[Sequence[str]], more: Sequence[Sequence[str]], asked: Sequence[Bar]
) -> None:
    measured = f"Measured {datetime.now(UTC):%Y-%m-%d} with `{command('bench-ingest')}` on {machine()}; "
    parts = [
        "# Benchmarks: importing catalogs",
        INTRODUCTION,
        f"{measured}{versions(results.server, PACKAGES)}.",
        _caution(results),
        markdown(CASE_HEAD, cases),
        markdown(MORE_HEAD, more) if more else "",
        markdown(BAR_HEAD, [bar.cells() for bar in asked]),
        "## Method",
        NOTES,
    ]
    PAGE.write_text("\n\n".join(part for part in parts if part) + "\n")
