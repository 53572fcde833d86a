"""Many logins at once: passwords are checked one at a time, and other pages still respond."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connections
from django.test import Client
from tests.support.portal import PASSWORD, QuickHasher, person
from tests.support.waiting import wait_for

from harvester.ops.models import Role
from harvester.portal import access

pytestmark = pytest.mark.usefixtures("database")


class Checks:
    """Password checks that last until the test ends them."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.lock = threading.Lock()
        self.now = self.most = self.all = 0

    def encode(self, hasher: QuickHasher, *args: object, **kwargs: object) -> str:
        with self.lock:
            self.now += 1
            self.all += 1
            self.most = max(self.most, self.now)
        assert self.end.wait(120)
        with self.lock:
            self.now -= 1
        return super(QuickHasher, hasher).encode(*args, **kwargs)


@pytest.fixture
def checks(settings, monkeypatch) -> Iterator[Checks]:
    settings.PASSWORD_HASHERS = ["tests.support.portal.QuickHasher"]
    person("vera", Role.VIEWER)
    slow = Checks()

    def encode(hasher: QuickHasher, *args: object, **kwargs: object) -> str:
        return slow.encode(hasher, *args, **kwargs)

    monkeypatch.setattr(QuickHasher, "encode", encode)
    monkeypatch.setattr(access, "_places", threading.BoundedSemaphore(4))
    monkeypatch.setattr(access, "CHECK_WAIT_SECONDS", 120.0)
    yield slow
    slow.end.set()


def log_in(number: int) -> int:
    client = Client(REMOTE_ADDR=f"192.0.2.{number}")
    return client.post("/login/", {"username": "vera", "password": PASSWORD}).status_code


def test_passwords_are_checked_one_at_a_time_and_too_many_logins_at_once_are_refused(checks):
    answers: list[int] = []

    def try_it(number: int) -> None:
        try:
            answers.append(log_in(number))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=try_it, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: checks.now == 1 and access._places._value == 0, "four logins are under way")
        # In this thread: other requests do not wait for password checks.
        assert [log_in(number) for number in range(10, 20)] == [503] * 10
        assert Client().get("/login/").status_code == 200
        assert checks.all == 1
    finally:
        checks.end.set()
        for thread in threads:
            thread.join()
    assert (answers, checks.most) == ([302] * 4, 1)
    assert log_in(30) == 302, "every place is free again"
