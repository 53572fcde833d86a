"""`harvester doctor`: all checks run, whatever fails, and each finding says what to do."""

import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from django.db import connections
from tests.support.command import empty_home, free_port, harvester, taken_port
from tests.support.waiting import wait_for

from harvester.cli.checks import machine
from harvester.cli.checks.database import sessions_lost
from harvester.cli.session import read_config
from harvester.engine.connections import connect
from harvester.kernel.errors import ConfigError
from harvester.ops.database import check_server

pytestmark = pytest.mark.usefixtures("database")


def examine(**env):
    ran = harvester("doctor", "--json", **{"HARVESTER_LISTEN": free_port(), **env})
    return ran.code, {finding["check"]: finding for finding in ran.json["checks"]}


def test_a_sound_installation_has_nothing_in_the_way():
    code, found = examine()
    assert code == 0
    assert set(found) == {
        "python", "chromium", "settings", "home", "disk", "encryption key", "redis", "contact", "portal", "database",
        "migrations", "role", "proxy", "clock", "old snapshots", "workers",
    }  # fmt: skip
    assert {finding["state"] for name, finding in found.items() if name not in ("chromium", "disk", "workers")} == {
        "ok"
    }
    assert "PostgreSQL" in found["database"]["finding"]
    assert found["workers"]["state"] == "warn"
    assert "harvester worker" in found["workers"]["advice"]


def test_the_table_has_what_was_found_and_what_to_do():
    ran = harvester("doctor", HARVESTER_LISTEN=free_port())
    assert ran.code == 0
    for words in ("check", "state", "finding", "what to do", "No problems found."):
        assert words in ran.out


def test_what_is_broken_fails_and_everything_else_is_still_looked_at():
    with taken_port() as listen:
        code, found = examine(HARVESTER_REDIS_URL="redis://:hunter2hunter2@127.0.0.1:1", HARVESTER_LISTEN=listen)
    assert code == 1
    assert found["redis"]["state"] == "fail"
    assert "HARVESTER_REDIS_URL" in found["redis"]["finding"]
    assert "hunter2" not in str(found)
    assert found["portal"]["state"] == "fail"
    assert found["workers"]["state"] == "warn"


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_a_redis_that_answers_is_fine():
    address = free_port()
    port = address.rpartition(":")[2]
    command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", "/tmp"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for(lambda: listens(int(port)), "Redis")
            assert examine(HARVESTER_REDIS_URL=f"redis://{address}")[1]["redis"]["state"] == "ok"
        finally:
            server.terminate()


def listens(port):
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def test_settings_that_cannot_be_read_are_a_finding():
    code, found = examine(HARVESTER_POLL_SECONDS="often")
    assert code == 1
    assert "HARVESTER_POLL_SECONDS" in found["settings"]["finding"]
    assert found["database"]["state"] == "skip"


def test_a_database_that_does_not_answer_is_a_finding():
    key = harvester("keys", "generate").out.strip()
    url = "postgresql://ann:hunter2hunter2@127.0.0.1:1/harvester"
    code, found = examine(HARVESTER_DATABASE_URL=url, CREDENTIAL_ENCRYPTION_KEY_B64=key)
    assert code == 1
    assert found["database"]["state"] == "fail"
    assert "hunter2" not in str(found)


def test_a_home_that_cannot_be_used_is_a_finding():
    with empty_home() as home:
        home.write_text("a file where a directory should be")
        code, found = examine(HARVESTER_HOME=str(home))
    assert code == 1
    assert found["database"]["state"] == "fail"


def test_a_home_without_a_database_is_left_as_it_is():
    with empty_home() as home:
        code, found = examine(HARVESTER_HOME=str(home), HARVESTER_DATABASE_URL="")
        assert not home.exists(), "looking creates nothing"
    assert code == 0
    assert found["database"]["state"] == "skip"
    assert "harvester up" in found["database"]["finding"]


@pytest.mark.parametrize(("said", "state"), [("ours", "ok"), ("another", "fail"), ("", "fail")])
def test_the_doctor_recognizes_its_own_installation(said, state):
    config = read_config()
    name = config.installation if said == "ours" else said

    class Portal(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Harvester-Installation", name)
            self.end_headers()
            self.wfile.write(b'{"status": "alive"}')

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = machine.portal(replace(config, listen=f"127.0.0.1:{server.server_port}"))
        server.shutdown()
    assert found.state == state
    assert ("another Harvester installation" in found.finding) is (state == "fail")


def test_an_application_that_may_change_the_audit_log_is_a_finding():
    with granted("UPDATE"):
        code, found = examine()
    assert code == 1
    assert "audit log" in found["role"]["finding"]


@contextmanager
def granted(right):
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"GRANT {right} ON audit_events TO harvester_app")
        try:
            yield
        finally:
            cursor.execute(f"REVOKE {right} ON audit_events FROM harvester_app")


class Pooled:
    """A connection through a transaction-pooling proxy: each transaction gets whatever session is free."""

    def __init__(self, free):
        self._free = free
        self._mine = None

    def execute(self, statement):
        session = self._mine or self._free[-1]
        return session.execute(statement)

    @contextmanager
    def transaction(self):
        self._mine = self._free.pop()
        try:
            with self._mine.transaction():
                yield
        finally:
            self._free.append(self._mine)
            self._mine = None


def test_a_transaction_pooling_proxy_is_recognised():
    sessions = [connect("test") for _ in range(3)]
    try:
        assert not sessions_lost(sessions[0], sessions[1])
        assert sessions_lost(Pooled(sessions), Pooled(sessions))
    finally:
        for session in sessions:
            session.close()


@contextmanager
def _cursor(version):
    yield SimpleNamespace(execute=lambda _: None, fetchone=lambda: (version,))


@pytest.mark.parametrize(("number", "major"), [("160004", 16), ("180000", 18)])
def test_a_server_of_16_or_newer_is_accepted(number, major):
    assert check_server(SimpleNamespace(cursor=lambda: _cursor(number))) == major


def test_an_older_server_is_refused_with_one_line():
    with pytest.raises(ConfigError, match=r"PostgreSQL 15; Harvester needs 16 or newer. Nothing was changed."):
        check_server(SimpleNamespace(cursor=lambda: _cursor("150007")))
