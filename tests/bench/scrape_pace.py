"""How polite the workers are, what waiting costs, and what slow shops cost the others; from the log of the shops."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harvester.kernel.domains import registrable_domain
from tests.bench import page_world
from tests.bench.page_world import wait_until
from tests.bench.scrape_speed import LONGEST_ROUND_SECONDS, Bench, prepare
from tests.support.page_server import Seen, politeness
from tests.support.redis_server import RedisServer

#: Short, so that a killed worker costs seconds.
QUICK = {"HARVESTER_HEARTBEAT_SECONDS": "1", "HARVESTER_STUCK_SECONDS": "5", "HARVESTER_STALE_CHECK_SECONDS": "1"}
#: Until the jobs of a killed worker are given to another one.
RESCUE_SECONDS = 7.0
#: How long Redis is away.
REDIS_SECONDS = 5.0
#: Slow shops for each thread of all workers; with fewer, threads that wait for them would hardly be missed.
LEAST_SLOW_SHOPS = 4
_RUNNING = "SELECT DISTINCT lane FROM jobs WHERE state = 'running' AND lane IS NOT NULL AND worker = ANY (%s)"
_CLAIMS = "SELECT count(*) FROM job_events WHERE state = 'running'"


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A time in which a domain could not be asked.

    Attributes:
        begin, end: by the clock of the shops' log.
        domains: which ones; none: all.
    """

    begin: float
    end: float
    domains: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Manners:
    """What the shops saw.

    Attributes:
        requests: of all domains.
        least_gap_ratio: the shortest time between two requests to a domain, as a share of its interval.
        most_at_once: requests to one domain.
        budget_used: of the domain where it is least, apart from outages and one interval after each.
    """

    requests: int
    least_gap_ratio: float
    most_at_once: int
    budget_used: float


def manners(seen: Sequence[Seen], interval: float, outages: Sequence[Outage]) -> Manners:
    found = politeness(seen, interval, registrable_domain)
    used = []
    for domain in found:
        starts = sorted(each.start for each in seen if registrable_domain(each.host) == domain)
        away = [out for out in outages if out.domains is None or domain in out.domains]
        used.append(budget_used(starts, interval, [(out.begin, out.end + interval) for out in away]))
    return Manners(
        requests=len(seen),
        least_gap_ratio=min(one.least_gap for one in found.values()) / interval,
        most_at_once=max(one.most_at_once for one in found.values()),
        budget_used=min(used),
    )


def budget_used(starts: Sequence[float], interval: float, away: Sequence[tuple[float, float]]) -> float:
    """Return the share of the possible requests that was made, in the time from the first to the last but the given."""
    requests, seconds = 0, 0.0
    for one, two in pairwise(starts):
        # A pause that an outage touched counts as the interval that it had to be at least.
        is_touched = any(begin < two and one < end for begin, end in away)
        outside = two - one - sum(max(min(two, end) - max(one, begin), 0.0) for begin, end in _merged(away))
        seconds += max(outside, interval) if is_touched else two - one
        requests += 1
    return requests * interval / seconds if seconds else 1.0


