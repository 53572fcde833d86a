"""The engine's own connections, beside the ones that Django gives to each thread."""

import contextlib
import os
import socket
from typing import Any

import psycopg
from django.db import connections
from psycopg.rows import TupleRow

Connection = psycopg.Connection[TupleRow]

#: The engine's statements are few and their best plans never depend on the values: each search goes through its
#: index, in the order of that index.
_PLANNER = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
#: Parts of Django's connection parameters that belong to its cursors.
_DJANGO_ONLY = {"cursor_factory", "context", "prepare_threshold"}


def connect(purpose: str, **changes: Any) -> Connection:
    """Open an autocommit session of the application's role, named after what it is for."""
    parameters: dict[str, Any] = connections["default"].get_connection_params()
    kept = {name: value for name, value in parameters.items() if name not in _DJANGO_ONLY}
    kept |= {"application_name": f"harvester {purpose}", "autocommit": True}
    kept["options"] = f"{kept.get('options', '')} {_PLANNER}"
    return psycopg.connect(**kept | changes)


def break_off(connection: Connection | None) -> None:
    """Shut the connection's socket, so that whoever waits for an answer on it, in another thread, gets an error."""
    with contextlib.suppress(OSError, psycopg.Error):
        if connection is not None:
            with socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
