"""The dashboard: figures, warnings, empty states."""

import json
import re

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.support.portal import job, person

from harvester.ops import job_figures
from harvester.ops.models import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    cache.clear()
    client.force_login(person("vera", Role.VIEWER))
    return client


def page(client, **extra) -> str:
    cache.clear()
    return client.get("/", **extra).content.decode()


def words(client) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page(client)))


def test_tiles_count_jobs_by_state_and_lead_to_them(viewer):
    for state, count in {"pending": 3, "running": 2, "failed": 1}.items():
        for _ in range(count):
            job(state)
    tiles = dict(re.findall(r'href="/jobs/\?state=(\w+)".*?<strong>([\d,]+)</strong>', page(viewer)))
    assert tiles == {
        "pending": "3",
        "running": "2",
        "retryable": "0",
        "succeeded": "0",
        "failed": "1",
        "cancelled": "0",
    }


def test_an_engine_without_jobs_says_how_to_get_some(viewer):
    shown = words(viewer)
    for text in (
        "No jobs yet. Run harvester demo to create some.",
        "No failed jobs.",
        "All queues are empty",
        "No jobs ended",
    ):
        assert text in shown


def test_the_latest_failures_come_with_their_error(viewer):
    job_id = job("failed", error="The catalog was cut off.")
    shown = page(viewer)
    assert "The catalog was cut off." in shown
    assert f'href="/jobs/{job_id}/"' in shown


def test_stuck_jobs_are_shown_first(viewer):
    job_id = job("running", silent=400, worker="worker-gone")
    shown = words(viewer)
    assert "1 running job stopped responding" in shown
    assert f"#{job_id}" in shown
    assert "worker-gone, last heartbeat 6 min ago" in shown


def test_queues_are_listed_with_what_waits_in_them(viewer):
    job(queue="feeds")
    job(queue="feeds", delay=3600)
    row = re.search(r"<tr><th[^>]*><a[^>]*>feeds</a></th>(.*?)</tr>", page(viewer))[1]
    assert re.findall(r"<td>([^<]*)</td>", row)[:3] == ["1", "1", "0"]


def test_the_chart_has_a_bar_for_each_of_the_last_24_hours(viewer):
    job("succeeded")
    job("failed")
    data = json.loads(re.search(r'<script id="chart-data"[^>]*>(.*?)</script>', page(viewer), re.DOTALL)[1])
    assert {len(values) for values in data.values()} == {24}
    assert (data["succeeded"][-1], data["failed"][-1], sum(data["cancelled"])) == (1, 1, 0)


@pytest.mark.parametrize(("seconds", "warned"), [(job_figures.OLD_SNAPSHOT_SECONDS, False), (1200, True)])
def test_an_old_transaction_is_warned_of(viewer, monkeypatch, seconds, warned):
    monkeypatch.setattr(job_figures, "oldest_snapshot_seconds", lambda: seconds)
    assert ("A transaction has been open for 20 min" in words(viewer)) is warned


def test_a_refresh_brings_the_figures_and_not_the_page(viewer):
    job("failed")
    piece = page(viewer, headers={"HX-Request": "true"})
    assert "<html" not in piece
    sums = {"sum-visible", "sum-prices", "sum-runs", "sum-rejects"}
    jobs = {"figures", "rest", "chart-data", "chart-empty"}
    assert {"needs", "running", "days-data"} | sums | jobs == set(re.findall(r'id="([\w-]+)"', piece))


def test_many_open_dashboards_ask_the_database_once(viewer):
    job("failed")
    viewer.get("/")
    with CaptureQueriesContext(connection) as asked:
        viewer.get("/")
    assert not [query["sql"] for query in asked if re.search("jobs|feeds|runs|alerts", query["sql"])]


def test_the_dashboard_asks_few_questions(viewer):
    for _ in range(10):
        job("failed")
    cache.clear()
    with CaptureQueriesContext(connection) as asked:
        viewer.get("/")
    assert len(asked) <= 25
