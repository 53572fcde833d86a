"""The engine's own connections, separate from those that Django gives to each thread."""

import contextlib
import os
import socket
from typing import Any

import psycopg
from django.db import connections
from psycopg.rows import TupleRow

Connection = psycopg.Connection[TupleRow]

#: The best plans of the engine's statements never depend on the values: each search uses its index, in index order.
_PLANNER = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
#: Django's connection parameters for its own cursors.
_DJANGO_ONLY = {"cursor_factory", "context", "prepare_threshold"}


def connect(purpose: str, **changes: Any) -> Connection:
    """Open an autocommit session of the application's role, named after its purpose."""
    parameters: dict[str, Any] = connections["default"].get_connection_params()
    kept = {name: value for name, value in parameters.items() if name not in _DJANGO_ONLY}
    kept |= {"application_name": f"harvester {purpose}", "autocommit": True}
    kept["options"] = f"{kept.get('options', '')} {_PLANNER}"
    return psycopg.connect(**kept | changes)


def break_off(connection: Connection | None) -> None:
    """Shut down the connection's socket, so that a thread that waits for an answer on it gets an error."""
    with contextlib.suppress(OSError, psycopg.Error):
        if connection is not None:
            with socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
