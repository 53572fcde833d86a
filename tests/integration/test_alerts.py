"""Alerts: one message when a condition starts and one when it ends, whatever Slack does."""

import dataclasses
import json
import threading

import pytest
from django.conf import settings
from django.db import connection, transaction
from structlog.testing import capture_logs
from tests.support import http_server, kinds  # noqa: F401 - registers the kinds
from tests.support.http_server import HttpServer, says
from tests.support.jobs import change, job, wait_for_state
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.engine.events import EngineEvent
from harvester.engine.models import Job
from harvester.guards.http import HttpLimits
from harvester.guards.redaction import forget_all, remember
from harvester.ops import alert_delivery, alerts
from harvester.ops.alerts import DELIVER, OPENED, RESOLVED, WATCH, raise_alert, resolve_alert
from harvester.ops.models import Alert

PATH = "/services/T000/B000/canarycanarycanary"


@pytest.fixture
def slack_at(monkeypatch):
    """Make a server the Slack of this process."""

    def point(server):
        config = dataclasses.replace(
            settings.CONFIG, slack_webhook_url=server.url + PATH, egress_allow=("127.0.0.0/8",)
        )
        monkeypatch.setattr(settings, "CONFIG", config)
        monkeypatch.setattr(alert_delivery, "LIMITS", HttpLimits(read=0.5, total=1.0))

    yield point
    forget_all()


def opened(key="feed_failing:1", title="Feed one failed", body="Look at it.", **options):
    with transaction.atomic():
        return raise_alert("FEED_FAILED", key, title, body, **options)


def ended(key="feed_failing:1", note="It runs again."):
    with transaction.atomic():
        return resolve_alert(key, note)


def deliveries():
    return list(Job.objects.filter(kind=DELIVER).order_by("id"))


def texts(server):
    return [json.loads(heard.partition(b"\r\n\r\n")[2])["text"] for heard in server.heard]


def test_a_condition_is_reported_once_and_its_end_once(database, slack_at):
    with HttpServer(says(200, b"ok")) as server:
        slack_at(server)
        first = opened()
        assert opened(body="Look at it again.") == first
        run_until_idle()
        assert ended()
        assert not ended()
        run_until_idle()
    said = texts(server)
    assert [text.splitlines()[0] for text in said] == [
        ":warning: *Feed one failed*",
        ":white_check_mark: *Resolved: Feed one failed*",
    ]
    assert "It runs again." in said[1]
    alert = Alert.objects.get()
    assert (alert.times, alert.body) == (2, "Look at it again.")
    assert alert.delivered_at(OPENED)
    assert alert.delivered_at(RESOLVED)
    assert server.heard[0].startswith(f"POST {PATH} ".encode())


def test_a_condition_that_returns_is_a_new_alert(database):
    first = opened()
    ended()
    assert opened() != first
    assert Alert.objects.filter(resolved_at=None).count() == 1


def test_two_that_raise_at_once_make_one_alert_and_one_message(database):
    together = threading.Barrier(4)

    def raise_it():
        try:
            with transaction.atomic():
                together.wait(10)
                opened()
        finally:
            connection.close()

    threads = [threading.Thread(target=raise_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Alert.objects.get().times == 4
    assert len(deliveries()) == 1


def test_an_alert_that_is_rolled_back_sends_nothing(database):
    with capture_logs() as logs, pytest.raises(ZeroDivisionError), transaction.atomic():
        raise_alert("FEED_FAILED", "feed_failing:1", "Feed one failed", "")
        raise ZeroDivisionError
    assert (Alert.objects.count(), deliveries(), logs) == (0, [], [])


def test_an_alert_outside_a_transaction_is_refused(database):
    with pytest.raises(RuntimeError):
        raise_alert("FEED_FAILED", "feed_failing:1", "Feed one failed", "")
    with pytest.raises(RuntimeError):
        resolve_alert("feed_failing:1")


def test_without_slack_alerts_go_to_the_log(database):
    with capture_logs() as logs:
        opened()
        opened()
        ended()
        run_until_idle()
    logged = [entry for entry in logs if entry["event"].startswith("ALERT")]
    assert [(entry["event"], entry["about"], entry["key"]) for entry in logged] == [
        ("ALERT", "FEED_FAILED", "feed_failing:1"),
        ("ALERT_RESOLVED", "FEED_FAILED", "feed_failing:1"),
    ]
    assert [row.state for row in deliveries()] == ["succeeded", "succeeded"]


def test_a_condition_that_ends_before_it_was_reported_is_reported_once(database, slack_at):
    with HttpServer(says(200)) as server:
        slack_at(server)
        opened()
        ended()
        run_until_idle()
    [text] = texts(server)
    assert "Resolved: Feed one failed" in text
    assert "Look at it." in text


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (says(500, b"down"), "retryable", "SLACK_UNAVAILABLE"),
        (says(404, b"no_service"), "failed", "SLACK_REFUSED"),
        (says(403), "failed", "SLACK_REFUSED"),
        (says(302, Location="http://127.0.0.1:9/"), "failed", "SLACK_REFUSED"),
        (http_server.hangs, "retryable", "REMOTE_TIMEOUT"),
        (http_server.drips, "retryable", "TRANSFER_TOO_LONG"),
        (http_server.resets, "retryable", "CONNECTION_LOST"),
    ],
    ids=("500", "404", "403", "302", "hangs", "drips", "resets"),
)
def test_a_failing_slack_delays_its_message_and_nothing_else(database, slack_at, answer, state, code):
    other = enqueue("test.note", {"key": "other"}).job_id
    with HttpServer(answer) as server:
        slack_at(server)
        opened()
        run_until_idle()
    [delivery] = deliveries()
    assert (delivery.state, delivery.error_type) == (state, code)
    assert job(other).state == "succeeded"
    assert Alert.objects.get().delivery_error.startswith(code)
    stored = "".join(map(str, rows("SELECT j.*, a.* FROM jobs j, alerts a")))
    assert "canarycanarycanary" not in stored


