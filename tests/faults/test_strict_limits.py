"""A strict limit holds across processes and whatever happens to its store."""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
import redis
from django.conf import settings as current_settings
from django.db import connection, connections, transaction
from tests.support.limit_takers import grants, shortest_gap, start_taker
from tests.support.redis_server import RedisServer
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import ended_at_last

from harvester.guards import limits
from harvester.guards.limits import RateLimit
from harvester.kernel.errors import InvalidInput, TransientError

INTERVAL = 0.25
SLOW = RateLimit(count=1, seconds=3600)
QUICK = RateLimit(count=1, seconds=0.05)
PROCESSES = 8


class PostgresStore:
    def __init__(self, own, tmp_path, settings) -> None:
        self._own = own

    def crash(self) -> None:
        self._own.restart("crash")

    def lose_a_session(self) -> None:
        """The server ends all sessions and empties tables that are not logged, without starting again."""
        with self._own.connect() as victim:
            [pid] = victim.execute("SELECT pg_backend_pid()").fetchone()
            os.kill(pid, signal.SIGKILL)
        connections.close_all()
        wait_for(self._answers, "the server")

    def stop_and_start(self) -> None:
        self._own.restart("fast")

    def _answers(self) -> bool:
        try:
            with self._own.connect() as session:
                return bool(session.execute("SELECT 1").fetchone())
        except psycopg.OperationalError:
            return False

    def age(self, seconds: float) -> None:
        """Pretend that the store has been up for so long."""
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO rate_limits (name, due) VALUES ('', clock_timestamp() - %s * interval '1 second') "
                "ON CONFLICT (name) DO UPDATE SET due = excluded.due",
                [seconds],
            )

    def save(self) -> None:
        """What it saves is not part of the limits."""

    def close(self) -> None:
        """It serves all tests."""


class RedisStore:
    saves = False

    def __init__(self, own, tmp_path, settings) -> None:
        self._server = RedisServer(tmp_path, saves=self.saves)
        self._server.start()
        settings.CONFIG = replace(settings.CONFIG, redis_url=self._server.url)

    def _ask(self, *command: object) -> object:
        with redis.Redis.from_url(self._server.url) as client:
            return client.execute_command(*command)

    def crash(self) -> None:
        self._server.kill()
        self._server.start()

    def save(self) -> None:
        """It has nowhere to save to."""

    def flush(self) -> None:
        self._ask("FLUSHALL")

    def age(self, seconds: float) -> None:
        limits.take("first", QUICK, strict=True)
        since = int(self._ask("HGET", "harvester:limits-since", "since"))
        self._ask("HSET", "harvester:limits-since", "since", since - round(seconds * 1_000_000))

    def stop(self) -> None:
        self._server.kill()

    def close(self) -> None:
        self._server.kill()


class SavedRedisStore(RedisStore):
    """After a crash it has the keys of some time ago."""

    saves = True

    def save(self) -> None:
        self._ask("SAVE")


STORES = {"PostgreSQL": PostgresStore, "Redis": RedisStore, "Redis that saves": SavedRedisStore}


@contextmanager
def opened(name, own_database, tmp_path, settings):
    store = STORES[name](own_database, tmp_path, settings)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture(params=["PostgreSQL", "Redis"])
def store(request, own_database, tmp_path, settings):
    with opened(request.param, own_database, tmp_path, settings) as found:
        yield found


def test_many_processes_together_get_no_more_than_the_rate(store, tmp_path):
    notes = [tmp_path / f"{number}" for number in range(PROCESSES)]
    with ended_at_last([start_taker("pace:shop.test", INTERVAL, path) for path in notes]):
        wait_for(lambda: len(grants(notes)) >= 15, "grants")
    assert shortest_gap(grants(notes)) >= 0.95 * INTERVAL
    assert sum(path.exists() and path.stat().st_size > 0 for path in notes) > 1


ACCIDENTS = pytest.mark.parametrize(
    ("name", "accident"),
    [
        ("PostgreSQL", "crash"),
        ("PostgreSQL", "lose_a_session"),
        ("PostgreSQL", "stop_and_start"),
        ("Redis", "crash"),
        ("Redis", "flush"),
        ("Redis that saves", "crash"),
    ],
)


@ACCIDENTS
def test_a_grant_counts_after_an_accident_of_the_store(name, accident, own_database, tmp_path, settings):
    with opened(name, own_database, tmp_path, settings) as store:
        store.age(7200)
        store.save()
        assert limits.take("pace:a", SLOW, strict=True).granted
        getattr(store, accident)()
        refused = limits.take("pace:a", SLOW, strict=True)
        assert (refused.granted, refused.wait > 3500) == (False, True)


