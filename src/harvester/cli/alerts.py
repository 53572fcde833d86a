"""`harvester alerts ...`: open and past alerts."""

import json
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER
from harvester.cli.output import OUT, cell, pairs, stacked, table, when
from harvester.cli.session import session
from harvester.kernel.errors import NotFound

app = group("alerts", "List and show alerts.", ("harvester alerts list", "harvester alerts show 17"))

_SHOWN = (
    "id", "kind", "key", "severity", "title", "body", "detail", "opened_at", "last_seen_at", "times", "resolved_at",
    "resolved_note", "opened_delivered_at", "resolved_delivered_at", "delivery_error",
)  # fmt: skip
_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


@command(
    app,
    "list",
    ("harvester alerts list", "harvester alerts list --all --limit 100", "harvester alerts list --json"),
    data=True,
)
def list_alerts(
    *,
    show_all: Annotated[bool, typer.Option("--all", help="Include resolved alerts.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 50,
) -> None:
    """List open alerts, newest first."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops.models import Alert

        chosen = Alert.objects.all() if show_all else Alert.objects.filter(resolved_at=None)
        alerts = list(chosen.order_by("-id").values(*_SHOWN)[:limit])
        now = database_now()
        OUT.show({"alerts": alerts}, lambda: _table(alerts, now))


@command(app, "show", ("harvester alerts show 17", "harvester alerts show 17 --json"), data=True)
def show(
    number: Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_NUMBER, help="As listed.")],
) -> None:
    """Show an alert: its times, how often it occurred, what it is about, and whether its messages were delivered."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.feeds.verbs.locked_feed import name_of
        from harvester.ops.alerts import OPENED, RESOLVED, message, things
        from harvester.ops.models import Alert

        found = Alert.objects.filter(pk=number).first()
        if found is None:
            raise NotFound(f"There is no alert {number}; `harvester alerts list --all` shows the newest.")
        alert = {
            **{name: getattr(found, name) for name in _SHOWN},
            "about": [
                {"type": kind, "id": key, **({"name": name_of(key)} if kind == "feed" else {})}
                for kind, key in things(found).items()
            ],
            "first_message": vars(message(found, OPENED)),
            "last_message": vars(message(found, RESOLVED)) if found.resolved_at else None,
        }
        now = database_now()
        OUT.show(alert, lambda: _detail_view(alert, now))


def _table(alerts: list[dict[str, Any]], now: datetime) -> RenderableType:
    if not alerts:
        return Text("There are no such alerts.")
    rows = [
        (
            alert["id"],
            Text(alert["severity"], style=_STYLES.get(alert["severity"], "")),
            alert["title"],
            when(alert["opened_at"], now),
            alert["times"],
            when(alert["resolved_at"], now) or "open",
            "not delivered" if alert["delivery_error"] else "",
        )
        for alert in alerts
    ]
    return table(("id", "severity", "title", "opened", "times", "resolved", "messages"), rows, right=("id", "times"))


def _detail_view(alert: dict[str, Any], now: datetime) -> RenderableType:
    severity = Text(alert["severity"], style=_STYLES.get(alert["severity"], ""))
    state = "resolved" if alert["resolved_at"] else "open"
    about = [
        (thing["type"], f"{thing['name']} ({thing['id']})" if "name" in thing else str(thing["id"]))
        for thing in alert["about"]
    ]
    facts = [
        *about,
        ("key", alert["key"]),
        ("opened", _moment(alert["opened_at"], now)),
        ("last seen", _moment(alert["last_seen_at"], now)),
        ("times", f"{alert['times']:,}"),
        ("resolved", _moment(alert["resolved_at"], now)),
        ("resolution", alert["resolved_note"]),
        ("first message", _message(alert["first_message"], now)),
        ("last message", _message(alert["last_message"], now)),
        ("details", json.dumps(alert["detail"], ensure_ascii=False) if alert["detail"] else ""),
    ]
    return stacked(
        Text.assemble((f"{alert['kind']} {alert['id']}", "bold"), "  ", severity, f"  {state}"),
        cell(alert["title"]),
        Text(""),
        cell(alert["body"]),
        Text(""),
        pairs([(name, value) for name, value in facts if value]),
    )


def _message(message: dict[str, Any] | None, now: datetime) -> str:
    return f"{message['words']} {when(message['delivered_at'], now)}".strip() if message else ""


def _moment(moment: datetime | None, now: datetime) -> str:
    return f"{when(moment, now)} ({moment:%Y-%m-%d %H:%M:%S} UTC)" if moment else ""
