"""dlt with `merge` into PostgreSQL, as its documentation advises for speed.

Arrow tables instead of rows of Python, CSV files that are loaded by COPY, and the strategy `upsert`, which is the
cheaper one where most rows exist. It keeps one table with a primary key: no prices, no gates, no search.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.contender import ROOT

SCHEMA = "dlt_bench"
BLOCK_BYTES = 16 << 20


def prepare(connection: psycopg.Connection[Any], _address: dict[str, Any]) -> None:
    for name in (SCHEMA, f"{SCHEMA}_staging"):
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def measure(_connection: psycopg.Connection[Any], address: dict[str, Any], file: Path) -> float:
    """Seconds for one file, in a process of its own; its start and its imports do not count."""
    options = json.dumps({"address": {key: str(value) for key, value in address.items()}, "file": str(file)})
    quiet = {"RUNTIME__LOG_LEVEL": "ERROR", "RUNTIME__DLTHUB_TELEMETRY": "false"}
    environment = {**os.environ, **quiet, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.bench.peer_dlt", options]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.splitlines()[-1])


def _load(address: dict[str, str], file: Path) -> float:
    import time

    import dlt
    from dlt.destinations import postgres
    from dlt.destinations.impl.postgres.configuration import PostgresCredentials

    # The directory of a socket stands for the host in the query of an address only.
    where = PostgresCredentials(
        f"postgresql://{address['user']}:none@localhost/{address['dbname']}"
        f"?host={address['host']}&port={address['port']}"
    )
    with tempfile.TemporaryDirectory() as directory:
        pipeline = dlt.pipeline("bench", pipelines_dir=directory, destination=postgres(where), dataset_name=SCHEMA)
        resource = dlt.resource(
            _tables(file),
            name="products",
            primary_key="unique_merchant_sku",
            write_disposition={"disposition": "merge", "strategy": "upsert"},
        )
        began = time.perf_counter()
        pipeline.run(resource, loader_file_format="csv")
        return time.perf_counter() - began


def _tables(file: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    reading = csv.ReadOptions(block_size=BLOCK_BYTES)
    typed = csv.ConvertOptions(column_types={"Gtin": pa.string(), "Current Price": pa.decimal128(12, 2)})
    with pa.CompressedInputStream(pa.OSFile(str(file)), "gzip") as source:
        for batch in csv.open_csv(source, read_options=reading, convert_options=typed):
            table = pa.Table.from_batches([batch])
            yield table.rename_columns([name.lower().replace(" ", "_") for name in table.column_names])


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(_load(given["address"], Path(given["file"])))  # noqa: T201 - the benchmark reads it
