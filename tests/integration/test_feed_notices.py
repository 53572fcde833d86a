"""Warnings about a run as a whole: kept with it, shown wherever runs are shown, and alerts that end."""

import json

import pytest
from django.db import transaction
from tests.support.api import Application
from tests.support.commands_inside import harvester
from tests.support.portal import job, person
from tests.support.portal_feeds import FOUND, READY, feed, run

from harvester.feeds import notices
from harvester.feeds.models import FeedRun
from harvester.feeds.notices import MOST_EXAMPLES, Notice, NoticeCode
from harvester.ops.models import Alert, Role

pytestmark = pytest.mark.usefixtures("database")
UPGRADES = NoticeCode.IDENTITY_UPGRADES
NOTICE = Notice(code=UPGRADES, message="12 of 100 products have a <b>new ID</b>.", count=12, examples=("S-1, S-2",))


def test_a_notice_is_shown_on_the_page_by_the_command_and_over_the_api(client):
    made = run(feed(), figures={"notices": [NOTICE.as_json()]})
    client.force_login(person("vera", Role.VIEWER))
    page = client.get(f"/runs/{made.no}/").content.decode()
    assert "12 of 100 products have a &lt;b&gt;new ID&lt;/b&gt;." in page
    assert notices.RULES[UPGRADES].advice in page
    shown = harvester("feed", "inspect", made.no)
    assert "12 of 100 products" in shown.out
    assert "S-1, S-2" in shown.out
    assert harvester("feed", "inspect", made.no, "--json").json["notices"] == [NOTICE.as_json()]
    assert Application().read(f"/runs/{made.id}")["notices"] == [NOTICE.as_json()]


def test_the_result_of_a_feed_test_shows_notices_too(client):
    made = feed(status="ENABLED", **READY)
    found = json.dumps({**FOUND, "notices": [NOTICE.as_json()]})
    tested = job("succeeded", "feeds.test", args={"feed_id": str(made.pk)}, result=found)
    client.force_login(person("vera", Role.VIEWER))
    assert "12 of 100 products" in client.get(f"/feeds/{made.pk}/tests/{tested}/").content.decode()


def test_a_step_replaces_its_own_notices_and_leaves_others():
    other = {"code": "OF_ANOTHER_STEP", "message": "Kept.", "count": None, "examples": []}
    made = run(feed(), figures={"notices": [other, NOTICE.as_json()]})
    with transaction.atomic():
        notices.store(made, [], checked=[UPGRADES])
    assert FeedRun.objects.get(pk=made.pk).notices == [other]


def test_examples_are_bounded_and_carry_no_secret():
    examples = ("https://user:hunter2secret@shop.test/a", "x" * 1000, *(str(number) for number in range(100)))
    stored = Notice(code=UPGRADES, message="m", examples=examples).as_json()
    assert len(stored["examples"]) == MOST_EXAMPLES
    assert "hunter2secret" not in str(stored)
    assert max(map(len, stored["examples"])) <= notices.EXAMPLE_CHARACTERS


def test_an_alert_lasts_until_a_run_is_free_of_the_notice():
    made = feed()
    loud, quiet = run(made, figures={"notices": [NOTICE.as_json()]}), run(made)
    with transaction.atomic():
        notices.raise_alerts(made, loud)
    alert = Alert.objects.get(kind=UPGRADES.value)
    assert (alert.detail["run_no"], alert.resolved_at) == (loud.no, None)
    assert "12 of 100" in alert.body
    with transaction.atomic():
        notices.raise_alerts(made, quiet)
    alert.refresh_from_db()
    assert alert.resolved_at is not None
