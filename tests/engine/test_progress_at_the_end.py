from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind


@job_kind("test.quick_progress")
def quick_progress(job: RunningJob, fail: bool = False, inside: bool = False) -> None:
    for step in range(1, 11):
        job.progress(step, 10, "reading")
    if fail:
        raise KeyError("late")
    if inside:
        with job.transaction():
            job.finish()


def test_the_last_progress_is_kept_however_fast_the_job_ends(database):
    ids = [
        enqueue("test.quick_progress", args, max_attempts=1).job_id for args in ({}, {"fail": True}, {"inside": True})
    ]

    run_until_idle()

    assert rows("SELECT (progress->>'done')::int FROM jobs WHERE id = ANY (%s) ORDER BY id", ids) == [(10,)] * 3
