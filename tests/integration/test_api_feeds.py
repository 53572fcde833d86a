"""Feeds, runs and jobs over the API: what operators read and do, and the code of each refusal."""

import base64

import pytest
from tests.support.api import BASE, Application, refused
from tests.support.catalog import fetch

from harvester.api import cursors
from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.feeds.models import Feed, FeedRun
from harvester.guards import secrets
from harvester.kernel.ids import uuid7
from harvester.ops.models import AuditEvent
from harvester.ops.scopes import Scope
from harvester.runs.models import Run


@pytest.fixture
def operator(database):
    return Application()


def decision(operator, run, **more):
    """Return the body of a decision by a client that has read the run."""
    return {"expected": operator.read(f"/runs/{run.id}")["expected"], **more}


def test_a_feed_is_shown_with_its_settings_and_without_secrets(world, operator):
    [item] = operator.read("/feeds")["items"]
    shown = operator.read(f"/feeds/{item['id']}")
    assert shown["name"] == "Shop by Impact"
    assert shown["credentials"] == ["password"]
    assert shown["lacks"] == []
    assert secrets.open_document("feed", world.feed.id)["password"] not in str(shown)


def test_a_feed_shows_how_its_files_are_read(world, operator):
    given = {"decimal_style": ",", "use_manifest": False, "accepts_url_identity": True, "unchanged_means_seen": True}
    shown = operator.read(f"/feeds/{world.feed.id}")
    assert not {name: shown[name] for name in given}.items() & given.items()
    world.change(**given)
    shown = operator.read(f"/feeds/{world.feed.id}")
    assert {name: shown[name] for name in given} == given


def test_a_run_can_be_named_by_its_number(world, operator):
    run = world.hold()
    by_number, by_id = operator.read(f"/runs/{run.no}"), operator.read(f"/runs/{run.id}")
    # The choices are computed at the time of the request.
    assert {**by_number, "choices": None} == {**by_id, "choices": None}
    body = decision(operator, run, reason="not whole")
    assert operator.write(f"/runs/{run.no}/reject", body).status_code == 202
    for number in (run.no + 1, 2**63 - 1):
        assert refused(operator.get(f"{BASE}/runs/{number}")) == (404, "RUN_NOT_FOUND")
        assert refused(operator.write(f"/runs/{number}/approve", {"expected": body["expected"]}))[0] == 404
    for wrong in ("0", "-1", str(2**63), "x"):
        assert refused(operator.get(f"{BASE}/runs/{wrong}")) == (404, "NOT_FOUND")


def test_a_feed_shows_its_visible_offers_or_why_there_are_none(world, operator):
    world.put(100, 101)
    world.run()
    path = f"/feeds/{world.feed.id}"
    shown = operator.read(path)
    assert (shown["visible_offers"], shown["not_visible_because"], shown["disappearing_offers"]) == (2, None, 0)
    assert shown["offers_expire_at"] > shown["last_run_at"]
    world.pass_time(49)
    for shown in (operator.read(path), operator.read("/feeds")["items"][0]):
        assert shown["visible_offers"] == 0
        assert shown["not_visible_because"].startswith("Not visible because all offers expired on")


def test_feeds_are_paged_by_name_and_filtered_by_state(world, operator):
    for name in ("B", "A", "C"):
        source = Source.objects.create(retailer=world.source.retailer, name=name, kind="AFFILIATE_FEED")
        Feed.objects.create(source=source, network="impact", created_by="test")
    first = operator.read("/feeds", page_size=3)["next_cursor"]
    names, cursor = [], None
    while cursor != "":
        page = operator.read("/feeds", page_size=3, **({"cursor": cursor} if cursor else {}))
        names, cursor = [*names, *(feed["name"] for feed in page["items"])], page["next_cursor"] or ""
    assert names == ["A", "B", "C", "Shop by Impact"]
    assert [feed["name"] for feed in operator.read("/feeds", status="ENABLED")["items"]] == ["Shop by Impact"]
    mark, _ = cursors.decode(first, str, str)
    for wrong in (cursors.encode(mark, "\x00"), base64.b64encode(f'["{mark}","\\ud800"]'.encode()).decode(), "WyJBIl0"):
        assert refused(operator.get(f"{BASE}/feeds", {"cursor": wrong})) == (422, "INVALID_CURSOR")
    assert refused(operator.get(f"{BASE}/feeds", {"cursor": first, "status": "DRAFT"})) == (422, "INVALID_CURSOR")


