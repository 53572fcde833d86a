"""What a run logs: in which order, with which fields, and that the page about it is correct."""

import ast
import re
from pathlib import Path

import pytest
from tests.support.feed_world import OLGA, World, allow_loopback
from tests.support.feeds import row
from tests.support.log_lines import logged
from tests.support.sftp_server import RefusesToRead, SftpServer, drops_connection_at

from harvester.feeds import verbs
from harvester.feeds.models import FeedRunSample
from harvester.runs.errors import NotBlocked
from harvester.runs.models import Run

ROOT = Path(__file__).parents[2]
#: Where events of feeds are logged.
PLACES = ("harvester.feeds", "harvester.runs")
SOURCES = [path for place in PLACES for path in (ROOT / "src" / place.replace(".", "/")).rglob("*.py")]
ROW_OF_PAGE = re.compile(r"^\| `([A-Z_]+)` \| ([a-z ]+) \| ([a-z]*) ?\|", re.MULTILINE)
LOGGED = ("emitted", "once a run")
BASE = {"feed_id", "run_id", "source_id", "network", "stage"}


def page():
    """Event -> what happens here, and its level."""
    return {
        name: (here, level) for name, here, level in ROW_OF_PAGE.findall((ROOT / "docs/feed-events.md").read_text())
    }


