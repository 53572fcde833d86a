"""Rows of records that an earlier file had too are taken from the cache instead of being parsed again.

The row of a record depends on its bytes and on the values in `key_of`, so it is enough to recognize the record. Records
that were rejected or had a warning are never cached: they are parsed each time, so that counts and samples are exact.
Products that are identified by their address only are not cached either, because people are shown the first of them.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
import polars_hash
from numpy.typing import NDArray

import harvester
from harvester.feeds.reader.binding import Binding
from harvester.feeds.reader.blocks import Block, join
from harvester.feeds.reader.dialect import Dialect
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.output_rows import BY_URL, ROW_COLUMNS
from harvester.feeds.reader.row_cache.file import KEY, CachedRows, CacheWriter, Hashes, hash_records
from harvester.feeds.reader.rows import ParseSettings, RowReader
from harvester.feeds.reader.survey import Positions
from harvester.kernel.network import Field, Network
from harvester.kernel.signature import CONTENT_VERSION

#: Raise it whenever a record is read as another row than before.
ROWS_VERSION: Final = 8
#: Below this share of cached records a whole block is parsed, which costs the same.
LEAST_SHARE: Final = 0.15
#: If the first blocks together have a smaller share, most of the file has changed, and the cache is not used further.
FIRST_BLOCKS: Final = 8
#: Cached blocks that are read for one block of a file. Records that are scattered over more are parsed.
MOST_CACHED_BLOCKS: Final = 4
#: Blocks whose new records are parsed together, because a few records cost as much as a few thousand. With 4 of them,
#: 5 % of new records cost a tenth less, but the process takes 24 MB more.
MOST_TOGETHER: Final = 2


def key_of(dialect: Dialect, binding: Binding, network: Network, settings: ParseSettings) -> str | None:
    """Return a hash of what rows depend on except their records; None if they also depend on the moment."""
    if Field.SALE_PERIOD in binding.columns:
        return None
    links = settings.link_rules(network)
    depends_on = [
        *(ROWS_VERSION, CONTENT_VERSION, harvester.__version__, pl.__version__, polars_hash.__version__),
        *(dialect.delimiter, dialect.quoted, binding.header, sorted(binding.columns.items())),
        *(network.name, links.tracked_path, links.landing_parameters, sorted(links.tracking_names)),
        *(links.tracking_prefixes, settings.default_currency, settings.decimal_style, settings.unknown_stock),
        *(sorted(links.shown_names), sorted(links.kept_names), [str(network) for network in links.allowed_networks]),
    ]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Lookup:
    """A block whose records were looked up in the cache.

    Attributes:
        lines: of all its records.
        hashes: of all its records.
        new: the records that have to be parsed.
        cached: the rows of the others.
        rows_read: records that were read, including rejected ones.
        findings: the rejected records.
    """

    lines: Positions
    hashes: Hashes
    new: Block
    cached: list[pl.DataFrame]
    rows_read: int
    findings: Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file.

    Attributes:
        rows: its valid rows, with at least the columns `ROW_COLUMNS`.
        parsed: those of them that were parsed, with all columns.
        cached: how many came from the cache.
        findings: rejected rows and warnings.
        rows_read: records that were read.
        links: see `Rows.links`.
    """

    rows: pl.DataFrame
    parsed: pl.DataFrame
    findings: Sequence[Findings]
    rows_read: int
    cached: int = 0
    links: pl.DataFrame | None = None


class RowCache:
    """The cached rows of the last file, and the cache that is written for the next one."""

    def __init__(self, cached: CachedRows | None, writer: CacheWriter | None) -> None:
        self._cached = cached
        self._writer = writer
        self._blocks = self._records = self._found = 0

    def while_useful(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield the blocks to look up; the iterator keeps the others."""
        while self._cached and (block := next(blocks, None)):
            yield block

    def look_up(self, block: Block) -> Lookup:
        """Find the rows of a block's records."""
        hashes = hash_records(block)
        is_cached = np.zeros(len(block.ends), bool)
        # Another thread may drop the cache meanwhile.
        cached = self._cached
        # The key says what quotes mean at the beginning of the file, and here they mean something else.
        found = list(_cached_rows(cached, block, hashes, is_cached)) if cached and not block.turned_quoted else []
        new = block.only(~is_cached) if found else join([block])
        return Lookup(block.lines, hashes, new, found, block.rows_read, block.findings)

    def together(self, lookups: Iterable[Lookup], most_bytes: int) -> Iterator[list[Lookup]]:
        """Yield blocks whose new records are to be parsed together."""
        waiting: list[Lookup] = []
        for one in lookups:
            self._blocks += 1
            self._records += len(one.lines)
            self._found += sum(rows.height for rows in one.cached)
            if self._cached and self._blocks == FIRST_BLOCKS and self._found < self._records * LEAST_SHARE:
                self._cached.forget()
                self._cached = None
            if waiting and waiting[0].new.turned_quoted != one.new.turned_quoted:
                yield waiting
                waiting = []
            waiting.append(one)
            if len(waiting) == MOST_TOGETHER or sum(len(each.new.data) for each in waiting) >= most_bytes:
                yield waiting
                waiting = []
        if waiting:
            yield waiting

    def read(self, lookups: Sequence[Lookup], reader: RowReader) -> Part:
        """Parse the new records of some blocks, and merge their rows with the cached ones."""
        parsed = reader.read(join([one.new for one in lookups]))
        cached = [rows for one in lookups for rows in one.cached]
        rows = pl.concat([*cached, parsed.frame.select(ROW_COLUMNS)]).sort("line") if cached else parsed.frame
        if self._writer and not self._writer.failure and not lookups[0].new.turned_quoted:
            line = rows["line"].to_numpy()
            is_kept = (rows["identity_type"] != BY_URL).to_numpy() & ~np.isin(line, parsed.warned)
            at = np.searchsorted(np.concatenate([one.lines for one in lookups]), line[is_kept])
            keys = np.empty(len(at), KEY)
            keys["first"] = np.concatenate([one.hashes.first for one in lookups])[at]
            keys["second"] = np.concatenate([one.hashes.second for one in lookups])[at]
            keys["line"] = line[is_kept]
            self._writer.add(keys, rows if is_kept.all() else rows.filter(is_kept))
        return Part(
            rows=rows,
            parsed=parsed.frame,
            findings=[*(one.findings for one in lookups), *parsed.findings],
            rows_read=sum(one.rows_read for one in lookups),
            cached=sum(rows.height for rows in cached),
            links=parsed.links,
        )

    def finish(self, superseded: pl.Series) -> None:
        """End the new cache; the whole file was read, and later rows replace these lines."""
        if self._writer:
            self._writer.finish(superseded.to_numpy())


def _cached_rows(
    cached: CachedRows, block: Block, hashes: Hashes, is_cached: NDArray[np.bool_]
) -> Iterator[pl.DataFrame]:
    """Yield the rows of cached records, one frame for each cached block; set `is_cached` for them."""
    places = cached.places(hashes)
    numbers = np.searchsorted(cached.starts, places, side="right") - 1
    distinct, counts = np.unique(numbers[places >= 0], return_counts=True)
    most = np.argsort(-counts)[:MOST_CACHED_BLOCKS]
    if counts[most].sum() < len(places) * LEAST_SHARE:
        return
    for number in distinct[most].tolist():
        if (rows := cached.rows(number)) is not None:
            at = np.flatnonzero(numbers == number)
            is_cached[at] = True
            line = pl.Series("line", block.lines[at])
            yield rows[places[at] - cached.starts[number]].insert_column(0, line)
