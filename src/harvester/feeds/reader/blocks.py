"""A file cut into blocks of whole records, each with exactly the fields of the header.

Memory is flat whatever the file: what is held is one block and the beginning of one record. Records that are too long,
ragged or undecodable are taken out here, counted, with their line numbers; none is padded or cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from harvester.feeds.reader.blank_lines import drop_blank_lines
from harvester.feeds.reader.errors import RowCountLimitExceeded, TruncatedFile
from harvester.feeds.reader.findings import Findings
from harvester.feeds.reader.quote_repair import Mender
from harvester.feeds.reader.quoting import Quotes, late_quotes
from harvester.feeds.reader.survey import Positions, lines_alone, survey
from harvester.kernel.rejects import Fault

#: Larger ones are no faster, and every thread holds several times as much of each.
BLOCK_BYTES = 2 * 1024 * 1024
LONGEST_RECORD_BYTES = 1024 * 1024
#: Lines that are looked at together; a block of rows of 32 bytes has as many.
MOST_LINES = 64 * 1024
_RETURN = 13


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records.

    Attributes:
        data: the records, one after the other.
        ends: the position behind each record.
        lines: the line in which each record begins.
        rows_read: records that were read, the refused ones included.
        findings: what was refused.
        turned_quoted: quotes mean something here, although the beginning of the file did not show it.
    """

    data: bytes
    ends: Positions
    lines: Positions
    rows_read: int
    findings: Findings
    turned_quoted: bool = False

    def record(self, place: int) -> bytes:
        """One record as it stands in the file."""
        start = int(self.ends[place - 1]) if place else 0
        return self.data[start : int(self.ends[place])]

    def only(self, wanted: NDArray[np.bool_]) -> "Block":
        """The block with some of its records, as if no others had been read."""
        starts = np.concatenate(([0], self.ends[:-1])).astype(np.int64)
        # Records that stand together are copied together.
        edges = np.flatnonzero(np.diff(wanted, prepend=False, append=False))
        begins, stops = starts[edges[::2]].tolist(), self.ends[edges[1::2] - 1].tolist()
        data = b"".join(self.data[begin:stop] for begin, stop in zip(begins, stops, strict=True))
        ends = np.cumsum((self.ends - starts)[wanted])
        return Block(data, ends, self.lines[wanted], int(wanted.sum()), Findings(), self.turned_quoted)


def joined(blocks: Sequence[Block]) -> Block:
    """The records of blocks as one block, without their findings.

    The blocks come in the order of the file, and quotes mean the same in all of them.
    """
    begins = np.cumsum([0, *(len(block.data) for block in blocks[:-1])]).tolist()
    ends = np.concatenate([block.ends + begin for block, begin in zip(blocks, begins, strict=True)])
    data = blocks[0].data if len(blocks) == 1 else b"".join(block.data for block in blocks)
    lines = np.concatenate([block.lines for block in blocks])
    return Block(data, ends, lines, len(ends), Findings(), blocks[0].turned_quoted)


class OpenEnd(Enum):
    """What to do with a last record that no line feed ends: it may be cut in the middle of a price or an identifier."""

    TAKE = "take"  # the file is known to be whole
    LEAVE_OUT = "leave out"  # nothing says whether it is: the record is counted and changes nothing
    REFUSE = "refuse"  # something says that it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a cutter has to know about a file.

    Attributes:
        delimiter: one byte.
        quoted: whether quotes mean anything.
        columns: how many the header has.
        first_line: number of the line behind the header.
        first_rows: those that say which columns are quoted.
        may_be_cut: the end of the data need not be the end of the file, so nothing is concluded from it.
        may_turn_quoted: a later cell that begins with a quote may show that quotes mean something.
        open_end: what to do with a last record that no line feed ends.
        suspicion: why it is refused, as a sentence.
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


@dataclass(frozen=True, slots=True)
class _Records:
    """Records in the middle of being looked at; ends are positions of line feeds."""

    data: bytes
    ends: Positions
    lines: Positions
    delimiters: Positions
    refused: int
    findings: Findings


