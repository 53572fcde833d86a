"""`harvester audit ...`: who did what."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.commands import command, group
from harvester.cli.options import moment
from harvester.cli.output import OUT, pairs, table, when
from harvester.cli.session import session
from harvester.kernel.errors import NotFound

app = group("audit", "Who did what, and when.", ("harvester audit list --actor ann", "harvester audit show 17"))

_SHOWN = ("id", "at", "actor_kind", "actor_id", "actor_name", "verb", "object_type", "object_id", "changed", "detail")
_LARGEST = 2**63 - 1


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
    actor: Annotated[str, typer.Option(help="Only what this person, key or part of the system did: name or id.")] = "",
    verb: Annotated[str, typer.Option(help="Only this, such as RUN_PROMOTED.")] = "",
    thing: Annotated[
        str, typer.Option("--object", metavar="TYPE[:ID]", help="Only what was done to things like feed, or to one.")
    ] = "",
    since: Annotated[str, typer.Option(help="Only from this day or moment on, UTC.")] = "",
    until: Annotated[str, typer.Option("--before", help="Only before this day or moment, UTC.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 50,
) -> None:
    """List what was done, newest first."""
    object_type, _, object_id = thing.partition(":")
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
            OUT.hint("There are more, older ones: a higher --limit or --before shows them.")
        if not found and given["verb"] and given["verb"] not in audit_log.VERBS:
            OUT.hint(f"No verb is called {given['verb']}; there are {', '.join(audit_log.VERBS)}.")


@command(app, "show", ("harvester audit show 17", "harvester audit show 17 --json"), data=True)
def show(
    number: Annotated[int, typer.Argument(metavar="ID", min=1, max=_LARGEST, help="As the list shows it.")],
) -> None:
    """Show one event with everything that it tells."""
    with session():
        from harvester.ops import audit_log

        event = audit_log.events().filter(pk=number).values(*_SHOWN).first()
        if event is None:
            raise NotFound(f"There is no event {number} in the audit trail.")
        [named] = _with_names([event])
        OUT.show(named, lambda: pairs(_facts(named)))


def _with_names(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the name of the object, and names instead of ids in what people read of the details."""
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
    rows = [
        (event["id"], when(event["at"], now), event["actor_name"], event["verb"], _named(event), _detail(event))
        for event in events
    ]
    return table(("id", "when", "who", "what", "object", "details"), rows, right=("id",))


def _facts(event: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("what", event["verb"]),
        ("when", event["at"].isoformat()),
        ("who", f"{event['actor_name']} ({event['actor_kind']} {event['actor_id']})"),
        ("object", _thing(event)),
        ("name", event["object_name"]),
        ("changed", ", ".join(event["changed"])),
        *event["detail_names"].items(),
    ]


def _named(event: dict[str, Any]) -> str:
    return f"{event['object_type']} {event['object_name']}" if event["object_name"] else _thing(event)


def _thing(event: dict[str, Any]) -> str:
    """As `--object` takes it."""
    return f"{event['object_type']}:{event['object_id']}"


def _detail(event: dict[str, Any]) -> str:
    told = [*event["changed"], *(f"{name}: {value}" for name, value in event["detail_names"].items())]
    return ", ".join(told)[:120]
