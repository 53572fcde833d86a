"""A private file: made once, complete, by whoever comes first, and refused when others could read it."""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harvester.guards.durable_files import sync_directory
from harvester.kernel.config import KEY_VARIABLE
from harvester.kernel.errors import ConfigError

#: No ring of keys is longer; what is, is another file.
LARGEST_BYTES = 64 * 1024
#: What link() answers on a file system without hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


class InvalidKeyFile(ConfigError):
    """The key file is unsafe, malformed or out of reach."""

    code = "INVALID_KEY_FILE"


def read_or_create(path: Path, make_text: Callable[[], str]) -> str:
    """Read the file, and make it first if there is none.

    Processes that start at the same time end up with the same text: the file appears complete, once.
    """
    try:
        text = _read(path)
        if text is None:
            _create(path, make_text())
            text = _read(path)
    except OSError as error:
        raise InvalidKeyFile(_unreachable(path, error)) from None
    if text is None:
        raise InvalidKeyFile(f"The key file {path} is a link to nothing; remove the link or restore its target.")
    return text


def _read(path: Path) -> str | None:
    try:
        # O_NONBLOCK: a pipe in place of the file must not hang the process at start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        _refuse_unsafe(path, os.fstat(descriptor))
        return os.read(descriptor, LARGEST_BYTES).decode("ascii", errors="replace")
    finally:
        os.close(descriptor)


def _refuse_unsafe(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
        raise InvalidKeyFile(f"The key file {path} is not a file with a key in it; move it away or restore it.")
    if status.st_mode & 0o077:
        raise InvalidKeyFile(f"The key file {path} is open to other users; run: chmod 600 {path}")


def _create(path: Path, text: str) -> None:
    """Write a complete file aside and link it into place: the first process to link wins, the others read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_durably(aside, text)
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    sync_directory(path.parent)


def _write_durably(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        # The umask may have taken away what the owner needs.
        os.fchmod(descriptor, 0o600)
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def _unreachable(path: Path, error: OSError) -> str:
    reason = os.strerror(error.errno or errno.EIO)
    if error.errno in _NO_LINKS:
        return (
            f"The key file {path} cannot be made, its file system has no hard links ({reason}). "
            f"Put HARVESTER_HOME elsewhere or set {KEY_VARIABLE}."
        )
    return (
        f"The key file {path} cannot be read or made: {reason}. Check who owns it and its directory, "
        "or start Harvester as that user."
    )
