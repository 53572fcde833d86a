"""Tables of the `corrections` commands. Needs Django."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.correction_previews import Preview
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
        return Text("There are no such corrections.")
    now = database_now()
    rows = [
        (
            correction.pk,
            _scope_text(correction),
            _effect(correction),
            _end(correction),
            correction.reason,
            when(correction.created_at, now),
            "revoked" if correction.revoked_at else "in force",
        )
        for correction in found
    ]
    return table(("id", "scope", "prices", "until", "reason", "created", "state"), rows)


def _scope_text(correction: PriceCorrection) -> str:
    parts = {"product": correction.product_id, "run": correction.run_no}
    numbers = [f"{name} {number}" for name, number in parts.items() if number is not None]
    return ", ".join([*numbers, str(correction.source or correction.retailer)])


def _effect(correction: PriceCorrection) -> str:
    if correction.set_amount is not None:
        return f"set to {amount_text(correction.set_amount)} {correction.set_currency}"
    return "ignored" if correction.multiplier is None else f"x {correction.multiplier.normalize():f}"


def _end(correction: PriceCorrection) -> str:
    if correction.extent == CorrectionExtent.OBSERVED:
        return "next different price"
    return f"{correction.observed_to:%Y-%m-%d %H:%M}" if correction.observed_to else "revoked"


def preview_view(preview: Preview) -> RenderableType:
    count = f"{'More than ' if preview.is_more else ''}{preview.offers}"
    prices = f"{'more than ' if preview.prices_are_more else ''}{preview.prices}"
    since = f" since {preview.since:%Y-%m-%d}" if preview.since else ""
    text = Text(
        f"{count} offers show an affected price. Nothing was changed.\n"
        f"Recorded prices that change, history included: {prices}{since}. {preview.future}"
    )
    rows = [
        (
            change.product_id,
            change.title[:60],
            f"{amount_text(change.before)} {change.currency}",
            "no offer" if change.after is None else f"{amount_text(change.after)} {change.after_currency}",
        )
        for change in preview.samples
    ]
    columns = ("product", "title", "now", "then")
    return stacked(text, table(columns, rows, right=("product", "now", "then")) if rows else None)
