"""`harvester user ...`: who may log in, and what they may do."""

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

app = group("user", "Who may log in, and what they may do.", ("harvester user add ann --role admin",))


class RoleName(StrEnum):
    """The roles as they are typed."""

    viewer = "viewer"
    operator = "operator"
    admin = "admin"


Username = Annotated[str, typer.Argument(metavar="NAME", help="The person's login name.")]
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
    role: Annotated[RoleName, typer.Option(help="What the person may do.")] = RoleName.viewer,
    email: Annotated[str, typer.Option(help="For people to find each other; no mail is sent.")] = "",
    password_stdin: FromStdin = False,
) -> None:
    """Give a person a login. The password is asked for, or read from standard input; it is never an argument."""
    with session():
        from harvester.ops import users
        from harvester.ops.models import Role

        user = users.create(operator(), name, _password(password_stdin), Role(role.value), email=email)
        _tell(user, f"{user.username} may log in as {user.role}.")


@command(app, "list", ("harvester user list", "harvester user list --json"), data=True)
def list_users() -> None:
    """List everybody who has, or had, a login."""
    with session():
        from harvester.cli.job_views import database_now
        from harvester.ops.models import User

        people = [_public(user) for user in User.objects.order_by("username")]
        now = database_now()
        OUT.show({"users": people}, lambda: _table(people, now))


@command(app, "role", ("harvester user role bob operator",), data=True)
def change_role(
    name: Username, role: Annotated[RoleName, typer.Argument(help="What the person may do from now on.")]
) -> None:
    """Change what a person may do, from their next request on."""
    with session():
        from harvester.ops import users
        from harvester.ops.models import Role

        user = users.set_role(operator(), name, Role(role.value))
        _tell(user, f"{user.username} is {user.role} now.")


@command(
    app,
    "password",
    ("harvester user password bob", "harvester user password bob --password-stdin < new.txt"),
    data=True,
)
def change_password(name: Username, *, password_stdin: FromStdin = False) -> None:
    """Give a person a new password; their sessions end."""
    with session():
        from harvester.ops import users

        user = users.set_password(operator(), name, _password(password_stdin))
        _tell(user, f"{user.username} has a new password.")


@command(app, "activate", ("harvester user activate bob",), data=True)
def activate(name: Username) -> None:
    """Let a person in again."""
    _set_active(name, active=True)


@command(app, "deactivate", ("harvester user deactivate bob",), data=True)
def deactivate(name: Username) -> None:
    """Keep a person out. Nobody is ever deleted: the audit trail names them."""
    _set_active(name, active=False)


def _set_active(name: str, *, active: bool) -> None:
    with session():
        from harvester.ops import users

        user = users.set_active(operator(), name, active=active)
        _tell(user, f"{user.username} may {'log in' if active else 'no longer log in'}.")


def _password(from_stdin: bool) -> str:
    """Never from the command line, where every process list shows it."""
    if from_stdin:
        return _first_line()
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to ask for the password on; pipe it in and say --password-stdin.")
    # It hides the typing before it asks, unlike typer's prompt: nobody is fast enough to be seen.
    password = getpass.getpass("Password: ")
    if getpass.getpass("The same again: ") != password:
        raise InvalidInput("The two passwords differ; nothing was changed.")
    return password


def _first_line() -> str:
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput("--password-stdin was said, but standard input is empty.")
    return line


def _public(user: Any) -> dict[str, Any]:
    names = ("id", "username", "role", "email", "is_active", "last_login", "date_joined")
    return {name: getattr(user, name) for name in names}


def _tell(user: Any, sentence: str) -> None:
    OUT.show(_public(user), lambda: sentence)


def _table(people: list[dict[str, Any]], now: Any) -> RenderableType:
    if not people:
        return Text("Nobody has a login yet. Make one: harvester user add NAME --role admin")
    rows = [
        (
            person["username"],
            person["role"],
            "yes" if person["is_active"] else "no",
            when(person["last_login"], now) or "never",
            when(person["date_joined"], now),
            person["email"],
        )
        for person in people
    ]
    return table(("name", "role", "may log in", "last login", "since", "email"), rows)
