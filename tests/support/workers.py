"""Workers for tests: in a thread of this process, or in a process of their own that can be killed."""

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings

from harvester.engine import wakeup
from harvester.engine.embedded.layout import DATABASE, OWNER_ROLE, PORT
from harvester.engine.worker import Worker, WorkerOptions
from tests.support.forked import ROOT, Forked
from tests.support.tables import database_hosts, use_database_hosts
from tests.support.tracebacks import print_plain_tracebacks

Process = subprocess.Popen | Forked
#: Fast enough for tests, slow enough for two busy cores.
QUICK = {"poll_seconds": 0.2, "heartbeat_seconds": 0.2, "stuck_seconds": 2.0, "stale_check_seconds": 0.5}
# The end of each worker waits for its listener, and the tests end thousands of workers.
wakeup._CHECK_SECONDS = 0.03
print_plain_tracebacks()


def refuse_to_end(reason: str) -> None:
    """A worker in a thread must not end the process of the tests; its test fails at what it waits for."""


@contextmanager
def worker_thread(**options) -> Iterator[Worker]:
    """A worker in a thread; stopped at the end."""
    worker = Worker(WorkerOptions(**{**QUICK, "grace_seconds": 10.0, **options}), end_process=refuse_to_end)
    thread = threading.Thread(target=worker.run, name="test-worker", daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        assert not thread.is_alive(), "the worker did not stop"


def run_until_idle(**options) -> Worker:
    """Work in this thread until nothing is due any more; with one thread, one job after the other, urgent ones too."""
    options = {**QUICK, "until_idle": True, "urgent_slots": 0, **options}
    worker = Worker(WorkerOptions(**options), end_process=refuse_to_end)
    worker.run()
    return worker


def start_process(
    module: str, *arguments: str, python: Sequence[str] = (sys.executable,), **env: str
) -> subprocess.Popen:
    """Run a module of the tests in a process of its own, on the same database."""
    environment = {**os.environ, "HARVESTER_HOME": str(settings.CONFIG.home), **env}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen([*python, "-m", module, *arguments], env=environment, cwd=ROOT)


def start_worker_process(*arguments: str, **env: str) -> Process:
    """A worker process with the test kinds, on the database that this process works on at the moment.

    `arguments` are field=value of WorkerOptions. One with settings of its own is not forked: it has to read them.
    """
    if all(name.startswith("TEST_") for name in env):
        words = {name: value for name, value in os.environ.items() if name.startswith("TEST_")}
        return Forked(_work_forked, list(arguments), database_hosts(), words | env)
    return start_process("tests.support.worker_process", *arguments, **env)


def _work_forked(arguments: list[str], hosts: dict[str, str], env: dict[str, str]) -> None:
    from tests.support.worker_process import work

    os.environ.update(env)
    use_database_hosts(hosts)
    work(arguments)


def external_url(host: str | None = None) -> dict[str, str]:
    """What makes a process take the run's server for an external one that it knows by a single URL.

    `host` is the directory of another socket that leads there.
    """
    host = host or settings.DATABASES["default"]["HOST"]
    return {
        "HARVESTER_DATABASE_URL": f"postgresql://{OWNER_ROLE}@/{DATABASE}?host={host}&port={PORT}",
        "CREDENTIAL_ENCRYPTION_KEY_B64": base64.b64encode(bytes(32)).decode(),
    }


@contextmanager
def worker_processes(count: int, *arguments: str, **env: str) -> Iterator[list[Process]]:
    with ended_at_last([start_worker_process(*arguments, **env) for _ in range(count)]) as processes:
        yield processes


@contextmanager
def python_process(module: str, *arguments: str, **env: str) -> Iterator[Process]:
    with ended_at_last([start_process(module, *arguments, **env)]) as [process]:
        yield process


@contextmanager
def ended_at_last(processes: list[Process]) -> Iterator[list[Process]]:
    """Whatever happens, none of these processes outlives the test, frozen ones included."""
    try:
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
