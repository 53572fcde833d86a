"""Adapters that fail in the ways in which a child process can."""

import os
import signal
from typing import Any


def raise_error(*_: Any) -> None:
    raise ValueError("what the adapter says")


def run_forever(*_: Any) -> None:
    while True:
        pass


def eat_memory(*_: Any) -> list[bytes]:
    eaten = []
    while True:
        eaten.append(bytes(50_000_000))


def crash(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)
