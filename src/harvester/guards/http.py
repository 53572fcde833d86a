"""The only HTTP client, with page_client.py, which reuses connections. Nothing else may import a client library.

No proxy, no cookie, nothing from the environment, no redirect unless requested; every hop is checked like the first.
The body is limited both as sent and decompressed. Whatever the status, the answer is returned: only the caller knows
what it means. The errors are those of remote.py, egress.py and inflate.py, and

TransientError
└── BadHttpAnswer           not a complete answer in HTTP
TerminalError
├── TlsNotTrusted           the certificate of the server is not trusted
├── ResponseTooLarge        the body exceeds the limit
├── TooManyRedirects        each answer leads to another address
└── InvalidInput
    └── InvalidUrl          not http or https with a host, or with a password in it
"""

import select
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpcore
import httpx

from harvester.guards.egress import EgressPolicy
from harvester.guards.inflate import BadGzip, InflateLimitExceeded, InflateLimits, TruncatedGzip, inflate
from harvester.guards.remote import ConnectionLost, RemoteTimedOut, TransferTooLong, quote_reply
from harvester.kernel.errors import InvalidInput, TerminalError, TransientError

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Requests with these methods change nothing, so they may be repeated elsewhere.
SAFE_METHODS = frozenset({"GET", "HEAD"})
OUR_HEADERS = {"user-agent": "harvester", "accept-encoding": "gzip", "connection": "close"}


class BadHttpAnswer(TransientError):
    """The server did not send a complete answer in HTTP."""

    code = "BAD_HTTP_ANSWER"


class TlsNotTrusted(TerminalError):
    """The certificate of the server is not trusted."""

    code = "TLS_NOT_TRUSTED"


class ResponseTooLarge(TerminalError):
    """The body exceeds the limit."""

    code = "RESPONSE_TOO_LARGE"


class TooManyRedirects(TerminalError):
    """Each answer leads to another address."""

    code = "TOO_MANY_REDIRECTS"


class InvalidUrl(InvalidInput):
    """The address is not a usable URL."""

    code = "INVALID_URL"


@dataclass(frozen=True, kw_only=True)
class HttpLimits:
    """Limits of time and size.

    Attributes:
        connect: seconds for the connection, and again for TLS.
        read: seconds without data.
        total: seconds for all hops together.
        body_bytes: of a body as sent.
        inflated_bytes: of a decompressed body.
    """

    connect: float = 10.0
    read: float = 30.0
    total: float = 120.0
    body_bytes: int = 10 * 1024 * 1024
    inflated_bytes: int = 50 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    """The answer of a server.

    Attributes:
        url: the final one, after all hops.
        status: the status code.
        headers: by name in lower case.
        body: decompressed.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def request(
    method: str,
    url: str,
    *,
    policy: EgressPolicy,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
    limits: HttpLimits | None = None,
    redirects: int = 0,
    tls: ssl.SSLContext | None = None,
) -> HttpAnswer:
    """Send a request, and follow redirects if requested and the method is safe.

    Args:
        method: GET, POST and so on.
        url: http or https.
        policy: where connections may go.
        headers: of the caller; they are sent to the first origin only.
        content: the body.
        limits: of time and size.
        redirects: how many to follow, five at most.
        tls: which certificates to trust, if not those of the public authorities.
    """
    first = target = checked_url(url)
    callers = {name.lower(): value for name, value in (headers or {}).items()}
    exchange = _Exchange(policy, limits or HttpLimits(), tls or public_authorities())
    for left in range(min(redirects, MOST_REDIRECTS), -1, -1):
        # Any header of the caller may contain credentials, so none of them is sent to another origin.
        is_same = (first.scheme, first.host, first.port) == (target.scheme, target.host, target.port)
        answer = exchange.send(method, target, {**OUR_HEADERS, **(callers if is_same else {})}, content)
        onward = answer.headers.get("location") if answer.status in REDIRECTS else None
        if onward is None or not redirects or method not in SAFE_METHODS:
            return answer
        if left:
            target = checked_url(onward, target)
    raise TooManyRedirects(f"{first.host} keeps redirecting; {redirects} redirects were followed.")


class _Exchange:
    """All hops of one request, with one time limit."""

    def __init__(self, policy: EgressPolicy, limits: HttpLimits, tls: ssl.SSLContext) -> None:
        self._limits, self._tls = limits, tls
        self._deadline = Deadline(limits.total)
        self._network = GuardedNetwork(policy, self._deadline)

    def send(self, method: str, url: httpx.URL, headers: Mapping[str, str], content: bytes) -> HttpAnswer:
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        patience = {"connect": self._limits.connect, "read": self._limits.read, "write": self._limits.read}
        options: dict[str, Any] = {"headers": headers, "content": content or None, "extensions": {"timeout": patience}}
        with (
            translated_errors(url.host, self._deadline),
            httpcore.ConnectionPool(ssl_context=self._tls, network_backend=self._network) as pool,
            pool.stream(method, target, **options) as answer,
        ):
            read = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
            body = read_body(answer.iter_stream(), read.get("content-encoding", ""), self._limits)
        return HttpAnswer(url=str(url), status=answer.status, headers=read, body=body)


def read_body(
    blocks: Iterable[bytes], encoding: str, limits: HttpLimits, grow: Callable[[int], object] | None = None
) -> bytes:
    """Return a body, decompressed. Both sizes are limited while it is read.

    `grow` is called with the size of each piece that is held; what it raises ends the reading.
    """
    if encoding.lower() not in ("", "identity", "gzip", "x-gzip"):
        raise BadHttpAnswer(f"The answer is encoded as {encoding[:50]!r}, which was not requested.")
    pieces = _counted(blocks, limits.body_bytes)
    if encoding.lower() not in ("", "identity"):
        pieces = inflate(pieces, limits=InflateLimits(output_bytes=limits.inflated_bytes))
    held = []
    try:
        for piece in pieces:
            if grow:
                grow(len(piece))
            held.append(piece)
    except InflateLimitExceeded:
        most = limits.inflated_bytes
        raise InflateLimitExceeded(f"The answer decompresses to more than {most} bytes and was rejected.") from None
    except TruncatedGzip:
        raise TruncatedGzip("The answer is compressed and ends in the middle. None of it is used.") from None
    except BadGzip:
        raise BadGzip("The answer is compressed and cannot be decompressed. None of it is used.") from None
    return b"".join(held)


def _counted(blocks: Iterable[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for block in blocks:
        size += len(block)
        if size > most:
            raise ResponseTooLarge(f"The answer has more than {most} bytes and was rejected.")
        yield block


class Deadline:
    """The end of a whole exchange."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        """Leave out time that was not part of the exchange."""
        self._end += seconds

    def share(self, seconds: float | None = None) -> float:
        """Return the seconds that the next step may take."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TransferTooLong(f"The exchange took longer than {self._seconds:g} s and was ended.")
        return left if seconds is None else min(seconds, left)


