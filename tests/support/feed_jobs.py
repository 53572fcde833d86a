"""Stands in for kinds of jobs that are not there, so that what enqueues them can be tried alone."""

from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.engine.registry import all_kinds, job_kind


def ensure_kind(name: str) -> None:
    """Make a kind known that does nothing, unless it is known."""
    if name not in all_kinds():
        job_kind(name)(_do_nothing)


def _do_nothing(job: RunningJob, **args: str) -> None:
    """Nothing."""


def jobs_of(kind: str) -> list[dict]:
    """The arguments of every job of a kind, the first one first."""
    return [job.args for job in Job.objects.filter(kind=kind).order_by("id")]
