"""Where the embedded cluster may live and who runs it: users, long paths, closed and broken directories."""

import fcntl
import os
import pwd
import shutil
import signal
from pathlib import Path

import pytest
from embedded_support import (
    IS_ROOT,
    Holder,
    copy_home,
    copy_wheel,
    living,
    made_home,
    open_directory,
    postmaster,
    processes,
    query,
)

from harvester.engine.embedded import Cluster
from harvester.kernel.errors import ConfigError

needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can act for other users")

HALF_INITDB = """#!/bin/sh
# Begins like initdb and then waits to be killed in the middle of it.
[ "$1" = --version ] && exec "$0.real" --version
echo 18 > "$2/PG_VERSION"
echo $$ > "{fifo}"
exec sleep 600
"""


@pytest.fixture(scope="module")
def made():
    with made_home() as home:
        yield home


@pytest.fixture
def base():
    with open_directory() as path:
        yield path


def modes(path):
    return {place: place.stat().st_mode for place in [path, *path.parents]}


def contents(directory):
    return {path.relative_to(directory): path.stat().st_mtime_ns for path in directory.rglob("*")}


def program_of(pid):
    return Path(os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]))


def one_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


def long_home(base):
    home = base / ("a-name-that-goes-on-and-on-" * 4) / ("and-on-" * 10)
    home.parent.mkdir()
    return home


@needs_root
def test_root_hands_the_server_to_an_unprivileged_user_and_changes_no_mode(base):
    before = modes(base)
    cluster = Cluster(base / "home")
    with cluster.hold():
        server = Path(f"/proc/{postmaster(cluster)}").stat().st_uid
        assert server != 0
        assert cluster.layout.data.stat().st_uid == server
        assert cluster.layout.home.stat().st_uid == 0
    assert modes(base) == before


def test_an_ordinary_user_runs_the_server_as_himself_and_changes_no_mode(base):
    user = "nobody" if IS_ROOT else pwd.getpwuid(os.geteuid()).pw_name
    site = base / "site"
    copy_wheel(site)
    ours = base / "ours"
    ours.mkdir(mode=0o700)
    if IS_ROOT:
        shutil.chown(ours, user)
    before = modes(ours)
    cluster = Cluster(ours / "home")
    holder = Holder(cluster.layout.home, user=user if IS_ROOT else None, site=site)
    assert holder.answer.startswith("held ")
    pids = processes(cluster)
    owners = {path.owner() for path in (cluster.layout.home, cluster.layout.data, cluster.socket_dir)}
    assert {Path(f"/proc/{postmaster(cluster)}").owner(), *owners} == {user}
    assert holder.send("release") == "released"
    holder.close()
    assert not living(pids)
    assert modes(ours) == before
    assert cluster.layout.home.stat().st_mode & 0o777 == 0o700


@needs_root
def test_the_user_who_owns_the_data_goes_on_running_it(base):
    home = base / "home"
    with Cluster(home, os_user="nobody").hold():
        pass
    cluster = Cluster(home)
    with cluster.hold():
        assert Path(f"/proc/{postmaster(cluster)}").owner() == "nobody"
    with pytest.raises(ConfigError, match=r"OS_USER is daemon.*belongs to nobody"):
        Cluster(home, os_user="daemon").hold()


@needs_root
@pytest.mark.parametrize(("name", "why"), [("no-such-user", "no such user"), ("root", "does not run as root")])
def test_a_user_who_cannot_run_the_server_is_refused(base, name, why):
    with pytest.raises(ConfigError, match=f"HARVESTER_DATABASE_OS_USER.*{why}") as caught:
        Cluster(base / "home", os_user=name).hold()
    one_line(caught)
    assert not (base / "home" / "postgres").exists()


@needs_root
def test_a_home_that_the_servers_user_cannot_reach_is_named_and_no_mode_is_changed(base):
    closed = base / "closed"
    closed.mkdir(mode=0o700)
    before = modes(closed)
    with pytest.raises(ConfigError) as caught:
        Cluster(closed / "home").hold()
    message = one_line(caught)
    assert f"cannot enter {closed};" in message
    assert "HARVESTER_HOME" in message
    assert "HARVESTER_DATABASE_OS_USER" in message
    assert modes(closed) == before
    assert not (closed / "home" / "postgres").exists()


@needs_root
def test_binaries_below_a_closed_directory_are_copied_next_to_the_data(base, monkeypatch):
    closed = base / "closed"
    copy_wheel(closed / "site")
    closed.chmod(0o700)
    before = modes(closed)
    monkeypatch.syspath_prepend(closed / "site")
    cluster = Cluster(base / "home")
    with cluster.hold():
        (copy,) = cluster.layout.home.glob("pg-18*")
        program = program_of(postmaster(cluster))
        assert program.is_relative_to(copy)
        assert program.stat().st_uid == 0
        copied = program.stat().st_ino
    with cluster.hold():
        assert program_of(postmaster(cluster)).stat().st_ino == copied
    assert modes(closed) == before


def test_a_home_with_a_long_path_gets_a_short_socket_and_leaves_nothing_of_it(base):
    cluster = Cluster(long_home(base))
    assert len(os.fsencode(cluster.layout.home)) > 150
    assert len(os.fsencode(cluster.layout.socket_files[0])) < 100
    assert Cluster(cluster.layout.home).socket_dir == cluster.socket_dir
    with cluster.hold():
        assert query(cluster, "SELECT 1") == [(1,)]
        assert cluster.socket_dir.stat().st_mode & 0o777 == 0o700
    assert not cluster.socket_dir.exists()


