"""Kinds of jobs that are caught by a fault at a known point.

A job says where it is by `<word>:<key>` and goes on when it hears `release:<key>`.
"""

import os
import time

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from tests.support.kinds import FAST, note
from tests.support.signals import say, wait_quietly


def who(job: RunningJob) -> str:
    return f"{job.worker} {job.attempt}"


@job_kind("test.abort", retry=FAST)
def abort(job: RunningJob) -> str:
    """Die by SIGABRT at the first attempt, the way a failed assertion in a C library does."""
    if job.attempt == 1:
        note(job.id, "about to abort")
        os.abort()
    return "survived"


@job_kind("test.busy", retry=FAST)
def busy(job: RunningJob, key: str) -> str:
    """Run until released, without ever asking whether it should stop."""
    say(f"started:{key}:{job.attempt}", who(job))
    wait_quietly(f"release:{key}:{job.attempt}")
    return who(job)


@job_kind("test.late_write", retry=FAST)
def late_write(job: RunningJob, key: str, finish: bool) -> str:
    """The first attempt waits before it writes; a later one writes at once."""
    if job.attempt == 1:
        say(f"started:{key}", who(job))
        wait_quietly(f"release:{key}")
    try:
        with job.transaction():
            note(key, who(job))
            if finish:
                job.finish(who(job))
    finally:
        say(f"tried:{key}:{job.attempt}")
    return who(job)


@job_kind("test.inside_transaction", retry=FAST)
def inside_transaction(job: RunningJob, key: str) -> None:
    """The first attempt writes and then stays inside its open transaction; a later one writes and ends."""
    with job.transaction():
        note(key, who(job))
        if job.attempt == 1:
            say(f"inside:{key}", str(connection.connection.info.backend_pid))
            wait_quietly(f"release:{key}")
        job.finish(who(job))


@job_kind("test.inside_copy", retry=FAST)
def inside_copy(job: RunningJob, key: str) -> None:
    """The first attempt stays in the middle of a COPY; a later one copies and ends."""
    with job.transaction():
        with connection.cursor() as cursor, cursor.copy("COPY test_effects (key, note) FROM STDIN") as copy:
            copy.write_row([key, who(job)])
            if job.attempt == 1:
                say(f"inside:{key}", str(connection.connection.info.backend_pid))
                wait_quietly(f"release:{key}")
        job.finish(who(job))


@job_kind("test.step", retry=FAST)
def step(job: RunningJob, key: str, seconds: float = 0.02) -> None:
    """Leave a row at its beginning and one at its end."""
    note(key, "begin")
    time.sleep(seconds)
    note(key, "end")


@job_kind("test.limited", retry=FAST, timeout=1.0)
def limited(job: RunningJob, key: str) -> str:
    """Run until released, and not longer than its kind allows."""
    say(f"started:{key}:{job.attempt}", who(job))
    wait_quietly(f"release:{key}:{job.attempt}")
    return who(job)
