"""Processes forked from one that has everything loaded: hundreds are started, and each would load it for a second.

They are processes like any other: with a number of their own, killed, frozen and waited for.
"""

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
#: What the process that forks has loaded. One serves the whole run, so all that is ever forked stands here.
LOADED = ["tests.support.feed_worker", "tests.support.worker_process", "tests.support.scrape_worker"]


def fork(work: Callable[..., None], *args: Any) -> BaseProcess:
    """Begin this work in a process of its own, which ends with this one at the latest."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    process = context.Process(target=work, args=args, daemon=True)
    # Python 3.11 does not pass the module path to the process that forks; its environment does.
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT)])):
        process.start()
    return process


class Forked:
    """A forked process, handled like one of `subprocess`."""

    def __init__(self, work: Callable[..., None], *args: Any) -> None:
        self._process = fork(work, *args)
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> int:
        self._process.join(seconds)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(self._process.name, seconds)
        return code

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
