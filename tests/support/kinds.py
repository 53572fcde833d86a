"""Kinds of jobs for tests. Effects are rows of `test_effects`, so that they can be counted from anywhere."""

import os
import time

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.errors import TerminalError, TransientError
from harvester.kernel.retry import RetryPolicy

FAST = RetryPolicy(base=0.1, factor=2, attempts=3)


def note(key: object, text: str = "") -> None:
    """Leave a trace, at once and outside any job transaction."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO test_effects (key, note) VALUES (%s, %s)", [str(key), text])


def notes(key: object | None = None) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT note FROM test_effects WHERE key = %s OR %s IS NULL ORDER BY at", [str(key), key])
        return [row[0] for row in cursor.fetchall()]


@job_kind("test.noop")
def noop(job: RunningJob) -> None:
    """Does nothing."""


@job_kind("test.note", retry=FAST)
def leave_note(job: RunningJob, key: str = "") -> str:
    note(key or job.id, f"{job.worker} {job.attempt}")
    return key


@job_kind("test.write_once", retry=FAST)
def write_once(job: RunningJob, key: str = "") -> None:
    """The effect and the end of the job are one transaction."""
    with job.transaction():
        note(key or job.id, f"{job.worker} {job.attempt}")
        job.finish({"wrote": key})


@job_kind("test.fail_terminal", retry=FAST)
def fail_terminal(job: RunningJob) -> None:
    raise TerminalError("this can only fail")


@job_kind("test.fail_transient", retry=FAST)
def fail_transient(job: RunningJob) -> None:
    raise TransientError("not now")


@job_kind("test.fail_unknown", retry=FAST)
def fail_unknown(job: RunningJob) -> None:
    raise ZeroDivisionError("nobody expected this")


@job_kind("test.succeed_second_time", retry=FAST)
def succeed_second_time(job: RunningJob) -> str:
    if job.attempt == 1:
        raise TransientError("not yet")
    return "done"


@job_kind("test.die", retry=FAST)
def die(job: RunningJob, attempts: int = 1) -> str:
    """Take the whole process down, the way a segmentation fault would."""
    if job.attempt <= attempts:
        note(job.id, "about to die")
        os._exit(66)
    note(job.id, "survived")
    return "survived"


@job_kind("test.hold", retry=FAST)
def hold(job: RunningJob, key: str = "", seconds: float = 30.0) -> None:
    """Note that it runs, then continue until asked to stop, released by a note `release:<key>`, or the time is up."""
    note(f"started:{key or job.id}", f"{job.worker} {job.attempt}")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job.check()
        if notes(f"release:{key or job.id}"):
            break
        time.sleep(0.02)
    note(f"ended:{key or job.id}", f"{job.worker} {job.attempt}")
