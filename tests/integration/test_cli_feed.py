"""`harvester feed ...`: everything that people do with feeds, from making one to deciding about a held run."""

import json
import os
import pty
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import asyncssh
import pytest
from tests.support.command import COMMAND, environment, harvester
from tests.support.commands_inside import harvester as harvester_inside
from tests.support.feed_rows import make_feed, make_source
from tests.support.feed_world import LOOPBACK, World, allow_loopback
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.ftp_server import FtpServer
from tests.support.portal_feeds import run as made_run
from tests.support.sftp_server import PASSWORD, USERNAME, SftpServer
from tests.support.tables import rows
from tests.support.workers import worker_thread

from harvester.catalog.models import Source
from harvester.cli.actor import operator
from harvester.cli.feed import change, read_pairs
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import OWNER_KIND
from harvester.feeds.settings import SETTINGS, THRESHOLDS
from harvester.guards import secrets
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")

NAME = "Acme via Impact"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIgqRN8PM3+VDuTw0RnFVPWnYw4mPZCdxjjWqwKcTyzU"


@pytest.fixture
def server(tmp_path, settings):
    allow_loopback(settings)
    with SftpServer(tmp_path) as running:
        yield running


@pytest.fixture
def world(server):
    made = World(server)
    Feed.objects.update(secret_fields=["password"])
    return made


def feed(*words, code=0, **options):
    """`harvester feed ...` with these words, which has to end with this code."""
    ran = harvester_inside("feed", *words, **options)
    assert ran.code == code, ran.err or ran.out
    return ran


def command(*words, code=0, **options):
    """The same as a process of its own."""
    ran = harvester("feed", *words, **options)
    assert ran.code == code, ran.err or ran.out
    return ran


def audited():
    return [row[0] for row in rows("SELECT verb FROM audit_events WHERE actor_id LIKE 'cli:%%' ORDER BY id")]


def test_a_feed_is_set_up_tested_and_run_by_commands_alone(server, tmp_path):
    """The whole way, as somebody goes it who has only a terminal."""
    make_source(NAME)
    (tmp_path / "catalog.csv").write_text(
        "SKU,Name,Url,Price,Currency,Availability\n7,Anvil,https://shop.example/7,19.99,USD,in stock\n"
    )
    made = command(
        "add", NAME, "network=impact", " host = 127.0.0.1", f"port={server.port}", "path=/catalog.csv",
        f"username={USERNAME}", "schedule_hours=6", "thresholds.expiry_share=0.4", "--json",
    ).json  # fmt: skip
    assert (made["status"], made["host"], made["thresholds"]) == ("DRAFT", "127.0.0.1", {"expiry_share": 0.4})
    command("credentials", NAME, "--password-stdin", stdin=f"{PASSWORD}\n")
    with worker_thread():
        shown = command("test", NAME, "--json", code=1).json
        feed("host-key", NAME, shown["seen_host_key"]["fingerprint"])
        tried = feed("test", NAME)
        assert "Anvil" in tried.out
        assert "The feed can be read." in tried.out
        assert "it runs every 6 h" in feed("enable", NAME).out
        ran = command("run", NAME, "--wait")
    assert "PROMOTED" in ran.out
    assert "prices written" in ran.out
    assert audited() == [
        "FEED_CREATED", "CREDENTIAL_CHANGED", "FEED_TEST_REQUESTED", "HOST_KEY_APPROVED", "FEED_TEST_REQUESTED",
        "FEED_STATUS_CHANGED", "MANUAL_RUN_REQUESTED",
    ]  # fmt: skip
    assert "PROMOTED" in feed("runs", NAME).out


def test_lists_show_state_schedule_and_last_run(world):
    world.put(100, 200)
    world.run()
    [listed] = feed("list", "--json").json["feeds"]
    assert (listed["name"], listed["status"], listed["last_run"]["outcome"]) == (
        "Shop by Impact",
        "ENABLED",
        "PROMOTED",
    )
    assert "Shop by Impact" in feed("list").out
    shown, data = feed("show", "Shop by Impact"), feed("show", "Shop by Impact", "--json")
    assert world.server.host_key.fingerprint in shown.out
    assert "PROMOTED" in shown.out
    [run] = data.json["runs"]
    assert (run["rows_read"], run["products_new"], run["prices_written"], run["error_code"]) == (2, 2, 2, None)
    assert PASSWORD not in shown.out + data.out


def test_promoted_offers_that_are_not_visible_are_reported_with_the_reason(world):
    world.put(100, 200)
    Source.objects.update(is_display_primary=False)
    with worker_thread():
        ran = feed("run", "Shop by Impact", "--wait")
    why = "Not visible because Shop by Impact is not the display primary of Shop. Make it primary."
    for shown in (ran, feed("show", "Shop by Impact"), feed("list")):
        assert why in " ".join(shown.out.split())
    assert feed("list", "--json").json["feeds"][0]["not_visible_because"] == why
    Source.objects.update(is_display_primary=True)
    shown = feed("show", "Shop by Impact", "--json").json
    assert (shown["visible_offers"], shown["not_visible_because"]) == (2, None)
    assert shown["offers_expire_at"] > shown["last_run_at"]


