"""The least that a catalog can cost: gunzip, and COPY into one logged table of texts without an index."""

import gzip
import time
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.catalog_files import COLUMNS

_CHUNK_BYTES = 1 << 20
_TABLE = "floor_rows"


def measure(connection: psycopg.Connection[Any], file: Path) -> float:
    """Seconds, the commit included; the table is new each time."""
    columns = ", ".join(f"c{place} text" for place in range(len(COLUMNS)))
    connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")
    connection.execute(f"CREATE TABLE {_TABLE} ({columns})")
    began = time.perf_counter()
    command = f"COPY {_TABLE} FROM STDIN (FORMAT csv, HEADER true)"
    with gzip.open(file, "rb") as source, connection.cursor() as cursor, cursor.copy(command) as copy:
        while chunk := source.read(_CHUNK_BYTES):
            copy.write(chunk)
    seconds = time.perf_counter() - began
    connection.execute(f"DROP TABLE {_TABLE}")
    return seconds
