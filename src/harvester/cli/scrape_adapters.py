"""`harvester scrape adapter ...`: what reads the pages of a source, and how it does there."""

import json
from pathlib import Path
from typing import Annotated

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput
from harvester.scraping.states import DisabledReason

app = group(
    "adapter",
    "Show adapters, switch them on and off, and override places of a site file.",
    ("harvester scrape adapter list", 'harvester scrape adapter enable "Shop pages"'),
)

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="The name or id of a source.")]
Version = Annotated[int, typer.Argument(metavar="VERSION", min=1, help="The version of the overrides.")]


@command(app, "list", ("harvester scrape adapter list",), data=True)
def list_adapters() -> None:
    """List the adapters, and how each does on the sources that use it."""
    with session():
        from harvester.cli import scrape_views

        found = scrape_views.adapters()
        OUT.show(found, lambda: scrape_views.adapters_view(found))


@command(app, "choose", ('harvester scrape adapter choose "Shop pages" woocommerce',), data=True)
def choose(
    source: SourceName,
    adapter: Annotated[str, typer.Argument(metavar="ADAPTER", help="The id of an adapter; `adapter list` shows it.")],
) -> None:
    """Let another adapter read the pages of a source."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        found = verbs.choose_adapter(operator(), sources.find(source).pk, adapter)
        OUT.show(
            {"source_id": found.pk, "adapter_id": found.adapter_id}, lambda: f"{found} is read by {found.adapter_id}."
        )


@command(app, "enable", ('harvester scrape adapter enable "Shop pages"',), data=True)
def enable(source: SourceName) -> None:
    """Let the adapter read a source again, once the cause is fixed. Check its next run, then confirm it."""
    _switch(source, "enable", "reads it again; check its next run, then say `harvester scrape adapter confirm`")


@command(app, "disable", ('harvester scrape adapter disable "Shop pages" --note "wrong titles"',), data=True)
def disable(
    source: SourceName,
    *,
    note: Annotated[str, typer.Option(help="Why; others will ask.")],
    terms: Annotated[bool, typer.Option("--terms", help="Because the shop's terms do not allow it.")] = False,
) -> None:
    """Stop the adapter on a source; waiting pages are cancelled."""
    reason = DisabledReason.TOS_VIOLATION if terms else DisabledReason.MANUAL
    _switch(source, "disable", "no longer reads it", reason=reason, note=note)


@command(app, "confirm", ('harvester scrape adapter confirm "Shop pages"',), data=True)
def confirm(source: SourceName) -> None:
    """Confirm that what the first run after enabling read is right."""
    _switch(source, "confirm_check", "was checked")


@command(app, "overrides", ('harvester scrape adapter overrides "Shop pages"',), data=True)
def overrides(source: SourceName) -> None:
    """List the versions of a source's overrides."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views

        found = scrape_views.overrides(sources.find(source))
        OUT.show({"overrides": found}, lambda: scrape_views.overrides_table(found))


@command(
    app, "override", ('harvester scrape adapter override "Shop pages" changed.json --note "new theme"',), data=True
)
def override(
    source: SourceName,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file with what differs from the site file.")],
    *,
    note: Annotated[str, typer.Option(help="Why; others will ask.")] = "",
) -> None:
    """Save overrides of a source as a draft. They count once they were tested on kept pages and are used."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidInput(f"{path} cannot be read as JSON: {problem}.", field="FILE") from None
    with session():
        from harvester.catalog import sources
        from harvester.scraping import overrides as verbs

        made = verbs.save(operator(), sources.find(source).pk, given, note)
        OUT.show(
            {"source_id": made.source_id, "version": made.version, "status": made.status},
            lambda: f"Version {made.version} was saved. Next: harvester scrape adapter test {source!r} {made.version}",
        )


@command(app, "test", ('harvester scrape adapter test "Shop pages" 3',), data=True)
def test(source: SourceName, version: Version) -> None:
    """Read the kept pages of a source with a version of its overrides, and show what differs. Nothing is written."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.cli.job_wait import wait_for_end
        from harvester.engine.states import JobState
        from harvester.scraping import overrides as verbs

        found = sources.find(source)
        state = wait_for_end(verbs.test(operator(), found.pk, version))
        report = scrape_views.backtest_of(found, version)
        OUT.show(report, lambda: scrape_views.backtest_view(report))
        if state != JobState.SUCCEEDED:
            raise typer.Exit(Exit.FAILED)


@command(app, "use", ('harvester scrape adapter use "Shop pages" 3',), data=True)
def use(source: SourceName, version: Version) -> None:
    """Read the pages of a source with a tested version from now on."""
    _override("use", source, version, "is used from now on")


@command(app, "retire", ('harvester scrape adapter retire "Shop pages" 3',), data=True)
def retire(source: SourceName, version: Version) -> None:
    """Read the pages of a source by its site file alone again."""
    _override("retire", source, version, "is no longer used")


def _switch(source: str, verb: str, done: str, **more: object) -> None:
    with session():
        from harvester.catalog import sources
        from harvester.scraping import adapters

        found = sources.find(source)
        state = getattr(adapters, verb)(operator(), found.pk, **more)
        facts = {
            "source_id": found.pk, "adapter_id": state.adapter_id, "enabled": state.enabled,
            "disabled_reason": state.disabled_reason, "check_next_run": state.check_next_run,
        }  # fmt: skip
        OUT.show(facts, lambda: f"{found}: the adapter {state.adapter_id} {done}.")


def _override(verb: str, source: str, version: int, done: str) -> None:
    with session():
        from harvester.catalog import sources
        from harvester.scraping import overrides as verbs

        found = getattr(verbs, verb)(operator(), sources.find(source).pk, version)
        OUT.show(
            {"source_id": found.source_id, "version": found.version, "status": found.status},
            lambda: f"Version {found.version} {done}.",
        )
