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


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Its URL. Without the program the test is skipped, where that is allowed."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI") == "true":
            raise RuntimeError("redis-server is missing; `make parts` installs it")
        pytest.skip("redis-server is not installed")
    socket = directory / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(directory)]
    with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as process:
        url = f"unix://{socket}"
        try:
            wait_for(lambda: _answers(url), "the Redis server")
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        redis_client.ping(url)
    except TransientError:
        return False
    return True
