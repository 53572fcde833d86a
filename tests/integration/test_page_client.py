"""The client for pages: connections are reused, and a server that misbehaves costs neither time nor memory."""

import gzip
import ssl
import threading
import time
import tracemalloc
import zlib
from contextlib import contextmanager
from ipaddress import ip_network
from types import SimpleNamespace

import pytest
from tests.integration.test_guards_http import certificate  # noqa: F401 - a fixture
from tests.support import http_server
from tests.support.guards import LOOPBACK
from tests.support.http_server import HttpServer, says, says_until_the_end
from tests.support.page_server import page_server, resolved_locally
from tests.support.waiting import wait_for

from harvester.guards.egress import EgressPolicy, EgressRefused
from harvester.guards.http import BadHttpAnswer, HttpLimits, InvalidUrl, ResponseTooLarge, TlsNotTrusted
from harvester.guards.inflate import BadGzip, InflateLimitExceeded, TruncatedGzip
from harvester.guards.page_client import RESERVED_HEADERS, USUAL_BYTES, PageClient, TooManyLargeAnswers
from harvester.guards.remote import ConnectionLost, RemoteTimedOut, TransferTooLong
from harvester.kernel.errors import InvalidInput, TransientError

AGENT = "HarvesterTest/1.0 (+https://harvester.test/bot; bot@harvester.test)"
#: Short for servers that fail by silence, long enough for a busy machine otherwise.
IMPATIENT = HttpLimits(connect=5, read=0.3, total=60)
HASTY = HttpLimits(connect=5, read=30, total=0.5)
SMALL = HttpLimits(body_bytes=1_000_000, inflated_bytes=2_000_000)
#: A hundred megabytes in a hundred kilobytes, compressed before anything is measured.
BOMB = says(200, gzip.compress(bytes(100_000_000)), Content_Encoding="gzip")


def client(**options) -> PageClient:
    return PageClient(**{"policy": LOOPBACK, "user_agent": AGENT, **options})


def get(url, *, headers=None, before_send=None, **options):
    own = client(**options)
    try:
        return own.get(url, headers=headers, before_send=before_send)
    finally:
        own.close()


@pytest.fixture
def shops(tmp_path):
    with page_server(tmp_path / "requests") as server:
        yield server


MISBEHAVIOR = [
    (http_server.hangs, IMPATIENT, RemoteTimedOut),
    (http_server.hangs, HASTY, TransferTooLong),
    (http_server.drips, HASTY, TransferTooLong),
    (http_server.drips_headers, HASTY, TransferTooLong),
    (http_server.never_ends, SMALL, ResponseTooLarge),
    (http_server.announces_too_much, SMALL, ResponseTooLarge),
    (http_server.bombs, SMALL, InflateLimitExceeded),
    (http_server.stops_in_the_middle, None, BadHttpAnswer),
    (http_server.resets, None, ConnectionLost),
    (http_server.closes, None, ConnectionLost),
    (http_server.closes_after_a_word, None, BadHttpAnswer),
    (http_server.has_huge_headers, None, BadHttpAnswer),
    (http_server.has_many_headers, None, BadHttpAnswer),
    (http_server.only_hints, None, BadHttpAnswer),
    (http_server.sends_crumbs, None, BadHttpAnswer),
    (http_server.has_a_bad_chunk, None, BadHttpAnswer),
    (http_server.has_an_endless_chunk_header, None, BadHttpAnswer),
    (http_server.has_endless_trailers, None, BadHttpAnswer),
    (http_server.switches_protocols, None, BadHttpAnswer),
    (http_server.has_two_lengths, None, BadHttpAnswer),
    (http_server.talks_of_something_else, None, BadHttpAnswer),
    (says(200, gzip.compress(b"x" * 1000)[:-9], Content_Encoding="gzip"), None, TruncatedGzip),
    (says(200, gzip.compress(b"x" * 1000)[:-4] + b"\0\0\0\0", Content_Encoding="gzip"), None, BadGzip),
    (says(200, b"abc", Content_Encoding="br"), None, BadHttpAnswer),
    (says(200, zlib.compress(b"abc"), Content_Encoding="deflate"), None, BadHttpAnswer),
    (says(200, gzip.compress(gzip.compress(b"abc")), Content_Encoding="gzip, gzip"), None, BadHttpAnswer),
]


