"""How bytes of HTTP travel: to an address that was judged, and not a second longer than they may."""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore

from harvester.guards.egress import EgressPolicy
from harvester.guards.remote import ConnectionLost, RemoteTimedOut, TransferTooLong, quote_reply
from harvester.kernel.errors import TerminalError, TransientError


class BadHttpAnswer(TransientError):
    """What came is no whole answer in HTTP."""

    code = "BAD_HTTP_ANSWER"


class TlsNotTrusted(TerminalError):
    """The server cannot prove that it is the one that was asked for."""

    code = "TLS_NOT_TRUSTED"


class Deadline:
    """The end of a whole exchange, whatever it consists of."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def share(self, seconds: float | None = None) -> float:
        """How long the next step may take."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TransferTooLong(f"The exchange took longer than {self._seconds:g} s and was ended.")
        return left if seconds is None else min(seconds, left)


@contextmanager
def told_plainly(host: str, deadline: Deadline) -> Iterator[None]:
    """Turn what the library says into the house's errors."""
    try:
        yield
    except httpcore.TimeoutException:
        # The end of the whole time looks like silence to whoever waits for bytes.
        deadline.share()
        raise RemoteTimedOut(f"{host} went silent. It is tried again later.") from None
    except httpcore.NetworkError as error:
        raise ConnectionLost(f"The connection to {host} broke: {error}. It is tried again later.") from None
    except httpcore.ProtocolError as error:
        raise BadHttpAnswer(f"{host} sent no whole answer: {quote_reply(str(error))}.") from None


class GuardedNetwork(httpcore.NetworkBackend):
    """Connects to what the policy has judged, and to nothing else."""

    def __init__(self, policy: EgressPolicy, deadline: Deadline) -> None:
        self._policy, self._deadline = policy, deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the library's own signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the library's own signature
    ) -> httpcore.NetworkStream:
        return _Stream(self._policy.connect(host, port, self._deadline.share(timeout)), self._deadline)


class _Stream(httpcore.NetworkStream):
    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection, self._deadline = connection, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._patient(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return self._connection.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            # The library says so that it is done. On a broken connection that would use up the error that tells why.
            return
        with self._patient(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            self._connection.sendall(buffer)

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            with self._patient(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
                sealed = ssl_context.wrap_socket(self._connection, server_hostname=server_hostname)
                return _Stream(sealed, self._deadline)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _patient(self, seconds: float | None, timed_out: type[Exception], failed: type[Exception]) -> Iterator[None]:
        """The library has to know a broken connection as such, to read what the server said before it broke."""
        self._connection.settimeout(self._deadline.share(seconds))
        try:
            yield
        except TimeoutError:
            raise timed_out from None
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message
            raise TlsNotTrusted(f"The server cannot prove who it is: {why}. Nothing was sent.") from None
        except OSError as error:
            raise failed(error.strerror or type(error).__name__) from None
