"""Processes that ask for the same limit as fast as they can, and write down when they got it."""

import time
from dataclasses import replace
from pathlib import Path

from django.conf import settings
from django.db import connections

from harvester.guards import limits
from harvester.guards.limits import RateLimit
from tests.support.forked import Forked
from tests.support.tables import database_hosts, use_database_hosts


def start_taker(name: str, interval: float, notes: Path) -> Forked:
    """Start a process that goes on until it is killed; with this process' stores."""
    return Forked(_take, name, interval, str(notes), settings.CONFIG.redis_url, database_hosts())


def grants(notes: list[Path]) -> list[tuple[float, float]]:
    """Between which two moments each grant was made, by the clock that all processes share."""
    found = []
    for path in notes:
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        found += [tuple(map(float, line.split())) for line in lines if line.endswith("\n")]
    return sorted(found)


def shortest_gap(found: list[tuple[float, float]]) -> float:
    """The longest time that may have been between the two grants that were closest."""
    pairs = [(one, two) for place, one in enumerate(found) for two in found[place + 1 :]]
    return min(max(one[1], two[1]) - min(one[0], two[0]) for one, two in pairs)


def _take(name: str, interval: float, notes: str, redis_url: str | None, hosts: dict[str, str]) -> None:
    settings.CONFIG = replace(settings.CONFIG, redis_url=redis_url)
    use_database_hosts(hosts)
    limit = RateLimit(count=1, seconds=interval)
    with Path(notes).open("a") as file:
        while True:
            before = time.monotonic()
            try:
                grant = limits.take(name, limit, strict=True)
            except Exception:  # noqa: BLE001 - the store is away
                connections.close_all()
                time.sleep(0.02)
                continue
            if grant.granted:
                file.write(f"{before} {time.monotonic()}\n")
                file.flush()
            time.sleep(min(grant.wait, interval) / 2)