def test_a_feed_is_switched_by_commands():
    made = make_feed(
        make_source(NAME), host_keys="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIgqRN8PM3+VDuTw0RnFVPWnYw4mPZCdxjjWqwKcTyzU"
    )
    states = []
    for words in (["enable"], ["pause"], ["resume"]):
        feed(words[0], NAME)
        states.append(Feed.objects.get().status)
    assert states == ["ENABLED", "PAUSED", "ENABLED"]
    Feed.objects.filter(pk=made.pk).update(status="DISABLED", consecutive_failures=3)
    refused = feed("re-enable", NAME, code=2)
    assert "--acknowledge" in refused.err
    feed("re-enable", NAME, "--acknowledge")
    assert Feed.objects.get().consecutive_failures == 0


def test_settings_are_changed_by_name_and_value_and_a_draft_is_deleted():
    make_feed(make_source(NAME), port=2222)
    feed("set", NAME, "port=", "expiry_hours=72", "thresholds.reject_least=5", "use_manifest=no")
    changed = Feed.objects.select_related("source").get()
    assert (changed.port, changed.source.expiry_hours, changed.use_manifest) == (None, 72, False)
    assert changed.thresholds == {"reject_least": 5}
    feed("delete", NAME)
    assert Feed.objects.count() == 0


def test_the_help_names_every_setting():
    for name in (*SETTINGS, *THRESHOLDS):
        assert name in change.__doc__


def test_pairs_are_read_at_their_first_equals_sign():
    assert read_pairs(["path=/a=b.csv", "thresholds.x=1", "thresholds.y="]) == {
        "path": "/a=b.csv",
        "thresholds": {"x": "1", "y": ""},
    }


REFUSALS = [
    (["show", "Acme via Impakt"], 3, "NOT_FOUND", f"did you mean '{NAME}'?"),
    (["add", "Nobody", "network=impact"], 3, "NOT_FOUND", "There is no source 'Nobody'"),
    (
        ["set", NAME, "port=0", "hots=x"],
        2,
        "INVALID_SETTINGS",
        "port is '0'; it must be a whole number from 1 to 65535.",
    ),
    (["set", NAME, "port"], 2, "INVALID_INPUT", "write settings as NAME=VALUE"),
    (["run", NAME], 4, "FEED_WRONG_STATUS", "is DRAFT; only ENABLED feeds can be run. Enable it."),
    (["credentials", NAME], 2, "INVALID_INPUT", "--password-stdin"),
    (["approve", "99", "--yes"], 3, "RUN_NOT_FOUND", "There is no run 99;"),
]


def test_refusals_are_one_line_with_a_code():
    make_feed(make_source(NAME))
    for words, code, name, message in REFUSALS:
        error = feed(*words, "--json", code=code).error
        assert error["code"] == name
        assert message in error["message"]


def test_with_json_a_refused_decision_is_one_error_and_no_log_line_unless_asked_for():
    promoted = made_run(make_feed(make_source(NAME)))
    words = ["approve", promoted.no, "--yes", "--json"]
    assert command(*words, code=4).error["code"] == "NOT_BLOCKED"
    log, error = command(*words, code=4, HARVESTER_LOG_LEVEL="warning").err.splitlines()
    assert json.loads(log)["event"] == "ACTIVATION_APPROVAL_REJECTED"
    assert json.loads(error)["error"]["code"] == "NOT_BLOCKED"


# Plain FTP.


FTP = ["transport=ftp", "network=impact", "host=127.0.0.1", "path=/Shop/catalog.txt", f"username={USERNAME}"]


def silent_about_host_keys(ran):
    """What a command said, in which nothing is about keys that FTP servers do not have."""
    result = ran.out + ran.err
    assert result
    assert not re.search("host.?key|fingerprint", result, re.IGNORECASE), result
    return result


def test_plain_ftp_is_refused_at_first_and_the_refusal_names_the_option(settings):
    allow_loopback(settings)
    make_source(NAME)
    refused = feed("add", NAME, *FTP, "--accept-insecure", "--json", code=2).error
    assert "AFFILIATE_FEED_ALLOW_PLAIN_FTP=true" in refused["message"]
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)
    refused = feed("add", NAME, *FTP, "--json", code=2).error
    assert refused["code"] == "INVALID_SETTINGS"
    assert "sends the password and the file unencrypted" in refused["message"]
    assert "--accept-insecure" in refused["message"]
    assert Feed.objects.count() == 0
    feed("add", NAME, *FTP, "--accept-insecure")
    assert Feed.objects.get().transport == "FTP"


