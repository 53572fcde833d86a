"""Records whose quotes stand where they may not, made into records that every reader takes for the same.

A quote in the middle of a field is text, unless it seems to begin a field that is quoted in other rows. A quoted field
that does not end where it should makes its line useless, but not the lines behind it: reading goes on with the next
line.
"""

from dataclasses import dataclass, field

import numpy as np

from harvester.feeds.reader.blank_lines import drop_blank_lines
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.quoting import quoted_columns
from harvester.feeds.reader.records import Record, Trouble, read_record, torn_places, write_record
from harvester.feeds.reader.survey import Positions, lines_alone
from harvester.kernel.rejects import Fault

_LINE_FEED = 10


@dataclass(kw_only=True)
class Mended:
    """What became of the records.

    Attributes:
        pieces: regular records, one after the other.
        lines: number of line feeds in front of each record.
        consumed: how much of the data was used; the rest is the beginning of a record.
        line_count: number of line feeds in what was used.
        findings: the lines that were refused.
        refused: how many those are.
    """

    pieces: list[bytes] = field(default_factory=list)
    lines: list[Positions] = field(default_factory=lambda: [np.empty(0, np.int64)])
    consumed: int = 0
    line_count: int = 0
    findings: Findings = field(default_factory=Findings)
    refused: int = 0


class Mender:
    """Mends the records of one file.

    The first rows of the file say which columns are quoted. They alone do, so that what a row comes to does not depend
    on the blocks in which a file is read.
    """

    def __init__(self, delimiter: bytes, longest_record: int, *, first_rows: bytes, columns: int) -> None:
        self._delimiter = delimiter
        self._longest = longest_record
        self._first_rows = first_rows
        self._columns = columns
        self._quoted: frozenset[int] | None = None

    def mend(self, data: bytes, first_line: int) -> Mended:
        """Make the records in the data regular; the first line's number is for the findings."""
        feeds, troubled = lines_alone(data, self._delimiter)
        mended = Mended()
        line = 0
        for number in troubled.tolist():
            if number < line:
                continue
            self._keep(mended, data, feeds, line, number)
            line = self._mend_line(mended, data, feeds, number, first_line)
            if line == number:
                break
        else:
            self._keep(mended, data, feeds, line, len(feeds))
            line = len(feeds)
        mended.line_count = int(line)
        mended.consumed = _start(feeds, line)
        return mended

    def _keep(self, mended: Mended, data: bytes, feeds: Positions, line: int, until: int) -> None:
        if line < until:
            first = _start(feeds, line)
            packed = drop_blank_lines(data[first : _start(feeds, until)], quoted=False)
            mended.pieces.append(packed.data)
            lines = np.arange(line, until)
            if packed.count:
                starts = np.flatnonzero(np.frombuffer(b"\n" + packed.data[:-1], np.uint8) == _LINE_FEED)
                starts = starts if packed.data else starts[:0]
                lines = np.arange(line, line + len(starts)) + packed.before(starts)
            mended.lines.append(lines)

    def _mend_line(self, mended: Mended, data: bytes, feeds: Positions, line: int, first_line: int) -> int:
        """Read the record that begins with this line; return the line to go on with, the same if it is not whole."""
        start = _start(feeds, line)
        record = read_record(data, start, self._delimiter)
        if isinstance(record, Record) and record.end - start <= self._longest:
            if self._lacks_delimiter(record):
                mended.refused += 1
                mended.findings.refuse(Fault.ROW_DELIMITER, first_line + line, data[start : record.end])
            else:
                mended.pieces.append(write_record(record.fields, self._delimiter))
                mended.lines.append(np.array([line]))
            return int(np.searchsorted(feeds, record.end)) + 1
        if record is Trouble.OPEN and len(data) - start <= self._longest:
            return line
        fault = Fault.ROW_QUOTES if record is Trouble.BROKEN else Fault.ROW_TOO_LONG
        mended.refused += 1
        mended.findings.refuse(fault, first_line + line, data[start : feeds[line]])
        return line + 1

    def _lacks_delimiter(self, record: Record) -> bool:
        """Whether a field seems to be torn in a column that is quoted in other rows."""
        if len(record.fields) != self._columns or not (torn := torn_places(record)):
            return False
        if self._quoted is None:
            self._quoted = quoted_columns(self._first_rows, self._delimiter, self._columns)
        return not torn.isdisjoint(self._quoted)


def _start(feeds: Positions, line: int) -> int:
    return int(feeds[line - 1]) + 1 if line else 0
