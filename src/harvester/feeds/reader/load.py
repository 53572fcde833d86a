"""From parsed rows to tables: into staging, and the rows that matter into products or beside the difference."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
import polars as pl
from django.db import connection
from numpy.typing import NDArray

from harvester.catalog.before_images import CONTENT_COLUMNS
from harvester.engine.job import RunningJob
from harvester.feeds.reader import ROW_COLUMNS, Parsing
from harvester.feeds.reader.duplicates import ShownRow
from harvester.feeds.reader.prefetch import ahead
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

#: What products are made of; only this is spooled, beside the line.
_PRODUCT_COLUMNS = ("identity_type", "identity_value", "content_hash", *CONTENT_COLUMNS)
_IS_NEW = "is_new"
_IS_CONTENT = "is_content"
_IS_EITHER = "is_new OR is_content"
#: New, or made by an attempt that came to no promotion.
_IS_UNSHOWN = "NOT has_offer AND NOT is_missing"
#: Rows of a kind that are shown to people.
MOST_SHOWN = 50
_CONTENTS = ("line", "title", "url")
_TYPE_NAMES = {number: kind.value for kind, number in NUMBERS.items()}


class Position:
    """How far a file was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.total = os.fstat(file.fileno()).st_size

    @property
    def done(self) -> int:
        return self._file.tell()


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
    """Parse a file to its end and put keys, hashes and prices into staging. The last row of a product counts.

    `on_block` is called whenever a block of the file was parsed.
    """
    with job.transaction(), connection.cursor() as cursor:
        prepare_session(cursor)
        cursor.execute("SELECT clear_staging(%s)", [slot.number])  # mutant: empty-staging
        copy_in(cursor, slot.rows, ROW_COLUMNS, _spooled(job, parsing, spool, position, on_block))
        duplicates = parsing.report.duplicates
        if duplicates and duplicates.count:
            # Without title and address: known rows are not in the spool, and samples must not depend on what was known.
            duplicates.shown.update(_shown(cursor, slot, [sample.line for sample in duplicates.samples], {}))
            lost = duplicates.superseded.to_list()
            # With the type of the column PostgreSQL hashes the list; otherwise it compares each row with each entry.
            cursor.execute(f"DELETE FROM {slot.rows} WHERE line = ANY (%s::bigint[])", [lost])  # noqa: S608


def _spooled(
    job: RunningJob, parsing: Parsing, spool: Spool, position: Position, on_block: OnBlock | None
) -> Iterator[pl.DataFrame]:
    for part in parsing.parts():
        job.check()
        job.progress(position.done, position.total, f"parsed {parsing.report.rows_read:,} rows")
        if on_block:
            on_block(position)
        if part.parsed.height:
            spool.add(part.parsed.select("line", *_PRODUCT_COLUMNS))
        spool.leaves_out |= part.known > 0
        if part.rows.height:
            yield part.rows


def _shown(cursor: Any, slot: Slot, lines: list[int], contents: Mapping[int, tuple[str, str]]) -> dict[int, ShownRow]:
    """Return line -> identity and row of these few staged rows; `contents` has title and address by line."""
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
    """Copy products that were never seen before, a block at a time; answers how many are there after each block.

    Nobody sees them: they have no offer yet. `around_block` gets the number of products of each block, and is entered
    around its transaction.
    """
    with connection.cursor() as cursor:
        lines, ids = lines_and_ids(cursor, slot, _IS_NEW)
    blocks = (_as_products(block, ids, baseline, run_no) for block in spool.rows(lines, list(_PRODUCT_COLUMNS)))
    done = 0
    for products in ahead(blocks):
        job.check()
        with around_block(products.height), job.transaction(), connection.cursor() as cursor:  # mutant: load-fenced
            # The promotion's commit makes what was logged before it durable too; until then nobody relies on it.
            cursor.execute("SET LOCAL synchronous_commit = off")
            copy_in(cursor, "source_products", products.columns, [products])
        done += products.height
        job.progress(done, len(lines), "new products")
        yield done


def _as_products(block: pl.DataFrame, ids: NDArray[np.int64], baseline: Baseline, run_no: int) -> pl.DataFrame:
    return block.with_columns(
        pl.lit(str(baseline.source_id)).alias("source_id"),
        pl.Series("id", ids[block["place"].to_numpy()]),
        pl.lit(run_no).alias("created_run_no"),
        pl.lit(run_no).alias("updated_run_no"),
    ).drop("line", "place")


def stage_contents(job: RunningJob, slot: Slot, spool: Spool, *, with_new: bool) -> None:
    """Put the content of changed products, and of new ones if asked for, beside the difference."""
    with job.transaction(), connection.cursor() as cursor:
        lines, _ = lines_and_ids(cursor, slot, _IS_EITHER if with_new else _IS_CONTENT)
        blocks = spool.rows(lines, list(CONTENT_COLUMNS))
        if copy_in(cursor, slot.contents, ["line", *CONTENT_COLUMNS], blocks):
            analyse(cursor, slot, "contents")


def lacking(slot: Slot, spool: Spool, found: Match) -> int:
    """How many rows the spool has no content of, although it is needed: they were known, and the catalog is another."""
    if not spool.leaves_out or not (found.new or found.content):
        return 0
    with connection.cursor() as cursor:
        lines, _ = lines_and_ids(cursor, slot, f"{_IS_EITHER} OR {_IS_UNSHOWN}" if found.new else _IS_EITHER)
    return spool.lacks(lines)


def first_by_url(slot: Slot, spool: Spool) -> list[tuple[int, str]]:
    """Line and address of the first rows that are known by nothing but their address."""
    query = f"SELECT line FROM {slot.rows} WHERE identity_type = %s ORDER BY line LIMIT %s"  # noqa: S608 - a constant
    with connection.cursor() as cursor:
        cursor.execute(query, [NUMBERS[IdentityType.URL_HASH], MOST_SHOWN])
        lines = np.array([row[0] for row in cursor.fetchall()], np.int64)
    return [row for block in spool.rows(lines, ["url"]) for row in block.select("line", "url").iter_rows()]


# A row that is new under its identity, although a product is known under a lesser identity that the row has too.
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
_LESSER = "SELECT EXISTS (SELECT FROM source_products WHERE source_id = %s AND identity_type > %s)"


class Upgrade(NamedTuple):
    """A row with a better identity than its product is known by."""

    line: int
    row: str
    reason: str


def find_upgrades(slot: Slot, spool: Spool, source_id: UUID) -> tuple[int, list[Upgrade]]:
    """Return how many products got a better identity than they are known by, and the first of them."""
    with connection.cursor() as cursor:
        cursor.execute(_LESSER, [source_id, NUMBERS[IdentityType.NETWORK_ITEM_ID]])
        if not cursor.fetchone()[0]:
            return 0, []
        lines, _ = lines_and_ids(cursor, slot, _IS_UNSHOWN)
        count, known_as = _upgrades(cursor, spool, source_id, lines)
        blocks = spool.rows(np.array(sorted(known_as), np.int64), ["title", "url"])
        contents = {line: (title, url) for block in blocks for line, title, url in block.select(_CONTENTS).iter_rows()}
        shown = _shown(cursor, slot, list(known_as), contents) if known_as else {}
    samples = [
        Upgrade(line, shown[line].row, f"known as {lesser}, now {shown[line].identity}")
        for line, lesser in known_as.items()
        if line in shown
    ]
    return count, samples


def _upgrades(cursor: Any, spool: Spool, source_id: UUID, lines: NDArray[np.int64]) -> tuple[int, dict[int, str]]:
    """Return how many there are, and line -> old identity of the first of them."""
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
