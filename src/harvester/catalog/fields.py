"""Checks of input fields. Errors name the field and the allowed values."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from harvester.kernel.errors import InvalidInput
from harvester.kernel.rejects import Rejected
from harvester.kernel.text import CONTROLS, LONGEST_REASON, is_encodable, trim
from harvester.kernel.urls import split_url

Check = Callable[[str, Any], Any]

LONGEST_NAME = 200
#: Characters of an invalid value that a message repeats.
SHOWN = 60


def required_text(field: str, value: Any, longest: int = LONGEST_NAME) -> str:
    text = optional_text(field, value, longest)
    if not text:
        raise InvalidInput(f"must not be empty; use 1 to {longest:,} characters.", field=field)
    return text


def reason(value: Any) -> str:
    """Return a reason as one line."""
    return required_text("reason", " ".join(value.split()) if isinstance(value, str) else value, LONGEST_REASON)


def optional_text(field: str, value: Any, longest: int = LONGEST_NAME) -> str:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{_shown(value)} is not a text.", field=field)
    text = trim(value)
    if len(text) > longest:
        raise InvalidInput(f"has {len(text):,} characters; at most {longest:,} are allowed.", field=field)
    if re.search(CONTROLS, text) or not is_encodable(text):
        raise InvalidInput("contains control characters or invalid ones; only printable text is allowed.", field=field)
    return text


def text_or_nothing(field: str, value: Any) -> str | None:
    return optional_text(field, value) or None


def optional_url(field: str, value: Any) -> str:
    if not trim(value):
        return ""
    try:
        return str(split_url(value))
    except Rejected as problem:
        raise InvalidInput(f"{problem}; use an http or https address with a host.", field=field) from None


def network(field: str, value: Any) -> str | None:
    """Return the name of an affiliate network, such as IMPACT."""
    name = optional_text(field, value).upper()
    if name and not re.fullmatch("[A-Z][A-Z0-9_]{1,39}", name):
        raise InvalidInput(f"{_shown(value)} is not the name of a network; use one word such as IMPACT.", field=field)
    return name or None


def flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{_shown(value)} is neither true nor false.", field=field)
    return value


def choice(allowed: type[StrEnum]) -> Check:
    def check(field: str, value: Any) -> str:
        try:
            return allowed(value).value
        except ValueError:
            raise InvalidInput(
                f"{_shown(value)} is not allowed; choose from {', '.join(allowed)}.", field=field
            ) from None

    return check


def whole(lowest: int, highest: int) -> Check:
    def check(field: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise InvalidInput(
                f"{_shown(value)} is not allowed; use a whole number from {lowest} to {highest}.", field=field
            )
        return value

    return check


def checked(checks: Mapping[str, Check], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in the form to save.

    Raises:
        InvalidInput: a field does not exist, or its value is invalid.
    """
    unknown = sorted(set(values) - set(checks))
    if unknown:
        raise InvalidInput(f"{unknown[0]}: unknown field; known are {', '.join(checks)}.")
    return {field: checks[field](field, value) for field, value in values.items()}


def _shown(value: Any) -> str:
    return repr(value if not isinstance(value, str) or len(value) <= SHOWN else value[:SHOWN] + "...")
