"""Jobs that live are never taken from their workers, however long they take and whatever happens around them."""

import psycopg
import pytest
from tests.support.outcomes import job

from harvester.engine import heart as heart_module
from harvester.engine.claim import Claimer
from harvester.engine.connect import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.heart import Heart
from harvester.engine.maintain import Maintenance


@pytest.fixture
def held(database):
    """A job that this process holds, without a worker that beats for it."""
    enqueue("test.noop")
    with connect("test") as session:
        [running] = Claimer(worker="w", queues=[]).claim(session, 1)
    return running


def test_a_beat_that_failed_is_made_up_for_at_once(held, monkeypatch):
    """Not an interval later: after a long outage every job looks stuck, and the rescuer is about to look twice."""
    heart = Heart(lambda: [held], interval=3600, on_cancel=lambda _: None)
    heart._beat_at = float("-inf")
    before = job(held.id).heartbeat_at
    with monkeypatch.context() as patch:
        patch.setattr(heart_module, "connect", fail_to_connect)
        heart.beat_if_due()
    assert job(held.id).heartbeat_at == before
    heart.beat_if_due()
    assert job(held.id).heartbeat_at > before
    heart._drop_connection()


def test_a_heart_goes_on_beating_when_telling_a_handler_to_stop_fails(held):
    heart = Heart(lambda: [held], interval=0, on_cancel=fail_to_tell)
    with connect("test") as session:
        session.execute("UPDATE jobs SET cancel_requested_at = now()")
    heart.beat_if_due()
    before = job(held.id).heartbeat_at
    heart.beat_if_due()
    assert job(held.id).heartbeat_at > before
    heart._drop_connection()


def test_two_looks_in_quick_succession_take_no_job(held):
    """However often an operator has stuck jobs looked for: hearts need a while to beat again after an outage."""
    with connect("test") as session:
        session.execute("UPDATE jobs SET heartbeat_at = now() - interval '1 hour'")
    maintenance = Maintenance(stuck_seconds=600, interval=0.001)
    assert [maintenance.once() for _ in range(5)] == [[]] * 5
    maintenance._drop_connection()


def fail_to_tell(_):
    raise RuntimeError("Event loop is closed")


def fail_to_connect(*_):
    raise psycopg.OperationalError("too many clients already")
