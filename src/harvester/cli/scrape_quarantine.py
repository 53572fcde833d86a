"""`harvester scrape quarantine ...`: pages that were read and not believed."""

from typing import Annotated
from uuid import UUID

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.feed import read_pairs
from harvester.cli.output import OUT
from harvester.cli.session import session

app = group(
    "quarantine",
    "Look at pages that were read and not believed, and decide about them.",
    (
        "harvester scrape quarantine list",
        "harvester scrape quarantine show 0193f0c2-...        what was read, from where, and why it waits",
        "harvester scrape quarantine write 0193f0c2-...       this is the price",
    ),
)

EntryId = Annotated[UUID, typer.Argument(metavar="ENTRY", help="The id of an entry; `quarantine list` shows it.")]
Note = Annotated[str, typer.Option(help="Why; others will ask.")]


@command(
    app,
    "list",
    ("harvester scrape quarantine list", 'harvester scrape quarantine list --source "Shop pages"'),
    data=True,
)
def list_entries(
    *,
    source: Annotated[str, typer.Option(help="Only of this source: its name or id.")] = "",
    reason: Annotated[str, typer.Option(help="Only with this reason, such as NO_AGREEMENT.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 50,
) -> None:
    """List open entries, newest first."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views

        found = scrape_views.entries(sources.find(source) if source else None, reason.upper(), limit)
        OUT.show({"entries": found}, lambda: scrape_views.entries_table(found))


@command(app, "show", ("harvester scrape quarantine show 0193f0c2-...",), data=True)
def show(entry: EntryId) -> None:
    """Show an entry: what was read, the places that were looked at, and why it waits."""
    with session():
        from harvester.cli import scrape_views

        found = scrape_views.entry(entry)
        OUT.show(found, lambda: scrape_views.entry_view(found))


@command(app, "write", ('harvester scrape quarantine write 0193f0c2-... --note "checked in the shop"',), data=True)
def write(entry: EntryId, *, note: Note = "") -> None:
    """Write what was read after all: this is the price."""
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import quarantine

        quarantine.write_one(operator(), entry, note=note)
        found = scrape_views.entry(entry)
        OUT.show(found, lambda: f"The entry is {found['status']}.")


@command(app, "reprocess", ("harvester scrape quarantine reprocess 0193f0c2-...",), data=True)
def reprocess(entry: EntryId, *, note: Note = "") -> None:
    """Read the kept page again with the adapter of today, and write its offer if it has one now."""
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import page_review

        reading, _ = page_review.reprocess_entry(operator(), entry, note=note)
        found = {**scrape_views.entry(entry), "read_as": reading.outcome.value, "read_detail": reading.detail}
        OUT.show(
            found, lambda: f"Read as {reading.outcome}: {reading.detail or 'an offer'}. The entry is {found['status']}."
        )
        if found["status"] == "OPEN":
            raise typer.Exit(Exit.FAILED)


@command(app, "choose", ("harvester scrape quarantine choose 0193f0c2-... price=json:offers.price",), data=True)
def choose(
    entry: EntryId,
    places: Annotated[list[str], typer.Argument(metavar="FIELD=PLACE...", help="A place that `show` lists.")],
) -> None:
    """Say where a field is on this page; its next reading begins there."""
    given = read_pairs(places)
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import quarantine

        target = quarantine.choose_places(operator(), entry, given)
        found = scrape_views.target(target.pk)
        OUT.show(
            found,
            lambda: (
                f"The next reading of {target.url} begins there. Try: harvester scrape quarantine reprocess {entry}"
            ),
        )


@command(app, "dismiss", ('harvester scrape quarantine dismiss 0193f0c2-... --note "a test page"',), data=True)
def dismiss(entry: EntryId, *, note: Note = "") -> None:
    """Close an entry and write nothing. The next page of the target is judged like any other."""
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import quarantine

        quarantine.dismiss(operator(), entry, note)
        found = scrape_views.entry(entry)
        OUT.show(found, lambda: "The entry was closed; nothing was written.")
