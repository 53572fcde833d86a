"""Steps of a job that run in a side session."""

import threading

import pytest
import structlog
from django.db import connection
from tests.support.tables import rows

from harvester.engine.side_session import in_side_session

pytestmark = pytest.mark.usefixtures("database")


class Broken(Exception):
    """Ends something on purpose."""


def session():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def test_steps_are_taken_in_a_session_of_their_own_that_is_closed_behind_them():
    sessions = []
    with in_side_session(sessions.append(session()) for _ in range(3)) as all_is_done:
        all_is_done()
        assert session() not in sessions
    assert (len(sessions), len(set(sessions))) == (3, 1)
    assert rows("SELECT pid FROM pg_stat_activity WHERE pid = %s", sessions[0]) == []


def test_the_block_goes_on_meanwhile():
    go_on, heard = threading.Event(), []
    with in_side_session(heard.append(go_on.wait(30)) for _ in range(1)) as all_is_done:
        go_on.set()
        all_is_done()
    assert heard == [True]


def test_what_goes_wrong_is_raised_where_it_is_waited_for():
    def steps():
        yield 1
        raise Broken

    with pytest.raises(Broken), in_side_session(steps()) as all_is_done:
        all_is_done()


def test_leaving_early_waits_for_the_step_in_progress_and_for_no_other():
    begun, go_on, taken = threading.Event(), threading.Event(), []

    def steps():
        for number in range(3):
            begun.set()
            go_on.wait(30)
            taken.append(number)
            yield number

    with pytest.raises(Broken), in_side_session(steps()):
        begun.wait(30)
        threading.Timer(0.05, go_on.set).start()
        raise Broken
    assert taken == [0]


def test_its_log_says_the_same_of_where_it_belongs():
    seen = []
    note = (seen.append(structlog.contextvars.get_contextvars()) for _ in range(1))
    with structlog.contextvars.bound_contextvars(job_id=7), in_side_session(note) as all_is_done:
        all_is_done()
    assert seen == [{"job_id": 7}]
