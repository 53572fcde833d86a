"""The life of the embedded server: who starts it, who keeps it, who stops it, and what survives a kill."""

import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from embedded_support import (
    Holder,
    copy_home,
    is_alive,
    living,
    made_home,
    open_directory,
    postmaster,
    processes,
    query,
    started_at,
)

from harvester.engine.embedded import APP_ROLE, DATABASE, OWNER_ROLE, Cluster
from harvester.kernel.errors import ConfigError

SPIN = "DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$"


@pytest.fixture(scope="module")
def made():
    with made_home() as home:
        yield home


@pytest.fixture
def cluster(made):
    """A cluster whose database exists and is stopped."""
    with open_directory() as base:
        yield copy_home(made, base / "home")


@pytest.fixture
def fresh():
    """A cluster of which nothing exists."""
    with open_directory() as base:
        yield Cluster(base / "home")


@pytest.fixture
def holders(cluster, fresh):
    """Starts holders, and leaves neither them nor a server behind."""
    started = []

    def start(held):
        holder = Holder(held.layout.home)
        started.append((held, holder))
        return holder

    yield start
    for _, holder in started:
        if holder.process.returncode is None:
            holder.kill()
    for held in {held for held, _ in started}:
        held.hold().release()


def test_construction_and_address_touch_nothing(fresh):
    address = fresh.address(APP_ROLE)
    assert address == {"host": str(fresh.socket_dir), "port": 5432, "user": APP_ROLE, "dbname": DATABASE}
    assert not fresh.layout.home.exists()
    assert not fresh.socket_dir.exists()


