"""Staging: what a run read, beside what is known, in tables that nobody else sees.

There is one set of tables for each slot. A run takes a free slot with an advisory lock of its session, which the
server drops with the session, whatever happens to the process.
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
#: The first half of the lock's key; "stag". Whoever has the lock has the slot.
STAGING_LOCK: Final = 0x73746167
#: The same of the lock that a second session has while it writes into the slot.
SHARING_LOCK: Final = STAGING_LOCK + 1
#: Seconds until a run that found no slot looks again.
WAIT_SECONDS: Final = 15.0

#: As much as fits between client and server at once; larger pieces gain nothing.
_PIECE_BYTES: Final = 128 * 1024
# The planner knows nothing of tables that were filled a moment ago: with nested loops it takes minutes for seconds.
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
    """A slot of one's own. What an earlier run left in it is cleared when something is staged.

    Raises:
        Snooze: all slots are taken; the job comes back.
    """
    with job.transaction(), connection.cursor() as cursor:
        cursor.execute(_TAKE, [SLOTS - 1, SHARING_LOCK, STAGING_LOCK])
        taken = cursor.fetchone()
        if taken is None:
            raise Snooze(WAIT_SECONDS, "as many runs as there are staging tables are at work")
    slot = Slot(taken[0])
    try:
        yield slot
    finally:
        _release(slot)


def _release(slot: Slot) -> None:
    """Give the slot back. A session that is gone has given it back already."""
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

    The slot goes to nobody else before the transaction ends, even if the other session dies.

    Raises:
        TransientError: the other session has lost it already.
    """
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [SHARING_LOCK, slot.number])
    cursor.execute(_HELD, [STAGING_LOCK, slot.number, holder])
    if not cursor.fetchone()[0]:
        raise TransientError("The database session of this run is gone; the run begins again.")


def prepare_session(cursor: Any) -> None:
    """Set up the open transaction for work over whole tables."""
    cursor.execute(_SESSION)


def analyse(cursor: Any, slot: Slot, table: Literal["changes", "contents"]) -> None:
    """Tell the planner what is in a table now. Rows are joined whole, in the one way that is left to it."""
    cursor.execute("SELECT analyse_staging(%s, %s)", [slot.number, table])


def copy_in(cursor: Any, table: str, columns: Iterable[str], frames: Iterable[pl.DataFrame]) -> int:
    """Copy frames, column by column of these names, into a table; answers the number of rows."""
    names = list(columns)
    count = 0
    with cursor.copy(f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT csv)") as copy:
        for frame in frames:
            # What is missing is null, never the empty text, so that a field without quotes is unambiguous.
            lines = BytesIO()
            frame.select(names).write_csv(lines, include_header=False, null_value="")
            with lines.getbuffer() as data:
                _send(copy, data)
            count += frame.height
    return count


def _send(copy: Copy, data: memoryview) -> None:
    """Write data, piece by piece, each only when the server has taken the one before.

    Otherwise the client library keeps what the server did not take yet, and moves all of it with each piece.
    """
    for start in range(0, len(data), _PIECE_BYTES):
        copy.write(data[start : start + _PIECE_BYTES])
        copy.connection.wait(_sent(copy.connection.pgconn))


def _sent(pgconn: PGconn) -> PQGen[None]:
    while pgconn.flush():
        yield Wait.W


_PAIR = np.dtype([("line", ">i8"), ("id", ">i8")])
#: Before the one value of the one row that is copied in PostgreSQL's binary format: header, number of fields, length.
_BEFORE_VALUE_BYTES: Final = 19 + 2 + 4
_TRAILER_BYTES: Final = 2


def lines_and_ids(cursor: Any, slot: Slot, condition: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lines, ascending, and product ids of the changes that a condition (a constant of this house) picks."""
    pairs = "string_agg(int8send(line) || int8send(product_id), '' ORDER BY line)"
    query = f"SELECT coalesce({pairs}, '') FROM {slot.changes} WHERE {condition}"  # noqa: S608 - constants
    # Half a million rows would be as many messages; one value is one.
    data = bytearray()
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        for part in copy:
            data += part
    count = (len(data) - _BEFORE_VALUE_BYTES - _TRAILER_BYTES) // _PAIR.itemsize
    found = np.frombuffer(data, _PAIR, count, _BEFORE_VALUE_BYTES)
    return found["line"].astype(np.int64), found["id"].astype(np.int64)
