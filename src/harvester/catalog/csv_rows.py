"""Small CSV files written by people. Every error names the line, the column and the allowed values."""

import csv
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harvester.kernel.errors import InvalidInput
from harvester.kernel.headers import normalize_header
from harvester.kernel.moments import parse_moment

#: Bytes; a list of shops, not a catalog of products.
LARGEST_FILE = 10_000_000
_TRUE, _FALSE = frozenset({"true", "yes", "1", "t", "y"}), frozenset({"false", "no", "0", "f", "n", ""})


@dataclass(frozen=True, kw_only=True)
class Row:
    """One record.

    Attributes:
        line: its first line; the header is line 1.
        values: column -> text.
    """

    line: int
    values: dict[str, str]


def read_rows(path: Path, columns: Sequence[str], required: Sequence[str]) -> list[Row]:
    """Return all records of a file.

    Raises:
        InvalidInput: the file as a whole is invalid, or a record has more or fewer fields than the header.
    """
    try:
        lines = csv.reader(_text(path).splitlines(keepends=True), strict=True)
        header = _header(path, next(lines, []), columns, required)
        rows, first_line = [], 2
        for record in lines:
            if record and len(record) != len(header):
                raise InvalidInput(
                    f"{path} line {first_line}: it has {len(record)} fields, the header has {len(header)}; "
                    "quote fields that contain a comma."
                )
            if record:
                rows.append(Row(line=first_line, values=dict(zip(header, record, strict=True))))
            first_line = lines.line_num + 1
    except csv.Error as problem:
        raise InvalidInput(f"{path} line {lines.line_num}: {problem}; quote fields that contain a quote.") from None
    return rows


def truth(field: str, text: str) -> bool:
    value = text.strip().lower()
    if value not in _TRUE | _FALSE:
        raise InvalidInput(f"{text!r} is neither true nor false; write true, false or nothing.", field=field)
    return value in _TRUE


def check_time(field: str, text: str) -> dt.datetime | None:
    """Return a time in ISO 8601; without a zone it is UTC."""
    if not text.strip():
        return None
    try:
        return parse_moment(text.strip())
    except ValueError:
        raise InvalidInput(
            f"{text[:60]!r} is not a time; write 2024-05-01, 2024-05-01T12:00:00Z or nothing.", field=field
        ) from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InvalidInput(f"{path}: larger than {LARGEST_FILE:,} bytes, too large for a list of shops.")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"{path}: the file cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError as problem:
        raise InvalidInput(f"{path}: byte {problem.start} is not UTF-8; save the file as UTF-8.") from None


def _header(path: Path, found: list[str], columns: Sequence[str], required: Sequence[str]) -> list[str]:
    by_form = {normalize_header(name): name for name in columns}
    header = [by_form.get(normalize_header(name), "") for name in found]
    for place, name in enumerate(header):
        if not name or name in header[:place]:
            why = "is there twice" if name else "is unknown"
            raise InvalidInput(
                f"{path} line 1: the column {found[place][:60]!r} {why}; allowed are {', '.join(columns)}."
            )
    missing = [name for name in required if name not in header]
    if missing:
        raise InvalidInput(f"{path} line 1: the column {missing[0]} is missing; required are {', '.join(required)}.")
    return header
