"""Too many active products would disappear: most likely the file is incomplete."""

from harvester.feeds.gates.facts import SPIKE_RULE, RunFacts, Thresholds, is_spike
from harvester.runs.gates import Gate, percent, share


def check(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when too large a share, or too many, of the active products were not seen."""
    missing, before = facts.missing, facts.active_before
    holds = is_spike(missing, before, thresholds)
    reason = f"{missing:,} of {before:,} active products ({percent(share(missing, before))}) are not in the file."
    return (
        holds,
        reason,
        {
            "missing": missing,
            "active_before": before,
            "share": share(missing, before),
            "threshold_share": thresholds.expiry_share,
            "threshold_least": thresholds.expiry_least,
            "threshold_most": thresholds.expiry_most,
        },
    )


GATE = Gate(
    name="EXPIRY_SPIKE",
    title="Missing products",
    rule=f"Holds when {SPIKE_RULE}.",
    check=check,
)
