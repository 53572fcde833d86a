"""`tools/test_parts.py`: what tests need is installed where that is allowed, and named where it is not."""

import importlib.util
import os
import subprocess
import sys

import pytest
from tests.support.command import ROOT

TOOL = ROOT / "tools" / "test_parts.py"

APT = """#!/bin/sh
echo "$@" >> {log}
test -e {policy} && echo "services forbidden" >> {log}
for word in "$@"; do
    case "$word" in
        chromium | redis-server) cp {apt} {bin}/$word ;;
        prometheus) cp {apt} {bin}/promtool ;;
    esac
done
exit {code}
"""


def run(path, **env):
    command = [sys.executable, str(TOOL)]
    return subprocess.run(command, env={"PATH": str(path), **env}, capture_output=True, text=True, check=False)


def test_missing_parts_are_named_and_fail_only_in_ci(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0
    assert "browser tests will be skipped" in done.stdout
    assert "apt-get install redis-server" in done.stdout
    assert run(tmp_path, CI="true").returncode == 1


def test_parts_that_are_there_are_not_installed_again(tmp_path):
    for name in ("chromium", "redis-server", "promtool"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    done = run(tmp_path, CI="true")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A Debian of which this process is root, and whose apt-get only takes notes."""
    spec = importlib.util.spec_from_file_location("test_parts_tool", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.POLICY, tool.log, tool.bin = tmp_path / "policy-rc.d", tmp_path / "log", tmp_path / "bin"
    tool.bin.mkdir()
    monkeypatch.setattr(tool.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tool.bin}:{os.defpath}")
    monkeypatch.setattr(
        tool, "find_missing", lambda: [p for p in tool.PARTS if not (tool.bin / tool.PARTS[p][0][-1]).exists()]
    )
    return tool


def fake_apt(tool, code):
    apt = tool.bin / "apt-get"
    apt.write_text(APT.format(log=tool.log, policy=tool.POLICY, apt=apt, bin=tool.bin, code=code))
    apt.chmod(0o755)


def test_root_on_debian_gets_them_installed_without_any_service_being_started(machine, monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setitem(machine.PARTS, "a browser", (("chromium",), ("chromium", "fonts-dejavu-core")))
    fake_apt(machine, 0)
    assert machine.main() == 0
    notes = machine.log.read_text().splitlines()
    assert notes[0] == "-q update"
    packages = "chromium fonts-dejavu-core redis-server chromium-headless-shell iproute2 prometheus"
    assert f"-q install -y --no-install-recommends {packages}" in notes
    assert "services forbidden" in notes
    assert not machine.POLICY.exists()


def test_a_failed_installation_is_reported_and_fails_in_ci(machine, monkeypatch, capsys):
    fake_apt(machine, 100)
    monkeypatch.setenv("CI", "true")
    assert machine.main() == 1
    assert "apt-get update failed" in capsys.readouterr().out
    assert not machine.POLICY.exists()
