"""How long statements may take."""

from typing import Any
from weakref import WeakKeyDictionary

from django.core.signals import request_started
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from psycopg.errors import QueryCanceled

# For the session and not for a transaction: reads need none, and one around them would hold a snapshot open.
_LIMIT = "SELECT set_config('statement_timeout', %s, false)"
#: Sessions that are limited -> seconds. A limit stays until somebody else uses the session: one read after another
#: asks nothing of the database for it.
_limited: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


def limit(seconds: float) -> None:
    """Have the database stop every statement of this session after so long, until the next request begins."""
    if connection.connection is not None and _limited.get(connection.connection) == seconds:
        return
    with connection.cursor() as cursor:
        cursor.execute(_LIMIT, [f"{round(seconds * 1000)}ms"])
    _limited[connection.connection] = seconds


def lift() -> None:
    """Whoever uses the session from here on may take their time."""
    if connection.connection is None or _limited.pop(connection.connection, None) is None:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    except (DatabaseError, InterfaceError):
        connection.close()


def is_timeout(error: Exception) -> bool:
    """Whether the database stopped a statement that took too long."""
    return isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled)


def lift_unless(prefix: str, methods: tuple[str, ...]) -> None:
    """Lift the limit whenever a request begins that is none of these, before anything of it asks the database."""

    def begin(sender: Any, environ: dict[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG001 - the signal's shape
        asked = environ or {}
        if asked.get("REQUEST_METHOD") not in methods or not str(asked.get("PATH_INFO")).startswith(prefix):
            lift()

    request_started.connect(begin, weak=False, dispatch_uid="ops.statements")
