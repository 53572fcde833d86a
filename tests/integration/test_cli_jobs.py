"""`harvester jobs ...`: what operators see of the engine, and what they can do about it."""

import re
import signal
from datetime import timedelta

import pytest
from django.utils import timezone
from tests.support import kinds
from tests.support.catalog_rows import make_feed
from tests.support.command import running
from tests.support.commands_inside import harvester
from tests.support.portal import job as portal_job
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.cli import job_wait
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job, PeriodicJob

pytestmark = pytest.mark.usefixtures("database")


def put(kind, **options):
    return enqueue(kind, **options).job_id


def state(job_id):
    return Job.objects.get(id=job_id).state


def audited():
    return rows("SELECT verb, object_id, actor_kind FROM audit_events ORDER BY id")


def test_jobs_are_listed_newest_first_and_filtered():
    good, bad = put("test.noop"), put("test.fail_terminal", queue="other")
    run_until_idle()
    later = put("test.noop", delay=3600)
    listed = {
        "all": harvester("jobs", "list", "--json"),
        "failed": harvester("jobs", "list", "--state", "failed,cancelled", "--json"),
        "queue": harvester("jobs", "list", "--queue", "other", "--json"),
        "kind": harvester("jobs", "list", "--kind", "test.noop", "--limit", "1", "--json"),
    }
    found = {name: [job["id"] for job in ran.json["jobs"]] for name, ran in listed.items()}
    assert found == {"all": [later, bad, good], "failed": [bad], "queue": [bad], "kind": [later]}


def test_the_table_shows_errors_and_when_the_next_job_is_due():
    put("test.fail_terminal")
    run_until_idle()
    put("test.noop", delay=3600)
    table = harvester("jobs", "list").out
    assert "TERMINAL: this can only fail" in table
    assert "ago" in table
    assert "in 60 min" in table
    assert "There are no such jobs." in harvester("jobs", "list", "--queue", "nowhere").out


def test_a_job_is_shown_with_its_attempts_its_history_and_its_error():
    job_id = put("test.fail_transient")
    run_until_idle()
    wait_for(lambda: run_until_idle() and state(job_id) == "failed", "the last attempt")
    found = harvester("jobs", "show", job_id, "--json").json
    assert [(attempt["attempt"], attempt["outcome"]) for attempt in found["attempts"]] == [
        (1, "retryable"),
        (2, "retryable"),
        (3, "failed"),
    ]
    assert [event["state"] for event in found["events"]][:2] == ["pending", "running"]
    assert found["error"] == "not now"
    assert "TransientError" in found["traceback"]
    assert "lease" not in found
    shown = harvester("jobs", "show", job_id).out
    for words in ("Attempts", "History", "TRANSIENT: not now", "3 of 3", f"harvester jobs retry {job_id}"):
        assert words in shown


def test_a_cancel_while_running_counts_as_no_attempt():
    job_id = put("test.hold", args={"key": "a"})
    with worker_thread():
        wait_for(lambda: kinds.notes("started:a"), "the start")
        assert "running" in harvester("jobs", "cancel", job_id).out
        wait_for(lambda: state(job_id) == "cancelled", "the end")
    found = harvester("jobs", "show", job_id, "--json").json
    assert [attempt["outcome"] for attempt in found["attempts"]] == ["cancelled"]


def test_retry_and_cancel_report_each_failure_and_do_the_rest():
    failed, waiting = put("test.fail_terminal"), put("test.noop", delay=3600)
    run_until_idle()
    ran = harvester("jobs", "retry", failed, waiting, 999, "--json")
    assert ran.code == 4
    assert ran.json["jobs"] == [{"id": failed, "state": "pending"}]
    assert [bad["error"]["code"] for bad in ran.json["failures"]] == ["CONFLICT", "NOT_FOUND"]
    ran = harvester("jobs", "cancel", waiting, waiting)
    assert (ran.code, ran.out) == (0, f"Job {waiting} is cancelled.\n")
    assert state(failed) == "pending"
    assert audited() == [("JOB_RETRIED", str(failed), "person"), ("JOB_CANCELLED", str(waiting), "person")]


@pytest.mark.parametrize("words", [["show", 999], ["retry", 999], ["cancel", 999]])
def test_a_job_that_does_not_exist_is_code_3(words):
    ran = harvester("jobs", *words)
    assert ran.code == 3
    assert "There is no job 999" in ran.err


def test_a_job_put_in_by_hand_is_audited_once():
    words = ["jobs", "enqueue", "ops.clean_up", "--dedupe-key", "by hand", "--priority", 5, "--lane", "a", "--json"]
    first, second = harvester(*words).json, harvester(*words).json
    assert (first["created"], second["created"]) == (True, False)
    assert first["id"] == second["id"]
    assert Job.objects.get(id=first["id"]).priority == 5
    assert audited() == [("JOB_ENQUEUED", str(first["id"]), "person")]


def test_an_unknown_kind_or_a_secret_is_not_put_in():
    unknown = harvester("jobs", "enqueue", "ops.nothing")
    assert unknown.code == 3
    assert "ops.clean_up" in unknown.err
    secret = harvester("jobs", "enqueue", "ops.clean_up", "--args", '{"password": "hunter2hunter2"}')
    assert secret.code == 1
    assert "hunter2" not in secret.err
    assert not Job.objects.exists()


