"""Alerts for errors that have no place in the error tree: somebody should look at the code.

The engine logs each of them at once. Its threads must not wait for the database on top of that, so the alerts are made
from the jobs' rows a little later. Kinds that raise alerts of their own are left to them: one failure, one alert.
"""

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.engine.registry import all_kinds, job_kind, periodic
from harvester.ops.alerts import DELIVER, raise_alert, resolve_others

WATCH = "ops.watch_job_errors"
UNKNOWN_ERROR = "UNKNOWN_ERROR"
# Errors of the tree have codes in capitals; anything else goes by the name of its class. Trouble with the delivery of
# alerts must not make more alerts.
_UNKNOWN = """
SELECT kind, error_type, count(*), max(id) FROM jobs
WHERE state IN ('failed', 'retryable') AND error_type !~ '^[A-Z][A-Z0-9_]*$' AND kind <> ALL (%s::text[])
  AND coalesce(finished_at, run_at) > statement_timestamp() - interval '24 hours'
GROUP BY kind, error_type ORDER BY kind, error_type LIMIT 50
"""


def register() -> None:
    job_kind(WATCH, queue="maintenance", timeout=300.0)(watch_job_errors)
    periodic("unknown errors of jobs", kind=WATCH, cron="*/10 * * * *")


def watch_job_errors(job: RunningJob) -> int:
    """Raise an alert for each kind of job that met an unknown error within a day, and end the others."""
    with job.transaction():
        with connection.cursor() as cursor:
            told_elsewhere = [DELIVER, *(kind.name for kind in all_kinds().values() if kind.own_alerts)]
            cursor.execute(_UNKNOWN, [told_elsewhere])
            found = cursor.fetchall()
        keys = [_raise(*row) for row in found]
        resolve_others(UNKNOWN_ERROR, keys, "No job met it within the last 24 hours.")
    return len(keys)


def _raise(kind: str, error_type: str, count: int, newest: int) -> str:
    key = f"unknown_error:{kind}:{error_type}"[:300]
    raise_alert(
        UNKNOWN_ERROR,
        key,
        f"Jobs of the kind {kind} met an unknown error: {error_type}",
        f"{count} of them within 24 hours. `harvester jobs show {newest}` has the traceback of the newest; "
        "they were retried as far as their kind allows.",
        detail={"kind": kind, "error_type": error_type, "count": count, "newest_job_id": newest},
    )
    return key
