"""Gates decide whether a run waits for a person. They are pure functions of counts, taken before anything is written.

    facts of the run, thresholds of its subject ─> gate ─> Finding: passes or holds, with figures and a reason

Each kind of run lists its gates; for feeds see `harvester.feeds.gates`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final

#: Figures of a finding with this prefix are thresholds.
THRESHOLD: Final = "threshold_"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one gate.

    Attributes:
        gate: its name, constant.
        holds: whether the run has to wait for a person.
        reason: one sentence with the figures, for people.
        figures: the same as numbers.
    """

    gate: str
    holds: bool
    reason: str
    figures: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One reason for which a run waits for a person.

    Attributes:
        name: constant; kept with runs and used in messages of the API.
        title: for people.
        rule: when it holds a run, as a template with the thresholds among its figures, without their prefix.
        check: facts and thresholds -> whether it holds, the reason, and the figures.
    """

    name: str
    title: str
    rule: str
    check: Callable[[Any, Any], tuple[bool, str, dict[str, float]]]

    def find(self, facts: Any, thresholds: Any) -> Finding:
        holds, reason, figures = self.check(facts, thresholds)
        return Finding(gate=self.name, holds=holds, reason=reason, figures=figures)

    def rule_with(self, figures: Mapping[str, float]) -> str:
        """Return the gate's rule with the thresholds of that time; empty if they are not known."""
        limits: dict[str, Any] = {
            name.removeprefix(THRESHOLD): value for name, value in figures.items() if name.startswith(THRESHOLD)
        }
        for name in ("share", "move"):
            if name in limits:
                limits[name] = percent(limits[name]).replace(".0%", "%")
        try:
            return self.rule.format_map(limits)
        except KeyError:
            return ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The findings of all gates."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.holding

    @property
    def holding(self) -> tuple[Finding, ...]:
        """The findings that hold the run."""
        return tuple(finding for finding in self.findings if finding.holds)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the findings as they are stored with the run."""
        return [asdict(finding) for finding in self.findings]


def judge(gates: Iterable[Gate], facts: Any, thresholds: Any) -> Verdict:
    """Return the findings of every gate; one that holds is enough."""
    return Verdict(findings=tuple(gate.find(facts, thresholds) for gate in gates))


def share(part: int, whole: int) -> float:
    """Return the share of a part; 0 of an empty whole."""
    return part / whole if whole else 0.0


def percent(value: float) -> str:
    """Return a share for people, such as 12.5%."""
    return f"{value:.1%}"


def exceeds(part: int, most: float, whole: int) -> bool:
    """Return whether a part is more than this share of the whole, exactly: binary fractions would be inexact."""
    return part > Decimal(str(most)) * whole
