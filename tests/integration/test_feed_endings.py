"""How runs end when something around them fails: the database, the workers, or the job before there is a run."""

import gzip
import os
import re

import pytest
from django.db import OperationalError, connections
from django.test import Client
from structlog.testing import capture_logs
from tests.support.api import BASE, Application
from tests.support.catalog import now
from tests.support.commands_inside import harvester
from tests.support.feed_world import OLGA, CallsBack, World, allow_loopback
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.jobs import change
from tests.support.outcomes import wait_until_ended
from tests.support.portal import person
from tests.support.sftp_server import SftpServer
from tests.support.tables import rows
from tests.support.together import together
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle, worker_thread

from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.feeds import files, ingest, verbs
from harvester.feeds.files import artifact_store
from harvester.feeds.jobs import CLEAN_UP, RUN, TEST, TICK
from harvester.feeds.models import Feed
from harvester.feeds.runs import FEED_LOCK
from harvester.kernel.errors import Conflict, TransientError
from harvester.ops import jobs
from harvester.ops.alerts import WATCH
from harvester.ops.models import Alert, AuditEvent, Role
from harvester.ops.scopes import Scope
from harvester.runs import lifecycle
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
TEN = range(100, 110)


@pytest.fixture
def world(settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path, behaviour=CallsBack) as server:
        made = World(server)
        made.put(*TEN)
        yield made


def ends_its_session(monkeypatch):
    """Whenever a run is to be promoted, the database ends its session."""

    def broken(cursor, *_):
        with connections["owner"].cursor() as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s",
                [FEED_LOCK],
            )
        cursor.execute("SELECT 1")

    monkeypatch.setattr(ingest, "promote", broken)


def stays_away(monkeypatch):
    """While an attempt ends, the database does not answer."""

    def refuse(*_):
        raise OperationalError("the database system is starting up")

    monkeypatch.setattr(lifecycle, "_note_failure", refuse)


def look_after(world):
    """The job that looks after runs without a job comes."""
    world.work(world.job(CLOSE_ORPHANS, {}))


def watch_the_clock(world):
    """The job that looks for feeds that are due comes."""
    world.work(world.job(TICK, {}))


def lose_worker(job):
    """The rescuer takes the job from a worker that died in the last attempt."""
    Job.objects.filter(pk=job).update(
        state="failed", finished_at=now(), lease=None, error_type="WORKER_LOST", error="Worker w was not heard of."
    )


def open_alerts():
    return list(Alert.objects.filter(resolved_at=None).values_list("kind", flat=True))


# (31) Errors of the database.


@pytest.mark.parametrize("away", [False, True], ids=["answers again at once", "answers only later"])
def test_an_error_of_the_database_is_shown_between_attempts_and_counts_at_the_end(world, monkeypatch, away):
    ends_its_session(monkeypatch)
    if away:
        stays_away(monkeypatch)
    world.change(consecutive_failures=2)
    job = world.ask()
    for attempt in (1, 2):
        assert world.attempt(job).state == "retryable"
        look_after(world)
        run = Run.objects.get(job_id=job)
        assert (run.status, run.error_code, run.attempt) == ("RUNNING", "DATABASE_UNAVAILABLE", attempt)
        assert world.figures(run).run.next_try_at is not None
    assert world.attempt(job).state == "failed"
    look_after(world)
    run = Run.objects.get(job_id=job)
    assert (run.status, run.error_code) == ("FAILED", "DATABASE_UNAVAILABLE")
    assert "harvester doctor" in run.error
    feed = Feed.objects.get()
    assert (feed.consecutive_failures, feed.status, feed.last_run_at) == (3, "DISABLED", run.finished_at)
    assert sorted(open_alerts()) == ["FEED_AUTO_DISABLED", "RUN_FAILED"]


