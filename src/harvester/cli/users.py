"""`harvester user ...`: users and their roles."""

import getpass
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.output import OUT, table, when
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
