"""Time limits of database statements."""

from typing import Any
from weakref import WeakKeyDictionary

from django.core.signals import request_started
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from psycopg.errors import QueryCanceled

# For the session, not for a transaction: a transaction around reads would hold a snapshot open.
_LIMIT = "SELECT set_config('statement_timeout', %s, false)"
#: Session with a limit -> seconds. The limit stays until the session is used for something else, so that consecutive
#: reads need no statement for it.
_limited: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


def limit(seconds: float) -> None:
    """Limit every statement of this session until the next request."""
    if connection.connection is not None and _limited.get(connection.connection) == seconds:
        return
    with connection.cursor() as cursor:
        cursor.execute(_LIMIT, [f"{round(seconds * 1000)}ms"])
    _limited[connection.connection] = seconds


def lift() -> None:
    """Remove the limit of this session."""
    if connection.connection is None or _limited.pop(connection.connection, None) is None:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    except (DatabaseError, InterfaceError):
        connection.close()


def is_timeout(error: Exception) -> bool:
    """Whether the database stopped a statement because of a limit."""
    return isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled)


def lift_unless(prefix: str, methods: tuple[str, ...]) -> None:
    """Lift the limit when any other request starts, before it uses the database."""

    def begin(sender: Any, environ: dict[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG001 - the signal's shape
        given = environ or {}
        if given.get("REQUEST_METHOD") not in methods or not str(given.get("PATH_INFO")).startswith(prefix):
            lift()

    request_started.connect(begin, weak=False, dispatch_uid="ops.statements")
