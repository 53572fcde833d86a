"""The outcome of a job, read from outside."""

from django.db import OperationalError, connection

from harvester.engine import sql
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from tests.support.tables import rows
from tests.support.waiting import wait_for

ENDED = ("succeeded", "failed", "cancelled")


def job(job_id: int) -> Job:
    return Job.objects.get(id=job_id)


def wait_until(job_id: int, *states: str, seconds: float = 120.0) -> Job:
    """Wait until the job is in one of these states."""
    return wait_for(lambda: (found := job(job_id)).state in states and found, f"job {job_id} in {states}", seconds)


def wait_until_ended(job_id: int, seconds: float = 120.0) -> Job:
    return wait_until(job_id, *ENDED, seconds=seconds)


def wait_until_all_ended(seconds: float = 120.0) -> None:
    question = "SELECT count(*) FROM jobs WHERE state NOT IN ('succeeded', 'failed', 'cancelled')"
    wait_for(lambda: rows(question)[0][0] == 0, "the end of all jobs", seconds)


def history(job_id: int) -> list[str]:
    return [row[0] for row in rows("SELECT state FROM job_events WHERE job_id = %s ORDER BY id", job_id)]


def moment(job_id: int, state: str) -> int:
    """The place of a job's first change to a state among all changes of all jobs."""
    return rows("SELECT min(id) FROM job_events WHERE job_id = %s AND state = %s", job_id, state)[0][0]


def states() -> dict[str, int]:
    return dict(rows("SELECT state, count(*) FROM jobs GROUP BY state"))


def sessions(purpose: str) -> list[int]:
    """Backends of the engine's sessions of one purpose, in any process."""
    return [
        row[0] for row in rows("SELECT pid FROM pg_stat_activity WHERE application_name = %s", f"harvester {purpose}")
    ]


def backend_lives(pid: int) -> bool:
    return bool(rows("SELECT FROM pg_stat_activity WHERE pid = %s", pid))


def take_from_its_worker(job_id: int) -> None:
    """What the rescuer does to a job whose worker is silent, without waiting for the silence."""
    found = wait_for(lambda: _rescue(job_id), f"the rescue of job {job_id}")
    assert found


def _rescue(job_id: int) -> list[tuple]:
    values = Job.objects.filter(id=job_id).values("id", "lease", "heartbeat_at").get()
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql.RESCUE, {**values, "error": "taken by the test"})
            return cursor.fetchall()
    except OperationalError:
        return []  # a heartbeat has the row for a moment


def silent_job() -> int:
    """A running job whose worker is gone. Once it is rescued, the other running jobs were checked too."""
    job_id = enqueue("test.noop", delay=3600).job_id
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET state = 'running', lease = gen_random_uuid(), worker = 'gone', attempt = 1, "
            "heartbeat_at = clock_timestamp() WHERE id = %s",
            [job_id],
        )
    return job_id


def wait_until_rescued(job_id: int) -> None:
    wait_for(lambda: "retryable" in history(job_id), f"the rescue of job {job_id}")
