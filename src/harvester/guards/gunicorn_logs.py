"""Gunicorn's messages, logged like all others."""

import logging
from typing import Any

from gunicorn.glogging import Logger


# Gunicorn has no types.
class GunicornLogger(Logger):  # type: ignore[misc]
    """A `logger_class` for gunicorn that uses the logging of the process instead of its own handlers."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.setLevel(logging.NOTSET)
            log.propagate = True
