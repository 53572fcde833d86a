"""The jobs of runs of every kind. Their code is imported when one of them runs."""

from typing import Final

from harvester.engine.registry import Later, job_kind, periodic
from harvester.kernel.retry import RetryPolicy

APPROVE: Final = "runs.approve"
REJECT: Final = "runs.reject"
REJUDGE: Final = "runs.rejudge"
CLOSE_ORPHANS: Final = "runs.close_orphans"
PART_DAYS: Final = "runs.part_days"
#: Of decisions.
RETRY: Final = RetryPolicy(base=5.0, factor=3.0, attempts=3)


def register() -> None:
    for name in (APPROVE, REJECT, REJUDGE):
        handler = Later(f"harvester.runs.decision_jobs:{name.removeprefix('runs.')}")
        job_kind(name, queue="decisions", retry=RETRY, urgent=True)(handler)
    job_kind(CLOSE_ORPHANS, queue="maintenance", urgent=True)(Later("harvester.runs.orphans:close_all"))
    periodic("runs without a job", kind=CLOSE_ORPHANS, cron="* * * * *")
    # Making and dropping days needs a moment without writers, which may take some attempts.
    patient = RetryPolicy(base=60.0, factor=3.0, attempts=5)
    job_kind(PART_DAYS, queue="maintenance", retry=patient)(Later("harvester.runs.parts:keep_days"))
    periodic("days of parts of runs", kind=PART_DAYS, cron="7 3 * * *")
