"""`harvester scrape target ...` and `harvester scrape quarantine ...`: pages, and those that were not believed."""

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
        from harvester.cli import page_views

        wanted = _filter(source, status, outcome, text, trouble)
        found = page_views.targets(wanted, limit)
        OUT.show({"targets": found}, lambda: page_views.targets_table(found, limit))


@command(app, "show", ("harvester scrape target show 0193f0c2-...",), data=True)
def show(page: PageId) -> None:
    """Show a page: settings, what was read last, and the next step if it yields nothing."""
    with session():
        from harvester.cli import page_views

        found = page_views.target(page)
        OUT.show(found, lambda: page_views.target_view(found))


@command(app, "readings", ("harvester scrape target readings 0193f0c2-...",), data=True)
def readings(page: PageId) -> None:
    """List how reading a page ended the last 20 times, newest first. Runs are kept for 30 days."""
    with session():
        from harvester.cli import page_views

        found = page_views.readings(page)
        OUT.show({"readings": found}, lambda: page_views.readings_table(found))


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
        from harvester.cli import page_views
        from harvester.scraping import verbs

        made = verbs.add_target(operator(), sources.find(source).pk, url, **given)
        found = page_views.target(made.pk)
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
        from harvester.cli import page_views
        from harvester.scraping import verbs

        verbs.update_target(operator(), page, **given)
        found = page_views.target(page)
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
        from harvester.cli import page_views
        from harvester.scraping import quarantine

        quarantine.unpin(operator(), page)
        found = page_views.target(page)
        OUT.show(found, lambda: f"{found['url']} may show another product now.")


@command(app, "forget-places", ("harvester scrape target forget-places 0193f0c2-...",), data=True)
def forget_places(page: PageId) -> None:
    """Read a page by the places of its shop alone again, without those that were chosen in quarantine."""
    with session():
        from harvester.cli import page_views
        from harvester.scraping import quarantine

        quarantine.forget_places(operator(), page)
        found = page_views.target(page)
        OUT.show(found, lambda: f"{found['url']} is read by the places of its shop alone.")


@command(
    app,
    "reprocess",
    ("harvester scrape target reprocess 0193f0c2-...", "harvester scrape target reprocess 0193f0c2-... --wait --json"),
    data=True,
)
def reprocess_page(
    page: PageId,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show the result.")] = False,
) -> None:
    """Read the newest kept page again with the adapter of today, in a run. Nothing is requested from the shop."""
    with session():
        from harvester.cli import page_views
        from harvester.cli.job_wait import wait_for_run
        from harvester.scraping import page_review

        page_views.target(page)
        run = page_review.reprocess(operator(), page)
        if wait:
            wait_for_run(run)
            run.refresh_from_db()
        ended = f" It ended as {run.outcome}." if run.outcome else ""
        OUT.show(
            {"run_no": run.no, "run_outcome": run.outcome},
            lambda: f"Run {run.no} reads the kept page again.{ended} See: harvester runs show {run.no}",
        )


@command(
    app,
    "health",
    ("harvester scrape target health", 'harvester scrape target health --source "Shop pages" --json'),
    data=True,
)
def health(*, source: Source = "") -> None:
    """List pages that the shop moved for good, that are gone, and that are of one product; with what to do.

    Of each source at most 100 of each kind; the next ones follow when these are done.
    """
    with session():
        from harvester.catalog import sources
        from harvester.cli import page_views

        found = page_views.health(sources.find(source) if source else None)
        OUT.show({"sources": found}, lambda: page_views.health_view(found))


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


@command(
    app,
    "delete-all",
    (
        'harvester scrape target delete-all --source "Shop pages" --trouble GONE',
        'harvester scrape target delete-all --source "Shop pages" --trouble GONE --yes',
    ),
    data=True,
)
def delete_all(
    *,
    source: Source = "",
    status: Status = None,
    outcome: Outcome = "",
    text: Text = "",
    trouble: TroubleName = "",
    yes: Annotated[bool, typer.Option("--yes", help="Delete them; without it they are only counted.")] = False,
) -> None:
    """Delete all pages that match, with what was kept of them. Prices that they have written stay."""
    if not (source or status or outcome or text or trouble):
        raise InvalidInput("Say which pages, such as --source. Nothing was deleted.")
    with session():
        from harvester.scraping import verbs

        wanted = _filter(source, status, outcome, text, trouble)
        if not yes:
            count = wanted.targets().count()
            OUT.show({"matching": count, "deleted": 0}, lambda: f"{count:,} pages match. Say --yes to delete them.")
            raise typer.Exit(Exit.FAILED)
        deleted = verbs.delete_targets(operator(), wanted, most=None)
        OUT.show({"deleted": deleted}, lambda: f"{deleted:,} pages were deleted.")


