"""Rows of records that an earlier file had too are taken over instead of being made again.

What a record comes to depends on its bytes and on what `key_of` names, so it is enough to know the record again.
Records that were refused, or about which there was a warning, are never known: they are parsed each time, so that what
is found in a file is exact. Neither are products with nothing but their address: people are shown the first of them.
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
from harvester.feeds.reader.blocks import Block, joined
from harvester.feeds.reader.dialect import Dialect
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.output_rows import ROW_COLUMNS
from harvester.feeds.reader.row_cache.hashes import Hashes, hash_records
from harvester.feeds.reader.row_cache.reader import KeptRows
from harvester.feeds.reader.row_cache.writer import KEY, KeptWriter
from harvester.feeds.reader.rows import ParseSettings, RowReader, Rows
from harvester.feeds.reader.survey import Positions
from harvester.kernel.identity import NUMBERS, IdentityType
from harvester.kernel.network import Field, Network
from harvester.kernel.signature import CONTENT_VERSION

#: To be raised whenever a record comes to another row than before.
ROWS_VERSION: Final = 8
#: Below this share of known records a block is parsed as a whole, which costs no more.
LEAST_SHARE: Final = 0.15
#: When so many blocks had fewer known records than that, most of the file has changed, and no more are looked for.
FIRST_BLOCKS: Final = 8
#: Kept blocks that are read for one block of a file. Records that are scattered over more are parsed.
MOST_KEPT_BLOCKS: Final = 4
#: Blocks whose unknown records are parsed together, because a few records cost as much as some thousand. With 4 of them
#: 5 % of new records cost a tenth less, and everything takes 24 MB more.
MOST_TOGETHER: Final = 2
_BY_URL: Final = NUMBERS[IdentityType.URL_HASH]


def key_of(dialect: Dialect, binding: Binding, network: Network, settings: ParseSettings) -> str | None:
    """What rows depend on beside their records; none if they depend on the moment too."""
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
class Looked:
    """A block that was looked at.

    Attributes:
        lines: of all its records.
        hashes: of all its records.
        unknown: the records that have to be parsed.
        known: rows of the others.
        rows_read: records that were read, the refused ones included.
        findings: what was refused.
    """

    lines: Positions
    hashes: Hashes
    unknown: Block
    known: list[pl.DataFrame]
    rows_read: int
    findings: Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file.

    Attributes:
        rows: its valid rows, with at least the columns `ROW_COLUMNS`.
        parsed: those of them that were parsed, with all columns.
        known: how many the others are.
        findings: what was refused and noticed.
        rows_read: records that were read.
        links: see `Rows.links`.
    """

    rows: pl.DataFrame
    parsed: pl.DataFrame
    findings: Sequence[Findings]
    rows_read: int
    known: int = 0
    links: pl.DataFrame | None = None


class Known:
    """What is known of one file, and what will be known of it."""

    def __init__(self, kept: KeptRows | None, writer: KeptWriter | None) -> None:
        self._kept = kept
        self._writer = writer
        self._blocks = self._records = self._found = 0

    def while_looking(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Blocks of which something may be known; the others are left to whoever comes next."""
        while self._kept and (block := next(blocks, None)):
            yield block

    def look(self, block: Block) -> Looked:
        """Find the rows of a block's records."""
        hashes = hash_records(block)
        is_known = np.zeros(len(block.ends), bool)
        # Another thread may decide meanwhile that looking is in vain.
        kept = self._kept
        # What a quote means is part of the key, and here it is not what the beginning of the file says.
        known = list(_taken(kept, block, hashes, is_known)) if kept and not block.turned_quoted else []
        unknown = block.only(~is_known) if known else joined([block])
        return Looked(block.lines, hashes, unknown, known, block.rows_read, block.findings)

    def together(self, looked: Iterable[Looked], most_bytes: int) -> Iterator[list[Looked]]:
        """Blocks whose unknown records are to be parsed together."""
        waiting: list[Looked] = []
        for one in looked:
            self._judge(one)
            if waiting and waiting[0].unknown.turned_quoted != one.unknown.turned_quoted:
                yield waiting
                waiting = []
            waiting.append(one)
            if len(waiting) == MOST_TOGETHER or sum(len(each.unknown.data) for each in waiting) >= most_bytes:
                yield waiting
                waiting = []
        if waiting:
            yield waiting

    def read(self, looked: Sequence[Looked], reader: RowReader) -> Part:
        """Parse what is unknown of some blocks, and put it between what is known."""
        parsed = reader.read(joined([one.unknown for one in looked]))
        known = [rows for one in looked for rows in one.known]
        rows = pl.concat([*known, parsed.frame.select(ROW_COLUMNS)]).sort("line") if known else parsed.frame
        if self._writer and not self._writer.failure and not looked[0].unknown.turned_quoted:
            self._keep(self._writer, looked, rows, parsed)
        return Part(
            rows=rows,
            parsed=parsed.frame,
            findings=[*(one.findings for one in looked), *parsed.findings],
            rows_read=sum(one.rows_read for one in looked),
            known=sum(rows.height for rows in known),
            links=parsed.links,
        )

    def finish(self, superseded: pl.Series) -> None:
        """The whole file was read, and rows of these lines lost to later ones."""
        if self._writer:
            self._writer.finish(superseded.to_numpy())

    def _judge(self, looked: Looked) -> None:
        """Stop looking when the beginning of the file says that it is in vain."""
        self._blocks += 1
        self._records += len(looked.lines)
        self._found += sum(rows.height for rows in looked.known)
        if self._kept and self._blocks == FIRST_BLOCKS and self._found < self._records * LEAST_SHARE:
            self._kept.forget()
            self._kept = None

    def _keep(self, writer: KeptWriter, looked: Sequence[Looked], rows: pl.DataFrame, parsed: Rows) -> None:
        line = rows["line"].to_numpy()
        is_kept = (rows["identity_type"] != _BY_URL).to_numpy() & ~np.isin(line, parsed.warned)
        at = np.searchsorted(np.concatenate([one.lines for one in looked]), line[is_kept])
        keys = np.empty(len(at), KEY)
        keys["first"] = np.concatenate([one.hashes.first for one in looked])[at]
        keys["second"] = np.concatenate([one.hashes.second for one in looked])[at]
        keys["line"] = line[is_kept]
        writer.add(keys, rows if is_kept.all() else rows.filter(is_kept))


def _taken(kept: KeptRows, block: Block, hashes: Hashes, is_known: NDArray[np.bool_]) -> Iterator[pl.DataFrame]:
    """Rows of known records, one frame for each kept block; sets `is_known` for them."""
    places = kept.places(hashes)
    numbers = np.searchsorted(kept.starts, places, side="right") - 1
    occurring, counts = np.unique(numbers[places >= 0], return_counts=True)
    most = np.argsort(-counts)[:MOST_KEPT_BLOCKS]
    if counts[most].sum() < len(places) * LEAST_SHARE:
        return
    for number in occurring[most].tolist():
        if (rows := kept.rows(number)) is not None:
            at = np.flatnonzero(numbers == number)
            is_known[at] = True
            line = pl.Series("line", block.lines[at])
            yield rows[places[at] - kept.starts[number]].insert_column(0, line)
