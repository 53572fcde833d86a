"""What people may do with a feed in which state, what follows for its schedule, and which trace it leaves."""

from dataclasses import replace
from datetime import timedelta

import asyncssh
import pytest
from structlog.testing import capture_logs
from tests.support.feed_jobs import ensure_kind, jobs_of
from tests.support.feed_rows import ADMIN, make_feed, make_source
from tests.support.tables import rows

from harvester.catalog.models import Source
from harvester.catalog.states import SourceKind
from harvester.engine.models import Job
from harvester.feeds import verbs
from harvester.feeds.change_detection import INGESTED
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.settings import InvalidSettings
from harvester.feeds.states import SCHEDULES, FeedStatus
from harvester.feeds.verbs.lifecycle import WrongStatus
from harvester.feeds.verbs.locked_feed import RunHeld, database_now
from harvester.guards.host_keys import HostKey
from harvester.guards.models import SealedSecret
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.ids import uuid7
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIgqRN8PM3+VDuTw0RnFVPWnYw4mPZCdxjjWqwKcTyzU"
SETTINGS = {"network": "impact", "host": "sftp.example.com", "path": "/Acme/catalog.csv.gz", "username": "acme"}
OTHER_KEY = HostKey.parse(asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode())
DRAFT, ENABLED, PAUSED, DISABLED = FeedStatus
INGESTED_BEFORE = {
    "last_remote_mtime": "2026-01-01T00:00Z",
    "last_remote_size": 5,
    "last_content_hash": "ab",
    "last_ingested_run_no": 7,
    "last_parser_version": 1,
}


@pytest.fixture(autouse=True)
def kinds():
    ensure_kind("feeds.run")
    ensure_kind("feeds.test")


def ready(status=DRAFT, **columns):
    """A feed that has everything it needs."""
    planned = database_now() + timedelta(minutes=7) if status == ENABLED and columns.get("schedule_hours") else None
    return make_feed(status=status, **{"host_keys": KEY, "next_run_at": planned, **columns})


def again(feed):
    return Feed.objects.select_related("source").get(pk=feed.pk)


def audited():
    return rows("SELECT verb, changed, actor_id FROM audit_events WHERE object_type = 'feed' ORDER BY id")


def is_after(feed, hours):
    """Whether the next run is that many hours from now; the test takes less than a minute."""
    planned = again(feed).next_run_at
    if hours is None:
        return planned is None
    return timedelta(0) <= database_now() + timedelta(hours=hours) - planned < timedelta(minutes=1)


VERBS = {
    "enable": lambda feed: verbs.enable(ADMIN, feed.id),
    "pause": lambda feed: verbs.pause(ADMIN, feed.id),
    "resume": lambda feed: verbs.resume(ADMIN, feed.id),
    "re_enable": lambda feed: verbs.re_enable(ADMIN, feed.id, acknowledged=True),
    "run_now": lambda feed: verbs.run_now(ADMIN, feed.id),
    "test_run": lambda feed: verbs.test_run(ADMIN, feed.id),
    "delete_draft": lambda feed: verbs.delete_draft(ADMIN, feed.id),
}
#: State and verb -> the state that follows; what is not here is refused.
ALLOWED = {
    (DRAFT, "enable"): ENABLED,
    (DRAFT, "test_run"): DRAFT,
    (DRAFT, "delete_draft"): None,
    (ENABLED, "pause"): PAUSED,
    (ENABLED, "run_now"): ENABLED,
    (ENABLED, "test_run"): ENABLED,
    (PAUSED, "resume"): ENABLED,
    (PAUSED, "test_run"): PAUSED,
    (DISABLED, "re_enable"): ENABLED,
    (DISABLED, "test_run"): DISABLED,
}


#: The state that a verb leads to; in it the verb is refused.
AIMS = {"enable": ENABLED, "resume": ENABLED, "re_enable": ENABLED, "pause": PAUSED}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", FeedStatus)
def test_each_state_allows_its_verbs_and_no_others(status, verb):
    feed = ready(status)
    if (status, verb) not in ALLOWED:
        already = status == AIMS.get(verb)
        with pytest.raises(WrongStatus, match=f"is {status} already" if already else f"is {status}; only"):
            VERBS[verb](feed)
        assert again(feed).status == status
        assert audited() == []
        return
    VERBS[verb](feed)
    after = ALLOWED[status, verb]
    assert list(Feed.objects.values_list("status", flat=True)) == ([after] if after else [])
    assert len(audited()) == 1


