"""Logs are events: a constant name and typed fields, redacted wherever they come from."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog


@contextmanager
def log_context(**ids: Any) -> Iterator[None]:
    """Bind ids once; every event inside carries them."""
    with structlog.contextvars.bound_contextvars(**ids):
        yield
