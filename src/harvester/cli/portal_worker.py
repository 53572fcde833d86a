"""The portal's worker process: gunicorn's thread worker, changed so that threads do not wait for slow clients.

The main loop holds a connection until the whole request has arrived, head and body; only then a thread gets it. A
client that sends slowly costs a socket for a few seconds; one that reads slowly costs a thread only as long as it keeps
a minimum speed. When too many connections wait, the oldest are closed. `/healthz` has its own thread, so that it
responds while all others are busy.
"""

import errno
import json
import selectors
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import structlog
from gunicorn.http import errors
from gunicorn.workers.gthread import TConn, ThreadWorker

log = structlog.get_logger(__name__)

#: Time for the head of a request to arrive, then for its body.
HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
#: Bytes. The limits of the portal and of the API for a body are lower, so that they can say what to do about one that
#: is too large: 5 MiB for an uploaded list, 2 MiB for a list in the API.
LARGEST_HEAD = 64 * 1024
LARGEST_BODY = 8 * 1024 * 1024
#: A client may block a response for this long in total, plus the time that the sent bytes take at this speed.
READING_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 32 * 1024
#: Time for a client to notice that a connection is being closed.
LINGER_SECONDS = 2.0
#: Connections in each state: requests that are arriving (and their bytes), requests that a thread has or that wait for
#: one (and their bytes), connections being closed, idle connections. Together fewer than the usual limit of 1,024 open
#: files.
MOST_ARRIVING = 300
MOST_ARRIVING_BYTES = 64 * 1024 * 1024
MOST_QUEUED = 200
MOST_QUEUED_BYTES = 64 * 1024 * 1024
MOST_LINGERING = 100
MOST_KEPT = 100
#: Additional places in the queue for `/healthz`.
PLACES_FOR_HEALTH = 50

_HEALTH = (b"GET /healthz ", b"HEAD /healthz ")
_STATUS = {
    errors.LimitRequestLine: 414,
    errors.LimitRequestHeaders: 431,
    errors.ExpectationFailed: 417,
    errors.ForbiddenProxyRequest: 403,
    errors.UnsupportedTransferCoding: 501,
}


class ClientSocket(socket.socket):
    """A connection with limits on the time that a thread may spend on reading and writing."""

    def begin(self) -> None:
        """Start the clocks, when a thread takes over."""
        self._read_until = time.monotonic() + HEAD_SECONDS
        self._sent, self._waited = 0, 0.0

    def take(self, most: int) -> bytes:
        """Return what has arrived, without waiting."""
        return super().recv(most)

    def recv(self, most: int, flags: int = 0) -> bytes:
        self._limit(self._read_until - time.monotonic())
        try:
            return super().recv(most, flags)
        except TimeoutError:
            raise _gone() from None

    def sendall(self, data: Any, flags: int = 0) -> None:
        left = memoryview(data)
        while left:
            self._limit(READING_SECONDS + self._sent / SLOWEST_BYTES_PER_SECOND - self._waited)
            started_at = time.monotonic()
            try:
                sent = self.send(left, flags)
            except TimeoutError:
                raise _gone() from None
            self._waited += time.monotonic() - started_at
            self._sent += sent
            left = left[sent:]

    def _limit(self, seconds: float) -> None:
        if seconds <= 0:
            raise _gone()
        self.settimeout(seconds)


def _gone() -> ConnectionResetError:
    """Return the error of a client that disconnected, which gunicorn does not log."""
    return ConnectionResetError(errno.ECONNRESET, "the client was too slow")


