"""What is installed with the services."""

import getpass
import subprocess
from pathlib import Path

import pytest
from tests.support.command import ROOT

WRAPPER = ROOT / "deploy" / "harvester"
SETTINGS = """# a comment
HARVESTER_LISTEN=127.0.0.1:1

; another
HARVESTER_DATABASE_URL=postgresql://u:p&x$HOME`id`"q"@h/n?a=b
"""


@pytest.fixture
def program(tmp_path) -> Path:
    """Replaces the command, and prints what it was given."""
    made = tmp_path / "program"
    made.write_text('#!/bin/sh\nprintf "%s\\n" "$HARVESTER_LISTEN" "$HARVESTER_DATABASE_URL" "$@"\n')
    made.chmod(0o755)
    (tmp_path / "settings").write_text(SETTINGS)
    return made


def run(program: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "PATH": "/usr/bin:/bin",
        "HARVESTER_SETTINGS_FILE": str(program.parent / "settings"),
        "HARVESTER_PROGRAM": str(program),
        "HARVESTER_SERVICE_USER": getpass.getuser(),
    }
    return subprocess.run(
        ["sh", str(WRAPPER), *arguments], env=variables | env, capture_output=True, text=True, check=False, timeout=30
    )


def test_a_command_gets_the_settings_of_the_services_as_they_stand(program):
    ran = run(program, "feed", "show", "Acme by Impact")
    assert ran.stdout.splitlines() == [
        "127.0.0.1:1",
        'postgresql://u:p&x$HOME`id`"q"@h/n?a=b',
        *("feed", "show", "Acme by Impact"),
    ]


def test_what_is_set_for_one_command_wins(program):
    assert run(program, HARVESTER_LISTEN="127.0.0.1:2").stdout.splitlines()[0] == "127.0.0.1:2"


def test_without_settings_nothing_is_run(program):
    ran = run(program, "migrate", HARVESTER_SETTINGS_FILE="/nowhere")
    assert ran.returncode != 0
    assert ran.stdout == ""
