"""Secrets planted around a feed are looked for wherever they could have got to."""

import ast
from contextlib import suppress
from pathlib import Path

import asyncssh
import pytest
from tests.support.commands_inside import harvester
from tests.support.feed_rows import ADMIN, make_source
from tests.support.feed_world import OLGA, World, allow_loopback
from tests.support.feeds import HEADER, feed, row
from tests.support.log_lines import logged
from tests.support.sftp_server import HOST, PASSWORD, USERNAME, SftpServer, WellBehaved
from tests.support.stored import everything_stored
from tests.support.workers import run_until_idle

from harvester.engine.models import Job
from harvester.feeds import decisions, verbs
from harvester.feeds.models import FeedRunSample
from harvester.guards import secrets, vault
from harvester.guards.redaction import redact_text
from harvester.kernel.errors import HarvesterError
from harvester.ops.models import Alert
from harvester.runs import decisions as run_decisions
from harvester.runs.models import Run

SOURCE = Path(__file__).parents[2] / "src" / "harvester"
PASSPHRASE = "zq4417-canary-opens-sesame-7731"
IN_URL = "canary0in0a0url0" * 3
_KEY = asyncssh.generate_private_key("ssh-ed25519")
LOCKED = _KEY.export_private_key(passphrase=PASSPHRASE, rounds=1, ignore_few_rounds=True).decode()
#: A line of a private key that nobody else has.
KEY_LINE = LOCKED.splitlines()[3]


def says(*secrets_said):
    class SaysSecrets(WellBehaved):
        """Repeats secrets in the errors it answers with."""

        def read(self, file_obj, offset, size):
            raise asyncssh.SFTPFailure(f"login of {USERNAME} with {' and '.join(secrets_said)} is strange")

    return SaysSecrets


@pytest.fixture
def start(database, settings, tmp_path):
    allow_loopback(settings)
    servers = []

    def start(**options):
        servers.append(SftpServer(tmp_path, **options))
        world = World(servers[-1].__enter__())
        verbs.change_credentials(ADMIN, world.feed.id, password=PASSWORD)
        return world

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def search(lines, *canaries):
    """Nothing that was written down has one of them, not even a part."""
    written = everything_stored() + "\n".join(map(str, lines()))
    for canary in canaries:
        for start in range(0, len(canary) - 8, 4):
            assert canary[start : start + 8] not in written, f"{canary[start : start + 8]!r} of {canary!r}"


def test_a_password_that_the_server_repeats_is_nowhere(start):
    world = start(behaviour=says(PASSWORD))
    world.put(100)
    with logged() as lines:
        verbs.test_run(OLGA, world.feed.id)
        made = verbs.run_now(OLGA, world.feed.id)
        world.work(made.job_id)
        run = Run.objects.get(job_id=made.job_id)
        assert "is strange" in run.error, "the server was heard"
        assert Alert.objects.filter(kind="RUN_FAILED").exists()
        assert any(job.traceback or job.error for job in Job.objects.all())
        search(lines, PASSWORD)


def test_a_private_key_and_its_passphrase_are_nowhere(start):
    world = start(client_keys=[_KEY.export_public_key().decode()], behaviour=says(PASSPHRASE, LOCKED))
    with logged() as lines:
        verbs.change_credentials(ADMIN, world.feed.id, private_key=LOCKED, passphrase=PASSPHRASE, replace=True)
        world.put(100)
        run = world.run()
        assert "is strange" in run.error
        assert [attempt.method for attempt in world.server.attempts].count("password") == 0, "the key was used"
        search(lines, PASSPHRASE, KEY_LINE)


def test_a_wrong_passphrase_is_nowhere(start):
    world = start()
    with logged() as lines:
        secrets.put("feed", world.feed.id, {"private_key": LOCKED, "passphrase": f"wrong {PASSPHRASE}"})
        world.put(100)
        assert world.run().error_code == "INVALID_PRIVATE_KEY"
        search(lines, PASSPHRASE, KEY_LINE)


#: What a partner may write by mistake; the second is where samples are cut, and none of it may be left in front.
ROWS = {
    "a user in an address": row(101, Url=f"https://shop:{IN_URL}@shop.example/p/101"),
    "cut in the middle": row(102, Name="x" * 255, Url=f"https://shop:{IN_URL}@shop.example/p/102"),
    "a user in the address of a picture": [*row(103), f"https://shop:{IN_URL}@pictures.example/1.png"],
    "an address that is not valid": row(104, Url=f"sftp://shop:{IN_URL}@shop.example/p/104"),
}


def test_a_password_in_a_row_of_the_catalog_is_nowhere(start):
    world = start()
    header = [*HEADER, "Image URL"]
    good = [[*row(number), ""] for number in range(200, 220)]
    bad = [cells if len(cells) == len(header) else [*cells, ""] for cells in ROWS.values()]
    world.put_bytes(feed(*good, *bad, header=header).encode())
    with logged() as lines:
        verbs.test_run(OLGA, world.feed.id)
        run = world.run()
        assert run.outcome == "PROMOTED"
        assert world.figures(run).rejects == {"INVALID_URL": 3}
        assert FeedRunSample.objects.filter(run_id=run.id).count() == 4
        search(lines, IN_URL)


