"""The portal as it runs in earnest: gunicorn in a process of its own."""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]


@contextmanager
def portal_server(**env: str) -> Iterator[str]:
    """Serve on a free port of the loopback; answers the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        descriptor = listener.fileno()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-m", "gunicorn", "--bind", f"fd://{descriptor}", "--threads", "8"]
        command += ["--worker-class", "harvester.cli.portal_worker.PortalWorker", "--no-sendfile"]
        command += ["--no-control-socket", "--log-level", "warning", "tests.support.portal_app"]
        environment = {**os.environ, **env, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        process = subprocess.Popen(command, env=environment, cwd=ROOT, pass_fds=[descriptor])
    try:
        wait_for(lambda: _answers(address, process), "the portal")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _answers(address: str, process: subprocess.Popen) -> bool:
    assert process.poll() is None, "the portal did not start"
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
