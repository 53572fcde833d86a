"""What an FTP server answers, told as the errors of remote.py.

The number decides whether to try again. Servers use 550 for a file that is missing and for one that may not be
read, so only there the words are looked at, and both are final.
"""

import ftplib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from harvester.guards.remote import (
    AuthenticationFailed,
    ConnectionLost,
    PermissionDenied,
    ProtocolMismatch,
    RemoteBusy,
    RemoteFileNotFound,
    RemoteTimedOut,
    quote_reply,
)
from harvester.kernel.errors import HarvesterError

_UNAVAILABLE = 550
_UNSUPPORTED = range(500, 505)
_LOGIN = (430, 530, 532)
_DENIED = re.compile(r"permission|denied|not allowed|not permitted|forbidden|access", re.IGNORECASE)


def is_missing(refusal: ftplib.Error) -> bool:
    return _number(refusal) == _UNAVAILABLE


def is_unsupported(refusal: ftplib.Error) -> bool:
    return _number(refusal) in _UNSUPPORTED


@contextmanager
def told_plainly(host: str, path: str = "") -> Iterator[None]:
    """Raise the standard library's errors as ours; others, and our own, pass."""
    try:
        yield
    except (ftplib.error_temp, ftplib.error_perm) as refusal:
        raise _told(refusal, host, path) from None
    except ftplib.Error as strange:
        reply = quote_reply(str(strange))
        raise ProtocolMismatch(
            f"{host} does not answer as an FTP server: {reply!r}. Check the port, and ask the partner."
        ) from None
    except TimeoutError:
        raise RemoteTimedOut(f"{host} went silent. It is tried again later.") from None
    except EOFError:
        raise ConnectionLost(f"{host} ended the connection. It is tried again later.") from None
    except OSError as error:
        raise ConnectionLost(f"The connection to {host} broke: {error.strerror}. It is tried again later.") from None


def _told(refusal: ftplib.Error, host: str, path: str) -> HarvesterError:
    said = f"{host} said {quote_reply(str(refusal))!r}."
    number = _number(refusal)
    if isinstance(refusal, ftplib.error_temp) and number not in _LOGIN:
        return RemoteBusy(f"{said} It is tried again later.")
    if number in _UNSUPPORTED:
        return ProtocolMismatch(f"{said} The server lacks what a passive transfer needs. Ask the partner for SFTP.")
    if number in _LOGIN or not path:
        return AuthenticationFailed(f"{said} The login is not tried again; check user name and password.")
    if _DENIED.search(str(refusal)):
        return PermissionDenied(f"{said} Ask the partner for access to {path!r}, or correct the path.")
    return RemoteFileNotFound(f"{said} Correct the path {path!r}; upper and lower case count.")


def _number(refusal: ftplib.Error) -> int:
    digits = str(refusal)[:3]
    return int(digits) if digits.isascii() and digits.isdigit() else 0