def test_the_next_attempt_shows_what_the_job_alone_knew(world, monkeypatch):
    """The database answers only after the attempt has ended, and the next attempt comes before anybody looked."""
    ends_its_session(monkeypatch)
    stays_away(monkeypatch)
    job = world.ask()
    world.attempt(job)
    assert Run.objects.get(job_id=job).error_code is None
    monkeypatch.undo()
    seen, promote = [], ingest.promote

    def look(*values):
        seen.extend(Run.objects.filter(job_id=job).values_list("error_code", "attempt"))
        return promote(*values)

    monkeypatch.setattr(ingest, "promote", look)
    assert world.attempt(job).state == "succeeded"
    assert seen == [("DATABASE_UNAVAILABLE", 2)]
    run = Run.objects.get(job_id=job)
    assert (run.outcome, run.error_code) == ("PROMOTED", None)


def test_the_last_error_counts_although_the_job_alone_knows_it(world, monkeypatch):
    """Two attempts found a file that was cut, and during the third the database was away."""
    whole = world.file.read_bytes()
    world.put_bytes(whole[:-30])
    job = world.ask()
    for _ in range(2):
        assert world.attempt(job).error_type == "TRUNCATED"
    world.put_bytes(whole)
    ends_its_session(monkeypatch)
    stays_away(monkeypatch)
    assert world.attempt(job).state == "failed"
    assert Run.objects.get(job_id=job).error_code == "TRUNCATED"
    look_after(world)
    run = Run.objects.get(job_id=job)
    assert (run.status, run.error_code) == ("FAILED", "DATABASE_UNAVAILABLE")


def test_a_run_that_begins_locks_the_feed_before_its_runs(world, monkeypatch):
    """A cancel of a waiting job locks them in that order too; the other way round one of the two would be ended."""
    ends_its_session(monkeypatch)
    stays_away(monkeypatch)
    waiting = world.ask()
    assert world.attempt(waiting).state == "retryable"
    monkeypatch.undo()
    later = world.ask()
    with connections["owner"].cursor() as owner:
        owner.execute("BEGIN")
        owner.execute("SELECT FROM feeds FOR UPDATE")
        with worker_thread(threads=1):
            blocked = "SELECT FROM pg_locks WHERE NOT granted"
            wait_for(lambda: rows(blocked), "the run to wait for the feed")
            owner.execute("SELECT no FROM runs WHERE job_id = %s FOR UPDATE NOWAIT", [waiting])
            owner.execute("COMMIT")
            wait_until_ended(later)


@pytest.mark.parametrize("recorded", [None, "REMOTE_BUSY"])
def test_only_a_run_without_any_error_is_abandoned(world, recorded):
    run = world.running()
    Run.objects.filter(pk=run.pk).update(error_code=recorded, error="the server is busy" if recorded else None)
    lose_worker(run.job_id)
    look_after(world)
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("FAILED", recorded or "ABANDONED")
    assert Feed.objects.get().consecutive_failures == (1 if recorded else 0)


# (30) Lost workers, and jobs that have no run.


def test_an_abandoned_run_raises_an_alert_that_the_next_good_run_ends(world):
    run = world.running()
    lose_worker(run.job_id)
    look_after(world)
    run.refresh_from_db()
    alert = Alert.objects.get(kind="RUN_FAILED")
    assert (alert.resolved_at, alert.detail["run_no"]) == (None, run.no)
    assert "ABANDONED" in alert.title
    assert Feed.objects.get().last_run_at == run.finished_at
    assert world.run().outcome == "PROMOTED"
    alert.refresh_from_db()
    assert alert.resolved_at is not None


def test_a_job_that_fails_before_it_has_a_run_raises_one_alert(world, monkeypatch):
    def broken(*_):
        raise ValueError("who knows")

    with monkeypatch.context() as patched:
        patched.setattr(lifecycle, "_begin", broken)
        job = verbs.run_now(OLGA, world.feed.id).job_id
        world.work(job)
    assert (Job.objects.get(pk=job).state, Run.objects.count()) == ("failed", 0)
    look_after(world)
    look_after(world)
    world.work(world.job(WATCH, {}))
    [alert] = Alert.objects.filter(resolved_at=None)
    assert (alert.kind, alert.times, alert.detail["job_id"]) == ("RUN_FAILED", 1, job)
    assert Feed.objects.get().manual_run_requested_at is None, "no job will honor it any more"
    assert world.run().outcome == "PROMOTED"
    look_after(world)
    assert open_alerts() == [], "it is over, although the job is still there"


