"""What was measured of catalogs: tables, bars, one JSON object and a page of the documentation."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tests.bench.contender import ROOT
from tests.bench.ingest_cases import STEPS, Figures

JSON_FILE = ROOT / "build" / "bench" / "ingest.json"
PAGE = ROOT / "docs" / "benchmarks.md"
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


@dataclass
class Results:
    """All that one run measured."""

    sizes: list[Figures] = field(default_factory=list)
    server: str = ""


CASE_HEAD = ("rows", "case", "seconds", "of the floor", "slowest to fastest", "logged MB", "memory MB")


def report(results: Results, console: Console, *, write: bool) -> int:
    table = Table(*CASE_HEAD)
    for row in case_rows(results):
        table.add_row(*row)
    console.print(table)
    return 0


def case_rows(results: Results) -> list[tuple[str, ...]]:
    return [row for figures in results.sizes for row in _rows_of(figures)]


def _rows_of(figures: Figures) -> list[tuple[str, ...]]:
    floors = [seconds for taken in figures.floors.values() for seconds in taken]
    floor = (f"{figures.rows:,}", "floor: gunzip and COPY", f"{figures.floor_s:.2f}", "1.00", _range(floors), "", "")
    return [floor, *(_row(figures, step) for step in STEPS)]


def _row(figures: Figures, step: str) -> tuple[str, ...]:
    taken = figures.steps[step]
    peak = sorted(took.peak_mb for took in taken)[len(taken) // 2]
    return (
        f"{figures.rows:,}",
        WHAT[step],
        f"{figures.seconds(step):.2f}",
        f"{figures.ratio(step):.2f}",
        _range([took.seconds for took in taken]),
        f"{figures.wal_mb(step):,.0f}",
        f"{peak:.0f}",
    )


def _range(seconds: list[float]) -> str:
    return f"{max(seconds):.2f} to {min(seconds):.2f}"
