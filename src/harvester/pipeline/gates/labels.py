"""What each gate is called, and when it holds a run, in the words of people."""

from collections.abc import Mapping
from typing import Any, Final

from harvester.pipeline.gates.facts import percent

TITLES: Final = {
    "EXPIRY_SPIKE": "Missing products",
    "BASELINE_SHRUNK": "Smaller than the last run",
    "URL_HASH": "No ID or SKU (matched by URL)",
    "PRICE_SHOCK": "Price shock",
    "REPEATS_IGNORED": "Prices of an ignored run",
    "REJECT_SHARE": "Rejected rows",
}
_MISSING: Final = "more than {share} of them, and at least {least:,}, are missing, or {most:,} whatever their share"
#: Gate -> when it holds; the names are those of the thresholds among its figures.
_RULES: Final = {
    "EXPIRY_SPIKE": f"Holds when {_MISSING}.",
    "BASELINE_SHRUNK": f"Asked only when nothing is active any more. Holds when {_MISSING}.",
    "URL_HASH": "Holds when more than {share} of the products, or more than {most:,}, have neither item id nor SKU.",
    "PRICE_SHOCK": "Holds when more than {share} of the known products, and at least {least:,}, move by more than "
    "{move} or change their currency.",
    "REPEATS_IGNORED": "Holds when more than {share} of the prices that an ignored run had changed come back.",
    "REJECT_SHARE": "Holds when more than {share} of the rows, and at least {least:,}, are rejected.",
}
_PREFIX: Final = "threshold_"


def title_of(gate: str) -> str:
    return TITLES.get(gate, gate.replace("_", " ").capitalize())


def rule_of(gate: str, figures: Mapping[str, float]) -> str:
    """When the gate would have held the run, by the thresholds that the feed had then; empty if that is not known."""
    limits: dict[str, Any] = {
        name.removeprefix(_PREFIX): value for name, value in figures.items() if name.startswith(_PREFIX)
    }
    shares: dict[str, Any] = {
        name: percent(limits[name]).replace(".0%", "%") for name in ("share", "move") if name in limits
    }
    try:
        return _RULES[gate].format_map({**limits, **shares})
    except KeyError:
        return ""