def test_an_unknown_error_of_a_run_raises_one_alert(world, monkeypatch):
    def broken(*_):
        raise ValueError("who knows")

    monkeypatch.setattr(ingest, "promote", broken)
    assert world.run().error_code == "UNEXPECTED"
    world.work(world.job(WATCH, {}))
    assert open_alerts() == ["RUN_FAILED"]


# (32) Retrying and cancelling jobs of runs.


def fail(world):
    """The job of a run that has failed."""
    world.put_bytes(b"colour\tsize\nred\t5\n")
    run = world.run()
    assert run.status == "FAILED"
    return run.job_id


def by_verb(job):
    return jobs.retry(OLGA, job)


def by_api(job):
    answer = Application(Scope.JOBS_OPERATE).write(f"/jobs/{job}/retry")
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"{BASE}/jobs/{answer.json()['id']}"
    return answer.json()["id"]


def by_portal(job):
    client = Client()
    client.force_login(person("otto", Role.OPERATOR))
    answer = client.post(f"/jobs/{job}/retry/")
    return int(re.search(r"/jobs/(\d+)/", answer.headers["Location"])[1])


def by_command(job):
    [retried] = harvester("jobs", "retry", job, "--json").json["jobs"]
    return retried["new_job_id"]


@pytest.mark.parametrize("retry", [by_verb, by_api, by_portal, by_command])
def test_to_retry_the_job_of_a_failed_run_starts_a_new_run(world, retry):
    failed = fail(world)
    world.put(*TEN)
    job = retry(failed)
    assert job != failed
    assert Job.objects.get(pk=failed).state == "failed", "what happened stays to be seen"
    world.work(job)
    run = Run.objects.get(job_id=job)
    assert (run.trigger, run.outcome) == ("RETRY", "PROMOTED")
    assert len(world.shown()) == 10
    event = AuditEvent.objects.get(verb="JOB_RETRIED")
    assert (event.object_id, event.detail) == (str(failed), {"new_job_id": job})


def test_a_retry_during_a_run_becomes_a_follow_up(world):
    failed = fail(world)
    world.put(*TEN)
    world.meanwhile(lambda: jobs.retry(OLGA, failed))
    world.work(world.ask())
    world.hurry()
    assert [run.trigger for run in Run.objects.order_by("no")[1:]] in (
        ["SCHEDULED", "MANUAL_PENDING"],
        ["SCHEDULED", "RETRY"],
    )
    assert Feed.objects.get().manual_run_requested_at is None


def test_the_job_of_a_feed_that_does_not_run_is_not_retried(world):
    failed = fail(world)
    verbs.pause(OLGA, world.feed.id)
    with pytest.raises(Conflict, match="PAUSED"):
        jobs.retry(OLGA, failed)
    assert not AuditEvent.objects.filter(verb="JOB_RETRIED").exists()