@pytest.mark.parametrize("in_front", [0, 60, 90])
def test_a_password_in_a_file_that_is_no_catalog_is_nowhere(start, in_front):
    world = start()
    world.put_bytes(b"x" * in_front + f" https://shop:{IN_URL}@shop.example/p\n".encode())
    with logged() as lines:
        run = world.run()
        assert run.error_code == "HEADER_UNREADABLE"
        search(lines, IN_URL)


def test_no_command_shows_a_secret(start):
    world = start(client_keys=[_KEY.export_public_key().decode()], behaviour=says(PASSWORD, PASSPHRASE, LOCKED))
    verbs.change_credentials(ADMIN, world.feed.id, private_key=LOCKED, passphrase=PASSPHRASE)
    world.put_bytes(f"https://shop:{IN_URL}@shop.example/p\n".encode())
    verbs.test_run(OLGA, world.feed.id)
    world.run()
    name = str(world.feed)
    words = [("show", name), ("list",), ("runs", name)]
    commands = [(*word, *more) for word in words for more in ((), ("--json",))]
    ran = [harvester("feed", *command) for command in commands]
    shown = "\n".join(item.out + item.err for item in ran)
    assert [item.code for item in ran] == [0] * len(commands)
    assert name in shown, "the feed was shown"
    assert "REMOTE_BUSY" in shown, "and its failed run"
    assert "private_key" in shown, "names of credentials are not secret"
    for canary in (PASSWORD, PASSPHRASE, KEY_LINE, IN_URL):
        assert canary[:8] not in shown


ALLOWED_TO_OPEN = {"feeds/partner_connection.py", "feeds/fetch.py", "feeds/feed_test.py"}


def names_of(path):
    tree = ast.parse(path.read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return used | {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_only_workers_open_credentials():
    using = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if names_of(path) & {"open_document", "open_remote"}
    }
    assert using == ALLOWED_TO_OPEN


def forbid_opening(monkeypatch):
    """Nothing sealed can be opened from here on."""

    def refuse(*_):
        raise AssertionError("a sealed secret was opened")

    monkeypatch.setattr(vault.KeyRing, "open", refuse)


def test_no_verb_opens_credentials_and_jobs_carry_ids_only(start, monkeypatch):
    """Each secret is sealed for itself, so that a change of one leaves the others unopened."""
    world = start()
    feed_id = world.feed.id
    forbid_opening(monkeypatch)
    verbs.change_credentials(ADMIN, feed_id, private_key=LOCKED, passphrase=PASSPHRASE)
    verbs.change_credentials(ADMIN, feed_id, password="another-canary-7716")
    verbs.change_credentials(ADMIN, feed_id, password="another-canary-7717", replace=True)
    verbs.approve_host_key(ADMIN, feed_id, world.feed.host_keys, keep_others=True)
    verbs.update(ADMIN, feed_id, {"path": "/Shop/other.txt", "default_currency": "USD"})
    verbs.set_expiry_hours(ADMIN, feed_id, 72)
    verbs.pause(ADMIN, feed_id)
    verbs.resume(ADMIN, feed_id)
    world.change(status="DISABLED")
    verbs.re_enable(ADMIN, feed_id, acknowledged=True)
    verbs.run_now(ADMIN, feed_id, force=True)
    verbs.test_run(ADMIN, feed_id)
    world.change(status="DRAFT")
    verbs.enable(ADMIN, feed_id)
    made = verbs.create(ADMIN, make_source("Another").id, {"network": "impact", "host": HOST})
    verbs.delete_draft(ADMIN, made.id)
    assert [job.args for job in Job.objects.order_by("id")] == [
        {"feed_id": str(feed_id), "trigger": "MANUAL"},
        {"feed_id": str(feed_id)},
    ]
    # Verbs that came later are called the way most of them are.
    world.change(status="PAUSED")
    for name in verbs.__all__:
        with suppress(TypeError, HarvesterError):
            getattr(verbs, name)(ADMIN, feed_id)


def test_no_decision_opens_credentials(start, monkeypatch):
    world = start()
    held = world.hold()
    promoted = Run.objects.get(outcome="PROMOTED")
    with monkeypatch.context() as patched:
        forbid_opening(patched)
        run_decisions.request_rejection(ADMIN, held.id, "not whole")
        run_until_idle()
        decisions.ignore(ADMIN, promoted.id, "wrong prices")
        decisions.undo_ignore(ADMIN, promoted.id)
    world.put(100, 101)
    second = world.run()
    forbid_opening(monkeypatch)
    run_decisions.request_approval(ADMIN, second.id)
    run_until_idle()
    assert set(Run.objects.values_list("outcome", flat=True)) == {"PROMOTED", "REJECTED", "APPROVED"}


def test_decisions_carry_ids_and_figures_only(start):
    world = start()
    world.put(*range(100, 140))
    world.run()
    world.put(100)
    job = world.reject(world.run(), reason=f"the key is https://me:{IN_URL}@shop.example")
    assert job.args.keys() == {"run_id", "actor", "expected", "reason"}
    assert IN_URL not in everything_stored()


def test_the_search_finds_what_is_there(start):
    world = start()
    with logged() as lines:
        world.put(row(100, Name="a name like any other"))
        world.run()
        with pytest.raises(AssertionError, match="a name like any other"):
            search(lines, "a name like any other")
    assert redact_text(f"use {PASSWORD}") == "use [redacted]"
    run_until_idle()
