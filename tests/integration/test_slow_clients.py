"""Clients that send or read slowly, or send invalid requests: the portal's worker does not wait for them."""

import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from gunicorn.workers.gthread import TConn
from tests.support.waiting import wait_for

from harvester.cli import portal_worker
from harvester.cli.portal_worker import Refused, length_of
from harvester.kernel.config import Config

ROOT = Path(__file__).parents[2]
THREADS = 2
#: Only ends a test that hangs.
PATIENCE = 60
WORKER = "harvester.cli.portal_worker.PortalWorker"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Served:
    """The server as one test has it.

    Attributes:
        address: where it listens.
        gate: a file; `wait` is answered when it is there.
        log: what the server has logged, from `begun` on during this test.
    """

    address: tuple[str, int]
    gate: Path
    log: Path
    begun: int

    @property
    def wait(self) -> bytes:
        return b"GET /wait?%s HTTP/1.1\r\nHost: x\r\n\r\n" % self.gate.name.encode()

    @property
    def logged(self) -> str:
        return self.log.read_text()[self.begun :]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE)

    def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer, from a connection of its own."""
        with self.connect() as client:
            client.sendall(request)
            return read_answer(client)


def read_answer(client: socket.socket) -> tuple[int, dict[str, str], bytes]:
    with client.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, stream.read(int(headers["content-length"]))


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[tuple[tuple[str, int], Path]]:
    """The portal's worker with two threads, in a process of its own, in front of an application that can wait."""
    place = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        command = [sys.executable, "-m", "gunicorn", "--bind", f"fd://{listener.fileno()}", "--threads", str(THREADS)]
        command += ["--worker-class", WORKER, "--no-control-socket", "--no-sendfile", "--graceful-timeout", "1"]
        command += ["tests.support.gate_app:application"]
        environment = {**os.environ, "GATES": str(place), "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                command, env=environment, cwd=ROOT, pass_fds=[listener.fileno()], stderr=log, stdout=log
            )
    try:
        yield address, place
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture
def served(server) -> Iterator[Served]:
    address, place = server
    log = place / "log"
    made = Served(address, place / uuid4().hex, log, len(log.read_text()))
    assert made.ask(HEALTH)[0] == 200
    yield made
    made.gate.write_text("open")


