"""`harvester user ...`: logins and roles, audited; passwords are typed or piped, never arguments."""

import os
import pty
import threading

import pytest
from django.db import IntegrityError, connection, transaction
from tests.support.command import COMMAND, environment
from tests.support.commands_inside import harvester
from tests.support.tables import rows
from tests.support.waiting import wait_for

from harvester.kernel.actor import system
from harvester.kernel.errors import Conflict
from harvester.ops import users
from harvester.ops.models import AuditEvent, Role, User

pytestmark = pytest.mark.usefixtures("database")

PASSWORD = "correct horse battery staple"
WAITING = """
SELECT FROM pg_locks JOIN pg_database d ON d.oid = database
WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()
"""


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["tests.support.portal.QuickHasher"]


def add(name, role="viewer", password=PASSWORD, *more):
    return harvester("user", "add", name, "--role", role, "--password-stdin", *more, stdin=f"{password}\n")


def known(name, role=Role.VIEWER):
    """Somebody who is there already."""
    return users.create(system("test"), name, PASSWORD, role)


def audited():
    return rows("SELECT verb, actor_kind, changed FROM audit_events WHERE actor_id LIKE 'cli:%%' ORDER BY id")


def test_a_person_gets_a_login_and_the_audit_log_says_who_gave_it():
    ran = add("ann", "admin")
    assert ran.code == 0, ran.err
    assert ran.out == "ann was added with the role admin.\n"
    assert User.objects.get(username="ann").check_password(PASSWORD)
    assert audited() == [("USER_CREATED", "person", [])]


def test_the_audit_log_keeps_the_id_of_a_new_user_and_shows_the_name():
    assert add("ann", "admin").code == 0
    ann = User.objects.get(username="ann")
    event = AuditEvent.objects.get(verb="USER_CREATED")
    assert (event.object_id, event.detail) == (str(ann.pk), {"role": "admin"})
    listed = harvester("audit", "list", "--verb", "USER_CREATED").out
    assert "user ann" in listed
    assert "role: admin" in listed
    assert harvester("audit", "show", str(event.pk), "--json").json["object_name"] == "ann"


def test_everything_that_can_be_done_to_a_person_is_audited():
    known("ann", Role.ADMIN), known("bob")
    steps = {
        "USER_ROLE_CHANGED": ["role", "ann", "admin"],
        "USER_DEACTIVATED": ["deactivate", "bob"],
        "USER_ACTIVATED": ["activate", "bob"],
        "USER_PASSWORD_CHANGED": ["password", "bob", "--password-stdin"],
    }
    for words in steps.values():
        assert harvester("user", *words, stdin="another long password\n").code == 0
    assert [row[0] for row in audited()] == list(steps)
    assert User.objects.get(username="bob").check_password("another long password")
    assert PASSWORD not in str(rows("SELECT detail FROM audit_events"))


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["role", "nobody", "viewer"], 3, "harvester user list"),
        (["role", "ann", "viewer"], 4, "last active admin"),
        (["deactivate", "ann"], 4, "last active admin"),
        (["role", "ann", "king"], 2, "operator"),
        (["add", "ann", "--password-stdin"], 4, "user named ann exists already"),
        (["password", "ann"], 2, "--password-stdin"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_code(words, code, hint):
    known("ann", Role.ADMIN)
    ran = harvester("user", *words, stdin=f"{PASSWORD}\n" if "--password-stdin" in words else "")
    assert ran.code == code, ran.err
    assert hint in ran.err
    assert audited() == []


def test_two_admins_who_put_out_each_other_at_once_leave_one():
    known("ann", Role.ADMIN), known("bob", Role.ADMIN)
    refused = []

    def put_out(name):
        try:
            users.set_active(system("test"), name, active=False)
        except Conflict as problem:
            refused.append(str(problem))
        finally:
            connection.close()

    other = threading.Thread(target=put_out, args=["ann"])
    with transaction.atomic():
        users.set_active(system("test"), "bob", active=False)
        other.start()
        wait_for(lambda: rows(WAITING), "the other one waits")
    other.join()
    assert refused == ["ann is the last active admin; make another user an admin first."]
    assert [user.username for user in User.objects.filter(is_active=True)] == ["ann"]


def test_the_table_accepts_one_name_in_one_case_only():
    known("ann")
    assert "named ann exists already" in add("ANN").err
    with pytest.raises(IntegrityError, match="users_username_in_any_letters"), transaction.atomic():
        User.objects.create(username="Ann")


def test_a_weak_password_is_refused_and_nobody_is_made():
    ran = add("ann", "admin", "12345")
    assert ran.code == 2
    assert not User.objects.exists()


def test_people_are_listed_without_anything_secret():
    known("bob")
    add("ann", "admin", PASSWORD, "--email", "ann@shop.example")
    people = harvester("user", "list", "--json").json["users"]
    assert [(person["username"], person["role"], person["is_active"]) for person in people] == [
        ("ann", "admin", True),
        ("bob", "viewer", True),
    ]
    assert "password" not in people[0]
    table = harvester("user", "list").out
    assert "ann@shop.example" in table
    assert "never" in table


def test_nobody_yet_says_how_to_begin():
    assert "harvester user add" in harvester("user", "list").out


def test_a_typed_password_is_asked_for_twice_and_not_shown():
    pid, screen = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], [*COMMAND, "user", "add", "ann"], environment())
    seen = ""
    for question in ("Password", "Repeat"):
        seen += read_until(screen, question)
        os.write(screen, f"{PASSWORD}\n".encode())
    seen += read_until(screen, "was added with the role viewer")
    _, status = os.waitpid(pid, 0)
    os.close(screen)
    assert os.waitstatus_to_exitcode(status) == 0
    assert PASSWORD not in seen


def read_until(screen, words):
    """What the terminal shows up to these words; fails when the command ends without them."""
    seen = ""
    while words not in seen:
        seen += os.read(screen, 1000).decode()
    return seen
