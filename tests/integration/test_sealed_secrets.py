"""Credentials in the database: sealed for their owner, versioned, and readable at each step of a rotation."""

import base64
import json
import subprocess
import sys
import threading
import traceback
from uuid import UUID

import pytest
from django.db import connection, connections, transaction
from tests.support.tables import rows
from tests.support.waiting import wait_for

from harvester.guards.models import SealedSecret
from harvester.guards.redaction import forget_all, redact_text
from harvester.guards.secrets import NotADocument, Rotation, forget, installed_ring, merge, open_document, put, rotate
from harvester.guards.vault import KeyRing, Sealed, UnknownKey, WrongKeyOrContext, aad_for
from harvester.kernel.errors import InvalidInput, NotFound

FEED, OTHER_FEED = UUID(int=1), UUID(int=2)
CANARY = "c4n4ry-0f-4-s3cr3t"
OLD_KEY = base64.b64encode(b"o" * 32).decode()
NEW_KEY = base64.b64encode(b"n" * 32).decode()
LOST_KEY = base64.b64encode(b"l" * 32).decode()
OLD = KeyRing.parse(f"old:{OLD_KEY}")
NEW = KeyRing.parse(f"new:{NEW_KEY},old:{OLD_KEY}")


@pytest.fixture(autouse=True)
def empty_database(database):
    forget_all()
    yield
    forget_all()


def row_of(owner_id):
    return SealedSecret.objects.get(owner_kind="feed", owner_id=owner_id)


def put_many(count, ring=OLD):
    for number in range(1, count + 1):
        put("feed", UUID(int=number), {"password": f"of {UUID(int=number)}"}, ring=ring)


def keys_in_use():
    return sorted(key for (key,) in rows("SELECT key_id FROM sealed_secrets"))


def last(steps) -> Rotation:
    *_, end = steps
    return end


def test_a_document_opens_as_it_was_put():
    document = {"password": CANARY, "private_key": "-----BEGIN\nKEY", "passphrase": "ünïcödé \x00 " + chr(0xD800)}
    assert put("feed", FEED, document) == 1
    assert open_document("feed", FEED) == document


def test_each_change_raises_the_version():
    assert [put("feed", FEED, {"password": text}) for text in ("a", "b", "b")] == [1, 2, 3]
    assert put("feed", OTHER_FEED, {"password": "c"}) == 1
    assert put("connection", FEED, {"password": "d"}) == 1
    assert open_document("feed", FEED) == {"password": "b"}
    assert open_document("connection", FEED) == {"password": "d"}


def test_the_row_holds_the_documented_bytes_and_no_plaintext():
    put("feed", FEED, {"password": CANARY}, ring=OLD)
    put("feed", FEED, {"password": CANARY}, ring=OLD)
    ((version, key_id, payload),) = rows("SELECT version, key_id, payload FROM sealed_secrets")
    assert (version, key_id) == (2, "old")
    assert CANARY.encode() not in bytes(payload)
    opened = OLD.open(Sealed("old", bytes(payload)), f"feed:{FEED}:v2")
    assert json.loads(opened) == {"password": CANARY}


def test_a_change_is_undone_with_the_callers_transaction():
    put("feed", FEED, {"password": "kept"})
    with transaction.atomic():
        put("feed", FEED, {"password": "undone"})
        put("feed", OTHER_FEED, {"password": "undone"})
        transaction.set_rollback(True)
    assert open_document("feed", FEED) == {"password": "kept"}
    with pytest.raises(NotFound):
        open_document("feed", OTHER_FEED)


@pytest.mark.parametrize("first", [True, False], ids=["first change", "later change"])
def test_changes_at_once_wait_for_each_other(first):
    if not first:
        put("feed", FEED, {"password": "before"})
    versions, inside = [], threading.Barrier(4)

    def change():
        try:
            inside.wait()
            with transaction.atomic():
                versions.append(put("feed", FEED, {"password": "x"}))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(versions) == ([1, 2, 3, 4] if first else [2, 3, 4, 5])
    assert open_document("feed", FEED) == {"password": "x"}


