"""A process that is just becoming a server has no command line for a moment, and must not be taken for a dead one."""

import os
import shutil
import subprocess

import pytest

from harvester.engine.embedded import processes
from harvester.engine.embedded.layout import Layout
from harvester.engine.embedded.processes import Processes
from harvester.engine.embedded.users import ServerUser


@pytest.fixture
def cluster(tmp_path):
    return Processes(Layout.of(tmp_path / "home"), ServerUser(name="me", uid=os.geteuid(), gid=os.getegid()))


@pytest.fixture
def postgres(tmp_path):
    """A process of that name, which belongs to nobody's cluster."""
    program = tmp_path / "postgres"
    shutil.copy(shutil.which("sleep"), program)
    with subprocess.Popen([program, "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def in_exec(postgres, monkeypatch):
    """For the first looks the process has no command line."""
    looks = []
    real = processes._arguments

    def arguments(pid):
        looks.append(pid)
        return [b""] if pid == postgres.pid and looks.count(pid) < 10 else real(pid)

    monkeypatch.setattr(processes, "_arguments", arguments)


@pytest.mark.usefixtures("in_exec")
def test_it_counts_as_starting(cluster, postgres):
    assert cluster.is_starting(postgres.pid)


@pytest.mark.usefixtures("in_exec")
def test_another_cluster_waits_for_it_and_does_not_end_it(cluster, postgres):
    cluster.end_orphans()
    assert postgres.poll() is None


def test_one_that_has_died_does_not_count_as_starting(cluster, postgres):
    postgres.kill()
    os.waitid(os.P_PID, postgres.pid, os.WEXITED | os.WNOWAIT)
    assert not cluster.is_starting(postgres.pid)
    postgres.wait()
    assert not cluster.is_starting(postgres.pid)
