"""Too many rows cannot be used: what is left of the file is no picture of the shop."""

from harvester.pipeline.gates.facts import Finding, RunFacts, Thresholds, exceeds, percent, share


def reject_share(facts: RunFacts, thresholds: Thresholds) -> Finding:
    """Hold when too large a share of the rows was rejected."""
    count, rows = facts.rows_rejected, facts.rows_read
    return Finding(
        gate="REJECT_SHARE",
        holds=exceeds(count, thresholds.reject_share, rows) and count >= thresholds.reject_least,
        reason=f"{count:,} of {rows:,} rows ({percent(share(count, rows))}) were rejected.",
        figures={
            "rows_rejected": count,
            "rows_read": rows,
            "share": share(count, rows),
            "threshold_share": thresholds.reject_share,
            "threshold_least": thresholds.reject_least,
        },
    )
