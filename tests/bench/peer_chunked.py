"""Chunked upserts, as programs of this kind usually do it: 1,000 rows a chunk, one statement a row, one commit a chunk.

Products are upserted by `INSERT ... ON CONFLICT` through executemany (which psycopg pipelines), their newest prices are
read in one query, what to write is decided in memory, and prices are inserted by executemany. There are no gates, no
search and no history of runs.
"""

import csv
import gzip
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

CHUNK = 1_000
HEARTBEAT = timedelta(hours=24)
SCHEMA = """
DROP SCHEMA IF EXISTS chunked CASCADE;
CREATE SCHEMA chunked;
CREATE TABLE chunked.products (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, source_id integer NOT NULL, sku text COLLATE "C" NOT NULL,
    title text NOT NULL, url text NOT NULL, image_url text, gtin text, mpn text, brand text, category text,
    description text, last_seen_at timestamptz NOT NULL, UNIQUE (source_id, sku));
CREATE TABLE chunked.prices (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, product_id bigint NOT NULL, created_at timestamptz NOT NULL,
    amount numeric(12, 2) NOT NULL, original numeric(12, 2), currency text NOT NULL, in_stock boolean NOT NULL);
CREATE INDEX ON chunked.prices (product_id, created_at DESC);
"""
_UPSERT = """
INSERT INTO chunked.products
    (source_id, sku, title, url, image_url, gtin, mpn, brand, category, description, last_seen_at)
VALUES (1, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (source_id, sku) DO UPDATE SET
    title = excluded.title, url = excluded.url, image_url = excluded.image_url, gtin = excluded.gtin,
    mpn = excluded.mpn, brand = excluded.brand, category = excluded.category, description = excluded.description,
    last_seen_at = excluded.last_seen_at
RETURNING id
"""
_NEWEST = """
SELECT DISTINCT ON (product_id) product_id, created_at, amount::text, original::text, currency, in_stock
FROM chunked.prices WHERE product_id = ANY (%s) ORDER BY product_id, created_at DESC
"""
_PRICE = """
INSERT INTO chunked.prices (product_id, created_at, amount, original, currency, in_stock)
VALUES (%s, %s, %s, %s, %s, %s)
"""


def prepare(connection: psycopg.Connection[Any], _address: dict[str, Any]) -> None:
    connection.execute(SCHEMA)


def measure(connection: psycopg.Connection[Any], address: dict[str, Any], file: Path) -> float:
    """Seconds for one file."""
    moment = datetime.now(UTC)
    with psycopg.connect(**address) as own:
        began = time.perf_counter()
        for chunk in _chunks(file):
            _write(own, chunk, moment)
            own.commit()
        return time.perf_counter() - began


def _chunks(file: Path) -> Iterator[list[list[str]]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
        rows = csv.reader(text)
        next(rows)
        while chunk := list(islice(rows, CHUNK)):
            yield chunk


def _write(connection: psycopg.Connection[Any], chunk: list[list[str]], moment: datetime) -> None:
    with connection.cursor() as cursor:
        ids = _upserted(cursor, chunk, moment)
        cursor.execute(_NEWEST, [ids])
        newest = {row[0]: row[1:] for row in cursor.fetchall()}
        due = [
            _price(row, moment) for row in zip(ids, chunk, strict=True) if _is_due(newest.get(row[0]), row[1], moment)
        ]
        if due:
            cursor.executemany(_PRICE, due)


def _upserted(cursor: psycopg.Cursor[Any], chunk: list[list[str]], moment: datetime) -> list[int]:
    values = [(r[0], r[1], r[2], r[3], r[8], r[9], r[10], r[11], r[12], moment) for r in chunk]
    cursor.executemany(_UPSERT, values, returning=True)
    ids = []
    while True:
        ids.append(cursor.fetchone()[0])
        if not cursor.nextset():
            return ids


def _is_due(newest: tuple[Any, ...] | None, row: list[str], moment: datetime) -> bool:
    if newest is None or moment - newest[0] >= HEARTBEAT:
        return True
    return newest[1:] != (row[4], row[5] or None, row[6], row[7] == "in stock")


def _price(found: tuple[int, list[str]], moment: datetime) -> tuple[Any, ...]:
    product, row = found
    return product, moment, row[4], row[5] or None, row[6], row[7] == "in stock"
