"""Looking at jobs, and putting rows there that no enqueue would write."""

from typing import Any

from django.db import connection

from harvester.engine.models import Job, JobEvent
from tests.support.waiting import wait_for

_PLAIN_ROW: dict[str, Any] = {
    "kind": "test.note",
    "queue": "default",
    "lane": None,
    "args": "{}",
    "priority": 0,
    "state": "pending",
    "max_attempts": 3,
}


def job(job_id: int) -> Job:
    """The row; its arguments are read only when asked for, because some tests store unreadable ones."""
    return Job.objects.defer("args").get(id=job_id)


def state(job_id: int) -> str:
    return Job.objects.values_list("state", flat=True).get(id=job_id)


def history(job_id: int) -> list[str]:
    """The states a job went through, the first one first."""
    return list(JobEvent.objects.filter(job_id=job_id).order_by("id").values_list("state", flat=True))


def wait_for_state(job_id: int, *states: str) -> Job:
    wait_for(lambda: state(job_id) in states, f"job {job_id} {' or '.join(states)}")
    return job(job_id)


def insert_raw(*, run_at: str = "clock_timestamp()", **columns: Any) -> int:
    """A row without its event, its lane's wake-up and its notification; `run_at` is an SQL expression."""
    values = {**_PLAIN_ROW, **columns}
    names = ", ".join(values)
    marks = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO jobs ({names}, run_at) VALUES ({marks}, {run_at}) RETURNING id", list(values.values())
        )
        return cursor.fetchone()[0]


def change(job_id: int, assignments: str, *values: Any) -> None:
    """Move a row to where a test needs it."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE jobs SET {assignments} WHERE id = %s", [*values, job_id])