def test_the_row_stays_locked_until_the_transaction_ends():
    put("feed", FEED, {"password": "x"})
    with transaction.atomic():
        put("feed", FEED, {"password": "y"})
        assert in_other_session("SELECT 1 FROM sealed_secrets FOR UPDATE SKIP LOCKED") == []
    assert in_other_session("SELECT 1 FROM sealed_secrets FOR UPDATE SKIP LOCKED") == [(1,)]


def in_other_session(query):
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()
    finally:
        other.close()


def test_forgotten_credentials_are_gone():
    put("feed", FEED, {"password": "x"})
    assert forget("feed", FEED) is True
    assert forget("feed", FEED) is False
    assert SealedSecret.objects.count() == 0


def test_an_owner_without_credentials_is_said_so():
    with pytest.raises(NotFound, match=f"no credentials for feed {FEED}"):
        open_document("feed", FEED)


@pytest.mark.parametrize(
    "document",
    [{}, {"password": None}, {"password": 5}, {5: CANARY}, {"password": {"a": CANARY}}, {"password": CANARY * 5000}],
)
def test_what_is_no_document_is_refused_without_being_shown(document):
    with pytest.raises(InvalidInput) as caught:
        put("feed", FEED, document)
    assert CANARY not in str(caught.value)
    assert SealedSecret.objects.count() == 0


def test_a_payload_moved_to_another_owner_does_not_open():
    put("feed", FEED, {"password": CANARY})
    put("feed", OTHER_FEED, {"password": "other"})
    stolen = row_of(FEED)
    SealedSecret.objects.filter(owner_id=OTHER_FEED).update(payload=stolen.payload, key_id=stolen.key_id)
    with pytest.raises(WrongKeyOrContext, match=str(OTHER_FEED)) as caught:
        open_document("feed", OTHER_FEED)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_an_older_payload_put_back_does_not_open():
    put("feed", FEED, {"password": "first"})
    older = bytes(row_of(FEED).payload)
    put("feed", FEED, {"password": "second"})
    SealedSecret.objects.update(payload=older)
    with pytest.raises(WrongKeyOrContext):
        open_document("feed", FEED)


@pytest.mark.parametrize("plaintext", [b"hunter2 " * 3, b'["hunter2"]', b'{"a": 1}', b"\xff hunter2", b"null"])
def test_something_else_under_the_seal_is_refused_without_being_shown(plaintext):
    put("feed", FEED, {"password": "x"}, ring=OLD)
    sealed = OLD.seal(plaintext, aad_for("feed", FEED, 1))
    SealedSecret.objects.update(payload=sealed.payload)
    with pytest.raises(NotADocument) as caught:
        open_document("feed", FEED, ring=OLD)
    assert caught.value.__context__ is None
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_secrets_of_one_owner_that_were_swapped_do_not_open():
    put("feed", FEED, {"password": "p", "passphrase": CANARY})
    stolen = SealedSecret.objects.get(name="passphrase")
    SealedSecret.objects.filter(name="password").update(payload=stolen.payload)
    with pytest.raises(NotADocument, match=f"feed {FEED} password: the sealed value is not this secret") as caught:
        open_document("feed", FEED)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def forbid_opening(monkeypatch):
    def refuse(*_):
        raise AssertionError("a sealed secret was opened")

    monkeypatch.setattr(KeyRing, "open", refuse)


def test_a_change_of_one_secret_opens_no_other(monkeypatch):
    with monkeypatch.context() as patched:
        forbid_opening(patched)
        assert put("feed", FEED, {"password": "p", "private_key": "k", "passphrase": "s"}) == 1
        before = bytes(SealedSecret.objects.get(name="private_key").payload)
        assert merge("feed", FEED, {"password": "q"}, keep=["private_key"]) == 2
        assert merge("feed", OTHER_FEED, {"password": "first"}, keep=["private_key"]) == 1
    assert bytes(SealedSecret.objects.get(name="private_key").payload) == before
    assert open_document("feed", FEED) == {"password": "q", "private_key": "k"}


