"""Gunicorn's messages take the way of all other logs."""

import logging
from typing import Any

from gunicorn.glogging import Logger


# Gunicorn has no types.
class GunicornLogger(Logger):  # type: ignore[misc]
    """For gunicorn's setting `logger_class`: no handlers of its own, the process's logging decides."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.setLevel(logging.NOTSET)
            log.propagate = True
