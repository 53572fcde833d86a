"""Cursors for statements that run for every page: the server parses each of them once per session, not each time."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.utils import CursorWrapper
from psycopg.rows import TupleRow


class _Preparing(psycopg.Cursor[TupleRow]):
    """Prepares every statement; Django's own cursors never do, because they send values as part of the text."""

    def execute(self, query: Any, params: Sequence[Any] | Mapping[str, Any] | None = None, **_: Any) -> Any:
        return super().execute(query, params, prepare=True)


def prepared_cursor() -> CursorWrapper:
    """Return a cursor of this thread's session, in its open transaction if there is one.

    Its statements must be constant texts, with a cast where the type of a value does not follow from its place.
    """
    database = connections["default"]
    database.close_if_health_check_failed()
    database.ensure_connection()
    # Django's None forbids it. Its own cursors do not ask.
    database.connection.prepare_threshold = 0
    return CursorWrapper(_Preparing(database.connection), database)
