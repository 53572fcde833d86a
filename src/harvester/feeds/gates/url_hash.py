"""Too many products have no ID or SKU: a changed URL would make each of them a new product."""

from harvester.feeds.gates.facts import RunFacts, Thresholds
from harvester.runs.gates import Gate, exceeds, percent, share


def check(facts: RunFacts, thresholds: Thresholds) -> tuple[bool, str, dict[str, float]]:
    """Hold when too large a share, or too many, of the products have neither an item ID nor a SKU."""
    count, products = facts.url_hash_products, facts.products
    is_too_many = exceeds(count, thresholds.url_hash_share, products) or count > thresholds.url_hash_most
    accepted = " This feed accepts that." if thresholds.accepts_url_identity and is_too_many else ""
    holds = is_too_many and not thresholds.accepts_url_identity
    reason = (
        f"{count:,} of {products:,} products ({percent(share(count, products))}) have no item ID or SKU "
        f"and are matched by URL.{accepted}"
    )
    return (
        holds,
        reason,
        {
            "url_hash_products": count,
            "products": products,
            "share": share(count, products),
            "threshold_share": thresholds.url_hash_share,
            "threshold_most": thresholds.url_hash_most,
        },
    )


GATE = Gate(
    name="URL_HASH",
    title="No ID or SKU (matched by URL)",
    rule="Holds when more than {share} of the products, or more than {most:,}, have neither item id nor SKU.",
    check=check,
)
