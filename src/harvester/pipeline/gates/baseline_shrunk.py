"""Everything has expired meanwhile, so nothing can be missing: the last promoted run is what is compared with."""

from harvester.pipeline.gates.facts import Finding, RunFacts, Thresholds, is_spike, percent, share


def baseline_shrunk(facts: RunFacts, thresholds: Thresholds) -> Finding:
    """Hold when nothing is active and the file has far fewer products than the last promoted one."""
    before = facts.promoted_before or 0
    missing = max(0, before - facts.products) if not facts.active_before else 0
    return Finding(
        gate="BASELINE_SHRUNK",
        holds=not facts.active_before and is_spike(missing, before, thresholds),
        reason=_reason(facts, before, missing),
        figures={
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
        f"Nothing is active any more; the last promoted run had {before:,} products and this file has "
        f"{facts.products:,} ({percent(share(missing, before))} fewer)."
    )
