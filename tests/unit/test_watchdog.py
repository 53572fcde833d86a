"""When a process is ended: for silence of the database, or for not stopping in time."""

import psycopg
import pytest

from harvester.engine.watchdog import (
    SHORTEST_SILENCE_SECONDS,
    WIND_DOWN_SECONDS,
    Watchdog,
    drain_seconds,
    is_answer,
    silence_limit,
)


class Watched:
    """A process under a watchdog that only says when it would end it."""

    def __init__(self, limit=10.0, stop_seconds=5.0):
        self.since, self.stopping, self.ended, self.looks = None, False, [], 0
        self.dog = Watchdog(
            waits_since=lambda: self.since,
            limit=limit,
            stopping=lambda: self.stopping,
            stop_seconds=stop_seconds,
            unblock=self.unblock,
            end=self.ended.append,
        )

    def unblock(self):
        self.looks += 1

    def pass_time(self, seconds, step=1.0):
        for _ in range(int(seconds / step)):
            self.dog.look(step)


def test_a_process_that_waits_for_no_answer_is_left_alone():
    watched = Watched()
    watched.pass_time(1000)
    assert (watched.ended, watched.looks) == ([], 1000)


def test_a_process_whose_heartbeat_is_not_answered_is_ended_after_the_limit():
    watched = Watched(limit=10)
    watched.since = 1.0
    watched.pass_time(11)
    assert watched.ended == []
    watched.pass_time(1)
    assert watched.ended == ["the database has not answered a heartbeat for 11 s"]


def test_every_answer_begins_the_count_again():
    watched = Watched(limit=10)
    for moment in range(20):
        watched.since = float(moment)
        watched.pass_time(10)
    assert watched.ended == []


def test_a_process_that_was_asked_to_stop_ends_in_time():
    watched = Watched(stop_seconds=5)
    watched.stopping = True
    watched.pass_time(5)
    assert watched.ended == []
    watched.pass_time(1)
    assert watched.ended == ["it was asked to stop 6 s ago"]


def test_the_limit_is_half_of_the_stuck_time_but_never_very_short():
    assert (silence_limit(300), silence_limit(2)) == (150, SHORTEST_SILENCE_SECONDS)


@pytest.mark.parametrize("grace", [10.0, 30.0, 3600.0])
def test_jobs_and_winding_down_together_fit_into_the_grace_time(grace):
    assert drain_seconds(grace) + WIND_DOWN_SECONDS == grace


@pytest.mark.parametrize("grace", [0.0, 0.2, 4.0])
def test_a_short_grace_time_still_leaves_time_to_hand_jobs_back(grace):
    assert drain_seconds(grace) == grace / 2


def test_a_server_that_refuses_or_says_goodbye_has_answered():
    refused = refusal("host=127.0.0.1 port=1 dbname=x")
    absent = refusal("host=/nonexistent dbname=x")
    assert is_answer(refused)
    assert is_answer(absent)
    assert is_answer(psycopg.errors.TooManyConnections())
    assert is_answer(psycopg.errors.AdminShutdown())
    assert is_answer(RuntimeError("a handler's own problem"))


@pytest.mark.parametrize(
    "words",
    [
        "connection timeout expired",
        "could not receive data from server: Connection timed out",
        "No route to host",
        "server closed the connection unexpectedly",
    ],
)
def test_a_link_that_delivers_nothing_is_no_answer(words):
    assert not is_answer(psycopg.OperationalError(words))


def refusal(address):
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(address)
    return caught.value
