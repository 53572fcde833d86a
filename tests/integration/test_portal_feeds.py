"""Feeds in the portal: the list, the tabs of a feed, and the buttons for each role."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from tests.support.portal import MOMENTS_AGO, job, person, verbs
from tests.support.portal_feeds import COMPLETE, FOUND, KEY, READY, SCRIPT, UNKNOWN, feed, run

from harvester.catalog.models import Source
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.guards.host_keys import HostKey
from harvester.ops.models import Role
from harvester.portal.display import distance

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("vera", Role.VIEWER))
    return client


@pytest.fixture
def admin(client):
    client.force_login(person("ada", Role.ADMIN))
    return client


def text(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def listed(answer) -> list[str]:
    return re.findall(r'class="hv-kind">([^<]+)<', answer.content.decode())


def test_the_list_is_sorted_by_name_and_shows_the_state_of_feeds(viewer):
    shown = feed("B", status="ENABLED", schedule_hours=6, is_display_primary=True, last_promoted_count=1234, **READY)
    feed("C", last_promoted_count=77)
    feed("A")
    run(shown, hours_ago=5)
    failed = run(shown, "FAILED", error_code="AUTH_FAILED", error="no")
    answer = viewer.get("/feeds/")
    assert listed(answer) == ["A", "B", "C"]
    for words in ("Enabled", f"#{failed.no}", "60 min ago", "Every 6 h", "1,234", "Manual"):
        assert words in text(answer), words
    assert "77" not in text(answer), "nobody sees the products of a source that is not the primary"


@pytest.mark.parametrize("path", ["/feeds/?after=zz", "/offers/?after=1", f"/review/?after=2026-01-01~{UUID(int=1)}~1"])
def test_a_page_after_the_last_row_does_not_say_that_the_list_is_empty(viewer, path):
    page = text(viewer.get(path))
    assert "No more results." in page
    assert "First" in page


def test_an_empty_list_says_how_to_begin(viewer):
    assert "harvester feed add" in text(viewer.get("/feeds/"))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("status=PAUSED", ["Paused Shop"]),
        ("network=google_merchant", ["Merchant Shop"]),
        ("q=merch", ["Merchant Shop"]),
        ("q=nobody", []),
    ],
)
def test_the_list_is_filtered_and_searched(viewer, query, wanted):
    feed("Paused Shop", status="PAUSED")
    feed("Merchant Shop", network="google_merchant")
    assert listed(viewer.get(f"/feeds/?{query}")) == wanted


def test_the_list_is_paged_by_name_with_any_characters(viewer):
    names = [f"A~{number:03} 'x'" for number in range(120)]
    for name in names:
        feed(name)
    seen, where = [], "/feeds/"
    while where:
        answer = viewer.get(where)
        seen += listed(answer)
        following = re.search(r'rel="next" href="([^"]+)"', answer.content.decode())
        where = "/feeds/" + following[1].replace("&amp;", "&") if following else None
    assert [name.replace("&#x27;", "'") for name in seen] == names


def queries(client, path) -> int:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert client.get(path).status_code == 200
    return len(asked)


def test_no_page_asks_the_database_for_each_row(admin):
    one = feed("A", **READY)
    run(one)
    paths = ["/feeds/", f"/feeds/{one.pk}/", f"/feeds/{one.pk}/runs/", f"/feeds/{one.pk}/metrics/"]
    before = [queries(admin, path) for path in paths]
    for number in range(10):
        run(feed(f"B{number}"))
        run(one)
    assert [queries(admin, path) for path in paths] == before
    assert max(before) <= 30


#: What each role is offered on the page of a feed; the rest needs a higher one.
OFFERED = {
    "DRAFT": (set(), {"Test connection"}, {"Enable", "Edit", "Delete draft"}),
    "ENABLED": (set(), {"Run now", "Test connection", "Pause"}, {"Edit", "Run even if unchanged"}),
    "PAUSED": (set(), {"Test connection", "Resume"}, {"Edit"}),
    "DISABLED": (set(), {"Test connection"}, {"Re-enable", "Edit"}),
}
BUTTONS = set().union(*(words for roles in OFFERED.values() for words in roles))


@pytest.mark.parametrize("status", OFFERED)
def test_each_role_is_offered_what_it_may_do_in_that_state(client, status):
    path = f"/feeds/{feed(status=status, **READY).pk}/"
    expected: set[str] = set()
    for role, more in zip(Role, OFFERED[status], strict=True):
        expected |= more
        client.force_login(person(f"the-{role}", role))
        headline = client.get(path, headers={"HX-Request": "true"}).content.decode()
        found = {words for words in BUTTONS if re.search(rf">\s*{re.escape(words)}\s*</", headline)}
        assert found == expected, role


def test_a_viewer_finds_no_form_and_no_dialog_on_any_page_of_a_feed(viewer):
    one = feed(status="DRAFT", seen_host_key=str(KEY), **COMPLETE)
    test = job("succeeded", "feeds.test", args={"feed_id": str(one.pk)}, result='{"success": true}')
    for path in ("", f"{one.pk}/", f"{one.pk}/runs/", f"{one.pk}/metrics/", f"{one.pk}/tests/{test}/"):
        page = viewer.get(f"/feeds/{path}").content.decode()
        actions = set(re.findall(r'action="([^"]+)"', page)) - {"/logout/"}
        assert (actions, "<dialog" in page, "formaction" in page) == (set(), False, False), path


def test_the_configuration_shows_what_is_set_what_is_missing_and_the_key_to_approve(viewer):
    one = feed(
        seen_host_key=str(KEY), secret_fields=["private_key"], thresholds={"expiry_share": 0.4}, host="h.example"
    )
    page = text(viewer.get(f"/feeds/{one.pk}/"))
    for words in (
        *("path is missing", "Private key Set", "Password not set", "Not approved", KEY.fingerprint, "40 %"),
        *("1 set for this feed", "500 MB", "Consumers will not see these offers"),
    ):
        assert words in page, words


def test_a_disabled_feed_shows_why_it_stopped(viewer):
    one = feed(status="DISABLED", **READY)
    run(one, "FAILED", error_code="AUTH_FAILED", error=f"The server refused {SCRIPT}")
    page = viewer.get(f"/feeds/{one.pk}/")
    assert "Disabled due to repeated failures." in text(page)
    assert "AUTH_FAILED" in text(page)
    assert SCRIPT not in page.content.decode()


@pytest.mark.parametrize(
    ("before", "action", "sent", "after", "event"),
    [
        ("DRAFT", "enable", {}, "ENABLED", "FEED_STATUS_CHANGED"),
        ("ENABLED", "pause", {}, "PAUSED", "FEED_STATUS_CHANGED"),
        ("PAUSED", "resume", {}, "ENABLED", "FEED_STATUS_CHANGED"),
        ("DISABLED", "re-enable", {"promise": "yes"}, "ENABLED", "FEED_STATUS_CHANGED"),
        ("DISABLED", "re-enable", {}, "DISABLED", None),
        ("PAUSED", "run", {}, "PAUSED", None),
        ("ENABLED", "run", {}, "ENABLED", "MANUAL_RUN_REQUESTED"),
        ("ENABLED", "force", {}, "ENABLED", "MANUAL_RUN_REQUESTED"),
        ("ENABLED", "test", {}, "ENABLED", "FEED_TEST_REQUESTED"),
        ("ENABLED", "delete", {}, "ENABLED", None),
    ],
)
def test_a_button_calls_one_verb_and_shows_the_result(admin, *, before, action, sent, after, event):
    one = feed(status=before, **READY)
    answer = admin.post(f"/feeds/{one.pk}/{action}/", sent, follow=True)
    assert answer.status_code == 200
    assert ('role="alert"' in answer.content.decode()) == (event is None)
    assert Feed.objects.get(pk=one.pk).status == after
    assert verbs(object_id=str(one.pk)) == ([event] if event else [])


def test_run_now_says_that_it_is_queued_and_shows_it_until_it_began(admin):
    one = feed(status="ENABLED", **READY)
    answer = admin.post(f"/feeds/{one.pk}/run/", {"back": "/feeds/?status=ENABLED"}, follow=True)
    assert answer.redirect_chain == [("/feeds/?status=ENABLED", 302)]
    assert "Run queued." in text(answer)
    assert "Queued" in text(admin.get("/feeds/"))
    assert "Run queued" in text(admin.get(f"/feeds/{one.pk}/"))


@pytest.mark.parametrize(
    "where", ["//elsewhere.example/", "https://elsewhere.example/", "javascript:alert(1)", "/\\evil"]
)
def test_a_button_leads_to_no_other_host(admin, where):
    one = feed(status="ENABLED", **READY)
    assert admin.post(f"/feeds/{one.pk}/pause/", {"back": where}).headers["Location"] == f"/feeds/{one.pk}/"


def test_a_draft_is_deleted_and_the_list_follows(admin):
    one = feed()
    assert admin.post(f"/feeds/{one.pk}/delete/").headers["Location"] == "/feeds/"
    assert not Feed.objects.exists()
    assert admin.get(f"/feeds/{one.pk}/").status_code == 404


def test_a_key_is_approved_only_if_it_is_the_one_that_was_shown(admin):
    one = feed(seen_host_key=str(KEY), **{**READY, "host_keys": ""})
    other = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
    admin.post(f"/feeds/{one.pk}/host-key/", {"key": other})
    assert Feed.objects.get(pk=one.pk).host_keys == ""
    answer = admin.post(f"/feeds/{one.pk}/host-key/", {"key": KEY.fingerprint, "then": "test"})
    assert Feed.objects.get(pk=one.pk).host_keys == str(KEY)
    assert re.fullmatch(rf"/feeds/{one.pk}/tests/\d+/", answer.headers["Location"])


def test_runs_are_those_of_the_feed_filtered_by_trigger_and_status(viewer):
    one, other = feed("A"), feed("B")
    good, bad = run(one, hours_ago=2), run(one, "FAILED", trigger="MANUAL", error_code="DNS_FAILED")
    run(other)

    def numbers(query=""):
        page = text(viewer.get(f"/feeds/{one.pk}/runs/{query}", headers={"HX-Request": "true"}))
        return [int(found) for found in re.findall(r"#(\d+)", page)]

    assert numbers() == [bad.no, good.no]
    assert numbers("?status=FAILED") == numbers("?trigger=MANUAL") == [bad.no]
    assert numbers("?outcome=PROMOTED&trigger=SCHEDULED") == [good.no]
    assert numbers("?status=RUNNING") == []


@pytest.mark.parametrize("path", ["", "{}/", "{}/runs/", "{}/metrics/"])
def test_the_menu_marks_feeds_and_nothing_else(viewer, path):
    page = viewer.get("/feeds/" + path.format(feed().pk)).content.decode()
    menu = page[page.index('<nav class="hv-nav"') : page.index("</nav>")]
    assert re.findall(r'aria-current="page"><span[^>]*>[^<]*</span>([^<]+)<', menu) == ["Affiliate feeds"]


@pytest.mark.parametrize("query", ["status=%00", "network=%00", "q=%00", "after=%00", "before=%00", "after=", "x=1"])
def test_strange_addresses_of_the_list_break_nothing(viewer, query):
    feed()
    assert viewer.get(f"/feeds/?{query}").status_code in (200, 302)


def test_metrics_draw_the_last_runs_oldest_first(viewer):
    one = feed()
    run(one, hours_ago=24 * 40, figures={"rows_read": 999})
    run(one, hours_ago=3, figures={"rows_read": 10, "prices_written": 4, "products_rejected": 1})
    run(one, hours_ago=2, outcome="SKIPPED")
    run(one, hours_ago=1, outcome="HELD", figures={"rows_read": 30, "prices_written": 0, "products_rejected": 2})
    page = viewer.get(f"/feeds/{one.pk}/metrics/").content.decode()
    data = json.loads(re.search(r'id="charts-data" type="application/json">(.*?)</script>', page)[1])
    values = {name: chart["values"] for name, chart in data["charts"].items()}
    assert values == {
        "rows": [10, None, 30],
        "prices": [4, None, 0],
        "rejects": [1, None, 2],
        "duration": [1.5, 1.5, 1.5],
    }
    assert re.findall(r"<strong>([^<]*)</strong><small>in", page) == ["3", "0", "1", "1", "4", "1.5 s"]


def test_a_test_shows_everything_that_it_found(viewer):
    one = feed()
    test = job("succeeded", "feeds.test", args={"feed_id": str(one.pk)}, result=json.dumps(FOUND))
    page = viewer.get(f"/feeds/{one.pk}/tests/{test}/")
    for words in (
        *("The file can be read", "pipe", "Gzip", "A (IR)", "Product Name", "Mystery", "Tent", "9.99", "EUR"),
        *("Missing title 2", "Bad GTIN 5", "it is empty", "2.0 KB", KEY.fingerprint),
    ):
        assert words in text(page).replace("\xa0", " "), words
    assert SCRIPT not in page.content.decode()
    assert "hx-trigger" not in page.content.decode()


def test_a_test_that_met_an_unknown_key_asks_an_admin_to_approve_it(admin):
    one = feed(seen_host_key=str(KEY))
    test = job("succeeded", "feeds.test", args={"feed_id": str(one.pk)}, result=json.dumps(UNKNOWN))
    path = f"/feeds/{one.pk}/tests/{test}/"
    page = text(admin.get(path))
    assert "Its key is not approved yet" in page
    assert "Approve and test again" in page
    Feed.objects.filter(pk=one.pk).update(host_keys=str(KEY))
    assert "Approve and test again" not in text(admin.get(path)), "it is approved already"


@pytest.mark.parametrize(
    ("state", "more", "words", "live"),
    [
        ("pending", {}, "Waiting for a worker", True),
        ("running", {"progress": '{"done": 5, "total": 10, "note": "downloading"}'}, "Downloading", True),
        ("failed", {"error": "The worker ran out of memory."}, "The worker ran out of memory.", False),
        ("succeeded", {}, "result was deleted", False),
    ],
)
def test_a_test_without_a_result_shows_its_state(viewer, state, more, words, live):
    one = feed()
    test = job(state, "feeds.test", args={"feed_id": str(one.pk)}, **more)
    page = viewer.get(f"/feeds/{one.pk}/tests/{test}/")
    assert words in text(page)
    assert ("hx-trigger" in page.content.decode()) == live


def test_only_tests_of_the_feed_are_shown_under_it(viewer):
    one, other = feed("A"), feed("B")
    strange = [job("succeeded", "feeds.test", args={"feed_id": str(other.pk)}), job("succeeded"), 10**17]
    assert {viewer.get(f"/feeds/{one.pk}/tests/{number}/").status_code for number in strange} == {404}


def test_the_steps_of_a_draft_lead_to_its_first_run(admin):
    one = feed(**COMPLETE)
    path = f"/feeds/{one.pk}/"

    def following() -> str:
        return re.search(r'class="hv-next">\s*<div><strong>([^<]+)', admin.get(path).content.decode())[1]

    assert following() == "Credentials"
    Feed.objects.update(secret_fields=["password"])
    assert following() == "Host key"
    Feed.objects.update(host_keys=str(KEY))
    assert following() == "Test"
    admin.post(f"{path}test/")
    assert following() == "Test", "it is not done yet"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET result = '{\"success\": true}', created_at = now() + interval '1 min'")
    assert following() == "Enable"
    Feed.objects.update(updated_at=timezone.now() + timezone.timedelta(hours=1))
    assert following() == "Test", "a test of other settings proves nothing"
    Feed.objects.update(status="ENABLED")
    assert following() == "Make primary", "consumers see nothing before"
    assert f'href="/sources/{one.source_id}/primary/"' in admin.get(path).content.decode()
    Source.objects.update(is_display_primary=True)
    assert "hv-next" not in admin.get(path).content.decode()


def test_a_feed_opens_with_visible_offers_freshness_and_last_runs(admin):
    one = feed(status="ENABLED", **READY)
    ran = run(one)
    page = text(admin.get(f"/feeds/{one.pk}/"))
    parts = ("Visible offers and freshness", "Last runs", f" {ran.no} ", "Transport", "Credentials")
    places = [page.index(part, page.index(parts[0])) for part in parts]
    assert places == sorted(places), "settings of the server come last"


def test_the_documents_and_the_form_name_columns_networks_and_how_to_allow_a_local_server(admin):
    form = text(admin.get("/feeds/add/"))
    guide = (ROOT / "docs/how-to/set-up-a-feed.md").read_text()
    readme = (ROOT / "README.md").read_text()
    for network, known in networks().items():
        assert known.label in form
        assert f"`{network}`" in guide
        assert f"`{network}`" in readme
    for page in (form, guide, readme):
        assert "HARVESTER_EGRESS_ALLOW" in page
        assert all(word in page for word in ("title", "link", "price", "currency"))


def test_what_a_run_changed_in_the_catalog_is_shown_without_a_reload(admin):
    one = feed(status="ENABLED", **READY)
    ask = {"headers": {"HX-Request": "true"}}
    fresh = admin.get(f"/feeds/{one.pk}/?part=catalog", **ask).content.decode()
    assert f'href="/sources/{one.source_id}/primary/"' in fresh
    Source.objects.filter(pk=one.source_id).update(is_display_primary=True, last_promoted_at=timezone.now())
    fresh = text(admin.get(f"/feeds/{one.pk}/?part=catalog", **ask))
    assert re.search(rf"Last promoted {MOMENTS_AGO}", fresh)
    assert "Consumers do not see" not in fresh
    assert "Enabled" not in fresh, "only its own part"


def test_a_changed_host_key_is_shown_next_to_the_approved_one(admin):
    other = UNKNOWN["seen_host_key"]["line"].replace("GKJl", "GKJm")
    one = feed(status="ENABLED", **READY, seen_host_key=other)
    [dialog] = re.findall(
        '<dialog [^>]*id="ask-host-key".*?</dialog>', admin.get(f"/feeds/{one.pk}/").content.decode(), re.DOTALL
    )
    assert "has changed" in dialog
    assert KEY.fingerprint in dialog
    assert HostKey.parse(other).fingerprint in dialog


def test_a_paused_feed_says_who_stopped_it(viewer):
    assert "Paused by admin." in text(viewer.get(f"/feeds/{feed(status='PAUSED', **READY).pk}/"))


def test_a_feed_by_ftp_shows_no_private_key(admin):
    page = text(admin.get(f"/feeds/{feed(**{**READY, 'transport': 'FTP', 'host_keys': ''}).pk}/"))
    assert "Password Set" in page
    assert "Private key" not in page


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (59, "in 59 s"),
        (3599, "in 59 min"),
        (86_399, "in 23 h"),
        (172_799, "in 47 h"),
        (172_800, "in 2 d"),
        (-90_000, "25 h ago"),
    ],
)
def test_a_deadline_is_not_rounded_from_two_days_to_one(seconds, words):
    assert distance(seconds) == words
