"""Parsed rows to tables: into staging, and from there into products or the staged contents."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import numpy as np
import polars as pl
from django.db import connection
from numpy.typing import NDArray

from harvester.catalog.before_images import CONTENT_COLUMNS
from harvester.engine.job import RunningJob
from harvester.feeds.reader import ROW_COLUMNS, Parsing
from harvester.feeds.reader.duplicates import ShownRow
from harvester.feeds.reader.spool import Spool
from harvester.kernel.identity import NUMBERS, IdentityType
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.match import Match
from harvester.pipeline.staging import (
    Slot,
    analyse,
    copy_in,
    lines_and_ids,
    prepare_session,
)

#: The columns of products, which are spooled together with the line.
_PRODUCT_COLUMNS = ("identity_type", "identity_value", "content_hash", *CONTENT_COLUMNS)
_IS_NEW = "is_new"
_IS_CONTENT = "is_content"
_IS_EITHER = "is_new OR is_content"
#: New, or inserted by an attempt that was not promoted.
_IS_UNSHOWN = "NOT has_offer AND NOT is_missing"
#: Sample rows of each kind.
MOST_SHOWN = 50
_CONTENTS = ("line", "title", "url")
_TYPE_NAMES = {number: kind.value for kind, number in NUMBERS.items()}
T = TypeVar("T")
_END = object()


class Position:
    """The position up to which a file was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.total = os.fstat(file.fileno()).st_size

    @property
    def done(self) -> int:
        return self._file.tell()  # plain: quoted


OnBlock: TypeAlias = Callable[[Position], object]


def stage(
    job: RunningJob,
    slot: Slot,
    parsing: Parsing,
    spool: Spool,
    position: Position,
    *,
    on_block: OnBlock | None = None,
) -> None:
    """Parse a file to its end and put keys, hashes and prices into staging. The last row of a product wins.

    `on_block` is called after each block of the file.
    """

    def read_parts() -> Iterator[pl.DataFrame]:
        for part in parsing.parts():
            job.check()
            job.progress(position.done, position.total, f"parsed {parsing.report.rows_read:,} rows")
            if on_block:
                on_block(position)
            if part.parsed.height:
                spool.add(part.parsed.select("line", *_PRODUCT_COLUMNS))
            spool.leaves_out |= part.cached > 0
            if part.rows.height:
                yield part.rows

    with job.transaction(), connection.cursor() as cursor:
        prepare_session(cursor)
        cursor.execute("SELECT clear_staging(%s)", [slot.number])  # mutant: empty-staging
        copy_in(cursor, slot.rows, ROW_COLUMNS, read_parts())
        duplicates = parsing.report.duplicates
        if duplicates and duplicates.count:
            # Without title and address: cached rows are not in the spool, and samples must not depend on the cache.
            duplicates.shown.update(_shown(cursor, slot, [sample.line for sample in duplicates.samples], {}))
            superseded = duplicates.superseded.to_list()
            # With the type of the column PostgreSQL hashes the list; otherwise it compares each row with each entry.
            cursor.execute(f"DELETE FROM {slot.rows} WHERE line = ANY (%s::bigint[])", [superseded])  # noqa: S608


def _shown(cursor: Any, slot: Slot, lines: list[int], contents: Mapping[int, tuple[str, str]]) -> dict[int, ShownRow]:
    """Return line -> identity and row of these staged rows; `contents` has title and address by line."""
    cursor.execute(
        "SELECT line, identity_type, identity_value, "  # noqa: S608 - a constant
        "round(amount, greatest(2, min_scale(amount))), currency "
        f"FROM {slot.rows} WHERE line = ANY (%s::bigint[]) LIMIT %s",
        [lines, len(lines)],
    )
    found = {}
    for line, kind, value, amount, currency in cursor.fetchall():
        identity = f"{_TYPE_NAMES[kind]} {value}"
        title, url = contents.get(line, ("", ""))
        parts = (identity, title, f"{amount} {currency}", url)
        found[line] = ShownRow(identity, " | ".join(part for part in parts if part))
    return found


def add_new_products(
    job: RunningJob,
    slot: Slot,
    spool: Spool,
    baseline: Baseline,
    run_no: int,
    *,
    around_block: Callable[[int], AbstractContextManager[object]] = nullcontext,
) -> Iterator[int]:
    """Insert products that were never seen before; yield the total after each block.

    They are not visible yet, because they have no offer. `around_block` gets the number of products of each block and
    is entered around its transaction.
    """
    with connection.cursor() as cursor:
        lines, ids = lines_and_ids(cursor, slot, _IS_NEW)
    blocks = (
        block.with_columns(
            pl.lit(str(baseline.source_id)).alias("source_id"),
            pl.Series("id", ids[block["place"].to_numpy()]),
            pl.lit(run_no).alias("created_run_no"),
            pl.lit(run_no).alias("updated_run_no"),
        ).drop("line", "place")
        for block in spool.rows(lines, list(_PRODUCT_COLUMNS))
    )
    done = 0
    for products in _prefetched(blocks):
        job.check()
        with around_block(products.height), job.transaction(), connection.cursor() as cursor:  # mutant: load-fenced
            # The promotion's commit makes earlier log records durable too; until then nothing depends on them.
            cursor.execute("SET LOCAL synchronous_commit = off")
            copy_in(cursor, "source_products", products.columns, [products])
        done += products.height
        job.progress(done, len(lines), "new products")
        yield done


