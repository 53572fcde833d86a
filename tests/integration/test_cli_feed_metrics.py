"""`harvester feed metrics`: what the runs of a feed's last days came to."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from tests.support.command import harvester as process
from tests.support.commands_inside import harvester
from tests.support.portal_feeds import feed, run

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def acme():
    one, other = feed(), feed("Bolt by Impact")
    good = {"rows_read": 1200, "prices_written": 1100, "products_rejected": 7}
    run(one, hours_ago=49, figures=good)
    run(one, hours_ago=50, figures={"rows_read": 10, "prices_written": 5})
    run(one, "FAILED", hours_ago=25)
    run(one, outcome="SKIPPED", hours_ago=0)
    run(one, outcome="REJECTED", hours_ago=24 * 6)
    run(one, hours_ago=24 * 40, figures=good)
    run(other, figures=good)
    return one


def test_figures_are_those_of_the_feeds_last_days_in_all_and_by_day(acme):
    result = harvester("feed", "metrics", acme, "--json").json
    assert result["totals"] == {
        "runs": 5, "failed": 1, "held": 1, "skipped": 1, "rows": 1210, "prices": 1105, "rejects": 7,
        "median_seconds": 1.5,
    }  # fmt: skip
    today = timezone.now().date()
    days = {day.pop("day"): day for day in result["days"]}
    assert list(days) == [(today - timedelta(days=back)).isoformat() for back in range(30, -1, -1)]
    assert {name: sum(day[name] for day in days.values()) for name in ("runs", "rows", "failed")} == {
        "runs": 5, "rows": 1210, "failed": 1,
    }  # fmt: skip
    then = (timezone.now() - timedelta(hours=25)).date().isoformat()
    assert (days[then]["failed"], days[then]["median_seconds"]) == (1, None)


def test_the_table_has_every_day_and_their_sum(acme):
    shown = process("feed", "metrics", acme, "--days", 3).out
    assert "Acme by Impact, last 3 days" in shown
    assert len(re.findall(r"^ *\d{4}-\d\d-\d\d ", shown, re.MULTILINE)) == 4
    assert re.search(r"total +4 +1 +0 +1 +1,210 +1,105 +7 +1.5 s", shown), shown


def test_a_feed_that_does_not_exist_is_code_3():
    assert harvester("feed", "metrics", "Nobody").code == 3
