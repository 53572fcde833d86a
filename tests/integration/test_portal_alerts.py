"""Alerts in the portal, and the audit log's list of verbs."""

import re

import pytest
from tests.support.audit_verbs import recorded_verbs
from tests.support.catalog import fetch
from tests.support.catalog_rows import make_feed
from tests.support.portal import MOMENTS_AGO, person

from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.ops.models import Alert, Role
from harvester.portal import links
from harvester.portal.audit_log import VERBS

pytestmark = pytest.mark.django_db
BODY = "EXPIRY_SPIKE: 37 of 40 products are missing.\nApprove or reject the run."


@pytest.fixture
def viewer(client):
    client.force_login(person("vera", Role.VIEWER))
    return client


def alert(number: int = 1, kind: str = "RUN_HELD", **more) -> int:
    return raise_alert(kind, f"{kind}:feed:{number}", f"Shop {number}: run 12 is held", BODY, **more)


def words(client, path: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", client.get(path).content.decode()).split())


def titles(client, query: str = "") -> list[str]:
    return re.findall(r'hv-lead.*?hv-kind">(Shop \d+)', client.get(f"/alerts/{query}").content.decode())


def test_open_alerts_come_first_and_newest_first(viewer):
    for number in range(1, 5):
        alert(number)
    resolve_alert("RUN_HELD:feed:4", "decided")
    assert titles(viewer) == ["Shop 3", "Shop 2", "Shop 1", "Shop 4"]


def test_pages_go_on_where_the_last_one_ended(viewer, monkeypatch):
    monkeypatch.setattr("harvester.portal.alerts.AlertAdmin.list_per_page", 2)
    for number in range(1, 6):
        alert(number)
    resolve_alert("RUN_HELD:feed:5")
    resolve_alert("RUN_HELD:feed:4")
    seen, query = [], ""
    while query is not None:
        seen.append(titles(viewer, query))
        found = re.search(r'rel="next" href="([^"]+)"', viewer.get(f"/alerts/{query}").content.decode())
        query = found[1].replace("&amp;", "&") if found else None
    assert seen == [["Shop 3", "Shop 2"], ["Shop 1", "Shop 5"], ["Shop 4"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?state=open", ["Shop 3", "Shop 2"]),
        ("?state=resolved", ["Shop 1"]),
        ("?severity=critical", ["Shop 2"]),
        ("?kind=RUN_FAILED", ["Shop 3"]),
        ("?state=nonsense", ["Shop 3", "Shop 2", "Shop 1"]),
    ],
)
def test_filters_choose_by_state_severity_and_kind(viewer, query, expected):
    alert(1)
    alert(2, severity="critical")
    alert(3, kind="RUN_FAILED")
    resolve_alert("RUN_HELD:feed:1")
    assert titles(viewer, query) == expected


def test_a_page_shows_everything_about_an_alert(viewer, monkeypatch):
    feed = make_feed("Kestrel")
    monkeypatch.setitem(links.PAGES, "feed", "admin:ops_auditevent_changelist")
    number = alert(7, detail={"feed_id": str(feed.id), "run_no": 12})
    alert(7, detail={"feed_id": str(feed.id), "run_no": 12})
    shown = words(viewer, f"/alerts/{number}/")
    for text in (
        "Shop 7: run 12 is held",
        "37 of 40 products are missing. Approve or reject",
        " 2 times",
        "Feed Kestrel",
        "Run 12",
        "Slack is not set up",
    ):
        assert text in shown
    assert re.search(rf"Open since {MOMENTS_AGO}", shown)


def test_the_resolution_and_a_failed_delivery_are_shown(viewer):
    number = alert()
    resolve_alert("RUN_HELD:feed:1", "Run 13 was promoted in its place.")
    fetch("UPDATE alerts SET delivery_error = 'SLACK_REFUSED: no such channel' WHERE id = %s", number)
    shown = words(viewer, f"/alerts/{number}/")
    assert "Resolution Run 13 was promoted in its place." in shown
    assert "Not delivered yet: SLACK_REFUSED: no such channel" in shown


def test_a_feed_that_is_gone_is_named_by_its_number(viewer):
    number = alert(detail={"feed_id": "0198a6f0-0000-7000-8000-000000000000"})
    assert "0198a6f0-0000-7000-8000-000000000000 (deleted)" in words(viewer, f"/alerts/{number}/")


def test_a_list_asks_no_question_for_each_row(viewer, django_assert_max_num_queries):
    for number in range(1, 40):
        alert(number, detail={"feed_id": "0198a6f0-0000-7000-8000-000000000000", "run_no": number})
    with django_assert_max_num_queries(10):
        viewer.get("/alerts/")
    assert Alert.objects.count() == 39


def test_the_audit_log_offers_every_verb_that_the_code_records():
    found = recorded_verbs()
    assert {"RUN_PROMOTED", "DISPLAY_PRIMARY_SET", "USER_DEACTIVATED", "FEED_STATUS_CHANGED"} <= found
    assert sorted(VERBS) == sorted(found)
