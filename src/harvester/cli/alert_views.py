"""What the `alerts` commands show of one alert. Needs Django."""

import json
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.cli.alerts import SHOWN, STYLES
from harvester.cli.job_views import database_now
from harvester.cli.output import cell, pairs, stacked, when
from harvester.feeds.verbs.locked_feed import name_of
from harvester.kernel.errors import NotFound
from harvester.ops.alert_details import message, things
from harvester.ops.alerts import OPENED, RESOLVED
from harvester.ops.models import Alert


def details(alert_id: int) -> dict[str, Any]:
    """An alert with what it is about and what became of its messages."""
    alert = Alert.objects.filter(pk=alert_id).first()
    if alert is None:
        raise NotFound(f"There is no alert {alert_id}; `harvester alerts list --all` shows the newest.")
    facts = {name: getattr(alert, name) for name in SHOWN}
    return {
        **facts,
        "about": [_thing(kind, key) for kind, key in things(alert).items()],
        "first_message": vars(message(alert, OPENED)),
        "last_message": vars(message(alert, RESOLVED)) if alert.resolved_at else None,
    }


def _thing(kind: str, key: Any) -> dict[str, Any]:
    thing = {"type": kind, "id": key}
    return {**thing, "name": name_of(key)} if kind == "feed" else thing


def detail_view(alert: dict[str, Any]) -> RenderableType:
    severity = Text(alert["severity"], style=STYLES.get(alert["severity"], ""))
    state = "resolved" if alert["resolved_at"] else "open"
    return stacked(
        Text.assemble((f"{alert['kind']} {alert['id']}", "bold"), "  ", severity, f"  {state}"),
        cell(alert["title"]),
        Text(""),
        cell(alert["body"]),
        Text(""),
        pairs([(name, value) for name, value in _facts(alert, database_now()) if value]),
    )


def _facts(alert: dict[str, Any], now: datetime) -> list[tuple[str, Any]]:
    return [
        *((thing["type"], _named(thing)) for thing in alert["about"]),
        ("key", alert["key"]),
        ("since", _moment(alert["opened_at"], now)),
        ("last seen", _moment(alert["last_seen_at"], now)),
        ("seen", f"{alert['times']:,} time{'' if alert['times'] == 1 else 's'}"),
        ("over", _moment(alert["resolved_at"], now)),
        ("how it ended", alert["resolved_note"]),
        ("first message", _message(alert["first_message"], now)),
        ("last message", _message(alert["last_message"], now)),
        ("details", json.dumps(alert["detail"], ensure_ascii=False) if alert["detail"] else ""),
    ]


def _named(thing: dict[str, Any]) -> str:
    return f"{thing['name']} ({thing['id']})" if "name" in thing else str(thing["id"])


def _message(told: dict[str, Any] | None, now: datetime) -> str:
    return f"{told['words']} {when(told['told_at'], now)}".strip() if told else ""


def _moment(moment: datetime | None, now: datetime) -> str:
    return f"{when(moment, now)} ({moment:%Y-%m-%d %H:%M:%S} UTC)" if moment else ""
