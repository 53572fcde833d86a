"""What a newcomer sees: help with examples, fast, and documents that match it."""

import subprocess
import sys
from importlib.metadata import version

import pytest
import typer
from tests.support.command import ROOT, environment, harvester
from typer.testing import CliRunner

from harvester.cli.app import app
from harvester.cli.exit_codes import MEANINGS

COMMANDS = (
    "feed",
    "runs",
    "retailer",
    "source",
    "offers",
    "corrections",
    "review",
    "import",
    "demo",
    "up",
    "web",
    "worker",
    "scheduler",
    "migrate",
    "doctor",
    "user",
    "keys",
    "api-keys",
    "jobs",
    "audit",
)


def every_command(command, path="harvester"):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, f"{path} {name}")


ALL = dict(every_command(typer.main.get_command(app)))


def test_the_command_alone_lists_every_command_with_a_phrase():
    ran = harvester()
    assert ran.code == 0
    for name in COMMANDS:
        line = next(line for line in ran.out.splitlines() if line.startswith(f"│ {name} "))
        assert len(line.split()) > 4, line


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_a_phrase_and_examples_that_exist(path):
    command = ALL[path]
    assert command.help
    shown = [line.strip() for line in command.epilog.splitlines() if "harvester " in line]
    assert shown
    for line in shown:
        words = line[line.index("harvester ") :].split()
        assert " ".join(words[:2]) in ALL or len(words) == 1, line


@pytest.mark.parametrize("path", ALL)
def test_help_fits_a_screen_of_80_columns(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, [*path.split()[1:], "--help"]).output
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown  # a name of an option that nobody can read
    assert "[[" not in shown
    assert "\n" not in "".join(ALL[path].help.split("\n\n"))


def test_help_answers_without_loading_django():
    code = (
        "import sys\nfrom harvester.cli.app import run\nrun(['jobs', '--help'])\n"
        "sys.exit(1 if {'django', 'psycopg', 'gunicorn'} & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0


def test_a_group_alone_lists_its_commands():
    ran = harvester("jobs")
    assert ran.code == 0
    assert "retry" in ran.out


def test_the_version_is_that_of_the_package():
    assert harvester("--version").out.strip() == f"harvester {version('harvester')}"
    assert harvester("--version", "--json").json == {"version": version("harvester")}


def test_exit_codes_are_documented_where_people_look():
    shown = harvester("--help").out
    page = (ROOT / "docs" / "operations.md").read_text()
    for code, meaning in MEANINGS.items():
        assert f"{code.value}  {meaning}" in shown
        assert f"| {code.value} | {meaning} |" in page


def test_the_page_of_settings_is_the_one_that_is_printed():
    assert harvester("doctor", "--settings", "--markdown").out == (ROOT / "docs" / "settings.md").read_text()


def test_settings_are_listed_with_their_source_and_without_secrets():
    key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    env = {
        "CREDENTIAL_ENCRYPTION_KEY_B64": key,
        "HARVESTER_DATABASE_URL": "postgresql://ann:hunter2hunter2@db/harvester",
    }
    ran = harvester("doctor", "--settings", "--json", **env)
    settings = {setting["variable"]: setting for setting in ran.json["settings"]}
    assert settings["CREDENTIAL_ENCRYPTION_KEY_B64"]["value"] == "(hidden)"
    assert settings["HARVESTER_DATABASE_URL"]["source"] == "environment"
    assert settings["HARVESTER_LISTEN"] | {"meaning": ""} == {
        "variable": "HARVESTER_LISTEN",
        "value": "127.0.0.1:8000",
        "source": "default",
        "meaning": "",
    }
    assert "hunter2" not in ran.out
    assert key not in ran.out
