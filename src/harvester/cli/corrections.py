"""`harvester corrections ...`: corrections of wrong prices."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.states import CorrectionExtent
from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, as_typed, moment
from harvester.cli.output import OUT, amount_text, stacked, table, when
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "corrections",
    "Correct wrong prices.",
    ("harvester corrections add --source Shop --product 42 --ignore --reason 'price of the case'",),
)


#: Field of a correction -> option.
_OPTIONS = {
    "retailer_id": "--retailer",
    "source_id": "--source",
    "product_id": "--product",
    "run_no": "--run",
    "multiplier": "--multiply",
    "set_amount": "--set",
    "set_currency": "--currency",
    "extent": "--open-ended",
    "observed_to": "--before",
}


_FACTS = (
    "id", "scope", "retailer_id", "source_id", "product_id", "run_no", "observed_from", "observed_to", "action",
    "multiplier", "set_amount", "set_currency", "extent", "reason", "created_by", "created_at", "revoked_by",
    "revoked_at",
)  # fmt: skip


class Force(StrEnum):
    """Values of --state."""

    in_force = "in-force"
    revoked = "revoked"
    all = "all"


@command(app, "list", ("harvester corrections list", "harvester corrections list --state all --json"), data=True)
def list_corrections(
    *,
    state: Annotated[Force, typer.Option(help="Only these.")] = Force.in_force,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many, the newest.")] = 50,
) -> None:
    """List corrections, newest first."""
    with session():
        from harvester.catalog.models import PriceCorrection
        from harvester.cli.job_views import database_now

        found = PriceCorrection.objects.select_related("source", "retailer").order_by("-created_at", "-pk")
        if state is not Force.all:
            found = found.filter(revoked_at__isnull=state is Force.in_force)
        made, now = list(found[:limit]), database_now()
        data = {"corrections": [_public(correction) for correction in made]}
        OUT.show(data, lambda: _table(made, now))


@command(
    app,
    "add",
    (
        "harvester corrections add --source Shop --product 42 --ignore --reason 'price of the case'",
        "harvester corrections add --source Shop --product 42 --set 12.99 --currency USD --reason 'typing error'",
        "harvester corrections add --source Shop --multiply 0.01 --reason 'in cents' --from 2026-01-31 --dry-run",
    ),
    data=True,
)
def add(
    *,
    reason: Annotated[str, typer.Option(help="Why, for others.")],
    retailer: Annotated[str, typer.Option(help="All prices of this retailer: its domain, name or id.")] = "",
    source: Annotated[str, typer.Option(help="All prices of this source: its name or id.")] = "",
    product: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Only this product of the source.")
    ] = None,
    run: Annotated[int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Only this run of the source.")] = None,
    ignore: Annotated[bool, typer.Option("--ignore", help="Ignore the prices, whatever the multipliers.")] = False,
    multiply: Annotated[str | None, typer.Option(help="Multiply the prices by this.")] = None,
    amount: Annotated[str | None, typer.Option("--set", help="Set the price of one product to this amount.")] = None,
    currency: Annotated[str | None, typer.Option(help="The currency of --set; must be that of the price.")] = None,
    open_ended: Annotated[
        bool, typer.Option("--open-ended", help="All prices, past and future, until it is revoked.")
    ] = False,
    since: Annotated[str, typer.Option("--from", help="Only prices observed from this date or time on, UTC.")] = "",
    until: Annotated[str, typer.Option("--before", help="Only prices observed before this date or time, UTC.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the effect.")] = False,
) -> None:
    """Correct prices. The recorded observations do not change.

    By default a correction applies to the prices that are shown now, and ends for each product with its next different
    price. With --from or --before it applies to prices observed in that period, with --open-ended to all prices until
    it is revoked.
    """
    scope = _scope(retailer, source, product, run)
    chosen = {"IGNORE": ignore, "MULTIPLIER": multiply is not None, "SET": amount is not None}
    actions = [action for action, is_chosen in chosen.items() if is_chosen]
    if len(actions) != 1:
        raise InvalidInput("Nothing was changed: give exactly one of --ignore, --multiply and --set.")
    given: dict[str, Any] = {
        "scope": scope,
        "action": actions[0],
        "multiplier": multiply,
        "set_amount": amount,
        "set_currency": currency,
        "extent": "WINDOW" if open_ended else None,
        "reason": reason,
        "observed_from": moment("--from", since),
        "observed_to": moment("--before", until),
    }
    with session(), as_typed(**_OPTIONS):
        from harvester.catalog import correction_previews, corrections, retailers, sources

        given |= {
            "retailer_id": retailers.find(retailer).pk if retailer else None,
            "source_id": sources.find(source).pk if source else None,
            "product_id": product,
            "run_no": run,
        }
        preview = correction_previews.preview(**given)
        if dry_run:
            data = {**vars(preview), "samples": [vars(change) for change in preview.samples]}
            OUT.show(data, lambda: _preview_view(preview))
            return
        made = corrections.create(operator(), expected=preview.state, **given)
        count = f"{'more than ' if preview.is_more else ''}{preview.offers}"
        message = f"The correction {made.pk} is in force; offers changed: {count}."
        OUT.show(_public(made), lambda: message)


@command(app, "revoke", ("harvester corrections revoke 01980000-0000-7000-8000-000000000000",), data=True)
def revoke(
    correction: Annotated[str, typer.Argument(metavar="ID", help="As listed.")],
) -> None:
    """End a correction. The observed prices apply again."""
    with session():
        from harvester.catalog import corrections

        ended = corrections.revoke(operator(), corrections.parse_id(correction))
        OUT.show(_public(ended), lambda: f"The correction {ended.pk} is revoked.")


def _scope(retailer: str, source: str, product: int | None, run: int | None) -> str:
    """Return the scope that the options imply; the verb rejects combinations that are not allowed."""
    if not (retailer or source):
        raise InvalidInput("Nothing was changed: give --source or --retailer.")
    if product is not None:
        return "PRODUCT"
    if run is not None:
        return "RUN"
    return "RETAILER" if retailer else "SOURCE"


def _table(found: list[Any], now: datetime) -> RenderableType:
    if not found:
        return Text("There are no such corrections.")
    rows = []
    for correction in found:
        numbers = {"product": correction.product_id, "run": correction.run_no}
        scope = [f"{name} {number}" for name, number in numbers.items() if number is not None]
        effect = "ignored" if correction.multiplier is None else f"x {correction.multiplier.normalize():f}"
        if correction.set_amount is not None:
            effect = f"set to {amount_text(correction.set_amount)} {correction.set_currency}"
        end = f"{correction.observed_to:%Y-%m-%d %H:%M}" if correction.observed_to else "revoked"
        if correction.extent == CorrectionExtent.OBSERVED:
            end = "next different price"
        rows.append(
            (
                correction.pk,
                ", ".join([*scope, str(correction.source or correction.retailer)]),
                effect,
                end,
                correction.reason,
                when(correction.created_at, now),
                "revoked" if correction.revoked_at else "in force",
            )
        )
    return table(("id", "scope", "prices", "until", "reason", "created", "state"), rows)


def _public(correction: Any) -> dict[str, Any]:
    return {name: getattr(correction, name) for name in _FACTS}


def _preview_view(preview: Any) -> RenderableType:
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
