"""Records known again by two different hashes, of which 96 bits are kept, made in columns."""

from typing import NamedTuple

import numpy as np
import polars as pl
import polars_hash  # noqa: F401 - registers the expressions `chash` and `nchash`
from numpy.typing import NDArray

from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.survey import Positions

_LINE_FEED, _NUL = 10, 0
#: Any number; the other hash has none.
_SEED = 5


class Hashes(NamedTuple):
    """Two hashes of each record."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint32]


def hash_records(block: Block) -> Hashes:
    """The hashes of a block's records as they stand in it, but for the carriage return before a line feed.

    Nothing that reads records sees that one either.
    """
    both = _hashed(block.data)
    if both.height != len(block.ends):
        both = _hashed(_without_feeds_within(block.data, block.ends))
    return Hashes(both["first"].to_numpy(), both["second"].to_numpy().astype(np.uint32))


def _hashed(data: bytes) -> pl.DataFrame:
    """Of each line; the data ends with a line feed."""
    line = pl.col("line")
    second = line.nchash.xxhash64(seed=_SEED)  # type: ignore[attr-defined]
    return pl.scan_lines(data).select(first=line.hash(), second=second).collect()


def _without_feeds_within(data: bytes, ends: Positions) -> bytes:
    """The records with NUL, which none of them has, in place of the line feeds within."""
    values = np.frombuffer(data, np.uint8).copy()
    values[values == _LINE_FEED] = _NUL
    values[ends - 1] = _LINE_FEED
    return values.tobytes()
