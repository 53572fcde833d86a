"""A file cut into blocks of whole records, each with exactly the fields of the header.

Memory does not grow with the file: one block and the beginning of one record are held. Records that are too long,
ragged or undecodable are rejected here and counted, with their line numbers; none is padded or cut.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from harvester.feeds.reader.errors import RowCountLimitExceeded, TruncatedFile
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.quoting import QuoteRepair, Quotes, drop_blank_lines, late_quotes
from harvester.feeds.reader.survey import Positions, lines_alone, survey
from harvester.kernel.rejects import Fault

#: Larger blocks are not faster, and every thread holds several times as much of each.
BLOCK_BYTES = 2 * 1024 * 1024
LONGEST_RECORD_BYTES = 1024 * 1024
#: Lines that are read together; a block of rows of 32 bytes has as many.
MOST_LINES = 64 * 1024
_RETURN = 13


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records.

    Attributes:
        data: the records, one after the other.
        ends: the position after each record.
        lines: the line in which each record begins.
        rows_read: records that were read, including rejected ones.
        findings: the rejected records.
        turned_quoted: quotes enclose cells here, although the beginning of the file did not show it.
    """

    data: bytes
    ends: Positions
    lines: Positions
    rows_read: int
    findings: Findings
    turned_quoted: bool = False

    def record(self, place: int) -> bytes:
        """Return one record as written in the file."""
        start = int(self.ends[place - 1]) if place else 0
        return self.data[start : int(self.ends[place])]

    def only(self, wanted: NDArray[np.bool_]) -> "Block":
        """Return a block of these records, as if no others had been read."""
        starts = np.concatenate(([0], self.ends[:-1])).astype(np.int64)
        # Adjacent records are copied together.
        edges = np.flatnonzero(np.diff(wanted, prepend=False, append=False))
        begins, stops = starts[edges[::2]].tolist(), self.ends[edges[1::2] - 1].tolist()
        data = b"".join(self.data[begin:stop] for begin, stop in zip(begins, stops, strict=True))
        ends = np.cumsum((self.ends - starts)[wanted])
        return Block(data, ends, self.lines[wanted], int(wanted.sum()), Findings(), self.turned_quoted)


def join(blocks: Sequence[Block]) -> Block:
    """Return the records of blocks as one block, without their findings.

    The blocks are in the order of the file, and quotes mean the same in all of them.
    """
    begins = np.cumsum([0, *(len(block.data) for block in blocks[:-1])]).tolist()
    ends = np.concatenate([block.ends + begin for block, begin in zip(blocks, begins, strict=True)])
    data = blocks[0].data if len(blocks) == 1 else b"".join(block.data for block in blocks)
    lines = np.concatenate([block.lines for block in blocks])
    return Block(data, ends, lines, len(ends), Findings(), blocks[0].turned_quoted)