@pytest.mark.parametrize(("answer", "limits", "error"), MISBEHAVIOR, ids=lambda value: getattr(value, "__name__", None))
def test_a_server_that_misbehaves_ends_with_its_own_error_and_its_connection_is_not_used_again(answer, limits, error):
    own = client(**({"limits": limits} if limits else {}))
    with HttpServer(answer) as server, pytest.raises(error):
        own.get(server.url)
    assert len(own._idle) == 0


@pytest.mark.parametrize("answer", [http_server.never_ends, BOMB, http_server.has_huge_headers])
def test_an_endless_answer_takes_little_memory(answer):
    with HttpServer(answer) as server:
        tracemalloc.start()
        try:
            with pytest.raises((ResponseTooLarge, InflateLimitExceeded, BadHttpAnswer)):
                get(server.url, limits=SMALL)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()


def test_a_thread_that_waits_for_a_silent_server_ends_by_the_deadline():
    ended = threading.Event()

    def ask(url: str) -> None:
        with pytest.raises(TransientError):
            get(url, limits=HASTY)
        ended.set()

    with HttpServer(http_server.hangs) as server:
        threading.Thread(target=ask, args=(server.url,), daemon=True).start()
        wait_for(ended.is_set, "the end of the thread")


def test_an_answer_is_returned_whatever_its_status(shops):
    shops.behave(pages="gone")
    answer = get(shops.url("shop.home.arpa", "/a?b=c#d"))
    assert (answer.status, answer.body, answer.is_reused) == (404, b"", False)
    [seen] = shops.seen()
    assert (seen.host, seen.path, seen.status) == ("shop.home.arpa", "/a?b=c", 404)


def test_a_page_is_inflated_and_described(shops):
    plain = shops.url("shop.home.arpa", "/product/1")
    answer = get(plain)
    assert answer.body.startswith(b"<html>")
    assert b"<h1>Hammer" in answer.body
    assert (answer.content_type, answer.headers["content-encoding"]) == ("text/html", "gzip")
    assert (answer.url, answer.status) == (plain, 200)
    assert answer.duration >= 0


def test_a_body_that_ends_with_the_connection_is_read():
    own = client()
    with HttpServer(says_until_the_end(b"all of it")) as server:
        assert own.get(server.url).body == b"all of it"
    assert len(own._idle) == 0


def test_a_redirect_is_not_followed(shops):
    shops.behave(pages={"redirect": "https://elsewhere.home.arpa/"})
    answer = get(shops.url("shop.home.arpa"))
    assert (answer.status, answer.headers["location"]) == (302, "https://elsewhere.home.arpa/")
    assert len(shops.seen()) == 1