# The table of 5.3: the time of the next run.


@pytest.mark.parametrize("hours", [None, *SCHEDULES])
@pytest.mark.parametrize(("status", "verb"), [(DRAFT, "enable"), (PAUSED, "resume"), (DISABLED, "re_enable")])
def test_a_feed_that_becomes_enabled_runs_a_whole_interval_later(status, verb, hours):
    feed = ready(status, schedule_hours=hours)
    VERBS[verb](feed)
    assert is_after(feed, hours)


def test_a_new_feed_is_a_draft_and_so_has_no_next_run_yet():
    feed = verbs.create(ADMIN, make_source().id, {**SETTINGS, "schedule_hours": 6})
    assert (feed.status, again(feed).next_run_at) == (DRAFT, None)


def test_a_paused_feed_has_no_next_run():
    feed = ready(ENABLED, schedule_hours=6)
    verbs.pause(ADMIN, feed.id)
    assert again(feed).next_run_at is None


@pytest.mark.parametrize(("status", "planned"), [(DRAFT, None), (ENABLED, 12), (PAUSED, None), (DISABLED, None)])
def test_another_frequency_counts_from_now_where_the_feed_is_enabled(status, planned):
    feed = ready(status, schedule_hours=1)
    verbs.update(ADMIN, feed.id, {"schedule_hours": 12})
    assert is_after(feed, planned)


def test_without_a_frequency_a_feed_runs_only_when_asked():
    feed = ready(ENABLED, schedule_hours=1)
    verbs.update(ADMIN, feed.id, {"schedule_hours": None})
    assert again(feed).next_run_at is None


@pytest.mark.parametrize("change", [{"accepts_url_identity": True}, {"schedule_hours": 1}])
def test_other_changes_leave_the_next_run_where_it_is(change):
    feed = ready(ENABLED, schedule_hours=1)
    verbs.update(ADMIN, feed.id, change)
    assert again(feed).next_run_at == feed.next_run_at


def test_run_now_leaves_the_next_run_where_it_is():
    feed = ready(ENABLED, schedule_hours=1)
    verbs.run_now(ADMIN, feed.id)
    assert again(feed).next_run_at == feed.next_run_at


# Section 11: recovery.


def test_re_enabling_forgets_the_failures():
    feed = ready(DISABLED, consecutive_failures=3)
    verbs.re_enable(ADMIN, feed.id, acknowledged=True)
    assert again(feed).consecutive_failures == 0
    assert audited() == [("FEED_STATUS_CHANGED", ["consecutive_failures", "status"], ADMIN.id)]


def test_resuming_does_not_forget_the_failures():
    feed = ready(PAUSED, consecutive_failures=2)
    verbs.resume(ADMIN, feed.id)
    assert again(feed).consecutive_failures == 2


@pytest.mark.parametrize("acknowledged", [False, None, "yes"])
def test_re_enabling_needs_somebody_who_looked_at_the_cause(acknowledged):
    feed = ready(DISABLED)
    with pytest.raises(InvalidInput, match="acknowledged is missing; it must be true"):
        verbs.re_enable(ADMIN, feed.id, acknowledged=acknowledged)
    assert again(feed).status == DISABLED


LACKS = {
    "network": ({"network": "unheard_of"}, "network is 'unheard_of'; it must be one of google_merchant, impact"),
    "host": ({"host": ""}, "host is missing; it must be the server's name, such as sftp.example.com."),
    "path": ({"path": ""}, "path is missing; it must be the path of the file"),
    "username": ({"username": ""}, "username is missing; it must be the account"),
    "credentials": ({"password": ""}, "credentials are missing; a password or private_key must be entered."),
    "host_keys": ({"host_keys": ""}, "host_keys is empty; the server's host key must be approved"),
    "transport": ({"transport": "FTP"}, "unless an operator sets AFFILIATE_FEED_ALLOW_PLAIN_FTP=true"),
    "expiry_hours": ({"source": {"expiry_hours": None}}, "it must be a whole number from 1 to 168"),
}


@pytest.mark.parametrize(("status", "verb"), [(DRAFT, "enable"), (PAUSED, "resume"), (DISABLED, "re_enable")])
@pytest.mark.parametrize("lack", LACKS)
def test_a_feed_is_enabled_only_with_everything_that_a_run_needs(lack, status, verb):
    columns, message = LACKS[lack]
    columns = {**columns, "source": make_source(**columns.get("source", {}))}
    feed = ready(status, **columns)
    with pytest.raises(InvalidSettings) as refused:
        VERBS[verb](feed)
    assert list(refused.value.problems) == [lack]
    assert message in refused.value.problems[lack]
    assert again(feed).status == status


