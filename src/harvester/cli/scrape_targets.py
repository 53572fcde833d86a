"""`harvester scrape target ...`: the pages that are read."""

from typing import Annotated, Any
from uuid import UUID

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.feed import read_pairs
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput
from harvester.scraping.states import TargetStatus

app = group(
    "target",
    "Add, list and change the pages that are read.",
    (
        'harvester scrape target add "Shop pages" https://shop.example/product/hammer schedule="0 */4 * * *"',
        "harvester scrape target list --trouble BROKEN",
    ),
)

PageId = Annotated[UUID, typer.Argument(metavar="PAGE", help="The id of a page; `target list` shows it.")]
Settings = Annotated[list[str] | None, typer.Argument(metavar="SETTING=VALUE...", help="See above.")]
Source = Annotated[str, typer.Option(help="Only of this source: its name or id.")]
Status = Annotated[TargetStatus | None, typer.Option(case_sensitive=False, help="Only in this state.")]
Outcome = Annotated[str, typer.Option(help="Only whose last page ended like this, such as PRICE_NOT_FOUND.")]
Text = Annotated[str, typer.Option(help="Only with this text in the address or in the notes.")]
TroubleName = Annotated[str, typer.Option(help="Only those that yield nothing: BLOCKED, GONE, BROKEN or OUR_PROBLEM.")]


@command(
    app,
    "list",
    ("harvester scrape target list", 'harvester scrape target list --source "Shop pages" --status BROKEN --json'),
    data=True,
)
def list_targets(
    *,
    source: Source = "",
    status: Status = None,
    outcome: Outcome = "",
    text: Text = "",
    trouble: TroubleName = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 50,
) -> None:
    """List pages with their last outcome; those that yield nothing with the reason and the next step."""
    with session():
        from harvester.cli import scrape_views

        wanted = _filter(source, status, outcome, text, trouble)
        found = scrape_views.targets(wanted, limit)
        OUT.show({"targets": found}, lambda: scrape_views.targets_table(found))


@command(app, "show", ("harvester scrape target show 0193f0c2-...",), data=True)
def show(page: PageId) -> None:
    """Show a page: settings, what was read last, and the next step if it yields nothing."""
    with session():
        from harvester.cli import scrape_views

        found = scrape_views.target(page)
        OUT.show(found, lambda: scrape_views.target_view(found))


@command(
    app,
    "add",
    (
        'harvester scrape target add "Shop pages" https://shop.example/product/hammer',
        'harvester scrape target add "Shop pages" https://shop.example/p/1 schedule="0 6 * * *" priority=5 sku=H-1',
    ),
    data=True,
)
def add(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The name or id of a source.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of a product page.")],
    settings: Settings = None,
) -> None:
    """Add a page. Settings: schedule (a cron line in UTC), priority (-100 to 100), notes, sku, gtin, product_id.

    A page of a source with a feed refreshes one of the feed's products: by sku, gtin, product_id, or its address.
    """
    given = _read(settings)
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        made = verbs.add_target(operator(), sources.find(source).pk, url, **given)
        found = scrape_views.target(made.pk)
        OUT.show(found, lambda: f"{made.url} was added as {made.pk}.")


@command(
    app,
    "set",
    (
        'harvester scrape target set 0193f0c2-... schedule="0 */4 * * *" priority=10',
        "harvester scrape target set 0193f0c2-... url=https://shop.example/p/new enabled=no",
    ),
    data=True,
)
def change(
    page: PageId, settings: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE...", help="See above.")]
) -> None:
    """Change a page. Settings: url, schedule, priority, notes, enabled, product_id, robots_path_blocked."""
    given = _read(settings)
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        verbs.update_target(operator(), page, **given)
        found = scrape_views.target(page)
        OUT.show(found, lambda: f"{found['url']} was changed: {', '.join(sorted(given))}.")


@command(app, "pause", ("harvester scrape target pause 0193f0c2-...",), data=True)
def pause(page: PageId) -> None:
    """Stop reading a page until it is resumed."""
    _after("pause_target", page, "is paused")


