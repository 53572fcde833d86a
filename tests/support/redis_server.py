"""A private Redis server, on a socket in a directory."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harvester.guards import redis_client
from harvester.kernel.errors import TransientError
from tests.support.waiting import wait_for


class RedisServer:
    """A server that a test may kill and start again; without `saves` it then has lost everything."""

    def __init__(self, directory: Path, *, saves: bool = False) -> None:
        program = shutil.which("redis-server")
        if program is None:
            if os.environ.get("CI") == "true":
                raise RuntimeError("redis-server is missing; `make parts` installs it")
            pytest.skip("redis-server is not installed")
        socket = directory / "redis.sock"
        self.url = f"unix://{socket}"
        options = ["--port", "0", "--unixsocket", str(socket), "--dir", str(directory)]
        self._command = [program, *options, "--save", "3600 1000000" if saves else ""]
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        wait_for(self._answers, "the Redis server")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            redis_client.ping(self.url)
        except TransientError:
            return False
        return True


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Its URL. Without the program the test is skipped, where that is allowed."""
    server = RedisServer(directory)
    try:
        server.start()
        yield server.url
    finally:
        server.kill()
