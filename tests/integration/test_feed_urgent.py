"""What must not wait behind runs: decisions, the tick and the check for orphans."""

from tests.support.feed_world import OLGA
from tests.support.gates import gate
from tests.support.jobs import wait_for_state
from tests.support.workers import worker_thread

from harvester.engine.enqueue import NewJob, enqueue, enqueue_many
from harvester.engine.models import Job
from harvester.feeds import jobs
from harvester.runs import decisions as run_decisions
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run


def test_decisions_ticks_and_the_check_for_orphans_run_while_runs_take_every_slot(world):
    held = world.hold()
    with worker_thread(threads=1, queues=("feeds", "decisions", "maintenance")), gate("runs") as runs:
        enqueue_many(NewJob(kind="test.gated", args={"gate": "runs"}, queue=jobs.QUEUE) for _ in range(11))
        runs.next_job()
        rejection = run_decisions.request_rejection(OLGA, held.id, "not whole").job_id
        wait_for_state(rejection, "succeeded")
        wait_for_state(enqueue(jobs.TICK).job_id, "succeeded")
        wait_for_state(enqueue(CLOSE_ORPHANS).job_id, "succeeded")
        assert Job.objects.filter(kind="test.gated", state="pending").count() == 10
    assert Run.objects.get(pk=held.pk).outcome == "REJECTED"


def test_an_approval_promotes_while_runs_take_every_slot(world):
    held = world.hold()
    with worker_thread(threads=1, queues=("feeds", "decisions")), gate("runs") as runs:
        enqueue_many(NewJob(kind="test.gated", args={"gate": "runs"}, queue=jobs.QUEUE) for _ in range(11))
        runs.next_job()
        wait_for_state(run_decisions.request_approval(OLGA, held.id).job_id, "succeeded")
        assert Run.objects.get(pk=held.pk).outcome == "APPROVED"
        assert Job.objects.filter(kind="test.gated", state="pending").count() == 10
