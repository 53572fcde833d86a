"""How a file is written: decided from its header line and the known column names, never guessed.

A file without such a header is refused, with a message that says what was expected and what was found.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, NamedTuple, cast

from harvester.feeds.reader.binding import Binding, bind, missing
from harvester.feeds.reader.blocks import LONGEST_RECORD_BYTES
from harvester.feeds.reader.errors import EmptyFile, EncodingUnreadable, HeaderUnreadable, HtmlInsteadOfCsv
from harvester.feeds.reader.quoting import SAMPLE_BYTES, first_quoted, first_rows, is_quoted
from harvester.feeds.reader.records import Record, read_record
from harvester.guards.redaction import redact_text
from harvester.kernel.errors import TerminalError
from harvester.kernel.network import Network
from harvester.kernel.urls import LONGEST_URL

#: More columns are not a product catalog, and each of them costs time in every block.
MOST_COLUMNS: Final = 10_000
_SHOWN_BYTES, _SHOWN_NAMES, _SHOWN_LIST = 120, 12, 400
_DELIMITER_NAMES: Final = {"\t": "tab", ",": "comma", "|": "pipe", ";": "semicolon"}
_EXPECTED: Final = "Expected is text, plain or gzip, whose first line names the columns."
_CHECK_PATH: Final = "Nothing was changed. Check the path of the feed"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|script)\b", re.IGNORECASE)
#: How other files begin that partners put in a catalog's place, after decoding, which takes odd bytes for letters.
_OTHER_KINDS: Final = (
    (b"\x1f", "compressed twice with gzip"),
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook"),
    (b"%PDF", "a PDF document"),
    (b"BZh", "compressed with bzip2"),
    ("\xfd7zXZ".encode(), "compressed with xz"),
    ("(\xb5/\xfd".encode(), "compressed with zstd"),
    (b"7z", "a 7z archive"),
    (b"<?xml", "XML"),
    (b"{", "JSON"),
    (b"[", "JSON"),
)

LineEnd = Literal["\n", "\r\n", "\r"]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a file is written.

    Attributes:
        delimiter: what separates columns.
        quoted: whether quotes enclose cells; if not, a quote is text.
        line_end: how the header ends.
    """

    delimiter: str
    quoted: bool
    line_end: LineEnd

    @property
    def delimiter_name(self) -> str:
        return _DELIMITER_NAMES.get(self.delimiter, self.delimiter)


class Opening(NamedTuple):
    """The beginning of a file.

    Attributes:
        dialect: how the file is written.
        binding: the meaning of its columns.
        rows: everything after the header.
        first_line: number of the line in which the rows begin.
        first_rows: the rows that decided whether quotes enclose cells.
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
        EmptyFile, HtmlInsteadOfCsv, HeaderUnreadable, EncodingUnreadable: it is not a catalog of that network.
    """
    stream = iter(chunks)
    head = b""
    for chunk in stream:
        head += chunk
        # As many rows as a sample has, whatever the size of the chunks, which must not change what they decide.
        line = _LINE_END.search(head, len(head) - len(head.lstrip()))
        if len(head) > LONGEST_RECORD_BYTES or (line and len(head) - line.end() >= SAMPLE_BYTES):
            break
    _refuse_empty_and_html(head)
    line = _LINE_END.search(head.lstrip())
    line_end = cast("LineEnd", line[0].decode() if line else "\n")
    if line_end == "\r":
        head, stream = _with_line_feeds(head), map(_with_line_feeds, stream)
    blank = len(head) - len(head.lstrip(b"\r\n \t"))
    header = _read_header(head, head.rfind(b"\n", 0, blank) + 1, network)
    rows = head[header.end + 1 :]
    delimiter, columns = header.delimiter.encode(), len(header.binding.header)
    quoted = header.is_quoted or is_quoted(rows, delimiter, columns)
    dialect = Dialect(delimiter=header.delimiter, quoted=quoted, line_end=line_end)
    first_line = head.count(b"\n", 0, header.end + 1) + 1
    sample = first_rows(rows)
    is_decided = quoted or first_quoted(sample, delimiter) is not None
    return Opening(dialect, header.binding, chain([rows], stream), first_line, sample, not is_decided)


def _with_line_feeds(chunk: bytes) -> bytes:
    return chunk.replace(b"\r", b"\n")


