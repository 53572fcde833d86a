"""The data directory: made once and whole, checked before each start, never deleted."""

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

#: The first major version with a collation provider of its own, independent of the system's libraries.
BUILTIN_LOCALE_MAJOR = 17

#: Above the kernel's largest possible process id, so no process ever has it.
NO_PROCESS = (1 << 22) + 1


def has_data(data: Path) -> bool:
    """An empty directory counts as none: it may be somebody's preparation."""
    return data.is_dir() and any(data.iterdir())


def major_of(data: Path) -> int:
    """The major version that made this directory."""
    version = data / "PG_VERSION"
    if not version.is_file():
        raise _broken(data, "has files but no PG_VERSION, so it is no whole database")
    text = version.read_text(encoding="ascii", errors="replace").strip()
    if not re.fullmatch(r"\d{1,3}", text):
        raise _broken(data, "has a PG_VERSION that cannot be read")
    return int(text)


def check_control(data: Path, installation: Installation, user: ServerUser) -> None:
    """Look at pg_control, without which the server can tell nothing about its data."""
    answer = user.run([installation.program("pg_controldata"), "-D", data])
    if answer.returncode != 0 or "CRC checksum does not match" in answer.stdout + answer.stderr:
        raise _broken(data, "has a pg_control file that cannot be read")


def _broken(data: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{data} {what}; it was left as it is. Restore it from a backup, or move it away "
        "to begin with an empty database."
    )


def create(layout: Layout, installation: Installation, user: ServerUser, lock: int) -> None:
    """Make the directory beside its place and rename it, so that no half-made one is ever in use.

    initdb inherits the lock: if this process is killed, the next one waits until initdb has ended as well.
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
    # LC_CTYPE matters beside the builtin collation: with plain C, full text search keeps "10€" as one word.
    arguments += ["--locale=C.UTF-8", "--data-checksums", "--no-instructions"]
    if installation.major >= BUILTIN_LOCALE_MAJOR:
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    answer = user.run([installation.program("initdb"), "-D", draft, *arguments], keep=[lock])
    if answer.returncode != 0:
        said = " / ".join(answer.stderr.split("\n")[-4:]).strip(" /")
        raise ConfigError(f"The embedded database could not be made, and nothing was left behind: {said}")
    main = draft / "postgresql.conf"
    user.write(main, main.read_text(encoding="utf-8") + f"\ninclude = '{SETTINGS_FILE}'\n")


def write_settings(layout: Layout, user: ServerUser, options: Mapping[str, str]) -> None:
    user.write(layout.data / SETTINGS_FILE, render(layout, options))


def pid_in_file(data: Path) -> int | None:
    """The process that last claimed this directory; it may be long dead, and its number another's."""
    try:
        first = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except FileNotFoundError:
        return None
    return int(first) if first.strip().isdigit() else None


def disown(data: Path, user: ServerUser) -> None:
    """Take the process id out of a stale postmaster.pid, so that a process which now has it does not count.

    The rest stays, because PostgreSQL finds there the shared memory whose last users it must wait for.
    The server removes the file itself once it is sure.
    """
    path = data / "postmaster.pid"
    _, _, rest = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    user.write(path, f"{NO_PROCESS}\n{rest}")
