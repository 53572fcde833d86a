"""Rows that were kept from an earlier file, found by the hashes of records. `writer` writes them."""

import json
import os
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.row_cache.hashes import Hashes
from harvester.feeds.reader.row_cache.writer import END, KEPT, KEY, MAGIC, KeptBlock, checksum
from harvester.feeds.reader.survey import Positions

#: Blocks that are held in memory. Files come mostly in the order of the day before, so one block of a file needs two or
#: three of these, and a few are read side by side.
_HELD_BLOCKS: Final = 6


class _Unusable(Exception):
    """The file is not what was written, or rows are read in another way now."""


class _Hashes(NamedTuple):
    """Two hashes of each row's record, in the order of the first, and the place of each among all rows."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint32]
    order: NDArray[np.uint32]


_NOTHING: Final = _Hashes(np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint32))


class KeptRows:
    """The rows of one file, open for reading; any number of threads may use it."""

    def __init__(self, file: int, key: str) -> None:
        self._file = file
        self._blocks = _index(file, key)
        #: The place of each block's first row among all rows.
        self.starts = np.cumsum([0, *(block.rows for block in self._blocks)])
        first = np.empty(self.starts[-1], np.uint64)
        second = np.empty(self.starts[-1], np.uint32)
        for block, start, stop in zip(self._blocks, self.starts, self.starts[1:], strict=False):
            keys = self._keys(block)
            first[start:stop], second[start:stop] = keys["first"], keys["second"]
        order = np.argsort(first).astype(np.uint32)
        self._hashes = _Hashes(first[order], second[order], order)
        self.rows = lru_cache(maxsize=_HELD_BLOCKS)(self._rows)

    @classmethod
    def open(cls, path: Path, key: str) -> Self | None:
        """The rows at that path; none if there are none, or if they depend on something else than `key` says."""
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
        """Where the row of each record stands among all rows; -1 if there is none."""
        known = self._hashes
        if not len(known.first):
            return np.full(len(hashes.first), -1)
        found = np.minimum(np.searchsorted(known.first, hashes.first), len(known.first) - 1)
        is_known = (known.first[found] == hashes.first) & (known.second[found] == hashes.second)
        return np.where(is_known, known.order[found].astype(np.int64), -1)

    def forget(self) -> None:
        """Give back what was held in memory; from now on no record is found, also not by threads that are at it."""
        self._hashes = _NOTHING
        self.rows.cache_clear()

    def _rows(self, number: int) -> pl.DataFrame | None:
        """The rows of a block; none if they are damaged."""
        block = self._blocks[number]
        try:
            data = os.pread(self._file, block.rows_size, block.offset + block.keys_size)
        except OSError:
            return None
        if checksum(data) != block.rows_sum:
            return None
        rows = pl.read_ipc_stream(data)
        return rows if rows.schema == KEPT and rows.height == block.rows else None

    def _keys(self, block: KeptBlock) -> NDArray[np.void]:
        data = os.pread(self._file, block.keys_size, block.offset)
        if checksum(data) != block.keys_sum:
            raise _Unusable
        return np.frombuffer(data, KEY)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _index(file: int, key: str) -> list[KeptBlock]:
    """The blocks, if the file is whole and its rows depend on what they should."""
    size = os.fstat(file).st_size
    end = os.pread(file, END.size, max(size - END.size, 0))
    if len(end) < END.size or os.pread(file, len(MAGIC), 0) != MAGIC:
        raise _Unusable
    length, index_sum = END.unpack(end)
    data = os.pread(file, length, size - END.size - length) if length <= size - END.size else b""
    if checksum(data) != index_sum or not data:
        raise _Unusable
    index = json.loads(data)
    if index["key"] != key:
        raise _Unusable
    return [KeptBlock(*block) for block in index["blocks"]]
