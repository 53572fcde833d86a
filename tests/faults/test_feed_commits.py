"""The database carries a commit out and never says so: what was done is not done again."""

from contextlib import contextmanager

import pytest
from django.db import connections
from tests.support.commit_thief import CommitThief
from tests.support.feed_twins import ask_to_approve
from tests.support.outcomes import job

#: A word of the transaction whose commit is carried out and never answered.
COMMITS = {
    "of the new run": b'INSERT INTO "feed_runs"',
    "of staging": b"staged_rows_0",
    "of the file's hash": b'SET "artifact_hash"',
    "of new products": b"COPY source_products",
    "of the promotion": b"INSERT INTO prices",
}


@pytest.mark.parametrize("marker", COMMITS.values(), ids=COMMITS)
def test_a_commit_whose_answer_is_lost_is_not_done_twice(twins, marker):
    twins.publish()
    assert twins.peaceful.run().outcome == "PROMOTED"
    run = twins.disturbed.ask()
    with CommitThief(marker) as thief, led_to(thief.place):
        twins.disturbed.work(run)
        assert thief.stolen.is_set()
    twins.must_be_alike()
    assert job(run).attempt == (1 if marker == COMMITS["of the promotion"] else 2)


def test_an_approval_whose_commit_is_never_answered_is_carried_out_once(twins):
    twins.hold()
    twins.peaceful.work(ask_to_approve(twins.peaceful))
    decision = ask_to_approve(twins.disturbed)
    with CommitThief(b"INSERT INTO prices") as thief, led_to(thief.place):
        twins.disturbed.work(decision)
        assert thief.stolen.is_set()
    twins.must_be_alike()
    assert (job(decision).state, job(decision).attempt) == ("succeeded", 1)


@contextmanager
def led_to(place):
    """Every session of this process goes through a proxy."""
    address = connections.settings["default"]
    before = address["HOST"]
    connections.close_all()
    address["HOST"] = str(place)
    try:
        yield
    finally:
        connections.close_all()
        address["HOST"] = before
