"""Points of a run at which a test stops it: every statement, commit, copy and step of the threads that run the feed.

A path names words that the run comes by one after the other; it stops before the one that has the last word. There
it says `at` with the number of its session's backend, and goes on when it hears `go on`.
"""

import functools
import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections
from django.db.backends.signals import connection_created

from tests.support.signals import say, wait_quietly

#: Steps that are not statements; each is reported by its name when it begins.
STEPS = (
    ("harvester.feeds.runs", "fetch"),
    ("harvester.feeds.runs", "ingest"),
    ("harvester.feeds.fetch", "open_remote"),
    ("harvester.feeds.fetch", "_download"),
    ("harvester.feeds.ingest", "stage"),
    ("harvester.feeds.ingest", "keep_findings"),
    ("harvester.feeds.ingest", "match"),
    ("harvester.feeds.ingest", "judge"),
    ("harvester.feeds.ingest", "add_new_products"),
    ("harvester.feeds.ingest", "stage_contents"),
    ("harvester.feeds.ingest", "promote"),
    ("harvester.feeds.ingest", "hold"),
    ("harvester.feeds.run_endings", "make_held_products"),
    ("harvester.feeds.run_endings", "promote"),
)

#: The thread of a job, and that of its side session.
THREADS = ("harvester-job", "side-session")


class Route:
    """Waits for the words of a path, in their order, in whatever thread they come."""

    def __init__(self, path: Iterable[str], at_the_end: Callable[[], None]) -> None:
        self._left = list(path)
        self._at_the_end = at_the_end
        self._lock = threading.Lock()
        self.seen: list[str] = []

    def comes_by(self, what: str) -> None:
        with self._lock:
            self.seen.append(what)
            if not self._left or self._left[0] not in what:
                return
            self._left.pop(0)
            arrived = not self._left
        if arrived:
            self._at_the_end()


def stop_here() -> None:
    say("at", str(connection.connection.info.backend_pid))
    wait_quietly("go on")


def run_forever_here() -> None:
    """Leave a statement running that ends by itself only long after the test, even if the client dies."""
    with connection.cursor() as cursor:
        cursor.execute("SET client_connection_check_interval = 0")
        say("at", str(connection.connection.info.backend_pid))
        cursor.execute("SELECT pg_sleep(3600)")


@contextmanager
def watched(path: Iterable[str], at_the_end: Callable[[], None] = stop_here) -> Iterator[Route]:
    """Have the runs of this process come by on a route."""
    route = Route(path, at_the_end)
    undo = [_wrap(module, name, _reported(route, name)) for module, name in STEPS]
    undo.append(_wrap("harvester.feeds.reader.load", "copy_in", functools.partial(_copy_in, route)))
    listen = functools.partial(_watch_session, route)
    # Sessions that are open already say nothing to the route.
    connections.close_all()
    connection_created.connect(listen)
    try:
        yield route
    finally:
        connection_created.disconnect(listen)
        for restore in undo:
            restore()
        connections.close_all()


def _watch_session(route: Route, connection: Any, **_: Any) -> None:
    def statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        route.comes_by(sql)
        return execute(sql, params, many, context)

    commit = connection._commit

    def committing() -> Any:
        route.comes_by("COMMIT")
        result = commit()
        route.comes_by("COMMITTED")
        return result

    if connection.alias == "default" and threading.current_thread().name.startswith(THREADS):
        connection.execute_wrappers.append(statement)
        connection._commit = committing


def _wrap(module: str, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    home = importlib.import_module(module)
    original = getattr(home, name)
    setattr(home, name, make(original))
    return lambda: setattr(home, name, original)


def _reported(route: Route, name: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @functools.wraps(original)
        def step(*args: Any, **more: Any) -> Any:
            route.comes_by(f"STEP {name}")
            return original(*args, **more)

        return step

    return make


def _copy_in(route: Route, original: Any) -> Any:
    """Comes by in the middle of a COPY: behind each block that was sent."""

    def copy(cursor: Any, table: str, columns: Any, frames: Any) -> int:
        def reported() -> Iterator[Any]:
            for frame in frames:
                yield frame
                route.comes_by(f"COPY {table}")

        return original(cursor, table, columns, reported())

    return copy
