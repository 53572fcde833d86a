"""Too many rows cannot be used: the rest of the file does not show the shop's catalog."""

from harvester.feeds.gates.facts import RunFacts, Thresholds
from harvester.runs.gates import Gate, exceeds, percent, share


def check(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when too large a share of the rows was rejected."""
    count, rows = facts.rows_rejected, facts.rows_read
    holds = exceeds(count, thresholds.reject_share, rows) and count >= thresholds.reject_least
    reason = f"{count:,} of {rows:,} rows ({percent(share(count, rows))}) were rejected."
    return (
        holds,
        reason,
        {
            "rows_rejected": count,
            "rows_read": rows,
            "share": share(count, rows),
            "threshold_share": thresholds.reject_share,
            "threshold_least": thresholds.reject_least,
        },
    )


GATE = Gate(
    name="REJECT_SHARE",
    title="Rejected rows",
    rule="Holds when more than {share} of the rows, and at least {least:,}, are rejected.",
    check=check,
)
