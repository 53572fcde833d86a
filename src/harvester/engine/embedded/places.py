"""The directories around the data, created if missing. The modes of existing ones are not changed."""

import contextlib
import os
import stat
from pathlib import Path

from harvester.engine.embedded.layout import Layout
from harvester.engine.embedded.users import SETTING, ServerUser
from harvester.kernel.errors import ConfigError


def make_home(home: Path) -> None:
    """Create a home without access for others, except that the server's user can pass through root's home."""
    if home.is_dir():
        return
    try:
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)
    except OSError as error:
        raise ConfigError(
            f"The directory {home} cannot be created ({error.strerror}). Set HARVESTER_HOME to another directory."
        ) from None


def require_reach(home: Path, user: ServerUser) -> None:
    if not user.is_other or user.can_enter(home):
        return
    closed = next(place for place in [*reversed(home.parents), home] if not user.can_enter(place))
    raise ConfigError(
        f"The embedded server runs as {user.name}, who cannot enter {closed}; nothing was changed. "
        f"Set HARVESTER_HOME to a directory that {user.name} can reach, or {SETTING} to a user who can."
    )


def make_socket_dir(layout: Layout, user: ServerUser) -> None:
    """Create a directory that only the server's user may enter: the server trusts all who can."""
    layout.socket_dir.mkdir(mode=0o700, exist_ok=True)
    check_socket_dir(layout, user)
    user.give(layout.socket_dir)
    _clear_socket_dir(layout)


def check_socket_dir(layout: Layout, user: ServerUser) -> None:
    """Raise if another user may have created that directory; call it before sending anything to its socket."""
    if os.path.lexists(layout.socket_dir) and not _is_private(layout.socket_dir, user):
        raise ConfigError(
            f"{layout.socket_dir} is not a private directory of {user.name}, so its socket cannot be trusted "
            "and nothing was changed. Remove it, or set HARVESTER_HOME to another directory."
        )


def remove_socket_dir(layout: Layout, user: ServerUser) -> None:
    if os.path.lexists(layout.socket_dir) and _is_private(layout.socket_dir, user):
        _clear_socket_dir(layout)
        with contextlib.suppress(OSError):
            layout.socket_dir.rmdir()


def _is_private(path: Path, user: ServerUser) -> bool:
    found = path.lstat()
    # This process may own it, because root may be killed between creating the directory and changing its owner.
    owned = found.st_uid in (user.uid, os.geteuid())
    return stat.S_ISDIR(found.st_mode) and owned and not found.st_mode & 0o077


def _clear_socket_dir(layout: Layout) -> None:
    """Remove the files of a killed server: the pid in the socket's lock file may be another process's now."""
    for path in layout.socket_files:
        path.unlink(missing_ok=True)
