"""Workers that were taken for dead and come back: nothing they do counts any more."""

from tests.support.kinds import FAST
from tests.support.outcomes import job, take_from_its_worker, wait_until_ended
from tests.support.signals import say, wait_to_hear
from tests.support.waiting import wait_for
from tests.support.workers import worker_thread

from harvester.engine.claim import Claimer
from harvester.engine.connect import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.settle import ended_by, settle_in, succeeded
from harvester.kernel.errors import TerminalError


def test_an_attempt_that_was_lost_does_not_end_the_new_one_in_the_same_worker(database):
    """Its worker claims the job again while the old handler still runs: the new attempt must go on beating."""
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with worker_thread(threads=2) as worker:
        wait_to_hear("started:k:1")
        take_from_its_worker(job_id)
        wait_to_hear("started:k:2")
        say("release:k:1")
        wait_for(lambda: worker._slots.busy == 1 and not worker._endings, "the end of the old handler")
        for _ in range(3):
            before = job(job_id).heartbeat_at
            wait_for(lambda: job(job_id).heartbeat_at > before, "the next heartbeat of the new attempt")  # noqa: B023
        say("release:k:2")
        ended = wait_until_ended(job_id)
    assert ended.attempt == 2
    assert ended.result.endswith(" 2")


def test_of_two_endings_of_a_job_in_one_batch_only_the_one_with_the_lease_counts(database):
    job_id = enqueue("test.noop").job_id
    with connect("test") as connection:
        [lost] = Claimer(worker="w", queues=[]).claim(connection, 1)
        take_from_its_worker(job_id)
        [held] = Claimer(worker="w", queues=[]).claim(connection, 1)
        endings = [ended_by(lost, TerminalError("from the grave"), FAST), succeeded(held, "alive")]
        for batch in (endings[:1], [*endings, *endings[:1]]):
            with connection.cursor() as cursor:
                settled = settle_in(cursor, batch)
    assert settled == {held.key: "succeeded"}
    assert job(job_id).result == "alive"
