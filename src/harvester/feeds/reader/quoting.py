"""Whether quotes enclose cells in a file, and the repair of records whose quotes are misplaced.

Blank lines are dropped before records are located: a file can consist of millions of them.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

import numpy as np

from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.records import QUOTE, Record, Trouble, read_record, torn_places, write_record
from harvester.feeds.reader.survey import Positions, lines_alone, survey
from harvester.kernel.rejects import Fault

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


#: A few thousand rows show whether quotes enclose cells.
SAMPLE_BYTES = 256 * 1024
_TAB = b"\t"
_LINE_FEED = 10


class Quotes(Enum):
    """What quotes mean in a part of a file whose beginning has no cell that begins with one."""

    #: No cell begins with one, or both readings fit.
    UNKNOWN = auto()
    #: They are text: otherwise fewer rows would be complete.
    TEXT = auto()
    #: They enclose cells, but every row would be complete with quotes as text too.
    ENCLOSING = auto()
    #: They enclose cells: otherwise fewer rows would be complete.
    NEEDED = auto()


def first_quoted(data: bytes, delimiter: bytes) -> int | None:
    """Return the start of the first line with a cell that begins with a quote."""
    if data.startswith(b'"'):
        return 0
    # Two searches for a fixed text take a tenth of the time of one for a pattern.
    found = [place for mark in (b"\n", delimiter) if (place := data.find(mark + b'"')) >= 0]
    return data.rfind(b"\n", 0, min(found) + 1) + 1 if found else None


def late_quotes(data: bytes, delimiter: bytes, columns: int) -> Quotes:
    """Return what quotes mean in data that begins with a record."""
    start = first_quoted(data, delimiter)
    rows = b"" if start is None else data[start : data.rfind(b"\n") + 1]
    if not rows:
        return Quotes.UNKNOWN
    plain = _ragged_lines(rows, delimiter, columns)
    if len(lines_alone(rows, delimiter)[1]):
        quoted = _quoted_reading(rows, delimiter, columns)
    else:
        counts = survey(drop_blank_lines(rows, quoted=False).data, delimiter, quoted=True).delimiters
        quoted = _Reading(int((counts != columns - 1).sum()), fields=1, spans_lines=False)
    if plain != quoted.ragged:
        return Quotes.NEEDED if quoted.ragged < plain else Quotes.TEXT
    return Quotes.ENCLOSING if quoted.fields and not quoted.spans_lines else Quotes.UNKNOWN


def first_rows(rows: bytes) -> bytes:
    """Return the whole lines that `is_quoted` looks at."""
    sample = rows[:SAMPLE_BYTES]
    return sample[: sample.rfind(b"\n") + 1] or sample + b"\n"


def is_quoted(rows: bytes, delimiter: bytes, columns: int) -> bool:
    """Return whether quotes enclose cells: the reading with fewer ragged lines."""
    sample = first_rows(rows)
    if b'"' not in sample:
        return delimiter != _TAB
    plain = _ragged_lines(sample, delimiter, columns)
    quoted = _quoted_reading(sample, delimiter, columns)
    if plain != quoted.ragged:
        return quoted.ragged < plain
    # Both readings give the same columns. Quoted fields that stay within a line are probably meant as such; without
    # any, quotes in tab files are usually text.
    return not quoted.spans_lines if quoted.fields else delimiter != _TAB


class QuotedColumns(NamedTuple):
    """Places of columns with quoted fields.

    Attributes:
        sometimes: one of the rows has such a field.
        always: at least two rows do, and no row has another text without quotes. Fewer fields may have a quote inside:
            they lack the one at the start.
    """

    sometimes: frozenset[int]
    always: frozenset[int]


def quoted_columns(rows: bytes, delimiter: bytes, columns: int) -> QuotedColumns:
    """Return the columns that are quoted in the rows."""
    quoted, plain, inside = [0] * columns, [0] * columns, [0] * columns
    position = 0
    while position < len(rows):
        record = read_record(rows, position, delimiter)
        if not isinstance(record, Record):
            position = rows.index(b"\n", position) + 1
            continue
        position = record.end + 1
        if len(record.fields) == columns:
            for place in record.quoted:
                quoted[place] += 1
            for place in set(range(columns)).difference(record.quoted):
                field = record.fields[place]
                inside[place] += QUOTE in field
                plain[place] += QUOTE not in field and bool(field.strip())
    always = (place for place in range(columns) if quoted[place] > max(1, inside[place]) and not plain[place])
    return QuotedColumns(frozenset(place for place in range(columns) if quoted[place]), frozenset(always))


def _ragged_lines(sample: bytes, delimiter: bytes, columns: int) -> int:
    lines = sample.split(b"\n")
    return sum(line.count(delimiter) != columns - 1 for line in lines if line.strip(b" \r"))


class _Reading(NamedTuple):
    ragged: int
    fields: int
    spans_lines: bool


def _quoted_reading(sample: bytes, delimiter: bytes, columns: int) -> _Reading:
    ragged, fields, position = 0, 0, 0
    spans_lines = False
    while position < len(sample):
        line_end = sample.index(b"\n", position)
        record = read_record(sample, position, delimiter)
        if isinstance(record, Record):
            is_blank = not sample[position : record.end].strip(b" \r")
            ragged += len(record.fields) != columns and not is_blank
            fields += len(record.quoted)
            spans_lines |= record.end > line_end
            position = record.end + 1
        elif record is Trouble.OPEN and line_end + 1 < len(sample):
            # The record swallows the rest of the sample.
            swallowed = sum(1 for line in sample[line_end + 1 :].split(b"\n") if line.strip(b" \r"))
            return _Reading(ragged + swallowed, fields + 1, spans_lines=True)
        else:
            ragged += record is Trouble.BROKEN
            position = line_end + 1
    return _Reading(ragged, fields, spans_lines)


@dataclass(kw_only=True)
class Repaired:
    """The result of repairing records.

    Attributes:
        pieces: regular records, one after the other.
        lines: number of line feeds before each record.
        consumed: how much of the data was used; the rest is the beginning of a record.
        line_count: number of line feeds in what was used.
        findings: the rejected lines.
        rejected: how many those are.
    """

    pieces: list[bytes] = field(default_factory=list)
    lines: list[Positions] = field(default_factory=lambda: [np.empty(0, np.int64)])
    consumed: int = 0
    line_count: int = 0
    findings: Findings = field(default_factory=Findings)
    rejected: int = 0


class QuoteRepair:
    """Rewrites the records of one file whose quotes are misplaced into records that every reader understands the same.

    A quote in the middle of a field is text, unless it seems to begin a field that is quoted in other rows, or the
    column is quoted in all others. If a quoted field does not end where it should, its line is rejected, and reading
    continues with the next line.

    Only the first rows of the file decide which columns are quoted, so that the result for a row does not depend on the
    blocks in which a file is read.
    """

    def __init__(self, delimiter: bytes, longest_record: int, *, first_rows: bytes, columns: int) -> None:
        self._delimiter = delimiter
        self._longest = longest_record
        self._first_rows = first_rows
        self._columns = columns
        self._quoted: QuotedColumns | None = None

    def repair(self, data: bytes, first_line: int) -> Repaired:
        """Make the records in the data regular; findings count lines from `first_line`."""
        feeds, troubled = lines_alone(data, self._delimiter)
        repaired = Repaired()
        line = 0
        for number in troubled.tolist():
            if number < line:
                continue
            self._copy_lines(repaired, data, feeds, line, number)
            line = self._repair_record(repaired, data, feeds, number, first_line)
            if line == number:
                break
        else:
            self._copy_lines(repaired, data, feeds, line, len(feeds))
            line = len(feeds)
        repaired.line_count = int(line)
        repaired.consumed = _start(feeds, line)
        return repaired

    def _copy_lines(self, repaired: Repaired, data: bytes, feeds: Positions, line: int, until: int) -> None:
        if line < until:
            first = _start(feeds, line)
            packed = drop_blank_lines(data[first : _start(feeds, until)], quoted=False)
            repaired.pieces.append(packed.data)
            lines = np.arange(line, until)
            if packed.count:
                starts = np.flatnonzero(np.frombuffer(b"\n" + packed.data[:-1], np.uint8) == _LINE_FEED)
                starts = starts if packed.data else starts[:0]
                lines = np.arange(line, line + len(starts)) + packed.before(starts)
            repaired.lines.append(lines)

    def _repair_record(self, repaired: Repaired, data: bytes, feeds: Positions, line: int, first_line: int) -> int:
        """Repair the record that begins with this line; return the next line, or this one if it is incomplete."""
        start = _start(feeds, line)
        record = read_record(data, start, self._delimiter)
        if isinstance(record, Record) and record.end - start <= self._longest:
            if damage := self._damage(record):
                repaired.rejected += 1
                repaired.findings.add_reject(damage, first_line + line, data[start : record.end])
            else:
                repaired.pieces.append(write_record(record.fields, self._delimiter))
                repaired.lines.append(np.array([line]))
            return int(np.searchsorted(feeds, record.end)) + 1
        if record is Trouble.OPEN and len(data) - start <= self._longest:
            return line
        fault = Fault.ROW_QUOTES if record is Trouble.BROKEN else Fault.ROW_TOO_LONG
        repaired.rejected += 1
        repaired.findings.add_reject(fault, first_line + line, data[start : feeds[line]])
        return line + 1

    def _damage(self, record: Record) -> Fault | None:
        """Return what a record with as many fields as the header seems to lack, judged by the quotes of other rows."""
        torn = torn_places(record)
        inside = {place for place, field in enumerate(record.fields) if QUOTE in field}.difference(record.quoted)
        if len(record.fields) != self._columns or not (torn or inside):
            return None
        if self._quoted is None:
            self._quoted = quoted_columns(self._first_rows, self._delimiter, self._columns)
        if not torn.isdisjoint(self._quoted.sometimes):
            return Fault.ROW_DELIMITER
        return None if inside.isdisjoint(self._quoted.always) else Fault.ROW_OPENING_QUOTE


def _start(feeds: Positions, line: int) -> int:
    return int(feeds[line - 1]) + 1 if line else 0
