"""The portal's web server: gunicorn as a library, with our socket and our logs."""

import errno
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
from gunicorn.sock import TCP6Socket, TCPSocket

from harvester.cli.signals import StopRequest, end_with_parent
from harvester.guards.gunicorn_logs import GunicornLogger
from harvester.guards.logs import REQUEST_ID
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError, TransientError

log = structlog.get_logger(__name__)

#: Seconds a request may go on after a stop was asked for.
GRACE_SECONDS = 10
#: Seconds without a sign of life after which the arbiter replaces its worker process.
SILENCE_SECONDS = 60
#: Seconds in which a client that is being read from, or written to, must move at all; gunicorn itself waits for ever,
#: and a thread with it.
PATIENCE_SECONDS = 30
#: Connections that may wait to be accepted.
BACKLOG = 1024
#: The most that gunicorn allows: filters of a search may be long, and longer still when they are encoded.
LONGEST_REQUEST_LINE = 8190
#: Asked all the time by machines.
QUIET_PATHS = ("/healthz", "/readyz", "/metrics", "/static/")


def bind(listen: str) -> socket.socket:
    """Take the portal's address, or say in one line why it cannot be had."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # By the kernel, whose connections have what the socket had that accepted them; a timeout of Python's is set anew.
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        taken.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", PATIENCE_SECONDS, 0))
    try:
        taken.bind((host.strip("[]"), int(port)))
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise _refused(listen, error) from None
    return taken


def _refused(listen: str, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return TransientError(
            f"Another program listens on {listen}. Stop it, or choose another address, "
            "for example HARVESTER_LISTEN=127.0.0.1:8001."
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
    return ConfigError(f"HARVESTER_LISTEN is {listen}, which cannot be listened on: {reason}. Choose another address.")


class PortalLogger(GunicornLogger):
    """One event per request, and of gunicorn's own messages those that matter."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.setLevel(self.loglevel)

    def access(self, resp: Any, _req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Never the query, the cookies or the headers: they may hold secrets."""
        path = environ.get("PATH_INFO", "")
        tell = log.debug if path.startswith(QUIET_PATHS) else log.info
        tell(
            "REQUEST",
            method=environ.get("REQUEST_METHOD"),
            path=path,
            status=int(str(resp.status).split(None, 1)[0]),
            milliseconds=round(request_time / timedelta(milliseconds=1)),
            **({"request_id": environ[REQUEST_ID]} if REQUEST_ID in environ else {}),
        )


def _end_with_arbiter(_arbiter: Any, worker: Any) -> None:
    """A worker without its arbiter would keep the portal's address from the next one.

    Until it has handlers of its own, the arbiter's would swallow a stop that comes while it starts.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not end_with_parent(worker.ppid):
        sys.exit(0)


class PortalServer(BaseApplication):
    """One process with threads; the arbiter replaces it if it dies."""

    def __init__(self, config: Config, taken: socket.socket, stop: StopRequest) -> None:
        self._config = config
        self._socket = taken
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
            # By the socket's own way of sending, which does not wait for ever.
            "sendfile": False,
            "when_ready": self._ready,
            "post_fork": _end_with_arbiter,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """With the socket that was taken before anything slow began."""
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
        """Gunicorn has its own handlers from here on; a stop that came before them is not lost."""
        if self._stop.asked:
            sys.exit(0)
        log.info("PORTAL_STARTED", listen=self._config.listen, threads=self._config.web_threads)