def _after(verb: str, page: UUID, done: str) -> None:
    with session():
        from harvester.cli import page_views
        from harvester.scraping import verbs

        getattr(verbs, verb)(operator(), page)
        found = page_views.target(page)
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


quarantine_app = group(
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
    quarantine_app,
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
        from harvester.cli import page_views

        found = page_views.entries(sources.find(source) if source else None, reason.upper(), limit)
        OUT.show({"entries": found}, lambda: page_views.entries_table(found, limit))


@command(quarantine_app, "show", ("harvester scrape quarantine show 0193f0c2-...",), data=True)
def show_entry(entry: EntryId) -> None:
    """Show an entry: what was read, the places that were looked at, and why it waits."""
    with session():
        from harvester.cli import page_views

        found = page_views.entry(entry)
        OUT.show(found, lambda: page_views.entry_view(found))


@command(
    quarantine_app, "write", ('harvester scrape quarantine write 0193f0c2-... --note "checked in the shop"',), data=True
)
def write(entry: EntryId, *, note: Note = "") -> None:
    """Write what was read after all: this is the price."""
    with session():
        from harvester.cli import page_views
        from harvester.scraping import quarantine

        quarantine.write_one(operator(), entry, note=note)
        found = page_views.entry(entry)
        OUT.show(found, lambda: f"The entry is {found['status']}.")


@command(quarantine_app, "reprocess", ("harvester scrape quarantine reprocess 0193f0c2-...",), data=True)
def reprocess(entry: EntryId, *, note: Note = "") -> None:
    """Read the kept page again with the adapter of today, and write its offer if it has one now."""
    with session():
        from harvester.cli import page_views
        from harvester.scraping import page_review

        reading, _ = page_review.reprocess_entry(operator(), entry, note=note)
        found = {**page_views.entry(entry), "read_as": reading.outcome.value, "read_detail": reading.detail}
        why = (reading.detail or "an offer").rstrip(".")
        OUT.show(found, lambda: f"Read as {reading.outcome}: {why}. The entry is {found['status']}.")
        if found["status"] == "OPEN":
            raise typer.Exit(Exit.FAILED)


@command(
    quarantine_app, "choose", ("harvester scrape quarantine choose 0193f0c2-... price=json:offers.price",), data=True
)
def choose(
    entry: EntryId,
    places: Annotated[list[str], typer.Argument(metavar="FIELD=PLACE...", help="A place that `show` lists.")],
) -> None:
    """Say where a field is on this page; its next reading begins there."""
    given = read_pairs(places)
    with session():
        from harvester.cli import page_views
        from harvester.scraping import quarantine

        target = quarantine.choose_places(operator(), entry, given)
        found = page_views.target(target.pk)
        OUT.show(
            found,
            lambda: (
                f"The next reading of {target.url} begins there. Try: harvester scrape quarantine reprocess {entry}"
            ),
        )


@command(
    quarantine_app,
    "propose",
    ('harvester scrape quarantine propose 0193f0c2-... price=json:offers.price --note "redesign"',),
    data=True,
)
def propose(
    entry: EntryId,
    places: Annotated[list[str], typer.Argument(metavar="FIELD=PLACE...", help="A place that `show` lists.")],
    *,
    note: Note = "",
) -> None:
    """Save where a field is on all pages of the shop, as a draft of an override. It counts once it was tested."""
    given = read_pairs(places)
    with session():
        from harvester.scraping import quarantine

        made = quarantine.propose_override(operator(), entry, given, note)
        facts = {"source_id": made.source_id, "version": made.version, "status": made.status, "places": made.places}
        OUT.show(
            facts,
            lambda: (
                f"Version {made.version} was saved. Next: harvester scrape adapter test {made.source_id} {made.version}"
            ),
        )


@command(
    quarantine_app, "dismiss", ('harvester scrape quarantine dismiss 0193f0c2-... --note "a test page"',), data=True
)
def dismiss(entry: EntryId, *, note: Note = "") -> None:
    """Close an entry and write nothing. The next page of the target is judged like any other."""
    with session():
        from harvester.cli import page_views
        from harvester.scraping import quarantine

        quarantine.dismiss(operator(), entry, note)
        found = page_views.entry(entry)
        OUT.show(found, lambda: "The entry was closed; nothing was written.")
