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
        quoted: how many of them were quoted.
    """

    end: int
    fields: tuple[bytes, ...]
    quoted: int


def read_record(data: bytes, start: int, delimiter: bytes) -> Record | Trouble:
    """The record that begins there."""
    fields: list[bytes] = []
    quoted = 0
    position = start
    while True:
        is_quoted = data.startswith(QUOTE, position)
        quoted += is_quoted
        stop = (_QUOTED if is_quoted else _unquoted(delimiter)).match(data, position).end()  # type: ignore[union-attr]
        field = data[position + is_quoted : stop]
        stop += is_quoted
        if stop >= len(data):
            return Trouble.OPEN
        fields.append(field.replace(b'""', QUOTE) if is_quoted else field)
        if data.startswith(delimiter, stop):
            position = stop + 1
            continue
        end = _line_feed(data, stop)
        return Trouble.BROKEN if end is None else Record(end, _without_return(fields, quoted=is_quoted), quoted)


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
