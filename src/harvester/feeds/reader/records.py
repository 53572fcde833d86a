"""One record of a quoted file, read byte by byte: the definition that all faster readers agree with.

A field that begins with a quote ends with the next quote that is not doubled, and a delimiter or the end of the line
has to follow. In any other field a quote is text, as in `5" nail`.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

QUOTE = b'"'
#: A quote and everything up to the quote that ends the field.
_QUOTED = re.compile(rb'"[^"]*+(?:""[^"]*+)*')
#: Everything up to the first quote that is not doubled.
_DOUBLED = re.compile(rb'[^"]*+(?:""[^"]*+)*+')


class Trouble(Enum):
    """Why a record cannot be read."""

    #: Something follows the quote that ends a field.
    BROKEN = "broken"
    #: The data ends before the record does.
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Record:
    """A record as written in the data.

    Attributes:
        end: position of the line feed that ends it.
        fields: their content, without quotes.
        quoted: places of those that were quoted.
    """

    end: int
    fields: tuple[bytes, ...]
    quoted: tuple[int, ...]


def read_record(data: bytes, start: int, delimiter: bytes) -> Record | Trouble:
    """Return the record that begins at this position."""
    fields: list[bytes] = []
    quoted: list[int] = []
    position = start
    unquoted = _unquoted_pattern(delimiter)
    while True:
        is_quoted = data.startswith(QUOTE, position)
        stop = (_QUOTED if is_quoted else unquoted).match(data, position).end()  # type: ignore[union-attr]
        field = data[position + is_quoted : stop]
        stop += is_quoted
        if stop >= len(data):
            return Trouble.OPEN
        if is_quoted:
            quoted.append(len(fields))
        fields.append(field.replace(b'""', QUOTE) if is_quoted else field)
        if data.startswith(delimiter, stop):
            position = stop + 1
            continue
        if not data.startswith((b"\n", b"\r\n"), stop):
            return Trouble.BROKEN
        if not is_quoted:
            # The carriage return before the line feed belongs to the end of the line.
            fields[-1] = fields[-1].removesuffix(b"\r")
        return Record(stop if data.startswith(b"\n", stop) else stop + 1, tuple(fields), tuple(quoted))


@lru_cache(maxsize=16)
def _unquoted_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[^\n" + re.escape(delimiter) + b"]*+")


def torn_places(record: Record) -> set[int]:
    """Return the places of fields that may be the torn rest of a quoted field, because a delimiter is missing.

    Without the delimiter before its quote, `Pan,"red, blue"` becomes the fields `Pan"red` and ` blue"`: the same
    number. So a quote inside an unquoted field may open text that a later field ends with a quote, if all quotes in
    between are doubled. A quote at the end of a field opens nothing, because `5",7"` are two sizes.
    """
    torn: set[int] = set()
    # Fields hardly ever end with a quote, and this check is much faster.
    if QUOTE + b"\n" not in b"\n".join((*record.fields, b"")):
        return torn
    opened: set[int] = set()
    quoted = set(record.quoted)
    for place, field in enumerate(record.fields):
        is_quoted = place in quoted
        raw = QUOTE + field.replace(QUOTE, b'""') + QUOTE if is_quoted else field
        if opened:
            single = _DOUBLED.match(raw).end()  # type: ignore[union-attr]
            if single == len(raw) - 1:
                torn |= opened
            if single < len(raw):
                opened = set()
        text = raw.rstrip(QUOTE)
        if not is_quoted and QUOTE in text and (len(raw) - len(text)) % 2 == 0:
            opened.add(place + 1)
    return torn


def write_record(fields: tuple[bytes, ...], delimiter: bytes) -> bytes:
    """Return the record with every field quoted."""
    return delimiter.join(QUOTE + field.replace(QUOTE, b'""') + QUOTE for field in fields) + b"\n"
