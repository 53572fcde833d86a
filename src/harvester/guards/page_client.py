"""An HTTP client for pages: many GET requests to many sites, over connections that are reused.

One client serves all threads of a process. Each exchange has one time limit, from connecting to the last byte, and
every part of an answer has a limit of its own: interim answers, headers, chunks, the body as sent and decompressed.
All answers together have one too, because many slow ones may be under way. Redirects are not followed, and cookies are
not kept. The errors are those of http.py, and

TransientError
└── TooManyLargeAnswers     the large answers under way exceed what may be held at once
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from ssl import SSLContext

import h11
import httpcore
import httpx

from harvester.guards.egress import EgressPolicy
from harvester.guards.http import (
    BadHttpAnswer,
    Deadline,
    GuardedNetwork,
    GuardedStream,
    HttpLimits,
    ResponseTooLarge,
    checked_url,
    public_authorities,
    read_body,
    translated_errors,
)
from harvester.guards.remote import quote_reply
from harvester.kernel.errors import InvalidInput, TransientError

PAGE_LIMITS = HttpLimits(
    connect=10.0, read=30.0, total=30.0, body_bytes=10 * 1024 * 1024, inflated_bytes=10 * 1024 * 1024
)
#: Servers close connections that are idle for longer: Apache after 5 s, nginx after 75 s.
IDLE_SECONDS = 15.0
#: Idle connections of all origins together; each costs a file descriptor and, with TLS, about 20 KB.
MOST_IDLE = 256
#: Those of real shops have 20 to 60 headers in 2 to 10 KB.
MOST_HEADERS = 200
LONGEST_HEADERS = 64 * 1024
#: Answers like 103 Early Hints before the real one.
MOST_INTERIM = 10
#: A page in chunks of a few bytes each only costs time.
MOST_CHUNKS = 100_000
READ_BYTES = 64 * 1024
#: Nearly all pages are smaller, decompressed.
USUAL_BYTES = 1024 * 1024
#: What larger answers under way may hold together beyond that: a dozen of the largest.
MOST_HELD_BYTES = 128 * 1024 * 1024
#: The client sets these itself, or they are credentials, or they change how the connection is used.
RESERVED_HEADERS = frozenset(
    {
        *("accept-encoding", "authorization", "connection", "content-length", "cookie", "expect", "host", "keep-alive"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
    }
)
#: Scheme, host, and port if it is not the usual one.
Origin = tuple[str, str, int | None]
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e\t]{0,4000}", re.ASCII)


class TooManyLargeAnswers(TransientError):
    """The large answers under way exceed what may be held at once."""

    code = "TOO_MANY_LARGE_ANSWERS"


@dataclass(frozen=True, kw_only=True)
class PageAnswer:
    """The answer of a site.

    Attributes:
        url: the requested address.
        status: the status code.
        headers: by name in lower case; of repeated ones the first.
        body: decompressed.
        duration: seconds from sending the request to the last byte.
        received_at: when the last byte had arrived, by the monotonic clock.
        is_reused: whether the connection had served another request.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    duration: float
    received_at: float
    is_reused: bool

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; empty if the site sent none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise if one of these cannot be sent with a request for a page.

    Raises:
        InvalidInput: a name or value would break the request, or the header is not the caller's to set.
    """
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"{name[:50]!r} is not a header name. Correct the name.", field="headers")
        if name.lower() in RESERVED_HEADERS:
            raise InvalidInput(f"The header {name} cannot be set. Remove it.", field="headers")
        if not _VALUE.fullmatch(value):
            message = f"The value of the header {name} has a line break or another character that cannot be sent."
            raise InvalidInput(message, field="headers")


class PageClient:
    """Sends GET requests from any thread; one for each process.

    Args:
        policy: where connections may go; asked for each new connection.
        user_agent: sent with every request, whatever the origin.
        headers: sent with every request, such as Accept.
        limits: of time and size.
        tls: which certificates to trust, if not those of the public authorities.
        idle_seconds: how long a connection is kept for the next request to its origin.
        most_idle: how many of them are kept.
        most_held: bytes that large answers under way may hold together.
    """

    def __init__(
        self,
        *,
        policy: EgressPolicy,
        user_agent: str,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = PAGE_LIMITS,
        tls: SSLContext | None = None,
        idle_seconds: float = IDLE_SECONDS,
        most_idle: int = MOST_IDLE,
        most_held: int = MOST_HELD_BYTES,
    ) -> None:
        if not user_agent or not _VALUE.fullmatch(user_agent):
            raise InvalidInput("The User-Agent is missing or has characters that cannot be sent.", field="user_agent")
        check_headers(headers or {})
        self._policy, self._limits, self._tls = policy, limits, tls
        self._headers = {"user-agent": user_agent, "accept-encoding": "gzip", **_lower(headers)}
        self._idle = IdleConnections(idle_seconds, most_idle)
        self._held = HeldBytes(most_held)

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        before_send: Callable[[], object] | None = None,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> PageAnswer:
        """Return the answer to one request, whatever its status.

        A connection that the server has closed while it was idle is replaced once.

        Args:
            url: http or https.
            headers: for this request only.
            before_send: called when the connection is there, right before each request is written; its time does not
                count, and an error of it ends the call with nothing sent.
            waiting: makes a context that is entered while the call does nothing but wait for the server: once for the
                connection, and once for the answer.
        """
        target = checked_url(url)
        check_headers(headers or {})
        deadline = Deadline(self._limits.total)
        exchange = _Exchange(
            target=target,
            headers={**self._headers, **_lower(headers)},
            limits=self._limits,
            deadline=deadline,
            held=self._held,
            before_send=before_send,
            waiting=waiting,
        )
        origin = (target.scheme, target.host, target.port)
        with translated_errors(target.host, deadline):
            if connection := self._idle.take(origin):
                connection.deadline = deadline
                try:
                    return self._ask(exchange, connection, origin, is_reused=True)
                except _ClosedWhileIdle:
                    deadline.share()
            with waiting():
                stream = self._connect(target, deadline)
            return self._ask(exchange, stream, origin, is_reused=False)

    def close(self) -> None:
        """Close the idle connections."""
        self._idle.close()

    def _connect(self, target: httpx.URL, deadline: Deadline) -> GuardedStream:
        host, is_tls = target.raw_host.decode("ascii"), target.scheme == "https"
        port = target.port or (443 if is_tls else 80)
        stream = GuardedNetwork(self._policy, deadline).connect_tcp(host, port, self._limits.connect)
        if is_tls:
            stream = stream.start_tls(self._tls or public_authorities(), host, self._limits.connect)
        return stream

    def _ask(self, exchange: "_Exchange", stream: GuardedStream, origin: Origin, *, is_reused: bool) -> PageAnswer:
        is_reusable = False
        try:
            answer = exchange.run(stream, is_reused=is_reused)
            is_reusable = exchange.is_reusable
        finally:
            if is_reusable or exchange.is_unused:
                self._idle.give(origin, stream)
            else:
                stream.close()
        return answer


class _ClosedWhileIdle(Exception):
    """The server had closed a connection before it saw the request."""


class _Exchange:
    """One request and its answer."""

    #: Whether another request may follow over the connection.
    is_reusable = False
    #: Whether nothing was sent.
    is_unused = True

    def __init__(
        self,
        *,
        target: httpx.URL,
        headers: Mapping[str, str],
        limits: HttpLimits,
        deadline: Deadline,
        held: "HeldBytes",
        before_send: Callable[[], object] | None,
        waiting: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._target, self._limits, self._deadline, self._held = target, limits, deadline, held
        self._before_send, self._waiting = before_send, waiting
        self._headers = [("host", target.netloc.decode("ascii")), *headers.items()]

    def run(self, stream: GuardedStream, *, is_reused: bool) -> PageAnswer:
        self.is_unused = True
        if self._before_send:
            paused = time.monotonic()
            try:
                self._before_send()
            finally:
                self._deadline.extend(time.monotonic() - paused)
        self.is_unused = False
        begun = time.monotonic()
        protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEADERS)
        request = h11.Request(method="GET", target=self._target.raw_path, headers=self._headers)
        sent = (protocol.send(request) or b"") + (protocol.send(h11.EndOfMessage()) or b"")
        try:
            with self._held.growing() as grow, self._waiting():
                events = self._events(stream, protocol, sent, is_reused=is_reused)
                head = self._head(events)
                headers = _read_headers(head)
                if int(headers.get("content-length", 0)) > self._limits.body_bytes:
                    raise ResponseTooLarge(f"The answer has {headers['content-length']} bytes and was rejected.")
                body = read_body(self._blocks(events), headers.get("content-encoding", ""), self._limits, grow)
                received_at = time.monotonic()
        except h11.ProtocolError as error:
            reason = quote_reply(str(error))
            raise BadHttpAnswer(f"{self._target.host} did not send a complete answer: {reason}.") from None
        is_done = protocol.our_state is h11.DONE and protocol.their_state is h11.DONE
        self.is_reusable = is_done and not protocol.trailing_data[0]
        return PageAnswer(
            url=str(self._target),
            status=head.status_code,
            headers=headers,
            body=body,
            duration=received_at - begun,
            received_at=received_at,
            is_reused=is_reused,
        )

    def _events(
        self, stream: GuardedStream, protocol: h11.Connection, request: bytes, *, is_reused: bool
    ) -> Iterator[h11.Event]:
        """Send the request, and yield the parts of the answer."""
        is_silent = True
        try:
            stream.write(request, self._limits.read)
            while not isinstance(event := protocol.next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Event):
                    yield event
                    continue
                data = stream.read(READ_BYTES, self._limits.read)
                if is_silent and not data:
                    raise httpcore.ReadError("it was closed without an answer")  # noqa: TRY301 - like a reset
                is_silent = False
                protocol.receive_data(data)
        except (httpcore.ReadError, httpcore.WriteError):
            # The server closed it while the request was on its way, so it has not done anything yet.
            if is_reused and is_silent:
                raise _ClosedWhileIdle from None
            raise

    def _head(self, events: Iterator[h11.Event]) -> h11.Response:
        for _ in range(MOST_INTERIM + 1):
            event = next(events)
            if isinstance(event, h11.Response):
                if len(event.headers) > MOST_HEADERS:
                    raise BadHttpAnswer(f"{self._target.host} sent more than {MOST_HEADERS} headers.")
                return event
        raise BadHttpAnswer(f"{self._target.host} sent more than {MOST_INTERIM} interim answers.")

    def _blocks(self, events: Iterator[h11.Event]) -> Iterator[bytes]:
        for number, event in enumerate(events):
            if number >= MOST_CHUNKS:
                raise BadHttpAnswer(f"{self._target.host} sent its answer in more than {MOST_CHUNKS} pieces.")
            if isinstance(event, h11.Data):
                yield bytes(event.data)


class HeldBytes:
    """What the answers under way hold beyond the usual size of each; counted for all threads together."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._lock = threading.Lock()

    @contextmanager
    def growing(self) -> Iterator[Callable[[int], None]]:
        """Yield what has to be called for each piece of one answer; all of it is released at the end of the block."""
        size = counted = 0

        def grow(count: int) -> None:
            nonlocal size, counted
            size += count
            more = size - USUAL_BYTES - counted
            if more <= 0:
                return
            with self._lock:
                if self._held + more > self._most:
                    raise TooManyLargeAnswers("Too many large answers arrive at once. It will be retried later.")
                self._held += more
            counted += more

        try:
            yield grow
        finally:
            with self._lock:
                self._held -= counted