class Arriving:
    """A request that has not arrived completely."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.until = time.monotonic() + HEAD_SECONDS
        #: Bytes of the whole request; None until its head has arrived.
        self.length: int | None = None


class Refused(Exception):
    """The request is rejected before it reaches the application."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def length_of(data: bytes | bytearray) -> int | None:
    """Return the bytes of the request that starts here, or None if its head is not complete.

    Raises:
        Refused: the request is not valid.
    """
    end = data.find(b"\r\n\r\n", 0, LARGEST_HEAD)
    line = data[: data.find(b"\r\n")] if b"\r\n" in data else data
    if not line.isascii():
        raise Refused(400, "The request line has characters that are not ASCII. Encode them, as in %C3%A9.")
    if end < 0:
        if len(data) >= LARGEST_HEAD:
            raise Refused(431, f"The head of the request has more than {LARGEST_HEAD} bytes. Send fewer headers.")
        return None
    lengths = []
    for header in bytes(data[:end]).split(b"\r\n")[1:]:
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"transfer-encoding":
            raise Refused(411, "The request has a body of unknown length. Send it with a Content-Length.")
        if name.strip().lower() == b"content-length":
            lengths.append(value.strip())
    if not lengths:
        return end + 4
    if len(lengths) > 1 or not lengths[0].isdigit():
        raise Refused(400, "The Content-Length of the request is not one whole number.")
    digits = lengths[0].lstrip(b"0") or b"0"
    if len(digits) > len(str(LARGEST_BODY)) or int(digits) > LARGEST_BODY:
        raise Refused(413, f"The body of the request has more than {LARGEST_BODY} bytes.")
    return end + 4 + int(digits)


