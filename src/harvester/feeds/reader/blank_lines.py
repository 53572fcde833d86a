"""Blank lines, dropped before records are made of them: a file can have millions of them and nothing else."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from harvester.feeds.reader.survey import Positions

#: Every blank line but the first is preceded by one of these. Few chunks have any, and a search costs little.
_SIGNS: Final = (b"\n\n", b"\n\r", b"\n ")
#: The line feed in front of blank lines, and all of them.
_RUN: Final = re.compile(rb"\n[ \r\n]*\n")
_LEADING: Final = re.compile(rb"[ \r\n]*\n")


@dataclass(frozen=True, slots=True)
class Packed:
    """Data without its blank lines.

    Attributes:
        data: what is left.
        places: positions in `data` where lines were dropped, each the beginning of a line.
        dropped: the number of lines dropped up to each of those positions.
    """

    data: bytes
    places: Positions
    dropped: Positions

    @property
    def count(self) -> int:
        """How many lines were dropped."""
        return int(self.dropped[-1]) if len(self.dropped) else 0

    def before(self, starts: Positions) -> Positions:
        """Return how many lines were dropped in front of each of these beginnings of lines."""
        return np.concatenate(([0], self.dropped))[np.searchsorted(self.places, starts, side="right")]


def drop_blank_lines(data: bytes, *, quoted: bool) -> Packed:
    """Drop the blank lines of data that begins with a record.

    In a quoted file, lines inside quotes are kept: they are part of a field. Whether a line is inside is decided by the
    number of quotes in front of it, so the result counts only if quotes are regular. Dropping lines does not change
    whether they are.
    """
    runs = list(_runs(data))
    if quoted and runs and b'"' in data:
        quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord('"'))
        before = np.searchsorted(quotes, [begin for begin, _ in runs])
        runs = [run for run, count in zip(runs, before.tolist(), strict=True) if count % 2 == 0]
    kept, places, dropped = list[bytes](), list[int](), list[int]()
    position = length = total = 0
    for begin, end in runs:
        kept.append(data[position:begin])
        length += begin - position
        total += data.count(b"\n", begin, end)
        places.append(length)
        dropped.append(total)
        position = end
    left = b"".join([*kept, data[position:]]) if runs else data
    return Packed(left, np.array(places, np.int64), np.array(dropped, np.int64))


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """The positions of blank lines that stand together: the first of them, and behind the last."""
    position = 0
    if data[:1] in (b"\n", b"\r", b" ") and (leading := _LEADING.match(data)):
        yield 0, leading.end()
        position = leading.end()
    if any(sign in data for sign in _SIGNS):
        for run in _RUN.finditer(data, max(position - 1, 0)):
            yield run.start() + 1, run.end()