def _prefetched(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, computing the next one in another thread while one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        upcoming = pool.submit(next, items, _END)
        while (item := upcoming.result()) is not _END:
            upcoming = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]  # anything but the end is an item


def stage_contents(job: RunningJob, slot: Slot, spool: Spool, *, with_new: bool) -> None:
    """Stage the content of changed products, and of new ones if `with_new`."""
    with job.transaction(), connection.cursor() as cursor:
        lines, _ = lines_and_ids(cursor, slot, _IS_EITHER if with_new else _IS_CONTENT)
        blocks = spool.rows(lines, list(CONTENT_COLUMNS))
        if copy_in(cursor, slot.contents, ["line", *CONTENT_COLUMNS], blocks):
            analyse(cursor, slot, "contents")


def count_missing_contents(slot: Slot, spool: Spool, found: Match) -> int:
    """Return for how many rows the spool lacks content that is needed: cached rows of products that are not stored."""
    if not spool.leaves_out or not (found.new or found.content):
        return 0
    with connection.cursor() as cursor:
        lines, _ = lines_and_ids(cursor, slot, f"{_IS_EITHER} OR {_IS_UNSHOWN}" if found.new else _IS_EITHER)
    return spool.count_missing(lines)


def first_by_url(slot: Slot, spool: Spool) -> list[tuple[int, str]]:
    """Return line and address of the first rows that are identified by their address only."""
    query = f"SELECT line FROM {slot.rows} WHERE identity_type = %s ORDER BY line LIMIT %s"  # noqa: S608 - a constant
    with connection.cursor() as cursor:
        cursor.execute(query, [NUMBERS[IdentityType.URL_HASH], MOST_SHOWN])
        lines = np.array([row[0] for row in cursor.fetchall()], np.int64)
    return [row for block in spool.rows(lines, ["url"]) for row in block.select("line", "url").iter_rows()]


# Rows that are new under their identity, although a product has a weaker identity that the row has too.
_UPGRADES = """
SELECT n.line, p.identity_type, p.identity_value
FROM unnest(%(lines)s::bigint[], %(types)s::smallint[], %(skus)s::text[], %(hashes)s::text[])
    AS n (line, identity_type, sku, url_hash)
CROSS JOIN LATERAL (
    SELECT s.identity_type, s.identity_value FROM source_products s
    WHERE s.source_id = %(source)s AND (s.identity_type, s.identity_value) IN
        ((%(by_sku)s, n.sku), (%(by_url)s, n.url_hash)) AND s.identity_type > n.identity_type
    ORDER BY s.identity_type LIMIT 1
) p
"""
_WEAKER = "SELECT EXISTS (SELECT FROM source_products WHERE source_id = %s AND identity_type > %s)"


class Upgrade(NamedTuple):
    """A row with a stronger identity than its product has so far."""

    line: int
    row: str
    reason: str


def find_upgrades(slot: Slot, spool: Spool, source_id: UUID) -> tuple[int, list[Upgrade]]:
    """Return how many products get a stronger identity, and the first of them."""
    with connection.cursor() as cursor:
        cursor.execute(_WEAKER, [source_id, NUMBERS[IdentityType.NETWORK_ITEM_ID]])
        if not cursor.fetchone()[0]:
            return 0, []
        lines, _ = lines_and_ids(cursor, slot, _IS_UNSHOWN)
        count, known_as = _count_upgrades(cursor, spool, source_id, lines)
        blocks = spool.rows(np.array(sorted(known_as), np.int64), ["title", "url"])
        contents = {line: (title, url) for block in blocks for line, title, url in block.select(_CONTENTS).iter_rows()}
        shown = _shown(cursor, slot, list(known_as), contents) if known_as else {}
    samples = [
        Upgrade(line, shown[line].row, f"known as {weaker}, now {shown[line].identity}")
        for line, weaker in known_as.items()
        if line in shown
    ]
    return count, samples


def _count_upgrades(cursor: Any, spool: Spool, source_id: UUID, lines: NDArray[np.int64]) -> tuple[int, dict[int, str]]:
    """Return how many upgrades there are, and line -> old identity of the first of them."""
    count, samples = 0, dict[int, str]()
    for block in spool.rows(lines, ["identity_type", "sku", "url_hash"]):
        cursor.execute(
            _UPGRADES,
            {
                "source": source_id,
                "lines": block["line"].to_list(),
                "types": block["identity_type"].to_list(),
                "skus": block["sku"].to_list(),
                "hashes": block["url_hash"].to_list(),
                "by_sku": NUMBERS[IdentityType.SKU],
                "by_url": NUMBERS[IdentityType.URL_HASH],
            },
        )
        found = cursor.fetchall()
        count += len(found)
        room = MOST_SHOWN - len(samples)
        samples |= {line: f"{_TYPE_NAMES[kind]} {value}" for line, kind, value in found[:room]}
    return count, samples
