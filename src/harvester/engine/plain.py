"""JSON that PostgreSQL can hold."""

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from harvester.kernel.errors import InvalidInput


def to_json(value: Any, what: str) -> str:
    """Encode a value, or say why it cannot be stored: NaN, NUL and lone surrogates have no place in jsonb."""
    try:
        encoded = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
        encoded.encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidInput(f"{what} cannot be written as JSON: {type(problem).__name__}.") from None
    if "\\u0000" in encoded:
        raise InvalidInput(f"{what} holds a NUL character, which PostgreSQL cannot store.")
    return encoded


def _plain(value: Any) -> str:
    """UUIDs, dates and decimals travel as text."""
    if isinstance(value, UUID | datetime | date | Decimal):
        return str(value)
    raise TypeError(type(value).__name__)
