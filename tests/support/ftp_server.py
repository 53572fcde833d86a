"""A real FTP server on this machine, in a thread, that can be made to misbehave.

Misbehaving servers are named after what they do wrong; each is a class to pass as `behaviour`, or a function that
makes one.
"""

import threading
import warnings
from pathlib import Path
from typing import Self

with warnings.catch_warnings():
    # It stands on asyncore, which Python 3.11 has and deprecates; on newer ones it brings its own.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.filesystems import AbstractedFS
    from pyftpdlib.handlers import DTPHandler, FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer as PyFtpServer

HOST = "127.0.0.1"
USERNAME = "partner"
PASSWORD = "correct horse battery staple"


class WellBehaved(FTPHandler):
    """Serves the files of a directory."""

    # Files are read in Python, so that a behaviour may step in.
    use_sendfile = False
    banner = "ready"


def _with_file(wrap) -> type[AbstractedFS]:
    class Wrapped(AbstractedFS):
        def open(self, filename, mode):
            return wrap(super().open(filename, mode), Path(filename), self.cmd_channel)

    return Wrapped


class _File:
    """A file that asks before each read."""

    def __init__(self, file, path, before_read) -> None:
        self._file = file
        self._path = path
        self._before_read = before_read
        self.name = file.name

    def read(self, size):
        self._before_read(self._file.tell(), size, self._path)  # plain: quoted
        return self._file.read(size)

    def __getattr__(self, name):
        return getattr(self._file, name)


def drops_connection_at(percent: int, *, data_only: bool = False) -> type[WellBehaved]:
    def wrap(file, path, handler):
        def before_read(offset, size, path):
            if offset + size > path.stat().st_size * percent // 100:
                handler.data_channel.close()
                if not data_only:
                    handler.close()

        return _File(file, path, before_read)

    class DropsConnection(WellBehaved):
        """Breaks off in the middle of the file."""

        abstracted_fs = _with_file(wrap)

    return DropsConnection


def changes_file_while_read(change) -> type[WellBehaved]:
    changed = []

    def wrap(file, path, handler):
        def before_read(offset, size, path):
            if offset and not changed:
                changed.append(path)
                change(path)

        return _File(file, path, before_read)

    class ChangesFile(WellBehaved):
        """Lets somebody change the file after its first block was read."""

        abstracted_fs = _with_file(wrap)

    return ChangesFile


def lies_about_size(by: int) -> type[WellBehaved]:
    class LiesAboutSize(WellBehaved):
        """Says that a file is larger or smaller than it is."""

        def ftp_SIZE(self, path):  # noqa: N802 - the library looks for this name
            self.respond(f"213 {Path(path).stat().st_size + by}")

    return LiesAboutSize


def answers(**replies: str) -> type[WellBehaved]:
    """A server that answers each of these commands with a line and does nothing."""

    def method(reply):
        return lambda self, *_: self.respond(reply)

    return type("Answers", (WellBehaved,), {f"ftp_{command}": method(reply) for command, reply in replies.items()})


class KnowsNeitherSizeNorTime(WellBehaved):
    """Lacks the commands for size and time of a file."""

    proto_cmds = {name: how for name, how in FTPHandler.proto_cmds.items() if name not in ("SIZE", "MDTM")}


class NamesAnotherAddress(WellBehaved):
    """Says in its passive replies that the data is elsewhere."""

    masquerade_address = "10.255.255.1"


class _NeverSends(DTPHandler):
    def push_with_producer(self, producer):
        producer.file.close()


class StopsSending(WellBehaved):
    """Opens the data connection and sends nothing."""

    dtp_handler = _NeverSends


class _DripsData(DTPHandler):
    def push_with_producer(self, producer):
        if self.connected:
            self.push(producer.file.read(1))
            self.ioloop.call_later(0.02, self.push_with_producer, producer)
        else:
            producer.file.close()

    def close_when_done(self):
        """It is never done."""


class Drips(WellBehaved):
    """Sends one byte at a time, with a pause before each."""

    dtp_handler = _DripsData


class FailsLoginAtOnce(WellBehaved):
    """Does not let a client wait after a wrong password."""

    auth_failed_timeout = 0.001


class FtpServer:
    """Serves a directory over plain FTP, and records which commands came.

    Args:
        root: what is served.
        behaviour: how it is served.
        most_connections: above it, the server says that it is busy.
    """

    def __init__(
        self, root: Path, *, behaviour: type[WellBehaved] = WellBehaved, most_connections: int = 0, host: str = HOST
    ) -> None:
        self.commands: list[str] = []
        authorizer = DummyAuthorizer()
        authorizer.add_user(USERNAME, PASSWORD, str(root), perm="elr")
        handler = type(behaviour.__name__, (_Recording, behaviour), {"authorizer": authorizer, "server_of_test": self})
        self._server = PyFtpServer((host, 0), handler, ioloop=IOLoop())
        # The listening socket counts too.
        self._server.max_cons = most_connections + 1 if most_connections else self._server.max_cons
        self.port = self._server.address[1]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="ftp-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._server.ioloop.loop(timeout=0.02, blocking=False)
        self._server.close_all()


class _Recording:
    server_of_test: FtpServer

    def pre_process_command(self, line, cmd, arg):
        self.server_of_test.commands.append(line)
        return super().pre_process_command(line, cmd, arg)
