"""How a file is written: decided from its header line and the column names that are known, never by guessing."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harvester.feeds.reader.binding import Binding, bind, missing
from harvester.feeds.reader.blocks import LONGEST_RECORD_BYTES
from harvester.feeds.reader.file_refusals import DELIMITER_NAMES, refuse_no_catalog, too_many_columns, unreadable
from harvester.feeds.reader.quoting import SAMPLE_BYTES, first_quoted, first_rows, is_quoted
from harvester.feeds.reader.records import Record, read_record
from harvester.kernel.network import Network

#: More is no product catalog, and every one of them costs time in each block.
MOST_COLUMNS = 10_000

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
        first_rows: the rows by which it was decided whether quotes mean anything.
        may_turn_quoted: quotes are taken for text, but only because no cell among the first rows begins with one.
    """

    dialect: Dialect
    binding: Binding
    rows: Iterator[bytes]
    first_line: int
    first_rows: bytes
    may_turn_quoted: bool


class _Header(NamedTuple):
    delimiter: str
    binding: Binding
    end: int
    is_quoted: bool


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
    delimiter, columns = header.delimiter.encode(), len(header.binding.header)
    quoted = header.is_quoted or is_quoted(behind, delimiter, columns)
    dialect = Dialect(delimiter=header.delimiter, quoted=quoted, line_end=line_end)
    first_line = head.count(b"\n", 0, header.end + 1) + 1
    sample = first_rows(behind)
    is_decided = quoted or first_quoted(sample, delimiter) is not None
    return Opening(dialect, header.binding, _chained(behind, stream), first_line, sample, not is_decided)


def _head(stream: Iterator[bytes]) -> bytes:
    """Return enough of a file to hold the header and the first rows."""
    head = b""
    for chunk in stream:
        head += chunk
        # As many rows as a sample has, whatever the size of the chunks: what is decided by them must not depend on it.
        header = _LINE_END.search(head, len(head) - len(head.lstrip()))
        if len(head) > LONGEST_RECORD_BYTES or (header and len(head) - header.end() >= SAMPLE_BYTES):
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
    if best is None or missing(best.binding):  # mutant: header-recognized
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
    return _Header(delimiter, bind(names, network), record.end, bool(record.quoted))
