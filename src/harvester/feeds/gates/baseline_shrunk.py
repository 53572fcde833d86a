"""All products have expired, so none can be missing: the file is compared with the last promoted run."""

from harvester.feeds.gates.facts import SPIKE_RULE, RunFacts, Thresholds, is_spike
from harvester.runs.gates import Gate, percent, share


def check(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when nothing is active and the file has far fewer products than the last promoted one."""
    before = facts.promoted_before or 0
    missing = max(0, before - facts.products) if not facts.active_before else 0
    holds = not facts.active_before and is_spike(missing, before, thresholds)
    reason = _reason(facts, before, missing)
    return (
        holds,
        reason,
        {
            "missing": missing,
            "promoted_before": before,
            "products": facts.products,
            "share": share(missing, before),
            "threshold_share": thresholds.expiry_share,
            "threshold_least": thresholds.expiry_least,
            "threshold_most": thresholds.expiry_most,
        },
    )


def _reason(facts: RunFacts, before: int, missing: int) -> str:
    if facts.active_before:
        return "There are active products; “Missing products” compares with them."
    if not before:
        return "No run was promoted before."
    return (
        f"No product is active any more; the last promoted run had {before:,} products and this file has "
        f"{facts.products:,} ({percent(share(missing, before))} fewer)."
    )


GATE = Gate(
    name="BASELINE_SHRUNK",
    title="Smaller than the last run",
    rule=f"Only for a source without active products. Holds when {SPIKE_RULE}.",
    check=check,
)
