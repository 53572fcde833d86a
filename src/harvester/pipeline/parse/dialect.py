"""How a file is written: decided from its header line and the column names that are known, never by guessing."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harvester.kernel.network import Network
from harvester.pipeline.parse.binding import Binding, bind, missing
from harvester.pipeline.parse.blocks import LONGEST_RECORD_BYTES
from harvester.pipeline.parse.explaining import DELIMITER_NAMES, refuse_no_catalog, too_many_columns, unreadable
from harvester.pipeline.parse.records import Record, Trouble, read_record

#: More is no product catalog, and every one of them costs time in each block.
MOST_COLUMNS = 10_000
#: Some thousand rows tell whether quotes mean anything.
SAMPLE_BYTES = 256 * 1024

_LINE_END = re.compile(rb"\r\n|\n|\r")

LineEnd = Literal["\n", "\r\n", "\r"]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a file is written.

    Attributes:
        delimiter: what separates columns.
        quoted: whether a field may stand in quotes; if not, a quote is text.
        line_end: how the header ends.
    """

    delimiter: str
    quoted: bool
    line_end: LineEnd

    @property
    def delimiter_name(self) -> str:
        return DELIMITER_NAMES.get(self.delimiter, self.delimiter)


class Opening(NamedTuple):
    """What the beginning of a file says.

    Attributes:
        dialect: how the file is written.
        binding: what its columns mean.
        rows: everything behind the header.
        first_line: number of the line in which the rows begin.
    """

    dialect: Dialect
    binding: Binding
    rows: Iterator[bytes]
    first_line: int


class _Header(NamedTuple):
    delimiter: str
    binding: Binding
    end: int
    quoted: int


def open_file(chunks: Iterable[bytes], network: Network) -> Opening:
    """Read the header of a file in UTF-8.

    Raises:
        EmptyFile, HtmlInsteadOfCsv, HeaderUnreadable, EncodingUnreadable: it is no catalog of that network.
    """
    stream = iter(chunks)
    head = _head(stream)
    line_end = _line_end_of(head)
    if line_end == "\r":
        head, stream = _with_line_feeds(head), map(_with_line_feeds, stream)
    blank = len(head) - len(head.lstrip(b"\r\n \t"))
    start = head.rfind(b"\n", 0, blank) + 1
    header = _read_header(head, start, network)
    behind = head[header.end + 1 :]
    quoted = header.quoted > 0 or _is_quoted(behind, header.delimiter, len(header.binding.header))
    dialect = Dialect(delimiter=header.delimiter, quoted=quoted, line_end=line_end)
    first_line = head.count(b"\n", 0, header.end + 1) + 1
    return Opening(dialect, header.binding, _chained(behind, stream), first_line)


def _head(stream: Iterator[bytes]) -> bytes:
    """Enough of a file to hold the header, and more than that if the chunks are large."""
    head = b""
    for chunk in stream:
        head += chunk
        if len(head) > LONGEST_RECORD_BYTES or (len(head) >= SAMPLE_BYTES and _LINE_END.search(head.lstrip())):
            break
    refuse_no_catalog(head)
    return head


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _with_line_feeds(chunk: bytes) -> bytes:
    return chunk.replace(b"\r", b"\n")


def _line_end_of(head: bytes) -> LineEnd:
    found = _LINE_END.search(head.lstrip())
    match found[0] if found else b"\n":
        case b"\r":
            return "\r"
        case b"\r\n":
            return "\r\n"
        case _:
            return "\n"


def _read_header(head: bytes, start: int, network: Network) -> _Header:
    """The header under the delimiter that makes most known columns of it."""
    readings = [reading for mark in network.delimiters if (reading := _header_under(mark, head, start, network))]
    best = max(readings, key=lambda reading: len(reading.binding.columns), default=None)
    if best is None or missing(best.binding):
        raise unreadable(head[start:], best and best.binding, best.delimiter if best else "", network)
    return best


def _header_under(delimiter: str, head: bytes, start: int, network: Network) -> _Header | None:
    mark = delimiter.encode()
    data = head if head.endswith(b"\n") else head + b"\n"
    record = read_record(data, start, mark)
    if not isinstance(record, Record) or record.end - start > LONGEST_RECORD_BYTES:
        return None
    if len(record.fields) > MOST_COLUMNS:
        raise too_many_columns(head[start:], MOST_COLUMNS)
    names = [field.decode(errors="replace").strip() for field in record.fields]
    return _Header(delimiter, bind(names, network), record.end, record.quoted)


def _is_quoted(rows: bytes, delimiter: str, columns: int) -> bool:
    """Whether quotes mean anything: the reading under which fewer lines are ragged."""
    sample = rows[:SAMPLE_BYTES]
    sample = sample[: sample.rfind(b"\n") + 1] or sample + b"\n"
    if b'"' not in sample:
        return delimiter != "\t"
    plain = _ragged_lines(sample, delimiter.encode(), columns)
    quoted = _quoted_reading(sample, delimiter.encode(), columns)
    if plain != quoted.ragged:
        return quoted.ragged < plain
    # Both readings are sound, so either is right about the columns. Fields that are quoted on one line each are
    # meant to be; without any, tab files are known to have quotes as text.
    return not quoted.spans_lines if quoted.fields else delimiter != "\t"


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
            fields += record.quoted
            spans_lines |= record.end > line_end
            position = record.end + 1
        elif record is Trouble.OPEN and line_end + 1 < len(sample):
            # It swallows the rest of the sample.
            return _Reading(ragged + sample.count(b"\n", line_end + 1), fields + 1, spans_lines=True)
        else:
            ragged += record is Trouble.BROKEN
            position = line_end + 1
    return _Reading(ragged, fields, spans_lines)