def test_a_page_that_has_not_changed_is_not_sent_again(shops):
    shops.behave(etag=True)
    own = client()
    first = own.get(shops.url("shop.home.arpa", "/1"))
    again = own.get(shops.url("shop.home.arpa", "/1"), headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert own.get(shops.url("shop.home.arpa", "/2")).is_reused
    own.close()


# -- what is sent -----------------------------------------------------------------------------------------------------


def test_the_same_headers_go_to_every_origin(shop, certificate):  # noqa: F811 - a fixture
    """Like a hop from http to https, which the caller follows."""
    own = client(
        policy=EgressPolicy([ip_network("127.0.0.1/32")], resolver=lambda _: ["127.0.0.1"]),
        headers={"Accept": "text/html", "Accept-Language": "en"},
        tls=ssl.create_default_context(cafile=certificate),
    )
    secure = f"https://shop.test:{shop.port}/page"
    with HttpServer(says(301, Location=secure)) as plain:
        location = own.get(f"http://shop.test:{plain.port}/", headers={"If-None-Match": '"x"'}).headers["location"]
        assert own.get(location).body == b"sealed"
        heard = [plain.heard[0].lower(), shop.heard[0].lower()]
    for request in heard:
        for line in (f"user-agent: {AGENT}", "accept: text/html", "accept-language: en", "accept-encoding: gzip"):
            assert request.count(f"\r\n{line}\r\n".encode().lower()) == 1
    assert b'if-none-match: "x"' in heard[0]
    assert b"if-none-match" not in heard[1]
    own.close()


@pytest.fixture
def shop(certificate):  # noqa: F811 - a fixture
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HttpServer(says(200, b"sealed"), tls=context, answers_a_connection=2) as server:
        yield server


def test_a_connection_with_tls_is_checked_and_reused(shop, certificate):  # noqa: F811 - a fixture
    policy = EgressPolicy([ip_network("127.0.0.1/32")], resolver=lambda _: ["127.0.0.1"])
    own = client(policy=policy, tls=ssl.create_default_context(cafile=certificate))
    url = f"https://shop.test:{shop.port}/"
    assert [own.get(url).is_reused, own.get(url).is_reused] == [False, True]
    with pytest.raises(TlsNotTrusted, match="Hostname mismatch"):
        own.get(f"https://other.test:{shop.port}/")
    with pytest.raises(TlsNotTrusted, match="self-signed"):
        get(url, policy=policy)
    assert len(shop.heard) == 2
    own.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-Evil: 1"},
        {"X-A": "b\nX-Evil: 1"},
        {"X-A": "b\0"},
        {"X-A": "ü"},
        {"X-A": "x" * 5000},
        {"X A": "b"},
        {"X-A:": "b"},
        {"X\r\nEvil": "b"},
        {"": "b"},
        *({name.title(): "b"} for name in sorted(RESERVED_HEADERS)),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_before_anything_is(headers):
    with HttpServer(says(200)) as server:
        with pytest.raises(InvalidInput, match="headers"):
            get(server.url, headers=headers)
        with pytest.raises(InvalidInput, match="headers"):
            client(headers=headers)
    assert server.heard == []


@pytest.mark.parametrize("agent", ["", "a\r\nb: c", "ü"])
def test_a_user_agent_that_cannot_be_sent_is_refused(agent):
    with pytest.raises(InvalidInput, match="user_agent"):
        client(user_agent=agent)


@pytest.mark.parametrize("url", ["", "host/path", "ftp://host/", "http://", "http://a:b@host/", "http://[::1", "a\nb"])
def test_an_address_that_cannot_be_read_is_refused(url):
    with pytest.raises(InvalidUrl):
        get(url)


def test_a_forbidden_address_is_not_even_connected():
    with HttpServer(says(200)) as server, pytest.raises(EgressRefused):
        get(server.url, policy=EgressPolicy())
    assert server.heard == []


# -- connections ------------------------------------------------------------------------------------------------------


def test_requests_to_one_origin_share_a_connection_and_others_do_not(shops):
    own = client()
    for host in ("a.home.arpa", "a.home.arpa", "b.home.arpa", "a.home.arpa", "b.home.arpa"):
        own.get(shops.url(host))
    connections = [(seen.host[0], seen.connection) for seen in shops.seen()]
    assert len(set(connections)) == 2
    assert [host for host, _ in connections] == ["a", "a", "b", "a", "b"]
    own.close()


def test_the_policy_is_asked_again_for_each_new_connection(shops):
    allowed = ["127.0.0.1"]
    policy = EgressPolicy([ip_network("127.0.0.1/32")], resolver=lambda _: list(allowed))
    own = client(policy=policy, most_idle=0)
    own.get(shops.url("a.home.arpa"))
    allowed[0] = "127.0.0.2"
    with pytest.raises(EgressRefused):
        own.get(shops.url("a.home.arpa"))


def test_threads_never_share_a_connection_at_the_same_time(shops):
    own = client()
    problems = []

    def ask(thread: int) -> None:
        try:
            for number in range(25):
                path = f"/{thread}/{number}"
                alone = get(shops.url("a.home.arpa", path)).body if number == 0 else None
                body = own.get(shops.url("a.home.arpa", path)).body
                assert alone in (None, body)
        except Exception as problem:  # noqa: BLE001 - raised by the main thread
            problems.append(problem)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    under_way = [(seen.connection, seen.start, seen.end) for seen in shops.seen()]
    assert len({connection for connection, _, _ in under_way}) <= 6 + 6
    own.close()


def test_a_connection_that_was_idle_for_too_long_is_closed(shops):
    own = client(idle_seconds=0.0)
    assert [own.get(shops.url("a.home.arpa")).is_reused for _ in range(3)] == [False] * 3
    own.get(shops.url("b.home.arpa"))
    assert len(own._idle) <= 1
    own.close()


def test_only_so_many_connections_wait_and_the_oldest_go_first(shops):
    own = client(most_idle=2)
    for host in "abc":
        own.get(shops.url(f"{host}.home.arpa"))
    assert len(own._idle) == 2
    assert [own.get(shops.url(f"{host}.home.arpa")).is_reused for host in "cba"] == [True, True, False]
    own.close()
    assert len(own._idle) == 0


def test_a_connection_that_the_server_has_closed_meanwhile_is_replaced_unseen():
    asked = []
    own = client()
    with HttpServer(says(200, b"one"), says(200, b"two")) as server:
        assert own.get(server.url).body == b"one"
        wait_for(own._idle._waiting[0][2].is_readable, "the end of the connection")
        answer = own.get(server.url, before_send=lambda: asked.append(1))
        assert (answer.body, answer.is_reused, len(server.heard)) == (b"two", False, 2)
        own.close()
    assert asked == [1]


def test_a_request_that_an_idle_connection_swallowed_is_sent_once_more_after_asking_again():
    asked = []
    own = client()
    answers = (says(200, b"one"), http_server.closes, says(200, b"two"))
    with HttpServer(*answers, answers_a_connection=2) as server:
        own.get(server.url)
        answer = own.get(server.url, before_send=lambda: asked.append(1))
        assert (answer.body, answer.is_reused, len(server.heard)) == (b"two", False, 3)
        assert asked == [1, 1]
        own.close()


@pytest.mark.parametrize(
    ("answer", "error"), [(http_server.closes_after_a_word, BadHttpAnswer), (http_server.hangs, RemoteTimedOut)]
)
def test_a_request_that_the_server_may_have_acted_on_is_not_sent_again(answer, error):
    own = client(limits=HttpLimits(read=2))
    with HttpServer(says(200), answer, answers_a_connection=2) as server:
        own.get(server.url)
        with pytest.raises(error):
            own.get(server.url)
        assert len(server.heard) == 2


def test_a_new_connection_that_swallows_a_request_is_not_tried_again():
    with HttpServer(http_server.closes) as server, pytest.raises(ConnectionLost):
        get(server.url)
    assert len(server.heard) == 1


def test_bytes_after_an_answer_are_never_the_answer_to_another_request():
    own = client()
    with HttpServer(http_server.sends_more_than_announced, says(200, b"good")) as server:
        assert own.get(server.url).body == b"hello"
        assert own.get(server.url).body == b"good"
    own.close()


def test_a_server_that_wants_to_close_the_connection_is_obeyed():
    own = client()
    with HttpServer(says(200, b"one", Connection="close")) as server:
        own.get(server.url)
        assert len(own._idle) == 0


# -- before sending ---------------------------------------------------------------------------------------------------


def test_whatever_refuses_a_request_refuses_it_before_a_byte_is_sent(shops):
    own = client()

    def refuse() -> None:
        raise KeyError("not yet")

    for _ in range(3):
        with pytest.raises(KeyError):
            own.get(shops.url("a.home.arpa"), before_send=refuse)
    assert shops.seen() == []
    assert len(own._idle) == 1
    assert own.get(shops.url("a.home.arpa")).is_reused
    own.close()


def test_the_time_before_sending_does_not_count(shops, monkeypatch):
    """Asking for a slot may take longer than the exchange may."""
    waited = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + waited[0])
    monkeypatch.setattr("harvester.guards.http.time", clock)
    monkeypatch.setattr("harvester.guards.page_client.time", clock)

    def wait() -> None:
        waited[0] += 3600

    answer = get(shops.url("a.home.arpa"), before_send=wait)
    assert (answer.status, answer.duration < 3600) == (200, True)


