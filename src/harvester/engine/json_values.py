"""JSON and names that PostgreSQL can hold."""

import json
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from harvester.kernel.errors import InvalidInput

# A NUL as JSON writes it; an even number of backslashes in front means that it is only text that looks like one.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def to_json(value: Any, what: str, *, longest: int | None = None) -> str:
    """Encode a value, or say why it cannot be stored: NaN, NUL and lone surrogates have no place in jsonb."""
    try:
        encoded = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
        encoded.encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidInput(f"{what} cannot be written as JSON: {type(problem).__name__}.") from None
    if _NUL.search(encoded):
        raise InvalidInput(f"{what} holds a NUL character, which PostgreSQL cannot store.")
    if longest is not None and len(encoded) > longest:
        raise InvalidInput(f"{what} has {len(encoded)} characters of JSON; {longest} are kept at the most.")
    return encoded


def check_name(name: str | None, what: str, longest: int) -> None:
    """Refuse a name that cannot be stored, searched by or told apart: empty, too long, with NUL or half characters."""
    if name is None:
        return
    if not name.strip() or len(name) > longest or not name.isprintable():
        raise InvalidInput(f"{what} must have from 1 to {longest} printable characters; it is {name[:50]!r}.")


def _plain(value: Any) -> str:
    """UUIDs, dates and decimals travel as text."""
    if isinstance(value, UUID | datetime | date | Decimal):
        return str(value)
    raise TypeError(type(value).__name__)
