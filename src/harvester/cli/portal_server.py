"""The portal's web server: gunicorn as a library, with our socket and our logs."""

import errno
import logging
import os
import signal
import socket
import struct
import sys
from datetime import timedelta
from typing import Any

import structlog
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.sock import TCP6Socket, TCPSocket

from harvester.cli.signals import StopRequest, end_with_parent
from harvester.guards.logs import REQUEST_ID
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError, TransientError

log = structlog.get_logger(__name__)

#: Seconds that a request may take after a stop was requested.
GRACE_SECONDS = 10
#: Seconds without a heartbeat after which the arbiter replaces its worker process.
SILENCE_SECONDS = 60
#: Timeout of each read from and write to a client; gunicorn itself has none and would block a thread forever.
PATIENCE_SECONDS = 30
#: Connections that may wait to be accepted.
BACKLOG = 1024
#: The maximum of gunicorn: the filters of a search may be long, and longer when they are encoded.
LONGEST_REQUEST_LINE = 8190
#: Requested by machines all the time, so logged at level debug.
QUIET_PATHS = ("/healthz", "/readyz", "/metrics", "/static/")


def bind(listen: str) -> socket.socket:
    """Return a socket that listens on the portal's address, or raise with the reason."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Kernel options, because accepted connections inherit them; they do not inherit Python's timeout.
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        listener.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", PATIENCE_SECONDS, 0))
    try:
        listener.bind((host.strip("[]"), int(port)))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise TransientError(
                f"Another program listens on {listen}. Stop it, or choose another address, "
                "for example HARVESTER_LISTEN=127.0.0.1:8001."
            ) from None
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
        raise ConfigError(
            f"The portal cannot listen on HARVESTER_LISTEN={listen}: {reason}. Choose another address."
        ) from None
    return listener


class PortalLogger(Logger):
    """Logs one event per request, and gunicorn's messages like all others, at the configured level."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.setLevel(logging.NOTSET)
            logger.propagate = True
        self.error_log.setLevel(self.loglevel)

    def access(self, resp: Any, _req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Log a request without its query, cookies and headers, which may contain secrets."""
        path = environ.get("PATH_INFO", "")
        write = log.debug if path.startswith(QUIET_PATHS) else log.info
        write(
            "REQUEST",
            method=environ.get("REQUEST_METHOD"),
            path=path,
            status=int(str(resp.status).split(None, 1)[0]),
            milliseconds=round(request_time / timedelta(milliseconds=1)),
            **({"request_id": environ[REQUEST_ID]} if REQUEST_ID in environ else {}),
        )


def _end_with_arbiter(_arbiter: Any, worker: Any) -> None:
    """Stop a worker when its arbiter dies; otherwise it would keep the portal's address in use.

    Until the worker installs its own handlers, the inherited ones of the arbiter would swallow a stop.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not end_with_parent(worker.ppid):
        sys.exit(0)


class PortalServer(BaseApplication):
    """One worker process with threads; the arbiter replaces it if it dies."""

    def __init__(self, config: Config, listener: socket.socket, stop: StopRequest) -> None:
        self._config = config
        self._socket = listener
        self._stop = stop
        super().__init__(prog="harvester web")

    def load_config(self) -> None:
        options = {
            "worker_class": "harvester.cli.portal_worker.PortalWorker",
            "workers": 1,
            "threads": self._config.web_threads,
            "timeout": SILENCE_SECONDS,
            "graceful_timeout": GRACE_SECONDS,
            "loglevel": "debug" if self._config.log_level == "debug" else "warning",
            "logger_class": PortalLogger,
            "control_socket_disable": True,
            "limit_request_line": LONGEST_REQUEST_LINE,
            # sendfile would bypass the timeouts of ClientSocket.
            "sendfile": False,
            "when_ready": self._ready,
            "post_fork": _end_with_arbiter,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """Run on the socket that was bound before anything slow began."""
        arbiter = Arbiter(self)
        kind = TCP6Socket if self._socket.family == socket.AF_INET6 else TCPSocket
        address = self._socket.getsockname()
        arbiter.LISTENERS = [kind(address, self.cfg, arbiter.log, fd=self._socket.detach())]
        arbiter.run()

    def load(self) -> Any:
        from django.conf import settings
        from django.utils.module_loading import import_string

        return import_string(settings.WSGI_APPLICATION)

    def _ready(self, _arbiter: Any) -> None:
        """Handle a stop that came before gunicorn installed its own handlers."""
        if self._stop.asked:
            sys.exit(0)
        log.info("PORTAL_STARTED", listen=self._config.listen, threads=self._config.web_threads)
