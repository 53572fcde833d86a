"""An HTTP server that misbehaves on command: each answer is a function that gets the connection."""

import gzip
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Self

HOST = "127.0.0.1"
Answer = Callable[[socket.socket], None]


class HttpServer:
    """Gives one answer after the other, the last one for ever, and keeps the requests that it heard.

    After so many answers it closes a connection; with more than one, other clients wait meanwhile.
    """

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None, answers_a_connection: int = 1) -> None:
        self._answers = answers
        self._answers_a_connection = answers_a_connection
        self._tls = tls
        self.heard: list[bytes] = []
        self._stopping = threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://{HOST}:{self.port}"
        self._thread = threading.Thread(target=self._serve, name="http-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stopping.set()
        socket.create_connection((HOST, self.port)).close()
        self._thread.join(10)
        self._listener.close()
        assert not self._thread.is_alive(), "the server did not stop"

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client:
                if self._stopping.is_set():
                    return
                self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        client.settimeout(5)
        try:
            with self._tls.wrap_socket(client, server_side=True) if self._tls else client as stream:
                for _ in range(self._answers_a_connection):
                    answer = self._answers[min(len(self.heard), len(self._answers) - 1)]
                    self.heard.append(_request(stream))
                    answer(stream)
        except OSError:
            # Clients of a misbehaving server leave early.
            return


def _request(stream: socket.socket) -> bytes:
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += _received(stream)
    head, _, body = heard.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += _received(stream)
    return head + b"\r\n\r\n" + body


def _received(stream: socket.socket) -> bytes:
    block = stream.recv(65536)
    if not block:
        raise ConnectionError("the client went away")
    return block


def says(status: int, body: bytes = b"", **headers: str) -> Answer:
    """An ordinary answer; names of headers are written with underscores."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return lambda stream: stream.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def hangs(stream: socket.socket) -> None:
    """Says nothing until the client gives up."""
    _received(stream)


def drips(stream: socket.socket) -> None:
    """Never silent for long, and never done."""
    stream.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 1000000\r\n\r\n")
    pause = threading.Event()
    while True:
        stream.sendall(b".")
        pause.wait(0.02)


def drips_headers(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\n")
    pause = threading.Event()
    while True:
        stream.sendall(b"x-more: 1\r\n")
        pause.wait(0.02)


def never_ends(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        stream.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def stops_in_the_middle(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 100\r\n\r\nhalf")


def resets(stream: socket.socket) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def has_huge_headers(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nx-huge: ")
    while True:
        stream.sendall(b"x" * 65536)


def talks_of_something_else(stream: socket.socket) -> None:
    stream.sendall(b"220 mail.example.com ESMTP\r\n")


def bombs(stream: socket.socket) -> None:
    """A hundred megabytes in a hundred kilobytes."""
    body = gzip.compress(bytes(100_000_000), 9)
    says(200, body, Content_Encoding="gzip")(stream)


def closes(stream: socket.socket) -> None:
    """Hangs up after the request without a word."""
    stream.shutdown(socket.SHUT_RDWR)


def closes_after_a_word(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 2")
    stream.shutdown(socket.SHUT_RDWR)


def only_hints(stream: socket.socket) -> None:
    """Promises an answer again and again."""
    while True:
        stream.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")


def has_many_headers(stream: socket.socket) -> None:
    many = b"".join(b"x-%d: 1\r\n" % number for number in range(1000))
    stream.sendall(b"HTTP/1.1 200 Said\r\n" + many + b"Content-Length: 0\r\n\r\n")


def sends_crumbs(stream: socket.socket) -> None:
    """A body in chunks of one byte each."""
    stream.sendall(b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        stream.sendall(b"1\r\nx\r\n" * 10_000)


def has_a_bad_chunk(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n")


def has_an_endless_chunk_header(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n5;")
    while True:
        stream.sendall(b"x" * 65536)


def has_endless_trailers(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")
    while True:
        stream.sendall(b"x-more: 1\r\n" * 1000)


def switches_protocols(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 101 Switching\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n")


def has_two_lengths(stream: socket.socket) -> None:
    stream.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nhello")


def announces_too_much(stream: socket.socket) -> None:
    """Two gigabytes, of which it sends none."""
    stream.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 2000000000\r\n\r\n")
    _received(stream)


def sends_more_than_announced(stream: socket.socket) -> None:
    """The rest looks like the answer to the next request."""
    first, second = (b"HTTP/1.1 200 Said\r\nContent-Length: 5\r\n\r\n" + body for body in (b"hello", b"evil!"))
    stream.sendall(first + second)


def says_until_the_end(body: bytes) -> Answer:
    """An answer whose body ends with the connection."""
    return lambda stream: stream.sendall(b"HTTP/1.0 200 Said\r\n\r\n" + body)
