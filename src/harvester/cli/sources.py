"""`harvester source ...`: the ways in which a retailer's offers arrive."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "source",
    "The ways in which a retailer's offers arrive.",
    ("harvester source add 'Shop by Impact' --retailer shop.example --kind AFFILIATE_FEED", "harvester source list"),
)


class Kind(StrEnum):
    """The kinds as they are typed."""

    DIRECT = "DIRECT"
    AFFILIATE_FEED = "AFFILIATE_FEED"
    OTHER = "OTHER"


class Visible(StrEnum):
    """Whether scraped prices count, as it is typed."""

    ELIGIBLE = "ELIGIBLE"
    INELIGIBLE = "INELIGIBLE"


#: As words of the help: a column of all of them leaves no room for the names of the options on 80 columns.
KINDS = "DIRECT, AFFILIATE_FEED or OTHER: where the offers come from."
Reference = Annotated[str, typer.Argument(metavar="SOURCE", help="Its name or its id.")]
Url = Annotated[str | None, typer.Option(help="Where it is to be found.")]
Network = Annotated[str | None, typer.Option(help="The affiliate network, such as IMPACT.")]
AccountId = Annotated[str | None, typer.Option(help="The advertiser's number at the network.")]
AccountName = Annotated[str | None, typer.Option(help="The advertiser's name at the network.")]
Template = Annotated[
    str | None,
    typer.Option(help="An address with {url}, {url_raw}, {sku}, {item_id} or {source}; '' for the feed's own links."),
]
Trusted = Annotated[
    bool | None, typer.Option("--upc-trusted/--no-upc-trusted", help="Whether its trade item numbers link products.")
]
Visibility = Annotated[
    Visible | None,
    typer.Option(metavar="WORD", help="ELIGIBLE or INELIGIBLE: whether prices that were scraped from it count."),
]
Heartbeat = Annotated[int | None, typer.Option(help="Hours after which an unchanged price is written again.")]
MaxHold = Annotated[int | None, typer.Option(help="Hours for which an undecided hold keeps offers from expiring.")]


@command(
    app,
    "add",
    (
        "harvester source add Shop --retailer shop.example --url https://shop.example",
        "harvester source add 'Shop by Impact' --retailer Shop --kind AFFILIATE_FEED --network IMPACT",
    ),
    data=True,
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that no other source has.")],
    *,
    retailer: Annotated[str, typer.Option(help="Whose offers: the retailer's domain, name or id.")],
    kind: Annotated[Kind, typer.Option(metavar="WORD", help=KINDS)] = Kind.DIRECT,
    url: Url = None,
    network: Network = None,
    account_id: AccountId = None,
    account_name: AccountName = None,
    tracking_template: Template = None,
    upc_trusted: Trusted = None,
) -> None:
    """Add a source to a retailer. Affiliate sources are not shown before harvester source primary says so."""
    given = _given(
        url=url, affiliate_network=network, affiliate_account_id=account_id, affiliate_account_name=account_name,
        tracking_template=tracking_template, upc_trusted=upc_trusted,
    )  # fmt: skip
    with session():
        from harvester.catalog import retailers, sources
        from harvester.cli import source_views

        owner = retailers.find(retailer)
        made = sources.create(operator(), owner.pk, name=name, kind=kind.value, **given)
        OUT.show(source_views.public(made), lambda: f"{made.name} was added to {owner.name}.")


@command(app, "list", ("harvester source list", "harvester source list --retailer shop.example"), data=True)
def list_sources(
    *, retailer: Annotated[str, typer.Option(help="Only this retailer's: its domain, name or id.")] = ""
) -> None:
    """List sources with what consumers see of them."""
    with session():
        from harvester.catalog import retailers
        from harvester.cli import source_views

        found = source_views.listed(retailers.find(retailer) if retailer else None)
        OUT.show({"sources": found}, lambda: source_views.list_table(found))


@command(app, "show", ("harvester source show 'Shop by Impact'",), data=True)
def show(source: Reference) -> None:
    """Show a source: what it is, how fresh it is, what is held."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import source_views

        found = source_views.public(sources.find(source))
        OUT.show(found, lambda: source_views.detail_view(found))


