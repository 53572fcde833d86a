"""`harvester api-keys ...`: the keys of applications that use the API."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.output import OUT, stacked, table, when
from harvester.cli.session import session

app = group(
    "api-keys",
    "Create, list and revoke API keys.",
    ('harvester api-keys create "price site" --scope offers:read',),
)
_SHOWN = (
    "id", "name", "prefix", "scopes", "state", "created_by", "created_at", "expires_at", "last_used_at", "revoked_at",
    "revoked_by",
)  # fmt: skip


@command(
    app,
    "create",
    (
        'harvester api-keys create "price site" --scope offers:read',
        "harvester api-keys create nightly --scope feeds:operate --scope jobs:read --expires-in-days 90 --json",
    ),
    data=True,
)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    *,
    scopes: Annotated[
        list[str], typer.Option("--scope", help="such as offers:read, feeds:operate or scrape:read; may be repeated.")
    ],
    days: Annotated[
        int | None,
        typer.Option("--expires-in-days", min=1, max=3650, help="Days until it expires; never by default."),
    ] = None,
) -> None:
    """Create a key and print it. Copy it now: only its hash is stored."""
    with session():
        from harvester.ops import api_keys

        expiry = datetime.now(UTC) + timedelta(days=days) if days else None
        key, token = api_keys.create(operator(), name, scopes, expires_at=expiry)
        hint = f"Permissions of {key.name}: {', '.join(key.scopes)}. Copy the key now; it is not shown again."
        OUT.show({**_public(key), "key": token}, lambda: stacked(Text(token), Text(hint, style="dim")))


@command(app, "list", ("harvester api-keys list", "harvester api-keys list --json"), data=True)
def list_keys() -> None:
    """List all keys by prefix, with permissions and last use, newest first."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops.models import ApiKey

        keys = [_public(key) for key in ApiKey.objects.order_by("-created_at", "-id")]
        now = database_now()
        OUT.show({"api_keys": keys}, lambda: _table(keys, now))


@command(app, "revoke", ('harvester api-keys revoke "price site"', "harvester api-keys revoke hvk_3q0aVbXk"), data=True)
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its name, its prefix as listed, or its id.")],
) -> None:
    """Revoke a key. Its next request is rejected."""
    with session():
        from harvester.ops import api_keys

        ended = api_keys.revoke(operator(), api_keys.find(key).pk)
        OUT.show(_public(ended), lambda: f"The key {ended.name} ({ended.prefix}...) is revoked.")


def _public(key: Any) -> dict[str, Any]:
    return {name: getattr(key, name) for name in _SHOWN}


def _table(keys: list[dict[str, Any]], now: Any) -> RenderableType:
    if not keys:
        return Text("There are no API keys yet. Create one: harvester api-keys create NAME --scope offers:read")
    rows = [
        (
            key["name"],
            f"{key['prefix']}...",
            key["state"],
            ", ".join(key["scopes"]),
            when(key["last_used_at"], now) or "never",
            when(key["created_at"], now),
            when(key["expires_at"], now) or "never",
        )
        for key in keys
    ]
    return table(("name", "key", "state", "permissions", "last used", "created", "expires"), rows)
