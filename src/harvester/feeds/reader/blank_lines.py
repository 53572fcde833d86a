"""Blank lines, dropped before records are located: a file can consist of millions of them."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from harvester.feeds.reader.survey import Positions

#: Every blank line except the first begins in one of these. Few chunks have any, and searching for them is cheap.
_SIGNS: Final = (b"\n\n", b"\n\r", b"\n ")
#: The line feed before blank lines, and all of them.
_RUN: Final = re.compile(rb"\n[ \r\n]*\n")
_LEADING: Final = re.compile(rb"[ \r\n]*\n")


@dataclass(frozen=True, slots=True)
class Packed:
    """Data without its blank lines.

    Attributes:
        data: the other lines.
        places: positions in `data` where lines were dropped, each the start of a line.
        dropped: the number of lines dropped up to each of those positions.
    """

    data: bytes
    places: Positions
    dropped: Positions

    @property
    def count(self) -> int:
        """The number of dropped lines."""
        return int(self.dropped[-1]) if len(self.dropped) else 0

    def before(self, starts: Positions) -> Positions:
        """Return how many lines were dropped before each of these starts of lines."""
        return np.concatenate(([0], self.dropped))[np.searchsorted(self.places, starts, side="right")]


def drop_blank_lines(data: bytes, *, quoted: bool) -> Packed:
    """Drop the blank lines of data that begins with a record.

    In a quoted file, lines inside quotes are kept: they are part of a field. The number of quotes before a line decides
    whether it is inside, so the result is valid only if quotes are regular. Dropping lines does not change whether they
    are.
    """
    # Start of the first of consecutive blank lines, and the position after the last.
    runs: list[tuple[int, int]] = []
    position = 0
    if data[:1] in (b"\n", b"\r", b" ") and (leading := _LEADING.match(data)):
        runs.append((0, leading.end()))
        position = leading.end()
    if any(sign in data for sign in _SIGNS):
        runs += [(run.start() + 1, run.end()) for run in _RUN.finditer(data, max(position - 1, 0))]
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
    rest = b"".join([*kept, data[position:]]) if runs else data
    return Packed(rest, np.array(places, np.int64), np.array(dropped, np.int64))