def test_after_an_outage_slack_gets_the_message(database, slack_at):
    with HttpServer(says(503), says(200)) as server:
        slack_at(server)
        opened()
        run_until_idle()
        [delivery] = deliveries()
        change(delivery.id, "run_at = clock_timestamp()")
        run_until_idle()
    assert len(texts(server)) == 2
    alert = Alert.objects.get()
    assert (alert.delivery_error, bool(alert.delivered_at(OPENED))) == (None, True)
    assert wait_for_state(delivery.id, "succeeded").attempt == 2


@pytest.mark.parametrize(("header", "least", "most"), [("120", 100, 120), ("", 40, 60), ("999999", 3500, 3600)])
def test_when_slack_asks_to_wait_the_attempt_does_not_count(database, slack_at, header, least, most):
    with HttpServer(says(429, Retry_After=header)) as server:
        slack_at(server)
        opened()
        run_until_idle()
    [[state, attempt, wait]] = rows(
        "SELECT state, attempt, extract(epoch FROM run_at - clock_timestamp()) FROM jobs WHERE kind = %s", DELIVER
    )
    assert (state, attempt) == ("pending", 0)
    assert least <= wait <= most


def test_secrets_reach_neither_the_table_nor_the_log_nor_slack(database, slack_at):
    remember("hunter2hunter2")
    with HttpServer(says(200)) as server, capture_logs() as logs:
        slack_at(server)
        opened(
            title="sftp://partner:pa55word@host failed",
            body=f"password=hunter2hunter2 and https://hooks.slack.com{PATH}",
            detail={"password": "pa55word", "said": "token hunter2hunter2"},
        )
        run_until_idle()
        ended(note="now with hunter2hunter2")
        run_until_idle()
    seen = "".join(texts(server)) + str(rows("SELECT a.*, j.* FROM alerts a, jobs j"))
    seen += "".join(str(entry) for entry in logs if entry["event"] == "ALERT")
    for canary in ("hunter2", "pa55word", "canarycanarycanary"):
        assert canary not in seen


def test_text_of_others_cannot_mention_the_channel(database, slack_at):
    with HttpServer(says(200)) as server:
        slack_at(server)
        opened(title="<!channel> & <http://evil.test|click>", body="x" * 10_000)
        run_until_idle()
    [text] = texts(server)
    assert "&lt;!channel&gt; &amp; &lt;http://evil.test|click&gt;" in text
    assert len(text) < 3_200


def test_long_texts_are_shortened_before_they_are_escaped():
    assert alert_delivery.escaped("<" * 5_000) == "&lt;" * 2_999 + "…"


def test_an_unknown_error_raises_an_alert_that_is_resolved_later(database):
    enqueue("test.fail_unknown", max_attempts=1)
    enqueue("test.fail_terminal")
    run_until_idle()
    enqueue(WATCH)
    run_until_idle()
    alert = Alert.objects.get()
    assert alert.key == "unknown_error:test.fail_unknown:ZeroDivisionError"
    assert alert.resolved_at is None
    rows("UPDATE jobs SET finished_at = now() - interval '25 hours' WHERE kind = 'test.fail_unknown' RETURNING 1")
    enqueue(WATCH)
    run_until_idle()
    assert Alert.objects.get().resolved_at


def test_old_alerts_are_deleted_unless_they_are_open(database):
    for key in ("old", "young", "open"):
        opened(key=key)
    ended("old")
    ended("young")
    rows("UPDATE alerts SET opened_at = now() - interval '1 year' RETURNING 1")
    rows("UPDATE alerts SET resolved_at = now() - interval '91 days' WHERE key = 'old' RETURNING 1")
    enqueue("ops.clean_up")
    run_until_idle()
    assert sorted(Alert.objects.values_list("key", flat=True)) == ["open", "young"]


def test_a_deleted_alert_is_not_delivered(database, slack_at):
    with HttpServer(says(200)) as server:
        slack_at(server)
        enqueue(DELIVER, {"alert_id": 999, "phase": "opened"})
        run_until_idle()
    assert server.heard == []


def test_a_feed_that_fails_three_times_makes_one_line_for_each_condition(world):
    """A run raises alerts of its own, so its failed job raises none."""
    world.change(path="/nowhere.csv")
    with capture_logs() as logs:
        for _ in range(3):
            world.run()
    logged = [(line["event"], line["about"]) for line in logs if line["event"].startswith("ALERT")]
    assert logged == [("ALERT", "RUN_FAILED"), ("ALERT", "FEED_AUTO_DISABLED")]
    assert len([line for line in logs if line["event"] == "JOB_FAILED"]) == 3


@pytest.mark.parametrize("name", ["JOB_FAILED", "JOB_ERROR_UNKNOWN", "JOB_RESCUED"])
def test_engine_events_about_other_kinds_are_logged(name):
    with capture_logs() as logs:
        for kind in ("feeds.run", "ops.clean_up", None):
            alerts._log_engine_event(EngineEvent(name=name, job_id=7, fields={"kind": kind}))
    assert [(line["event"], line["about"], line["kind"]) for line in logs] == [
        ("ALERT", name, "ops.clean_up"),
        ("ALERT", name, None),
    ]