# -- while it waits ---------------------------------------------------------------------------------------------------


@pytest.fixture
def steps():
    """What a call does, and a context that notes when it waits."""
    found = []

    @contextmanager
    def waiting():
        found.append("waits")
        try:
            yield
        finally:
            found.append("goes on")

    return SimpleNamespace(found=found, waiting=waiting, ask=lambda: found.append("asks"))


def test_a_caller_learns_when_only_the_server_is_waited_for(shops, steps):
    """For the connection and for the answer, but not while the caller itself is asked."""
    own = client()
    own.get(shops.url("a.home.arpa"), before_send=steps.ask, waiting=steps.waiting)
    assert steps.found == ["waits", "goes on", "asks", "waits", "goes on"]
    steps.found.clear()
    assert own.get(shops.url("a.home.arpa"), before_send=steps.ask, waiting=steps.waiting).is_reused
    assert steps.found == ["asks", "waits", "goes on"]
    own.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_wait_for_a_silent_server_has_an_end(steps, scheme):
    """With https it is silent before the request can be sent."""
    own = client(limits=HttpLimits(connect=0.3, read=0.3, total=60))
    with HttpServer(http_server.hangs) as server, pytest.raises(RemoteTimedOut):
        own.get(server.url.replace("http", scheme), before_send=steps.ask, waiting=steps.waiting)
    asked = ["asks", "waits", "goes on"] if scheme == "http" else []
    assert steps.found == ["waits", "goes on", *asked]