def _read_header(head: bytes, start: int, network: Network) -> _Header:
    """Return the header with the delimiter that gives the most known columns."""
    data = head if head.endswith(b"\n") else head + b"\n"
    readings = []
    for delimiter in network.delimiters:
        record = read_record(data, start, delimiter.encode())
        if not isinstance(record, Record) or record.end - start > LONGEST_RECORD_BYTES:
            continue
        if len(record.fields) > MOST_COLUMNS:
            raise HeaderUnreadable(
                f"The first line has more than {MOST_COLUMNS:,} columns, more than any catalog; it begins with "
                f"{_shown(head[start:])}. {_CHECK_PATH}, and whether the file has line ends."
            )
        names = [field.decode(errors="replace").strip() for field in record.fields]
        readings.append(_Header(delimiter, bind(names, network), record.end, bool(record.quoted)))
    best = max(readings, key=lambda reading: len(reading.binding.columns), default=None)
    if best is None or missing(best.binding):  # mutant: header-recognized
        raise _unreadable(head[start:], best, network)
    return best


def _refuse_empty_and_html(head: bytes) -> None:
    text = head.lstrip()
    if not text:
        found = f"It has only {len(head)} blanks and line ends." if head else "It has no bytes."
        raise EmptyFile(
            f"The file is empty. {found} {_EXPECTED} Nothing was changed. Check whether the partner is still writing "
            "the file."
        )
    if text.startswith(b"<") and _HTML.search(head[:1024]):
        raise HtmlInsteadOfCsv(
            "The file is a web page and not a catalog, probably an error message of the partner's server. It begins "
            f"with {_shown(head)}. {_EXPECTED} {_CHECK_PATH}."
        )


def _unreadable(head: bytes, best: _Header | None, network: Network) -> TerminalError:
    """Return the error for a file whose first line is not a header; `best` is its best reading."""
    binding = best.binding if best else None
    lacking = missing(binding) if binding else []
    text = head.lstrip()
    for beginning, kind in _OTHER_KINDS:
        if text.startswith(beginning):
            return HeaderUnreadable(
                f"The file is {kind} and not a catalog. It begins with {_shown(head)}. {_EXPECTED} {_CHECK_PATH}, or "
                "ask the partner for such a file.",
                lacking,
            )
    if b"\0" in text.partition(b"\n")[0]:
        return EncodingUnreadable(
            "The file is not text in UTF-8, Windows-1252 or UTF-16: its first line has zero bytes. It begins with "
            f"{_shown(head)}. {_EXPECTED} {_CHECK_PATH}, or ask the partner for UTF-8."
        )
    columns = []
    for group in lacking:
        aliases = [alias for field in group for alias in network.aliases.get(field, ())]
        what = " or ".join(field.value.replace("_", " ") for field in group)
        columns.append(f"a column for the {what} (such as {', '.join(aliases[:4])})")
    expected = " and ".join(columns) or "the names of columns"
    tried = ", ".join(_DELIMITER_NAMES.get(mark, mark) for mark in network.delimiters)
    if best is None or not best.binding.columns:
        found = (
            f"The first line has no column name that {network.label} uses, whichever delimiter is tried ({tried}). It "
            f"needs {expected}."
        )
    else:
        names = redact_text(", ".join(repr(name) for name in best.binding.header[:_SHOWN_NAMES]))
        known = redact_text(", ".join(f"{name!r} for the {field}" for field, [name, *_] in best.binding.names.items()))
        found = (
            f"The first line lacks {expected}. Of {tried}, {_DELIMITER_NAMES.get(best.delimiter, best.delimiter)} fits "
            f"best and gives {len(best.binding.header)} columns: {names[:_SHOWN_LIST]}. Recognized: "
            f"{known[:_SHOWN_LIST]}."
        )
    message = (
        f"{found} The file begins with {_shown(head)}. {_CHECK_PATH} and its network, and whether the file has a "
        "header."
    )
    return HeaderUnreadable(message, lacking, binding.header if binding else (), binding.names if binding else {})


def _shown(head: bytes) -> str:
    """Return the first bytes of a file for a message."""
    # Cut last: half a password would not be recognized as one.
    text = head[: _SHOWN_BYTES + LONGEST_URL].decode(errors="backslashreplace")
    return repr(redact_text(text)[:_SHOWN_BYTES])