@ACCIDENTS
def test_no_accident_of_the_store_lets_two_through_within_an_interval(name, accident, own_database, tmp_path, settings):
    notes = [tmp_path / f"{number}" for number in range(PROCESSES)]
    with (
        opened(name, own_database, tmp_path, settings) as store,
        ended_at_last([start_taker("pace:shop.test", INTERVAL, path) for path in notes]),
    ):
        for _ in range(3):
            before = len(grants(notes))
            store.save()
            wait_for(lambda before=before: len(grants(notes)) >= before + 3, "grants")
            getattr(store, accident)()
        before = len(grants(notes))
        wait_for(lambda: len(grants(notes)) >= before + 3, "grants after the last accident")
    assert shortest_gap(grants(notes)) >= 0.95 * INTERVAL


def test_a_store_without_memory_of_a_name_grants_nothing_for_an_interval(store):
    refused = limits.take("pace:a", SLOW, strict=True)
    assert (refused.granted, refused.left) == (False, 0)
    assert 3500 < refused.wait <= 3600
    store.age(3700)
    assert limits.take("pace:a", SLOW, strict=True).granted
    assert not limits.take("pace:a", SLOW, strict=True).granted


def test_the_first_wait_is_as_long_as_the_interval(store):
    wait_for(lambda: limits.take("pace:a", QUICK, strict=True).granted, "a grant")
    assert limits.take("pace:b", SLOW, strict=True).wait > 3500


def test_other_limits_do_not_wait_at_the_beginning(store):
    assert limits.take("api:a", SLOW).granted


def test_a_name_that_nobody_asked_for_in_a_day_does_not_wait(own_database, tmp_path, settings):
    with opened("PostgreSQL", own_database, tmp_path, settings) as store:
        store.age(3 * 86_400)
        assert limits.take("pace:a", SLOW, strict=True).granted
        with connection.cursor() as cursor:
            cursor.execute("UPDATE rate_limits SET due = due - interval '2 days' WHERE name = 'pace:a'")
        limits.postpone("pace:b", 3600)
        assert limits.forget_idle() == 1
        assert rows("SELECT name FROM rate_limits ORDER BY name") == [("",), ("pace:b",)]
        assert limits.take("pace:a", SLOW, strict=True).granted


@pytest.mark.parametrize("strict", [True, False])
def test_nothing_is_granted_before_a_postponement_is_over(store, strict):
    store.age(7200)
    limits.postpone("pace:a", 3600)
    limits.postpone("pace:a", 1)
    burst = RateLimit(count=1, seconds=1, burst=5)
    refused = limits.take("pace:a", burst, strict=strict)
    assert (refused.granted, refused.left) == (False, 0)
    assert 3500 < refused.wait <= 3600
    assert limits.take("pace:b", burst, strict=strict).granted
    limits.postpone("pace:a", 1800, shorten=True)
    assert 1700 < limits.take("pace:a", burst, strict=strict).wait <= 1800
    limits.postpone("pace:a", 0, shorten=True)
    assert limits.take("pace:a", burst, strict=strict).granted


def test_a_postponement_ends_by_itself(store):
    store.age(10)
    limits.postpone("pace:a", 0.2)
    wait_for(lambda: limits.take("pace:a", QUICK, strict=True).granted, "a grant")


def test_a_postponement_does_not_give_back_what_was_used(store):
    store.age(7200)
    assert limits.take("pace:a", SLOW, strict=True).granted
    limits.postpone("pace:a", 0, shorten=True)
    assert limits.take("pace:a", SLOW, strict=True).wait > 3500


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e12])
def test_a_postponement_that_makes_no_sense_is_refused(seconds):
    with pytest.raises(InvalidInput, match="postponed by"):
        limits.postpone("pace:a", seconds)


def test_a_pace_is_never_asked_for_inside_a_transaction(store):
    store.age(7200)
    with transaction.atomic():
        with pytest.raises(RuntimeError, match="outside of transactions"):
            limits.take("pace:a", SLOW, strict=True)
        with pytest.raises(RuntimeError, match="outside of transactions"):
            limits.postpone("pace:a", 5)
    assert limits.take("pace:a", SLOW, strict=True).granted


def test_only_the_clock_of_the_store_counts(store, monkeypatch):
    store.age(7200)
    assert limits.take("pace:a", SLOW, strict=True).granted
    for clock in ("time", "monotonic"):
        monkeypatch.setattr(f"time.{clock}", lambda: 4e9)
    assert limits.take("pace:a", SLOW, strict=True).wait > 3500


def test_redis_that_is_gone_grants_nothing_and_the_database_does_not_step_in(own_database, tmp_path, settings):
    with opened("Redis", own_database, tmp_path, settings) as store:
        store.age(7200)
        assert limits.take("pace:a", SLOW, strict=True).granted
        store.stop()
        for ask in (
            lambda: limits.take("pace:a", SLOW, strict=True),
            lambda: limits.take("pace:b", SLOW, strict=True),
            lambda: limits.postpone("pace:a", 5),
        ):
            with pytest.raises(TransientError, match="Redis does not respond"):
                ask()
        assert current_settings.CONFIG.redis_url
    assert rows("SELECT * FROM rate_limits") == []
