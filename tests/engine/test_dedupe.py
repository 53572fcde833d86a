"""At most one open job has a dedupe key."""

import threading

import pytest
from django.db import connections, transaction
from tests.support.gates import gate
from tests.support.jobs import change, job, state, wait_for_state
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.enqueue import Enqueued, NewJob, enqueue, enqueue_many
from harvester.engine.errors import DuplicateJob
from harvester.engine.models import Job
from harvester.kernel.actor import system
from harvester.kernel.errors import Conflict
from harvester.ops import jobs as verbs
from harvester.ops.models import AuditEvent


def test_a_second_enqueue_answers_the_open_job(database):
    first = enqueue("test.note", dedupe_key="feed 1")
    assert enqueue("test.note", dedupe_key="feed 1") == Enqueued(job_id=first.job_id, created=False)
    assert Job.objects.count() == 1


def test_the_key_stays_taken_while_the_job_runs(database):
    with worker_thread(), gate("slow") as slow:
        running = enqueue("test.gated", {"gate": "slow"}, dedupe_key="k").job_id
        slow.next_job()
        assert enqueue("test.note", dedupe_key="k") == Enqueued(job_id=running, created=False)


@pytest.mark.parametrize("ended", ["succeeded", "failed", "cancelled"])
def test_the_key_is_free_again_when_the_job_has_ended(database, ended):
    first = enqueue("test.note", dedupe_key="k").job_id
    change(first, "state = %s, finished_at = clock_timestamp()", ended)
    assert enqueue("test.note", dedupe_key="k").created


def test_the_key_stays_taken_while_a_job_waits_for_its_next_attempt(database):
    first = enqueue("test.note", dedupe_key="k").job_id
    change(first, "state = 'retryable'")
    assert not enqueue("test.note", dedupe_key="k").created


def test_no_key_is_no_key(database):
    assert enqueue("test.note").created
    assert enqueue("test.note").created


def test_a_batch_with_one_duplicate_is_all_or_nothing(database):
    enqueue("test.note", dedupe_key="taken")
    with pytest.raises(DuplicateJob):
        enqueue_many([NewJob(kind="test.note", dedupe_key=key) for key in ("free", "taken", "also free")])
    assert Job.objects.count() == 1


def test_a_batch_that_repeats_a_key_is_refused_whole(database):
    with pytest.raises(DuplicateJob):
        enqueue_many([NewJob(kind="test.note", dedupe_key=key) for key in ("a", "b", "a")])
    assert not Job.objects.exists()


def test_a_refused_batch_leaves_the_callers_transaction_usable(database):
    enqueue("test.note", dedupe_key="taken")
    with transaction.atomic():
        with pytest.raises(DuplicateJob):
            enqueue_many([NewJob(kind="test.note", dedupe_key=key) for key in ("free", "taken")])
        enqueue("test.note", dedupe_key="free")
    assert sorted(Job.objects.values_list("dedupe_key", flat=True)) == ["free", "taken"]


def test_threads_that_enqueue_one_key_at_once_make_one_job(database):
    at_once = threading.Barrier(8)
    answers: list[Enqueued] = []

    def work() -> None:
        at_once.wait(30)
        answers.append(enqueue("test.note", dedupe_key="k"))
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.created for answer in answers) == [False] * 7 + [True]
    assert len({answer.job_id for answer in answers}) == 1


def test_an_enqueue_waits_for_another_ones_transaction_and_then_knows(database):
    enqueued, undo = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            enqueue("test.note", dedupe_key="k")
            enqueued.set()
            undo.wait(30)
            transaction.set_rollback(True)
        connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    enqueued.wait(30)
    undo.set()
    assert enqueue("test.note", dedupe_key="k").created
    thread.join()
    assert Job.objects.count() == 1


def test_driving_a_job_again_whose_key_was_taken_meanwhile_is_a_conflict(database):
    failed = enqueue("test.fail_terminal", dedupe_key="k").job_id
    run_until_idle()
    successor = enqueue("test.note", dedupe_key="k").job_id
    with pytest.raises(Conflict):
        verbs.retry(system("test"), failed)
    assert [state(failed), state(successor)] == ["failed", "pending"]
    assert not AuditEvent.objects.exists()


def test_driving_a_job_again_takes_its_key_again(database):
    failed = enqueue("test.fail_terminal", dedupe_key="k").job_id
    run_until_idle()
    verbs.retry(system("test"), failed)
    assert enqueue("test.note", dedupe_key="k") == Enqueued(job_id=failed, created=False)


def test_a_retried_job_keeps_its_key_through_all_its_attempts(database):
    with worker_thread():
        failing = enqueue("test.succeed_second_time", dedupe_key="k").job_id
        wait_for_state(failing, "succeeded")
    assert job(failing).attempt == 2
