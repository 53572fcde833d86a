"""A link to the database that delivers nothing and never says so: no process hangs on it."""

import secrets
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import psycopg
import pytest
from structlog.testing import capture_logs
from tests.support.outcomes import history, job, wait_until_ended
from tests.support.signals import say, wait_to_hear
from tests.support.silent_proxy import BOTH, TO_CLIENT, TO_SERVER, SilentProxy
from tests.support.tables import database_hosts, use_database_hosts
from tests.support.waiting import wait_for
from tests.support.workers import ended_at_last, external_url, start_process, worker_processes

from harvester.engine import maintenance
from harvester.engine.claim import Claimer
from harvester.engine.connections import connect
from harvester.engine.embedded.layout import DATABASE, OWNER_ROLE
from harvester.engine.enqueue import enqueue
from harvester.engine.heartbeat import Heartbeat
from harvester.engine.outcomes import handed_back
from harvester.engine.watchdog import EXIT_CODE, is_answer
from harvester.engine.worker import Worker, WorkerOptions

WAYS = {"to the server": (TO_SERVER,), "to the client": (TO_CLIENT,), "both ways": BOTH}


@contextmanager
def leading_through(proxy):
    """Sessions that this process opens go through the proxy."""
    before = database_hosts()
    use_database_hosts(dict.fromkeys(before, str(proxy.place)))
    try:
        yield
    finally:
        use_database_hosts(before)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_heartbeat_that_is_not_answered_is_given_up_and_made_on_a_new_session(database, way):
    enqueue("test.noop")
    with connect("test") as session:
        [held] = Claimer(worker="w", queues=[]).claim(session, 1)
    heartbeat = Heartbeat(lambda: [held], interval=0, on_cancel=lambda _: None)
    with SilentProxy() as proxy, capture_logs() as logs:
        with leading_through(proxy):
            heartbeat.beat_if_due()
        before = job(held.id).heartbeat_at
        proxy.swallow(*way)
        beat = threading.Thread(target=heartbeat.beat_if_due, daemon=True)
        beat.start()
        wait_for(lambda: heartbeat._asked_at, "a beat under way")
        wait_for(lambda: heartbeat.break_off_after(0) or not beat.is_alive(), "the beat to be given up")
        assert [line["event"] for line in logs] == ["HEARTBEAT_FAILED"]
        assert heartbeat.waits_since is not None, "silence that was broken off is still silence"
        beaten = job(held.id).heartbeat_at
        heartbeat.beat_if_due()
        assert job(held.id).heartbeat_at > beaten >= before
        assert heartbeat.waits_since is None
        heartbeat._drop_connection()


def test_a_server_that_is_not_there_is_waited_for(database):
    enqueue("test.noop")
    with connect("test") as session:
        [held] = Claimer(worker="w", queues=[]).claim(session, 1)
    heartbeat = Heartbeat(lambda: [held], interval=0, on_cancel=lambda _: None)
    before = database_hosts()
    use_database_hosts(dict.fromkeys(before, "/nonexistent"))
    try:
        with capture_logs() as logs:
            heartbeat.beat_if_due()
    finally:
        use_database_hosts(before)
    assert [line["event"] for line in logs] == ["HEARTBEAT_FAILED"]
    assert heartbeat.waits_since is None


def test_a_server_that_refuses_a_session_has_answered(database):
    """As one does that is starting up or has no session left; libpq gives no code for that."""
    with pytest.raises(psycopg.OperationalError) as caught:
        connect("test", dbname="nobody made this one")
    assert caught.value.sqlstate is None
    assert is_answer(caught.value)


def test_a_forced_ending_that_is_not_answered_is_given_up(database):
    enqueue("test.noop")
    worker = Worker(WorkerOptions())
    worker._silence_limit = 0
    with SilentProxy() as proxy:
        with leading_through(proxy):
            [held] = worker._claimer.claim(worker._connected(), 1)
        proxy.swallow(*BOTH)
        ended = []
        forcing = threading.Thread(target=lambda: ended.append(worker._force(held, handed_back(held))), daemon=True)
        forcing.start()
        wait_for(lambda: worker._unblock() or not forcing.is_alive(), "the forced ending to be given up")
    assert ended == [False]
    assert job(held.id).state == "running"


