"""How corrections look. Needs Django."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.correction_previews import Change, Preview
from harvester.catalog.models import PriceCorrection
from harvester.catalog.states import CorrectionExtent
from harvester.cli.job_views import database_now
from harvester.cli.output import amount_text, stacked, table, when

_FACTS = (
    "id", "scope", "retailer_id", "source_id", "product_id", "run_no", "observed_from", "observed_to", "action",
    "multiplier", "set_amount", "set_currency", "extent", "reason", "created_by", "created_at", "revoked_by",
    "revoked_at",
)  # fmt: skip


def public(correction: PriceCorrection) -> dict[str, Any]:
    return {name: getattr(correction, name) for name in _FACTS}


def list_table(found: Sequence[PriceCorrection]) -> RenderableType:
    if not found:
        return Text("There is no such correction.")
    now = database_now()
    rows = [
        (
            correction.pk,
            _about(correction),
            _effect(correction),
            _until(correction),
            correction.reason,
            when(correction.created_at, now),
            "revoked" if correction.revoked_at else "in force",
        )
        for correction in found
    ]
    return table(("id", "prices of", "are", "until", "why", "made", "state"), rows)


def _effect(correction: PriceCorrection) -> str:
    if correction.set_amount is not None:
        return f"set to {amount_text(correction.set_amount)} {correction.set_currency}"
    return "ignored" if correction.multiplier is None else f"x {correction.multiplier.normalize():f}"


def _until(correction: PriceCorrection) -> str:
    if correction.extent == CorrectionExtent.OBSERVED:
        return "next different price"
    return f"{correction.observed_to:%Y-%m-%d %H:%M}" if correction.observed_to else "revoked"


def _about(correction: PriceCorrection) -> str:
    parts = {"product": correction.product_id, "run": correction.run_no}
    named = [f"{name} {number}" for name, number in parts.items() if number is not None]
    return ", ".join([*named, str(correction.source or correction.retailer)])


def preview_data(told: Preview) -> dict[str, Any]:
    return {**vars(told), "samples": [vars(change) for change in told.samples]}


def preview_view(told: Preview) -> RenderableType:
    count = f"{'More than ' if told.is_more else ''}{told.offers}"
    prices = f"{'more than ' if told.prices_are_more else ''}{told.prices}"
    since = f" since {told.since:%Y-%m-%d}" if told.since else ""
    words = Text(
        f"{count} offers show a price that it is about. Nothing was changed.\n"
        f"Recorded prices that change, history included: {prices}{since}. {told.future}"
    )
    rows = [
        (change.product_id, change.title[:60], f"{amount_text(change.before)} {change.currency}", _after(change))
        for change in told.samples
    ]
    columns = ("product", "title", "now", "then")
    return stacked(words, table(columns, rows, right=("product", "now", "then")) if rows else None)


def in_force(made: PriceCorrection, told: Preview) -> str:
    count = f"{'more than ' if told.is_more else ''}{told.offers}"
    return f"The correction {made.pk} is in force; offers changed: {count}."


def _after(change: Change) -> str:
    return "no offer" if change.after is None else f"{amount_text(change.after)} {change.after_currency}"
