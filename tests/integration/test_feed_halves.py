"""Large catalogs are compared by two sessions at once: either may fail or die, and nothing is lost or doubled."""

import threading

import pytest
from django.db import connection, connections, transaction
from tests.support.feed_world import World, allow_loopback
from tests.support.sftp_server import SftpServer
from tests.support.tables import rows

from harvester.kernel.errors import TransientError
from harvester.pipeline import match, staging
from harvester.pipeline.staging import Slot, share
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(settings, tmp_path, monkeypatch):
    allow_loopback(settings)
    monkeypatch.setattr(match, "SHARED_FROM", 0)
    with SftpServer(tmp_path) as server:
        made = World(server)
        made.put(*range(100, 140))
        assert made.run().outcome == "PROMOTED"
        yield made


def once_in_the_comparison(monkeypatch, act, *, of_other_half):
    """Have something done right behind one half of the comparison, once."""
    real, done = match._one, []

    def one(cursor, slot, statement, values):
        found = real(cursor, slot, statement, values)
        is_other_half = threading.current_thread().name.startswith("side-session")
        if "WITH matched" in statement and is_other_half == of_other_half and not done:
            done.append(True)
            act(slot)
        return found

    monkeypatch.setattr(match, "_one", one)
    return done


def changed_run(world):
    """Every price another one, three products new, one missing; with as many attempts as it takes."""
    world.put(*range(101, 143), Price="1.50")
    job = world.ask()
    world.work(job)
    run = Run.objects.get(job_id=job)
    figures = world.figures(run)
    return figures.products_upserted, figures.products_new, figures.products_missing, figures.prices_due


@pytest.mark.parametrize("of_other_half", [False, True])
def test_a_half_that_fails_is_compared_again_with_the_other(world, monkeypatch, of_other_half):
    def fail(_slot):
        raise TransientError("on fire")

    done = once_in_the_comparison(monkeypatch, fail, of_other_half=of_other_half)
    assert changed_run(world) == (42, 3, 1, 42)
    assert done
    world.check()


def test_a_slot_is_not_given_away_while_the_other_half_writes_into_it(world, monkeypatch):
    """The session that has the slot dies, and with it the lock; the other half is not at its end yet."""
    given = []

    def end_holder(slot):
        [(holder,)] = rows(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s",
            staging.STAGING_LOCK, slot.number,
        )  # fmt: skip
        stranger = connections["default"].copy()
        with stranger.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [holder])
            cursor.execute(staging._TAKE, [slot.number, staging.SHARING_LOCK, staging.STAGING_LOCK])
            given.append(cursor.fetchone())
        stranger.close()

    once_in_the_comparison(monkeypatch, end_holder, of_other_half=True)
    assert changed_run(world) == (42, 3, 1, 42)
    assert given == [None]
    world.check()


def test_a_slot_that_its_session_lost_is_not_written_into():
    with transaction.atomic(), connection.cursor() as cursor, pytest.raises(TransientError, match="begins again"):
        share(cursor, Slot(3), connection.connection.info.backend_pid)
