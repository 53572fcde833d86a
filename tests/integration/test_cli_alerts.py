"""`harvester alerts ...`"""

import pytest
from django.db import transaction
from tests.support.command import harvester as process
from tests.support.commands_inside import harvester

from harvester.ops.alerts import raise_alert, resolve_alert

pytestmark = pytest.mark.usefixtures("database")


def make(key: str) -> None:
    with transaction.atomic():
        raise_alert("TESTED", key, f"Something about {key}", "Do this.", severity="critical", detail={"key": key})


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


def test_no_alert_is_said_so():
    assert process("alerts", "list").out.strip() == "There are no such alerts."
