"""`harvester feed metrics`: the runs of a feed in figures."""

from datetime import date
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from harvester.cli.commands import command
from harvester.cli.feed import Name
from harvester.cli.feed_runs import app
from harvester.cli.output import OUT, clean, count_text, span, table
from harvester.cli.session import session

_COUNTS = ("runs", "failed", "held", "skipped", "rows", "prices", "rejects")


@command(
    app,
    "metrics",
    ('harvester feed metrics "Acme by Impact"', 'harvester feed metrics "Acme by Impact" --days 7 --json'),
    data=True,
)
def metrics(
    name: Name,
    *,
    days: Annotated[int, typer.Option(min=1, max=365, help="This many days back; as long as runs are kept.")] = 30,
) -> None:
    """Show the figures of a feed's last days: runs, prices, rejects and how long a run takes, in all and by day."""
    with session():
        from harvester.feeds import run_totals, verbs

        feed = verbs.feed_named(name)
        whole, by_day = run_totals.totals_since(feed, days=days), run_totals.days_since(feed, days=days)
        told = [{"day": day.isoformat(), **vars(sums)} for day, sums in by_day.items()]
        data = {"feed": str(feed), "totals": vars(whole), "days": told}
        OUT.show(data, lambda: _table(whole, by_day, title=f"{feed}, the last {days} days"))


def _table(whole: Any, by_day: dict[date, Any], *, title: str) -> RenderableType:
    rows = [(day.isoformat(), *_figures(sums)) for day, sums in by_day.items()]
    columns = ("day (UTC)", *_COUNTS, "usual duration")
    return table(columns, [*rows, ("in all", *_figures(whole))], title=clean(title), right=columns[1:])


def _figures(sums: Any) -> list[str]:
    usual = span(sums.median_seconds) if sums.median_seconds is not None else ""
    return [*(count_text(getattr(sums, name)) for name in _COUNTS), usual]