class OpenEnd(Enum):
    """What to do with a last record that no line feed ends: it may be cut in the middle of a price or an identifier."""

    TAKE = "take"  # the file is known to be whole
    TAKE_IF_PROVEN = "take if proven"  # like TAKE, or like LEAVE_OUT if the end of the gzip file proves nothing
    LEAVE_OUT = "leave out"  # the file may be cut: the record is counted and changes nothing
    REFUSE = "refuse"  # the file is probably cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a cutter has to know about a file.

    Attributes:
        delimiter: one byte.
        quoted: whether quotes enclose cells; if not, they are text.
        columns: how many the header has.
        first_line: number of the line after the header.
        first_rows: those that show which columns are quoted.
        may_be_cut: the data may end before the file does, so its end means nothing.
        may_turn_quoted: a later cell that begins with a quote may show that quotes enclose cells.
        open_end: what to do with a last record that no line feed ends.
        suspicion: why such a record is refused, as a sentence.
        may_lack_parts: whether the end of the gzip file proves nothing; called at the end.
    """

    delimiter: bytes
    quoted: bool
    columns: int
    first_line: int = 2
    first_rows: bytes = b""
    may_be_cut: bool = False
    may_turn_quoted: bool = False
    open_end: OpenEnd = OpenEnd.TAKE
    suspicion: str = ""
    may_lack_parts: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class _Records:
    """Records before they are checked.

    Attributes:
        data: the records with their line feeds.
        ends: position of the line feed that ends each record.
        lines: the line in which each record begins.
        delimiters: how many each record has outside quotes.
        rejected: records that were rejected already.
        findings: those records.
    """

    data: bytes
    ends: Positions
    lines: Positions
    delimiters: Positions
    rejected: int
    findings: Findings


class RecordCutter:
    """Takes a file in chunks of any size and returns blocks.

    Attributes:
        turned_quoted: whether a later cell has shown that quotes enclose cells.
        is_open_ended: whether the file was read to its end and no line feed ends its last record.
        left_out: the last record, if it was counted and left out; a block without records if it is not a row.
        left_out_line: the line in which that record begins.
    """

    def __init__(self, shape: Shape, *, most_rows: int, first_rows: int | None = None) -> None:
        self._shape = shape
        self._most_rows = most_rows
        self._first_rows = first_rows
        self._repair = QuoteRepair(
            shape.delimiter, LONGEST_RECORD_BYTES, first_rows=shape.first_rows, columns=shape.columns
        )
        self._late_quotes = Quotes.UNKNOWN
        self._is_turned = False
        self.turned_quoted = False
        self._rest = b""
        self._line = shape.first_line
        self._is_skipping = False
        self._rows_read = 0
        self.is_open_ended = False
        self.left_out: Block | None = None
        self.left_out_line = 0

    def blocks(self, chunks: Iterable[bytes]) -> Iterator[Block]:
        """Yield the blocks of a file, up to the number of rows that was asked for."""
        for chunk in chunks:
            # However short a line is, it takes memory while records are located.
            pieces = chunk.count(b"\n") // MOST_LINES + 1
            size = len(chunk) // pieces + 1
            for start in range(0, max(len(chunk), 1), size):
                yield self._cut(chunk[start : start + size] if pieces > 1 else chunk)
                if self._rows_read == self._first_rows:
                    return
        yield from self._finish()

    def _cut(self, chunk: bytes) -> Block:
        if self._is_skipping:
            # The rest of a line that was too long.
            _, feed, chunk = chunk.partition(b"\n")
            self._is_skipping = not feed
            self._line += len(feed)
        # Almost always a record ends with the last line of a chunk, and then nothing has to be copied twice.
        cut = chunk.rfind(b"\n") + 1
        records, left = self._split(self._rest + chunk[:cut] if cut else self._rest)
        self._rest = left + chunk[cut:]
        if len(self._rest) > LONGEST_RECORD_BYTES and b"\n" not in self._rest:
            records.findings.add_reject(Fault.ROW_TOO_LONG, self._line, self._rest)
            records = replace(records, rejected=records.rejected + 1)
            self._rest, self._is_skipping = b"", True
        return self._block(records)

    def _finish(self) -> Iterator[Block]:
        """Yield the last record, whose line feed may be missing."""
        last, self._rest = self._rest, b""
        if not last.strip(b" \r"):
            return
        is_ended = last.endswith(b"\n")
        records, open_record = self._split(last if is_ended else last + b"\n")
        line, _, following = open_record.partition(b"\n")
        if is_ended and self._are_rows(following):
            # The quote is a mistake and not the beginning of a field that the file was cut in.
            records.findings.add_reject(Fault.ROW_QUOTES, self._line, line)
            self._line += 1
            yield self._block(replace(records, rejected=records.rejected + 1))
            records, open_record = self._split(following)
        is_short = not is_ended and len(records.ends) > 0 and records.delimiters[-1] < self._shape.columns - 1
        if (open_record or is_short) and not self._shape.may_be_cut:
            raise TruncatedFile(
                f"The record that begins in line {self._line_of_last(records, open_record)} is incomplete, and the "
                "file ends there. Nothing was changed."
            )
        if is_short:
            records = _without_last(records)
        elif not is_ended and not self._shape.may_be_cut:
            records = self._judge_open_end(records)
        yield self._block(records)

    def _judge_open_end(self, records: _Records) -> _Records:
        """Take, leave out or refuse the last record, which no line feed ends."""
        self.is_open_ended = True
        open_end = self._shape.open_end
        if open_end is OpenEnd.TAKE_IF_PROVEN:
            open_end = OpenEnd.LEAVE_OUT if self._shape.may_lack_parts() else OpenEnd.TAKE
        if open_end is OpenEnd.REFUSE:
            raise TruncatedFile(
                f"No line feed ends the last row of the file, in line {self._line_of_last(records, b'')}. "
                f"{self._shape.suspicion} Nothing was changed. If the file is still the same at the next scheduled "
                "run, it is imported; `harvester feed run FEED --force` imports it now."
            )
        if open_end is OpenEnd.TAKE or not len(records.ends):
            return records
        # If the last record was rejected, the record before it is left out instead, for one run.
        start = int(records.ends[-2]) + 1 if len(records.ends) > 1 else 0
        alone = _Records(
            records.data[start:], records.ends[-1:] - start, records.lines[-1:], records.delimiters[-1:], 0, Findings()
        )
        self.left_out, self.left_out_line = self._block(alone), int(records.lines[-1])
        return _without_last(records)

    def _are_rows(self, data: bytes) -> bool:
        """Return whether every line is a record by itself, with all its fields."""
        rows = data.rstrip(b" \r\n") + b"\n"
        if len(rows) == 1 or len(lines_alone(rows, self._shape.delimiter)[1]):
            return False
        counts = survey(rows, self._shape.delimiter, quoted=True).delimiters
        return bool((counts == self._shape.columns - 1).all())

    def _line_of_last(self, records: _Records, open_record: bytes) -> int:
        return self._line if open_record or not len(records.lines) else int(records.lines[-1])

    def _split(self, data: bytes) -> tuple[_Records, bytes]:
        """Return the whole records in the data, and the beginning of the next."""
        quoted = self._is_quoted(data)
        packed = drop_blank_lines(data, quoted=quoted)
        found = survey(packed.data, self._shape.delimiter, quoted=quoted)
        consumed = int(found.ends[-1]) + 1 if len(found.ends) else 0
        if not quoted or (found.is_regular and len(packed.data) - consumed <= LONGEST_RECORD_BYTES):
            starts = np.concatenate(([0], found.ends[:-1] + 1)) if len(found.ends) else found.ends
            lines = found.lines + packed.before(starts) + self._line if packed.count else found.lines + self._line
            records = _Records(packed.data[:consumed], found.ends, lines, found.delimiters, 0, Findings())
            self._line += found.line_count + packed.count
            return records, packed.data[consumed:]
        repaired = self._repair.repair(data, self._line)
        regular = b"".join(repaired.pieces)
        found = survey(regular, self._shape.delimiter, quoted=True)
        lines = np.concatenate(repaired.lines) + self._line
        self._line += repaired.line_count
        records = _Records(regular, found.ends, lines, found.delimiters, repaired.rejected, repaired.findings)
        return records, data[repaired.consumed :]

    def _is_quoted(self, data: bytes) -> bool:
        """Return whether quotes enclose cells in this part of the file.

        Once complete rows need it, quotes enclose cells to the end of the file; once quotes are text, they stay text. A
        quoted cell that could be text as well proves nothing about what follows.
        """
        shape = self._shape
        if shape.may_turn_quoted and self._late_quotes not in (Quotes.NEEDED, Quotes.TEXT):
            self._late_quotes = late_quotes(data, shape.delimiter, shape.columns) if b'"' in data else Quotes.UNKNOWN
        self._is_turned = self._late_quotes in (Quotes.NEEDED, Quotes.ENCLOSING)
        self.turned_quoted |= self._is_turned
        return shape.quoted or self._is_turned

    def _block(self, records: _Records) -> Block:
        """Reject and count bad records; return the good ones."""
        starts = np.concatenate(([0], records.ends[:-1] + 1)) if len(records.ends) else records.ends
        lengths = records.ends - starts
        is_row = lengths > 0
        single = np.flatnonzero(lengths == 1)
        is_row[single] = [records.data[end - 1] != _RETURN for end in records.ends[single]]
        if self._first_rows is not None:
            is_row &= np.cumsum(is_row) <= max(self._first_rows - self._rows_read - records.rejected, 0)
        good = is_row & (records.delimiters == self._shape.columns - 1) & (lengths <= LONGEST_RECORD_BYTES)
        good &= _decodable(records, starts)
        blanks = 0
        for place in np.flatnonzero(is_row & ~good):
            row = records.data[starts[place] : records.ends[place]]
            if row.strip(b" \r"):
                records.findings.add_reject(_fault_of(row), int(records.lines[place]), row)
            else:
                blanks += 1
        rows_read = int(is_row.sum()) - blanks + records.rejected
        self._rows_read += rows_read
        if self._rows_read > self._most_rows:
            raise RowCountLimitExceeded(
                f"The file has more than {self._most_rows:,} rows, the feed's limit (max_rows). Nothing was changed. "
                "Check that it is the right file; if it is, raise the limit."
            )
        data, ends = _copied(records, starts, good)
        return Block(data, ends, records.lines[good], rows_read, records.findings, self._is_turned)


def _without_last(records: _Records) -> _Records:
    ends = records.ends[:-1]
    data = records.data[: int(ends[-1]) + 1] if len(ends) else b""
    return _Records(data, ends, records.lines[:-1], records.delimiters[:-1], records.rejected, records.findings)


def _decodable(records: _Records, starts: Positions) -> NDArray[np.bool_]:
    """Return which records are UTF-8 without NUL; almost always all are, and that is checked first."""
    decodable = np.ones(len(starts), bool)
    if b"\0" not in records.data and _is_utf8(records.data):
        return decodable
    for place, (start, end) in enumerate(zip(starts.tolist(), records.ends.tolist(), strict=True)):
        row = records.data[start:end]
        decodable[place] = b"\0" not in row and _is_utf8(row)
    return decodable


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fault_of(row: bytes) -> Fault:
    if len(row) > LONGEST_RECORD_BYTES:
        return Fault.ROW_TOO_LONG
    if b"\0" in row:
        return Fault.ROW_NUL
    return Fault.ROW_RAGGED if _is_utf8(row) else Fault.ROW_UNDECODABLE


def _copied(records: _Records, starts: Positions, good: NDArray[np.bool_]) -> tuple[bytes, Positions]:
    """Return the good records one after the other, and the position after each."""
    bad = np.flatnonzero(~good)
    if not len(bad):
        return records.data, records.ends + 1
    begins = [0, *(records.ends[bad] + 1).tolist()]
    stops = [*starts[bad].tolist(), len(records.data)]
    data = b"".join(records.data[begin:stop] for begin, stop in zip(begins, stops, strict=True))
    return data, np.cumsum(records.ends[good] + 1 - starts[good])
