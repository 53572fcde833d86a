"""`harvester seed`: fill a database with made-up feeds, runs and offers, to see how fast everything is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from harvester.cli.commands import command
from harvester.cli.output import OUT
from harvester.cli.seeding.plan import Plan
from harvester.cli.session import Tables, session
from harvester.kernel.errors import Conflict

EXAMPLES = (
    "harvester seed                                                   1,000 feeds, 100,000 runs, 1,000,000 offers",
    "harvester seed --feeds 50 --runs 1000 --offers 5000              a small one, in seconds",
    "harvester seed --offers 1000000 --prices-per-offer 10 --yes      beside what is there already",
)
_DEFAULT = Plan()


def declare(app: typer.Typer) -> None:
    command(app, "seed", EXAMPLES, data=True, rich_help_panel="Set up and look after")(seed)


def seed(
    *,
    feeds: Annotated[int, typer.Option(help="Feeds, each with a source.")] = _DEFAULT.feeds,
    runs: Annotated[int, typer.Option(help="Runs of all feeds together; at least 5 for each.")] = _DEFAULT.runs,
    offers: Annotated[int, typer.Option(help="Offers of all sources together.")] = _DEFAULT.offers,
    prices: Annotated[int, typer.Option("--prices-per-offer", help="Prices of each.")] = _DEFAULT.prices_per_offer,
    number: Annotated[int, typer.Option("--seed", help="The same makes the same rows.")] = _DEFAULT.seed,
    yes: Annotated[bool, typer.Option("--yes", help="Even though the database has data already.")] = False,
) -> None:
    """Fill the database with made-up feeds, runs and offers, to see how fast everything is. Never do so in production.

    Nothing that is there is changed, but made-up shops can be deleted from among real ones by nobody. A database that
    has sources already is refused without --yes. No worker and no scheduler may run meanwhile.
    """
    plan = Plan(feeds=feeds, runs=runs, offers=offers, prices_per_offer=prices, seed=number)
    with session(Tables.MIGRATED):
        from harvester.cli.seeding.fill import fill, has_data

        if has_data() and not yes:
            raise Conflict(
                "This database has sources already; nothing was made. Made-up data cannot be taken out again: "
                "use an empty database, or repeat with --yes if this one may be thrown away."
            )
        with _bar() as tell:
            made = fill(plan, tell)
        OUT.show(
            vars(made),
            lambda: f"Made {made.feeds:,} feeds, {made.runs:,} runs, {made.offers:,} offers, {made.prices:,} prices.",
        )


@contextmanager
def _bar() -> Iterator[Any]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=OUT.errors, transient=True, disable=OUT.as_json) as bar:
        task = bar.add_task("seeding", total=None)

        def tell(done: int, total: int, note: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{note}: {done:,} of {total:,}")

        yield tell
