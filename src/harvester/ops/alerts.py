"""Telling people what the engine noticed. Until there are channels, the log is the channel."""

import structlog

from harvester.engine.events import EngineEvent, subscribe

log = structlog.get_logger(__name__)


def listen() -> None:
    subscribe(_tell)


def _tell(event: EngineEvent) -> None:
    log.warning("ALERT", about=event.name, job_id=event.job_id, **event.fields)
