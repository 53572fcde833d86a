"""pgqueuer on asyncpg, tuned as its documentation says.

One queue manager on a direct connection, batches as large as the number of jobs at once because the jobs are short,
uvloop as its own benchmark has it, `pgq autovac` applied, and all tables logged as in production. (Its benchmark's
five managers with batches of ten were half as fast.)
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import asyncpg
import psycopg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from tests.bench.bare import asyncpg_address
from tests.bench.contender import Tally

BATCH = 1_000
TALLY = """
SELECT min(created) FILTER (WHERE status = 'picked'), max(created) FILTER (WHERE status = 'successful'),
       count(DISTINCT job_id) FILTER (WHERE status = 'picked'), count(*) FILTER (WHERE status = 'successful')
FROM pgqueuer_log
"""


def prepare(address: dict[str, Any], *, jobs: int) -> None:
    asyncio.run(_prepare(address, jobs))


async def _prepare(address: dict[str, Any], jobs: int) -> None:
    connection = await asyncpg.connect(**asyncpg_address(address))
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    for place in range(0, jobs, BATCH):
        count = min(BATCH, jobs - place)
        await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
    await connection.close()


def start(address: dict[str, Any], *, batch: int) -> Callable[[], list[int]]:
    logging.getLogger("pgqueuer").setLevel(logging.WARNING)
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    handled: list[int] = []
    queuer = runner.run(_queuer(address, handled))

    def work() -> list[int]:
        runner.run(queuer.run(batch_size=batch, mode=QueueExecutionMode.drain))
        return handled

    return work


async def _queuer(address: dict[str, Any], handled: list[int]) -> PgQueuer:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(**asyncpg_address(address))))

    @queuer.entrypoint("noop")
    async def noop(job: Any) -> None:
        handled.append(job.id)

    return queuer


def tally(connection: psycopg.Connection) -> Tally:
    return Tally(*connection.execute(TALLY).fetchone())
