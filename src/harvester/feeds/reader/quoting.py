"""Whether quotes mean anything in a file."""

from enum import Enum, auto
from typing import NamedTuple

from harvester.feeds.reader.blank_lines import drop_blank_lines
from harvester.feeds.reader.records import Record, Trouble, read_record
from harvester.feeds.reader.survey import lines_alone, survey

#: Some thousand rows tell whether quotes mean anything.
SAMPLE_BYTES = 256 * 1024
_TAB = b"\t"


class Quotes(Enum):
    """What quotes mean in a part of a file whose beginning has no cell that begins with one."""

    #: No cell begins with one, or nothing can be told.
    UNKNOWN = auto()
    #: They are text: fewer rows are whole if they are not.
    TEXT = auto()
    #: They enclose cells, but every row would be whole with quotes as text too.
    ENCLOSING = auto()
    #: They enclose cells: fewer rows are whole if they do not.
    NEEDED = auto()


def first_quoted(data: bytes, delimiter: bytes) -> int | None:
    """Return the beginning of the first line with a cell that begins with a quote."""
    if data.startswith(b'"'):
        return 0
    # Two searches for a fixed text take a tenth of the time of one for a pattern.
    found = [place for mark in (b"\n", delimiter) if (place := data.find(mark + b'"')) >= 0]
    return data.rfind(b"\n", 0, min(found) + 1) + 1 if found else None


def late_quotes(data: bytes, delimiter: bytes, columns: int) -> Quotes:
    """Say what quotes mean in data that begins with a record."""
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
    """Return the whole lines by which `is_quoted` decides."""
    sample = rows[:SAMPLE_BYTES]
    return sample[: sample.rfind(b"\n") + 1] or sample + b"\n"


def is_quoted(rows: bytes, delimiter: bytes, columns: int) -> bool:
    """Whether quotes mean anything: the reading under which fewer lines are ragged."""
    sample = first_rows(rows)
    if b'"' not in sample:
        return delimiter != _TAB
    plain = _ragged_lines(sample, delimiter, columns)
    quoted = _quoted_reading(sample, delimiter, columns)
    if plain != quoted.ragged:
        return quoted.ragged < plain
    # Both readings are sound, so either is right about the columns. Fields that are quoted on one line each are
    # meant to be; without any, tab files are known to have quotes as text.
    return not quoted.spans_lines if quoted.fields else delimiter != _TAB


def quoted_columns(rows: bytes, delimiter: bytes, columns: int) -> frozenset[int]:
    """Return the columns that have a quoted field in one of the rows."""
    found: set[int] = set()
    position = 0
    while position < len(rows):
        record = read_record(rows, position, delimiter)
        if isinstance(record, Record):
            found.update(record.quoted if len(record.fields) == columns else ())
            position = record.end + 1
        else:
            position = rows.index(b"\n", position) + 1
    return frozenset(found)


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
            # It swallows the rest of the sample.
            swallowed = sum(1 for line in sample[line_end + 1 :].split(b"\n") if line.strip(b" \r"))
            return _Reading(ragged + swallowed, fields + 1, spans_lines=True)
        else:
            ragged += record is Trouble.BROKEN
            position = line_end + 1
    return _Reading(ragged, fields, spans_lines)
