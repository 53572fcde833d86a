"""A server that sends given bytes to each client, and stores what it receives."""

import socket
import threading
import time
from collections.abc import Sequence
from typing import Self

HOST = "127.0.0.1"


class ScriptedServer:
    """Says its lines on connecting, then listens until the client goes.

    Args:
        lines: what it says, one after the other.
        pause: seconds before each line.
        hang_up: close the connection after the last line.
        for_ever: begin again after the last line.
    """

    def __init__(
        self, lines: Sequence[bytes] = (), *, pause: float = 0, hang_up: bool = False, for_ever: bool = False
    ) -> None:
        self._lines = lines
        self._pause = pause
        self._hang_up = hang_up
        self._for_ever = for_ever
        self.heard = b""
        self.connections = 0
        self._stopping = threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="scripted-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stopping.set()
        # Wakes the thread where it waits for a client.
        socket.create_connection((HOST, self.port)).close()
        self._thread.join(10)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client:
                if self._stopping.is_set():
                    return
                self.connections += 1
                self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        try:
            self._say(client)
            client.settimeout(0.05)
            while not self._hang_up and not self._stopping.is_set():
                try:
                    heard = client.recv(4096)
                except TimeoutError:
                    continue
                if not heard:
                    return
                self.heard += heard
        except OSError:
            return

    def _say(self, client: socket.socket) -> None:
        while True:
            for line in self._lines:
                time.sleep(self._pause)
                client.sendall(line)
                if self._stopping.is_set():
                    return
            if not self._for_ever:
                return
