"""Paces are kept for all processes together, in PostgreSQL or in Redis, with the same answers."""

import threading
from dataclasses import replace

import pytest
from django.db import connection
from tests.support.redis_server import redis_server
from tests.support.tables import rows

from harvester.guards import limits
from harvester.guards.limits import RateLimit
from harvester.kernel.errors import TransientError

#: None of it is refilled during a test.
SLOW = RateLimit(count=1, seconds=3600, burst=3)


@pytest.fixture(params=["PostgreSQL", "Redis"])
def kept(request, database, settings, tmp_path):
    if request.param == "PostgreSQL":
        yield
        return
    with redis_server(tmp_path) as url:
        settings.CONFIG = replace(settings.CONFIG, redis_url=url)
        yield


def test_a_burst_is_granted_and_then_the_pace_rules(kept):
    grants = [limits.take("test:a", SLOW) for _ in range(5)]
    assert [grant.granted for grant in grants] == [True, True, True, False, False]
    assert [grant.left for grant in grants] == [2, 1, 0, 0, 0]
    assert 3500 < grants[3].wait <= 3600
    assert limits.take("test:b", SLOW).granted, "another name has a separate limit"


def test_a_refusal_costs_nothing(kept):
    waits = [limits.take("test:a", RateLimit(count=1, seconds=3600)).wait for _ in range(4)]
    assert max(waits) <= 3600


def test_what_was_used_comes_back_with_time(kept):
    quick = RateLimit(count=1000, seconds=1)
    granted = 0
    while granted < 3:
        granted += limits.take("test:a", quick).granted


def test_requests_at_the_same_moment_share_the_pace(kept):
    granted = []

    def ask():
        try:
            granted.extend(limits.take("test:a", RateLimit(count=1, seconds=3600, burst=10)).granted for _ in range(10))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted.count(True) == 10


def test_redis_that_does_not_answer_is_an_error_and_no_second_limiter_steps_in(database, settings):
    settings.CONFIG = replace(settings.CONFIG, redis_url="redis://127.0.0.1:1")
    with pytest.raises(TransientError, match="Redis does not respond"):
        limits.take("test:a", SLOW)
    assert rows("SELECT * FROM rate_limits") == []


def test_what_nobody_asks_for_is_forgotten(database):
    limits.take("test:old", RateLimit(count=1, seconds=1)), limits.take("test:new", SLOW)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rate_limits SET due = due - interval '2 days' WHERE name = 'test:old'")
    assert limits.forget_idle() == 1
    assert limits.take("test:old", RateLimit(count=1, seconds=1)).granted


@pytest.mark.parametrize(
    "wrong", [{"count": 0, "seconds": 1}, {"count": 1, "seconds": 0}, {"count": 1, "seconds": 1, "burst": 0}]
)
def test_a_pace_that_makes_no_sense_is_refused_at_birth(wrong):
    with pytest.raises(ValueError, match="above zero"):
        RateLimit(**wrong)
