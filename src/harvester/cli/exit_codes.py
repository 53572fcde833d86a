"""What the exit code tells a script, and how an error becomes one clear line."""

import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from harvester.kernel.errors import ConfigError, Conflict, HarvesterError, InvalidInput, NotFound


class Exit(IntEnum):
    """Every exit code there is; 70 and 78 are those of sysexits.h."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    HELD = 5
    UNEXPECTED = 70
    CONFIG = 78
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Exit.OK: "done",
    Exit.FAILED: "what was asked for failed",
    Exit.USAGE: "wrong usage",
    Exit.NOT_FOUND: "no such thing",
    Exit.CONFLICT: "conflict: the thing is in a state that forbids it",
    Exit.HELD: "the run is held and waits for a decision",
    Exit.UNEXPECTED: "unexpected error",
    Exit.CONFIG: "configuration",
    Exit.INTERRUPTED: "interrupted",
    Exit.TERMINATED: "terminated before it was done",
}

#: The first class that fits an error decides.
_BY_KIND: tuple[tuple[type[HarvesterError], Exit], ...] = (
    (ConfigError, Exit.CONFIG),
    (InvalidInput, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.CONFLICT),
    (HarvesterError, Exit.FAILED),
)


class Terminated(BaseException):
    """SIGTERM or SIGHUP asked a short command to end. No Exception, so that no handler swallows it."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error as a person or a script gets to see it.

    Attributes:
        exit_code: for the shell.
        code: stable name, for scripts.
        message: one line.
        unexpected: Harvester has no name for it, so its traceback may help.
    """

    exit_code: Exit
    code: str
    message: str
    unexpected: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message}}


def failure_of(error: BaseException) -> Failure:
    """Name an error. What it says is redacted: it may quote an address with a password."""
    if isinstance(error, KeyboardInterrupt):
        return Failure(exit_code=Exit.INTERRUPTED, code="INTERRUPTED", message="interrupted")
    if isinstance(error, Terminated):
        return Failure(exit_code=Exit.TERMINATED, code="TERMINATED", message="ended by a signal")
    if isinstance(error, HarvesterError):
        exit_code = next(code for kind, code in _BY_KIND if isinstance(error, kind))
        return Failure(exit_code=exit_code, code=error.code, message=one_line(error))
    return _database_failure(error) or Failure(
        exit_code=Exit.UNEXPECTED,
        code="UNEXPECTED",
        message=f"{type(error).__name__}: {one_line(error)}",
        unexpected=True,
    )


_NOT_MIGRATED = "The database has not the tables and roles of this version. Run: harvester migrate"
_NOT_ALLOWED = (
    "The database refuses: {said}. Run `harvester migrate` as the owner, and make the application's login a member of "
    "harvester_app."
)
_NO_ANSWER = "The database does not answer: {said}. `harvester doctor` looks closer."

#: What a database error means: its classes, words in it, and what to tell. The first that fits decides.
_DATABASE: tuple[tuple[tuple[str, ...], str, Exit, str, str], ...] = (
    (("ProgrammingError",), "does not exist", Exit.CONFIG, "NOT_MIGRATED", _NOT_MIGRATED),
    (("OperationalError",), 'role "harvester_app" does not exist', Exit.CONFIG, "NOT_MIGRATED", _NOT_MIGRATED),
    (("ProgrammingError", "OperationalError"), "permission denied", Exit.CONFIG, "NOT_ALLOWED", _NOT_ALLOWED),
    (("OperationalError", "InterfaceError"), "", Exit.FAILED, "DATABASE_UNREACHABLE", _NO_ANSWER),
)


def _database_failure(error: BaseException) -> Failure | None:
    for names, words, exit_code, code, message in _DATABASE:
        if isinstance(error, _database_errors(*names)) and words in str(error):
            said = one_line(error).rstrip(".")
            return Failure(exit_code=exit_code, code=code, message=message.format(said=said))
    return None


def _database_errors(*names: str) -> tuple[type[BaseException], ...]:
    """Empty while nothing in this process has loaded a database driver."""
    modules = [sys.modules.get(name) for name in ("django.db.utils", "psycopg")]
    return tuple(getattr(module, name) for module in modules if module for name in names)


def one_line(error: BaseException) -> str:
    from harvester.guards.redaction import redact_text

    return redact_text(" ".join(str(error).split()))
