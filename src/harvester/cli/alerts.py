"""`harvester alerts ...`: what people should know."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER
from harvester.cli.output import OUT, table, when
from harvester.cli.session import session

app = group("alerts", "What people should know.", ("harvester alerts list", "harvester alerts show 17"))

SHOWN = (
    "id", "kind", "key", "severity", "title", "body", "detail", "opened_at", "last_seen_at", "times", "resolved_at",
    "resolved_note", "opened_delivered_at", "resolved_delivered_at", "delivery_error",
)  # fmt: skip
STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


@command(
    app,
    "list",
    ("harvester alerts list", "harvester alerts list --all --limit 100", "harvester alerts list --json"),
    data=True,
)
def list_alerts(
    *,
    show_all: Annotated[bool, typer.Option("--all", help="Those that are over as well.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 50,
) -> None:
    """List the alerts that are open, newest first."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops.models import Alert

        chosen = Alert.objects.all() if show_all else Alert.objects.filter(resolved_at=None)
        alerts = list(chosen.order_by("-id").values(*SHOWN)[:limit])
        now = database_now()
        OUT.show({"alerts": alerts}, lambda: _table(alerts, now))


@command(app, "show", ("harvester alerts show 17", "harvester alerts show 17 --json"), data=True)
def show(
    number: Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_NUMBER, help="As the list shows it.")],
) -> None:
    """Show one alert: since when, how often it was seen, what it is about, and what became of its messages."""
    with session():
        from harvester.cli import alert_views

        alert = alert_views.details(number)
        OUT.show(alert, lambda: alert_views.detail_view(alert))


def _table(alerts: list[dict[str, Any]], now: datetime) -> RenderableType:
    if not alerts:
        return Text("There are no such alerts.")
    rows = [
        (
            alert["id"],
            Text(alert["severity"], style=STYLES.get(alert["severity"], "")),
            alert["title"],
            when(alert["opened_at"], now),
            alert["times"],
            when(alert["resolved_at"], now) or "open",
            "not delivered" if alert["delivery_error"] else "",
        )
        for alert in alerts
    ]
    return table(("id", "severity", "title", "since", "seen", "over", "channel"), rows, right=("id", "seen"))
