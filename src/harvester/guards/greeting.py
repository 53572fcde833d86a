"""The first bytes from a server, which show a server of the wrong kind before anything is sent to it."""

import socket

from harvester.guards.remote import ConnectionLost, ProtocolMismatch, RemoteTimedOut, quote_reply

_LONGEST = 64
#: Beginnings of greetings. A TLS server sends nothing or an alert.
_KINDS = (
    (b"SSH-", "SFTP"),
    (b"220", "FTP"),
    (b"421", "FTP"),
    (b"HTTP/", "HTTP"),
    (b"* OK", "IMAP"),
    (b"\x15\x03", "TLS"),
)


def expect_greeting(connection: socket.socket, host: str, wanted: str) -> None:
    """Wait for the greeting without consuming it, and reject a server of another kind.

    Args:
        connection: a new connection, with the time to wait as its timeout.
        host: its name in messages.
        wanted: SFTP or FTP.
    """
    try:
        first = connection.recv(_LONGEST, socket.MSG_PEEK)
    except TimeoutError:
        raise RemoteTimedOut(
            f"{host} accepted the connection and sent nothing. It will be retried later; check that the port is that "
            f"of an {wanted} server."
        ) from None
    except OSError as error:
        raise ConnectionLost(f"{host} broke the connection: {error.strerror}. It will be retried later.") from None
    if not first:
        raise ConnectionLost(f"{host} closed the connection at once. It will be retried later.")
    kind = next((kind for begin, kind in _KINDS if first.startswith(begin)), wanted)
    if kind != wanted:
        shown = quote_reply(first.decode("ascii", errors="replace"))
        raise ProtocolMismatch(
            f"{host} is an {kind} server and not an {wanted} server: {shown!r}. No credentials were sent. "
            "Check the port and the transport of the feed."
        )
