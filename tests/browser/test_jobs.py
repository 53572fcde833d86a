"""Jobs in a real browser."""

import threading

import pytest
from playwright.sync_api import expect
from tests.support.portal import job, state_of, verbs
from tests.support.workers import worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.registry import job_kind

pytestmark = pytest.mark.browser

_half, _go_on = threading.Event(), threading.Event()


@job_kind("test.count")
def count(running) -> str:
    """Stops half-way until the test has seen it."""
    running.progress(1, 4, "quarters")
    _half.wait(60)
    running.progress(3, 4, "quarters")
    _go_on.wait(60)
    return "counted"


def rows(visit):
    return visit.page.locator("#results tbody tr")


def test_the_list_is_filtered_by_hand(viewer):
    job("succeeded")
    failed = job("failed", kind="test.note", error="broken")
    viewer.go("/jobs/")
    expect(rows(viewer)).to_have_count(2)
    viewer.page.locator("summary", has_text="State").click()
    viewer.page.get_by_role("link", name="Failed", exact=True).click()
    expect(rows(viewer)).to_have_count(1)
    expect(rows(viewer)).to_contain_text(f"#{failed}")
    viewer.page.locator("summary", has_text="Kind").click()
    viewer.page.get_by_role("link", name="test.noop", exact=True).click()
    expect(viewer.page.get_by_text("No matches.")).to_be_visible()
    viewer.page.get_by_role("link", name="Clear all").click()
    expect(rows(viewer)).to_have_count(2)


def test_the_list_is_searched_by_keyboard(viewer):
    job("succeeded")
    wanted = job(dedupe_key="feed-7")
    viewer.go("/jobs/")
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type("feed-7")
    viewer.page.keyboard.press("Enter")
    expect(rows(viewer)).to_have_count(1)
    expect(rows(viewer)).to_contain_text(f"#{wanted}")


def test_progress_moves_without_a_reload(viewer):
    _half.clear()
    _go_on.clear()
    job_id = enqueue("test.count").job_id
    viewer.go(f"/jobs/{job_id}/")
    viewer.page.evaluate("() => { window.stayed = true; }")
    expect(viewer.page.locator("#job-body .hv-badge").first).to_have_text("Pending")
    with worker_thread(threads=1):
        expect(viewer.page.locator("progress")).to_have_attribute("value", "25", timeout=20_000)
        _half.set()
        expect(viewer.page.locator("progress")).to_have_attribute("value", "75", timeout=20_000)
        _go_on.set()
        expect(viewer.page.locator("#job-body .hv-badge").first).to_have_text("Succeeded", timeout=20_000)
    expect(viewer.page.get_by_text('"counted"')).to_be_visible()
    expect(viewer.page.locator("#job-body")).not_to_have_attribute("hx-trigger", "every 2s")
    assert viewer.page.evaluate("() => window.stayed")


def test_progress_moves_in_the_list_too(viewer):
    from django.db import connection

    job_id = job("running", progress='{"done": 1, "total": 4}')
    viewer.go("/jobs/")
    expect(viewer.page.locator("progress")).to_have_attribute("value", "25")
    with connection.cursor() as cursor:
        cursor.execute('UPDATE jobs SET progress = \'{"done": 3, "total": 4}\' WHERE id = %s', [job_id])
    expect(viewer.page.locator("progress")).to_have_attribute("value", "75", timeout=20_000)


def test_an_operator_retries_a_failed_job_after_confirming(operator):
    job_id = job("failed", error="broken")
    operator.go(f"/jobs/{job_id}/")
    operator.page.get_by_role("button", name="Retry").click()
    expect(operator.page.get_by_role("dialog")).to_contain_text(f"Run job {job_id} again?")
    operator.page.keyboard.press("Escape")
    expect(operator.page.get_by_role("dialog")).to_be_hidden()
    assert state_of(job_id) == "failed"
    operator.page.get_by_role("button", name="Retry").click()
    operator.page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(operator.page.get_by_role("status").filter(has_text="queued again")).to_be_visible()
    assert state_of(job_id) == "pending"
    assert verbs(object_type="job") == ["JOB_RETRIED"]


def test_an_operator_cancels_a_waiting_job(operator):
    job_id = job(delay=3600)
    operator.go(f"/jobs/{job_id}/")
    operator.page.get_by_role("button", name="Cancel job").click()
    operator.page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()
    expect(operator.page.get_by_role("status").filter(has_text="is cancelled")).to_be_visible()
    assert state_of(job_id) == "cancelled"


def test_a_job_that_ended_in_the_meantime_is_a_message(operator):
    job_id = job("failed")
    operator.go(f"/jobs/{job_id}/")
    operator.page.get_by_role("button", name="Retry").click()
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET state = 'succeeded' WHERE id = %s", [job_id])
    operator.page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(operator.page.get_by_role("alert")).to_contain_text(f"Job {job_id} is succeeded")


def test_a_viewer_has_no_buttons_and_a_forged_post_is_refused(viewer):
    viewer.expected.append("403")
    job_id = job("failed")
    viewer.go(f"/jobs/{job_id}/")
    expect(viewer.page.locator("#job-body")).to_be_visible()
    expect(viewer.page.get_by_role("button", name="Retry")).to_have_count(0)
    forge = """async (path) => {
        const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
        const body = new URLSearchParams({ csrfmiddlewaretoken: token });
        return (await fetch(path, { method: "POST", body })).status;
    }"""
    assert viewer.page.evaluate(forge, f"/jobs/{job_id}/retry/") == 403
    assert state_of(job_id) == "failed"


def test_an_open_traceback_stays_open_while_the_page_refreshes(viewer):
    job_id = job("retryable", error="broken", traceback="deep inside", delay=0)
    viewer.go(f"/jobs/{job_id}/")
    viewer.page.get_by_text("Traceback").click()
    expect(viewer.page.get_by_text("deep inside")).to_be_visible()
    with viewer.page.expect_response(lambda answer: answer.url.endswith(f"/jobs/{job_id}/")):
        pass
    with viewer.page.expect_response(lambda answer: answer.url.endswith(f"/jobs/{job_id}/")):
        pass
    expect(viewer.page.get_by_text("deep inside")).to_be_visible()