class RecordCutter:
    """Takes a file in chunks of any size and gives blocks.

    Attributes:
        turned_quoted: whether a later cell has shown that quotes mean something.
        is_open_ended: whether the file was read to its end and no line feed ends its last record.
        left_out: the last record, if it was counted and left out; a block without records if it is not a row.
        left_out_line: the line in which that record begins.
    """

    def __init__(self, shape: Shape, *, most_rows: int, first_rows: int | None = None) -> None:
        self._shape = shape
        self._most_rows = most_rows
        self._first_rows = first_rows
        self._mender = Mender(shape.delimiter, LONGEST_RECORD_BYTES, first_rows=shape.first_rows, columns=shape.columns)
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
        """The blocks of a file. Ends early when so many rows were read as were asked for."""
        for chunk in chunks:
            for piece in _with_few_lines(chunk):
                yield self._cut(piece)
                if self._rows_read == self._first_rows:
                    return
        yield from self._finish()

    def _cut(self, chunk: bytes) -> Block:
        chunk = self._skip(chunk)
        # Almost always a record ends with the last line of a chunk, and then nothing has to be copied twice.
        cut = chunk.rfind(b"\n") + 1
        records, left = self._split(self._rest + chunk[:cut] if cut else self._rest)
        self._rest = left + chunk[cut:]
        if len(self._rest) > LONGEST_RECORD_BYTES and b"\n" not in self._rest:
            records.findings.refuse(Fault.ROW_TOO_LONG, self._line, self._rest)
            records = _with_refused(records)
            self._rest, self._is_skipping = b"", True
        return self._block(records)

    def _finish(self) -> Iterator[Block]:
        """The last record, whose line feed may be missing."""
        last, self._rest = self._rest, b""
        if not last.strip(b" \r"):
            return
        is_ended = last.endswith(b"\n")
        records, open_record = self._split(last if is_ended else last + b"\n")
        line, _, behind = open_record.partition(b"\n")
        if is_ended and self._are_rows(behind):
            # The quote is a mistake and not the beginning of a field that the file was cut in.
            records.findings.refuse(Fault.ROW_QUOTES, self._line, line)
            self._line += 1
            yield self._block(_with_refused(records))
            records, open_record = self._split(behind)
        is_short = not is_ended and len(records.ends) > 0 and records.delimiters[-1] < self._shape.columns - 1
        if (open_record or is_short) and not self._shape.may_be_cut:
            raise TruncatedFile(
                f"The record that begins in line {self._line_of_last(records, open_record)} is not whole, and the file "
                "ends there. Nothing was changed."
            )
        if is_short:
            records = _without_last(records)
        elif not is_ended and not self._shape.may_be_cut:
            records = self._judge_open_end(records)
        yield self._block(records)

    def _judge_open_end(self, records: _Records) -> _Records:
        """Take, leave out or refuse the last record, which no line feed ends."""
        self.is_open_ended = True
        if self._shape.open_end is OpenEnd.REFUSE:
            raise TruncatedFile(
                f"No line feed ends the last row of the file, in line {self._line_of_last(records, b'')}. "
                f"{self._shape.suspicion} Nothing was changed. If it is still the same at the next scheduled run, it "
                "is taken as it is; `harvester feed run FEED --force` takes it at once."
            )
        if self._shape.open_end is OpenEnd.TAKE or not len(records.ends):
            return records
        # If the last one itself was refused, a whole record is left out in its place, for one run.
        start = int(records.ends[-2]) + 1 if len(records.ends) > 1 else 0
        alone = _Records(
            records.data[start:], records.ends[-1:] - start, records.lines[-1:], records.delimiters[-1:], 0, Findings()
        )
        self.left_out, self.left_out_line = self._block(alone), int(records.lines[-1])
        return _without_last(records)

    def _are_rows(self, data: bytes) -> bool:
        """Whether every line is a record by itself, with all its fields."""
        rows = data.rstrip(b" \r\n") + b"\n"
        if len(rows) == 1 or len(lines_alone(rows, self._shape.delimiter)[1]):
            return False
        counts = survey(rows, self._shape.delimiter, quoted=True).delimiters
        return bool((counts == self._shape.columns - 1).all())

    def _line_of_last(self, records: _Records, open_record: bytes) -> int:
        return self._line if open_record or not len(records.lines) else int(records.lines[-1])

    def _skip(self, chunk: bytes) -> bytes:
        """What follows the line that was too long."""
        if not self._is_skipping:
            return chunk
        _, feed, behind = chunk.partition(b"\n")
        self._is_skipping = not feed
        self._line += len(feed)
        return behind

    def _split(self, data: bytes) -> tuple[_Records, bytes]:
        """The whole records in the data, and the beginning of the next."""
        quoted = self._is_quoted(data)
        packed = drop_blank_lines(data, quoted=quoted)
        found = survey(packed.data, self._shape.delimiter, quoted=quoted)
        consumed = int(found.ends[-1]) + 1 if len(found.ends) else 0
        if quoted and not (found.is_regular and len(packed.data) - consumed <= LONGEST_RECORD_BYTES):
            return self._split_mended(data)
        starts = np.concatenate(([0], found.ends[:-1] + 1)) if len(found.ends) else found.ends
        lines = found.lines + packed.before(starts) + self._line if packed.count else found.lines + self._line
        records = _Records(packed.data[:consumed], found.ends, lines, found.delimiters, 0, Findings())
        self._line += found.line_count + packed.count
        return records, packed.data[consumed:]

    def _is_quoted(self, data: bytes) -> bool:
        """Whether quotes mean something in this part of the file.

        Where they are needed for whole rows, they mean something to the end of the file, and where they are text, they
        stay text. A cell in quotes that could be text as well tells nothing about what follows.
        """
        shape = self._shape
        if shape.may_turn_quoted and self._late_quotes not in (Quotes.NEEDED, Quotes.TEXT):
            self._late_quotes = late_quotes(data, shape.delimiter, shape.columns) if b'"' in data else Quotes.UNKNOWN
        self._is_turned = self._late_quotes in (Quotes.NEEDED, Quotes.ENCLOSING)
        self.turned_quoted |= self._is_turned
        return shape.quoted or self._is_turned

    def _split_mended(self, data: bytes) -> tuple[_Records, bytes]:
        mended = self._mender.mend(data, self._line)
        regular = b"".join(mended.pieces)
        found = survey(regular, self._shape.delimiter, quoted=True)
        lines = np.concatenate(mended.lines) + self._line
        self._line += mended.line_count
        records = _Records(regular, found.ends, lines, found.delimiters, mended.refused, mended.findings)
        return records, data[mended.consumed :]

    def _block(self, records: _Records) -> Block:
        starts = np.concatenate(([0], records.ends[:-1] + 1)) if len(records.ends) else records.ends
        lengths = records.ends - starts
        is_row = _filled(records, lengths)
        is_row &= self._wanted(is_row, records.refused)
        good = is_row & (records.delimiters == self._shape.columns - 1) & (lengths <= LONGEST_RECORD_BYTES)
        good &= _decodable(records, starts)
        blanks = self._refuse(records, starts, np.flatnonzero(is_row & ~good))
        rows_read = int(is_row.sum()) - blanks + records.refused
        self._count(rows_read)
        data, ends = _kept(records, starts, good)
        return Block(data, ends, records.lines[good], rows_read, records.findings, self._is_turned)

    def _wanted(self, is_row: NDArray[np.bool_], refused: int) -> NDArray[np.bool_]:
        """The first of the rows, if no more are asked for."""
        if self._first_rows is None:
            return is_row
        return np.cumsum(is_row) <= max(self._first_rows - self._rows_read - refused, 0)

    def _refuse(self, records: _Records, starts: Positions, bad: Positions) -> int:
        """Note each bad record; return how many were only blank."""
        blanks = 0
        for place in bad:
            row = records.data[starts[place] : records.ends[place]]
            if row.strip(b" \r"):
                records.findings.refuse(_fault_of(row), int(records.lines[place]), row)
            else:
                blanks += 1
        return blanks

    def _count(self, rows: int) -> None:
        self._rows_read += rows
        if self._rows_read > self._most_rows:
            raise RowCountLimitExceeded(
                f"The file has more than {self._most_rows:,} rows, the most that the feed may have (max_rows). Nothing "
                "of it is used. Check that it is the right file; if it is, raise the limit."
            )