@contextmanager
def translated_errors(host: str, deadline: Deadline) -> Iterator[None]:
    """Raise the library's errors as Harvester's own."""
    try:
        yield
    except httpcore.TimeoutException:
        # If the total time is over, this raises the more exact error.
        deadline.share()
        raise RemoteTimedOut(f"{host} stopped responding. It will be retried later.") from None
    except httpcore.NetworkError as error:
        raise ConnectionLost(f"The connection to {host} broke: {error}. It will be retried later.") from None
    except httpcore.ProtocolError as error:
        raise BadHttpAnswer(f"{host} did not send a complete answer: {quote_reply(str(error))}.") from None


class GuardedNetwork(httpcore.NetworkBackend):
    """Connects only to addresses that the policy has checked."""

    def __init__(self, policy: EgressPolicy, deadline: Deadline) -> None:
        self._policy, self._deadline = policy, deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the library's own signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the library's own signature
    ) -> "GuardedStream":
        return GuardedStream(self._policy.connect(host, port, self._deadline.share(timeout)), self._deadline)


class GuardedStream(httpcore.NetworkStream):
    """A connection whose steps all end by a deadline; the next exchange over it sets its own."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection, self.deadline = connection, deadline

    def is_readable(self) -> bool:
        """Whether something has arrived, or the other side has closed it."""
        waiting = select.poll()
        waiting.register(self._connection, select.POLLIN)
        return bool(waiting.poll(0))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._patient(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return self._connection.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            # The library's end marker. On a broken connection, sending it would consume the error with the reason.
            return
        with self._patient(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            self._connection.sendall(buffer)

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "GuardedStream":
        try:
            with self._patient(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
                sealed = ssl_context.wrap_socket(self._connection, server_hostname=server_hostname)
                return GuardedStream(sealed, self.deadline)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _patient(self, seconds: float | None, timed_out: type[Exception], failed: type[Exception]) -> Iterator[None]:
        """Raise the library's own errors, so that it still reads what the server sent before the connection broke."""
        self._connection.settimeout(self.deadline.share(seconds))
        try:
            yield
        except TimeoutError:
            raise timed_out from None
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message
            raise TlsNotTrusted(f"The certificate of the server is not trusted: {why}. Nothing was sent.") from None
        except OSError as error:
            raise failed(error.strerror or type(error).__name__) from None


def checked_url(url: str, base: httpx.URL | None = None) -> httpx.URL:
    try:
        target = base.join(url) if base else httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise InvalidUrl("The address cannot be read; it must look like https://host/path.") from None
    if target.scheme not in ("http", "https") or not target.host:
        raise InvalidUrl(f"The address begins with {target.scheme or 'no scheme'!r}; it must be http or https.")
    if target.userinfo:
        raise InvalidUrl("The address contains a user name or a password; no request was sent.")
    return target


@cache
def public_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