def refusal(status: int, detail: str, request_id: str) -> bytes:
    """Return a whole response with a problem document (RFC 9457)."""
    phrase = HTTPStatus(status).phrase
    code = phrase.upper().replace(" ", "_").replace("-", "_")
    problem = {"type": "about:blank", "title": phrase, "status": status, "code": code, "detail": detail}
    body = json.dumps({**problem, "request_id": request_id}).encode()
    head = [
        f"HTTP/1.1 {status} {phrase}",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        f"X-Request-Id: {request_id}",
        "Connection: close",
        *(["Retry-After: 1"] if status == HTTPStatus.SERVICE_UNAVAILABLE else []),
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class PortalWorker(ThreadWorker):
    """Gunicorn's thread worker, except that the main loop waits for clients, not the threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.max_keepalived = MOST_KEPT
        #: Oldest first.
        self._arriving: dict[TConn, Arriving] = {}
        self._lingering: dict[TConn, float] = {}
        self._arriving_bytes = 0
        #: Connection -> bytes of its request.
        self._queued: dict[TConn, int] = {}
        self._queued_bytes = 0

    def init_process(self) -> None:
        self._health = ThreadPoolExecutor(max_workers=1)
        super().init_process()

    def accept(self, listener: Any) -> None:
        try:
            client, address = listener.accept()
        except OSError as problem:
            if problem.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        sock = ClientSocket(fileno=client.detach())
        self._arrive(TConn(self.cfg, sock, address, listener.getsockname()))

    def on_client_socket_readable(self, conn: TConn, client: Any) -> None:
        """Receive the next request of an idle connection."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._arrive(conn)

    def _arrive(self, conn: TConn, data: bytes = b"") -> None:
        """Wait for a request in the main loop."""
        conn.sock.setblocking(False)
        self._arriving[conn] = Arriving(data)
        self._arriving_bytes += len(data)
        self.poller.register(conn.sock, selectors.EVENT_READ, lambda _: self._read(conn))
        self._make_room()
        if data and conn in self._arriving:
            self._take_in(conn)

    def _make_room(self) -> None:
        while len(self._arriving) > MOST_ARRIVING or self._arriving_bytes > MOST_ARRIVING_BYTES:
            self._close(next(iter(self._arriving)))

    def _read(self, conn: TConn) -> None:
        if conn not in self._arriving:
            return  # closed by an earlier event of the same poll
        try:
            data = conn.sock.take(256 * 1024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(conn)
            return
        self._arriving[conn].data += data
        self._arriving_bytes += len(data)
        self._make_room()
        if conn in self._arriving:
            self._take_in(conn)

    def _take_in(self, conn: TConn) -> None:
        """Give a complete request to a thread."""
        request = self._arriving[conn]
        try:
            if request.length is None:
                request.length = length_of(request.data)
                if request.length is not None and len(request.data) < request.length:
                    request.until = time.monotonic() + BODY_SECONDS
                    if b"100-continue" in request.data.lower():
                        with suppress(OSError):
                            conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            if request.length is None or len(request.data) < request.length:
                return
        except Refused as problem:
            self._refuse(conn, problem)
            return
        health = request.data.startswith(_HEALTH)
        size = len(request.data)
        full = len(self._queued) >= MOST_QUEUED + (PLACES_FOR_HEALTH if health else 0)
        if full or (self._queued_bytes + size > MOST_QUEUED_BYTES and not health):
            self._refuse(conn, Refused(503, "Too many requests are waiting. Try again in a moment."))
            return
        self._forget(conn)
        self._queued[conn] = size
        self._queued_bytes += size
        conn.sock.setblocking(True)
        conn.init()
        conn.parser.unreader.unread(bytes(request.data))
        conn.sock.begin()
        future = (self._health if health else self.tpool).submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: TConn, done: Future[Any]) -> None:
        """Keep the connection for the next request, or close it, without waiting for the client."""
        self._queued_bytes -= self._queued.pop(conn)
        keep = not done.cancelled() and done.exception() is None and bool(done.result()) and self.alive
        if not keep:
            self._linger(conn)
            return
        ahead = conn.parser.unreader.take_buffered()
        if ahead:
            self._arrive(conn, ahead)
            return
        conn.sock.setblocking(False)
        conn.set_timeout()
        self.keepalived_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_client_socket_readable, conn))

    def _refuse(self, conn: TConn, problem: Refused) -> None:
        request_id = uuid4().hex
        log.info("REQUEST_REFUSED", status=problem.status, client=_host(conn.client), request_id=request_id)
        self._forget(conn)
        with suppress(OSError):
            conn.sock.send(refusal(problem.status, problem.detail, request_id))
        self._linger(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:  # noqa: ARG002
        """Respond to an invalid request without the parser's message, which quotes it and may contain secrets."""
        status = _STATUS.get(type(exc), 400 if isinstance(exc, errors.ParseException) else 500)
        if isinstance(exc, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName):
            status = 500
        request_id = uuid4().hex
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("REQUEST_BROKEN", client=_host(addr), request_id=request_id, exc_info=exc)
            detail = "Something went wrong on our side. The portal's log has the error, with this request id."
        else:
            reason = type(exc).__name__
            log.info("REQUEST_REFUSED", status=status, client=_host(addr), reason=reason, request_id=request_id)
            detail = "The request is not valid HTTP. Nothing was done. Check its request line and its headers."
        with suppress(OSError):
            client.sendall(refusal(status, detail, request_id))

    def murder_pending(self) -> None:
        """Close connections that took too long, once a second; when stopping, also those without a request."""
        now = time.monotonic()
        late = [conn for conn, request in self._arriving.items() if request.until < now]
        late += [conn for conn, until in self._lingering.items() if until < now]
        if not self.alive:
            late += [conn for conn, request in self._arriving.items() if not request.data and conn not in late]
        for conn in late:
            self._close(conn)

    def _linger(self, conn: TConn) -> None:
        """Close a connection when the client has noticed: closing it with unread bytes would cut off the response."""
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
            self.poller.register(conn.sock, selectors.EVENT_READ, lambda _: self._drain(conn))
        except (OSError, ValueError):
            self._close(conn)
            return
        self._lingering[conn] = time.monotonic() + LINGER_SECONDS
        if len(self._lingering) > MOST_LINGERING:
            self._close(next(iter(self._lingering)))

    def _drain(self, conn: TConn) -> None:
        if conn not in self._lingering:
            return
        try:
            if conn.sock.take(256 * 1024):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(conn)

    def _forget(self, conn: TConn) -> None:
        """Stop waiting for a connection in the main loop."""
        request = self._arriving.pop(conn, None)
        if request:
            self._arriving_bytes -= len(request.data)
        self._lingering.pop(conn, None)
        with suppress(KeyError, ValueError, OSError):
            self.poller.unregister(conn.sock)

    def _close(self, conn: TConn) -> None:
        self._forget(conn)
        self.nr_conns -= 1
        conn.close()


def _host(address: Any) -> str:
    return str(address[0]) if isinstance(address, tuple) and address else ""
