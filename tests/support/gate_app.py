"""A small application behind the portal's real worker: it answers, or waits until it may.

`/healthz` is alive, `/wait?NAME` answers when a file of that name is in the directory GATES, `/long` answers with
64 MB, `/echo` with how many bytes of a body it read.
"""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/wait":
        gate = Path(os.environ["GATES"]) / environ["QUERY_STRING"]
        while not gate.exists():
            time.sleep(0.05)
    if path == "/long":
        start("200 OK", [("Content-Length", str(64 * 2**20))])
        return (bytes(2**20) for _ in range(64))
    body = b"alive"
    if path == "/echo":
        body = str(len(environ["wsgi.input"].read())).encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
