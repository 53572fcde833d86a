"""Prices of an ignored run are in a file again: most likely the partner repeated the mistake."""

from harvester.feeds.gates.facts import RunFacts, Thresholds
from harvester.runs.gates import Gate, exceeds, percent, share

#: Of the prices that an ignored run had changed, the share that may come back.
MOST_REPEATED = 0.5


def check(facts: RunFacts, _thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when more than half of the prices that an ignored run had changed are in the file, and some are not live."""
    repeated, changed = facts.repeated_prices, facts.ignored_prices
    holds = exceeds(repeated, MOST_REPEATED, changed) and facts.returning_prices > 0
    reason = _reason(facts)
    return (
        holds,
        reason,
        {
            "repeated_prices": repeated,
            "returning_prices": facts.returning_prices,
            "ignored_prices": changed,
            "ignored_run_no": facts.ignored_run_no,
            "share": share(repeated, changed),
            "threshold_share": MOST_REPEATED,
        },
    )


def _reason(facts: RunFacts) -> str:
    repeated, changed = facts.repeated_prices, facts.ignored_prices
    if not changed:
        return "No ignored run of this source had changed a price."
    return (
        f"{repeated:,} of the {changed:,} prices ({percent(share(repeated, changed))}) that ignored run "
        f"{facts.ignored_run_no} had changed are in this file again; {facts.returning_prices:,} of them are not live."
    )


GATE = Gate(
    name="REPEATS_IGNORED",
    title="Prices of an ignored run",
    rule="Holds when more than {share} of the prices that an ignored run had changed come back.",
    check=check,
)