def _with_few_lines(chunk: bytes) -> Iterator[bytes]:
    """The chunk in pieces: each line takes memory while records are looked for, however short it is."""
    pieces = chunk.count(b"\n") // MOST_LINES + 1
    size = len(chunk) // pieces + 1
    for start in range(0, max(len(chunk), 1), size):
        yield chunk[start : start + size] if pieces > 1 else chunk


def _with_refused(records: _Records) -> _Records:
    return _Records(
        records.data, records.ends, records.lines, records.delimiters, records.refused + 1, records.findings
    )


def _without_last(records: _Records) -> _Records:
    ends = records.ends[:-1]
    data = records.data[: int(ends[-1]) + 1] if len(ends) else b""
    return _Records(data, ends, records.lines[:-1], records.delimiters[:-1], records.refused, records.findings)


def _filled(records: _Records, lengths: Positions) -> NDArray[np.bool_]:
    """Which records are more than the end of a line."""
    filled = lengths > 0
    single = np.flatnonzero(lengths == 1)
    filled[single] = [records.data[end - 1] != _RETURN for end in records.ends[single]]
    return filled


def _decodable(records: _Records, starts: Positions) -> NDArray[np.bool_]:
    """Which records are UTF-8 without NUL; almost always all of them are, and that is seen at once."""
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


def _kept(records: _Records, starts: Positions, good: NDArray[np.bool_]) -> tuple[bytes, Positions]:
    """The good records one after the other, and the position behind each."""
    bad = np.flatnonzero(~good)
    if not len(bad):
        return records.data, records.ends + 1
    begins = [0, *(records.ends[bad] + 1).tolist()]
    stops = [*starts[bad].tolist(), len(records.data)]
    data = b"".join(records.data[begin:stop] for begin, stop in zip(begins, stops, strict=True))
    return data, np.cumsum(records.ends[good] + 1 - starts[good])
