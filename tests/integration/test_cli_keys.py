"""`harvester keys ...`: keys are made, listed by id, and replaced without a moment in which anything is lost."""

from uuid import UUID, uuid4

import pytest
from tests.support.command import harvester

from harvester.guards import secrets
from harvester.guards.models import SealedSecret
from harvester.guards.vault import KeyRing, generate_key
from harvester.ops.models import AuditEvent

pytestmark = pytest.mark.usefixtures("database")

OLD, NEW, LOST = generate_key(), generate_key(), generate_key()
BOTH = {"CREDENTIAL_ENCRYPTION_KEY_B64": f"new:{NEW},old:{OLD}"}


def seal(key_id: str, key: str, count: int = 3) -> list[UUID]:
    ring = KeyRing.parse(f"{key_id}:{key}")
    owners = [uuid4() for _ in range(count)]
    for owner in owners:
        secrets.put("feed", owner, {"password": "hunter2hunter2"}, ring=ring)
    return owners


def sealed_with() -> set[str]:
    return set(SealedSecret.objects.values_list("key_id", flat=True))


def audited():
    return list(AuditEvent.objects.values_list("verb", "object_id", "actor_kind", "detail"))


def test_stdout_has_only_the_generated_key_which_can_be_used():
    key = harvester("keys", "generate").out.strip()
    assert KeyRing.parse(key).key_ids == ("default",)
    named = harvester("keys", "generate", "--id", "2026").out.strip()
    assert KeyRing.parse(named).key_ids == ("2026",)
    assert key not in named


def test_a_key_can_be_generated_where_the_settings_still_lack_one():
    ran = harvester("keys", "generate", HARVESTER_DATABASE_URL="postgresql://db.example/harvester")
    assert ran.code == 0


def test_keys_are_listed_by_id_with_their_counts_and_never_shown():
    seal("old", OLD, 2), seal("gone", LOST, 1)
    ran = harvester("keys", "list", "--json", **BOTH)
    assert ran.json["keys"] == [
        {"id": "new", "writes": True, "sealed": 0, "known": True},
        {"id": "old", "writes": False, "sealed": 2, "known": True},
        {"id": "gone", "writes": False, "sealed": 1, "known": False},
    ]
    shown = harvester("keys", "list", **BOTH).out
    assert "MISSING" in shown
    assert not any(key in ran.out + shown for key in (OLD, NEW))


def test_rotation_encrypts_everything_again_and_is_audited_with_its_counts():
    owners = seal("old", OLD)
    ran = harvester("keys", "rotate", **BOTH)
    assert (ran.code, ran.out) == (0, "3 credentials were encrypted again; 0 are left.\n")
    assert sealed_with() == {"new"}
    opened = secrets.open_document("feed", owners[0], ring=KeyRing.parse(f"new:{NEW}"))
    assert opened == {"password": "hunter2hunter2"}
    assert audited() == [
        ("KEYS_ROTATION_BEGUN", "new", "person", {"sealed": 3}),
        ("KEYS_ROTATED", "new", "person", {"rewritten": 3, "unreadable": 0, "left": 0}),
    ]


def test_rotation_continues_where_an_earlier_one_ended():
    seal("new", NEW, 1), seal("old", OLD, 2)
    assert harvester("keys", "rotate", "--json", **BOTH).json == {"rewritten": 2, "left": 0, "unreadable": {}}
    assert harvester("keys", "rotate", "--json", **BOTH).json == {"rewritten": 0, "left": 0, "unreadable": {}}


def test_unreadable_credentials_are_named_and_not_changed():
    [owner] = seal("gone", LOST, 1)
    seal("old", OLD, 1)
    ran = harvester("keys", "rotate", **BOTH)
    assert ran.code == 1
    assert str(owner) in ran.out
    assert sealed_with() == {"new", "gone"}
