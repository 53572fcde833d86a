"""A way to the database that can fall silent: it goes on taking bytes and delivers none."""

import contextlib
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

from django.conf import settings

from harvester.engine.embedded.layout import PORT

TO_SERVER, TO_CLIENT = "to the server", "to the client"
BOTH = (TO_SERVER, TO_CLIENT)


class SilentProxy:
    """Forwards everything until it is made to drop data.

    Listens on a socket in the directory `place`, or at a TCP address.
    """

    def __init__(self, address: tuple[str, int] | None = None) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="harvester-silent-"))
        self._server = f"{settings.DATABASES['default']['HOST']}/.s.PGSQL.{PORT}"
        self._listener = socket.socket(socket.AF_INET if address else socket.AF_UNIX)
        self._listener.bind(address or str(self.place / f".s.PGSQL.{PORT}"))
        self._listener.listen(64)
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._swallowed: set[str] = set()

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    def swallow(self, *directions: str) -> None:
        """From now on, deliver nothing in these directions, in sessions that are open and in new ones."""
        self._swallowed = set(directions)

    def pass_on(self) -> None:
        """Deliver what comes from now on; what was swallowed is gone."""
        self._swallowed = set()

    def __enter__(self) -> Self:
        self._begin(self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            _end(one)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()
        shutil.rmtree(self.place)

    def _begin(self, *work: Any) -> None:
        thread = threading.Thread(target=work[0], args=work[1:], daemon=True)
        self._threads.append(thread)
        thread.start()

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._sockets += [client, server]
                self._begin(self._carry, client, server, TO_SERVER)
                self._begin(self._carry, server, client, TO_CLIENT)

    def _carry(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        """The end of a session is passed on only while bytes are: a dead link does not say goodbye."""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if direction not in self._swallowed:
                    target.sendall(data)
        if direction not in self._swallowed:
            _end(target)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
