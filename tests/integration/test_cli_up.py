"""`harvester up`: everything together, restarted when it crashes, stopped by one Ctrl-C, and nothing left over."""

import contextlib
import os
import signal
import socket
import struct
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.support.command import empty_home, free_port, harvester, processes_of, running
from tests.support.waiting import wait_for

from harvester.cli.portal_server import PATIENCE_SECONDS, bind
from harvester.cli.supervisor import LAST_WAIT_SECONDS, wait_after


@pytest.fixture(scope="module")
def home():
    """A home of its own, because a server that these tests share with others would never stop."""
    with empty_home() as made:
        yield made


@pytest.fixture(scope="module")
def begin(home):
    """Start everything. What no test has ended is ended after the last of them."""
    with contextlib.ExitStack() as started:
        yield lambda: started.enter_context(_started(home))


@pytest.fixture(scope="module")
def standing():
    """What was started so far."""
    return []


@pytest.fixture
def up(begin, standing):
    """The running processes of the test before, or new ones: four, each with everything to load."""
    if not standing or standing[-1].process.poll() is not None:
        standing.append(begin())
    return standing[-1]


@contextlib.contextmanager
def _started(home):
    listen = free_port()
    with running("up", "--threads", 2, HARVESTER_HOME=str(home), HARVESTER_LISTEN=listen) as process:
        process.says("Harvester is running.")
        process.listen = listen
        yield process
    wait_for(lambda: not processes_of(home), "the end of every process")


def children(parent):
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and f"--parent {parent}" in (line := words_of(entry)):
            found.setdefault(line.split()[4], []).append(int(entry.name))
    return found


def words_of(entry):
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_it_prints_the_portal_s_address_and_the_first_step(up, home):
    assert f"http://{up.listen}/" in up.out
    assert str(home) in up.out
    assert "harvester user add" in up.out
    with urllib.request.urlopen(f"http://{up.listen}/healthz") as answer:
        assert answer.status == 200
    assert set(children(up.pid)) == {"web", "worker", "scheduler"}
    up.says("WORKER_STARTED")
    found = harvester("doctor", "--json", HARVESTER_HOME=str(home), HARVESTER_LISTEN=up.listen).json["checks"]
    result = {finding["check"]: finding["finding"] for finding in found}
    assert result["portal"] == f"running on {up.listen}"
    assert result["workers"].startswith("1 connected")


def test_requests_are_logged_without_what_they_carry(up):
    asked = urllib.request.Request(
        f"http://{up.listen}/nowhere?x=canary-in-query",
        headers={"Authorization": "Bearer canary-in-header", "Cookie": "sessionid=canary-in-cookie"},
    )
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(asked):
        pass
    up.says('"path": "/nowhere"')
    assert "canary" not in up.err


def test_a_process_that_crashes_is_started_again(up):
    up.says("WORKER_STARTED")
    before = up.err.count('"WORKER_STARTED"')
    [worker] = children(up.pid)["worker"]
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: up.err.count('"WORKER_STARTED"') == before + 1, "the next worker")
    assert children(up.pid)["worker"] != [worker]
    assert '"event": "PROCESS_ENDED"' in up.err


def test_a_database_server_that_was_killed_is_started_again(up, home):
    up.says("WORKER_STARTED")
    server = int((home / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGKILL)
    up.says("DATABASE_REVIVED")
    wait_for(lambda: ready(up.listen), "the portal to be ready again")
    up.signal(signal.SIGTERM)
    assert up.ends().code == 0
    assert processes_of(home) == []


def ready(listen):
    try:
        with urllib.request.urlopen(f"http://{listen}/readyz") as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_everything_and_a_second_one_does_no_harm(up, home, number):
    up.says("WORKER_STARTED")
    up.signal(number)
    up.says("Stopping ...")
    up.signal(number)
    ran = up.ends()
    assert ran.code == 0
    assert "All processes have stopped." in ran.out
    assert "PROCESS_KILLED" not in ran.err
    assert processes_of(home) == []


def test_when_the_supervisor_is_killed_nothing_goes_on_without_it(up, home):
    up.says("WORKER_STARTED")
    up.signal(signal.SIGKILL)
    up.process.wait()
    wait_for(lambda: not processes_of(home), "the end of every process")


def test_a_stop_during_the_start_stops_it(home):
    with running("up", HARVESTER_HOME=str(home), HARVESTER_LISTEN=free_port()) as process:
        process.says("MIGRATED")
        process.signal(signal.SIGINT)
        assert process.ends().code == 0
    assert processes_of(home) == []


def test_waits_between_restarts_double_and_end_at_a_minute():
    assert [wait_after(failures) for failures in range(1, 9)] == [
        1,
        2,
        4,
        8,
        16,
        32,
        LAST_WAIT_SECONDS,
        LAST_WAIT_SECONDS,
    ]


def test_nobody_holds_a_thread_of_the_portal_by_silence():
    with bind("127.0.0.1:0") as taken, socket.create_connection(taken.getsockname()), taken.accept()[0] as client:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            assert struct.unpack("@ll", client.getsockopt(socket.SOL_SOCKET, option, 16)) == (PATIENCE_SECONDS, 0)