@command(app, "resume", ("harvester scrape target resume 0193f0c2-...",), data=True)
def resume(page: PageId) -> None:
    """Read a paused, broken or stale page again; its failures are counted from zero."""
    _after("resume_target", page, "is read again")


@command(app, "move", ("harvester scrape target move 0193f0c2-...",), data=True)
def move(page: PageId) -> None:
    """Read a page from now on where the shop permanently redirects it to."""
    _after("replace_moved", page, "has its new address")


@command(app, "unpin", ("harvester scrape target unpin 0193f0c2-...",), data=True)
def unpin(page: PageId) -> None:
    """Let a page show another product than before; the next offer that is written counts as its product."""
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import quarantine

        quarantine.unpin(operator(), page)
        found = scrape_views.target(page)
        OUT.show(found, lambda: f"{found['url']} may show another product now.")


@command(
    app,
    "set-all",
    (
        'harvester scrape target set-all schedule="0 */6 * * *" --source "Shop pages"',
        "harvester scrape target set-all status=ACTIVE --status BROKEN --yes",
    ),
    data=True,
)
def change_all(
    settings: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE...", help="See above.")],
    *,
    source: Source = "",
    status: Status = None,
    outcome: Outcome = "",
    text: Text = "",
    trouble: TroubleName = "",
    yes: Annotated[bool, typer.Option("--yes", help="Change them; without it they are only counted.")] = False,
) -> None:
    """Change all pages that match. Settings: schedule, priority, notes, enabled, status (ACTIVE or PAUSED)."""
    given = _read(settings)
    with session():
        from harvester.scraping import verbs

        wanted = _filter(source, status, outcome, text, trouble)
        if not yes:
            count = wanted.targets().count()
            OUT.show({"matching": count, "changed": 0}, lambda: f"{count:,} pages match. Say --yes to change them.")
            raise typer.Exit(Exit.FAILED)
        changed = verbs.update_targets(operator(), wanted, most=None, **given)
        OUT.show({"changed": changed}, lambda: f"{changed:,} pages were changed.")


@command(app, "delete", ("harvester scrape target delete 0193f0c2-... --yes",), data=True)
def delete(page: PageId, *, yes: Annotated[bool, typer.Option("--yes", help="I am sure.")] = False) -> None:
    """Delete a page with what was kept of it. Prices that it has written stay."""
    if not yes:
        raise InvalidInput("This cannot be undone; say --yes. Nothing was changed.")
    with session():
        from harvester.scraping import verbs

        verbs.delete_target(operator(), page)
        OUT.show({"deleted": str(page)}, lambda: "The page was deleted.")


def _after(verb: str, page: UUID, done: str) -> None:
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        getattr(verbs, verb)(operator(), page)
        found = scrape_views.target(page)
        OUT.show(found, lambda: f"{found['url']} {done}.")


def _filter(source: str, status: TargetStatus | None, outcome: str, text: str, trouble: str) -> Any:
    from harvester.catalog import sources
    from harvester.scraping.target_filters import TargetFilter, Trouble

    if trouble and trouble.upper() not in Trouble.__members__:
        raise InvalidInput(f"there are {', '.join(Trouble)}.", field="--trouble")
    return TargetFilter(
        source_id=sources.find(source).pk if source else None,
        status=status,
        outcome=outcome.upper() or None,
        text=text,
        trouble=Trouble(trouble.upper()) if trouble else None,
    )


def _read(settings: list[str] | None) -> dict[str, Any]:
    """Return settings with the types that the verbs want; an empty value is nothing."""
    given: dict[str, Any] = dict(read_pairs(settings or []))
    for name in ("priority", "product_id"):
        if name in given:
            text = given[name]
            if name == "product_id" and not text:
                given[name] = None
            elif not text.lstrip("-").isdecimal():
                raise InvalidInput(f"{text!r} is not a whole number.", field=name)
            else:
                given[name] = int(text)
    for name in ("enabled", "robots_path_blocked"):
        if name in given:
            word = given[name].lower()
            if word not in {"yes", "no", "true", "false"}:
                raise InvalidInput(f"{given[name]!r} is neither yes nor no.", field=name)
            given[name] = word in {"yes", "true"}
    return given
