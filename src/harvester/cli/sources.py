"""`harvester source ...`: where a retailer's offers come from."""

import sys
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, count_text, pairs, stacked, table, when
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "source",
    "Add, show and change the sources of a retailer's offers.",
    ("harvester source add 'Shop by Impact' --retailer shop.example --kind AFFILIATE_FEED", "harvester source list"),
)


class Kind(StrEnum):
    """Values of --kind."""

    DIRECT = "DIRECT"
    AFFILIATE_FEED = "AFFILIATE_FEED"
    OTHER = "OTHER"


class Visible(StrEnum):
    """Values of --visibility: whether scraped prices count."""

    ELIGIBLE = "ELIGIBLE"
    INELIGIBLE = "INELIGIBLE"


#: Listed in the help text: a list of all values as metavar leaves no room for option names in 80 columns.
KINDS = "DIRECT, AFFILIATE_FEED or OTHER: where the offers come from."
Reference = Annotated[str, typer.Argument(metavar="SOURCE", help="Its name or its id.")]
Url = Annotated[str | None, typer.Option(help="Its website.")]
Network = Annotated[str | None, typer.Option(help="The affiliate network, such as IMPACT.")]
AccountId = Annotated[str | None, typer.Option(help="The advertiser's id at the network.")]
AccountName = Annotated[str | None, typer.Option(help="The advertiser's name at the network.")]
Template = Annotated[
    str | None,
    typer.Option(help="A URL with {url}, {url_raw}, {sku}, {item_id} or {source}; '' for the feed's own links."),
]
Trusted = Annotated[
    bool | None, typer.Option("--upc-trusted/--no-upc-trusted", help="Whether its GTINs link products.")
]


_FACTS = (
    "id", "name", "kind", "url", "is_display_primary", "affiliate_network", "affiliate_account_id",
    "affiliate_account_name", "tracking_template", "upc_trusted", "visibility", "expiry_hours", "max_hold_hours",
    "price_heartbeat_hours", "held_run_no", "held_since", "last_promoted_run_no", "last_promoted_at",
    "last_promoted_count", "created_at",
)  # fmt: skip


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
    """Add a source to a retailer. An affiliate source is not shown until harvester source primary selects it."""
    given = _given(
        url=url, affiliate_network=network, affiliate_account_id=account_id, affiliate_account_name=account_name,
        tracking_template=tracking_template, upc_trusted=upc_trusted,
    )  # fmt: skip
    with session():
        from harvester.catalog import retailers, sources

        owner = retailers.find(retailer)
        made = sources.create(operator(), owner.pk, name=name, kind=kind.value, **given)
        OUT.show(_public(made), lambda: f"{made.name} was added to {owner.name}.")


@command(app, "list", ("harvester source list", "harvester source list --retailer shop.example"), data=True)
def list_sources(
    *, retailer: Annotated[str, typer.Option(help="Only this retailer's: its domain, name or id.")] = ""
) -> None:
    """List sources and whether consumers see them."""
    with session():
        from harvester.catalog import retailers, sources
        from harvester.cli.job_views import database_now

        query = sources.with_shown().order_by("retailer__name", "name")
        if retailer:
            query = query.filter(retailer=retailers.find(retailer))
        facts = ("id", "name", "kind", "is_display_primary", "last_promoted_at", "last_promoted_count", "held_run_no")
        found = [
            {
                **{name: getattr(source, name) for name in facts},
                "retailer": source.retailer.name,
                "is_shown": source.is_shown,
            }
            for source in query
        ]
        now = database_now()
        OUT.show({"sources": found}, lambda: _table(found, now))


