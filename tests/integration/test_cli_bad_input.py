"""One clear line that says what to do, an exit code that scripts can use, and nothing half-made left behind."""

import json
import os
import subprocess
import sys

import pytest
from tests.support.command import empty_home, environment, free_port, harvester, running, taken_port

KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
KEY_OF_31_BYTES = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZQ=="
EXTERNAL = "postgresql://ann:hunter2hunter2@127.0.0.1:1/harvester"

BAD = {
    "wrong option": (["worker", "--treads", "4"], {}, 2, "--threads"),
    "value out of range": (["worker", "--threads", "0"], {}, 2, "--threads"),
    "wrong command": (["jbos"], {}, 2, "jobs"),
    "wrong choice": (["user", "add", "ann", "--role", "boss"], {}, 2, "'--role': 'boss' is not one of 'viewer'"),
    "missing argument": (["jobs", "show"], {}, 2, "ID"),
    "no number": (["jobs", "show", "x"], {}, 2, "ID"),
    "unknown state": (["jobs", "list", "--state", "done"], {}, 2, "succeeded"),
    "invalid JSON": (["jobs", "enqueue", "ops.clean_up", "--args", "{"], {}, 2, "--args"),
    "URL without scheme": (
        ["migrate"],
        {"HARVESTER_DATABASE_URL": "db.example/harvester"},
        78,
        "USER:PASSWORD@ before HOST",
    ),
    "URL with a bad port": (["migrate"], {"HARVESTER_DATABASE_URL": "postgresql://db:x/harvester"}, 78, "port"),
    "URL without a name": (["migrate"], {"HARVESTER_DATABASE_URL": "postgresql://db"}, 78, "name"),
    "unknown setting": (["jobs", "list"], {"HARVESTER_DATABASE_ULR": "x"}, 78, "did you mean HARVESTER_DATABASE_URL?"),
    "number out of range": (["worker"], {"HARVESTER_WORKER_THREADS": "0"}, 78, "from 1 to 512"),
    "key missing": (["worker"], {"HARVESTER_DATABASE_URL": EXTERNAL}, 78, "harvester keys generate"),
    "key of 31 bytes": (
        ["web"],
        {"HARVESTER_DATABASE_URL": EXTERNAL, "CREDENTIAL_ENCRYPTION_KEY_B64": KEY_OF_31_BYTES},
        78,
        "must contain 32 bytes",
    ),
    "key of 31 bytes, embedded": (
        ["up"],
        {"CREDENTIAL_ENCRYPTION_KEY_B64": KEY_OF_31_BYTES},
        78,
        "must contain 32 bytes",
    ),
    "Redis URL": (["worker"], {"HARVESTER_REDIS_URL": "http://redis"}, 78, "redis://"),
    "unreachable Redis": (["worker"], {"HARVESTER_REDIS_URL": "redis://127.0.0.1:1"}, 1, "HARVESTER_REDIS_URL"),
    "unreachable Redis, all together": (["up"], {"HARVESTER_REDIS_URL": "redis://127.0.0.1:1"}, 1, "unset it"),
    "unreachable database": (
        ["jobs", "list"],
        {"HARVESTER_DATABASE_URL": EXTERNAL, "CREDENTIAL_ENCRYPTION_KEY_B64": KEY},
        1,
        "harvester doctor",
    ),
    "listen address": (["web"], {"HARVESTER_LISTEN": "nowhere"}, 78, "127.0.0.1:8000"),
    "address of another machine": (["web"], {"HARVESTER_LISTEN": "192.0.2.1:80"}, 78, "HARVESTER_LISTEN"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line_and_leaves_nothing_behind(case):
    arguments, env, code, hint = BAD[case]
    with empty_home() as home:
        ran = harvester(*arguments, **{"HARVESTER_HOME": str(home), "HARVESTER_LISTEN": free_port(), **env})
        assert not home.exists()
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("error: ")
    assert hint in ran.err
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("before", [True, False], ids=["before the command", "behind it"])
def test_errors_are_json_where_json_was_asked_for(before):
    with empty_home() as home:
        words = ["--json", "jobs", "list"] if before else ["jobs", "list", "--json"]
        ran = harvester(*words, HARVESTER_HOME=str(home), HARVESTER_HTTPS="perhaps")
    assert ran.code == 78
    assert ran.out == ""
    assert ran.error == {"code": "CONFIG", "message": "HARVESTER_HTTPS is 'perhaps'; it must be true or false."}


def test_wrong_usage_is_json_too():
    ran = harvester("jobs", "list", "--json", "--nope")
    assert ran.code == 2
    assert ran.error["code"] == "USAGE"


@pytest.mark.parametrize("command", ["web", "up"])
def test_a_port_in_use_is_said_before_anything_is_started(command):
    with taken_port() as listen, empty_home() as home:
        ran = harvester(command, HARVESTER_HOME=str(home), HARVESTER_LISTEN=listen)
        assert not home.exists()
    assert ran.code == 1
    assert listen in ran.err
    assert "HARVESTER_LISTEN=" in ran.err
    assert ran.err.count("\n") == 1


def test_a_corrupt_data_directory_is_named_and_left_as_it_is():
    with empty_home() as home:
        data = home / "postgres"
        data.mkdir(parents=True)
        home.chmod(0o711)
        (data / "PG_VERSION").write_text("rubbish\n")
        _give_away(data)
        ran = harvester("jobs", "list", HARVESTER_HOME=str(home))
        assert [path.name for path in data.iterdir()] == ["PG_VERSION"]
        assert not (home / "credential.key").exists()
    assert ran.code == 78
    assert str(data) in ran.err
    assert "backup" in ran.err
    assert ran.err.count("\n") == 1


def _give_away(data):
    """Root's data belongs to an unprivileged user."""
    if os.geteuid() == 0:
        for path in (data, *data.iterdir()):
            os.chown(path, 65534, 65534)


@pytest.mark.parametrize("command", ["worker", "scheduler", "web"])
def test_a_process_refuses_to_run_on_tables_of_another_version(command, fresh_home):
    ran = harvester(command, HARVESTER_HOME=str(fresh_home), HARVESTER_LISTEN=free_port())
    assert ran.code == 78
    assert "harvester migrate" in ran.err


@pytest.fixture(scope="module")
def fresh_home():
    """A home whose database exists and has no tables."""
    with empty_home() as home:
        assert harvester("jobs", "list", HARVESTER_HOME=str(home)).code == 78
        yield home


def test_migrate_lists_the_missing_migrations_and_applies_them(fresh_home):
    home = {"HARVESTER_HOME": str(fresh_home)}
    missing = harvester("migrate", "--check", "--json", **home)
    assert missing.code == 1
    assert "engine.0001_initial" in missing.json["missing"]
    assert harvester("migrate", "--json", **home).json["applied"] == missing.json["missing"]
    assert harvester("migrate", "--check", **home).code == 0


BOOM = """
import sys
from harvester.cli import app
@app.app.command("boom")
def boom(as_json: app.Json = False):
    raise ZeroDivisionError("postgresql://ann:hunter2hunter2@db/x")
sys.exit(app.run(["boom", *sys.argv[1:]]))
"""


def boom(*words, **env):
    command = [sys.executable, "-c", BOOM, *words]
    return subprocess.run(command, env=environment(**env), capture_output=True, text=True, check=False)


def test_an_unexpected_error_is_one_line_and_names_the_debug_setting():
    done = boom()
    assert done.returncode == 70
    assert done.stdout == ""
    assert "error: ZeroDivisionError: postgresql://[redacted]@db/x" in done.stderr
    assert "HARVESTER_LOG_LEVEL=debug" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_json_an_unexpected_error_is_one_object():
    done = boom("--json")
    assert done.returncode == 70
    assert json.loads(done.stderr)["error"]["code"] == "UNEXPECTED"


def test_with_debug_the_traceback_is_logged_without_secrets():
    done = boom(HARVESTER_LOG_LEVEL="debug")
    assert done.returncode == 70
    assert "Traceback" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_closed_pipe_is_no_error_of_anybody():
    with running("--help") as process:
        process.ends()
    done = subprocess.run(
        f"{sys.executable} -m harvester --help | head -n 1",
        shell=True,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