def test_another_home_with_a_long_path_gets_another_socket(base):
    home = long_home(base)
    assert Cluster(home).socket_dir != Cluster(home.with_name(f"{home.name}-2")).socket_dir


def test_two_spellings_of_a_home_are_one_cluster(base):
    (base / "link").symlink_to(base, target_is_directory=True)
    assert Cluster(base / "link" / "home").address("x") == Cluster(base / "home").address("x")


def a_link(bait, place):
    place.symlink_to(bait)


def an_open_directory(bait, place):
    bait.rename(place).chmod(0o777)


def a_directory_of_somebody_else(bait, place):
    shutil.chown(bait.rename(place), "daemon")


@pytest.mark.parametrize(
    "put_up", [a_link, an_open_directory, pytest.param(a_directory_of_somebody_else, marks=needs_root)]
)
def test_a_socket_directory_that_somebody_else_put_up_is_refused_and_left_alone(base, put_up):
    cluster = Cluster(long_home(base))
    bait = base / "bait"
    bait.mkdir(mode=0o700)
    socket_file = cluster.layout.socket_files[0]
    (bait / socket_file.name).touch()
    put_up(bait, cluster.socket_dir)
    try:
        with pytest.raises(ConfigError, match="cannot be trusted") as caught:
            cluster.hold()
        one_line(caught)
        assert socket_file.exists()
    finally:
        cluster.socket_dir.rename(base / "taken away")


def test_a_home_with_awkward_characters_works(base):
    cluster = Cluster(base / """Bob's "home", 100% $HOME `x` ü\\""")
    with cluster.hold():
        assert query(cluster, "SELECT 1") == [(1,)]


def test_a_home_that_cannot_be_made_is_named(base):
    (base / "file").touch()
    with pytest.raises(ConfigError, match="HARVESTER_HOME") as caught:
        Cluster(base / "file" / "home").hold()
    assert str(base / "file" / "home") in one_line(caught)


def test_a_kill_in_the_middle_of_initdb_leaves_no_half_made_database(base):
    program = copy_wheel(base / "site") / "bin" / "initdb"
    program.rename(program.with_name("initdb.real"))
    fifo = base / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    program.write_text(HALF_INITDB.format(fifo=fifo))
    program.chmod(0o755)
    cluster = Cluster(base / "home")
    killed = Holder(cluster.layout.home, site=base / "site")
    initdb = int(fifo.read_text())
    killed.kill()
    assert not cluster.layout.data.exists()
    assert list(cluster.layout.home.glob("postgres.new-*/PG_VERSION"))
    with cluster.layout.start_lock.open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.kill(initdb, signal.SIGKILL)
    with cluster.hold():
        assert query(cluster, "SELECT 1") == [(1,)]
    assert not list(cluster.layout.home.glob("postgres.new-*"))


def test_an_initdb_that_fails_leaves_nothing_and_says_why(base, monkeypatch):
    program = copy_wheel(base / "site") / "bin" / "initdb"
    program.rename(program.with_name("initdb.real"))
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && exec "$0.real" "$@"\necho disk on fire >&2; exit 1\n')
    program.chmod(0o755)
    monkeypatch.syspath_prepend(base / "site")
    cluster = Cluster(base / "home")
    with pytest.raises(ConfigError, match="disk on fire") as caught:
        cluster.hold()
    one_line(caught)
    assert {path.name for path in cluster.layout.home.iterdir()} == {"start.lock", "holders.lock"}


def without_version(data):
    (data / "PG_VERSION").unlink()


def of_another_version(data):
    (data / "PG_VERSION").write_text("12\n")


def with_a_truncated_control_file(data):
    os.truncate(data / "global" / "pg_control", 10)


def with_a_damaged_control_file(data):
    with (data / "global" / "pg_control").open("r+b") as file:
        file.seek(40)
        file.write(b"\xff" * 8)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_version, "no PG_VERSION.*backup"),
        (of_another_version, "PostgreSQL 12 .*HARVESTER_DATABASE_URL"),
        (with_a_truncated_control_file, "pg_control.*backup"),
        (with_a_damaged_control_file, "pg_control.*backup"),
    ],
)
def test_a_broken_data_directory_gives_one_clear_line_and_stays_as_it_is(base, made, damage, message):
    cluster = copy_home(made, base / "home")
    damage(cluster.layout.data)
    before = contents(cluster.layout.data)
    with pytest.raises(ConfigError, match=message) as caught:
        cluster.hold()
    one_line(caught)
    assert contents(cluster.layout.data) == before


def test_an_empty_data_directory_counts_as_none(base):
    cluster = Cluster(base / "home")
    cluster.layout.data.mkdir(parents=True)
    with cluster.hold():
        assert query(cluster, "SELECT 1") == [(1,)]


def test_a_file_in_the_place_of_the_data_is_left_alone(base):
    cluster = Cluster(base / "home")
    cluster.layout.home.mkdir()
    cluster.layout.data.touch()
    with pytest.raises(ConfigError, match="not a directory") as caught:
        cluster.hold()
    one_line(caught)
    assert cluster.layout.data.is_file()


@needs_root
def test_data_of_another_user_is_refused_to_an_ordinary_one(base):
    cluster = Cluster(base / "home")
    with cluster.hold():
        pass
    holder = Holder(cluster.layout.home, user="nobody")
    answer = holder.answer
    holder.close()
    assert answer.startswith("ConfigError")
    assert "HARVESTER_HOME" in answer
