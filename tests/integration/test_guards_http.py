"""The HTTP client against servers that misbehave, each with its own error."""

import gzip
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support import http_server
from tests.support.guards import LOOPBACK
from tests.support.http_server import HttpServer, says

from harvester.guards.egress import ConnectionRefused, EgressPolicy, EgressRefused
from harvester.guards.http import (
    BadHttpAnswer,
    HttpLimits,
    InvalidUrl,
    ResponseTooLarge,
    TlsNotTrusted,
    TooManyRedirects,
    request,
)
from harvester.guards.inflate import InflateLimitExceeded, TruncatedGzip
from harvester.guards.remote import ConnectionLost, RemoteTimedOut, TransferTooLong

#: Short for servers that fail by silence, long enough for a busy machine otherwise.
IMPATIENT = HttpLimits(connect=5, read=0.3, total=60)
HASTY = HttpLimits(connect=5, read=30, total=0.5)
SMALL = HttpLimits(body_bytes=1_000_000, inflated_bytes=2_000_000)


def get(url, **options):
    return request("GET", url, **{"policy": LOOPBACK, **options})


@pytest.mark.parametrize(
    ("answer", "limits", "error"),
    [
        (http_server.hangs, IMPATIENT, RemoteTimedOut),
        (http_server.drips, HASTY, TransferTooLong),
        (http_server.drips_headers, HASTY, TransferTooLong),
        (http_server.never_ends, SMALL, ResponseTooLarge),
        (http_server.stops_in_the_middle, None, BadHttpAnswer),
        (http_server.resets, None, ConnectionLost),
        (http_server.has_huge_headers, None, BadHttpAnswer),
        (http_server.talks_of_something_else, None, BadHttpAnswer),
        (http_server.bombs, SMALL, InflateLimitExceeded),
        (says(200, gzip.compress(b"x" * 1000)[:-9], Content_Encoding="gzip"), None, TruncatedGzip),
        (says(200, b"abc", Content_Encoding="br"), None, BadHttpAnswer),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_server_that_misbehaves_ends_with_its_own_error(answer, limits, error):
    with HttpServer(answer) as server, pytest.raises(error):
        get(server.url, limits=limits)


def test_an_answer_is_returned_whatever_its_status():
    with HttpServer(says(404, b"no", X_Why="gone")) as server:
        answer = request("POST", f"{server.url}/a?b=c", policy=LOOPBACK, content=b"hello", headers={"X-Own": "1"})
    assert (answer.status, answer.body, answer.headers["x-why"]) == (404, b"no", "gone")
    [heard] = server.heard
    assert heard.startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert heard.endswith(b"\r\n\r\nhello")
    assert b"x-own: 1" in heard
    assert f"Host: 127.0.0.1:{server.port}".encode() in heard


def test_a_compressed_answer_is_inflated():
    with HttpServer(says(200, gzip.compress(b"inside" * 100), Content_Encoding="gzip")) as server:
        assert get(server.url).body == b"inside" * 100


def test_a_forbidden_address_is_not_even_connected():
    with HttpServer(says(200)) as server, pytest.raises(EgressRefused):
        get(server.url, policy=EgressPolicy())
    assert server.heard == []


def test_the_address_that_was_judged_is_the_one_that_is_connected():
    asked = []

    def changes_its_mind(name):
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    policy = EgressPolicy([ip_network("127.0.0.1/32")], resolver=changes_its_mind)
    with HttpServer(says(200, b"here")) as server:
        assert get(f"http://shop.test:{server.port}/", policy=policy).body == b"here"
    assert asked == ["shop.test"]
    assert b"Host: shop.test:" in server.heard[0]


def test_a_redirect_is_not_followed_unless_asked_for():
    with HttpServer(says(302, Location="/next")) as server:
        assert get(server.url).status == 302
        assert len(server.heard) == 1


def test_a_redirect_to_a_private_address_is_refused():
    policy = EgressPolicy([ip_network("127.0.0.1/32")])
    with (
        HttpServer(says(302, Location="http://127.0.0.2/secret")) as server,
        pytest.raises(EgressRefused, match=r"127\.0\.0\.2"),
    ):
        get(server.url, policy=policy, redirects=5)


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/", "http://user:pass@127.0.0.1/", "http://[::1", "file:///etc"])
def test_a_redirect_to_an_odd_address_is_refused(location):
    with HttpServer(says(302, Location=location)) as server, pytest.raises(InvalidUrl):
        get(server.url, redirects=5)


def test_redirects_end():
    with HttpServer(says(302, Location="/again")) as server:
        with pytest.raises(TooManyRedirects):
            get(server.url, redirects=99)
        assert len(server.heard) == 6


def test_what_changes_something_is_never_sent_again():
    with HttpServer(says(307, Location="/next")) as server:
        assert request("POST", server.url, policy=LOOPBACK, content=b"x", redirects=5).status == 307
        assert len(server.heard) == 1


def test_headers_of_the_caller_stay_with_the_first_host():
    headers = {"Authorization": "Bearer abc", "Cookie": "a=b", "X-Key": "k"}
    with HttpServer(says(200, b"end")) as other:
        onward = (says(302, Location="/same"), says(302, Location=f"http://127.0.0.1:{other.port}/"))
        with HttpServer(*onward) as server:
            assert get(server.url, headers=headers, redirects=5).body == b"end"
    assert all(b"Bearer abc" in heard for heard in server.heard)
    assert len(server.heard) == 2
    assert not [name for name in (b"authorization", b"cookie", b"x-key") if name in other.heard[0].lower()]


def test_cookies_are_not_kept():
    with HttpServer(says(302, Location="/next", Set_Cookie="a=b"), says(200)) as server:
        get(server.url, redirects=1)
    assert b"cookie" not in server.heard[1].lower()


def test_proxies_of_the_environment_do_not_count(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with HttpServer(says(200, b"direct")) as server:
        assert get(server.url).body == b"direct"


def test_a_port_without_a_listener_is_a_refused_connection():
    with HttpServer(says(200)) as server:
        pass
    with pytest.raises(ConnectionRefused):
        get(server.url)


@pytest.mark.parametrize("url", ["", "host/path", "ftp://host/", "http://", "http://a:b@host/", "http://[::1", "a\nb"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidUrl):
        get(url)


@pytest.fixture
def certificate(tmp_path):
    """A certificate of our own for shop.test, and whom to trust for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "shop.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return pem


@pytest.fixture
def shop(certificate):
    """A server with TLS that keeps which names it was asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    names = []
    context.sni_callback = lambda _, name, __: names.append(name)
    with HttpServer(says(200, b"sealed"), tls=context) as server:
        server.names = names
        yield server


def to_this_machine(name):
    return ["127.0.0.1"]


def test_tls_is_checked_against_the_name_and_not_the_address(shop, certificate):
    policy = EgressPolicy([ip_network("127.0.0.1/32")], resolver=to_this_machine)
    trusting = ssl.create_default_context(cafile=certificate)
    assert get(f"https://shop.test:{shop.port}/", policy=policy, tls=trusting).body == b"sealed"
    assert shop.names == ["shop.test"]
    with pytest.raises(TlsNotTrusted, match="Hostname mismatch"):
        get(f"https://other.test:{shop.port}/", policy=policy, tls=trusting)
    assert len(shop.heard) == 1


def test_a_certificate_of_nobody_is_not_trusted(shop):
    policy = EgressPolicy([ip_network("127.0.0.1/32")], resolver=to_this_machine)
    with pytest.raises(TlsNotTrusted, match="self-signed"):
        get(f"https://shop.test:{shop.port}/", policy=policy)
    assert shop.heard == []