def test_everything_that_is_missing_is_reported_at_once():
    feed = make_feed(host="", path="", password="")
    with pytest.raises(InvalidSettings) as refused:
        verbs.enable(ADMIN, feed.id)
    assert set(refused.value.problems) == {"host", "path", "credentials", "host_keys"}


def test_a_test_run_needs_no_host_key_but_the_rest():
    verbs.test_run(ADMIN, make_feed().id)
    with pytest.raises(InvalidSettings, match="path is missing"):
        verbs.test_run(ADMIN, make_feed(make_source("other"), path="").id)


def test_plain_ftp_needs_no_host_key(settings):
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)
    feed = make_feed(transport="FTP")
    assert verbs.enable(ADMIN, feed.id).status == ENABLED


def test_plain_ftp_needs_a_password_and_not_a_key(settings):
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)
    feed = make_feed(transport="FTP", secret_fields=["private_key"])
    with pytest.raises(InvalidSettings, match="a password must be entered"):
        verbs.enable(ADMIN, feed.id)


# Creating and deleting.


def test_a_feed_is_made_for_a_source_with_what_was_entered():
    source = make_source(expiry_hours=None)
    with capture_logs() as logged:
        feed = verbs.create(
            ADMIN, source.id, {**SETTINGS, "host": "  SFTP.Example.com ", "thresholds": {"expiry_share": 0.4}}
        )
    feed = again(feed)
    assert (feed.host, feed.network, feed.created_by, feed.secret_version) == (
        "sftp.example.com",
        "impact",
        ADMIN.id,
        0,
    )
    assert feed.thresholds == {"expiry_share": 0.4}
    assert feed.source.expiry_hours == 48
    assert feed.lock_no > 0
    assert [event[0] for event in audited()] == ["FEED_CREATED", "EXPIRY_HOURS_CHANGED"]
    made = next(line for line in logged if line["event"] == "FEED_CREATED")
    assert (made["feed_id"], made["source_id"]) == (str(feed.id), str(source.id))
    assert (made["network"], made["by"]) == ("impact", ADMIN.id)


def test_a_source_has_one_feed():
    feed = make_feed()
    with pytest.raises(Conflict, match="has a feed already"):
        verbs.create(ADMIN, feed.source_id, SETTINGS)


@pytest.mark.parametrize("kind", [SourceKind.DIRECT, SourceKind.OTHER])
def test_only_affiliate_sources_have_feeds(kind):
    with pytest.raises(InvalidInput, match=f"is {kind}; only AFFILIATE_FEED sources"):
        verbs.create(ADMIN, make_source(kind=kind).id, SETTINGS)
    assert Feed.objects.count() == 0


def test_a_feed_needs_a_source_and_a_network():
    with pytest.raises(NotFound, match="There is no source"):
        verbs.create(ADMIN, uuid7(), SETTINGS)
    with pytest.raises(InvalidSettings, match="network is missing"):
        verbs.create(ADMIN, make_source().id, {"host": "sftp.example.com"})


def test_a_deleted_draft_leaves_no_credentials_behind():
    feed = ready()
    verbs.delete_draft(ADMIN, feed.id)
    assert SealedSecret.objects.count() == 0
    assert Source.objects.filter(pk=feed.source_id).exists()
    with pytest.raises(NotFound, match="may have been deleted"):
        verbs.enable(ADMIN, feed.id)


def test_a_draft_with_runs_stays():
    feed = ready()
    run = Run.objects.create(
        kind="AFFILIATE_FEED", subject_id=feed.pk, source_id=feed.source_id, trigger="MANUAL", status="RUNNING"
    )
    FeedRun.objects.create(run=run, feed=feed)
    with pytest.raises(Conflict, match="has runs"):
        verbs.delete_draft(ADMIN, feed.id)


# Changing settings.


def test_a_change_is_audited_by_the_names_of_what_changed():
    feed = ready(host="old.example.com", default_currency="USD")
    with capture_logs() as logged:
        verbs.update(ADMIN, feed.id, {"path": "/new.csv", "default_currency": "usd", "max_rows": "1000"})
    assert audited() == [("FEED_UPDATED", ["max_rows", "path"], ADMIN.id)]
    assert logged[0]["changed_fields"] == ["max_rows", "path"]
    found = rows("SELECT detail -> 'before' ->> 'max_rows', detail -> 'after' ->> 'max_rows' FROM audit_events")
    assert found == [(None, "1000")]


