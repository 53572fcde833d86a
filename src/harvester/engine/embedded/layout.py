"""The paths of an embedded cluster. Pure: nothing here creates or changes a file."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWNER_ROLE = "harvester_owner"
APP_ROLE = "harvester_app"
DATABASE = "harvester"

#: No TCP port is opened; the number is only a part of the socket's name.
PORT = 5432

#: Bytes. Linux rejects a socket path of 108, other systems one of 104.
SOCKET_PATH_LIMIT = 100

#: Not tempfile.gettempdir() or XDG_RUNTIME_DIR: those differ between a login shell and a service of the same user, and
#: all processes must compute the same socket for a home.
SHORT_BASE = Path("/tmp")  # noqa: S108 - the directory below it is rejected unless its owner is the server's user

#: Other characters would need quoting, which differs between the server's list syntax and libpq.
PLAIN_PATH = re.compile(rb"[A-Za-z0-9._/+=@-]+")


@dataclass(frozen=True)
class Layout:
    """The paths below one home, the same for all spellings of its path."""

    home: Path

    @classmethod
    def of(cls, home: Path) -> "Layout":
        return cls(Path(os.path.realpath(home)))

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    @property
    def log(self) -> Path:
        return self.home / "postgres.log"

    @property
    def start_lock(self) -> Path:
        return self.home / "start.lock"

    @property
    def holders_lock(self) -> Path:
        return self.home / "holders.lock"

    @property
    def digest(self) -> str:
        return hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]

    @property
    def tag(self) -> str:
        """PostgreSQL's cluster_name, which appears in the titles of all processes of the server."""
        return f"harvester-{self.digest}"

    @property
    def socket_dir(self) -> Path:
        in_home = self.home / "socket"
        path = os.fsencode(in_home / self._socket_name)
        if len(path) < SOCKET_PATH_LIMIT and PLAIN_PATH.fullmatch(path):
            return in_home
        return SHORT_BASE / self.tag

    @property
    def socket_files(self) -> tuple[Path, Path]:
        """The socket and its lock file."""
        return self.socket_dir / self._socket_name, self.socket_dir / f"{self._socket_name}.lock"

    @property
    def _socket_name(self) -> str:
        return f".s.PGSQL.{PORT}"

    def address(self, role: str, dbname: str = DATABASE) -> dict[str, Any]:
        return {"host": str(self.socket_dir), "port": PORT, "user": role, "dbname": dbname}
