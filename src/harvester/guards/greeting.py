"""The first word of a server, by which the wrong kind of server is known before anything is sent to it."""

import socket

from harvester.guards.remote import ConnectionLost, ProtocolMismatch, RemoteTimedOut, quote_reply

_LONGEST = 64
#: How servers begin to speak. A TLS server, asked for nothing, is silent or sends an alert.
_KINDS = (
    (b"SSH-", "SFTP"),
    (b"220", "FTP"),
    (b"421", "FTP"),
    (b"HTTP/", "HTTP"),
    (b"* OK", "IMAP"),
    (b"\x15\x03", "TLS"),
)


def expect_greeting(connection: socket.socket, host: str, wanted: str) -> None:
    """Wait for the first word without taking it, and refuse a server of another kind.

    Args:
        connection: a new connection, with the time to wait as its timeout.
        host: its name in messages.
        wanted: SFTP or FTP.
    """
    first = _peek(connection, host, wanted)
    kind = next((kind for begin, kind in _KINDS if first.startswith(begin)), wanted)
    if kind != wanted:
        shown = quote_reply(first.decode("ascii", errors="replace"))
        raise ProtocolMismatch(
            f"{host} answers as an {kind} server and not as an {wanted} server: {shown!r}. No credentials were sent. "
            "Check the port and the transport of the feed."
        )


def _peek(connection: socket.socket, host: str, wanted: str) -> bytes:
    try:
        first = connection.recv(_LONGEST, socket.MSG_PEEK)
    except TimeoutError:
        raise RemoteTimedOut(
            f"{host} accepted the connection and said nothing. It is tried again later; check that the port is that "
            f"of an {wanted} server."
        ) from None
    except OSError as error:
        raise ConnectionLost(f"{host} broke the connection: {error.strerror}. It is tried again later.") from None
    if not first:
        raise ConnectionLost(f"{host} closed the connection at once. It is tried again later.")
    return first
