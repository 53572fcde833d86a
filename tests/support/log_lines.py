"""What this process logs, read back as it would be read from its standard error."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from harvester.guards.logs import configure_logging

Lines = Callable[[], list[dict]]


@contextmanager
def logged(level: str = "debug") -> Iterator[Lines]:
    """Every line of the log, parsed, up to the moment of asking."""
    stream, before = io.StringIO(), structlog.get_config()
    configure_logging(level, "json", stream=stream)
    try:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        configure_logging("warning", "json")
        # Others capture events of every level.
        structlog.configure(**before)
