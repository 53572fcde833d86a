"""Reading option values, and naming options in errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from harvester.kernel.errors import InvalidInput, NotFound
from harvester.kernel.moments import parse_moment


def moment(option: str, text: str) -> datetime | None:
    """Return a date or time in UTC unless it names a time zone, or None for an empty text."""
    if not text:
        return None
    try:
        return parse_moment(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} is not a date or time; write it like 2026-01-31 or 2026-01-31T12:00Z.", field=option
        ) from None


#: The largest id that the database can store.
LARGEST_NUMBER = 2**63 - 1


@contextmanager
def as_typed(**options: str) -> Iterator[None]:
    """Replace the field's name at the start of an error by the option's: `most: ...` becomes `--limit: ...`."""
    try:
        yield
    except (InvalidInput, NotFound) as error:
        if error.field not in options:
            raise
        raise type(error)(error.reason, field=options[error.field]) from None
