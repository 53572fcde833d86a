"""Telling people what the engine noticed. Until there are channels, the log is the channel."""

from collections.abc import Mapping
from typing import Any

import structlog

from harvester.engine.events import EngineEvent, subscribe

log = structlog.get_logger(__name__)


def listen() -> None:
    subscribe(_tell)


def _tell(event: EngineEvent) -> None:
    log.warning("ALERT", about=event.name, job_id=event.job_id, **event.fields)


def raise_alert(kind: str, key: str, title: str, body: str, *, severity: str, detail: Mapping[str, Any]) -> None:
    """Say that something is wrong."""
    log.warning("ALERT", about=kind, key=key, title=title, body=body, severity=severity, **detail)


def resolve_alert(key: str, note: str) -> None:
    """Say that it is over."""
    log.info("ALERT_RESOLVED", key=key, note=note)
