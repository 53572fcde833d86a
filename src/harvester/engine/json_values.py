"""JSON and names that PostgreSQL can store."""

import json
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from harvester.kernel.errors import InvalidInput

# A NUL as JSON writes it; after an odd number of backslashes it is only text that looks like one.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def to_json(value: Any, what: str, *, longest: int | None = None) -> str:
    """Encode a value; raise if jsonb cannot store it, such as NaN, NUL and lone surrogates."""
    try:
        encoded = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
        encoded.encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidInput(f"{what} cannot be written as JSON: {type(problem).__name__}.") from None
    if _NUL.search(encoded):
        raise InvalidInput(f"{what} contains a NUL character, which PostgreSQL cannot store.")
    if longest is not None and len(encoded) > longest:
        raise InvalidInput(f"{what} has {len(encoded)} characters of JSON; at most {longest} are allowed.")
    return encoded


def check_name(name: str | None, what: str, longest: int) -> None:
    """Raise if a name cannot be stored, searched or distinguished: empty, too long, with NUL or half characters."""
    if name is None:
        return
    if not name.strip() or len(name) > longest or not name.isprintable():
        raise InvalidInput(f"{what} must have from 1 to {longest} printable characters; it is {name[:50]!r}.")


def _plain(value: Any) -> str:
    """Encode UUIDs, dates and decimals as text."""
    if isinstance(value, UUID | datetime | date | Decimal):
        return str(value)
    raise TypeError(type(value).__name__)
