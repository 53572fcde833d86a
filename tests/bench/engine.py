"""`python -m tests.bench.engine`: jobs per second, compared with a bare loop, procrastinate and pgqueuer."""

import argparse
from dataclasses import replace
from statistics import median

from rich.progress import Progress

from tests.bench import report
from tests.bench.contender import Contender, measure
from tests.bench.ours import BACKLOG
from tests.bench.pickup import Pickup, measure_pickup
from tests.bench.server import Server, own_server

#: Both ways to combine a backlog with jobs without a lane; the worse one counts.
YOUNGER, OLDER = "ours_younger_backlog", "ours_older_backlog"
#: Shown with the others; it is not a bar.
BATCHES = "bare_batches"
#: How many times the jobs of a round are done with an old snapshot open, once: its cost grows with them.
MANY = 25


def main() -> int:
    options = _options()
    contenders = _contenders(options.jobs)
    with own_server() as server, Progress(transient=True) as progress:
        _prepare(server, contenders, progress)
        rounds = _rounds(server, contenders, options.rounds, progress)
        server.restore("empty")
        pickup = measure_pickup(server.address, options.pickups)
        version = server.version()
    return _report(rounds, pickup, version, write_page=not options.quick)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.engine", description=__doc__)
    parser.add_argument("--jobs", type=int, help="jobs a round for fast contenders (10,000); slow ones get fewer")
    parser.add_argument("--rounds", type=int, help="how many rounds, of which the median counts (5)")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 2,000 jobs; writes no page of the docs")
    options = parser.parse_args()
    options.jobs = options.jobs or (2_000 if options.quick else 10_000)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.pickups = 20 if options.quick else 100
    return options


def _contenders(jobs: int) -> list[Contender]:
    """The jobs of each are chosen so that a round takes seconds."""
    few, some = max(jobs // 10, 50), max(jobs // 2, 50)
    return [
        _ours("ours_50x1", jobs, threads=50),
        _ours(YOUNGER, jobs, {"younger_backlog": BACKLOG}, threads=50, stop_after=jobs),
        _ours(OLDER, jobs, {"older_backlog": BACKLOG}, threads=50, stop_after=jobs),
        _ours("ours_50x2", jobs, processes=2, threads=50),
        _ours("ours_10x1", some, threads=10),
        _ours("ours_1x1", few, threads=1),
        Contender(name="bare_50x1", module="bare", jobs=jobs, how={"concurrency": 50, "batch": 1}),
        Contender(name=BATCHES, module="bare", jobs=jobs, how={"concurrency": 1, "batch": 50}),
        Contender(name="pgqueuer_50x1", module="peer_pgqueuer", jobs=jobs, how={"batch": 50}),
        Contender(name="procrastinate_50x1", module="peer_procrastinate", jobs=few, how={"concurrency": 50}),
        *_with_a_snapshot("ours", "ours", jobs * MANY, {"threads": 50}),
        *_with_a_snapshot("pgqueuer", "peer_pgqueuer", jobs * MANY, {"batch": 50}),
    ]


def _with_a_snapshot(name: str, module: str, jobs: int, how: dict[str, int]) -> list[Contender]:
    """The same many jobs, without and with an old snapshot."""
    clean = Contender(name=f"{name}_many", module=module, jobs=jobs, how=how, rounds=1)
    return [clean, replace(clean, name=f"{name}_pinned", jobs_of=clean.name, pinned=True)]


def _ours(name: str, jobs: int, setup: dict[str, int] | None = None, processes: int = 1, **how: int) -> Contender:
    return Contender(name=name, module="ours", jobs=jobs, setup=setup or {}, processes=processes, how=how)


def _prepare(server: Server, contenders: list[Contender], progress: Progress) -> None:
    """Enqueue every contender's jobs and keep the database."""
    server.keep("empty")
    for contender in progress.track([one for one in contenders if not one.jobs_of], description="enqueue"):
        server.restore("empty" if contender.module == "ours" else "template0")
        contender.code().prepare(server.address, jobs=contender.jobs, **contender.setup)
        server.keep(contender.name)


def _rounds(server: Server, contenders: list[Contender], count: int, progress: Progress) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    turns = [one for number in range(count) for one in contenders if one.rounds is None or number < one.rounds]
    for contender in progress.track(turns, description="work"):
        server.restore(contender.jobs_of or contender.name)
        with server.connect() as connection:
            rates[contender.name].append(measure(contender, server.address, connection))
    return rates


def _report(rounds: dict[str, list[float]], pickup: Pickup, version: str, *, write_page: bool) -> int:
    rounds["ours_50x1_backlog_hot_lane"] = min(rounds.pop(YOUNGER), rounds.pop(OLDER), key=median)
    medians = {key: median(rates) for key, rates in rounds.items()}
    speed, bars = report.speed_rows(medians, rounds), report.bars(medians, pickup)
    report.show(speed, bars)
    figures = {key: medians[key] for key in report.KEYS} | report.pinned_of_clean(medians)
    report.write_json(figures | {"pickup_ms_p50": pickup.p50})
    if write_page:
        report.write_page(speed, bars, version)
    return 0 if all(bar.reached for bar in bars) else 1


if __name__ == "__main__":
    raise SystemExit(main())
