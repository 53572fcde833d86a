"""Events from the engine to the packages above it, which subscribe here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import structlog

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class EngineEvent:
    """An event that people may want to know about.

    Attributes:
        name: constant name, such as JOB_FAILED.
        job_id: the affected job, if any.
        fields: typed details, ids and not objects.
    """

    name: str
    job_id: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[EngineEvent], None]
_listeners: list[Listener] = []


def subscribe(listener: Listener) -> None:
    if listener not in _listeners:
        _listeners.append(listener)


def emit(event: EngineEvent) -> None:
    """Call all listeners. An error in one is logged and does not affect the others."""
    for listener in _listeners:
        try:
            listener(event)
        except Exception:
            log.exception("ENGINE_LISTENER_FAILED", about=event.name, job_id=event.job_id)
