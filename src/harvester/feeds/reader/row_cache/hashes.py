"""Records identified by two different hashes with 96 bits together, computed as columns."""

from typing import NamedTuple

import numpy as np
import polars as pl
import polars_hash  # noqa: F401 - registers the expressions `chash` and `nchash`
from numpy.typing import NDArray

from harvester.feeds.reader.blocks import Block

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