@command(
    app,
    "set",
    (
        "harvester source set Shop --upc-trusted",
        "harvester source set 'Shop by Impact' --tracking-template 'https://go.example/?u={url}'",
    ),
    data=True,
)
def change(
    source: Reference,
    *,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    kind: Annotated[Kind | None, typer.Option(metavar="WORD", help=KINDS)] = None,
    url: Url = None,
    network: Network = None,
    account_id: AccountId = None,
    account_name: AccountName = None,
    tracking_template: Template = None,
    upc_trusted: Trusted = None,
    visibility: Visibility = None,
    price_heartbeat_hours: Heartbeat = None,
    max_hold_hours: MaxHold = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what consumers would see differently with another --kind.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before offers vanish or appear.")] = False,
) -> None:
    """Change what a source is. The expiry of its offers is a setting of its feed.

    Another kind may change what consumers see. What vanishes and what appears is shown first.
    """
    changes = _given(
        name=name, kind=kind, url=url, affiliate_network=network, affiliate_account_id=account_id,
        affiliate_account_name=account_name, tracking_template=tracking_template, upc_trusted=upc_trusted,
        visibility=visibility, price_heartbeat_hours=price_heartbeat_hours, max_hold_hours=max_hold_hours,
    )  # fmt: skip
    if not changes:
        raise InvalidInput("There is nothing to change; harvester source set --help lists what can be.")
    with session():
        from harvester.catalog import sources
        from harvester.catalog.display_primary import preview_kind
        from harvester.cli import source_views

        found = sources.find(source)
        told = preview_kind(found.pk, changes.get("kind", found.kind))
        if dry_run:
            OUT.show(source_views.preview_data(told), lambda: source_views.preview_view(told))
            return
        if told.state and not yes:
            _ask(source_views.preview_view(told))
        made = sources.update(operator(), found.pk, **changes)
        OUT.show(source_views.public(made), lambda: f"{made.name} was changed: {', '.join(sorted(changes))}.")


@command(
    app,
    "primary",
    (
        "harvester source primary 'Shop by Impact' --dry-run      what would vanish, and what appear",
        "harvester source primary 'Shop by Impact'",
        "harvester source primary Shop --unset",
    ),
    data=True,
)
def primary(
    source: Reference,
    *,
    unset: Annotated[
        bool, typer.Option("--unset", help="Leave the retailer without a primary: then its direct sources are shown.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")] = False,
) -> None:
    """Make a source the one of its retailer that consumers see, at once; any other is so no longer."""
    with session():
        from harvester.catalog import sources
        from harvester.catalog.display_primary import preview, set_display_primary, unset_display_primary
        from harvester.cli import source_views

        found = sources.find(source)
        if dry_run:
            told = preview(found.pk, primary=not unset)
            OUT.show(source_views.preview_data(told), lambda: source_views.preview_view(told))
            return
        verb = unset_display_primary if unset else set_display_primary
        made = verb(operator(), found.pk)
        state = "no longer the display primary" if unset else "the display primary"
        OUT.show(source_views.public(made), lambda: f"{made.name} is {state} of {made.retailer.name}.")


def _ask(preview: Any) -> None:
    if not sys.stdin.isatty() or OUT.as_json:
        raise InvalidInput(
            "Another kind changes what consumers see, and there is no terminal to ask on. Nothing was changed. Look at "
            "it with --dry-run, then say --yes."
        )
    OUT.say(preview)
    if not typer.confirm("Continue?", err=True):
        OUT.hint("Nothing was changed.")
        raise typer.Exit(Exit.FAILED)


def _given(**values: Any) -> dict[str, Any]:
    """What was typed; enums as plain words."""
    plain = {name: value.value if isinstance(value, StrEnum) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not None}