def test_commands_about_a_feed_by_ftp_never_talk_about_host_keys(settings, tmp_path):
    settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK, allow_plain_ftp=True)
    make_source(NAME)
    (tmp_path / "Shop").mkdir()
    (tmp_path / "Shop" / "catalog.txt").write_text(written(row(100)))

    def quiet(*words, **options):
        return silent_about_host_keys(feed(*words, **options))

    with FtpServer(tmp_path) as partner, worker_thread():
        added = quiet("add", NAME, *FTP, f"port={partner.port}", "--accept-insecure")
        assert "Next: harvester feed credentials, feed test, feed enable, source primary." in " ".join(added.split())
        assert "credentials are missing" in quiet("enable", NAME, code=2)
        assert "missing: credentials" in quiet("show", NAME)
        quiet("credentials", NAME, "--password-stdin", stdin="wrong\n")
        assert "AUTH_FAILED" in quiet("test", NAME, code=1)
        quiet("credentials", NAME, "--password-stdin", stdin=f"{PASSWORD}\n")
        assert "The feed can be read." in quiet("test", NAME)
        quiet("enable", NAME)
        assert "PROMOTED" in quiet("run", NAME, "--wait")
        quiet("show", NAME), quiet("list"), quiet("runs", NAME)


def test_errors_of_a_feed_by_ftp_never_talk_about_host_keys(server, settings, tmp_path):
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)
    make_feed(make_source(NAME), transport="FTP")
    with FtpServer(tmp_path) as partner, worker_thread():
        for port, code in [
            (1, "CONNECTION_REFUSED"),
            (server.port, "PROTOCOL_MISMATCH"),
            (partner.port, "REMOTE_FILE_NOT_FOUND"),
        ]:
            Feed.objects.update(port=port)
            assert code in silent_about_host_keys(feed("test", NAME, code=1))
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=False)
    assert "AFFILIATE_FEED_ALLOW_PLAIN_FTP" in silent_about_host_keys(feed("test", NAME, code=2))


def test_host_key_says_that_an_ftp_server_has_none():
    make_feed(make_source(NAME), transport="FTP")
    assert "FTP, whose servers have no host keys" in feed("host-key", NAME).out
    refused = feed("host-key", NAME, KEY, "--json", code=4).error
    assert "Nothing was approved" in refused["message"]
    assert Feed.objects.get().host_keys == ""


def test_a_password_is_asked_for_and_not_shown():
    made = make_feed(make_source(NAME))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], [*COMMAND, "feed", "credentials", NAME], environment())
    seen = b""
    while b"keeps it" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"another-canary-31\n")
    while True:
        try:
            seen += os.read(terminal, 1000)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen
    os.close(terminal)
    assert b"another-canary" not in seen
    assert secrets.open_document(OWNER_KIND, made.id) == {"password": "another-canary-31"}


def test_a_private_key_is_taken_from_a_file(tmp_path):
    made = make_feed(make_source(NAME))
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    (tmp_path / "acme.key").write_text(key)
    shown = feed("credentials", NAME, "--private-key-file", tmp_path / "acme.key", "--replace")
    assert "with private key" in shown.out
    assert secrets.open_document(OWNER_KIND, made.id) == {"private_key": key.strip()}


def test_a_private_key_that_cannot_be_used_is_refused_in_readable_words(tmp_path):
    make_feed(make_source(NAME))
    (tmp_path / "acme.key").write_text("no key")
    refused = feed("credentials", NAME, "--private-key-file", tmp_path / "acme.key", code=2)
    assert "error: The private key cannot be used: it is not a private key in OpenSSH or PEM form." in refused.err


def test_commands_that_are_proposed_can_be_copied(world):
    """They name the feed, in quotes where the shell needs them."""
    world.server.restart_with_another_key()
    fingerprint = world.server.host_key.fingerprint
    with worker_thread():
        tried = feed("test", "Shop by Impact", code=1)
    command_line = f"harvester feed host-key 'Shop by Impact' {fingerprint}"
    assert f"If the partner confirms this key: {command_line}" in tried.out
    assert command_line in feed("host-key", "Shop by Impact").out
    assert fingerprint in feed("host-key", *shlex.split(command_line)[3:]).out


def test_a_run_that_read_nothing_is_shown_without_a_table_of_zeros(world):
    world.server.restart_with_another_key()
    failed = world.run()
    shown = feed("inspect", failed.no).out
    assert "HOST_KEY_CHANGED" in shown
    assert "figure" not in shown