@command(app, "show", ("harvester source show 'Shop by Impact'",), data=True)
def show(source: Reference) -> None:
    """Show a source: its settings, its last promoted run and its held run."""
    with session():
        from harvester.catalog import sources

        found = _public(sources.find(source))
        facts = [
            (name.replace("_", " "), value)
            for name, value in found.items()
            if name not in {"is_display_primary", "is_shown"}
        ]
        OUT.show(found, lambda: pairs([*facts, ("shown to consumers", _shown(found))]))


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
    visibility: Annotated[
        Visible | None,
        typer.Option(metavar="WORD", help="ELIGIBLE or INELIGIBLE: whether prices scraped from it count."),
    ] = None,
    price_heartbeat_hours: Annotated[
        int | None, typer.Option(help="Record an unchanged price again after this many hours.")
    ] = None,
    max_hold_hours: Annotated[
        int | None, typer.Option(help="Hours for which an undecided hold keeps offers from expiring.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which offers a new --kind would add or remove.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before offers appear or disappear.")] = False,
) -> None:
    """Change the settings of a source. The expiry of its offers is a setting of its feed.

    A new kind may change what consumers see. The command first shows which offers appear and disappear.
    """
    changes = _given(
        name=name, kind=kind, url=url, affiliate_network=network, affiliate_account_id=account_id,
        affiliate_account_name=account_name, tracking_template=tracking_template, upc_trusted=upc_trusted,
        visibility=visibility, price_heartbeat_hours=price_heartbeat_hours, max_hold_hours=max_hold_hours,
    )  # fmt: skip
    if not changes:
        raise InvalidInput("Nothing was changed: give an option; harvester source set --help lists them.")
    with session():
        from harvester.catalog import sources
        from harvester.catalog.display_primary import preview_kind

        found = sources.find(source)
        preview = preview_kind(found.pk, changes.get("kind", found.kind))
        if dry_run:
            _show_preview(preview)
            return
        if preview.state and not yes:
            if not sys.stdin.isatty() or OUT.as_json:
                raise InvalidInput(
                    "The new kind changes what consumers see, and there is no terminal to ask for confirmation. "
                    "Nothing was changed. Check the effect with --dry-run, then use --yes."
                )
            _show_preview(preview)
            if not typer.confirm("Continue?", err=True):
                OUT.hint("Nothing was changed.")
                raise typer.Exit(Exit.FAILED)
        made = sources.update(operator(), found.pk, **changes)
        OUT.show(_public(made), lambda: f"{made.name} was changed: {', '.join(sorted(changes))}.")


@command(
    app,
    "primary",
    (
        "harvester source primary 'Shop by Impact' --dry-run      the offers that would appear and disappear",
        "harvester source primary 'Shop by Impact'",
        "harvester source primary Shop --unset",
    ),
    data=True,
)
def primary(
    source: Reference,
    *,
    unset: Annotated[
        bool, typer.Option("--unset", help="Leave the retailer without a primary; its direct sources are shown.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the effect.")] = False,
) -> None:
    """Make a source the only one of its retailer that consumers see, at once."""
    with session():
        from harvester.catalog import sources
        from harvester.catalog.display_primary import preview, set_display_primary, unset_display_primary

        found = sources.find(source)
        if dry_run:
            _show_preview(preview(found.pk, primary=not unset))
            return
        verb = unset_display_primary if unset else set_display_primary
        made = verb(operator(), found.pk)
        state = "no longer the display primary" if unset else "the display primary"
        OUT.show(_public(made), lambda: f"{made.name} is {state} of {made.retailer.name}.")


def _given(**values: Any) -> dict[str, Any]:
    """Return the options that were given, enums as plain strings."""
    plain = {name: value.value if isinstance(value, StrEnum) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _public(source: Any) -> dict[str, Any]:
    from harvester.catalog import sources

    facts = {name: getattr(source, name) for name in _FACTS}
    shown = sources.with_shown().get(pk=source.pk).is_shown
    return {**facts, "retailer": source.retailer.name, "is_shown": shown}


def _table(found: list[dict[str, Any]], now: datetime) -> RenderableType:
    if not found:
        return Text("There are no sources yet. Add one: harvester source add NAME --retailer RETAILER")
    rows = [
        (
            source["name"],
            source["retailer"],
            source["kind"],
            _shown(source),
            when(source["last_promoted_at"], now) or "never",
            count_text(source["last_promoted_count"]),
            f"run {source['held_run_no']}" if source["held_run_no"] else "",
        )
        for source in found
    ]
    columns = ("name", "retailer", "kind", "shown", "promoted", "products", "held")
    return table(columns, rows, right=("products",))


def _show_preview(preview: Any) -> None:
    """Show which offers would disappear and appear."""
    data = {
        name: [
            {"source": side.source.name, "offers": side.offers, "is_more": side.is_more, "samples": side.samples}
            for side in getattr(preview, name)
        ]
        for name in ("vanishing", "appearing")
    }
    rows = [
        (
            "disappear" if name == "vanishing" else "appear",
            side["source"],
            f"{'more than ' if side['is_more'] else ''}{side['offers']:,}",
            "; ".join(side["samples"]),
        )
        for name, sides in data.items()
        for side in sides
    ]
    columns = ("would", "source", "offers", "such as")
    text = "Nothing was changed." if rows else "Consumers would see the same as now. Nothing was changed."
    OUT.show(
        data,
        lambda: stacked(table(columns, rows, right=("offers",)) if rows else None, Text(text)),
    )


def _shown(source: dict[str, Any]) -> str:
    if source["is_display_primary"]:
        return "yes (primary)"
    return "yes" if source["is_shown"] else "no"
