"""`harvester audit ...`"""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from tests.support.catalog_rows import make_feed
from tests.support.commands_inside import harvester

from harvester.kernel.actor import Actor
from harvester.ops import audit, audit_log

ANN = Actor(kind="person", id="a-1", name="ann")
BOB = Actor(kind="person", id="b-2", name="bob")


@pytest.fixture(autouse=True)
def events(database):
    with transaction.atomic():
        audit.record(ANN, "FEED_CREATED", "feed", "f1", changed=["path"], detail={"source": "Acme"})
        audit.record(BOB, "FEED_STATUS_CHANGED", "feed", "f1", detail={"note": "\x1b[31mred"})
        audit.record(ANN, "FEED_STATUS_CHANGED", "feed", "f2")
        audit.record(ANN, "JOB_RETRIED", "job", 7)


def listed(*options: str) -> list[tuple[str, str]]:
    events = harvester("audit", "list", "--json", *options).json["events"]
    return [(event["actor_name"], f"{event['verb']} {event['object_id']}") for event in events]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), ["JOB_RETRIED 7", "FEED_STATUS_CHANGED f2", "FEED_STATUS_CHANGED f1", "FEED_CREATED f1"]),
        (("--actor", "bob"), ["FEED_STATUS_CHANGED f1"]),
        (("--actor", "b-2"), ["FEED_STATUS_CHANGED f1"]),
        (("--verb", "feed status changed"), ["FEED_STATUS_CHANGED f2", "FEED_STATUS_CHANGED f1"]),
        (("--object", "job"), ["JOB_RETRIED 7"]),
        (("--object", "feed:f1", "--actor", "ann"), ["FEED_CREATED f1"]),
        (("--limit", "1"), ["JOB_RETRIED 7"]),
        (("--since", "2999-01-01"), []),
        (("--before", "2000-01-01"), []),
    ],
)
def test_events_are_listed_newest_first_and_narrowed_by_every_option(options, wanted):
    assert [what for _, what in listed(*options)] == wanted


def test_since_a_moment_counts_that_moment():
    latest = audit_log.events().first().at
    assert len(listed("--since", latest.isoformat())) == 1
    assert len(listed("--before", latest.isoformat())) == 3
    assert listed("--since", (latest + timedelta(microseconds=1)).isoformat()) == []
    assert len(listed("--since", (timezone.now() - timedelta(days=1)).date().isoformat())) == 4


def test_a_table_says_who_did_what_and_cannot_steer_the_terminal():
    shown = harvester("audit", "list").out
    assert "feed:f1" in shown
    assert "path, source: Acme" in shown
    assert "\x1b" not in shown
    assert harvester("audit", "list", "--verb", "FEED_CREATD").out.strip() == "There are no such events."


def test_a_shorter_list_says_how_to_go_on():
    ran = harvester("audit", "list", "--limit", "2")
    assert "There are more" in ran.err
    assert harvester("audit", "list", "--limit", "2", "--json").json["has_more"] is True


def test_one_event_is_shown_whole():
    first = audit_log.events().last()
    assert harvester("audit", "show", str(first.pk), "--json").json["detail"] == {"source": "Acme"}
    assert "ann (person a-1)" in harvester("audit", "show", str(first.pk)).out
    assert harvester("audit", "show", "987654").code == 3


def test_what_is_no_moment_is_refused():
    refused = harvester("audit", "list", "--since", "yesterday")
    assert (refused.code, "--since" in refused.err) == (2, True)


def test_the_list_shows_names_instead_of_ids():
    feed = make_feed("Acme by Impact")
    with transaction.atomic():
        audit.record(ANN, "FEED_CREATED", "feed", feed.pk, detail={"source": str(feed.source_id)})
    shown = " ".join(harvester("audit", "list").out.split())
    assert "feed Acme by Impact" in shown
    assert str(feed.source_id) not in shown
    [event, *_] = harvester("audit", "list", "--json").json["events"]
    assert (event["object_id"], event["object_name"]) == (str(feed.pk), "Acme by Impact")
