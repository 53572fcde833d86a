"""What tests of politeness rely on: the local shops behave as they should, and their log is measured correctly."""

import socket

import pytest
from tests.support.guards import LOOPBACK
from tests.support.page_server import Seen, page_server, politeness
from tests.support.workers import worker_processes

from harvester.guards.http import HttpLimits
from harvester.guards.page_client import PageClient
from harvester.guards.remote import ConnectionLost, TransferTooLong

SHOP = "shop.home.arpa"


@pytest.fixture
def shops(tmp_path):
    with page_server(tmp_path / "requests") as server:
        yield server


@pytest.fixture
def client():
    made = PageClient(policy=LOOPBACK, user_agent="test", limits=HttpLimits(total=1.0))
    yield made
    made.close()


@pytest.fixture
def patient():
    made = PageClient(policy=LOOPBACK, user_agent="test")
    yield made
    made.close()


def test_each_shop_behaves_as_it_was_set_to(shops, patient):
    shops.behave("busy.home.arpa", pages="busy", retry_after="120")
    shops.behave("gone.home.arpa", pages="gone")
    shops.behave("moved.home.arpa", pages={"redirect": "/elsewhere"})
    answers = {name: patient.get(shops.url(f"{name}.home.arpa")) for name in ("busy", "gone", "moved", "other")}
    assert {name: answer.status for name, answer in answers.items()} == {
        "busy": 429,
        "gone": 404,
        "moved": 302,
        "other": 200,
    }
    assert answers["busy"].headers["retry-after"] == "120"
    shops.behave("gone.home.arpa", pages="ok")
    assert patient.get(shops.url("gone.home.arpa")).status == 200


@pytest.mark.parametrize(
    ("robots", "status", "body"),
    [("missing", 404, b""), ("broken", 500, b""), ("User-agent: *\nDisallow: /", 200, b"User-agent: *\nDisallow: /")],
)
def test_a_shop_has_the_robots_file_that_was_set(shops, patient, robots, status, body):
    shops.behave(robots=robots)
    answer = patient.get(shops.url(SHOP, "/robots.txt"))
    assert (answer.status, answer.body) == (status, body)
    assert patient.get(shops.url(SHOP)).status == 200


def test_pages_are_different_and_as_long_as_was_set(shops, patient):
    shops.behave(page_bytes=[150_000, 300_000])
    bodies = {patient.get(shops.url(SHOP, f"/{number}")).body for number in range(20)}
    assert len(bodies) == 20
    assert all(145_000 < len(body) < 301_000 for body in bodies)
    assert patient.get(shops.url(SHOP, "/1")).body in bodies


def test_a_compressed_page_is_the_same_as_a_plain_one(shops, patient):
    with socket.create_connection(("127.0.0.1", shops.port)) as plain:
        plain.sendall(f"GET /1 HTTP/1.1\r\nHost: {SHOP}\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while block := plain.recv(65536):
            received += block
    assert received.partition(b"\r\n\r\n")[2] == patient.get(shops.url(SHOP, "/1")).body


def test_requests_without_an_answer_are_noted_too(shops, client):
    for pages, error in (("hang", TransferTooLong), ("drip", TransferTooLong), ("close", ConnectionLost)):
        shops.behave(pages=pages)
        with pytest.raises(error):
            client.get(shops.url(SHOP, f"/{pages}"))
    seen = shops.seen(SHOP)
    assert [(request.path, request.status) for request in seen] == [("/hang", 0), ("/drip", 0), ("/close", 0)]
    assert all(request.headers["user-agent"] == "test" for request in seen)


def test_a_misspelled_behavior_is_refused(shops):
    with pytest.raises(ValueError, match="pagse"):
        shops.behave(pagse="ok")


def test_forked_workers_resolve_the_names_of_shops(database, shops):
    """Only whether they start; what they fetch is tested with the pages."""
    with worker_processes(1, "until_idle=true", TEST_LOCAL_NAMES="1") as [worker]:
        assert worker.wait(120) == 0


def seen(host: str, start: float, end: float | None) -> Seen:
    return Seen(host=host, path="/", headers={}, connection=1, start=start, end=end, status=200)


def test_the_log_is_measured_per_domain():
    log = [
        *(seen("a.shop", start, start + 0.5) for start in (0.0, 2.0, 6.0)),
        *(seen("b.shop", start, end) for start, end in ((0.0, 3.0), (2.0, None), (2.5, 2.6))),
        seen("www.b.shop", 1.9, 2.0),
        seen("c.shop", 1.0, 2.0),
    ]
    measured = politeness(log, 2.0, key=lambda host: host.removeprefix("www."))
    assert {domain: (one.requests, round(one.least_gap, 6), one.most_at_once) for domain, one in measured.items()} == {
        "a.shop": (3, 2.0, 1),
        "b.shop": (4, 0.1, 3),
        "c.shop": (1, float("inf"), 1),
    }
    assert (measured["a.shop"].budget_used, measured["c.shop"].budget_used) == (2 * 2.0 / 6.0, 1.0)
