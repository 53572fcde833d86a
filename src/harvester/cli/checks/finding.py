"""The result of a check."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"  # works, but needs attention
    FAIL = "fail"  # Harvester cannot work
    SKIP = "skip"  # not checked, because an earlier check failed or nothing exists yet


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        check: what was checked.
        state: the severity.
        finding: the result.
        advice: what to do.
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
