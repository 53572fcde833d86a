"""`harvester alerts ...`"""

import pytest
from django.db import transaction
from django.db.models.functions import Now
from tests.support.command import harvester as process
from tests.support.commands_inside import harvester
from tests.support.feed_rows import make_feed, make_source

from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.ops.models import Alert

pytestmark = pytest.mark.usefixtures("database")


def make(key: str, **detail: object) -> int:
    with transaction.atomic():
        result = {"key": key, **detail}
        return raise_alert("TESTED", key, f"Something about {key}", "Do this.", severity="critical", detail=result)


def test_open_alerts_are_listed_and_on_request_the_others_too():
    make("one"), make("two"), make("two")
    with transaction.atomic():
        resolve_alert("one", "done")
    open_ones = harvester("alerts", "list", "--json").json["alerts"]
    assert [(alert["key"], alert["times"], alert["detail"]) for alert in open_ones] == [("two", 2, {"key": "two"})]
    everything = harvester("alerts", "list", "--all", "--json").json["alerts"]
    assert [(alert["key"], alert["resolved_note"]) for alert in everything] == [("two", ""), ("one", "done")]
    shown = harvester("alerts", "list").out
    assert "Something about two" in shown
    assert "Something about one" not in shown


def test_an_empty_list_says_so():
    assert process("alerts", "list").out.strip() == "There are no such alerts."


def test_an_alert_is_shown_with_its_subjects_and_its_messages():
    feed = make_feed(make_source("Kestrel"))
    number = make("one", feed_id=str(feed.pk), run_no=12)
    make("one", feed_id=str(feed.pk), run_no=12)
    result = harvester("alerts", "show", number, "--json").json
    assert (result["times"], result["body"], result["last_message"]) == (2, "Do this.", None)
    assert result["about"] == [{"type": "feed", "id": str(feed.pk), "name": "Kestrel"}, {"type": "run", "id": 12}]
    assert result["first_message"]["delivery"] == "NO_CHANNEL"
    shown = " ".join(process("alerts", "show", number).out.split())
    for words in (
        f"TESTED {number} critical open Something about one Do this.",
        f"feed Kestrel ({feed.pk}) run 12 key one opened ",
        "times 2 first message In the log; Slack is not set up",
    ):
        assert words in shown


def test_the_end_of_an_alert_and_a_failed_delivery_are_shown():
    number = make("one")
    with transaction.atomic():
        resolve_alert("one", "It is over.")
    Alert.objects.filter(pk=number).update(opened_delivered_at=Now(), delivery_error="SLACK_REFUSED: no such channel")
    shown = " ".join(harvester("alerts", "show", number).out.split())
    assert "critical resolved" in shown
    assert "resolution It is over. first message Sent to Slack " in shown
    assert "last message Not delivered yet: SLACK_REFUSED: no such channel" in shown


def test_an_alert_that_does_not_exist_is_code_3():
    ran = harvester("alerts", "show", 4711, "--json")
    assert (ran.code, ran.error["code"]) == (3, "NOT_FOUND")
    assert "harvester alerts list --all" in ran.error["message"]
