"""`harvester demo`: the story comes out, proves itself, and leaves no process behind."""

import os
import signal
import stat

import pytest
from tests.support.command import empty_home, harvester, processes_of, running, taken_port

from harvester.cli.demo.home import prepare_home
from harvester.kernel.errors import Conflict


def demo(home, *more, **env):
    return harvester("demo", "--once", "--port", 0, *more, HARVESTER_HOME=str(home), **env)


@pytest.mark.slow
def test_the_story_comes_out_and_the_next_one_finds_its_data():
    with empty_home() as home:
        first = demo(home, HARVESTER_DATABASE_URL="postgresql://production.example/harvester")
        assert first.code == 0, first.err + (home / "demo.log").read_text()
        assert processes_of(home) == []
        login = home / "demo-login.txt"
        password = login.read_text().split()[1]
        assert stat.S_IMODE(login.stat().st_mode) == 0o600
        break_off(home)
        second = demo(home)
        assert second.code == 0, second.err
        assert processes_of(home) == []
        jobs = harvester("jobs", "stats", "--json", HARVESTER_HOME=str(home)).json["states"]
    assert "HARVESTER_DATABASE_URL is ignored" in first.out
    assert f"demo / {password}" in first.out
    assert "kill -9" in first.out
    assert "of an earlier demo, with " in second.out
    assert password not in second.out
    assert jobs["pending"] == 1
    assert jobs["running"] == jobs["retryable"] == 0


def break_off(home):
    """Ctrl-C in the middle of the story, while jobs wait and run."""
    with running("demo", "--once", "--port", 0, HARVESTER_HOME=str(home)) as process:
        process.says("kill -9")
        process.signal(signal.SIGINT)
        ran = process.ends()
    assert ran.code == 130
    assert processes_of(home) == []


def test_a_port_that_was_asked_for_is_insisted_on():
    with taken_port() as listen, empty_home() as home:
        ran = harvester("demo", "--once", "--port", listen.rpartition(":")[2], HARVESTER_HOME=str(home))
        assert not home.exists()
    assert ran.code == 1
    assert listen in ran.err


def test_a_home_with_real_data_is_left_alone():
    with empty_home() as home:
        (home / "postgres").mkdir(parents=True)
        with pytest.raises(Conflict, match="no demo made"):
            prepare_home({"HARVESTER_HOME": str(home)})
        assert [path.name for path in home.iterdir()] == ["postgres"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")
def test_as_root_a_place_that_the_server_cannot_reach_is_avoided_and_that_is_said(tmp_path, monkeypatch):
    closed, other = tmp_path / "closed", tmp_path / "other"
    closed.mkdir(mode=0o700), other.mkdir()
    for place in (other, *other.parents):
        if place != place.parent and str(place).startswith(str(tmp_path.parent.parent)):
            place.chmod(0o755)
    monkeypatch.chdir(closed)
    monkeypatch.setattr("harvester.cli.demo.home.PLACES", (other,))
    home = prepare_home({})
    assert home.path.parent == other
    assert str(home.path) in home.remarks[0]
