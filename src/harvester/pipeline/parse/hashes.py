"""Records known again by two different hashes, of which 96 bits are kept, made in columns."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import polars_hash  # noqa: F401 - registers the expressions `chash` and `nchash`
from numpy.typing import NDArray

from harvester.pipeline.parse.blocks import Block
from harvester.pipeline.parse.lookup import collected
from harvester.pipeline.parse.survey import Positions

#: Records are looked at as texts, of which there are several copies at once; small ones need 25 MB less.
PIECE_BYTES: Final = 256 * 1024
_LINE_FEED, _NUL = 10, 0
#: Any number; the other hash has none.
_SEED = 5


class Hashes(NamedTuple):
    """Two hashes of each record."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint32]


def hash_records(block: Block) -> Hashes:
    """The hashes of a block's records as they stand in it."""
    hashes = [pl.DataFrame(schema={"first": pl.UInt64, "second": pl.UInt64})]
    hashes += [_hashed(data, ends) for data, ends in _pieces(block)]
    both = pl.concat(hashes)
    return Hashes(both["first"].to_numpy(), both["second"].to_numpy().astype(np.uint32))


def _pieces(block: Block) -> Iterator[tuple[bytes, Positions]]:
    """The records of a block in pieces, with the positions behind each."""
    steps = np.arange(PIECE_BYTES, len(block.data), PIECE_BYTES)
    bounds = [0, *(np.unique(np.searchsorted(block.ends, steps)) + 1).tolist(), len(block.ends)]
    begin = 0
    for start, stop in pairwise(bounds):
        if start < stop:
            end = int(block.ends[stop - 1])
            yield block.data[begin:end], block.ends[start:stop] - begin
            begin = end


def _hashed(data: bytes, ends: Positions) -> pl.DataFrame:
    records = _lines(data)
    if len(records) != len(ends):
        records = _lines(_without_feeds_within(data, ends))
    record = pl.col("record")
    second = record.nchash.xxhash64(seed=_SEED)  # type: ignore[attr-defined]
    return collected(records.to_frame("record").lazy().select(first=record.hash(), second=second))


def _lines(data: bytes) -> pl.Series:
    """The data, which ends with a line feed, as lines without theirs."""
    lines: pl.Series = pl.Series([data], dtype=pl.Binary).cast(pl.String).str.split("\n")[0]
    return lines.slice(0, len(lines) - 1)


def _without_feeds_within(data: bytes, ends: Positions) -> bytes:
    """The records with NUL, which none of them has, in place of the line feeds within."""
    values = np.frombuffer(data, np.uint8).copy()
    values[values == _LINE_FEED] = _NUL
    values[ends - 1] = _LINE_FEED
    return values.tobytes()
