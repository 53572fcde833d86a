"""`harvester scrape import ...`: lists of pages of many shops, and the pages of a feed's own products."""

import sys
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "import",
    "Add pages of many shops at once.",
    (
        "harvester scrape import file pages.csv              a preview; nothing is added",
        "harvester scrape import start 0193f0c2-... --wait",
        'harvester scrape import feed "Acme by Impact" --most 500 --wait',
    ),
)

ImportId = Annotated[UUID, typer.Argument(metavar="IMPORT", help="The id of an import; `import list` shows it.")]
#: Digits of the number of a line.
LONGEST_LINE = 9
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show the result.")]


@command(
    app,
    "file",
    (
        "harvester scrape import file pages.csv",
        "harvester scrape import file pages.xlsx --json",
        "cat urls | harvester scrape import file -",
    ),
    data=True,
)
def read_file(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A CSV or XLSX file, or - for a text on standard input.")],
) -> None:
    """Read a list and show what would be added, by shop.

    Columns: url, sku, gtin, product_id, harvester_id, schedule, priority, notes; or an address in each line.
    Nothing is added before harvester scrape import start.
    """
    try:
        given = sys.stdin.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror}.", field="FILE") from None
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        made = verbs.create_import(operator(), "standard input" if path == "-" else Path(path).name, given)
        found = scrape_views.imported(made.pk)
        OUT.show(found, lambda: scrape_views.import_view(found))


@command(app, "feed", ('harvester scrape import feed "Acme by Impact" --most 500 --wait',), data=True)
def from_feed(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The name or id of a source with a feed.")],
    *,
    most: Annotated[int, typer.Option(min=1, max=20_000, help="At most this many products.")] = 1_000,
    text: Annotated[str, typer.Option(help="Only products with this text in their title.")] = "",
    in_stock: Annotated[bool, typer.Option("--in-stock", help="Only products that are in stock.")] = False,
    schedule: Annotated[str, typer.Option(help="A cron line in UTC, such as '0 */4 * * *'.")] = "",
    wait: Wait = False,
) -> None:
    """Add the pages of a feed's own products, each linked to exactly its product. It may be repeated."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        found_source = sources.find(source)
        made = verbs.import_from_feed(
            operator(), found_source.pk, most=most, text=text, in_stock_only=in_stock, schedule=schedule or None
        )
        _finish(made.pk, made.job_id, wait=wait)


@command(app, "list", ("harvester scrape import list",), data=True)
def list_imports() -> None:
    """List imports, the newest first."""
    with session():
        from harvester.cli import scrape_views

        found = scrape_views.imports()
        OUT.show({"imports": found}, lambda: scrape_views.imports_table(found))


@command(app, "show", ("harvester scrape import show 0193f0c2-...",), data=True)
def show(import_id: ImportId) -> None:
    """Show an import: what would be added or was added, by shop, and refused lines with their reasons."""
    with session():
        from harvester.cli import scrape_views

        found = scrape_views.imported(import_id)
        OUT.show(found, lambda: scrape_views.import_view(found))


@command(
    app,
    "choose",
    (
        'harvester scrape import choose 0193f0c2-... shop.example --source "Shop pages" --schedule "0 */4 * * *"',
        "harvester scrape import choose 0193f0c2-... other.example --skip",
    ),
    data=True,
)
def choose(
    import_id: ImportId,
    domain: Annotated[str, typer.Argument(metavar="SHOP", help="The domain, as the preview shows it.")],
    *,
    source: Annotated[str, typer.Option(help="The source that gets the pages; a new one by default.")] = "",
    adapter: Annotated[str, typer.Option(help="The adapter of a new source.")] = "",
    schedule: Annotated[str, typer.Option(help="A cron line in UTC for pages that name none.")] = "",
    skip: Annotated[bool, typer.Option("--skip/--no-skip", help="Add none of its pages.")] = False,
) -> None:
    """Decide what happens to the pages of one shop."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        given = {
            "source_id": sources.find(source).pk if source else None,
            "adapter_id": adapter or None,
            "schedule": schedule or None,
        }
        choice = {name: value for name, value in given.items() if value is not None}
        verbs.choose(operator(), import_id, domain, skip=skip, **choice)
        found = scrape_views.imported(import_id)
        OUT.show(found, lambda: scrape_views.import_view(found))


@command(
    app,
    "link",
    (
        "harvester scrape import link 0193f0c2-... 12=id:34567 13=sku:A-1",
        "harvester scrape import link 0193f0c2-... 12=          without a product again",
    ),
    data=True,
)
def link(
    import_id: ImportId,
    links: Annotated[
        list[str], typer.Argument(metavar="LINE=PRODUCT...", help="A line, and its product as id:, sku: or gtin:.")
    ],
) -> None:
    """Name the products of lines whose product is not clear: before the import begins, or after it has ended.

    `import show` has the lines and the products that they may be. After the import, their pages are added at once.
    """
    given = []
    for text in links:
        line, is_link, product = text.partition("=")
        if not is_link or not line.isdecimal() or len(line) > LONGEST_LINE:
            raise InvalidInput(f"{text!r} is not like 12=sku:A-1. Nothing was changed.", field="LINE=PRODUCT")
        given.append((int(line), product))
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        verbs.link_lines(operator(), import_id, [verbs.LineLink(line=line, product=product) for line, product in given])
        found = scrape_views.imported(import_id)
        OUT.show(found, lambda: scrape_views.import_view(found))


@command(app, "start", ("harvester scrape import start 0193f0c2-... --wait",), data=True)
def start(import_id: ImportId, *, wait: Wait = False) -> None:
    """Add the pages in the background. Retailers and sources that do not exist are created; nothing is read yet."""
    with session():
        from harvester.scraping import verbs

        made = verbs.start_import(operator(), import_id)
        _finish(import_id, made.job_id, wait=wait)


@command(app, "cancel", ("harvester scrape import cancel 0193f0c2-...",), data=True)
def cancel(import_id: ImportId) -> None:
    """Add nothing more of an import. Pages that were added stay."""
    with session():
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        verbs.cancel_import(operator(), import_id)
        found = scrape_views.imported(import_id)
        OUT.show(found, lambda: scrape_views.import_view(found))


def _finish(import_id: UUID, job_id: int | None, *, wait: bool) -> None:
    from harvester.cli import scrape_views
    from harvester.cli.job_wait import wait_for_end
    from harvester.engine.states import JobState

    state = wait_for_end(job_id) if wait and job_id is not None else JobState.PENDING
    found = scrape_views.imported(import_id)
    OUT.show(found, lambda: scrape_views.import_view(found))
    if wait and state != JobState.SUCCEEDED:
        raise typer.Exit(Exit.FAILED)
