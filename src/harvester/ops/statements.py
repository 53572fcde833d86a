"""How long statements may take."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from psycopg.errors import QueryCanceled

# For the session and not for a transaction: reads need none, and one around them would hold a snapshot open.
_LIMIT = "SELECT set_config('statement_timeout', %s, false)"


@contextmanager
def statements_within(seconds: float) -> Iterator[None]:
    """Every statement in here is stopped by the database after so long."""
    with connection.cursor() as cursor:
        cursor.execute(_LIMIT, [f"{round(seconds * 1000)}ms"])
    try:
        yield
    finally:
        _end_limit()


def is_timeout(error: Exception) -> bool:
    """Whether the database stopped a statement that took too long."""
    return isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled)


def _end_limit() -> None:
    """The session goes on to serve others, who may take their time."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    except (DatabaseError, InterfaceError):
        connection.close()