def test_a_look_for_stuck_jobs_that_is_not_answered_is_given_up(database, monkeypatch):
    monkeypatch.setattr(maintenance, "LONGEST_LOOK_SECONDS", 0)
    looking = maintenance.Maintenance(stuck_seconds=600, interval=0.01)
    with SilentProxy() as proxy, capture_logs() as logs, leading_through(proxy):
        looking.once()
        proxy.swallow(*BOTH)
        looking.start()
        wait_for(lambda: looking.break_off_when_silent() or logs, "the look to be given up")
        looking.stop()
        wait_for(lambda: looking.break_off_when_silent() or not looking._thread.is_alive(), "the end")
    assert {line["event"] for line in logs} == {"MAINTENANCE_FAILED"}


@pytest.mark.parametrize("way", [(TO_CLIENT,), BOTH], ids=["to the client", "both ways"])
def test_a_worker_ends_itself_before_its_job_is_given_to_another(database, way):
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with SilentProxy() as proxy:
        silent = worker_processes(1, "stuck_seconds=10", **external_url(str(proxy.place)))
        with silent as [worker]:
            wait_to_hear("started:k:1")
            proxy.swallow(*way)
            assert worker.wait(60) == EXIT_CODE
            assert history(job_id) == ["pending", "running"]
    say("release:k:2")
    with worker_processes(1, "name=heir"):
        assert wait_until_ended(job_id, 60).result == "heir 2"
    assert history(job_id) == ["pending", "running", "retryable", "running", "succeeded"]


def test_sigterm_ends_a_worker_whose_database_is_silent(database):
    enqueue("test.busy", {"key": "k"})
    with SilentProxy() as proxy:
        silent = worker_processes(
            1, "name=w", "grace_seconds=0.2", "stuck_seconds=600", **external_url(str(proxy.place))
        )
        with silent as [worker]:
            wait_to_hear("started:k:1")
            proxy.swallow(*BOTH)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == EXIT_CODE


@pytest.fixture
def namespace():
    """A network namespace with a link to this one: its name, this end's address, and the name of this end."""
    if not shutil.which("ip"):
        pytest.skip("there is no `ip` command (Debian: iproute2)")
    name, net = f"hv{secrets.token_hex(3)}", f"10.213.{secrets.randbelow(250) + 1}"
    if subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode:
        pytest.skip("network namespaces are not permitted here")
    try:
        for words in (
            f"ip link add {name}a type veth peer name {name}b netns {name}",
            f"ip addr add {net}.1/24 dev {name}a",
            f"ip link set {name}a up",
            f"ip -n {name} addr add {net}.2/24 dev {name}b",
            f"ip -n {name} link set {name}b up",
            f"ip -n {name} link set lo up",
        ):
            done = subprocess.run(words.split(), check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"network links are not permitted here: {done.stderr.strip()}")
        yield name, f"{net}.1", f"{name}a"
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_a_worker_whose_link_goes_down_ends_itself(database, namespace, signals):
    """Nothing acknowledges its bytes any more: only tcp_user_timeout notices, which the URL sets here."""
    name, address, link = namespace
    log = signals / "log"
    job_id = enqueue("test.busy", {"key": "k"}).job_id
    with SilentProxy((address, 0)) as proxy:
        url = f"postgresql://{OWNER_ROLE}@{address}:{proxy.port}/{DATABASE}?tcp_user_timeout=2000&connect_timeout=3"
        env = external_url() | {"HARVESTER_DATABASE_URL": url, "TEST_LOG": str(log)}
        inside = ["ip", "netns", "exec", name, sys.executable]
        worker = start_process("tests.support.worker_process", "stuck_seconds=10", python=inside, **env)
        with ended_at_last([worker]):
            wait_to_hear("started:k:1")
            subprocess.run(["ip", "link", "set", link, "down"], check=True)
            assert worker.wait(60) == EXIT_CODE
    assert history(job_id) == ["pending", "running"]
    assert "HEARTBEAT_FAILED" in log.read_text()
