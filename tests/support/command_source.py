"""A program that has loaded the libraries of the `harvester` command, and forks one whenever it is asked to.

Nothing that depends on settings is among what it has loaded: a command reads its environment like one that was started
in the usual way. Only /proc shows the command line and the environment of this program instead.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from typing import Any

#: Polars and NumPy, which have threads from the beginning and must not be forked, are left to those who need them.
LOADED = (
    "asyncssh",
    "axes.apps",
    "bcrypt",
    "cronsim",
    "csp.apps",
    "cryptography.hazmat.primitives.ciphers.aead",
    "django.contrib.admin",
    "django.contrib.auth.hashers",
    "django.contrib.auth.management",
    "django.contrib.auth.password_validation",
    "django.contrib.messages.apps",
    "django.contrib.postgres.search",
    "django.contrib.sessions.apps",
    "django.contrib.staticfiles.finders",
    "django.core.management.commands.migrate",
    "django.db.backends.postgresql.base",
    "django.db.migrations.executor",
    "django.template.loader",
    "gunicorn.app.base",
    "gunicorn.glogging",
    "gunicorn.workers.gthread",
    "harvester.cli.app",
    "idna",
    "isal.igzip",
    "prometheus_client.core",
    "psycopg.types.json",
    "pydantic.type_adapter",
    "pydantic.types",
    "redis",
    "rich.progress",
    "rich.table",
    "structlog",
    "typer.rich_utils",
)
REQUEST_BYTES = 1 << 16


def serve(asked: socket.socket) -> dict[str, Any]:
    """Begin a process for every request. Only there does this return, with the request."""
    ends: dict[int, int] = {}
    with asked, _wakes_at_ends() as woken:
        while True:
            ready, *_ = select.select([asked, woken], [], [])
            if woken in ready:
                woken.recv(REQUEST_BYTES)
                _send_ends(ends)
            if asked in ready:
                message, files, *_ = socket.recv_fds(asked, REQUEST_BYTES, 4)
                if not message:
                    os._exit(0)
                if (pid := os.fork()) == 0:
                    _become(files[:3])
                    break
                ends[pid] = _send_begin(pid, files)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    return json.loads(message)


def _wakes_at_ends() -> socket.socket:
    """Becomes readable when a process ends."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Ctrl-C is for the tests, which end this process by ending themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return woken


def _send_begin(pid: int, files: list[int]) -> int:
    for number in files[:3]:
        os.close(number)
    os.write(files[3], f"{pid}\n".encode())
    return files[3]


def _send_ends(ends: dict[int, int]) -> None:
    for pid in list(ends):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            pipe = ends.pop(pid)
            os.write(pipe, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(pipe)


def _become(files: list[int]) -> None:
    """A process with the signals of a new one, and its own files."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)


def begin(asked: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(asked["environment"])
    if asked["cwd"]:
        os.chdir(asked["cwd"])
    if "ignore::ResourceWarning" in asked["environment"]["PYTHONWARNINGS"]:
        warnings.simplefilter("ignore", ResourceWarning)
    sys.argv = ["harvester", *asked["arguments"]]


if __name__ == "__main__":
    for module in LOADED:
        importlib.import_module(module)
    gc.collect()
    # A collection would touch, and so copy, every object for each of the processes.
    gc.freeze()
    begin(serve(socket.socket(fileno=int(sys.argv[1]))))
    runpy.run_module("harvester", run_name="__main__", alter_sys=True)
