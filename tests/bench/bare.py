"""The least that a queue in PostgreSQL can do: one table, SKIP LOCKED, no retries, no leases, no history.

Each of the concurrent workers has a connection of its own and takes the oldest rows with one autocommitted, prepared
statement, which deletes them: a job that dies with its worker is lost. No loop that keeps a state is faster.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import psycopg
import uvloop

from tests.bench.contender import Tally

SCHEMA = """
CREATE TABLE bare_jobs (id bigint PRIMARY KEY);
CREATE TABLE bare_run (made bigint, first_claim timestamptz, last_ending timestamptz);
"""
TAKE = """
DELETE FROM bare_jobs
WHERE id = ANY (ARRAY(SELECT id FROM bare_jobs ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id
"""
TALLY = """
SELECT first_claim, last_ending, made - remaining, made - remaining
FROM bare_run, (SELECT count(*) AS remaining FROM bare_jobs) AS left_over
"""


def prepare(address: dict[str, Any], *, jobs: int) -> None:
    with psycopg.connect(**address, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute("INSERT INTO bare_jobs SELECT generate_series(1, %s)", [jobs])
        connection.execute("INSERT INTO bare_run (made) VALUES (%s)", [jobs])


def start(address: dict[str, Any], *, concurrency: int, batch: int) -> Callable[[], list[int]]:
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    sessions = runner.run(_connect(address, concurrency))

    def work() -> list[int]:
        return runner.run(_work(sessions, batch))

    return work


async def _connect(address: dict[str, Any], count: int) -> list[asyncpg.Connection]:
    return [await asyncpg.connect(**asyncpg_address(address)) for _ in range(count)]


def asyncpg_address(address: dict[str, Any]) -> dict[str, Any]:
    return {"database": address["dbname"], **{name: address[name] for name in ("host", "port", "user")}}


async def _work(sessions: list[asyncpg.Connection], batch: int) -> list[int]:
    handled: list[int] = []
    takes = [await session.prepare(TAKE) for session in sessions]
    await sessions[0].execute("UPDATE bare_run SET first_claim = clock_timestamp()")
    await asyncio.gather(*(_loop(take, batch, handled) for take in takes))
    await sessions[0].execute("UPDATE bare_run SET last_ending = clock_timestamp()")
    return handled


async def _loop(take: Any, batch: int, handled: list[int]) -> None:
    while rows := await take.fetch(batch):
        handled += [row[0] for row in rows]


def tally(connection: psycopg.Connection) -> Tally:
    return Tally(*connection.execute(TALLY).fetchone())
