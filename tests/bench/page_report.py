"""What was measured of pages: the table and the bars."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from tests.bench.report import Bar

HEALTH = "/healthz"
#: The health page that asks the database, as every other page has to.
READY = "/readyz"
SLOWEST_MS = 300
MOST_TIMES = 4
MOST_QUERIES = 30
#: A deep page may be so much slower than the first: what the clock of a busy machine gives and takes.
DEEP_TIMES = 1.5


@dataclass(frozen=True, kw_only=True)
class Page:
    """One address.

    Attributes:
        address: as the URL map has it, with an example's values.
        p50: half of the answers took no longer, in milliseconds.
        p95: of a hundred answers 95 took no longer.
        queries: questions to the database.
        deep_p50: the same for a page far down the list, if it is a list with so many pages.
        depth: how far down.
    """

    address: str
    p50: float
    p95: float
    queries: int
    deep_p50: float | None = None
    depth: int = 0

    def as_dict(self) -> dict:
        return asdict(self)


def bars(pages: Sequence[Page]) -> list[Bar]:
    """What every page must reach; of each bar the page that is furthest from it."""
    by_address = {page.address: page for page in pages}
    ready = by_address[READY].p95
    others = [page for page in pages if page.address not in (HEALTH, READY, "/metrics")]
    slowest = max(others, key=lambda page: page.p95)
    asking = max(others, key=lambda page: page.queries)
    found = [
        Bar(what=f"slowest, p95: {slowest.address}", figure=slowest.p95, limit=SLOWEST_MS, unit=" ms", at_most=True),
        Bar(what=f"the same, of {READY}", figure=slowest.p95 / ready, limit=MOST_TIMES, unit=" times", at_most=True),
        Bar(what=f"queries: {asking.address}", figure=asking.queries, limit=MOST_QUERIES + 1, unit="", at_most=True),
    ]
    lists = [page for page in pages if page.deep_p50]
    if lists:
        worst = max(lists, key=lambda page: page.deep_p50 / page.p50)
        ratio = worst.deep_p50 / worst.p50
        what = f"{worst.depth} pages deep, of the first: {worst.address}"
        found.append(Bar(what=what, figure=ratio, limit=DEEP_TIMES, unit=" times", at_most=True))
    return found


def show(console: Console, pages: Sequence[Page], asked: Sequence[Bar]) -> None:
    by_address = {page.address: page for page in pages}
    table = Table("page", "p50 ms", "p95 ms", f"of {HEALTH}", f"of {READY}", "queries", "deep p50 ms")
    for page in sorted(pages, key=lambda page: -page.p95):
        ratios = [f"{page.p95 / by_address[name].p95:.1f}" for name in (HEALTH, READY)]
        deep = f"{page.deep_p50:.1f} ({page.depth})" if page.deep_p50 else ""
        table.add_row(page.address, f"{page.p50:.1f}", f"{page.p95:.1f}", *ratios, str(page.queries), deep)
    console.print(table)
    verdict = Table("bar", "measured", "asked", "")
    for bar in asked:
        verdict.add_row(*bar.cells(), style=None if bar.reached else "bold red")
    console.print(verdict)
