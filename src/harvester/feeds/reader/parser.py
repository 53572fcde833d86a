"""A file to rows, as one iterator."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from harvester.feeds.reader.binding import Binding
from harvester.feeds.reader.blocks import BLOCK_BYTES, Block, OpenEnd, RecordCutter, Shape
from harvester.feeds.reader.columns import ColumnReader
from harvester.feeds.reader.dialect import Dialect, open_file
from harvester.feeds.reader.duplicates import Duplicates, ProductTracker
from harvester.feeds.reader.encoding import Encoding, Utf8Reader
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.row_cache.reuse import Part, RowCache, key_of
from harvester.feeds.reader.rows import ParseSettings, RowReader
from harvester.kernel.network import Field, Network

#: Rows that a feed test reads.
TEST_ROWS = 100  # mutant: test-rows
_TEST_CHUNK_BYTES = 64 * 1024
#: Polars releases the interpreter's lock, so blocks are read in parallel. More threads than these gain little.
_MOST_THREADS = 4
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class ParseLimits:
    """The most rows and products that a file may have."""

    rows: int = 500_000
    products: int = 500_000


@dataclass(kw_only=True)
class ParseReport:
    """What was read. It is complete once all rows were taken.

    Attributes:
        encoding: of the file.
        dialect: delimiter, quoting, line ends.
        binding: the meaning of the columns.
        rows_read: records after the header, without blank lines.
        rows_valid: records that became rows.
        rows_cached: valid rows that came from the row cache.
        is_open_ended: no line feed ends the last record.
        left_out: line of the last record, if it was counted and left out because it may be cut.
        left_out_identity: type and value of that record's identity, if it has one.
        findings: rejected rows and warnings by their codes, with samples.
        duplicates: the products of the whole file; None before its end, and in a feed test.
    """

    dialect: Dialect
    binding: Binding
    encoding: Encoding = "utf-8"
    rows_read: int = 0
    rows_valid: int = 0
    rows_cached: int = 0
    is_open_ended: bool = False
    left_out: int | None = None
    left_out_identity: tuple[int, str] | None = None
    findings: Findings = field(default_factory=Findings)
    duplicates: Duplicates | None = None

    @property
    def rows_rejected(self) -> int:
        return self.rows_read - self.rows_valid - (self.left_out is not None)

    @property
    def stock_cells(self) -> int:
        """The non-empty cells of the stock column; those of cached rows could all be read."""
        cached = self.rows_cached if Field.STOCK in self.binding.columns else 0
        return cached + self.findings.stock_cells


class Parsing:
    """The rows of one file, block by block, in the order of the file; it can be iterated once.

    The constructor reads the header.

    Raises:
        EmptyFile, HtmlInsteadOfCsv, HeaderUnreadable, EncodingUnreadable: it is not a catalog of that network.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        network: Network,
        settings: ParseSettings,
        *,
        limits: ParseLimits | None = None,
        encoding: Encoding | None = None,
        first_rows: int | None = None,
        may_be_cut: bool | None = None,
        open_end: OpenEnd = OpenEnd.TAKE,
        suspicion: str = "",
        may_lack_parts: Callable[[], bool] = lambda: False,
        threads: int | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._text = Utf8Reader(chunks, encoding)
        self._opening = open_file(self._text, network)
        self._limits = limits or ParseLimits()
        self._first_rows = first_rows
        self._threads = threads or min(os.cpu_count() or 1, _MOST_THREADS)
        self._block_bytes = block_bytes
        shape = Shape(
            delimiter=self._opening.dialect.delimiter.encode(),
            quoted=self._opening.dialect.quoted,
            columns=len(self._opening.binding.header),
            first_line=self._opening.first_line,
            first_rows=self._opening.first_rows,
            may_be_cut=first_rows is not None if may_be_cut is None else may_be_cut,
            may_turn_quoted=self._opening.may_turn_quoted,
            open_end=open_end,
            suspicion=suspicion,
            may_lack_parts=may_lack_parts,
        )
        self._cutter = RecordCutter(shape, most_rows=self._limits.rows, first_rows=first_rows)
        columns = ColumnReader(self._opening.dialect, self._opening.binding)
        self._rows = RowReader(columns, network, settings)
        self._cache: RowCache | None = None
        #: A hash of what rows depend on except their records; None if they also depend on the moment.
        self.key = key_of(self._opening.dialect, self._opening.binding, network, settings)
        self._tracker = ProductTracker(self._limits.products)
        self.report = ParseReport(dialect=self._opening.dialect, binding=self._opening.binding)

    @property
    def bytes_read(self) -> int:
        """How much of the file was read so far."""
        return self._text.bytes_read

    @property
    def encoding(self) -> Encoding:
        """The encoding as far as it is known."""
        return self._text.encoding

    def use(self, cache: RowCache) -> None:
        """Take rows from a cache made under the same `key`, and write those of this file to it."""
        self._cache = cache

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Yield the valid rows that were parsed, in frames with the columns of `output_rows.SCHEMA`."""
        return (part.parsed for part in self.parts())

    def parts(self) -> Iterator[Part]:
        """Yield the file, part by part.

        Raises:
            TruncatedFile: the last record is incomplete.
            RowCountLimitExceeded, UniqueProductLimitExceeded, EncodingUnreadable: the whole file is unusable, whatever
                was yielded before.
        """
        with closing(self._read()) as parts:
            for part in parts:
                self.report.rows_read += part.rows_read
                self.report.rows_valid += part.rows.height
                self.report.rows_cached += part.cached
                self.report.findings.add(part.findings)
                self._tracker.add(part.rows, part.links)
                yield part
        self._report_end()
        if self._first_rows is None:
            self.report.duplicates = self._tracker.finish()
            if self._cache:
                self._cache.finish(self.report.duplicates.superseded)

    def check_records(self) -> ParseReport:
        """Read the file to its end without making rows, to count its records and see whether they are complete.

        Raises:
            TruncatedFile, RowCountLimitExceeded, EncodingUnreadable: a run would raise them too.
        """
        for block in self._blocks():
            self.report.rows_read += block.rows_read
        self._report_end()
        return self.report

    def _read(self) -> Generator[Part]:
        """Yield parts in their order, read in parallel by a limited number of threads.

        An error of the file is raised after the blocks before it, so that their findings are recorded.
        """
        errors: list[Exception] = []
        with ThreadPoolExecutor(self._threads, thread_name_prefix="parse") as pool:
            blocks = _until_error(self._blocks(), errors)
            if self._cache:
                # Cached rows come fast and take memory, so few of them wait.
                lookups = _in_order(pool, self._cache.look_up, self._cache.while_useful(blocks), waiting=1)
                together = self._cache.together(lookups, self._block_bytes // 2)
                yield from _in_order(pool, partial(self._cache.read, reader=self._rows), together, waiting=1)
            yield from _in_order(pool, self._part, blocks, waiting=self._threads)
        for error in errors:
            raise error

    def _part(self, block: Block) -> Part:
        if self._cache:
            return self._cache.read([self._cache.look_up(block)], self._rows)
        rows = self._rows.read(block)
        return Part(
            rows=rows.frame, parsed=rows.frame, findings=rows.findings, rows_read=rows.rows_read, links=rows.links
        )

    def _blocks(self) -> Iterator[Block]:
        blocks = self._cutter.blocks(_rechunked(self._opening.rows, self._block_bytes))
        return (block for block in blocks if block.rows_read)

    def _report_end(self) -> None:
        self.report.encoding = self._text.encoding
        self.report.is_open_ended = self._cutter.is_open_ended
        if self._cutter.turned_quoted:
            self.report.dialect = replace(self.report.dialect, quoted=True)
        if block := self._cutter.left_out:
            self.report.rows_read += block.rows_read
            self.report.left_out = self._cutter.left_out_line
            if len(block.ends):
                self.report.left_out_identity = self._rows.identity(block)


def parse_file(
    path: Path,
    network: Network,
    settings: ParseSettings,
    *,
    limits: ParseLimits | None = None,
    encoding: Encoding | None = None,
    first_rows: int | None = None,
) -> Parsing:
    """Parse an uncompressed local file."""
    size = BLOCK_BYTES if first_rows is None else _TEST_CHUNK_BYTES
    return Parsing(file_chunks(path, size), network, settings, limits=limits, encoding=encoding, first_rows=first_rows)


def file_chunks(path: Path, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the content of a file in chunks."""
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(size):
            yield chunk


def _in_order(pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], *, waiting: int) -> Generator[R]:
    """Yield the results of the work in the order of the items; `waiting` more items are submitted ahead."""
    working: deque[Future[R]] = deque()
    for item in items:
        working.append(pool.submit(work, item))
        if len(working) > waiting:
            yield working.popleft().result()
    while working:
        yield working.popleft().result()


def _until_error(items: Iterable[T], errors: list[Exception]) -> Iterator[T]:
    """Yield the items until the first error, and add that to `errors`."""
    try:
        yield from items
    except Exception as error:  # noqa: BLE001 - the caller raises it
        errors.append(error)


def _rechunked(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield chunks of about that size, whatever the size of those given."""
    ready: list[bytes] = []
    count = 0
    for chunk in chunks:
        for start in range(0, len(chunk), size):
            piece = chunk[start : start + size]
            ready.append(piece)
            count += len(piece)
            if count >= size // 2:
                yield b"".join(ready)
                ready, count = [], 0
    yield b"".join(ready)
