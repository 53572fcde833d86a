"""What is refused is named as it was typed: verbs know fields, people know options."""

from collections.abc import Iterator
from contextlib import contextmanager

from harvester.kernel.errors import InvalidInput, NotFound

#: The largest number that a row of the database can have.
LARGEST_NUMBER = 2**63 - 1


@contextmanager
def as_typed(**options: str) -> Iterator[None]:
    """Say `--limit: ...` where a refusal inside begins with the name of a field, such as `most: ...`."""
    try:
        yield
    except (InvalidInput, NotFound) as error:
        field, _, rest = str(error).partition(": ")
        if not rest or field not in options:
            raise
        raise type(error)(f"{options[field]}: {rest}") from None
