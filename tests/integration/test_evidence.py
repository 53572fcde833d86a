"""Rows of hosted actors become items: the thin path of evidence."""

import pytest
from tests.support.actor_server import ActorServer, posts
from tests.support.feed_world import OLGA, allow_loopback
from tests.support.jobs import change
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.models import Job
from harvester.evidence import verbs
from harvester.evidence.models import ActorRun
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.kernel.ids import uuid7
from harvester.runs.decisions import request_approval
from harvester.runs.models import Run

STUB = {"error": "no_items", "errorDescription": "Empty or private data"}


@pytest.fixture
def server(database, settings):
    allow_loopback(settings)
    with ActorServer() as running:
        yield running


@pytest.fixture
def connection(server):
    return verbs.connect(OLGA, "Acme posts", actor_name="acme~posts", server=server.url, asked={"limit": 20})


def run(connection) -> Run:
    """One more run to its end, retries and polls included."""
    job_id = verbs.run_now(OLGA, connection.pk).job_id
    for _ in range(6):
        run_until_idle()
        if Job.objects.get(pk=job_id).state not in ("retryable", "pending"):
            break
        change(job_id, "run_at = now()")
    return Run.objects.get(job_id=job_id)


def items() -> dict[str, str]:
    return dict(rows("SELECT item_key, item ->> 'text' FROM evidence_items"))


def test_a_blocked_actor_is_held_and_its_approval_writes_items_and_no_offers(server, connection):
    server.rows = posts(20)
    assert run(connection).outcome == "PROMOTED"
    assert len(items()) == 20
    server.rows = [*posts(2, 100), *[STUB] * 10]
    held = run(connection)
    assert held.outcome == "HELD"
    assert [item["gate"] for item in held.verdict if item["holds"]] == ["ACTOR_SHRUNK"]
    assert len(items()) == 20
    assert len(rows("SELECT FROM raw_items WHERE run_id = %s", held.pk)) == 12, "a person sees what was returned"
    request_approval(OLGA, held.pk, {"rows": 12, "real_rows": 2})
    run_until_idle()
    held.refresh_from_db()
    assert (held.outcome, ActorRun.objects.get(pk=held.pk).items_written) == ("APPROVED", 2)
    assert items().keys() == {*(f"p{number}" for number in range(1, 21)), "p100", "p101"}
    assert (rows("SELECT FROM offers"), rows("SELECT FROM prices")) == ([], [])
    assert held.source_id is None


def test_stubs_only_are_held_once_there_were_real_rows(server, connection):
    server.rows = [STUB]
    assert run(connection).outcome == "PROMOTED", "nothing is known of the actor yet"
    server.rows = posts(3)
    run(connection)
    server.rows = [STUB] * 4
    held = run(connection)
    assert [item["gate"] for item in held.verdict if item["holds"]] == ["BLOCKED_OR_EMPTY"]
    assert "none of them real; the last accepted run had 3" in held.verdict[0]["reason"]


def test_the_same_rows_change_nothing_and_changed_ones_replace_the_old(server, connection):
    server.rows = posts(5)
    run(connection)
    again = run(connection)
    assert ActorRun.objects.get(pk=again.pk).items_written == 0
    server.rows = [{"id": "p1", "text": "edited"}, *posts(4, 2)]
    changed = run(connection)
    assert ActorRun.objects.get(pk=changed.pk).items_written == 1
    assert items()["p1"] == "edited"


def test_an_actor_is_started_once_and_looked_at_until_it_ends(server, connection):
    server.rows, server.polls = posts(3), 2
    assert run(connection).outcome == "PROMOTED"
    assert server.starts == 1


def test_a_lost_answer_to_the_start_never_starts_twice(server, connection):
    server.rows, server.start_answer = posts(3), 500
    failed = run(connection)
    assert (failed.status, failed.error_code) == ("FAILED", "START_UNKNOWN")
    assert server.starts == 1
    assert items() == {}


@pytest.mark.parametrize("answer", [b"<html>busy</html>", b'[{"id": "p1"', b'{"error": {}}', b"[1, 2]"])
def test_a_dataset_that_cannot_be_read_is_read_again_without_another_start(server, connection, answer):
    server.rows, server.dataset_answer = posts(3), answer
    assert run(connection).outcome == "PROMOTED"
    assert (server.starts, len(items())) == (1, 3)


def test_a_long_dataset_is_read_to_its_end_and_odd_characters_do_no_harm(server, connection):
    server.rows = [*posts(1200), {"id": "odd", "text": "a\u0000b"}]
    run(connection)
    assert (len(items()), items()["odd"]) == (1201, "ab")


def test_bad_input_is_refused_before_anything_is_sent(server, connection):
    with pytest.raises(InvalidInput, match="server: it must look like"):
        verbs.connect(OLGA, "Bad", actor_name="a~b", server="actors", asked={})
    with pytest.raises(NotFound, match="There is no connection"):
        verbs.run_now(OLGA, uuid7())
    assert server.starts == 0