class IdleConnections:
    """Connections that wait for the next request to their origin; used by all threads."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._lock = threading.Lock()
        #: The one that has waited longest comes first.
        self._waiting: deque[tuple[float, Origin, GuardedStream]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, origin: Origin) -> GuardedStream | None:
        """Return the newest connection to this origin that the server has not closed, if there is one."""
        while (found := self._newest(origin)) is not None:
            # Nothing was requested, so nothing can have arrived but the end of the connection.
            if not found.is_readable():
                return found
            found.close()
        return None

    def give(self, origin: Origin, stream: GuardedStream) -> None:
        """Keep a connection for the next request; those that have waited too long are closed."""
        with self._lock:
            self._waiting.append((time.monotonic(), origin, stream))
            dropped = self._expired()
            while len(self._waiting) > self._most:
                dropped.append(self._waiting.popleft()[2])
        for old in dropped:
            old.close()

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        for _, _, stream in waiting:
            stream.close()

    def _newest(self, origin: Origin) -> GuardedStream | None:
        with self._lock:
            dropped = self._expired()
            place = next((n for n in range(len(self._waiting) - 1, -1, -1) if self._waiting[n][1] == origin), None)
            found = None
            if place is not None:
                found = self._waiting[place][2]
                del self._waiting[place]
        for old in dropped:
            old.close()
        return found

    def _expired(self) -> list[GuardedStream]:
        expired = []
        while self._waiting and self._waiting[0][0] < time.monotonic() - self._seconds:
            expired.append(self._waiting.popleft()[2])
        return expired


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in (headers or {}).items()}


def _read_headers(head: h11.Response) -> dict[str, str]:
    """Return the headers by name in lower case; of repeated ones the first, but all encodings."""
    read: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name in read and name == "content-encoding":
            value = f"{read[name]}, {value}"
        elif name in read:
            continue
        read[name] = value
    return read
