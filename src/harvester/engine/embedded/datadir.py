"""The data directory: created atomically, checked before each start, never deleted."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from harvester.engine.embedded.binaries import Installation
from harvester.engine.embedded.layout import OWNER_ROLE, Layout
from harvester.engine.embedded.settings import render
from harvester.engine.embedded.users import ServerUser
from harvester.guards.durable_files import sync_directory
from harvester.kernel.errors import ConfigError

SETTINGS_FILE = "harvester.conf"

#: The first major version with a builtin collation provider, independent of the system's libraries.
BUILTIN_LOCALE_MAJOR = 17

#: Above the largest possible process id.
NO_PROCESS = (1 << 22) + 1


def has_data(data: Path) -> bool:
    """Whether there is a data directory with files; an empty one may have been prepared by a person."""
    return data.is_dir() and any(data.iterdir())


def major_of(data: Path) -> int:
    """Return the major version of PostgreSQL that created this directory."""
    version = data / "PG_VERSION"
    if not version.is_file():
        raise _broken(data, "has files but no PG_VERSION, so it is not a complete database")
    text = version.read_text(encoding="ascii", errors="replace").strip()
    if not re.fullmatch(r"\d{1,3}", text):
        raise _broken(data, "has a PG_VERSION that cannot be read")
    return int(text)


def check_control(data: Path, installation: Installation, user: ServerUser) -> None:
    """Raise if pg_control is damaged, which the server needs to read its data."""
    answer = user.run([installation.program("pg_controldata"), "-D", data])
    if answer.returncode != 0 or "CRC checksum does not match" in answer.stdout + answer.stderr:
        raise _broken(data, "has a pg_control file that cannot be read")


def _broken(data: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{data} {what}; it is unchanged. Restore it from a backup, or move it away to start with an empty database."
    )


def create(layout: Layout, installation: Installation, user: ServerUser, lock: int) -> None:
    """Create the directory under another name and rename it, so that an incomplete one is never used.

    initdb inherits the lock: if this process is killed, the next one waits until initdb has ended too.
    """
    for leftover in layout.home.glob(f"{layout.data.name}.new-*"):
        shutil.rmtree(leftover)
    draft = layout.data.with_name(f"{layout.data.name}.new-{os.getpid()}")
    draft.mkdir(mode=0o700)
    try:
        user.give(draft)
        _initdb(draft, installation, user, lock)
        draft.rename(layout.data)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_directory(layout.home)


def _initdb(draft: Path, installation: Installation, user: ServerUser, lock: int) -> None:
    arguments = ["--username", OWNER_ROLE, "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8"]
    # LC_CTYPE matters in addition to the builtin collation: with plain C, full text search keeps "10€" as one word.
    arguments += ["--locale=C.UTF-8", "--data-checksums", "--no-instructions"]
    if installation.major >= BUILTIN_LOCALE_MAJOR:
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    answer = user.run([installation.program("initdb"), "-D", draft, *arguments], keep=[lock])
    if answer.returncode != 0:
        output = " / ".join(answer.stderr.split("\n")[-4:]).strip(" /")
        raise ConfigError(f"The embedded database could not be created, and no files were left: {output}")
    main = draft / "postgresql.conf"
    user.write(main, main.read_text(encoding="utf-8") + f"\ninclude = '{SETTINGS_FILE}'\n")


def write_settings(layout: Layout, user: ServerUser, options: Mapping[str, str]) -> None:
    user.write(layout.data / SETTINGS_FILE, render(layout, options))


def pid_in_file(data: Path) -> int | None:
    """Return the process that last claimed this directory; it may be dead, and its id reused."""
    try:
        first = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except FileNotFoundError:
        return None
    return int(first) if first.strip().isdigit() else None


def disown(data: Path, user: ServerUser) -> None:
    """Replace the process id in a stale postmaster.pid, so that another process with the same id does not count.

    The rest stays, because PostgreSQL reads there the shared memory whose last users it must wait for. The server
    removes the file itself when that is safe.
    """
    path = data / "postmaster.pid"
    _, _, rest = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    user.write(path, f"{NO_PROCESS}\n{rest}")
