"""Exit codes, and turning any error into one line."""

import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from harvester.kernel.errors import ConfigError, Conflict, HarvesterError, InvalidInput, NotFound


class Exit(IntEnum):
    """All exit codes; 70 and 78 are those of sysexits.h."""

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
    Exit.FAILED: "failed",
    Exit.USAGE: "invalid arguments",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflict: not possible in the current state",
    Exit.HELD: "the run is held and waits for a decision",
    Exit.UNEXPECTED: "unexpected error",
    Exit.CONFIG: "configuration error",
    Exit.INTERRUPTED: "interrupted",
    Exit.TERMINATED: "terminated by a signal",
}

#: The first matching class decides.
_BY_KIND: tuple[tuple[type[HarvesterError], Exit], ...] = (
    (ConfigError, Exit.CONFIG),
    (InvalidInput, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.CONFLICT),
    (HarvesterError, Exit.FAILED),
)


class Terminated(BaseException):
    """SIGTERM or SIGHUP ended a command. A BaseException, so that no handler swallows it."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error as it is printed.

    Attributes:
        exit_code: for the shell.
        code: stable name, for scripts.
        message: one line.
        unexpected: a bug or an unknown error, so its traceback may help.
    """

    exit_code: Exit
    code: str
    message: str
    unexpected: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message}}


def failure_of(error: BaseException) -> Failure:
    """Return the failure for an error. Its text is redacted, because it may quote a URL with a password."""
    if isinstance(error, KeyboardInterrupt):
        return Failure(exit_code=Exit.INTERRUPTED, code="INTERRUPTED", message="interrupted")
    if isinstance(error, Terminated):
        return Failure(exit_code=Exit.TERMINATED, code="TERMINATED", message="terminated by a signal")
    if isinstance(error, HarvesterError):
        exit_code = next(code for kind, code in _BY_KIND if isinstance(error, kind))
        return Failure(exit_code=exit_code, code=error.code, message=one_line(error))
    message = one_line(error)
    modules = [sys.modules[name] for name in ("django.db.utils", "psycopg") if name in sys.modules]
    for names, text, exit_code, code, template in _DATABASE:
        classes = tuple(getattr(module, name) for module in modules for name in names)
        if isinstance(error, classes) and text in str(error):
            return Failure(exit_code=exit_code, code=code, message=template.format(error=message.rstrip(".")))
    return Failure(
        exit_code=Exit.UNEXPECTED, code="UNEXPECTED", message=f"{type(error).__name__}: {message}", unexpected=True
    )


_NOT_MIGRATED = "The database lacks the tables and roles of this version. Run: harvester migrate"
_NOT_ALLOWED = (
    "The database denied access: {error}. Run `harvester migrate` as the owner, and make the application's login a "
    "member of harvester_app."
)
_NO_ANSWER = "The database is not reachable: {error}. `harvester doctor` checks why."

#: Database errors: classes, a text in the error, exit code, code, and message. The first match decides.
_DATABASE: tuple[tuple[tuple[str, ...], str, Exit, str, str], ...] = (
    (("ProgrammingError",), "does not exist", Exit.CONFIG, "NOT_MIGRATED", _NOT_MIGRATED),
    (("OperationalError",), 'role "harvester_app" does not exist', Exit.CONFIG, "NOT_MIGRATED", _NOT_MIGRATED),
    (("ProgrammingError", "OperationalError"), "permission denied", Exit.CONFIG, "NOT_ALLOWED", _NOT_ALLOWED),
    (("OperationalError", "InterfaceError"), "", Exit.FAILED, "DATABASE_UNREACHABLE", _NO_ANSWER),
)


def one_line(error: BaseException) -> str:
    from harvester.guards.redaction import redact_text

    return redact_text(" ".join(str(error).split()))
