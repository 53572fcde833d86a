"""Jobs whose effects are rows written through `job.transaction()`.

Half of their time they spend before it and half inside, so that faults catch them in both.
"""

import time

from django.db import connection, connections

from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.kernel.errors import TransientError
from harvester.kernel.retry import RetryPolicy

#: A job that is killed again and again must not run out of attempts.
PATIENT = RetryPolicy(base=0.1, factor=1, attempts=10_000)
#: Where an attempt may fail: before it has written anything, or with its effect written and not committed.
BEFORE, INSIDE = "before", "inside"

FINISHING, KEYED = "chaos.finishing", "chaos.keyed"


def make_tables() -> None:
    with connections["owner"].cursor() as cursor:
        for name, key in (("chaos_finishing", "NOT NULL"), ("chaos_keyed", "PRIMARY KEY")):
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {name} (key text {key}, job_id bigint, attempt integer, worker text)"
            )
            cursor.execute(f"GRANT ALL ON {name} TO harvester_app")


@job_kind(FINISHING, retry=PATIENT)
def finishing(job: RunningJob, key: str, seconds: float, fails: str = "") -> None:
    """The effect and the end of the job are one transaction: no constraint is needed for exactly once."""
    _fail(job, fails, BEFORE)
    time.sleep(seconds / 2)
    with job.transaction():
        _write("INSERT INTO chaos_finishing VALUES (%s, %s, %s, %s)", job, key)
        time.sleep(seconds / 2)
        _fail(job, fails, INSIDE)
        job.finish()


@job_kind(KEYED, retry=PATIENT)
def keyed(job: RunningJob, key: str, seconds: float, fails: str = "") -> None:
    """The effect has a key, and the job ends by returning: it may run again and find its effect there."""
    _fail(job, fails, BEFORE)
    time.sleep(seconds / 2)
    with job.transaction():
        _write("INSERT INTO chaos_keyed VALUES (%s, %s, %s, %s) ON CONFLICT (key) DO NOTHING", job, key)
        time.sleep(seconds / 2)
        _fail(job, fails, INSIDE)


def _write(statement: str, job: RunningJob, key: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, [key, job.id, job.attempt, job.worker])


def _fail(job: RunningJob, fails: str, here: str) -> None:
    if fails == here and job.attempt == 1:
        raise TransientError(f"fails {here} at first")
