"""More than the cases: the peers, a feed after a hundred runs, and readers during a promotion."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from types import ModuleType
from typing import Any, TypeAlias

from tests.bench import api, floor, peer_chunked, peer_dlt
from tests.bench.ingest_cases import Log, settle
from tests.bench.seeded import SEEDED
from tests.bench.server import Server
from tests.bench.shop import Shop, work
from tests.support.portal_server import portal_server
from tests.support.sftp_server import SftpServer

PEERS: dict[str, ModuleType] = {"dlt": peer_dlt, "chunked": peer_chunked}
_LEAST_READ_SECONDS = 10.0
#: Milliseconds that no query may wait for a lock.
LOCK_WAIT_MS = 100


#: Seconds of something, and of the floor right before it.
Taken: TypeAlias = list[tuple[float, float]]


def of_floor(taken: Taken) -> float:
    """The median of the ratios: the machine may be twice as fast an hour later."""
    return median(seconds / least for seconds, least in taken)


def measure_peers(server: Server, files: dict[str, Path], rounds: int, log: Log) -> dict[str, Taken]:
    """What each peer took, with a new file and with the same content again."""
    took: dict[str, Taken] = {f"{name}_{case}": [] for name in PEERS for case in ("cold", "unchanged")}
    for _ in range(rounds):
        server.restore(SEEDED)
        with server.connect() as connection:
            for name, peer in PEERS.items():
                peer.prepare(connection, server.address)
                for case in ("cold", "unchanged"):
                    connection.execute("CHECKPOINT")
                    least = floor.measure(connection, files[case])
                    seconds = peer.measure(connection, server.address, files[case])
                    took[f"{name}_{case}"].append((seconds, least))
                    log(f"{name}, {case}: {seconds:.1f} s = {seconds / least:.2f} of the floor")
    return took


@dataclass
class Reruns:
    """Unchanged runs of one feed: its first ones, and those after many others."""

    early: Taken = field(default_factory=list)
    late: Taken = field(default_factory=list)


def measure_reruns(
    server: Server, sftp: SftpServer, files: dict[str, Path], *, runs: int, rounds: int, log: Log
) -> Reruns:
    """An unchanged feed again and again: the first rounds, and as many after so many runs."""
    server.restore(SEEDED)
    shop, found = Shop(sftp, "again"), Reruns()
    with server.connect() as connection:
        for number in range(runs + rounds):
            # By turns two files that say the same, so that none is skipped; the first brings the products.
            file = files["unchanged" if number % 2 else "cold"]
            taken = found.early if 0 < number <= rounds else found.late if number >= runs else None
            if taken is not None:
                settle(connection)
                least = floor.measure(connection, file)
            shop.put(file)
            seconds = work(connection, [shop.ask()]).seconds
            if taken is not None:
                taken.append((seconds, least))
                log(f"run {number + 1} of the same feed: {seconds:.1f} s = {seconds / least:.2f} of the floor")
    return found


@dataclass
class Readers:
    """How long searches took over the API, in milliseconds, idle and while a run promoted.

    Attributes:
        waits: how often a query waited for a lock longer than allowed.
    """

    idle: list[float] = field(default_factory=list)
    promoting: list[float] = field(default_factory=list)
    waits: int = 0

    @staticmethod
    def p95(taken: list[float]) -> float:
        return quantiles(taken, n=20)[-1]


def measure_readers(server: Server, sftp: SftpServer, files: dict[str, Path], log: Log) -> Readers:
    """Search all the time: first with nothing else going on, then while every price of a catalog changes."""
    server.restore(SEEDED)
    from harvester.kernel.actor import system
    from harvester.ops import api_keys

    _, token = api_keys.create(system("bench"), "bench", ["offers:read"])
    shop = Shop(sftp, "busy")
    found = Readers()
    with server.connect() as connection, portal_server(HARVESTER_API_RATE_PER_MINUTE="1000000") as address:
        shop.put(files["cold"])
        work(connection, [shop.ask()])
        settle(connection)
        asks = [api.asking(address, token, case) for case in api.cases()]
        _read_for(asks, [], _LEAST_READ_SECONDS / 2)
        _read_for(asks, found.idle, _LEAST_READ_SECONDS)
        shop.put(files["changed100"])
        found.waits = _read_while(asks, found.promoting, server, shop)
    log(f"{len(found.idle):,} searches idle, {len(found.promoting):,} during a promotion")
    return found


def _read_for(asks: list[Callable[[], None]], taken: list[float], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for ask in asks:
            began = time.perf_counter()
            ask()
            taken.append((time.perf_counter() - began) * 1000)


def _read_while(asks: list[Callable[[], None]], taken: list[float], server: Server, shop: Shop) -> int:
    """Only searches that began while the run was promoting count."""
    job, waits = shop.ask(), 0
    with ThreadPoolExecutor(1) as pool, server.connect() as watching, server.connect() as connection:
        running = pool.submit(work, connection, [job])
        while not running.done():
            for ask in asks:
                is_promoting = _stage(watching) == "promote"
                waits += _waiting(watching)
                began = time.perf_counter()
                ask()
                if is_promoting:
                    taken.append((time.perf_counter() - began) * 1000)
        running.result()
    return waits


def _stage(connection: Any) -> str | None:
    row = connection.execute("SELECT stage FROM runs WHERE status = 'RUNNING' AND job_id IS NOT NULL ORDER BY no DESC")
    found = row.fetchone()
    return found[0] if found else None


_WAITING = """
SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
WHERE a.wait_event_type = 'Lock' AND NOT l.granted AND l.waitstart < clock_timestamp() - %s * interval '1 millisecond'
"""


def _waiting(connection: Any) -> int:
    """Queries that wait for a lock too long, at this moment."""
    return int(connection.execute(_WAITING, [LOCK_WAIT_MS]).fetchone()[0])