def put_old_document(document, ring=OLD, version=3):
    """As earlier versions sealed the credentials of an owner: all of them together."""
    sealed = ring.seal(json.dumps(document).encode(), aad_for("feed", FEED, version))
    SealedSecret.objects.create(
        owner_kind="feed", owner_id=FEED, version=version, key_id=sealed.key_id, payload=sealed.payload
    )


def names_of_rows():
    return [name for (name,) in rows("SELECT name FROM sealed_secrets ORDER BY name")]


def test_a_document_of_an_earlier_version_is_split_when_it_is_opened():
    put_old_document({"password": "p", "private_key": "k"})
    assert open_document("feed", FEED, ring=OLD) == {"password": "p", "private_key": "k"}
    assert names_of_rows() == ["password", "private_key"]
    assert open_document("feed", FEED, ring=OLD) == {"password": "p", "private_key": "k"}
    assert merge("feed", FEED, {"password": "q"}, keep=["private_key"], ring=OLD) == 4


def test_credentials_that_are_forgotten_while_they_are_split_are_gone():
    put_old_document({"password": "p", "private_key": "k"})
    answers = []

    def forget_them():
        try:
            answers.append(forget("feed", FEED))
        finally:
            connections.close_all()

    forgetting = threading.Thread(target=forget_them)
    with transaction.atomic():
        open_document("feed", FEED, ring=OLD)
        forgetting.start()
        wait_for(lambda: rows("SELECT FROM pg_locks WHERE NOT granted"), "the other one to wait")
    forgetting.join()
    assert (answers, names_of_rows()) == ([True], [])


def test_a_document_of_an_earlier_version_is_changed_without_being_opened(monkeypatch):
    put_old_document({"password": "p", "private_key": "k", "passphrase": "s"})
    with monkeypatch.context() as patched:
        forbid_opening(patched)
        assert merge("feed", FEED, {"password": "q"}, keep=["private_key", "passphrase"], ring=OLD) == 4
        assert merge("feed", FEED, {"private_key": "l"}, keep=["password"], ring=OLD) == 5
        assert names_of_rows() == ["password", "private_key"]
    assert open_document("feed", FEED, ring=OLD) == {"password": "q", "private_key": "l"}


def test_what_was_dropped_from_a_document_of_an_earlier_version_never_comes_back(monkeypatch):
    put_old_document({"password": "p", "private_key": "k", "passphrase": "s"})
    merge("feed", FEED, {"private_key": "l"}, keep=["password"], ring=OLD)
    merge("feed", FEED, {"private_key": "m"}, keep=["password", "passphrase"], ring=OLD)
    assert names_of_rows() == ["", "private_key"]
    assert open_document("feed", FEED, ring=OLD) == {"password": "p", "private_key": "m"}
    assert names_of_rows() == ["password", "private_key"]


def test_a_rotation_splits_documents_of_an_earlier_version_even_under_the_writing_key():
    put_old_document({"password": "p", "private_key": "k"}, ring=NEW)
    put("feed", OTHER_FEED, {"password": "x"}, ring=OLD)
    end = last(rotate(NEW))
    assert (end.rewritten, end.left) == (2, 0)
    assert names_of_rows() == ["password", "password", "private_key"]
    assert open_document("feed", FEED, ring=NEW) == {"password": "p", "private_key": "k"}


def test_what_was_opened_or_put_is_removed_from_all_text():
    put("feed", FEED, {"password": CANARY})
    assert redact_text(f"530 {CANARY} is wrong") == "530 [redacted] is wrong"
    forget_all()
    open_document("feed", FEED)
    assert redact_text(f"530 {CANARY} is wrong") == "530 [redacted] is wrong"


def test_the_installed_ring_is_the_key_file_of_the_embedded_database(settings):
    text = (settings.CONFIG.home / "credential.key").read_text().strip()
    assert installed_ring().derived_keys("x") == KeyRing.parse(text).derived_keys("x")


