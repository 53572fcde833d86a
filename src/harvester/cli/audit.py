"""`harvester audit ...`: the audit log."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.commands import command, group
from harvester.cli.options import LARGEST_NUMBER, moment
from harvester.cli.output import OUT, pairs, table, when
from harvester.cli.session import session
from harvester.kernel.errors import NotFound

app = group("audit", "Show who did what, and when.", ("harvester audit list --actor ann", "harvester audit show 17"))

_SHOWN = ("id", "at", "actor_kind", "actor_id", "actor_name", "verb", "object_type", "object_id", "changed", "detail")


@command(
    app,
    "list",
    (
        "harvester audit list",
        "harvester audit list --actor ann --since 2026-01-31",
        "harvester audit list --object feed --verb FEED_STATUS_CHANGED",
        "harvester audit list --object feed:01980000-0000-7000-8000-000000000000 --json",
    ),
    data=True,
)
def list_events(
    *,
    actor: Annotated[str, typer.Option(help="Only by this person, key or system component: name or id.")] = "",
    verb: Annotated[str, typer.Option(help="Only this, such as RUN_PROMOTED.")] = "",
    target: Annotated[
        str, typer.Option("--object", metavar="TYPE[:ID]", help="Only on objects of this type, or on this object.")
    ] = "",
    since: Annotated[str, typer.Option(help="Only from this date or time on, UTC.")] = "",
    until: Annotated[str, typer.Option("--before", help="Only before this date or time, UTC.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 50,
) -> None:
    """List audit events, newest first."""
    object_type, _, object_id = target.partition(":")
    given: dict[str, Any] = {
        "actor": actor,
        "verb": verb.strip().upper().replace(" ", "_"),
        "object_type": object_type.strip(),
        "object_id": object_id.strip(),
        "since": moment("--since", since),
        "until": moment("--before", until),
    }
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops import audit_log

        found = list(audit_log.filtered(audit_log.events(), **given).values(*_SHOWN)[: limit + 1])
        shown, now = _with_names(found[:limit]), database_now()
        OUT.show({"events": shown, "has_more": len(found) > limit}, lambda: _table(shown, now))
        if len(found) > limit:
            OUT.hint("There are more. For older ones use --before or a higher --limit.")
        if not found and given["verb"] and given["verb"] not in audit_log.VERBS:
            OUT.hint(f"There is no verb {given['verb']}; the verbs are {', '.join(audit_log.VERBS)}.")


@command(app, "show", ("harvester audit show 17", "harvester audit show 17 --json"), data=True)
def show(
    number: Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_NUMBER, help="As listed.")],
) -> None:
    """Show one event with all its details."""
    with session():
        from harvester.ops import audit_log

        event = audit_log.events().filter(pk=number).values(*_SHOWN).first()
        if event is None:
            raise NotFound(f"There is no event {number} in the audit log; `harvester audit list` shows the newest.")
        [named] = _with_names([event])
        facts = [
            ("verb", named["verb"]),
            ("time", named["at"].isoformat()),
            ("actor", f"{named['actor_name']} ({named['actor_kind']} {named['actor_id']})"),
            ("object", _object_text(named)),
            ("name", named["object_name"]),
            ("changed", ", ".join(named["changed"])),
            *named["detail_names"].items(),
        ]
        OUT.show(named, lambda: pairs(facts))


def _with_names(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the name of each event's object, and details with names instead of ids."""
    from harvester.feeds.display_names import names_of, things_in, with_names

    things = [
        thing for event in events for thing in [(event["object_type"], event["object_id"]), *things_in(event["detail"])]
    ]
    names = names_of(things)
    return [
        {
            **event,
            "object_name": names.get((event["object_type"], event["object_id"])),
            "detail_names": with_names(event["detail"], names),
        }
        for event in events
    ]


def _table(events: list[dict[str, Any]], now: datetime) -> RenderableType:
    if not events:
        return Text("There are no such events.")
    rows = []
    for event in events:
        name = f"{event['object_type']} {event['object_name']}" if event["object_name"] else _object_text(event)
        details = [*event["changed"], *(f"{key}: {value}" for key, value in event["detail_names"].items())]
        rows.append(
            (event["id"], when(event["at"], now), event["actor_name"], event["verb"], name, ", ".join(details)[:120])
        )
    return table(("id", "time", "actor", "verb", "object", "details"), rows, right=("id",))


def _object_text(event: dict[str, Any]) -> str:
    """Return the object in the form of the option `--object`."""
    return f"{event['object_type']}:{event['object_id']}"
