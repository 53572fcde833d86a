"""Jobs in the portal: lists, the page of one job, retry and cancel."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.support.catalog_rows import make_feed, make_run
from tests.support.portal import job, person, state_of, verbs

from harvester.engine.models import Job
from harvester.ops.models import AuditEvent, Role

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def viewer(client):
    client.force_login(person("vera", Role.VIEWER))
    return client


@pytest.fixture
def operator(client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


def listed(answer) -> list[int]:
    return [int(found) for found in re.findall(r'id="job-(\d+)"', answer.content.decode())]


def text(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_the_list_shows_the_newest_first(viewer):
    ids = [job() for _ in range(3)]
    assert listed(viewer.get("/jobs/")) == ids[::-1]


def test_an_empty_list_says_what_to_do(viewer):
    assert "No jobs yet. Run <code>harvester demo</code> to create some." in viewer.get("/jobs/").content.decode()
    assert "No matches." in viewer.get("/jobs/?state=failed").content.decode()


@pytest.mark.parametrize("state", ["pending", "running", "retryable", "succeeded", "failed", "cancelled"])
def test_the_list_is_filtered_by_state(viewer, state):
    ids = {name: job(name) for name in ("pending", "running", "retryable", "succeeded", "failed", "cancelled")}
    assert listed(viewer.get(f"/jobs/?state={state}")) == [ids[state]]


def test_the_list_is_filtered_by_queue_and_kind(viewer):
    wanted = job(kind="test.note", queue="slow")
    job(kind="test.note")
    job(queue="slow")
    assert listed(viewer.get("/jobs/?queue=slow&kind=test.note")) == [wanted]


def test_the_queue_filter_offers_every_queue_in_which_something_waits(viewer):
    job(queue="only-here")
    job("running", queue="only-there")
    job(queue="in-lanes", lane="a")
    page = viewer.get("/jobs/").content.decode()
    assert {"?queue=only-here", "?queue=only-there", "?queue=in-lanes"} <= set(re.findall(r'href="([^"]+)"', page))


@pytest.mark.parametrize("words", ["#{id}", "{id}", "test.note", "feed-7", "worker-x"])
def test_a_job_is_found_by_id_kind_key_and_worker(viewer, words):
    job()
    wanted = job("running", kind="test.note", dedupe_key="feed-7", worker="worker-x")
    assert listed(viewer.get("/jobs/", {"q": words.format(id=wanted)})) == [wanted]


@pytest.mark.parametrize("words", ["99999999999999999999999", "%", "_", "'", "a\x00b", "½", "²", SCRIPT])
def test_odd_words_find_nothing_and_break_nothing(viewer, words):
    job()
    answer = viewer.get("/jobs/", {"q": words})
    assert answer.status_code == 200
    assert SCRIPT not in answer.content.decode()


def test_pages_go_forth_and_back_without_losing_or_doubling_a_job(viewer):
    ids = [job() for _ in range(60)][::-1]

    def follow(answer, rel):
        link = re.search(rf'rel="{rel}" href="([^"]+)"', answer.content.decode())
        return viewer.get(f"/jobs/{link[1]}") if link else None

    first = viewer.get("/jobs/")
    second = follow(first, "next")
    third = follow(second, "next")
    assert listed(first) + listed(second) + listed(third) == ids
    assert follow(third, "next") is None
    assert listed(follow(third, "prev")) == listed(second)
    assert listed(follow(second, "prev")) == listed(first)
    assert follow(first, "prev") is None


@pytest.mark.parametrize("cursor", ["after=x", "before=", "after=1~2", "after=99999999999999999999"])
def test_a_bad_cursor_breaks_nothing(viewer, cursor):
    job()
    assert viewer.get(f"/jobs/?{cursor}", follow=True).status_code == 200


def test_the_list_asks_few_questions_and_counts_nothing(viewer):
    for _ in range(60):
        job("running", progress='{"done": 1, "total": 2}')
    viewer.get("/jobs/")
    with CaptureQueriesContext(
        connection,
    ) as asked:
        viewer.get("/jobs/")
    assert len(asked) <= 6
    assert not [query["sql"] for query in asked if "COUNT(" in query["sql"].upper()]


def test_the_list_shows_attempts_progress_and_errors(viewer):
    job("running", progress='{"done": 30, "total": 120, "note": "rows"}', attempt=2)
    job("failed", error="The catalog was cut off.")
    job(delay=7300)
    page = viewer.get("/jobs/").content.decode()
    assert '<progress max="100" value="25"' in page
    assert ">2/3<" in page
    assert re.search(r"due <time[^>]*>in 2 h</time>", page)
    assert "The catalog was cut off." in page


@pytest.mark.parametrize(
    "said", ['{"done": "x"}', '{"done": 5}', "[]", '{"done": 5, "total": 0}', '{"done": 9, "total": 3}', "{}"]
)
def test_odd_progress_breaks_nothing(viewer, said):
    job_id = job("running", progress=said)
    assert viewer.get("/jobs/").status_code == 200
    assert viewer.get(f"/jobs/{job_id}/").status_code == 200


def test_a_stage_that_counts_nothing_is_named_once_and_without_a_number(viewer):
    found = job("running", progress='{"done": 0, "total": null, "note": "comparing with the catalog"}')
    for address in ("/jobs/", f"/jobs/{found}/"):
        shown = text(viewer.get(address))
        assert shown.count("comparing with the catalog") == 1
        assert "0 comparing" not in shown


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_a_job_that_has_ended_shows_no_progress(viewer, state):
    found = job(state, progress='{"done": 30, "total": 120, "note": "parsed 30 rows"}')
    for address in ("/jobs/", f"/jobs/{found}/"):
        page = viewer.get(address).content.decode()
        assert "parsed 30 rows" not in page
        assert "<progress" not in page


def test_periodic_jobs_that_succeeded_are_hidden_until_somebody_asks_for_them(viewer):
    done, failed, other = job("succeeded", "feeds.tick"), job("failed", "feeds.tick"), job("succeeded")
    assert listed(viewer.get("/jobs/")) == [other, failed]
    assert listed(viewer.get("/jobs/recent/")) == [other, failed]
    for query in ("periodic=show", "queue=maintenance&kind=feeds.tick", f"q={done}"):
        assert done in listed(viewer.get(f"/jobs/?{query}")), query


def test_a_job_says_which_feed_it_is_about(viewer):
    feed = make_feed("Acme")
    run = make_run(feed, status="RUNNING", outcome=None)
    of_feed = job("running", "feeds.run", args={"feed_id": str(feed.pk)})
    of_run = job("pending", "runs.approve", args={"run_id": str(run.pk)})
    of_source = job("pending", "catalog.resolve", args={"source_id": str(feed.source_id)})
    job("pending", "feeds.run", args={"feed_id": "nonsense", "run_id": 7})
    for address in ("/jobs/", "/jobs/recent/"):
        page = viewer.get(address).content.decode()
        assert page.count('<span class="hv-note">Acme</span>') == 3
    for job_id in (of_feed, of_run, of_source):
        assert f'href="/feeds/{feed.pk}/"' in viewer.get(f"/jobs/{job_id}/").content.decode()
    assert f'href="/runs/{run.no}/"' in viewer.get(f"/jobs/{of_run}/").content.decode()


def test_the_first_page_refreshes_itself_and_others_stay_put(viewer):
    for _ in range(60):
        job()
    assert 'hx-trigger="every 3s"' in viewer.get("/jobs/").content.decode()
    assert "hx-trigger" not in viewer.get(f"/jobs/?after={Job.objects.latest('id').pk}").content.decode()
    assert "hx-trigger" not in viewer.get("/jobs/?q=test").content.decode()


def test_a_refresh_brings_the_rows_and_not_the_page(viewer):
    job_id = job()
    answer = viewer.get("/jobs/", headers={"HX-Request": "true"})
    assert listed(answer) == [job_id]
    assert "<html" not in answer.content.decode()


def test_recent_jobs_are_the_twenty_newest(viewer):
    ids = [job() for _ in range(25)]
    assert listed(viewer.get("/jobs/recent/")) == ids[:-21:-1]


def test_stuck_jobs_are_those_without_a_heartbeat(viewer):
    job("running", silent=10)
    silent = job("running", silent=301, worker="worker-gone")
    answer = viewer.get("/jobs/stuck/")
    assert listed(answer) == [silent]
    assert "worker-gone" in text(answer)


def test_no_stuck_job_is_said_in_words(viewer):
    assert "No stuck jobs." in text(viewer.get("/jobs/stuck/"))


def test_events_are_listed_and_filtered_by_job(viewer):
    one, two = job(), job()
    everything = viewer.get("/job-events/").content.decode()
    assert f"/jobs/{one}/" in everything
    assert f"/jobs/{two}/" in everything
    only = viewer.get(f"/job-events/?job_id={one}").content.decode()
    assert f"/jobs/{two}/" not in only
    assert viewer.get("/job-events/?job_id=x").status_code == 200


def test_the_page_of_a_job_shows_everything(viewer):
    job_id = job(
        "failed",
        kind="test.note",
        args={"key": "shoes"},
        lane="a.example",
        dedupe_key="once",
        error="It broke.",
        traceback="Traceback (most recent call last): deep inside",
    )
    page = text(viewer.get(f"/jobs/{job_id}/"))
    for fact in ("test.note", "shoes", "a.example", "once", "It broke.", "deep inside", "attempt 1 of 3", "worker-1"):
        assert fact in page


def test_what_jobs_say_is_inert(viewer):
    job_id = job("failed", args={"key": SCRIPT}, error=SCRIPT, traceback=SCRIPT, worker=SCRIPT, kind="test.note")
    for address in (f"/jobs/{job_id}/", "/jobs/", "/jobs/recent/", "/"):
        assert SCRIPT not in viewer.get(address).content.decode()


@pytest.mark.parametrize("address", ["/jobs/424242/", "/jobs/0/", "/jobs/99999999999999999999/", "/jobs/x/"])
def test_an_unknown_job_is_a_page_of_ours(viewer, address):
    answer = viewer.get(address)
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


@pytest.mark.parametrize(
    ("state", "live"), [("pending", True), ("running", True), ("retryable", True), ("failed", False)]
)
def test_the_page_of_a_job_is_live_while_the_job_is(viewer, state, live):
    assert ("hx-trigger" in viewer.get(f"/jobs/{job(state)}/").content.decode()) is live


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        ("pending", {"cancel"}),
        ("running", {"cancel"}),
        ("retryable", {"retry", "cancel"}),
        ("succeeded", set()),
        ("failed", {"retry"}),
        ("cancelled", {"retry"}),
    ],
)
def test_operators_are_offered_what_the_state_allows(operator, state, buttons):
    page = operator.get(f"/jobs/{job(state)}/").content.decode()
    assert set(re.findall(r'data-dialog="ask-(\w+)"', page)) == buttons


def test_viewers_are_offered_nothing(viewer):
    page = viewer.get(f"/jobs/{job('retryable')}/").content.decode()
    assert "data-dialog" not in page
    assert "<dialog" not in page


def test_a_retry_drives_the_job_again_and_is_audited_once(operator):
    job_id = job("failed")
    answer = operator.post(f"/jobs/{job_id}/retry/", follow=True)
    assert state_of(job_id) == "pending"
    assert f"Job {job_id} is queued again" in text(answer)
    assert verbs(object_type="job") == ["JOB_RETRIED"]
    event = AuditEvent.objects.get(verb="JOB_RETRIED")
    assert (event.actor_name, event.object_id) == ("otto", str(job_id))
    assert LogEntry.objects.count() == 0


def test_a_cancel_ends_a_waiting_job_and_asks_a_running_one(operator):
    waiting, running = job(), job("running")
    assert f"Job {waiting} is cancelled" in text(operator.post(f"/jobs/{waiting}/cancel/", follow=True))
    assert f"Job {running} was asked to stop" in text(operator.post(f"/jobs/{running}/cancel/", follow=True))
    assert (state_of(waiting), state_of(running)) == ("cancelled", "running")
    assert verbs(object_type="job") == ["JOB_CANCELLED", "JOB_CANCELLED"]


@pytest.mark.parametrize(("act", "state"), [("retry", "succeeded"), ("retry", "running"), ("cancel", "failed")])
def test_what_is_no_longer_possible_is_said_and_changes_nothing(operator, act, state):
    job_id = job(state)
    answer = operator.post(f"/jobs/{job_id}/{act}/", follow=True)
    assert answer.status_code == 200
    assert f"Job {job_id} is {state}" in text(answer)
    assert state_of(job_id) == state
    assert verbs(object_type="job") == []


def test_a_retry_whose_dedupe_key_is_taken_is_a_message(operator):
    old = job("failed", dedupe_key="one")
    job(dedupe_key="one")
    assert "has the dedupe key of an open job" in text(operator.post(f"/jobs/{old}/retry/", follow=True))


def test_acting_on_an_unknown_job_is_not_found(operator):
    assert operator.post("/jobs/424242/retry/").status_code == 404
    assert operator.post("/jobs/424242/cancel/").status_code == 404


def test_a_forged_post_of_a_viewer_is_refused(viewer):
    job_id = job("failed")
    answer = viewer.post(f"/jobs/{job_id}/retry/")
    assert answer.status_code == 403
    assert "Not allowed" in answer.content.decode()
    assert state_of(job_id) == "failed"
    assert verbs(object_type="job") == []