def test_a_job_between_two_attempts_goes_on_with_its_run_when_it_is_retried(world, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(ingest, "promote", busy)
        job = world.ask()
        assert world.attempt(job).state == "retryable"
    assert jobs.retry(OLGA, job) == job
    world.work(job)
    assert [(run.job_id, run.outcome) for run in Run.objects.all()] == [(job, "PROMOTED")]


def busy(*_):
    raise TransientError("not now")


@pytest.mark.parametrize("clicked", [False, True])
def test_to_cancel_a_job_between_two_attempts_ends_its_run_with_the_actor(world, monkeypatch, clicked):
    monkeypatch.setattr(ingest, "promote", busy)
    job = world.ask()
    assert world.attempt(job).state == "retryable"
    if clicked:
        verbs.run_now(OLGA, world.feed.id)
    assert jobs.cancel(OLGA, job) == "cancelled"
    run = Run.objects.get(job_id=job)
    assert (run.status, run.error_code) == ("FAILED", "CANCELLED")
    assert "Olga" in run.error
    assert world.figures(run).run.next_try_at is None
    feed = Feed.objects.get()
    assert (feed.consecutive_failures, feed.last_run_at) == (0, run.finished_at)
    assert AuditEvent.objects.get(verb="RUN_CANCELLED").actor_id == "olga"
    assert open_alerts() == []
    assert (feed.manual_run_requested_at is not None) == clicked, "a newer request gets its run"


def test_a_run_whose_job_was_asked_to_stop_while_it_failed_is_cancelled(world, monkeypatch):
    """The attempt meets an error before it notices that it should stop, so that nobody but the job knows of it."""
    job = world.ask()

    def stop_and_fail(*_):
        together(lambda: jobs.cancel(OLGA, job))
        raise TransientError("not now")

    monkeypatch.setattr(ingest, "promote", stop_and_fail)
    assert world.attempt(job).state == "cancelled"
    look_after(world)
    run = Run.objects.get(job_id=job)
    assert (run.status, run.error_code) == ("FAILED", "CANCELLED")
    assert "Olga" in run.error


def test_to_cancel_the_job_of_a_click_takes_the_request_back(world):
    job = verbs.run_now(OLGA, world.feed.id).job_id
    jobs.cancel(OLGA, job)
    assert Feed.objects.get().manual_run_requested_at is None


# (38) A request waits only while something will honor it.


def test_a_request_ends_when_the_feed_is_paused_before_its_job(world):
    job = verbs.run_now(OLGA, world.feed.id).job_id
    verbs.pause(OLGA, world.feed.id)
    assert Feed.objects.get().manual_run_requested_at is None
    verbs.resume(OLGA, world.feed.id)
    world.work(job)
    assert (Feed.objects.get().manual_run_requested_at, Run.objects.count()) == (None, 0)


def test_a_click_during_the_failure_that_disables_the_feed_gets_no_job(world):
    world.change(consecutive_failures=2)
    world.put_bytes(b"colour\tsize\nred\t5\n")
    clicked = []

    def click():
        clicked.append(verbs.run_now(OLGA, world.feed.id).job_id)

    world.meanwhile(click)
    job = world.ask()
    world.work(job)
    wait_for(lambda: run_until_idle() and Job.objects.get(pk=clicked[0]).state == "succeeded", "the click's job")
    feed = Feed.objects.get()
    assert (feed.status, feed.manual_run_requested_at) == ("DISABLED", None)
    assert list(Job.objects.filter(kind="feeds.run").values_list("id", flat=True).order_by("id")) == [job, clicked[0]]


# (26) Files of failed runs.


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"colour\tsize\nred\t5\n", "HEADER_UNREADABLE"),
        (gzip.compress(b"SKU\tName" * 500, mtime=0)[:-20], "TRUNCATED_GZIP"),
        (b"SKU\tName\tUrl\tPrice\n1\tx\tnowhere\t5 USD\n", "NO_VALID_PRODUCTS"),
    ],
    ids=["header", "gzip", "rows"],
)
def test_the_file_of_a_failed_run_can_be_saved(world, tmp_path, content, code):
    world.put_bytes(content)
    run = world.run()
    assert (run.error_code, run.artifact_hash) == (code, None), "only a proven file is the run's for good"
    place = tmp_path / "saved"
    assert harvester("feed", "file", run.no, "--to", place).code == 0
    assert place.read_bytes() == content
    shown = harvester("feed", "inspect", run.no)
    assert "What to do:" in shown.out
    assert f"harvester runs file {run.no}" in shown.out


GOOD = written(*map(row, TEN)).encode()
DAMAGED = {
    "cut in a row": (GOOD[:-30], "TRUNCATED"),
    "cut in its only row": (written(row(100)).encode()[:-1], "TRUNCATED"),
    "cut in a character": (GOOD.decode().encode("utf-16")[:-1], "TRUNCATED"),
    "cut gzip": (gzip.compress(GOOD)[:-20], "TRUNCATED_GZIP"),
    "damaged gzip": (gzip.compress(GOOD)[:-8] + bytes(8), "BAD_GZIP"),
}


@pytest.mark.parametrize(("content", "code"), DAMAGED.values(), ids=DAMAGED)
def test_the_error_of_a_failed_run_does_not_say_that_the_file_is_fetched_again(world, content, code):
    world.put_bytes(content)
    run = world.run()
    assert (run.status, run.error_code, run.attempt) == ("FAILED", code, 3)
    assert not re.search("(fetch|download|tri)ed (again|anew|once more)", run.error)  # plain: quoted


