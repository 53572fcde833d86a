"""Too many products that are on sale would go: most likely the file is not whole."""

from harvester.pipeline.gates.facts import Finding, RunFacts, Thresholds, is_spike, percent, share


def expiry_spike(facts: RunFacts, thresholds: Thresholds) -> Finding:
    """Hold when too large a share, or too many, of the active products were not seen."""
    missing, before = facts.missing, facts.active_before
    return Finding(
        gate="EXPIRY_SPIKE",
        holds=is_spike(missing, before, thresholds),
        reason=f"{missing:,} of {before:,} active products ({percent(share(missing, before))}) are not in the file.",
        figures={
            "missing": missing,
            "active_before": before,
            "share": share(missing, before),
            "threshold_share": thresholds.expiry_share,
            "threshold_least": thresholds.expiry_least,
            "threshold_most": thresholds.expiry_most,
        },
    )
