"""`harvester user ...` and `harvester api-keys ...`: who may use the portal and the API."""

import getpass
import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.output import OUT, stacked, table, when
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group("user", "Add users and change their roles.", ("harvester user add ann --role admin",))


class RoleName(StrEnum):
    """Values of --role."""

    viewer = "viewer"
    operator = "operator"
    admin = "admin"


Username = Annotated[str, typer.Argument(metavar="NAME", help="The login name.")]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]


@command(
    app,
    "add",
    (
        "harvester user add ann --role admin",
        "pass show harvester/bob | harvester user add bob --role operator --password-stdin",
    ),
    data=True,
)
def add(
    name: Username,
    *,
    role: Annotated[RoleName, typer.Option(help="Permissions.")] = RoleName.viewer,
    email: Annotated[str, typer.Option(help="Shown in the list of users; no mail is sent.")] = "",
    password_stdin: FromStdin = False,
) -> None:
    """Add a user. The password is asked for, or read from standard input; it is never an argument."""
    with session():
        from harvester.ops import users
        from harvester.ops.models import Role

        user = users.create(operator(), name, _password(password_stdin), Role(role.value), email=email)
        _show(user, f"{user.username} was added with the role {user.role}.")


@command(app, "list", ("harvester user list", "harvester user list --json"), data=True)
def list_users() -> None:
    """List all users, active or not."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops.models import User

        users = [_public(user) for user in User.objects.order_by("username")]
        now = database_now()
        OUT.show({"users": users}, lambda: _table(users, now))


@command(app, "role", ("harvester user role bob operator",), data=True)
def change_role(name: Username, role: Annotated[RoleName, typer.Argument(help="The new role.")]) -> None:
    """Change a user's role. It applies from the next request on."""
    with session():
        from harvester.ops import users
        from harvester.ops.models import Role

        user = users.set_role(operator(), name, Role(role.value))
        _show(user, f"The role of {user.username} is now {user.role}.")


@command(
    app,
    "password",
    ("harvester user password bob", "harvester user password bob --password-stdin < new.txt"),
    data=True,
)
def change_password(name: Username, *, password_stdin: FromStdin = False) -> None:
    """Set a user's password, and end their sessions."""
    with session():
        from harvester.ops import users

        user = users.set_password(operator(), name, _password(password_stdin))
        _show(user, f"The password of {user.username} was changed.")


@command(app, "activate", ("harvester user activate bob",), data=True)
def activate(name: Username) -> None:
    """Let a user log in again."""
    _set_active(name, active=True)


@command(app, "deactivate", ("harvester user deactivate bob",), data=True)
def deactivate(name: Username) -> None:
    """Stop a user from logging in. Users are never deleted, because the audit log names them."""
    _set_active(name, active=False)


def _set_active(name: str, *, active: bool) -> None:
    with session():
        from harvester.ops import users

        user = users.set_active(operator(), name, active=active)
        _show(user, f"{user.username} can {'log in again' if active else 'no longer log in'}.")


def _password(from_stdin: bool) -> str:
    """Return the password. It is never an argument, because process lists show arguments."""
    if from_stdin:
        line = sys.stdin.readline().rstrip("\r\n")
        if not line:
            raise InvalidInput("--password-stdin was given, but standard input is empty. Nothing was changed.")
        return line
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to ask for the password; pipe it in with --password-stdin.")
    # Unlike typer's prompt, getpass turns off the echo before it prompts, so a fast typist's input is not shown.
    password = getpass.getpass("Password: ")
    if getpass.getpass("Repeat the password: ") != password:
        raise InvalidInput("The two passwords differ; nothing was changed.")
    return password


def _public(user: Any) -> dict[str, Any]:
    names = ("id", "username", "role", "email", "is_active", "last_login", "date_joined")
    return {name: getattr(user, name) for name in names}


def _show(user: Any, message: str) -> None:
    OUT.show(_public(user), lambda: message)


def _table(users: list[dict[str, Any]], now: Any) -> RenderableType:
    if not users:
        return Text("There are no users yet. Add one: harvester user add NAME --role admin")
    rows = [
        (
            user["username"],
            user["role"],
            "yes" if user["is_active"] else "no",
            when(user["last_login"], now) or "never",
            when(user["date_joined"], now),
            user["email"],
        )
        for user in users
    ]
    return table(("name", "role", "active", "last login", "added", "email"), rows)


key_app = group(
    "api-keys",
    "Create, list and revoke API keys.",
    ('harvester api-keys create "price site" --scope offers:read',),
)
_SHOWN = (
    "id", "name", "prefix", "scopes", "state", "created_by", "created_at", "expires_at", "last_used_at", "revoked_at",
    "revoked_by",
)  # fmt: skip


@command(
    key_app,
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
        OUT.show({**_public_key(key), "key": token}, lambda: stacked(Text(token), Text(hint, style="dim")))


@command(key_app, "list", ("harvester api-keys list", "harvester api-keys list --json"), data=True)
def list_keys() -> None:
    """List all keys by prefix, with permissions and last use, newest first."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops.models import ApiKey

        keys = [_public_key(key) for key in ApiKey.objects.order_by("-created_at", "-id")]
        now = database_now()
        OUT.show({"api_keys": keys}, lambda: _key_table(keys, now))


@command(
    key_app, "revoke", ('harvester api-keys revoke "price site"', "harvester api-keys revoke hvk_3q0aVbXk"), data=True
)
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its name, its prefix as listed, or its id.")],
) -> None:
    """Revoke a key. Its next request is rejected."""
    with session():
        from harvester.ops import api_keys

        ended = api_keys.revoke(operator(), api_keys.find(key).pk)
        OUT.show(_public_key(ended), lambda: f"The key {ended.name} ({ended.prefix}...) is revoked.")


def _public_key(key: Any) -> dict[str, Any]:
    return {name: getattr(key, name) for name in _SHOWN}


def _key_table(keys: list[dict[str, Any]], now: Any) -> RenderableType:
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
