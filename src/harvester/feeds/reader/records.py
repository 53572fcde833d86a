"""One record of a quoted file, read byte by byte: the definition that everything faster has to agree with.

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
    """Why there is no record."""

    #: Something follows the quote that ends a field.
    BROKEN = "broken"
    #: The data ends before the record does.
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it stands in the data.

    Attributes:
        end: position of the line feed that ends it.
        fields: their content, without quotes.
        quoted: places of those that were quoted.
    """

    end: int
    fields: tuple[bytes, ...]
    quoted: tuple[int, ...]


def read_record(data: bytes, start: int, delimiter: bytes) -> Record | Trouble:
    """The record that begins there."""
    fields: list[bytes] = []
    quoted: list[int] = []
    position = start
    while True:
        is_quoted = data.startswith(QUOTE, position)
        stop = (_QUOTED if is_quoted else _unquoted(delimiter)).match(data, position).end()  # type: ignore[union-attr]
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
        end = _line_feed(data, stop)
        return Trouble.BROKEN if end is None else Record(end, _without_return(fields, quoted=is_quoted), tuple(quoted))


def torn_places(record: Record) -> set[int]:
    """Return the places of fields that may be the torn rest of a quoted field, because a delimiter is missing.

    Without the delimiter in front of its quote, `Pan,"red, blue"` becomes the fields `Pan"red` and ` blue"`: as many as
    before. So a quote inside an unquoted field may open text that a later field ends with a quote, if all quotes in
    between are doubled. A quote at the end of a field opens nothing, because `5",7"` are two sizes.
    """
    torn: set[int] = set()
    # Hardly ever does a field end with a quote, and that is seen much faster.
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
    """The record with every field quoted, as any reader understands it."""
    return delimiter.join(QUOTE + field.replace(QUOTE, b'""') + QUOTE for field in fields) + b"\n"


@lru_cache(maxsize=16)
def _unquoted(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[^\n" + re.escape(delimiter) + b"]*+")


def _line_feed(data: bytes, position: int) -> int | None:
    if data.startswith(b"\n", position):
        return position
    return position + 1 if data.startswith(b"\r\n", position) else None


def _without_return(fields: list[bytes], *, quoted: bool) -> tuple[bytes, ...]:
    """The carriage return in front of the line feed belongs to the end of the line."""
    if not quoted:
        fields[-1] = fields[-1].removesuffix(b"\r")
    return tuple(fields)
