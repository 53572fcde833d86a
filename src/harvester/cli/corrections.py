"""`harvester corrections ...`: how prices are read that are known to be wrong."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, as_typed, moment
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "corrections",
    "How prices are read that are known to be wrong.",
    ("harvester corrections add --source Shop --product 42 --ignore --reason 'price of the case'",),
)


#: The fields of a correction, as they are typed.
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


class Force(StrEnum):
    """Which corrections, as it is typed."""

    in_force = "in-force"
    revoked = "revoked"
    all = "all"


@command(app, "list", ("harvester corrections list", "harvester corrections list --state all --json"), data=True)
def list_corrections(
    *,
    state: Annotated[Force, typer.Option(help="Only these.")] = Force.in_force,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many, the newest.")] = 50,
) -> None:
    """List corrections, the newest first."""
    with session():
        from harvester.catalog.models import PriceCorrection
        from harvester.cli import correction_views

        found = PriceCorrection.objects.select_related("source", "retailer").order_by("-created_at", "-pk")
        if state is not Force.all:
            found = found.filter(revoked_at__isnull=state is Force.in_force)
        made = list(found[:limit])
        data = {"corrections": [correction_views.public(correction) for correction in made]}
        OUT.show(data, lambda: correction_views.list_table(made))


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
    reason: Annotated[str, typer.Option(help="Why, for those who look later.")],
    retailer: Annotated[str, typer.Option(help="All prices of this retailer: its domain, name or id.")] = "",
    source: Annotated[str, typer.Option(help="All prices of this source: its name or id.")] = "",
    product: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Only this product of the source.")
    ] = None,
    run: Annotated[int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Only this run of the source.")] = None,
    ignore: Annotated[bool, typer.Option("--ignore", help="Ignore the prices; this wins over multipliers.")] = False,
    multiply: Annotated[str | None, typer.Option(help="Multiply the prices by this.")] = None,
    amount: Annotated[str | None, typer.Option("--set", help="Set the price of one product to this amount.")] = None,
    currency: Annotated[str | None, typer.Option(help="The currency of --set; that of the price.")] = None,
    open_ended: Annotated[
        bool, typer.Option("--open-ended", help="All prices, older and later ones too, until it is revoked.")
    ] = False,
    since: Annotated[str, typer.Option("--from", help="Only prices observed from this day or moment on, UTC.")] = "",
    until: Annotated[str, typer.Option("--before", help="Only prices observed before this day or moment, UTC.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")] = False,
) -> None:
    """Correct how prices are read. The prices themselves stay as they were observed.

    By default the correction is for the prices that are shown now and ends with the next different price of each
    product. With --from or --before it is for that window of time, with --open-ended for all prices until it is
    revoked.
    """
    given: dict[str, Any] = {
        "scope": _scope(retailer, source, product, run),
        "action": _action(ignore, multiply, amount),
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
        from harvester.cli import correction_views

        given |= {
            "retailer_id": retailers.find(retailer).pk if retailer else None,
            "source_id": sources.find(source).pk if source else None,
            "product_id": product,
            "run_no": run,
        }
        told = correction_previews.preview(**given)
        if dry_run:
            OUT.show(correction_views.preview_data(told), lambda: correction_views.preview_view(told))
            return
        made = corrections.create(operator(), expected=told.state, **given)
        OUT.show(correction_views.public(made), lambda: correction_views.in_force(made, told))


@command(app, "revoke", ("harvester corrections revoke 01980000-0000-7000-8000-000000000000",), data=True)
def revoke(
    correction: Annotated[str, typer.Argument(metavar="ID", help="As harvester corrections list shows it.")],
) -> None:
    """End a correction; the prices are read as they were observed again."""
    with session():
        from harvester.catalog import corrections
        from harvester.cli import correction_views

        ended = corrections.revoke(operator(), corrections.parse_id(correction))
        OUT.show(correction_views.public(ended), lambda: f"The correction {ended.pk} is revoked.")


def _scope(retailer: str, source: str, product: int | None, run: int | None) -> str:
    """What was named decides; the verb refuses what does not go together."""
    if not (retailer or source):
        raise InvalidInput("Say whose prices are corrected: --source or --retailer.")
    if product is not None:
        return "PRODUCT"
    if run is not None:
        return "RUN"
    return "RETAILER" if retailer else "SOURCE"


def _action(ignore: bool, multiply: str | None, amount: str | None) -> str:
    chosen = [
        action
        for action, is_chosen in (("IGNORE", ignore), ("MULTIPLIER", multiply is not None), ("SET", amount is not None))
        if is_chosen
    ]
    if len(chosen) != 1:
        raise InvalidInput(
            "Say what is to be done with the prices: either --ignore or --multiply with a number, or --set with an "
            "amount."
        )
    return chosen[0]
