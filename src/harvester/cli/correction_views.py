"""How corrections look. Needs Django."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.correction_previews import Change, Preview
from harvester.catalog.models import PriceCorrection
from harvester.cli.job_views import database_now
from harvester.cli.output import amount_text, stacked, table, when

_FACTS = (
    "id", "scope", "retailer_id", "source_id", "product_id", "run_no", "observed_from", "observed_to", "action",
    "multiplier", "reason", "created_by", "created_at", "revoked_by", "revoked_at",
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
            "ignored" if correction.multiplier is None else f"x {correction.multiplier.normalize():f}",
            correction.reason,
            when(correction.created_at, now),
            "revoked" if correction.revoked_at else "in force",
        )
        for correction in found
    ]
    return table(("id", "prices of", "are", "why", "made", "state"), rows)


def _about(correction: PriceCorrection) -> str:
    parts = {"product": correction.product_id, "run": correction.run_no}
    named = [f"{name} {number}" for name, number in parts.items() if number is not None]
    return ", ".join([*named, str(correction.source or correction.retailer)])


def preview_data(told: Preview) -> dict[str, Any]:
    return {"offers": told.offers, "is_more": told.is_more, "samples": [vars(change) for change in told.samples]}


def preview_view(told: Preview) -> RenderableType:
    count = f"{'More than ' if told.is_more else ''}{told.offers}"
    words = Text(f"{count} offers show a price that it is about. Nothing was changed.")
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