def _merged(times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(times):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def measure_politeness(bench: Bench, *, workers: int, domains: int, seconds: float, interval: float) -> Manners:
    """Read pages with many workers; some of them, Redis and PostgreSQL are killed in between."""
    bench.shops.behave(page_bytes=[20_000, 40_000], robots=page_world.ROBOTS, seconds=0.05)
    targets = domains * round(2 * seconds / interval)
    prepare(bench, "polite", targets=targets, domains=domains, rate=1 / interval, subdomains=True)
    before, redis, outages = len(bench.shops.seen()), RedisServer(bench.home), []
    redis.start()
    names = iter(range(1_000))

    def start(working: page_world.Workers, count: int) -> None:
        for _ in range(count):
            working.start(1, "--name", f"polite-{next(names)}")

    try:
        with page_world.workers(0, 2, bench.log, HARVESTER_REDIS_URL=redis.url, **QUICK) as working:
            start(working, workers)
            # All of them run once each domain was asked several times.
            wait_until(lambda: len(bench.shops.seen()) - before >= 5 * domains, 600, "the start of the workers")
            time.sleep(seconds / 4)
            outages.append(_kill_workers(bench, working))
            start(working, 3)
            time.sleep(seconds / 4)
            begin = time.monotonic()
            redis.kill()
            time.sleep(REDIS_SECONDS)
            redis.start()
            outages.append(Outage(begin=begin, end=time.monotonic()))
            time.sleep(seconds / 4)
            begin = time.monotonic()
            bench.server.crash()
            outages.append(Outage(begin=begin, end=time.monotonic()))
            time.sleep(seconds / 4)
    finally:
        redis.kill()
    bench.server.forget("polite")
    return manners(bench.shops.seen()[before:], interval, outages)


def _kill_workers(bench: Bench, working: page_world.Workers) -> Outage:
    """Kill three workers, of which one at least reads a page if any does."""
    by_name = {process.args[-1]: process for process in working.running}
    with bench.server.connect() as connection:
        busy = connection.execute("SELECT DISTINCT worker FROM jobs WHERE state = 'running'").fetchall()
        names = [*(name for (name,) in busy if name in by_name), *by_name][:3]
        begin = time.monotonic()
        for name in dict.fromkeys(names):
            working.kill(by_name[name])
        lanes = frozenset(lane for (lane,) in connection.execute(_RUNNING, [names]))
    return Outage(begin=begin, end=begin + RESCUE_SECONDS, domains=lanes)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What it costs that pages wait for their turn.

    Attributes:
        requests: in the time that was measured.
        claims_per_request: how often a job was claimed for each.
        idle_cpu_percent: of one processor, of the worker and its children.
    """

    requests: int
    claims_per_request: float
    idle_cpu_percent: float


def measure_waiting(bench: Bench, *, pages: int, seconds: float, interval: float) -> Waiting:
    """One worker, and very many pages of one domain."""
    bench.shops.behave(page_bytes=page_world.PAGE_BYTES, robots=page_world.ROBOTS, seconds=0.0)
    prepare(bench, "waiting", targets=pages, domains=1, rate=1 / interval)
    before = len(bench.shops.seen())
    with bench.server.connect() as connection, page_world.workers(1, bench.threads, bench.log) as working:
        wait_until(lambda: len(bench.shops.seen()) - before >= 5, 300, "the first pages")
        [claims], requests, cpu, began = _now(connection, bench, working)
        time.sleep(seconds)
        [more_claims], more_requests, more_cpu, ended = _now(connection, bench, working)
    bench.server.forget("waiting")
    asked = more_requests - requests
    return Waiting(
        requests=asked,
        claims_per_request=(more_claims - claims) / asked,
        idle_cpu_percent=100 * (more_cpu - cpu) / (ended - began),
    )


def _now(connection: Any, bench: Bench, working: page_world.Workers) -> tuple[tuple[int], int, float, float]:
    claims = connection.execute(_CLAIMS).fetchone()
    return claims, len(bench.shops.seen()), working.cpu_seconds(), time.monotonic()


# From the first claim, of whatever shop, to the last end of a page of the other shops.
_OTHERS = """
SELECT count(*) FILTER (WHERE lane <> ALL (%(slow)s) AND state = 'succeeded'),
    count(*) FILTER (WHERE lane <> ALL (%(slow)s)),
    extract(epoch FROM max(finished_at) FILTER (WHERE lane <> ALL (%(slow)s))
        - (SELECT min(at) FROM job_events WHERE state = 'running'))::float8
FROM jobs WHERE kind = 'scraping.page'
"""


@dataclass(frozen=True, kw_only=True)
class SlowShops:
    """The pages of the other shops per second, of each round.

    Attributes:
        without: while no page of a slow shop is due.
        slowed: the same pages, while those of the slow shops are due too.
    """

    without: list[float]
    slowed: list[float]

    @property
    def pace_of_others(self) -> float:
        return statistics.median(self.slowed) / statistics.median(self.without)


def measure_slow_shops(
    bench: Bench, *, targets: int, domains: int, hanging: int, dripping: int, rounds: int
) -> SlowShops:
    """Read the same pages of the other shops without and with slow shops, in turn."""
    slow, threads = [f"shop{number}.urn.arpa" for number in range(hanging + dripping)], bench.workers * bench.threads
    if len(slow) < LEAST_SLOW_SHOPS * threads or domains <= len(slow):
        raise ValueError(f"{len(slow)} slow shops of {domains} say nothing about {threads} threads")
    bench.shops.behave(page_bytes=page_world.PAGE_BYTES, robots=page_world.ROBOTS, seconds=0.0)
    for number, host in enumerate(slow):
        how = "hang" if number < hanging else "drip"
        bench.shops.behave(host, pages=how, robots=how)
    prepare(bench, "slow", targets=targets // domains * domains, domains=domains)
    found = SlowShops(without=[], slowed=[])
    for number in range(rounds):
        # The order alternates: the machine may become faster or slower.
        for rates in (found.without, found.slowed)[:: -1 if number % 2 else 1]:
            is_slow = rates is found.slowed
            rates.append(_pace_of_others(bench, slow, is_slow=is_slow))
            bench.say(f"round {number + 1}, {'with' if is_slow else 'without'} slow shops: {rates[-1]:.1f}/s")
    bench.server.forget("slow")
    for host in slow:
        bench.shops.behave(host, pages="ok", robots=page_world.ROBOTS)
    return found


def _pace_of_others(bench: Bench, slow: Sequence[str], *, is_slow: bool) -> float:
    bench.server.restore("slow")
    bench.forget_pages()
    with bench.server.connect() as connection:
        if not is_slow:
            connection.execute("UPDATE jobs SET run_at = 'infinity' WHERE lane = ANY (%s)", [slow])
        with page_world.workers(bench.workers, bench.threads, bench.log) as working:

            def is_done() -> bool:
                working.alive()
                done, every, _ = connection.execute(_OTHERS, {"slow": slow}).fetchone()
                return bool(done == every)

            wait_until(is_done, LONGEST_ROUND_SECONDS, "the pages of the other shops")
        done, _, seconds = connection.execute(_OTHERS, {"slow": slow}).fetchone()
        [offers] = connection.execute("SELECT count(*) FROM run_parts WHERE outcome = 'OFFER'").fetchone()
    if offers != done:
        raise RuntimeError(f"of {done} pages there are {offers} offers; see {bench.log}")
    return float(done / seconds)
