"""kill -9 of the worker anywhere in a run: another worker brings it to the end of an undisturbed run.

The points are words that the run comes by; see `tests.support.feed_points`.
"""

import os
import random

import pytest
from tests.support.feed_points import watched
from tests.support.feed_twins import ask_to_approve, take_over
from tests.support.feed_worker import feed_worker, wait_at_point
from tests.support.signals import forget

from harvester.runs.models import Run

STAGES = {
    "before it has the lock": ["pg_try_advisory_lock"],
    "before there is a run": ['INSERT INTO "runs"'],
    "before the download": ["STEP _download"],
    "after the download": ['"download_bytes"', "COMMITTED"],
    "inside the copy to staging": ["COPY staged_rows"],
    "before the file is the run's own": ['SET "artifact_hash"'],
    "when the file is the run's own": ['SET "artifact_hash"', "COMMITTED"],
    "while it matches": ["WITH matched"],
    "after the verdict": ["STEP judge", "COMMITTED"],
    "when new products are there": ["COPY source_products", "COMMITTED"],
    "inside the copy of contents": ["COPY staged_contents"],
}
PROMOTION = {
    "before the feed is locked": ["STEP stage_contents", 'FROM "feeds"'],
    "before prices": ["STEP promote", "INSERT INTO prices"],
    "before old contents are forgotten": ["STEP promote", "DELETE FROM replaced_contents"],
    "before old contents are kept": ["STEP promote", "INSERT INTO replaced_contents"],
    "before contents": ["STEP promote", "UPDATE source_products"],
    "before new offers": ["STEP promote", "INSERT INTO offers"],
    "before known offers": ["STEP promote", "UPDATE offers"],
    "before missing offers": ["STEP promote", "SET seen_until"],
    "before absences": ["STEP promote", "INSERT INTO run_absences"],
    "before the source": ["STEP promote", "UPDATE sources"],
    "before what was held goes": ["STEP promote", "DELETE FROM held_changes"],
    "before the run": ["STEP promote", 'UPDATE "runs"'],
    "before the audit": ["STEP promote", "INSERT INTO audit_events"],
    "before the end of the job": ["STEP promote", "WITH ending"],
    "before its commit": ["STEP promote", "COMMIT"],
    "after its commit": ["STEP promote", "COMMITTED"],
    "before the lock is given back": ["STEP promote", "COMMITTED", "pg_advisory_unlock", "pg_advisory_unlock"],
}
#: With more new products than a promotion writes the words of: they are copied in parallel.
IN_PARALLEL = {
    "inside the copy of products": ["COPY source_products"],
    "when new products are there": ["COPY source_products", "COMMITTED"],
    "before new offers": ["STEP promote", "INSERT INTO offers"],
    "before the run": ["STEP promote", 'UPDATE "runs"'],
    "before the end of the job": ["STEP promote", "WITH ending"],
}
HOLD = {
    "before the difference is kept": ["STEP hold", "INSERT INTO held_changes"],
    "before the source": ["STEP hold", "UPDATE sources"],
    "before its commit": ["STEP hold", "COMMIT"],
    "after its commit": ["STEP hold", "COMMITTED"],
}
APPROVAL = {
    "before new products": ["STEP make_held_products"],
    "after new products": ["STEP make_held_products", "STEP promote"],
    "before the clock goes on": ["STEP promote", "UPDATE offers SET seen_until"],
    "before its commit": ["STEP promote", "COMMIT"],
    "after its commit": ["STEP promote", "COMMITTED"],
}


def killed_at(path, job, **how):
    """A worker begins the job and is killed at the end of the path; another one may go on."""
    with feed_worker(*path, **how) as victim:
        backend = wait_at_point()
        victim.kill()
    take_over(job, backend)


@pytest.mark.parametrize("path", [*STAGES.values(), *PROMOTION.values()], ids=[*STAGES, *PROMOTION])
def test_a_run_whose_worker_was_killed_ends_like_any_other(twins, path):
    twins.publish()
    job = twins.disturbed.ask()
    killed_at(path, job)
    twins.peaceful.ask()
    twins.disturbed.work(job)
    twins.must_be_alike()


@pytest.mark.parametrize("path", IN_PARALLEL.values(), ids=IN_PARALLEL)
def test_a_run_whose_worker_was_killed_while_products_were_copied_in_parallel_ends_like_any_other(twins, path):
    twins.publish()
    job = twins.disturbed.ask()
    killed_at(path, job, few=0)
    twins.peaceful.ask()
    twins.disturbed.work(job)
    twins.must_be_alike()


@pytest.mark.parametrize("path", HOLD.values(), ids=HOLD)
def test_a_run_whose_worker_was_killed_while_it_was_held_is_held_once(twins, path):
    twins.publish_little()
    job = twins.disturbed.ask()
    killed_at(path, job)
    twins.peaceful.ask()
    twins.disturbed.work(job)
    assert Run.objects.filter(outcome="HELD").count() == 2
    twins.must_be_alike()


@pytest.mark.parametrize("path", APPROVAL.values(), ids=APPROVAL)
def test_an_approval_whose_worker_was_killed_is_carried_out_once(twins, path):
    twins.hold()
    job = ask_to_approve(twins.disturbed)
    killed_at(path, job)
    ask_to_approve(twins.peaceful)
    twins.disturbed.work(job)
    twins.must_be_alike()


@pytest.mark.slow
def test_a_run_killed_anywhere_at_all_ends_like_any_other(twins):
    """At eight of everything that a run comes by, or with FEED_SWEEP=all at each."""
    twins.publish()
    twins.run_both()
    twins.publish()
    with watched(()) as route:
        twins.peaceful.run()
    twins.disturbed.run()
    places = range(1, route.seen.index("COMMITTED", route.seen.index("STEP promote")) + 2)
    seed = random.randrange(1_000_000)
    if os.environ.get("FEED_SWEEP") != "all":
        places = sorted(random.Random(seed).sample(places, 8))
    for place in places:
        forget()
        twins.publish()
        job = twins.disturbed.ask()
        killed_at([""] * place, job)
        twins.peaceful.ask()
        twins.disturbed.work(job)
        assert not twins.differences(), f"killed at {place}, seed {seed}: {route.seen[place - 1]}"
    twins.must_be_alike()
