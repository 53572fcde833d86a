"""Many at once: the same run, the same approval, opposite decisions. One effect each, and the others get the reason."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from tests.support.feed_points import watched
from tests.support.feed_twins import ask_to_approve
from tests.support.feed_worker import wait_at_point
from tests.support.feed_world import OLGA
from tests.support.jobs import change
from tests.support.outcomes import job, wait_until_ended
from tests.support.signals import say
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import worker_thread

from harvester.engine.enqueue import enqueue
from harvester.kernel.errors import Conflict
from harvester.runs.decisions import request_approval, request_rejection
from harvester.runs.jobs import APPROVE, REJECT
from harvester.runs.models import Run

MANY = 20
WHO = {"kind": OLGA.kind, "id": OLGA.id, "name": OLGA.name}


def test_while_a_run_is_in_progress_other_jobs_of_the_feed_end_without_a_run(twins):
    twins.publish()
    twins.peaceful.run()
    with watched(["STEP _download"]), worker_thread(threads=MANY):
        first = twins.disturbed.ask()
        wait_at_point()
        others = [twins.disturbed.ask() for _ in range(MANY - 1)]
        ends = [wait_until_ended(other) for other in others]
        say("go on")
        wait_until_ended(first)
    assert {(end.state, end.result["note"]) for end in ends} == {("succeeded", "a run was in progress")}
    assert not Run.objects.filter(job_id__in=others).exists()
    alike_except_for_jobs(twins)


def test_of_many_jobs_of_a_feed_at_once_one_promotes_and_the_others_have_nothing_to_do(twins):
    twins.publish()
    twins.peaceful.run()
    before = rows("SELECT count(*) FROM prices WHERE source_id = %s", twins.peaceful.source.id)
    jobs = [twins.disturbed.ask() for _ in range(MANY)]
    with worker_thread(threads=MANY):
        for one in jobs:
            wait_for(lambda: has_ended_or_snoozes(one), "the end of all jobs")  # noqa: B023
    for one in jobs:
        change(one, "run_at = now()")
        twins.disturbed.work(one)
    outcomes = list(Run.objects.filter(job_id__in=jobs).values_list("status", "outcome"))
    assert outcomes.count(("SUCCEEDED", "PROMOTED")) == 1
    assert set(outcomes) <= {("SUCCEEDED", "PROMOTED"), ("SUCCEEDED", "SKIPPED")}
    assert rows("SELECT count(*) FROM prices WHERE source_id = %s", twins.disturbed.source.id) == before


def test_of_many_people_who_approve_at_once_one_succeeds_and_the_others_get_the_reason(twins):
    twins.hold()
    held = Run.objects.get(source_id=twins.disturbed.source.pk, outcome="HELD")
    twins.peaceful.work(ask_to_approve(twins.peaceful))
    answers = at_once([lambda: request_approval(OLGA, held.id)] * MANY)
    made = [answer for answer in answers if not isinstance(answer, Conflict)]
    assert len(made) == 1
    assert {answer.code for answer in answers if isinstance(answer, Conflict)} == {"FEED_BUSY"}
    twins.disturbed.work(made[0].job_id)
    twins.must_be_alike()


def test_of_many_approvals_at_once_one_promotes_and_the_others_fail_with_the_reason(twins):
    twins.hold()
    held = Run.objects.get(source_id=twins.disturbed.source.pk, outcome="HELD")
    twins.peaceful.work(ask_to_approve(twins.peaceful))
    jobs = [enqueue(APPROVE, {"run_id": str(held.id), "actor": WHO}).job_id for _ in range(MANY)]
    with worker_thread(threads=MANY):
        ends = [wait_until_ended(one) for one in jobs]
    assert sorted(end.state for end in ends) == ["failed"] * (MANY - 1) + ["succeeded"]
    assert {end.error_type for end in ends if end.state == "failed"} <= {"FEED_BUSY", "ALREADY_APPROVED"}
    lines = [line for line in twins.differences() if " jobs " not in line]
    assert [line for line in lines if "ACTIVATION_APPROVAL_REQUESTED" not in line] == []


@pytest.mark.parametrize("asked", ["jobs", "people"])
def test_of_an_approval_and_a_rejection_at_once_one_counts_and_the_other_conflicts(twins, asked):
    twins.hold()
    held = Run.objects.get(source_id=twins.disturbed.source.pk, outcome="HELD")
    opposite = by_jobs(held) if asked == "jobs" else by_people(held)
    assert len(opposite) == 1, "one of the two was refused"
    held.refresh_from_db()
    twins.disturbed.source.refresh_from_db()
    assert held.outcome in {"APPROVED", "REJECTED"}
    assert twins.disturbed.source.held_run_no is None
    assert rows("SELECT count(*) FROM held_changes WHERE source_id = %s", held.source_id) == [(0,)]
    decided = rows("SELECT verb FROM audit_events WHERE object_id = %s AND verb LIKE 'ACTIVATION_%%ED'", str(held.id))
    verbs = {verb for (verb,) in decided} & {"ACTIVATION_APPROVED", "ACTIVATION_REJECTED"}
    assert verbs == {f"ACTIVATION_{held.outcome}"}


def test_of_an_approval_and_a_newer_run_at_once_each_has_one_end_and_the_newest_edition_is_shown(twins):
    twins.hold()
    held = Run.objects.get(source_id=twins.disturbed.source.pk, outcome="HELD")
    decision = ask_to_approve(twins.disturbed)
    twins.publish()
    run = twins.disturbed.ask()
    with worker_thread(threads=2):
        decided = wait_until_ended(decision)
        wait_for(lambda: has_ended_or_snoozes(run), "the end of the run, or its wait for the decision")
    change(run, "run_at = now()")
    twins.disturbed.work(run)
    held.refresh_from_db()
    expected = {"succeeded": ("APPROVED", None), "failed": ("OVERTAKEN", decided.error_type)}[decided.state]
    assert (held.outcome, decided.error_type) == expected
    assert decided.error_type in {None, "FEED_BUSY", "STALE_RUN"}
    assert Run.objects.get(job_id=run).outcome == "PROMOTED"
    twins.disturbed.source.refresh_from_db()
    assert twins.disturbed.source.held_run_no is None


def has_ended_or_snoozes(job_id):
    """A job that met the lock before there was a run comes back a minute later."""
    return job(job_id).state == "succeeded" or "snoozed" in str(rows(
        "SELECT detail FROM job_events WHERE job_id = %s ORDER BY id DESC LIMIT 1", job_id))  # fmt: skip


def by_jobs(held):
    """Both decisions as jobs that two workers begin at once; the codes of those that failed."""
    jobs = [
        enqueue(APPROVE, {"run_id": str(held.id), "actor": WHO}).job_id,
        enqueue(REJECT, {"run_id": str(held.id), "actor": WHO, "reason": "not whole"}).job_id,
    ]
    with worker_thread(threads=2):
        ends = [wait_until_ended(one) for one in jobs]
    return [end.error_type for end in ends if end.state == "failed"]


def by_people(held):
    answers = at_once([lambda: request_approval(OLGA, held.id), lambda: request_rejection(OLGA, held.id, "not whole")])
    [made] = [answer for answer in answers if not isinstance(answer, Conflict)]
    with worker_thread():
        assert wait_until_ended(made.job_id).state == "succeeded"
    return [answer.code for answer in answers if isinstance(answer, Conflict)]


def at_once(calls):
    """What each of these calls answers, or the conflict that it ends with; all begin at the same moment."""
    barrier = Barrier(len(calls))

    def answer(call):
        barrier.wait()
        try:
            return call()
        except Conflict as conflict:
            return conflict
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(answer, calls))


def alike_except_for_jobs(twins):
    assert [line for line in twins.differences() if " jobs " not in line] == []
