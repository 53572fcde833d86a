"""`python -m tests.bench.scrape`: how fast, how polite and how frugal pages are read."""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tests.bench import batches, scrape_pace, scrape_report, scrape_speed, scrape_ticks
from tests.bench.robots import robots_500kb_ms
from tests.bench.scrape_report import CASES
from tests.bench.scrape_speed import Bench
from tests.bench.server import own_server
from tests.support.page_server import page_server

#: What a case measured, and how, in words.
Measured = tuple[dict[str, float | None], str]


def main() -> int:
    options = _options()
    console = Console()
    figures, how = scrape_report.read()
    with own_server(options.home) as server, tempfile.TemporaryDirectory(prefix="harvester-bench-") as directory:
        if not server.keeps("empty"):
            server.keep("empty")
        with page_server(Path(directory) / "requests") as shops:
            bench = Bench(
                server=server, shops=shops, home=Path(os.environ["HARVESTER_HOME"]), log=options.log,
                workers=options.workers, threads=options.threads, say=console.print,
            )  # fmt: skip
            for case in options.only:
                found, words = MEASURE[case](bench, options)
                console.print(CASES[case], found)
                figures, how = figures | found, how | {case: f"{words}; {scrape_report.load()}"}
                scrape_report.write(figures, how)
        return scrape_report.report(figures, how, server.version(), console)


def _speed(bench: Bench, options: argparse.Namespace) -> Measured:
    found = scrape_speed.measure(bench, targets=options.targets, domains=options.domains, rounds=options.rounds)
    ours, theirs = (", ".join(f"{rate:.1f}" for rate in rates) for rates in (found.ours, found.scrapy))
    words = (
        f"{options.targets:,} pages over {options.domains} domains, {options.workers} workers of {options.threads} "
        f"threads; rounds: {ours} pages/s, Scrapy {theirs} with {found.scrapy_mb:.0f} MB"
    )
    figures = {"ours_pages_s": found.ours_pages_s, "scrapy_pages_s": found.scrapy_pages_s}
    return {**figures, "page_kb": found.page_kb, "peak_mb": found.peak_mb}, words


def _small(bench: Bench, options: argparse.Namespace) -> Measured:
    targets, domains = options.targets // 10, options.domains
    found = scrape_speed.measure(bench, targets=targets, domains=domains, rounds=1, with_scrapy=False)
    return {"peak_mb_small": found.peak_mb}, f"{targets:,} pages over {domains} domains, at {found.ours[0]:.1f} pages/s"


def _politeness(bench: Bench, options: argparse.Namespace) -> Measured:
    found = scrape_pace.measure_politeness(
        bench, workers=options.polite_workers, domains=5, seconds=options.polite_seconds, interval=options.interval
    )
    words = (
        f"{options.polite_workers} workers, 5 domains, one request in {options.interval:g} s, {found.requests} "
        f"requests in at least {options.polite_seconds:g} s, at most {found.most_at_once} at once to a domain"
    )
    if found.most_at_once > 1:
        raise RuntimeError(f"{found.most_at_once} requests to one domain were under way at the same time")
    return {"min_gap_ratio": found.least_gap_ratio, "budget_used": found.budget_used}, words


def _waiting(bench: Bench, options: argparse.Namespace) -> Measured:
    pages, seconds = options.waiting_pages, options.waiting_seconds
    found = scrape_pace.measure_waiting(bench, pages=pages, seconds=seconds, interval=options.interval)
    words = f"{pages:,} pages, {found.requests} requests in {seconds:g} s, one in {options.interval:g} s"
    return {"claims_per_request": found.claims_per_request, "idle_cpu_percent": found.idle_cpu_percent}, words


def _slow(bench: Bench, options: argparse.Namespace) -> Measured:
    targets, domains, hanging, dripping = options.slow_targets, options.slow_domains, options.hanging, options.dripping
    found = scrape_pace.measure_slow_shops(
        bench, targets=targets, domains=domains, hanging=hanging, dripping=dripping, rounds=options.rounds
    )
    without, slowed = (", ".join(f"{rate:.1f}" for rate in rates) for rates in (found.without, found.slowed))
    words = (
        f"{targets:,} pages over {domains} domains, of which {hanging} never answer and {dripping} drip; "
        f"{options.workers} workers of {options.threads} threads; rounds: {slowed} pages/s of the others with the slow "
        f"shops, {without} without"
    )
    return {"slow_domain_pace_of_others": found.pace_of_others}, words


def _ticks(bench: Bench, options: argparse.Namespace) -> Measured:
    bench.server.restore("empty")
    ticks = [scrape_ticks.measure(shops, options.tick_pages) for shops in (10, 500)]
    figures = {"tick_s": max(due for due, _ in ticks), "tick_idle_ms": max(idle for _, idle in ticks)}
    return figures, f"{options.tick_pages:,} pages"


def _batches(bench: Bench, options: argparse.Namespace) -> Measured:
    bench.server.restore("empty")
    with bench.server.connect() as connection:
        p95 = batches.measure(connection, products=options.products, batches=options.batches)
    return {"batch20_p95_ms": p95}, f"{options.products:,} products, {options.batches} promotions"


def _robots(bench: Bench, options: argparse.Namespace) -> Measured:
    return {"robots_500kb_ms": robots_500kb_ms()}, "the worst of six files, best of 5"


MEASURE: dict[str, Callable[[Bench, argparse.Namespace], Measured]] = {
    "speed": _speed,
    "small": _small,
    "politeness": _politeness,
    "waiting": _waiting,
    "slow": _slow,
    "ticks": _ticks,
    "batches": _batches,
    "robots": _robots,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scrape", description=__doc__)
    add = parser.add_argument
    add(
        "--only", nargs="+", choices=MEASURE, default=list(MEASURE), help="these cases; other figures stay as they were"
    )
    add("--targets", type=int, default=20_000, help="pages of a round (20,000)")
    add("--domains", type=int, default=500, help="shops that they are on (500)")
    add("--rounds", type=int, default=3, help="of which the median counts (3)")
    add("--workers", type=int, default=2, help="processes (2)")
    add("--threads", type=int, default=8, help="pages that each reads at once (8)")
    add("--interval", type=float, default=2.0, help="seconds from one request to a domain to the next (2)")
    add("--polite-workers", type=int, default=20, help="processes (20)")
    add("--polite-seconds", type=float, default=240.0, help="at least (240)")
    add("--waiting-pages", type=int, default=10_000, help="of one domain (10,000)")
    add("--waiting-seconds", type=float, default=120.0, help="for which claims are counted (120)")
    add("--slow-targets", type=int, default=10_000, help="pages of all domains, slow ones included (10,000)")
    add("--slow-domains", type=int, default=500, help="of which some are slow (500)")
    add("--hanging", type=int, default=50, help="slow shops that accept and never answer (50)")
    add("--dripping", type=int, default=25, help="slow shops that send a byte now and then (25)")
    add("--tick-pages", type=int, default=100_000, help="of which a tenth is due (100,000)")
    add("--products", type=int, default=500_000, help="of the source that 20 pages are promoted into (500,000)")
    add("--batches", type=int, default=100, help="promotions of 20 pages (100)")
    add("--home", type=Path, help="keeps the database there")
    add("--log", type=Path, default=Path("build/bench/scrape-workers.log"), help="of the workers")
    options = parser.parse_args()
    options.log = options.log.absolute()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    options.log.unlink(missing_ok=True)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
