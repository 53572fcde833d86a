"""What one check found."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How bad it is."""

    OK = "ok"  # as it should be
    WARN = "warn"  # works, but somebody should know
    FAIL = "fail"  # Harvester cannot do its work
    SKIP = "skip"  # could not be looked at, because something before it failed


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        check: what was looked at.
        state: how bad it is.
        finding: what is the case.
        advice: what to do about it.
    """

    check: str
    state: State
    finding: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def fine(check: str, finding: str) -> Finding:
    return Finding(check=check, state=State.OK, finding=finding)


def warn(check: str, finding: str, advice: str) -> Finding:
    return Finding(check=check, state=State.WARN, finding=finding, advice=advice)


def fail(check: str, finding: str, advice: str = "") -> Finding:
    return Finding(check=check, state=State.FAIL, finding=finding, advice=advice)


def skip(check: str, because: str) -> Finding:
    return Finding(check=check, state=State.SKIP, finding=because)
