"""Too many prices moved too far at once: a column was swapped, or a currency."""

from harvester.pipeline.gates.facts import Finding, RunFacts, Thresholds, exceeds, percent, share


def price_shock(facts: RunFacts, thresholds: Thresholds) -> Finding:
    """Hold when too large a share of the known products moved by more than they should."""
    count, known = facts.shocked_products, facts.known_products
    return Finding(
        gate="PRICE_SHOCK",
        holds=exceeds(count, thresholds.shock_share, known) and count >= thresholds.shock_least,
        reason=f"{count:,} of {known:,} known products ({percent(share(count, known))}) moved by more than "
        f"{percent(thresholds.shock_move)} or changed their currency.",
        figures={
            "shocked_products": count,
            "known_products": known,
            "share": share(count, known),
            "threshold_move": thresholds.shock_move,
            "threshold_share": thresholds.shock_share,
            "threshold_least": thresholds.shock_least,
        },
    )