def test_a_run_is_requested_followed_and_read(world, operator):
    world.put(100, 101)
    answer = operator.write(f"/feeds/{world.feed.id}/run")
    assert answer.status_code == 202
    job = answer.json()
    assert job["state"] == "pending"
    assert answer.headers["Location"] == f"{BASE}/jobs/{job['id']}"
    world.work(job["id"])
    assert operator.read(f"/jobs/{job['id']}")["state"] == "succeeded"
    [run] = operator.read("/runs", feed=str(world.feed.id), status="SUCCEEDED", trigger="MANUAL")["items"]
    assert (run["job_id"], run["outcome"], run["products"]) == (job["id"], "PROMOTED", 2)
    whole = operator.read(f"/runs/{run['id']}")
    assert whole["figures"]["prices_written"] == 2
    assert whole["expected"] is None
    assert {gate["gate"]: gate["holds"] for gate in whole["gates"]}["EXPIRY_SPIKE"] is False
    assert len(operator.read("/offers")["items"]) == 2
    assert operator.read("/runs", trigger="SCHEDULED")["items"] == []


def test_runs_are_paged_newest_first(world, operator):
    for numbers in ((100,), (101,), (102,)):
        world.put(*numbers)
        world.run()
    page = operator.read("/runs", page_size=2)
    rest = operator.read("/runs", page_size=2, cursor=page["next_cursor"])
    numbers = [run["no"] for run in page["items"] + rest["items"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 3
    assert rest["next_cursor"] is None
    changed = operator.get(f"{BASE}/runs", {"cursor": page["next_cursor"], "outcome": "PROMOTED"})
    assert refused(changed) == (422, "INVALID_CURSOR"), "it would skip the first page of this search"


def test_a_test_reports_its_findings_in_its_job(world, operator):
    world.put(100)
    job = operator.write(f"/feeds/{world.feed.id}/test").json()
    world.work(job["id"])
    result = operator.read(f"/jobs/{job['id']}")["result"]
    assert (result["success"], result["rows_valid"]) == (True, 1)


def test_settings_that_a_test_needs_are_reported_by_field(world, operator):
    world.change(host="", username="")
    answer = operator.write(f"/feeds/{world.feed.id}/test")
    assert refused(answer) == (422, "INVALID_SETTINGS")
    assert {error["field"] for error in answer.json()["errors"]} == {"host", "username"}
    world.change(host="127.0.0.1", username="x")


def test_a_feed_is_paused_and_resumed_by_the_key(world, operator):
    assert operator.write(f"/feeds/{world.feed.id}/pause").json()["status"] == "PAUSED"
    assert refused(operator.write(f"/feeds/{world.feed.id}/pause")) == (409, "FEED_WRONG_STATUS")
    assert refused(operator.write(f"/feeds/{world.feed.id}/run")) == (409, "FEED_WRONG_STATUS")
    assert operator.write(f"/feeds/{world.feed.id}/resume").json()["status"] == "ENABLED"
    actors = AuditEvent.objects.filter(verb="FEED_STATUS_CHANGED").values_list("actor_kind", "actor_id", "actor_name")
    assert set(actors) == {("key", str(operator.key.pk), operator.key.name)}


def test_a_held_run_is_approved_with_the_figures_that_were_seen(world, operator):
    run = world.hold()
    before = operator.read(f"/runs/{run.id}")
    assert (before["choices"]["removes"], before["disappearing"]) == (37, None)
    answer = operator.write(f"/runs/{run.id}/approve", decision(operator, run))
    assert answer.status_code == 202
    world.work(answer.json()["id"])
    after = operator.read(f"/runs/{run.id}")
    assert (after["choices"], after["disappearing"]["offers"]) == (None, 37)
    assert after["disappearing"]["disappear_by"] > before["started_at"]
    assert operator.read(f"/runs/{run.id}")["outcome"] == "APPROVED"
    assert operator.read(f"/runs/{run.id}")["decided_by"] == operator.key.name
    actors = AuditEvent.objects.filter(verb="ACTIVATION_APPROVED").values_list("actor_kind", "actor_id")
    assert list(actors) == [("key", str(operator.key.pk))]
    again = {"expected": {"products_upserted": 3, "products_new": 0, "products_missing": 37, "prices_due": 0}}
    assert refused(operator.write(f"/runs/{run.id}/approve", again)) == (409, "ALREADY_APPROVED")


def test_a_held_run_is_rejected_with_a_reason(world, operator):
    run = world.hold()
    body = decision(operator, run)
    assert refused(operator.write(f"/runs/{run.id}/reject", body)) == (422, "INVALID_INPUT")
    assert refused(operator.write(f"/runs/{run.id}/reject", {**body, "reason": "  "})) == (422, "INVALID_INPUT")
    job = operator.write(f"/runs/{run.id}/reject", {**body, "reason": "half a file"}).json()
    world.work(job["id"])
    assert operator.read(f"/runs/{run.id}")["decision_reason"] == "half a file"
    assert refused(operator.write(f"/runs/{run.id}/approve", body)) == (409, "ALREADY_REJECTED")


def test_every_refusal_of_a_decision_has_its_code(world, operator):
    run = world.hold()
    body = decision(operator, run)
    changed = {"expected": {**body["expected"], "products_missing": 1}}
    assert refused(operator.write(f"/runs/{run.id}/approve", changed)) == (409, "FIGURES_CHANGED")
    assert refused(operator.write(f"/runs/{uuid7()}/approve", body)) == (404, "RUN_NOT_FOUND")
    [promoted] = operator.read("/runs", outcome="PROMOTED")["items"]
    assert refused(operator.write(f"/runs/{promoted['id']}/approve", body)) == (409, "NOT_BLOCKED")
    busy = world.running()
    assert refused(operator.write(f"/runs/{run.id}/approve", body)) == (409, "FEED_BUSY")
    assert refused(operator.write(f"/runs/{busy.id}/approve", body)) == (409, "RUN_NOT_SUCCEEDED")
    fetch("DELETE FROM feed_runs WHERE run_id = %s", busy.pk), fetch("DELETE FROM runs WHERE id = %s", busy.pk)
    world.shrink(100, 101)
    assert refused(operator.write(f"/runs/{run.id}/approve", body)) == (409, "STALE_RUN")


def test_a_decision_without_the_figures_is_refused(world, operator):
    run = world.hold()
    for body in ({}, {"expected": {}}, {"expected": {"products_upserted": 3}}, [], None):
        assert refused(operator.write(f"/runs/{run.id}/approve", body)) == (422, "INVALID_INPUT")
    more = {**decision(operator, run), "force": True}
    assert refused(operator.write(f"/runs/{run.id}/approve", more)) == (422, "INVALID_INPUT")
    assert not Job.objects.filter(kind="runs.approve").exists()


@pytest.mark.parametrize("path", ["/feeds/{}", "/feeds/{}/run", "/feeds/{}/pause", "/runs/{}", "/jobs/987654321"])
def test_unknown_things_are_not_found(operator, path):
    target = path.format(uuid7())
    ask = operator.write if target.endswith(("run", "pause")) else lambda address: operator.get(BASE + address)
    assert refused(ask(target))[0] == 404


def test_the_file_of_a_failed_run_is_downloaded_and_its_advice_is_read(world, operator):
    bad = b"<html>Sorry</html>"
    world.put_bytes(bad)
    run = world.run()
    shown = operator.read(f"/runs/{run.id}")
    assert (shown["error_code"], shown["file"]) == ("HTML_INSTEAD_OF_CSV", f"{BASE}/runs/{run.id}/file")
    assert "harvester runs file" in shown["advice"]
    answer = operator.get(shown["file"])
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content) == bad
    assert answer.headers["Content-Disposition"] == f'attachment; filename="run-{run.no}-catalog.txt"'
    assert AuditEvent.objects.get(verb="RUN_FILE_DOWNLOADED").object_id == str(run.id)
    assert refused(Application(Scope.FEEDS_READ).get(shown["file"])) == (403, "SCOPE_MISSING")
    FeedRun.objects.filter(pk=run.pk).update(fetched_hash="0" * 64)
    assert operator.read(f"/runs/{run.id}")["file"] is None
    assert refused(operator.get(shown["file"])) == (404, "ARTIFACT_MISSING")
    FeedRun.objects.filter(pk=run.pk).update(fetched_hash=None)
    assert refused(operator.get(shown["file"])) == (404, "NO_FILE")


def test_a_run_of_a_feed_is_ignored_and_that_is_undone(world):
    admin = Application(Scope.FEEDS_READ, Scope.FEEDS_ADMIN)
    world.put(*range(100, 140))
    run = world.run()
    ignored = admin.write(f"/runs/{run.no}/ignore", {"reason": "prices without VAT"}).json()
    assert (ignored["products"] > 0, Run.objects.get(pk=run.pk).ignored_reason) == (True, "prices without VAT")
    assert refused(admin.write(f"/runs/{run.no}/ignore", {"reason": "again"})) == (409, "CONFLICT")
    assert admin.write(f"/runs/{run.no}/undo-ignore").json()["ignored_at"] is None
    assert Run.objects.get(pk=run.pk).ignored_at is None
