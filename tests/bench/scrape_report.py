"""What was measured of pages: the bars, one flat JSON object and a page of the documentation."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.contender import ROOT
from tests.bench.report import BAR_HEAD, Bar, command, machine, markdown, versions

JSON_FILE = ROOT / "build" / "bench" / "scrape.json"
#: How each case was measured: case -> a sentence. Kept next to the figures, for cases that are measured at other times.
HOW_FILE = ROOT / "build" / "bench" / "scrape-cases.json"
PAGE = ROOT / "docs" / "benchmarks-scraping.md"
PACKAGES = ("psycopg", "lxml", "scrapy")
KEYS = (
    *("ours_pages_s", "scrapy_pages_s", "page_kb", "peak_mb", "peak_mb_small", "claims_per_request"),
    *("slow_domain_pace_of_others", "min_gap_ratio", "budget_used", "idle_cpu_percent", "tick_s", "tick_idle_ms"),
    *("batch20_p95_ms", "robots_500kb_ms"),
)
CASES = {
    "speed": "Speed",
    "small": "Memory with few pages",
    "politeness": "Politeness",
    "waiting": "Waiting",
    "slow": "Slow shops",
    "ticks": "Scheduler",
    "batches": "Promotion",
    "robots": "robots.txt",
}
CASE_HEAD = ("case", "how it was measured")
INTRODUCTION = """
Written by `make bench-scrape`; run it for the numbers of your machine. Compare ratios within one run only:
absolute numbers differ between machines and hours.
""".strip()
NOTES = """
- One server, started for this with the settings of the embedded database (commits are synchronous). The shops are one
  process of this machine, which knows them by their names; it notes when a request had arrived and when it was
  answered.
- **Speed**: real workers (`harvester worker`), pages of 150 to 300 KB as text, sent as gzip, each different, with
  robots.txt, limiter, breaker and gates as always; the pace is set so high that nobody waits for a turn. Every page is
  kept, every price written, or there is no result. From the first claim to the last end, by the database's clock.
- **Scrapy**: one process with the same extraction function, robots.txt obeyed, one request at a time of each domain,
  and each item committed to the same server by itself. From the first request to the last commit. It keeps no pages,
  judges no batches, and what it was doing is lost with its process. Rounds are interleaved; the median counts.
- **Memory**: proportional set size of the workers and their children, twice a second; the most of all rounds.
- **Politeness**: 20 workers, the limits in Redis; pages on domains and their subdomains. Three workers, Redis and
  PostgreSQL are killed in between. By the log of the shops. An outage of a killed worker concerns only the domains that
  it was asking, until its jobs are rescued (heartbeats of 1 s for this); one interval is granted after each outage.
- **Waiting**: one worker, pages of one domain only, all of them waiting. Claims and processor time of the worker and
  its children, per request and second.
- **Slow shops**: some accept and never answer, some send a byte now and then, robots.txt included. The rate of the
  others, compared with the same pages while none of a slow shop is due. The workers of the speed case, with several
  times fewer threads than there are slow shops. From the first claim, of whatever shop, to the last end of a page of
  the others, by the database's clock. Rounds are interleaved; the medians count.
- **Scheduler**: a tenth of the pages is due; then none (median of 20 ticks). The slower of 10 and 500 shops.
- **Promotion**: 20 observations, of which 2 are new products, spread over the source; from its lock to the commit.
""".strip()


def bars(figures: Mapping[str, float | None]) -> list[Bar]:
    """What was asked for, as far as it was measured."""
    ratio = _ratio(figures["ours_pages_s"], figures["scrapy_pages_s"])
    growth = _ratio(figures["peak_mb"], figures["peak_mb_small"])
    asked: list[tuple[str, float | None, float, str, bool]] = [
        ("pages per second", figures["ours_pages_s"], 60, "", False),
        ("of Scrapy's", ratio and 100 * ratio, 50, " %", False),
        ("memory of workers and children", figures["peak_mb"], 600, " MB", True),
        ("its growth from a tenth of the pages", growth, 1.1, " times", True),
        ("claims per request while pages wait", figures["claims_per_request"], 1.05, "", True),
        ("processor time while pages wait", figures["idle_cpu_percent"], 5, " %", True),
        ("pace of others with slow shops", _percent(figures["slow_domain_pace_of_others"]), 95, " %", False),
        ("shortest gap, of the interval", _percent(figures["min_gap_ratio"]), 95, " %", False),
        ("requests made, of those allowed", _percent(figures["budget_used"]), 90, " %", False),
        ("tick with a tenth due", figures["tick_s"], 2, " s", True),
        ("tick with nothing due", figures["tick_idle_ms"], 20, " ms", True),
        ("promotion of 20 pages, p95", figures["batch20_p95_ms"], 50, " ms", True),
        ("robots.txt of 500 KB", figures["robots_500kb_ms"], 100, " ms", True),
    ]
    return [
        Bar(what=what, figure=figure, limit=limit, unit=unit, at_most=at_most)
        for what, figure, limit, unit, at_most in asked
        if figure is not None
    ]


def report(figures: Mapping[str, float | None], how: Mapping[str, str], server: str, console: Console) -> int:
    """Show everything and write it down; whether a bar was missed is the exit code."""
    asked = bars(figures)
    table = Table(*BAR_HEAD)
    for bar in asked:
        table.add_row(*bar.cells(), style=None if bar.reached else "bold red")
    console.print(table)
    measured = f"Measured {datetime.now(UTC):%Y-%m-%d} with `{command('bench-scrape')}` on {machine()}; "
    parts = [
        "# Benchmarks: reading pages",
        INTRODUCTION,
        f"{measured}{versions(server, PACKAGES)}.",
        markdown(BAR_HEAD, [bar.cells() for bar in asked]),
        markdown(CASE_HEAD, [(CASES[case], how[case]) for case in CASES if case in how]),
        "## Method",
        NOTES,
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")
    return 0 if all(bar.reached for bar in asked) else 1


def read() -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the figures of an earlier run, and how they were measured."""
    figures = json.loads(JSON_FILE.read_text()) if JSON_FILE.exists() else {}
    how = json.loads(HOW_FILE.read_text()) if HOW_FILE.exists() else {}
    return dict.fromkeys(KEYS) | figures, how


def write(figures: Mapping[str, Any], how: Mapping[str, str]) -> None:
    """Write the figures; called after each case, so that an aborted run loses none."""
    if unknown := set(figures) - set(KEYS):
        raise ValueError(f"there are no figures {sorted(unknown)}")
    JSON_FILE.parent.mkdir(parents=True, exist_ok=True)
    rounded = {key: None if figures[key] is None else round(figures[key], 3) for key in KEYS}
    JSON_FILE.write_text(json.dumps(rounded, indent=2) + "\n")
    HOW_FILE.write_text(json.dumps(how, indent=2) + "\n")


def load() -> str:
    """Return how busy the machine was, for a claim that depends on it."""
    return f"load {os.getloadavg()[1]:.1f} over the last 5 minutes, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