def test_rows_that_a_run_rejected_are_shown_with_their_lines(world):
    world.put(100, 200, row(300, Price="free"), row(400, Availability="perhaps"))
    run = world.run()
    result = feed("inspect", run.no, "--json").json
    assert (result["rejects"], result["warnings"]) == ({"INVALID_PRICE": 1}, {"UNKNOWN_STOCK": 1})
    [rejected] = result["samples"]["INVALID_PRICE"]
    assert rejected["line"] == 4
    assert "Thing 300" in rejected["row"]
    shown = feed("inspect", run.no).out
    assert "PROMOTED" in shown
    assert "UNKNOWN_STOCK" in shown
    assert "There is no run 99" in feed("inspect", 99, code=3).err


def test_a_request_during_a_run_says_that_another_run_follows(world):
    world.put(100, 200)
    world.running()
    with world.locked(), worker_thread():
        result = feed("run", "Shop by Impact", "--wait").out
    assert "a run was in progress. One that began before this request is followed by another." in " ".join(
        result.split()
    )


def test_a_run_that_fails_says_why_and_ends_with_1(world):
    with worker_thread():
        ran = feed("run", "Shop by Impact", "--wait", code=1)
    assert "REMOTE_FILE_NOT_FOUND" in ran.out


def test_a_run_that_is_held_ends_with_a_code_of_its_own(world):
    world.put(*range(100, 150))
    world.run()
    world.put(*range(100, 120))
    with worker_thread():
        assert feed("run", "Shop by Impact", "--wait", "--json", code=5).json["outcome"] == "HELD"
    said = " ".join(harvester_inside("feed", "run", "--help").out.split())
    assert "5 if it is held and waits for a decision" in said


def test_a_held_run_is_shown_and_decided(world):
    world.put(*range(100, 150))
    world.run()
    world.put(*range(100, 120))
    held = world.run()
    assert feed("inspect", held.no, "--json").json["difference"]["counts"]["missing"] == 30
    assert "Held changes" in feed("inspect", held.no).out
    result = " ".join(feed("inspect", held.no).out.split())
    assert re.search(r"30 missing products disappear by \S+ \S+ UTC unless a later file contains them\.", result)
    assert re.search(r"Without a new file, all offers disappear on \S+ \S+ UTC\.", result)
    assert "--yes" in feed("reject", held.no, "--reason", "half a file", code=2).err
    with mock.patch("harvester.cli.runs.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))):
        assert feed("approve", held.no, stdin="n\n", code=1).err.endswith("Nothing was decided.\n")
    assert Run.objects.get(pk=held.pk).outcome == "HELD"
    with worker_thread():
        result = feed("reject", held.no, "--reason", "half a file", "--yes", "--wait", "--json").json
    assert (result["outcome"], result["decision_reason"]) == ("REJECTED", "half a file")
    world.put(*range(100, 121))
    held = world.run()
    assert held.outcome == "HELD"
    with worker_thread():
        approved = feed("approve", held.no, "--yes", "--wait")
    assert "APPROVED" in approved.out
    assert re.search(r"29 offers disappear by \S+ \S+ UTC unless a later file", " ".join(approved.out.split()))
    assert re.search(r"disappearing +29 offers by", feed("show", "Shop by Impact").out)
    assert Run.objects.get(pk=held.pk).decided_by == operator().name


def test_a_promoted_run_is_ignored_and_that_is_undone(world):
    world.put(100, 200)
    first = world.run()
    assert feed("ignore", first.no, "--reason", "no VAT", "--json").json["products"] == 2
    assert world.shown() == {}
    assert "IGNORED" in feed("runs", "Shop by Impact").out
    feed("undo-ignore", first.no)
    assert len(world.shown()) == 2


def test_runs_of_all_feeds_are_narrowed_by_what_became_of_them(world):
    world.put(100, 200)
    promoted = world.run()
    skipped = world.run()
    expected = {
        (): [skipped.no, promoted.no],
        ("--outcome", "skipped"): [skipped.no],
        ("--status", "FAILED"): [],
        ("Shop by Impact", "--trigger", "SCHEDULED"): [skipped.no, promoted.no],
    }
    result = {words: [run["no"] for run in feed("runs", *words, "--json").json["runs"]] for words in expected}
    assert result == expected
    assert "Shop by Impact" in feed("runs").out
    assert "There are no such runs." in feed("runs", "--status", "FAILED").out


def test_the_file_of_a_run_is_saved_as_it_came_and_overwrites_nothing(world, tmp_path):
    world.put(100, 200)
    run = world.run()
    place = tmp_path / "had.csv"
    assert feed("file", run.no, "--to", str(place), "--json").json == {"run_no": run.no, "path": str(place)}
    assert place.read_bytes() == world.file.read_bytes()
    assert audited()[-1] == "RUN_FILE_DOWNLOADED"
    place.write_text("mine")
    assert "choose another place" in feed("file", run.no, "--to", str(place), code=2).err
    assert place.read_text() == "mine"
    assert "There is no run" in feed("file", 99_999, code=3).err
