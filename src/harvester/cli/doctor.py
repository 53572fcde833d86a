"""`harvester doctor`: check the installation, or list its settings."""

import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Annotated, Any

import typer
from rich.text import Text

from harvester.cli.checks.machine import Finding, State, fail, fine, skip
from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit, failure_of
from harvester.cli.output import OUT, stacked, table
from harvester.cli.session import close_connections, database_of, prepare, read_config, set_up_django
from harvester.guards.redaction import redact_text
from harvester.kernel.config import UNSET_HOME, Config
from harvester.kernel.errors import ConfigError

EXAMPLES = (
    "harvester doctor",
    "harvester doctor --json",
    "harvester doctor --settings      every setting, its value and its source",
)
PAGE_INTRODUCTION = """\
# Settings

Settings are environment variables. They are trimmed and checked when a process starts. An empty one counts as unset;
an unknown name that begins with `HARVESTER_` is an error. `harvester doctor --settings` lists the values on this
machine. `harvester doctor --settings --markdown` prints this page.

| variable | default | meaning |
| --- | --- | --- |
"""


def declare(app: typer.Typer) -> None:
    command(app, "doctor", EXAMPLES, data=True, rich_help_panel="Setup and maintenance")(doctor)


def doctor(
    *,
    settings: Annotated[bool, typer.Option("--settings", help="List every setting instead.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="With --settings: print the page docs/settings.md.")
    ] = False,
) -> None:
    """Check settings, database, key, Redis, disk and processes, and advise what to do.

    Nothing is created. An existing embedded database is started for the checks. The exit code is 1 if a check fails.
    """
    if markdown:
        typer.echo(settings_page(), nl=False)
    elif settings:
        found = _settings_of(read_config())
        columns = ("variable", "value", "source", "meaning")
        rows = [[setting[name] for name in columns] for setting in found]
        OUT.show({"settings": found}, lambda: table(columns, rows))
    else:
        findings = list(examine())
        failed = sum(finding.state == State.FAIL for finding in findings)
        rows = [[finding.check, finding.state.value, finding.finding, finding.advice] for finding in findings]
        verdict = Text("No problems found.", style="green")
        if failed:
            verdict = Text(f"{failed} of {len(findings)} checks failed.", style="bold red")
        data = {"ok": not failed, "checks": [finding.as_dict() for finding in findings]}
        OUT.show(data, lambda: stacked(table(("check", "state", "finding", "what to do"), rows), verdict))
        if failed:
            raise typer.Exit(Exit.FAILED)


# -- checks -----------------------------------------------------------------------------------------------------


def examine() -> Iterator[Finding]:
    """Yield the finding of each check as soon as it is known."""
    from harvester.cli.checks import machine

    yield machine.python()
    yield machine.chromium()
    try:
        config = read_config()
        prepare(config)
    except ConfigError as error:
        yield fail("settings", str(error), "Correct it in the environment.")
        yield skip("database", "the settings are invalid")
        return
    yield fine("settings", "valid; `harvester doctor --settings` lists them")
    for name, check in machine.CHECKS.items():
        yield _run(name, check, config)
    yield from _examine_database(config)


def _examine_database(config: Config) -> Iterator[Finding]:
    from harvester.engine.embedded import Cluster

    if config.embedded and not config.home.is_file() and not Cluster(config.home).exists:
        yield skip("database", "does not exist yet; `harvester up` or `harvester demo` creates it")
        return
    try:
        hold = database_of(config)
    except Exception as error:  # noqa: BLE001 - the finding says what happened
        yield fail("database", failure_of(error).message)
        return
    with hold:
        try:
            set_up_django()
        except ConfigError as error:
            yield fail("database", str(error))
            return
        from harvester.cli.checks import database

        try:
            server = _run("database", database.server, config)
            yield server
            if server.state == State.FAIL:
                yield skip("tables, roles, proxy, clock, workers", "the database cannot be used")
                return
            for name, check in database.CHECKS.items():
                yield _run(name, check, config)
        finally:
            close_connections()


def _run(name: str, check: Callable[[Config], Finding], config: Config) -> Finding:
    """Return the finding of a check; an error in the check is a finding too."""
    try:
        return check(config)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks run
        return fail(name, failure_of(error).message)


# -- settings ---------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Return the page `docs/settings.md`."""
    rows = []
    for declared in fields(Config):
        default = "" if declared.default in ("", (), UNSET_HOME) else f"`{_text(declared.default)}`"
        meaning = str(declared.metadata["help"])
        if "choices" in declared.metadata:
            meaning += f"; one of {', '.join(declared.metadata['choices'])}"
        if "low" in declared.metadata:
            meaning += f"; from {_text(declared.metadata['low'])} to {_text(declared.metadata['high'])}"
        meaning = meaning.replace("|", "\\|")
        rows.append(f"| `{declared.metadata['variable']}` | {default} | {meaning} |\n")
    return PAGE_INTRODUCTION + "".join(rows)


def _settings_of(config: Config) -> list[dict[str, Any]]:
    """Return the settings of this process and their sources. Secrets are hidden."""
    found = []
    for declared in fields(Config):
        variable, value = declared.metadata["variable"], getattr(config, declared.name)
        hidden = "(hidden)" if value else ""
        found.append(
            {
                "variable": variable,
                "value": hidden if declared.metadata.get("secret") else redact_text(_text(value)),
                "source": "environment" if os.environ.get(variable, "").strip() else "default",
                "meaning": declared.metadata["help"],
            }
        )
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
