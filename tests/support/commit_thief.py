"""A stand-in for the server's socket that loses the answer to one COMMIT."""

import contextlib
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

from django.conf import settings

from harvester.engine.embedded.layout import PORT

#: The message with which a client ends a batch of statements; outside a transaction block the server commits them.
SYNC = b"S\x00\x00\x00\x04"
FLUSH = b"H\x00\x00\x00\x04"
#: The message with which the server is ready again; the byte behind it says whether a transaction block is open.
READY = b"Z\x00\x00\x00\x05"


class CommitThief:
    """Passes everything on, until a session that has carried `marker` since its last commit commits.

    That commit, a COMMIT or the end of a batch outside a transaction block, reaches the server and is carried out;
    then the session breaks before the answer is delivered.
    """

    def __init__(self, marker: bytes) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="harvester-thief-"))
        self.stolen = threading.Event()
        self._marker = marker
        self._server = f"{settings.DATABASES['default']['HOST']}/.s.PGSQL.{PORT}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.place / f".s.PGSQL.{PORT}"))
        self._listener.listen(64)
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self.begin(self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            _end(one)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()
        shutil.rmtree(self.place)

    def begin(self, *work: Any) -> None:
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
                _Session(self, client, server).start()

    def wants(self, carried: bytes) -> bool:
        return self._marker in carried and not self.stolen.is_set()


class _Session:
    def __init__(self, thief: CommitThief, client: socket.socket, server: socket.socket) -> None:
        self._thief = thief
        self._client = client
        self._server = server
        self._carried = b""
        self._robbing = False
        self._in_block = False
        self._lock = threading.Lock()

    def start(self) -> None:
        self._thief.begin(self._carry, self._client, self._server, self._asked)
        self._thief.begin(self._carry, self._server, self._client, self._answered)

    def _carry(self, source: socket.socket, target: socket.socket, seen) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(65536)) and seen(data):
                target.sendall(data)
        _end(self._client)
        _end(self._server)

    def _asked(self, data: bytes) -> bool:
        with self._lock:
            self._carried += data
            if b"COMMIT" in data or (data.removesuffix(FLUSH).endswith(SYNC) and not self._in_block):
                self._robbing = self._thief.wants(self._carried)
                self._carried = b""
        return True

    def _answered(self, data: bytes) -> bool:
        with self._lock:
            if self._robbing:
                return self._rob(data)
            self._carried += data
            ready = data.rfind(READY)
            if ready >= 0:
                self._in_block = data[ready + len(READY) :][:1] == b"T"
        return True

    def _rob(self, data: bytes) -> bool:
        """Hold the answer back, and break the session when it is complete: only then was the commit carried out."""
        while data[-len(READY) - 1 : -1] != READY:
            data = self._server.recv(65536)
        self._thief.stolen.set()
        return False


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
