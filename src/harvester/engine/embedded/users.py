"""The user that runs the server. PostgreSQL refuses to run as root, so root runs it as an unprivileged user."""

import os
import pwd
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harvester.kernel.errors import ConfigError

SETTING = "HARVESTER_DATABASE_OS_USER"


def server_environment() -> dict[str, str]:
    """Return an environment without PGPORT, PGDATA and similar variables, which would change the server."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **kept}


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """The user that runs the server and owns its data."""

    name: str
    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """Whether the server runs as another user than this process."""
        return self.uid != os.geteuid()

    def identity(self) -> dict[str, Any]:
        """Return the arguments with which subprocess becomes this user, groups included."""
        if not self.is_other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": os.getgrouplist(self.name, self.gid)}

    def run(self, command: Sequence[str | Path], *, keep: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command as this user; `keep` names descriptors that it inherits."""
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=server_environment(),
            pass_fds=keep,
            **self.identity(),
        )

    def can_run(self, command: Sequence[str | Path]) -> bool:
        try:
            return self.run(command).returncode == 0
        except OSError:
            return False

    def can_enter(self, directory: Path) -> bool:
        """Whether the user can enter a directory, by trying it: modes are not enough (groups, access lists)."""
        return self.can_run(["/bin/sh", "-c", 'cd -- "$1"', "sh", directory])

    def give(self, path: Path) -> None:
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def write(self, path: Path, text: str) -> None:
        """Replace a file of this user, never through a link that the user may have created there."""
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                if self.is_other:
                    os.fchown(file.fileno(), self.uid, self.gid)
                file.write(text)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise


def server_user(data: Path, os_user: str) -> ServerUser:
    """Return the user that runs the server on this data directory, or raise if there is none."""
    owner, me = _owner_of_data(data), os.geteuid()
    if me != 0:
        if owner not in (None, me):
            raise ConfigError(
                f"{data} belongs to {_name(owner)}, but this process runs as {_name(me)}; nothing was changed. "
                f"Run Harvester as {_name(owner)}, or set HARVESTER_HOME to a directory of your own."
            )
        return ServerUser(name=_name(me), uid=me, gid=os.getegid())
    if owner is None:
        return _named(os_user) if os_user else _first_unprivileged()
    if owner == 0:
        raise ConfigError(
            f"{data} belongs to root, and PostgreSQL does not run as root; nothing was changed. "
            f"Change its owner to an unprivileged user with: chown -R USER {data}"
        )
    # The owner overrides the default: otherwise data created as nobody would be lost once a postgres user exists.
    if os_user and _named(os_user).uid != owner:
        raise ConfigError(
            f"{SETTING} is {os_user}, but {data} belongs to {_name(owner)}; nothing was changed. "
            f"Unset it, or change the owner of the data with: chown -R {os_user} {data}"
        )
    return _numbered(owner)


def _owner_of_data(data: Path) -> int | None:
    try:
        return data.stat().st_uid if any(data.iterdir()) else None
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ConfigError(f"{data} is not a directory; nothing was changed. Move it away and try again.") from None
    except PermissionError:
        return data.stat().st_uid


def _first_unprivileged() -> ServerUser:
    for name in ("postgres", "nobody"):
        try:
            return _named(name)
        except ConfigError:
            continue
    raise ConfigError(
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody; "
        f"nothing was changed. Set {SETTING} to an unprivileged user."
    )


def _named(name: str) -> ServerUser:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(f"{SETTING} is {name!r}, but there is no such user; nothing was changed.") from None
    if entry.pw_uid == 0:
        raise ConfigError(f"{SETTING} is {name!r}, but PostgreSQL does not run as root; name another user.")
    return ServerUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def _numbered(uid: int) -> ServerUser:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise ConfigError(
            f"The embedded database belongs to user number {uid}, who has no name here; nothing was changed. "
            "Create that user, or change the owner of the data with chown -R."
        ) from None
    return ServerUser(name=entry.pw_name, uid=uid, gid=entry.pw_gid)


def _name(uid: int | None) -> str:
    try:
        return pwd.getpwuid(uid or 0).pw_name
    except KeyError:
        return f"user number {uid}"