def test_stats_count_states_and_queues():
    put("test.noop"), put("test.noop", delay=3600), put("test.fail_terminal", queue="other")
    run_until_idle(queues=("other",))
    found = harvester("jobs", "stats", "--json").json
    assert found["states"] == {
        "pending": 2, "running": 0, "retryable": 0, "succeeded": 0, "failed": 1, "cancelled": 0,
    }  # fmt: skip
    queues = {queue["queue"]: queue for queue in found["queues"]}
    assert (queues["default"]["waiting"], queues["default"]["scheduled"]) == (1, 1)
    assert queues["other"]["failed_last_hour"] == 1
    assert "longest wait" in harvester("jobs", "stats").out


def test_work_by_the_clock_is_listed_with_its_schedule_and_its_last_job():
    assert "harvester scheduler" in harvester("jobs", "periodic").out
    now = timezone.now()
    made = PeriodicJob.objects.create
    made(name="nightly", kind="ops.clean_up", cron="17 3 * * *", next_at=now + timedelta(hours=5))
    made(
        name="hourly", kind="test.noop", cron="0 * * * *", next_at=now, last_at=now - timedelta(hours=3), last_job_id=7
    )
    result = harvester("jobs", "periodic", "--json").json["jobs"]
    assert [(job["name"], job["cron"], job["last_job_id"]) for job in result] == [
        ("hourly", "0 * * * *", 7),
        ("nightly", "17 3 * * *", None),
    ]
    shown = harvester("jobs", "periodic").out
    for words in (r"hourly +test.noop +0 \* \* \* \* .* 3 h ago +7", r"nightly +ops.clean_up +17 3 .* in 5 h +never"):
        assert re.search(words, shown), shown


def test_stuck_jobs_are_those_that_nobody_has_heard_of():
    job_id = put("test.hold", args={"key": "a"})
    with worker_thread(heartbeat_seconds=60.0, stuck_seconds=600.0, stale_check_seconds=60.0):
        wait_for(lambda: kinds.notes("started:a"), "the start")
        assert [job["id"] for job in harvester("jobs", "stuck", "--seconds", 0, "--json").json["jobs"]] == [job_id]
        assert str(job_id) in harvester("jobs", "stuck", "--seconds", 0).out
        assert harvester("jobs", "stuck", "--json").json == {"jobs": []}
        kinds.note("release:a")
        wait_for(lambda: state(job_id) == "succeeded", "the end")


@pytest.mark.parametrize(("kind", "code"), [("test.noop", 0), ("test.fail_terminal", 1)])
def test_waiting_for_a_job_ends_with_it_and_with_its_outcome(kind, code):
    job_id = put(kind)
    with running("jobs", "show", job_id, "--wait", "--json") as waiting, worker_thread():
        ran = waiting.ends()
    assert ran.code == code
    assert ran.json["id"] == job_id


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_waits_is_interrupted_with_one_line(number, code):
    job_id = put("test.noop")
    with running("jobs", "show", job_id, "--wait") as waiting:
        waiting.says("Waiting for job")
        waiting.signal(number)
        ran = waiting.ends()
    assert ran.code == code
    assert ran.out == ""
    assert (f"Job {job_id} continues." in ran.err) == (number == signal.SIGINT)
    assert state(job_id) == "pending"


def test_waiting_for_a_job_that_nobody_takes_asks_for_a_worker(monkeypatch):
    job_id, hints = put("test.noop"), []

    def hint(text):
        hints.append(text)
        if "No worker has taken" in text:
            Job.objects.filter(id=job_id).update(state="cancelled", finished_at=timezone.now())

    monkeypatch.setattr(job_wait, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(job_wait.OUT, "hint", hint)
    assert job_wait.wait_for_end(job_id) == "cancelled"
    assert hints[1:] == [f"No worker has taken job {job_id} yet. If none is running, start one: harvester up"]


def test_a_watched_list_is_refreshed_until_ctrl_c():
    put("test.noop")
    with running("jobs", "stats", "--watch", "--every", "0.2", "--json") as watching:
        wait_for(lambda: watching.out.count('"pending": 1') >= 2, "two looks")
        put("test.noop")
        watching.says('"pending": 2')
        watching.signal(signal.SIGINT)
        assert watching.ends().code == 0


def test_what_a_job_says_cannot_steer_the_terminal():
    kinds.job_kind("test.rude")(rude)
    job_id = put("test.rude", max_attempts=1)
    run_until_idle()
    for words in (["show", job_id], ["list"]):
        shown = harvester("jobs", *words).out
        assert "take over" in shown
        assert "\x1b" not in shown


def rude(job):
    raise RuntimeError("\x1b]0;take over\x07[bold]")


def test_jobs_name_their_feed_and_periodic_ones_that_succeeded_are_left_out():
    feed = make_feed("Acme")
    run = portal_job("succeeded", "feeds.run", args={"feed_id": str(feed.pk)}, progress='{"done": 3, "note": "rows"}')
    tick, failed = portal_job("succeeded", "feeds.tick"), portal_job("failed", "feeds.tick")
    listed = harvester("jobs", "list", "--json").json["jobs"]
    assert [(job["id"], job["feed"]) for job in listed] == [(failed, None), (run, "Acme")]
    every = harvester("jobs", "list", "--periodic", "--json").json["jobs"]
    assert tick in [job["id"] for job in every]
    assert tick in [job["id"] for job in harvester("jobs", "list", "--kind", "feeds.tick", "--json").json["jobs"]]
    shown = harvester("jobs", "show", str(run)).out
    assert "Acme" in shown
    assert "rows" not in shown, "what has ended has no progress"
