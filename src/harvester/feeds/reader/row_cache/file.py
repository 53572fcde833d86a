"""A file of rows that are found by the hashes of their records.

    magic ─ block ─ block ─ ... ─ index ─ end
            ├ keys of the rows: two hashes and the line of each
            └ the rows in Arrow format, only the columns that are compared, without their lines

The index has the blocks, and the key of everything that the rows depend on except their records. Everything has a
checksum, so that a damaged file is never used.
"""

import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import polars as pl
import polars_hash  # noqa: F401 - registers the expressions `chash` and `nchash`
from isal import isal_zlib
from numpy.typing import NDArray

from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.output_rows import ROW_COLUMNS, SCHEMA
from harvester.feeds.reader.survey import Positions

_LINE_FEED, _NUL = 10, 0
#: Any number; the other hash has no seed.
_SEED = 5


class Hashes(NamedTuple):
    """Two hashes of each record."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint32]


def hash_records(block: Block) -> Hashes:
    """Return the hashes of a block's records, without the carriage return before a line feed.

    No reader of records sees that one either.
    """
    both = _hash_lines(block.data)
    if both.height != len(block.ends):
        # Line feeds within records become NUL, which no record has.
        values = np.frombuffer(block.data, np.uint8).copy()
        values[values == _LINE_FEED] = _NUL
        values[block.ends - 1] = _LINE_FEED
        both = _hash_lines(values.tobytes())
    return Hashes(both["first"].to_numpy(), both["second"].to_numpy().astype(np.uint32))


def _hash_lines(data: bytes) -> pl.DataFrame:
    line = pl.col("line")
    second = line.nchash.xxhash64(seed=_SEED)  # type: ignore[attr-defined]
    return pl.scan_lines(data).select(first=line.hash(), second=second).collect()


COLUMNS: Final = pl.Schema({name: SCHEMA[name] for name in ROW_COLUMNS if name != "line"})
KEY: Final = np.dtype([("first", "<u8"), ("second", "<u4"), ("line", "<u4")])
MAGIC: Final = b"harvester rows 1\n"
#: Length and checksum of the index, at the very end.
END: Final = struct.Struct("<QL")
#: Blocks that are held in memory. Files mostly keep their order from day to day, so one block of a file needs two or
#: three of these, and several are read in parallel.
_HELD_BLOCKS: Final = 6
_checksum = isal_zlib.crc32


class _StoredBlock(NamedTuple):
    """The place of a block, and the checksums of its two parts."""

    offset: int
    rows: int
    keys_sum: int
    rows_size: int
    rows_sum: int

    @property
    def keys_size(self) -> int:
        return self.rows * KEY.itemsize


class CacheWriter:
    """Writes the rows of one file. After a failed write, nothing more is written.

    Attributes:
        failure: the error of that write.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key
        self._blocks: list[_StoredBlock] = []
        self._position = 0
        self._is_whole = False
        self._lock = Lock()
        self.failure: OSError | None = None
        with self._recorded_failure():
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._write(MAGIC)

    def add(self, keys: NDArray[Any], rows: pl.DataFrame) -> None:
        """Write a block of rows with a key for each, from any thread and in any order."""
        if not len(keys):
            return
        data = rows.select(COLUMNS.names()).write_ipc_stream(None).getbuffer()
        keys_sum, rows_sum = _checksum(keys), _checksum(data)
        with self._lock, self._recorded_failure():
            if self.failure is None:
                self._blocks.append(_StoredBlock(self._position, len(keys), keys_sum, len(data), rows_sum))
                self._write(keys.tobytes())
                self._write(data)

    def finish(self, superseded: NDArray[np.int64]) -> None:
        """End the file. The rows of superseded lines are not found again."""
        if self.failure:
            return
        with self._recorded_failure():
            if len(superseded):
                self._blocks = [self._blank_keys(block, superseded) for block in self._blocks]
            index = json.dumps({"key": self._key, "blocks": self._blocks}).encode()
            self._write(index)
            self._write(END.pack(len(index), _checksum(index)))
            self._is_whole = True

    def publish(self, path: Path) -> None:
        """Move the file to its place in one step.

        Raises:
            OSError: this or an earlier write failed.
        """
        if self.failure or not self._is_whole:
            raise self.failure or OSError("the file was not read to its end")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.replace(path)

    def close(self) -> None:
        """Close the file; it can still be published."""
        if self._position:
            os.close(self._file)
            self._position = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _blank_keys(self, block: _StoredBlock, superseded: NDArray[np.int64]) -> _StoredBlock:
        keys = np.frombuffer(bytearray(os.pread(self._file, block.keys_size, block.offset)), KEY)
        keys[np.isin(keys["line"], superseded)] = np.zeros((), KEY)
        os.pwrite(self._file, keys.tobytes(), block.offset)
        return block._replace(keys_sum=_checksum(keys))

    def _write(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            self._position += written
            rest = rest[written:]

    @contextmanager
    def _recorded_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Its traceback would keep the block that was being written in memory as long as the run.
            self.failure = error.with_traceback(None)


class _Unusable(Exception):
    """The file is damaged, or its rows were made under another key."""


class _SortedHashes(NamedTuple):
    """Two hashes of each row's record, in the order of the first, and the place of each among all rows."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint32]
    order: NDArray[np.uint32]


_NO_HASHES: Final = _SortedHashes(np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint32))


class CachedRows:
    """The rows of one file, open for reading by any number of threads."""

    def __init__(self, file: int, key: str) -> None:
        self._file = file
        self._blocks = _read_index(file, key)
        #: The place of each block's first row among all rows.
        self.starts = np.cumsum([0, *(block.rows for block in self._blocks)])
        first = np.empty(self.starts[-1], np.uint64)
        second = np.empty(self.starts[-1], np.uint32)
        for block, start, stop in zip(self._blocks, self.starts, self.starts[1:], strict=False):
            data = os.pread(file, block.keys_size, block.offset)
            if _checksum(data) != block.keys_sum:
                raise _Unusable
            keys = np.frombuffer(data, KEY)
            first[start:stop], second[start:stop] = keys["first"], keys["second"]
        order = np.argsort(first).astype(np.uint32)
        self._hashes = _SortedHashes(first[order], second[order], order)
        self.rows = lru_cache(maxsize=_HELD_BLOCKS)(self._rows)

    @classmethod
    def open(cls, path: Path, key: str) -> Self | None:
        """Return the rows at that path; None if there are none, or if they were made under another key."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return cls(file, key)
        except (_Unusable, OSError):
            os.close(file)
            return None

    def places(self, hashes: Hashes) -> Positions:
        """Return the place of each record's row among all rows; -1 if there is none."""
        known = self._hashes
        if not len(known.first):
            return np.full(len(hashes.first), -1)
        found = np.minimum(np.searchsorted(known.first, hashes.first), len(known.first) - 1)
        is_known = (known.first[found] == hashes.first) & (known.second[found] == hashes.second)
        return np.where(is_known, known.order[found].astype(np.int64), -1)

    def forget(self) -> None:
        """Free the memory; from now on no record is found, even by threads that are searching."""
        self._hashes = _NO_HASHES
        self.rows.cache_clear()

    def _rows(self, number: int) -> pl.DataFrame | None:
        """Return the rows of a block; None if they are damaged."""
        block = self._blocks[number]
        try:
            data = os.pread(self._file, block.rows_size, block.offset + block.keys_size)
        except OSError:
            return None
        if _checksum(data) != block.rows_sum:
            return None
        rows = pl.read_ipc_stream(data)
        return rows if rows.schema == COLUMNS and rows.height == block.rows else None

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_index(file: int, key: str) -> list[_StoredBlock]:
    size = os.fstat(file).st_size
    end = os.pread(file, END.size, max(size - END.size, 0))
    if len(end) < END.size or os.pread(file, len(MAGIC), 0) != MAGIC:
        raise _Unusable
    length, index_sum = END.unpack(end)
    data = os.pread(file, length, size - END.size - length) if length <= size - END.size else b""
    if _checksum(data) != index_sum or not data:
        raise _Unusable
    index = json.loads(data)
    if index["key"] != key:
        raise _Unusable
    return [_StoredBlock(*block) for block in index["blocks"]]