def test_a_change_to_the_same_leaves_no_trace():
    feed = ready()
    verbs.update(ADMIN, feed.id, {"path": f" {feed.path} "})
    assert audited() == []
    assert again(feed).updated_at == feed.updated_at


CHANGES = {
    "network": "google_merchant", "host": "other.example.com", "port": 2222, "path": "/other.csv", "username": "x",
    "encoding": "latin-1", "default_currency": "EUR", "decimal_style": ",", "max_file_bytes": 1, "max_rows": 1,
    "max_products": 1, "unknown_stock": "REJECT", "kept_parameters": ["ref"],
    "compression": "gzip", "use_manifest": False, "schedule_hours": 1,
    "thresholds": {"expiry_most": 1}, "accepts_url_identity": True, "unchanged_means_seen": True,
}  # fmt: skip


SAME_READING = {
    *("compression", "use_manifest", "schedule_hours", "thresholds", "accepts_url_identity", "unchanged_means_seen"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_read_again_after_a_change(name):
    feed = ready(**INGESTED_BEFORE)
    verbs.update(ADMIN, feed.id, {name: CHANGES[name]})
    left = [getattr(again(feed), column) for column in INGESTED]
    assert all(value is None for value in left) == (name not in SAME_READING)


@pytest.mark.parametrize(("name", "is_kept"), [("host", False), ("port", False), ("path", True), ("username", True)])
def test_another_server_needs_a_new_approval(name, is_kept):
    feed = ready(seen_host_key=KEY)
    verbs.update(ADMIN, feed.id, {name: CHANGES[name]})
    assert (again(feed).host_keys, again(feed).seen_host_key) == ((KEY, KEY) if is_kept else ("", ""))


@pytest.mark.parametrize("change", [{"host": "other.example.com"}, {"path": ""}])
def test_an_enabled_feed_stays_able_to_run(change):
    feed = ready(ENABLED)
    with pytest.raises(Conflict, match=r"could not run any more.*Pause it first"):
        verbs.update(ADMIN, feed.id, change)
    assert (again(feed).host, again(feed).path, again(feed).host_keys) == (feed.host, feed.path, KEY)
    assert audited() == []


def test_thresholds_are_changed_one_by_one():
    feed = ready(thresholds={"expiry_share": 0.4, "reject_least": 5})
    verbs.update(ADMIN, feed.id, {"thresholds": {"reject_least": None, "shock_move": "0.9"}})
    assert again(feed).thresholds == {"expiry_share": 0.4, "shock_move": 0.9}


def test_plain_ftp_is_selected_knowingly_and_logged(settings):
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)
    feed = ready()
    with pytest.raises(InvalidSettings, match="you must accept the risk"):
        verbs.update(ADMIN, feed.id, {"transport": "ftp"})
    with capture_logs() as logged:
        verbs.update(ADMIN, feed.id, {"transport": "ftp"}, accept_insecure=True)
    [found] = [line for line in logged if line["event"] == "INSECURE_TRANSPORT_SELECTED"]
    assert (found["log_level"], found["transport"], found["by"]) == ("warning", "FTP", ADMIN.id)
    assert [event[0] for event in audited()] == ["FEED_UPDATED", "INSECURE_TRANSPORT_SELECTED"]


# Expiry.


def test_expiry_hours_count_at_once_and_are_logged():
    feed = ready(ENABLED)
    with capture_logs() as logged:
        verbs.update(ADMIN, feed.id, {"expiry_hours": 24})
    assert again(feed).source.expiry_hours == 24
    [found] = logged
    assert (found["event"], found["log_level"]) == ("EXPIRY_HOURS_CHANGED", "warning")
    assert (found["old_value"], found["new_value"], found["by"]) == (48, 24, ADMIN.id)


@pytest.mark.parametrize(
    ("before", "given", "level"),
    [(None, {}, "info"), (None, {"expiry_hours": 24}, "info"), (24, {"expiry_hours": 48}, "warning"), (24, {}, None)],
)
def test_the_expiry_hours_of_a_new_feed_are_a_warning_only_where_they_change_what_is_shown(before, given, level):
    source = make_source(expiry_hours=before)
    with capture_logs() as logged:
        verbs.create(ADMIN, source.id, {**SETTINGS, **given})
    found = [line["log_level"] for line in logged if line["event"] == "EXPIRY_HOURS_CHANGED"]
    assert found == ([level] if level else [])


@pytest.mark.parametrize("hours", [1, 168, "72"])
def test_expiry_hours_reach_from_an_hour_to_a_week(hours):
    feed = ready()
    assert verbs.set_expiry_hours(ADMIN, feed.id, hours).source.expiry_hours == int(hours)


@pytest.mark.parametrize("hours", [0, 169, -1, 1.5, 48.0, None, True, "a day", ""])
def test_other_expiry_hours_are_refused(hours):
    feed = ready()
    with pytest.raises(InvalidInput, match=r"expiry_hours is .*; it must be a whole number from 1 to 168"):
        verbs.set_expiry_hours(ADMIN, feed.id, hours)
    assert again(feed).source.expiry_hours == 48


def test_expiry_hours_wait_for_the_decision_about_a_held_run():
    feed = ready(source=make_source(held_run_no=7, held_since=database_now()))
    with pytest.raises(RunHeld, match="while run 7 is held; approve or reject it first"):
        verbs.update(ADMIN, feed.id, {"expiry_hours": 24, "path": "/other.csv"})
    assert (again(feed).source.expiry_hours, again(feed).path) == (48, feed.path)


# Run now.


def test_run_now_is_a_time_and_a_job():
    feed = ready(ENABLED, **INGESTED_BEFORE)
    before = database_now()
    with capture_logs() as logged:
        made = verbs.run_now(ADMIN, feed.id)
    assert before < again(feed).manual_run_requested_at < database_now()
    assert jobs_of("feeds.run") == [{"feed_id": str(feed.id), "trigger": "MANUAL"}]
    job = Job.objects.get(id=made.job_id)
    assert (job.queue, job.dedupe_key) == ("feeds", None)
    assert again(feed).last_content_hash == "ab"
    assert [line["event"] for line in logged] == ["MANUAL_RUN_REQUESTED", "FEED_ENQUEUED"]


def test_each_click_gets_its_own_job_and_the_latest_time():
    feed = ready(ENABLED)
    verbs.run_now(ADMIN, feed.id)
    first = again(feed).manual_run_requested_at
    verbs.run_now(ADMIN, feed.id)
    assert again(feed).manual_run_requested_at > first
    assert len(jobs_of("feeds.run")) == 2


def test_a_forced_run_reads_the_same_file_again():
    feed = ready(ENABLED, **INGESTED_BEFORE)
    verbs.run_now(ADMIN, feed.id, force=True)
    assert again(feed).last_content_hash is None


def test_a_test_run_is_a_job_that_carries_only_the_feed():
    feed = ready()
    verbs.test_run(ADMIN, feed.id)
    assert jobs_of("feeds.test") == [{"feed_id": str(feed.id)}]
    assert again(feed).manual_run_requested_at is None


# Host keys.


def test_an_approved_key_is_pinned_and_logged_by_its_fingerprint():
    feed = make_feed(host_keys=KEY)
    with capture_logs() as logged:
        verbs.approve_host_key(ADMIN, feed.id, f" {OTHER_KEY} comment\n")
    assert again(feed).host_keys == str(OTHER_KEY)
    assert audited() == [("HOST_KEY_APPROVED", ["host_keys"], ADMIN.id)]
    assert logged[0]["fingerprint"] == OTHER_KEY.fingerprint
    verbs.approve_host_key(ADMIN, feed.id, KEY, keep_others=True)
    assert again(feed).host_keys.splitlines() == [str(OTHER_KEY), KEY]


def test_the_key_that_was_seen_can_be_approved_by_its_fingerprint():
    key = OTHER_KEY
    feed = make_feed(seen_host_key=str(key))
    verbs.approve_host_key(ADMIN, feed.id, key.fingerprint)
    assert again(feed).host_keys == str(key)


@pytest.mark.parametrize("seen", ["", KEY])
def test_a_key_that_was_not_seen_cannot_be_approved_by_its_fingerprint(seen):
    feed = make_feed(seen_host_key=seen)
    with pytest.raises(Conflict, match="Nothing was approved"):
        verbs.approve_host_key(ADMIN, feed.id, OTHER_KEY.fingerprint)


@pytest.mark.parametrize("text", ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa " + KEY.split()[1], "no key"])
def test_what_is_no_key_is_not_approved(text):
    feed = make_feed()
    with pytest.raises(InvalidInput, match="not a host key; one looks like"):
        verbs.approve_host_key(ADMIN, feed.id, text)
    assert again(feed).host_keys == ""