def test_the_file_of_a_failed_run_is_kept_as_long_as_others(world):
    world.put_bytes(b"<html>Sorry</html>")
    run = world.run()
    assert files.is_kept(run)
    world.work(world.job(CLEAN_UP, {}))
    assert files.is_kept(run), "it is young"
    with artifact_store().open(files.hash_of(run)) as file:
        os.utime(file.fileno(), (0, 0))
    world.work(world.job(CLEAN_UP, {}))
    assert not files.is_kept(run)


# (42) What is logged.


def test_a_disabled_feed_logs_that_its_status_changed(world):
    world.change(consecutive_failures=2)
    world.put_bytes(b"colour\tsize\nred\t5\n")
    with capture_logs() as lines:
        assert world.run().status == "FAILED"
    [line] = [line for line in lines if line["event"] == "FEED_STATUS_CHANGED"]
    assert (line["old_status"], line["new_status"], line["by"]) == ("ENABLED", "DISABLED", "feeds")
    assert (line["feed_id"], line["source_id"]) == (str(world.feed.id), str(world.source.id))


def test_events_outside_of_runs_carry_their_base_fields(world):
    lost = world.running()
    lose_worker(lost.job_id)
    with capture_logs() as lines:
        look_after(world)
        for kind, args in ((TICK, {}), (CLEAN_UP, {}), (TEST, {"feed_id": str(world.feed.id)})):
            world.work(world.job(kind, args))
    found = {line["event"]: line for line in lines}
    base = {"feed_id": str(world.feed.id), "source_id": str(world.source.id), "network": "impact"}
    assert base.items() <= found["FEED_TESTED"].items()
    run = {**base, "run_id": str(lost.id), "run_no": lost.no, "stage": "scheduler", "job_id": lost.job_id}
    assert run.items() <= found["RUN_ABANDONED"].items()
    assert found["SCHEDULER_TICK"]["stage"] == "scheduler"
    assert found["CLEANUP_COMPLETE"]["stage"] == "cleanup"


def test_the_account_at_the_partner_is_not_written_to_audit_details(world):
    verbs.update(OLGA, world.feed.id, {"username": "secret-agent", "path": "/other.csv"})
    event = AuditEvent.objects.get(verb="FEED_UPDATED")
    assert event.changed == ["path", "username"]
    assert set(event.detail["after"]) == set(event.detail["before"]) == {"path"}
    assert not AuditEvent.objects.filter(detail__icontains="secret-agent").exists()


# (41) A slow clean-up.


def test_a_slow_clean_up_raises_its_alert_while_it_runs(world):
    job = world.job(CLEAN_UP, {})
    alive = "heartbeat_at = now() + interval '1 hour', lease = gen_random_uuid()"
    change(job, f"state = 'running', started_at = now() - interval '9 minutes', {alive}")
    watch_the_clock(world)
    assert open_alerts() == []
    change(job, "started_at = now() - interval '601 seconds'")
    watch_the_clock(world)
    watch_the_clock(world)
    [alert] = Alert.objects.filter(resolved_at=None)
    assert (alert.kind, alert.times) == ("CLEANUP_SLOW", 1)
    change(job, "state = 'succeeded', finished_at = now(), lease = NULL")
    world.work(world.job(CLEAN_UP, {}))
    assert open_alerts() == [], "the next one was fast"


def test_a_request_that_finds_a_lost_run_is_fulfilled_by_one_run(world):
    """The lost run is ended by the run that begins, so no other run has to follow."""
    world.put(100)
    lost = world.running()
    lose_worker(lost.job_id)
    verbs.run_now(OLGA, world.feed.id)
    run_until_idle(threads=1)
    assert [(run.status, run.trigger) for run in Run.objects.order_by("no")] == [
        ("FAILED", lost.trigger),
        ("SUCCEEDED", "MANUAL"),
    ]
    assert not Job.objects.filter(kind=RUN, state__in=OPEN).exists()
