"""The gates of actor runs."""

from dataclasses import dataclass
from typing import Final

from harvester.runs.gates import Gate, exceeds, percent, share

#: Of the real rows of the last accepted run, the share that may be lacking.
MOST_LACKING: Final = 0.5
#: Lacking rows from which the share counts.
LEAST_LACKING: Final = 5


@dataclass(frozen=True, kw_only=True)
class ActorFacts:
    """Counts of one run.

    Attributes:
        rows: rows of the dataset.
        real: of them, those that are not notes about an error.
        real_before: the same of the last accepted run.
    """

    rows: int
    real: int
    real_before: int


def _is_empty(facts: ActorFacts, _thresholds: None) -> tuple[bool, str, dict[str, float]]:
    reason = (
        f"The actor returned {facts.rows:,} rows, none of them real; the last accepted run had {facts.real_before:,}."
    )
    if facts.real:
        reason = f"{facts.real:,} of {facts.rows:,} rows are real."
    return not facts.real and facts.real_before > 0, reason, {"rows": facts.rows, "real_before": facts.real_before}


def _is_shrunk(facts: ActorFacts, _thresholds: None) -> tuple[bool, str, dict[str, float]]:
    lacking = max(0, facts.real_before - facts.real)
    part = share(lacking, facts.real_before)
    holds = facts.real > 0 and exceeds(lacking, MOST_LACKING, facts.real_before) and lacking >= LEAST_LACKING
    reason = f"{facts.real:,} rows are real; the last accepted run had {facts.real_before:,} ({percent(part)} fewer)."
    figures = {
        "lacking": lacking,
        "real_before": facts.real_before,
        "threshold_share": MOST_LACKING,
        "threshold_least": LEAST_LACKING,
    }
    return holds, reason, figures


GATES: Final = (
    Gate(
        name="BLOCKED_OR_EMPTY",
        title="Blocked or empty",
        rule="Holds when no row is real although the last accepted run had some.",
        check=_is_empty,
    ),
    Gate(
        name="ACTOR_SHRUNK",
        title="Fewer rows than before",
        rule="Holds when more than {share} of the rows of the last accepted run, and at least {least:,}, are lacking.",
        check=_is_shrunk,
    ),
)