def test_a_rotation_seals_everything_with_the_writing_key():
    put_many(5)
    put("feed", UUID(int=1), {"password": f"of {UUID(int=1)}"}, ring=OLD)
    changed = dict(SealedSecret.objects.values_list("owner_id", "updated_at"))
    steps = list(rotate(NEW, batch=2))
    assert [(step.rewritten, step.left) for step in steps] == [(2, 3), (4, 1), (5, 0), (5, 0)]
    assert keys_in_use() == ["new"] * 5
    only_new = KeyRing.parse(f"new:{NEW_KEY}")
    for number in range(1, 6):
        owner = UUID(int=number)
        assert open_document("feed", owner, ring=only_new) == {"password": f"of {owner}"}
    assert row_of(UUID(int=1)).version == 2
    assert dict(SealedSecret.objects.values_list("owner_id", "updated_at")) == changed


def test_a_rotation_with_nothing_to_do_says_so():
    assert list(rotate(NEW)) == [Rotation(rewritten=0, unreadable={}, left=0)]
    put_many(2, ring=NEW)
    assert list(rotate(NEW)) == [Rotation(rewritten=0, unreadable={}, left=0)]


def test_secrets_that_do_not_open_are_named_and_do_not_stop_the_others():
    put_many(5)
    put("feed", UUID(int=2), {"password": "x"}, ring=KeyRing.parse(f"lost:{LOST_KEY}"))
    SealedSecret.objects.filter(owner_id=UUID(int=4)).update(payload=b"\x01short")
    before = {owner: bytes(row_of(owner).payload) for owner in (UUID(int=2), UUID(int=4))}
    end = last(rotate(NEW, batch=1))
    assert end.rewritten == 3
    assert end.unreadable == {
        f"feed {UUID(int=2)} password": "VAULT_UNKNOWN_KEY",
        f"feed {UUID(int=4)} password": "VAULT_PAYLOAD_TOO_SHORT",
    }
    assert (end.left, end.busy) == (2, 0)
    assert {owner: bytes(row_of(owner).payload) for owner in before} == before
    assert keys_in_use() == ["lost", "new", "new", "new", "old"]
    with pytest.raises(UnknownKey, match=f"feed {UUID(int=2)}.*'lost'"):
        open_document("feed", UUID(int=2), ring=NEW)


def test_a_secret_in_use_is_passed_by_and_reported():
    put_many(3)
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT 1 FROM sealed_secrets WHERE owner_id = %s FOR UPDATE", [UUID(int=2)])
            end = last(rotate(NEW, batch=1))
            assert (end.rewritten, end.left, end.busy) == (2, 1, 1)
        other.rollback()
    finally:
        other.close()
    assert last(rotate(NEW)).left == 0


def test_a_change_during_a_rotation_is_kept():
    put_many(4)
    steps = rotate(NEW, batch=2)
    next(steps)
    put("feed", UUID(int=1), {"password": "newer"}, ring=OLD)
    put("feed", UUID(int=4), {"password": "newer"}, ring=OLD)
    last(steps)
    assert keys_in_use() == ["new"] * 4
    assert open_document("feed", UUID(int=1), ring=NEW) == {"password": "newer"}
    assert open_document("feed", UUID(int=4), ring=NEW) == {"password": "newer"}


def test_a_rotation_refuses_to_run_inside_a_transaction():
    put_many(1)
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        next(rotate(NEW))


def test_two_rotations_at_once_do_the_work_once():
    put_many(20)
    ends, together = [], threading.Barrier(2)

    def run():
        try:
            together.wait()
            ends.append(last(rotate(NEW, batch=3)))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(end.rewritten for end in ends) == 20
    assert keys_in_use() == ["new"] * 20


def test_all_secrets_are_readable_whenever_a_rotation_is_killed():
    put_many(5)
    command = [sys.executable, "-m", "tests.support.killed_rotation"]
    rings = f"old:{OLD_KEY}\nnew:{NEW_KEY},old:{OLD_KEY}\n"
    ended = subprocess.run(command, input=rings, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    runs = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [run["killed"] for run in runs] == [True] * (len(runs) - 1) + [False]
    assert {run["readable"] for run in runs} == {5}
    assert {(run["finished"], run["left"]) for run in runs} == {(5, 0)}
    # The points lie where they should: nothing, something and everything was rewritten when the kill came.
    assert {run["keys"].get("new", 0) for run in runs} == {0, 2, 4, 5}
    assert {run["rewritten"] for run in runs} == {5, 3, 1, 0}
