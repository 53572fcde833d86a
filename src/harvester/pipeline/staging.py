"""Staging: the rows that a run read and what they change, in tables that no other run and no consumer reads.

There is one set of tables for each slot. A run takes a free slot with an advisory lock of its session, which the
server releases with the session, even if the process is killed.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from django.db import DatabaseError, connection
from numpy.typing import NDArray
from psycopg import Copy
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn
from psycopg.waiting import Wait

from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.kernel.errors import TransientError

SLOTS: Final = 16
#: The first half of the lock's key; "stag". The session with the lock has the slot.
STAGING_LOCK: Final = 0x73746167
#: The first half of the key of the lock that a second session has while it writes into the slot.
SHARING_LOCK: Final = STAGING_LOCK + 1
#: Seconds until a run that found no free slot tries again.
WAIT_SECONDS: Final = 15.0

#: As much as fits into the buffers between client and server; larger pieces are not faster.
_PIECE_BYTES: Final = 128 * 1024
# The planner has no statistics of tables that were just filled: with nested loops, seconds become minutes.
_SESSION = "SET LOCAL enable_nestloop = off; SET LOCAL jit = off; SET LOCAL work_mem = '128MB'"


@dataclass(frozen=True)
class Slot:
    """One set of staging tables."""

    number: int

    @property
    def rows(self) -> str:
        return f"staged_rows_{self.number}"

    @property
    def changes(self) -> str:
        return f"staged_changes_{self.number}"

    @property
    def contents(self) -> str:
        return f"staged_contents_{self.number}"


_TAKE = """
SELECT n FROM generate_series(0, %s) n
WHERE pg_try_advisory_xact_lock(%s, n) AND pg_try_advisory_lock(%s, n) LIMIT 1
"""


@contextmanager
def staging(job: RunningJob) -> Iterator[Slot]:
    """Take a slot for the length of the block. Rows that an earlier run left in it are deleted by the first staging.

    Raises:
        Snooze: all slots are taken; the job comes back.
    """
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(_TAKE, [SLOTS - 1, SHARING_LOCK, STAGING_LOCK])
        taken = cursor.fetchone()
        if taken is None:
            raise Snooze(WAIT_SECONDS, "all staging tables are in use by other runs")
    slot = Slot(taken[0])
    try:
        yield slot
    finally:
        _release(slot)


def _release(slot: Slot) -> None:
    """Release the slot. If the session is gone, the server has released it."""
    if connection.connection is None or connection.connection.closed:
        return
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [STAGING_LOCK, slot.number])


_HELD = """
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted
               AND classid = %s AND objid = %s AND objsubid = 2 AND pid = %s)
"""


def share(cursor: Any, slot: Slot, holder: int) -> None:
    """Let the open transaction write into a slot that another session (its process number) has.

    No other run gets the slot before the transaction ends, even if the other session dies.

    Raises:
        TransientError: the other session has lost it already.
    """
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [SHARING_LOCK, slot.number])
    cursor.execute(_HELD, [STAGING_LOCK, slot.number, holder])
    if not cursor.fetchone()[0]:
        raise TransientError("The database session of this run is gone; the run begins again.")


def prepare_session(cursor: Any) -> None:
    """Set up the open transaction for statements over whole tables."""
    cursor.execute(_SESSION)


def analyse(cursor: Any, slot: Slot, table: Literal["changes", "contents"]) -> None:
    """Give the planner current statistics of a table, so that it joins whole tables in the right order."""
    cursor.execute("SELECT analyse_staging(%s, %s)", [slot.number, table])


def copy_in(cursor: Any, table: str, columns: Iterable[str], frames: Iterable[pl.DataFrame]) -> int:
    """Copy these columns of the frames into a table; return the number of rows."""
    names = list(columns)
    count = 0
    with cursor.copy(f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT csv)") as copy:
        for frame in frames:
            # A missing value is null, never the empty text, so that an empty field without quotes is unambiguous.
            lines = BytesIO()
            frame.select(names).write_csv(lines, include_header=False, null_value="")
            with lines.getbuffer() as data:
                _send(copy, data)
            count += frame.height
    return count


def _send(copy: Copy, data: memoryview) -> None:
    """Write data in pieces, each after the server has received the one before.

    Otherwise the client library buffers what the server has not received yet, and moves all of it with each piece.
    """
    for start in range(0, len(data), _PIECE_BYTES):
        copy.write(data[start : start + _PIECE_BYTES])
        copy.connection.wait(_sent(copy.connection.pgconn))


def _sent(pgconn: PGconn) -> PQGen[None]:
    while pgconn.flush():
        yield Wait.W


_PAIR = np.dtype([("line", ">i8"), ("id", ">i8")])
#: Bytes before the only value of the only row in PostgreSQL's binary format: header, number of fields, length.
_BEFORE_VALUE_BYTES: Final = 19 + 2 + 4
_TRAILER_BYTES: Final = 2


def lines_and_ids(cursor: Any, slot: Slot, condition: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines, ascending, and the product ids of the changes that fulfil a condition (a constant)."""
    pairs = "string_agg(int8send(line) || int8send(product_id), '' ORDER BY line)"
    query = f"SELECT coalesce({pairs}, '') FROM {slot.changes} WHERE {condition}"  # noqa: S608 - constants
    # Half a million rows would be half a million messages; one value is one message.
    data = bytearray()
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        for part in copy:
            data += part
    count = (len(data) - _BEFORE_VALUE_BYTES - _TRAILER_BYTES) // _PAIR.itemsize
    found = np.frombuffer(data, _PAIR, count, _BEFORE_VALUE_BYTES)
    return found["line"].astype(np.int64), found["id"].astype(np.int64)