def test_clients_that_drip_take_no_thread(served):
    """Eight of them, four times as many as threads, in the middle of the head and in the middle of the body."""
    begun = [
        b"",
        b"G",
        b"GET /echo HTTP/1.1\r\nHost: x\r\n",
        b"GET /echo HTTP/1.1\r\nHost: x\r\nX-A: ",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 000000000000000000000100\r\n\r\nabc",
        b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n",
    ]
    with ExitStack() as slow:
        clients = [slow.enter_context(served.connect()) for _ in begun]
        for client, part in zip(clients, begun, strict=True):
            client.sendall(part)
        for _ in range(3):
            assert served.ask(HEALTH)[0] == 200
            assert served.ask(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")[2] == b"0"
            for client in clients[3:6]:
                client.sendall(b"x")
        # A client that continues in time is answered.
        clients[5].sendall(b"y" * 94)
        assert read_answer(clients[5])[2] == b"100"


def test_a_request_that_was_sent_in_pieces_is_answered_and_the_next_on_its_connection_too(served):
    with served.connect() as client:
        for part in (b"POST /ec", b"ho HTTP/1.1\r\nHost: x\r\nContent-Le", b"ngth: 5\r\n\r\nab", b"cde"):
            client.sendall(part)
        assert read_answer(client)[2] == b"5"
        # The next two at once, the last of them not whole yet.
        client.sendall(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\n")
        assert read_answer(client)[2] == b"0"
        assert served.ask(HEALTH)[0] == 200
        client.sendall(b"Host: x\r\n\r\n")
        assert read_answer(client)[2] == b"0"


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(served):
    with served.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert client.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"abc")
        answer = b""
        while not answer.endswith(b"\r\n\r\n3"):
            answer += client.recv(1024)
    assert b"200 OK" in answer


def test_health_is_answered_while_every_thread_is_busy_and_requests_wait(served):
    with ExitStack() as waiting:
        clients = [waiting.enter_context(served.connect()) for _ in range(THREADS + 20)]
        for client in clients:
            client.sendall(served.wait)
        for _ in range(3):
            assert served.ask(HEALTH)[2] == b"alive"
        served.gate.write_text("open")
        assert [read_answer(client)[0] for client in clients] == [200] * len(clients)


def test_when_too_many_requests_wait_more_are_refused_at_once_and_health_is_answered(served):
    with ExitStack() as waiting:
        clients = [waiting.enter_context(served.connect()) for _ in range(portal_worker.MOST_QUEUED)]
        for client in clients:
            client.sendall(served.wait)
        status, headers, body = wait_for(lambda: refused(served), "a refusal")
        assert (status, headers["content-type"], headers["retry-after"]) == (503, "application/problem+json", "1")
        assert json.loads(body)["code"] == "SERVICE_UNAVAILABLE"
        assert served.ask(HEALTH)[2] == b"alive"
        served.gate.write_text("open")
        assert read_answer(clients[0])[0] == 200


def test_requests_that_wait_have_a_limit_of_bytes_too(served):
    """Each of these is as large as a request may be; their number alone would allow more than a gigabyte."""
    size = portal_worker.LARGEST_BODY
    head = b"POST /wait?%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (served.gate.name.encode(), size)
    with ExitStack() as waiting:
        clients = [waiting.enter_context(served.connect()) for _ in range(portal_worker.MOST_QUEUED_BYTES // size)]
        for client in clients:
            client.sendall(head + bytes(size))
        status, _, body = read_answer(clients[-1])
        assert (status, json.loads(body)["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert served.ask(HEALTH)[2] == b"alive"
        served.gate.write_text("open")
        assert [read_answer(client)[0] for client in clients[:-1]] == [200] * len(clients[:-1])


def test_a_body_that_the_portal_refuses_with_a_reason_reaches_it(settings):
    head = b"POST /imports/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (settings.FILE_UPLOAD_MAX_MEMORY_SIZE + 1)
    assert length_of(head) == len(head) + settings.FILE_UPLOAD_MAX_MEMORY_SIZE + 1


def refused(served: Served) -> tuple[int, dict[str, str], bytes] | None:
    answer = served.ask(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n") if queue_is_full(served) else None
    return answer if answer and answer[0] == 503 else None


def queue_is_full(served: Served) -> bool:
    """Asked by a request that does not wait for the threads: what is refused is refused before that."""
    with served.connect() as client:
        client.sendall(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        client.settimeout(0.5)
        try:
            return client.recv(12) == b"HTTP/1.1 503"
        except TimeoutError:
            return False


def test_more_connections_than_are_kept_do_not_keep_health_from_being_asked(served):
    with ExitStack() as idle:
        for _ in range(portal_worker.MOST_ARRIVING + 50):
            idle.enter_context(served.connect()).sendall(b"G")
        assert served.ask(HEALTH)[2] == b"alive"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /echo?q=caf\xc3\xa9&key=canary-71 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /echo?key=canary-71 HTTP/9.9\r\nHost: x\r\n\r\n", 400),
        (b"G(T /echo?key=canary-71 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /echo?key=canary-71 HTTP/1.1\r\nHost x canary-71\r\n\r\n", 400),
        (b"GET /" + b"canary-71" * 1000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /echo?key=canary-71 HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
        (b"POST /echo?key=canary-71 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /echo?key=canary-71 HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"POST /echo?key=canary-71 HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"POST /echo?key=canary-71 HTTP/1.1\r\nContent-Length: +5\r\n\r\n", 400),
    ],
    ids=[
        *("not ASCII", "version", "method", "header", "long line", "long head", "chunks", "long body", "two lengths"),
        "no length",
    ],
)
def test_what_is_no_request_gets_a_problem_and_no_query_is_logged(served, request_bytes, status):
    got, headers, body = served.ask(request_bytes)
    assert (got, headers["content-type"]) == (status, "application/problem+json")
    assert json.loads(body)["status"] == status
    assert json.loads(body)["request_id"] == headers["x-request-id"]
    assert headers["x-request-id"] in served.logged
    assert "canary-71" not in body.decode() + served.logged
    assert "REQUEST_REFUSED" in served.logged


def test_silent_and_vanished_clients_leave_no_traceback(served):
    for begun in (b"", b"GET", b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n"):
        with served.connect() as client:
            client.sendall(begun)
    assert served.ask(HEALTH)[0] == 200
    assert "Traceback" not in served.logged


@pytest.mark.parametrize("length", [0, 1, 7])
def test_the_length_of_a_request_is_its_head_and_its_body(length):
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 00%d\r\n\r\n" % length
    assert length_of(head) == len(head) + length
    assert all(length_of(head[:end]) is None for end in range(len(head)))


@pytest.mark.parametrize("value", [b"", b"-1", b"1.0", b"0x10", b"1 2", b"\xb2", b"9" * 5000])
def test_a_length_that_is_no_number_is_refused(value):
    with pytest.raises(Refused):
        length_of(b"POST / HTTP/1.1\r\nContent-Length:" + value + b"\r\n\r\n")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def pair(monkeypatch):
    """A connection as a thread has it, its other end, and the clock."""
    clock = Clock()
    monkeypatch.setattr(portal_worker, "time", clock)
    ours, theirs = socket.socketpair()
    with portal_worker.ClientSocket(fileno=ours.detach()) as connection, theirs:
        connection.begin()
        yield connection, theirs, clock


def test_a_client_that_reads_too_slowly_loses_its_thread(pair, monkeypatch):
    """It takes 1 KB every ten seconds: some 30 s are allowed to all, and more only to who reads at a pace."""
    connection, _theirs, clock = pair
    sends = []

    def send(data, _flags=0):
        clock.now += 10
        sends.append(clock.now)
        return min(1024, len(data))

    monkeypatch.setattr(connection, "send", send)
    with pytest.raises(ConnectionResetError):
        connection.sendall(bytes(2**20))
    assert len(sends) == 4, "30 s are over after the third, and 4 KB are worth an eighth of a second"


def test_a_client_that_reads_at_a_pace_may_take_its_time(pair, monkeypatch):
    connection, _theirs, clock = pair
    total = []

    def send(data, _flags=0):
        clock.now += 1
        total.append(min(64 * 1024, len(data)))
        return total[-1]

    monkeypatch.setattr(connection, "send", send)
    connection.sendall(bytes(64 * 2**20))
    assert sum(total) == 64 * 2**20
    assert clock.now > 2000


def test_a_thread_waits_for_no_bytes_that_should_be_there(pair):
    connection, _theirs, clock = pair
    clock.now += portal_worker.HEAD_SECONDS
    with pytest.raises(ConnectionResetError):
        connection.recv(10)


def test_a_request_that_does_not_arrive_in_time_is_dropped_and_so_is_one_whose_end_nobody_notices(pair):
    connection, _theirs, clock = pair
    worker = portal_worker.PortalWorker.__new__(portal_worker.PortalWorker)
    worker.poller, worker.alive, worker.nr_conns = selectors.DefaultSelector(), True, 2
    worker._arriving, worker._lingering, worker._arriving_bytes = {}, {}, 0
    ours, other = socket.socketpair()
    with worker.poller, other:
        arriving = TConn(None, connection, ("192.0.2.1", 1), None)
        ending = TConn(None, portal_worker.ClientSocket(fileno=ours.detach()), ("192.0.2.1", 2), None)
        worker._arrive(arriving, b"GET")
        worker._linger(ending)
        worker.murder_pending()
        assert (worker.nr_conns, list(worker._arriving), list(worker._lingering)) == (2, [arriving], [ending])
        clock.now += portal_worker.LINGER_SECONDS + 0.1
        worker.murder_pending()
        assert (worker.nr_conns, list(worker._arriving), list(worker._lingering)) == (1, [arriving], [])
        clock.now += portal_worker.HEAD_SECONDS
        worker.murder_pending()
        assert (worker.nr_conns, worker._arriving, worker._arriving_bytes) == (0, {}, 0)


def test_a_connection_that_was_closed_to_make_room_is_counted_once(pair):
    connection, _theirs, _clock = pair
    worker = portal_worker.PortalWorker.__new__(portal_worker.PortalWorker)
    worker.poller, worker.alive, worker.nr_conns = selectors.DefaultSelector(), True, 2
    worker._arriving, worker._lingering, worker._arriving_bytes = {}, {}, 0
    ours, other = socket.socketpair()
    with worker.poller, other:
        arriving = TConn(None, connection, ("192.0.2.1", 1), None)
        ending = TConn(None, portal_worker.ClientSocket(fileno=ours.detach()), ("192.0.2.1", 2), None)
        worker._arrive(arriving, b"GET")
        worker._linger(ending)
        for conn, late in ((arriving, worker._read), (ending, worker._drain)):
            worker._close(conn)
            late(conn)
        assert worker.nr_conns == 0


def test_the_portal_is_served_by_this_worker():
    from harvester.cli.portal_server import PortalServer
    from harvester.cli.signals import StopRequest

    with socket.socket() as taken:
        server = PortalServer(Config.from_env({}), taken, StopRequest())
    assert server.cfg.worker_class is portal_worker.PortalWorker
    assert server.cfg.sendfile is False