def names_in(node):
    """The texts that an expression can be."""
    if isinstance(node, ast.IfExp):
        return names_in(node.body) | names_in(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def events_of(path):
    """The names of events in calls of a logger, and of what logs for others."""
    tree = ast.parse(path.read_text())
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    places = {
        "partial": 1,
        "debug": 0,
        "info": 0,
        "warning": 0,
        "error": 0,
        "log_on_commit": 0,
        "log_retry": 0,
        "say": 0,
        "record": 2,
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if called in places and len(call.args) > places[called]:
            argument = call.args[places[called]]
            named = constants.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
            yield from (name for name in names_in(named) if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", name))


def test_the_code_logs_every_event_that_the_page_says_is_logged():
    source = "\n".join(path.read_text() for path in SOURCES)
    said = [name for name, (here, _) in page().items() if here in LOGGED]
    assert len(said) > 50
    assert [name for name in said if f'"{name}"' not in source] == []


def test_every_event_of_feeds_is_on_the_page():
    event_names = {name for path in SOURCES for name in events_of(path)}
    assert {"RUN_START", "CREDENTIAL_CHANGED", "STAT_UNCHANGED", "DOWNLOAD_RETRY"} <= event_names, "the search works"
    assert event_names - {name for name, (here, _) in page().items() if here in LOGGED} == set()


@pytest.fixture
def lines():
    with logged() as found:
        yield found


@pytest.fixture
def server_of(database, settings, tmp_path):
    """Starts a server of a behaviour and makes the world around it."""
    allow_loopback(settings)
    servers = []

    def start(**options):
        servers.append(SftpServer(tmp_path, **options))
        return World(servers[-1].__enter__())

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def world(server_of):
    return server_of()


def event_names(lines, *left_out):
    """Events of feeds in their order, without repetitions of one behind the other."""
    names = [line["event"] for line in lines() if line["logger"].startswith(PLACES)]
    names = [name for name in names if name not in left_out]
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


def only(lines, event):
    [line] = [line for line in lines() if line["event"] == event]
    return line


def check_fields(lines, run):
    """Every event has its level of the page, and every event of a run says of which run it is."""
    levels = {name: level for name, (_, level) in page().items()}
    for line in lines():
        if line["logger"].startswith(PLACES):
            assert line["level"] == levels[line["event"]], line
            wanted = BASE - ({"run_id"} if line["event"] == "ADVISORY_LOCK_ACQUIRED" else set())
            assert wanted <= line.keys(), line
            assert line.get("run_id", str(run.id)) == str(run.id)


DOWNLOAD = ["DOWNLOAD_START", "FTP_CONNECTED", "FILE_STAT", "DOWNLOAD_PROGRESS", "DOWNLOAD_COMPLETE"]
PARSE = ["PARSE_START", "PARSE_HEADERS", "PARSE_COLUMN_MISSING", "PARSE_PROGRESS"]


def test_a_good_run_logs_its_steps(world, lines):
    rows = [row(number) for number in range(100, 140)]
    world.put(*rows, row(100), row(141, Price="none"), row(142, SKU=""))
    run = world.run()
    assert event_names(lines) == [
        *("ADVISORY_LOCK_ACQUIRED", "RUN_START"),
        *DOWNLOAD,
        *PARSE,
        *("PARSE_ROW_SKIPPED", "DUPLICATE_ROW_SAME_IDENTITY", "PARSE_COMPLETE", "CIRCUIT_BREAKER_START"),
        *("PRICE_SIGNATURE", "URL_HASH_FALLBACK", "CIRCUIT_BREAKER_COUNTS", "CIRCUIT_BREAKER_PASSED"),
        *("UPSERT_BATCH_START", "UPSERT_BATCH_COMPLETE", "PROMOTE_START", "MANUAL_RUN_PENDING_CHECK"),
        *("PROMOTE_COMPLETE", "RUN_COMPLETE", "ADVISORY_LOCK_RELEASED"),
    ]
    check_fields(lines, run)
    assert only(lines, "DOWNLOAD_COMPLETE")["compression_type"] == "NONE"
    assert {"bytes", "duration_ms"} <= only(lines, "DOWNLOAD_COMPLETE").keys()
    assert "connection_time_ms" in only(lines, "FTP_CONNECTED")
    headers = only(lines, "PARSE_HEADERS")
    assert (headers["headers"][0], headers["mapped_columns"]["title"], headers["delimiter"]) == ("SKU", ["Name"], "tab")
    assert only(lines, "PARSE_ROW_SKIPPED")["by_code"] == {"INVALID_PRICE": 1}
    assert only(lines, "URL_HASH_FALLBACK")["created"] == 1
    assert only(lines, "UPSERT_BATCH_COMPLETE")["products_upserted"] == 41
    assert "duration_ms" in only(lines, "PROMOTE_COMPLETE")
    ended = only(lines, "RUN_COMPLETE")
    assert (ended["status"], ended["outcome"], ended["duration_ms"]) == ("SUCCEEDED", "PROMOTED", run.duration_ms)
    assert ended["summary"]["prices_written"] == 41
    assert ended["summary"]["duplicate_key_count"] == 1
    samples = FeedRunSample.objects.filter(run_id=run.id, code="URL_HASH_FALLBACK")
    assert [(item.line, item.row) for item in samples] == [(44, "https://shop.example/p/142")]


def test_a_heartbeat_is_counted(world, lines):
    world.put(100, 101)
    world.run()
    world.pass_time(30)
    world.put(101, 100)
    world.run()
    assert only(lines, "PRICE_HEARTBEAT_DUE")["count"] == 2


def test_a_held_run_says_which_gate_holds_it(world):
    world.put(*range(100, 140))
    world.run()
    with logged() as lines:
        world.put(100)
        run = world.run()
        assert event_names(lines)[-5:] == [
            *("CIRCUIT_BREAKER_COUNTS", "CIRCUIT_BREAKER_TRIPPED", "MANUAL_RUN_PENDING_CHECK", "RUN_COMPLETE"),
            "ADVISORY_LOCK_RELEASED",
        ]
        check_fields(lines, run)
        tripped = only(lines, "CIRCUIT_BREAKER_TRIPPED")
        assert (tripped["reason"], tripped["would_expire_count"], tripped["expire_percent"]) == (
            "EXPIRY_SPIKE",
            39,
            97.5,
        )
        assert (tripped["threshold_percent"], tripped["threshold_absolute"]) == (30.0, 500)
        assert only(lines, "RUN_COMPLETE")["outcome"] == "HELD"


def test_a_decision_is_logged_and_so_is_one_that_a_rule_refuses(world):
    world.put(*range(100, 140))
    world.run()
    world.put(100)
    run = world.run()
    with logged() as lines:
        world.approve(run)
        names = event_names(lines, "ADVISORY_LOCK_ACQUIRED", "ADVISORY_LOCK_RELEASED")
        assert names == ["PROMOTE_START", "PROMOTE_COMPLETE", "ACTIVATION_APPROVED"]
        check_fields(lines, run)
        assert only(lines, "ACTIVATION_APPROVED")["by"] == "olga"
        assert only(lines, "ACTIVATION_APPROVED")["products_promoted"] == 1
    promoted = Run.objects.get(outcome="PROMOTED")
    with logged() as lines, pytest.raises(NotBlocked):
        world.approve(promoted)
    assert only(lines, "ACTIVATION_APPROVAL_REJECTED")["reason"] == "NOT_BLOCKED"


def test_a_skipped_run_says_why(world):
    world.put(100, 101)
    world.run()
    with logged() as lines:
        run = world.run()
        assert event_names(lines) == [
            *("ADVISORY_LOCK_ACQUIRED", "RUN_START", "DOWNLOAD_START", "FTP_CONNECTED", "FILE_STAT", "STAT_UNCHANGED"),
            *("DOWNLOAD_SKIPPED_UNCHANGED", "MANUAL_RUN_PENDING_CHECK", "RUN_COMPLETE", "ADVISORY_LOCK_RELEASED"),
        ]
        check_fields(lines, run)
        assert only(lines, "DOWNLOAD_SKIPPED_UNCHANGED")["reason"] == "UNCHANGED_MTIME"
        assert only(lines, "RUN_COMPLETE")["summary"]["skipped_reason"] == "UNCHANGED_MTIME"


def test_a_run_that_cannot_be_helped_says_where_it_failed(server_of, lines):
    world = server_of(behaviour=RefusesToRead)
    world.put(100)
    run = world.run()
    assert event_names(lines)[-7:] == [
        *(
            "FILE_STAT",
            "MANIFEST_NOT_READABLE",
            "RETRY_SKIPPED",
            "DOWNLOAD_FAILED",
            "MANUAL_RUN_PENDING_CHECK",
            "RUN_FAILED",
        ),
        "ADVISORY_LOCK_RELEASED",
    ]
    check_fields(lines, run)
    assert (only(lines, "RETRY_SKIPPED")["classification"], run.stage) == ("permanent", "download")
    failed = only(lines, "RUN_FAILED")
    assert (failed["code"], failed["stage"], failed["is_partial"]) == ("PERMISSION_DENIED", "download", False)


def test_a_run_that_is_retried_logs_each_attempt(server_of, lines):
    world = server_of(behaviour=drops_connection_at(0))
    world.put(100)
    run = world.run()
    kept = ("RUN_START", "RUN_RESUMED", "DOWNLOAD_RETRY", "DOWNLOAD_FAILED", "RETRY_SKIPPED", "RUN_FAILED")
    assert [name for name in event_names(lines) if name in kept] == [
        *("RUN_START", "DOWNLOAD_RETRY", "RUN_RESUMED", "DOWNLOAD_RETRY", "RUN_RESUMED", "DOWNLOAD_FAILED"),
        "RUN_FAILED",
    ]
    check_fields(lines, run)
    first = next(line for line in lines() if line["event"] == "DOWNLOAD_RETRY")
    assert (first["attempt"], first["max_attempts"], first["retry_in_ms"]) == (1, 3, 5000)


def test_a_header_without_a_needed_column_says_which(world, lines):
    world.put_bytes(b"SKU\tName\n1\tx\n")
    world.run()
    missing = only(lines, "PARSE_COLUMN_MISSING")
    assert (missing["columns"], missing["required"]) == (["url or landing_url", "sale_price or list_price"], True)
    assert only(lines, "RUN_FAILED")["stage"] == "parse"


def test_a_request_during_a_run_is_logged_and_gets_its_own_run(world, lines):
    active = Run.objects.create(
        kind="AFFILIATE_FEED",
        subject_id=world.feed.pk,
        source_id=world.source.pk,
        trigger="SCHEDULED",
        status="RUNNING",
    )
    verbs.run_now(OLGA, world.feed.id)
    assert event_names(lines) == ["MANUAL_RUN_REQUESTED", "MANUAL_RUN_PENDING_SET", "FEED_ENQUEUED"]
    assert only(lines, "MANUAL_RUN_PENDING_SET")["active_run_id"] == str(active.id)
    assert only(lines, "FEED_ENQUEUED")["trigger"] == "MANUAL"


def test_the_step_that_ends_a_run_is_timed_too(world):
    world.put(*range(100, 140))
    first = world.run()
    assert world.figures(first).run.timings.keys() == {"download", "parse", "circuit_breaker", "upsert", "promote"}
    world.put(100)
    held = world.run()
    before = world.figures(held).run.timings
    assert "promote" in before
    world.approve(held)
    assert world.figures(held).run.timings.keys() == before.keys(), "a decision does not forget what the run took"