def test_the_first_hold_makes_a_database_with_an_owner_and_a_powerless_application_role(fresh):
    with fresh.hold():
        roles = query(
            fresh,
            "SELECT rolname, rolcanlogin, rolsuper, rolcreaterole OR rolcreatedb OR rolreplication"
            " OR rolbypassrls FROM pg_roles WHERE rolname LIKE 'harvester%%' ORDER BY 1",
        )
        assert roles == [(APP_ROLE, True, False, False), (OWNER_ROLE, True, True, True)]
        columns = "datdba::regrole::text, pg_encoding_to_char(encoding), datctype"
        found = query(fresh, f"SELECT {columns} FROM pg_database WHERE datname = %s", DATABASE)
        assert found == [(OWNER_ROLE, "UTF8", "C.UTF-8")]
        assert query(fresh, "SELECT current_user::text", role=APP_ROLE) == [(APP_ROLE,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            query(fresh, "CREATE TABLE mine (id int)", role=APP_ROLE)


def test_the_server_has_the_settings_that_the_engine_counts_on(cluster):
    expected = {
        "TimeZone": "UTC",
        "client_connection_check_interval": "10s",
        "data_checksums": "on",
        "listen_addresses": "",
        "max_connections": "200",
        "max_wal_size": "4GB",
        "synchronous_commit": "on",
    }
    with cluster.hold():
        found = query(
            cluster,
            "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)",
            list(expected),
        )
    assert dict(found) == expected


def test_options_of_the_caller_come_last(cluster):
    tuned = Cluster(cluster.layout.home, options={"max_connections": "33", "work_mem": "5MB"})
    with tuned.hold():
        assert query(tuned, "SELECT current_setting('max_connections'), current_setting('work_mem')") == [("33", "5MB")]


def test_eight_starts_at_once_give_one_server_to_which_all_connect(fresh, holders):
    eight = [holders(fresh) for _ in range(8)]
    answers = {holder.answer for holder in eight}
    assert answers == {f"held {started_at(fresh)}"}
    pids = processes(fresh)
    for holder in eight[:7]:
        assert holder.send("release") == "released"
    assert living(pids) >= {postmaster(fresh)}
    assert eight[7].send("release") == "released"
    assert not living(pids)


def test_the_server_stays_while_one_of_two_holders_is_left(cluster):
    first, second = cluster.hold(), cluster.hold()
    began = started_at(cluster)
    first.release()
    assert started_at(cluster) == began
    second.release()
    with pytest.raises(psycopg.OperationalError):
        started_at(cluster)


def test_releasing_twice_takes_nothing_from_another_holder(cluster):
    first, second = cluster.hold(), cluster.hold()
    first.release()
    first.release()
    assert query(cluster, "SELECT 1") == [(1,)]
    second.release()


def test_a_full_release_leaves_no_process_and_no_socket(cluster):
    hold = cluster.hold()
    pids = processes(cluster)
    assert len(living(pids)) > 3
    assert cluster.layout.socket_files[0].is_socket()
    hold.release()
    assert not living(pids)
    assert not cluster.socket_dir.exists()
    assert not (cluster.layout.data / "postmaster.pid").exists()
    assert "received fast shutdown request" in cluster.layout.log.read_text()


def test_rows_survive_a_full_stop(cluster):
    with cluster.hold():
        query(cluster, "CREATE TABLE kept AS SELECT 7 AS n")
    with cluster.hold():
        assert query(cluster, "SELECT n FROM kept") == [(7,)]


def test_the_server_of_a_killed_holder_is_adopted_and_stopped_by_the_next(cluster, holders):
    killed = holders(cluster)
    answer = killed.answer
    pids = processes(cluster)
    killed.kill()
    with cluster.hold():
        assert f"held {started_at(cluster)}" == answer
    assert not living(pids)


def test_after_a_kill_of_the_postmaster_the_next_hold_has_the_data(cluster):
    with cluster.hold():
        query(cluster, "CREATE TABLE kept AS SELECT 7 AS n")
        before = started_at(cluster)
        os.kill(postmaster(cluster), signal.SIGKILL)
        with cluster.hold():
            assert started_at(cluster) != before
            assert query(cluster, "SELECT n FROM kept") == [(7,)]


def test_a_busy_child_of_a_killed_postmaster_is_ended_before_the_next_start(cluster):
    with cluster.hold(), closing(psycopg.connect(**cluster.address(OWNER_ROLE))) as busy:
        busy.pgconn.send_query(SPIN.encode())
        child = busy.info.backend_pid
        while query(cluster, "SELECT query FROM pg_stat_activity WHERE pid = %s", child) != [(SPIN,)]:
            pass
        os.kill(postmaster(cluster), signal.SIGKILL)
        with cluster.hold():
            assert not is_alive(child)
            assert query(cluster, "SELECT 1") == [(1,)]


def test_the_release_after_a_kill_of_the_postmaster_leaves_nothing(cluster):
    hold = cluster.hold()
    pids = processes(cluster)
    os.kill(postmaster(cluster), signal.SIGKILL)
    hold.release()
    assert not living(pids)
    assert not cluster.socket_dir.exists()


def test_a_pid_file_whose_number_another_process_has_now_does_not_block_the_start(cluster):
    pid_file = cluster.layout.data / "postmaster.pid"
    with cluster.hold():
        owner = pid_file.stat()
        left_behind = pid_file.read_text().split("\n")
    identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, **identity) as stranger:
        pid_file.write_text("\n".join([str(stranger.pid), *left_behind[1:]]))
        pid_file.chmod(0o600)
        os.chown(pid_file, owner.st_uid, owner.st_gid)
        with cluster.hold():
            assert postmaster(cluster) != stranger.pid
            assert query(cluster, "SELECT 1") == [(1,)]
        assert is_alive(stranger.pid)


def test_a_forked_child_that_ends_does_not_stop_the_server(cluster, holders):
    parent = holders(cluster)
    answer = parent.answer
    assert parent.send("fork") == "forked"
    assert f"held {started_at(cluster)}" == answer
    assert parent.send("release") == "released"
    with pytest.raises(psycopg.OperationalError):
        started_at(cluster)


def test_no_tcp_port_is_open(cluster):
    with cluster.hold(), psycopg.connect(**cluster.address(OWNER_ROLE)) as connection:
        # By the server's own user, because root in a container may not look at another user's descriptors.
        connection.execute("CREATE TEMP TABLE links (link text)")
        connection.execute(f"COPY links FROM PROGRAM 'readlink /proc/{postmaster(cluster)}/fd/*'")
        sockets = {link for (link,) in connection.execute("SELECT link FROM links")}
        tcp = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
        unix = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    assert not sockets & {f"socket:[{fields[9]}]" for fields in tcp}
    assert sockets & {f"socket:[{fields[6]}]" for fields in unix if fields[-1] == str(cluster.layout.socket_files[0])}


def test_only_the_servers_user_may_enter_the_directory_of_the_socket(cluster):
    with cluster.hold():
        status = cluster.socket_dir.stat()
        assert status.st_mode & 0o777 == 0o700
        assert status.st_uid == cluster.layout.data.stat().st_uid


def test_an_option_that_postgresql_does_not_know_gives_one_line_and_leaves_no_process(cluster):
    with pytest.raises(ConfigError, match="no_such_setting") as caught:
        Cluster(cluster.layout.home, options={"no_such_setting": "1"}).hold()
    assert "\n" not in str(caught.value)
    assert not cluster.socket_dir.exists()
    with cluster.hold():
        assert query(cluster, "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    "options", [{"port": "5433"}, {"listen_addresses": "*"}, {"work mem": "1"}, {"work_mem": "1\n"}]
)
def test_an_option_that_would_hide_the_server_or_break_the_file_is_refused(cluster, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        Cluster(cluster.layout.home, options=options).hold()


def test_values_of_rows_stay_out_of_the_servers_log(cluster):
    with cluster.hold():
        query(cluster, "CREATE TABLE secrets (value text PRIMARY KEY CHECK (value <> 'canary-1'))")
        query(cluster, "INSERT INTO secrets VALUES ('canary-2')")
        for value in ("canary-1", "canary-2"):
            with pytest.raises(psycopg.IntegrityError):
                query(cluster, f"INSERT INTO secrets VALUES ('{value}')")
    log = cluster.layout.log.read_text()
    assert "violates" in log
    assert "canary" not in log


def test_a_log_that_grew_large_is_put_aside_at_the_next_start(cluster):
    with cluster.hold():
        pass
    os.truncate(cluster.layout.log, 11 << 20)
    with cluster.hold():
        assert cluster.layout.log.stat().st_size < 1 << 20
    assert cluster.layout.log.with_name("postgres.log.1").stat().st_size == 11 << 20
