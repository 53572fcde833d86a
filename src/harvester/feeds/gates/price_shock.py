"""Too many prices changed too much at once: columns were swapped, or the currency is another one."""

from harvester.feeds.gates.facts import RunFacts, Thresholds
from harvester.runs.gates import Gate, exceeds, percent, share


def check(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when the prices of too large a share of the known products changed by more than the threshold."""
    count, known = facts.shocked_products, facts.known_products
    holds = exceeds(count, thresholds.shock_share, known) and count >= thresholds.shock_least
    reason = (
        f"{count:,} of {known:,} known products ({percent(share(count, known))}) moved by more than "
        f"{percent(thresholds.shock_move)} or changed their currency."
    )
    return (
        holds,
        reason,
        {
            "shocked_products": count,
            "known_products": known,
            "share": share(count, known),
            "threshold_move": thresholds.shock_move,
            "threshold_share": thresholds.shock_share,
            "threshold_least": thresholds.shock_least,
        },
    )


GATE = Gate(
    name="PRICE_SHOCK",
    title="Price shock",
    rule="Holds when more than {share} of the known products, and at least {least:,}, move by more than {move} "
    "or change their currency.",
    check=check,
)
