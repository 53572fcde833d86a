"""`harvester demo`: it succeeds, checks its results, and leaves no process behind."""

import os
import re
import signal
import stat
from dataclasses import replace

import pytest
from tests.support.command import empty_home, harvester, processes_of, running, taken_port

from harvester.cli.demo.catalog import ARRIVAL, FIRST, LEAVER, SECOND, SHRUNK
from harvester.cli.demo.home import prepare_home
from harvester.cli.demo.story import ACTS, Held, Played, problems
from harvester.feeds.models import FeedRun
from harvester.kernel.errors import Conflict
from harvester.runs.models import Run


def demo(home, *more, **env):
    return harvester("demo", "--once", "--port", 0, *more, HARVESTER_HOME=str(home), **env)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # three demos, which take minutes on a busy machine
def test_the_demo_succeeds_and_the_next_one_finds_its_data():
    production = {
        "HARVESTER_DATABASE_URL": "postgresql://production.example/harvester",
        "HARVESTER_SLACK_WEBHOOK_URL": "https://hooks.slack.example/services/production",
    }
    with empty_home() as home:
        first = demo(home, **production)
        assert first.code == 0, first.err + (home / "demo.log").read_text()
        assert processes_of(home) == []
        login = home / "demo-login.txt"
        password = login.read_text().split()[1]
        assert stat.S_IMODE(login.stat().st_mode) == 0o600
        break_off(home)
        second = demo(home)
        assert second.code == 0, second.err + (home / "demo.log").read_text()
        assert processes_of(home) == []
        jobs = harvester("jobs", "list", "--json", "--limit", 1000, HARVESTER_HOME=str(home)).json["jobs"]
        alerts = harvester("alerts", "list", "--json", HARVESTER_HOME=str(home)).json["alerts"]
    assert "The demo ignores these settings: HARVESTER_DATABASE_URL, HARVESTER_SLACK_WEBHOOK_URL." in first.out
    assert f"demo / {password}" in first.out
    assert password not in second.out
    assert "kill -9" in first.out
    assert "from an earlier demo, with " in second.out
    assert [job["state"] for job in jobs if job["kind"] == "feeds.run"][:4] == ["succeeded"] * 4
    assert [alert["kind"] for alert in alerts] == ["RUN_HELD"]
    assert table_of(first.out) == [
        ["PROMOTED", "1,296", "1,296", "0", "0", "1,296", "1,296"],
        ["PROMOTED", "2,591", "2,591", "0", "0", "2,591", "2,591"],
        ["PROMOTED", "2,591", "1", "0", "1", "324", "2,592"],
        ["HELD", "647", "0", "0", "1,945", "0", "2,053", "2,592"],
    ]


def table_of(out):
    """The rows of the summary: outcome, products, new, back, missing, prices, held changes if any, shown."""
    rows = re.findall(r"^ +\d+ +\S+ +(PROMOTED|HELD) +([\d, ]+)$", out, re.MULTILINE)
    return [[outcome, *numbers.split()] for outcome, numbers in rows]


def break_off(home):
    """Ctrl-C during the demo, while a run has lost its worker."""
    with running("demo", "--once", "--port", 0, HARVESTER_HOME=str(home)) as process:
        process.says("kill -9")
        process.signal(signal.SIGINT)
        ran = process.ends()
    assert ran.code == 130
    assert processes_of(home) == []


def test_a_given_port_that_is_taken_is_an_error():
    with taken_port() as listen, empty_home() as home:
        ran = harvester("demo", "--once", "--port", listen.rpartition(":")[2], HARVESTER_HOME=str(home))
        assert not home.exists()
    assert ran.code == 1
    assert listen in ran.err


def test_a_home_with_real_data_is_left_alone():
    with empty_home() as home:
        (home / "postgres").mkdir(parents=True)
        with pytest.raises(Conflict, match="not created by the demo"):
            prepare_home({"HARVESTER_HOME": str(home)})
        assert [path.name for path in home.iterdir()] == ["postgres"]


def test_the_demo_may_connect_to_this_machine_and_to_no_network_of_production():
    with empty_home() as home:
        env = {"HARVESTER_HOME": str(home), "HARVESTER_EGRESS_ALLOW": "10.0.0.0/8"}
        prepare_home(env)
    assert env["HARVESTER_EGRESS_ALLOW"] == "127.0.0.1/32"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")
def test_as_root_a_directory_that_the_server_cannot_enter_is_replaced_with_a_remark(tmp_path, monkeypatch):
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


@pytest.fixture
def held():
    """The last act as it should be, with the database left out."""
    before = {LEAVER.sku: LEAVER.amount, **SECOND.amounts}
    return Played(
        act=ACTS[3],
        run=Run(no=3, status="SUCCEEDED", outcome="HELD"),
        figures=FeedRun(products_upserted=len(SHRUNK.products), rejects={"PRICE_WITHHELD": 1}),
        held=Held(changes=2053, prices=108, missing=1945),
        job={"attempts": [{"outcome": "succeeded"}]},
        before=before,
        after=before,
    )


def test_an_expected_result_has_no_problems(held):
    assert list(problems(held)) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"run": Run(no=3, outcome="PROMOTED")}, "PROMOTED instead of HELD"),
        (
            {"run": Run(no=3, status="FAILED", error="The server is gone.")},
            "FAILED instead of HELD (The server is gone.)",
        ),
        ({"after": SECOND.amounts}, f"{LEAVER.sku} at nothing, not {LEAVER.amount}"),
        ({"after": {**SECOND.amounts, LEAVER.sku: 1}}, f"{LEAVER.sku} at 1, not {LEAVER.amount}"),
        ({"held": Held(changes=5, prices=5, missing=0)}, "0 products would disappear"),
        ({"job": {"attempts": [{"outcome": "retryable"}, {"outcome": "succeeded"}]}}, "ended retryable, succeeded"),
        ({"figures": FeedRun(products_upserted=26, rejects={})}, "26 products instead of 647"),
        ({"figures": FeedRun(products_upserted=647, rejects={})}, "rejected {}"),
        ({"act": replace(ACTS[3], wanted="PROMOTED")}, "HELD instead of PROMOTED"),
    ],
)
def test_every_difference_is_reported(held, change, problem):
    assert problem in "; ".join(problems(replace(held, **change)))


def test_a_promoted_run_shows_its_file_and_otherwise_only_what_was_shown_before(held):
    promoted = replace(held, act=ACTS[1], run=Run(no=1, outcome="PROMOTED"), before={}, after=FIRST.amounts)
    promoted = replace(promoted, figures=FeedRun(products_upserted=len(FIRST.products), rejects={"PRICE_WITHHELD": 1}))
    assert list(problems(promoted)) == []
    more = {**FIRST.amounts, ARRIVAL.sku: SECOND.amounts[ARRIVAL.sku]}
    assert list(problems(replace(promoted, before=SECOND.amounts, after=more))) == []
    assert ARRIVAL.sku in "".join(problems(replace(promoted, after=more)))