COMPRESSIBLE = (bytes(range(256)) + bytes(744)) * 3000


@pytest.mark.parametrize(
    "large", [says(200, COMPRESSIBLE), says(200, gzip.compress(COMPRESSIBLE), Content_Encoding="gzip")]
)
def test_large_answers_under_way_share_a_limit_and_usual_ones_do_not_count(large):
    others, ended = threading.Event(), []

    def stops_for_a_while(stream) -> None:
        stream.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 4000000\r\n\r\n" + bytes(3_000_000))
        others.wait(60)
        stream.sendall(bytes(1_000_000))

    own = client(most_held=3_000_000)
    with HttpServer(stops_for_a_while) as slow, HttpServer(large, says(200, bytes(900_000)), large) as other:
        asking = threading.Thread(target=lambda: ended.append(len(own.get(slow.url).body)), daemon=True)
        asking.start()
        wait_for(lambda: own._held._held == 3_000_000 - USUAL_BYTES, "most of the slow answer")
        with pytest.raises(TooManyLargeAnswers):
            own.get(other.url)
        assert len(own.get(other.url).body) == 900_000
        others.set()
        asking.join(60)
        assert own.get(other.url).body == COMPRESSIBLE
    assert (ended, own._held._held) == ([4_000_000], 0)
    own.close()


def test_names_of_shops_lead_to_this_machine_only_while_asked(shops):
    with resolved_locally():
        assert get(shops.url("www.shop.home.arpa")).status == 200
    assert [seen.host for seen in shops.seen("www.shop.home.arpa")] == ["www.shop.home.arpa"]
