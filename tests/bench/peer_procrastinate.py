"""procrastinate, tuned as its documentation says.

The task is a coroutine, so no thread is needed for it; the pool has one connection more than the concurrency, all
open before the clock runs ("Mind the size of your PostgreSQL pool"); finished jobs are kept, as the engine does.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import procrastinate
import psycopg
import uvloop

from tests.bench.contender import Tally

BATCH = 1_000
TALLY = """
SELECT min(at) FILTER (WHERE type = 'started'), max(at) FILTER (WHERE type = 'succeeded'),
       count(*) FILTER (WHERE type = 'started'), count(*) FILTER (WHERE type = 'succeeded')
FROM procrastinate_events
"""


def _app(address: dict[str, Any], pool: int) -> procrastinate.App:
    settings = {"host": address["host"], "port": address["port"], "user": address["user"]}
    connector = procrastinate.PsycopgConnector(
        kwargs={**settings, "dbname": address["dbname"]}, min_size=pool, max_size=pool
    )
    return procrastinate.App(connector=connector)


def _noop(app: procrastinate.App, handled: list[int]) -> Any:
    @app.task(name="noop", pass_context=True)
    async def noop(context: Any) -> None:
        handled.append(context.job.id)

    return noop


def prepare(address: dict[str, Any], *, jobs: int) -> None:
    asyncio.run(_prepare(address, jobs))


async def _prepare(address: dict[str, Any], jobs: int) -> None:
    app = _app(address, 1)
    noop = _noop(app, [])
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for place in range(0, jobs, BATCH):
            await noop.batch_defer_async(*[{}] * min(BATCH, jobs - place))


def start(address: dict[str, Any], *, concurrency: int) -> Callable[[], list[int]]:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    app = _app(address, concurrency + 1)
    handled: list[int] = []
    _noop(app, handled)
    runner.run(app.connector.open_async())

    def work() -> list[int]:
        runner.run(app.run_worker_async(concurrency=concurrency, wait=False))
        runner.run(app.connector.close_async())
        return handled

    return work


def tally(connection: psycopg.Connection) -> Tally:
    return Tally(*connection.execute(TALLY).fetchone())
