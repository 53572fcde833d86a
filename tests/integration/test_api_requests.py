"""All requests to the API: entity tags, idempotent writes, limits, errors without internals."""

import threading
from dataclasses import replace

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from tests.support.api import BASE, Application, refused
from tests.support.log_lines import logged

from harvester.api import keys
from harvester.api import offers as offers_module
from harvester.api.keys import WRONG_KEYS
from harvester.engine.models import Job
from harvester.kernel.ids import uuid7
from harvester.ops import idempotency


@pytest.fixture
def application(database):
    return Application()


def run_path(world):
    return f"/feeds/{world.feed.id}/run"


def jobs():
    return Job.objects.filter(kind="feeds.run").count()


def test_every_answer_has_a_request_id_of_its_own_that_the_problem_and_the_log_repeat(application, client, monkeypatch):
    tag = application.get(f"{BASE}/offers").headers["ETag"]
    answers = [
        application.get(f"{BASE}/offers"),
        application.get(f"{BASE}/offers", headers={"If-None-Match": tag}),
        application.get(f"{BASE}/openapi.json"),
        application.get(f"{BASE}/nothing-here"),
        application.get(f"{BASE}/offers", {"page_size": 0}),
        application.delete(f"{BASE}/offers"),
        application.post(f"{BASE}/offers", b"x" * 70_000, content_type="application/json"),
        client.get(f"{BASE}/offers", headers={"X-Request-Id": "chosen by the client"}),
    ]
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert [answer.status_code for answer in answers] == [200, 304, 200, 404, 422, 405, 413, 401]
    assert len(set(ids)) == len(answers)
    assert all(len(number) == 32 for number in ids)
    assert [answer.json()["request_id"] for answer in answers[3:]] == ids[3:]

    def fail(*_):
        raise RuntimeError("something nobody expected")

    monkeypatch.setattr(offers_module.search, "search", fail)
    with logged() as lines:
        answer = application.get(f"{BASE}/offers")
        [line] = [line for line in lines() if line["event"] == "API_REQUEST_FAILED"]
    assert line["request_id"] == answer.headers["X-Request-Id"] == answer.json()["request_id"]


def test_an_unchanged_response_has_no_body(application):
    first = application.get(f"{BASE}/offers")
    tag = first.headers["ETag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = application.get(f"{BASE}/offers", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert application.get(f"{BASE}/offers", headers={"If-None-Match": '"other"'}).status_code == 200
    assert "no-store" not in first.headers["Cache-Control"]
    assert "Set-Cookie" not in first.headers


def test_head_answers_like_get_without_the_body(application):
    answer = application.head(f"{BASE}/offers")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["ETag"] == application.get(f"{BASE}/offers").headers["ETag"]


def test_the_same_write_with_the_same_key_is_done_once(world, application):
    first = application.write(run_path(world), None, **{"Idempotency-Key": "order-1"})
    again = application.write(run_path(world), None, **{"Idempotency-Key": "order-1"})
    assert (first.status_code, jobs()) == (202, 1)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (None, "true")
    assert application.write(run_path(world), None, **{"Idempotency-Key": "order-2"}).status_code == 202
    assert application.write(run_path(world)).status_code == 202
    assert jobs() == 3


def test_a_key_of_another_request_is_refused_and_another_application_has_its_own(world, application):
    application.write(run_path(world), None, **{"Idempotency-Key": "order-1"})
    other = application.write(f"/feeds/{world.feed.id}/pause", None, **{"Idempotency-Key": "order-1"})
    assert refused(other) == (422, "IDEMPOTENCY_KEY_REUSED")
    body = application.write(run_path(world), {"x": 1}, **{"Idempotency-Key": "order-1"})
    assert refused(body) == (422, "IDEMPOTENCY_KEY_REUSED")
    Application().write(run_path(world), None, **{"Idempotency-Key": "order-1"})
    assert jobs() == 2


def test_a_refused_write_may_be_tried_again_under_its_key(world, application):
    world.change(status="PAUSED")
    retry = {"Idempotency-Key": "order-1"}
    assert refused(application.write(run_path(world), None, **retry)) == (409, "FEED_WRONG_STATUS")
    world.change(status="ENABLED")
    assert application.write(run_path(world), None, **retry).status_code == 202


def test_two_writes_at_the_same_time_under_one_key_are_one(world, application):
    answers = []
    barrier = threading.Barrier(2)

    def ask():
        barrier.wait()
        try:
            answers.append(
                Application(token=application.token).write(run_path(world), None, **{"Idempotency-Key": "order-1"})
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert jobs() == 1


def test_answers_are_deleted_after_a_day(world, application):
    retry = {"Idempotency-Key": "order-1"}
    application.write(run_path(world), None, **retry)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE api_answers SET created_at = created_at - interval '25 hours'")
    assert application.write(run_path(world), None, **retry).status_code == 202
    assert jobs() == 2
    with connection.cursor() as cursor:
        cursor.execute("UPDATE api_answers SET created_at = created_at - interval '25 hours'")
    assert idempotency.delete_old() == 1


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 101, "ü"])
def test_an_odd_idempotency_key_is_refused(world, application, key):
    assert refused(application.write(run_path(world), None, **{"Idempotency-Key": key})) == (422, "INVALID_INPUT")
    assert jobs() == 0


def test_a_key_over_its_rate_limit_gets_the_time_to_wait(application, settings):
    settings.CONFIG = replace(settings.CONFIG, api_rate_per_minute=4)
    assert application.get(f"{BASE}/offers").headers["RateLimit-Remaining"] == "0"
    answer = application.get(f"{BASE}/offers")
    assert refused(answer) == (429, "RATE_LIMITED")
    assert 1 <= int(answer.headers["Retry-After"]) <= 15
    assert Application().get(f"{BASE}/offers").status_code == 200


@pytest.fixture
def no_recovery(monkeypatch):
    """The limit of refused requests does not recover during a test, however slow the machine is."""
    monkeypatch.setattr(keys, "WRONG_KEYS", replace(WRONG_KEYS, seconds=86_400.0))


@pytest.mark.usefixtures("no_recovery")
def test_an_address_with_many_wrong_keys_has_to_wait_but_its_valid_keys_do_not(application):
    stranger = Application(token="hvk_" + "x" * 43)
    for _ in range(WRONG_KEYS.burst):
        assert refused(stranger.get(f"{BASE}/offers")) == (401, "KEY_INVALID")
    answer = stranger.get(f"{BASE}/offers")
    assert refused(answer) == (429, "RATE_LIMITED")
    assert int(answer.headers["Retry-After"]) >= 1
    assert refused(stranger.get(f"{BASE}/offers", REMOTE_ADDR="192.0.2.7")) == (401, "KEY_INVALID")
    assert application.get(f"{BASE}/offers").status_code == 200


@pytest.mark.usefixtures("no_recovery")
def test_addresses_of_one_ipv6_network_count_as_one(database):
    stranger = Application(token="no key at all")
    asked = [stranger.get(f"{BASE}/feeds", REMOTE_ADDR=f"2001:db8::{number:x}") for number in range(1, 32)]
    assert [answer.status_code for answer in asked] == [401] * 30 + [429]
    assert refused(stranger.get(f"{BASE}/feeds", REMOTE_ADDR="2001:db8:0:1::1"))[0] == 401


def test_a_read_that_takes_too_long_is_stopped_and_reported(application, client, monkeypatch, settings):
    usual = settings.CONFIG
    settings.CONFIG = replace(usual, api_read_seconds=0.2)

    def slow(*_args, **_kwargs):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")

    monkeypatch.setattr(offers_module.search, "search", slow)
    answer = application.get(f"{BASE}/offers")
    assert refused(answer) == (503, "READ_TIMEOUT")
    assert int(answer.headers["Retry-After"]) > 0
    settings.CONFIG = usual
    client.get("/healthz")
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",), "the next request has no limit"
    assert application.get(f"{BASE}/feeds").status_code == 200


def counted(client) -> dict[str, float]:
    lines = client.get("/metrics").content.decode().splitlines()
    found = [line.rpartition(" ") for line in lines if line.startswith("harvester_api_request")]
    return {name: float(value) for name, _, value in found}


def test_requests_are_counted_by_route_method_and_status(application, client):
    before = counted(client)
    application.get(f"{BASE}/offers")
    application.get(f"{BASE}/feeds/{uuid7()}")
    application.get(f"{BASE}/feeds/{uuid7()}")
    client.get(f"{BASE}/offers")
    application.generic("BREW", f"{BASE}/{uuid7()}")
    after = counted(client)
    grown = {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}
    total = "harvester_api_requests_total"
    assert {name: value for name, value in grown.items() if name.startswith(total)} == {
        f'{total}{{method="GET",route="/api/v1/offers",status="2xx"}}': 1,
        f'{total}{{method="GET",route="/api/v1/offers",status="4xx"}}': 1,
        f'{total}{{method="GET",route="/api/v1/feeds/{{feed_id}}",status="4xx"}}': 2,
        f'{total}{{method="other",route="other",status="4xx"}}': 1,
    }
    assert grown['harvester_api_request_seconds_count{method="GET",route="/api/v1/offers"}'] == 2


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/offers", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/feeds", 405, "METHOD_NOT_ALLOWED"),
        ("TRACE", "/jobs/1", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/", 404, "NOT_FOUND"),
        ("GET", "/offers/", 404, "NOT_FOUND"),
        ("GET", "/nothing", 404, "NOT_FOUND"),
        ("GET", "/../v2/offers", 404, "NOT_FOUND"),
    ],
)
def test_wrong_addresses_and_methods_are_problems_too(application, method, path, status, code):
    answer = application.generic(method, BASE + path)
    assert refused(answer) == (status, code)
    assert status != 405 or answer.headers["Allow"]


def test_an_invalid_or_too_large_body_is_refused(world, application):
    path = f"{BASE}/runs/{world.feed.id}/approve"
    for body in ("{", "\xff", "[" * 5000):
        assert refused(application.post(path, body, content_type="application/json")) == (400, "BAD_REQUEST")
    large = application.post(path, "x" * 70_000, content_type="application/json")
    assert refused(large) == (413, "REQUEST_TOO_LARGE")
    in_chunks = application.post(path, "{}", content_type="application/json", headers={"Transfer-Encoding": "chunked"})
    assert refused(in_chunks) == (411, "LENGTH_REQUIRED")


def test_another_host_is_refused(application):
    assert refused(application.get(f"{BASE}/offers", headers={"Host": "evil.example"})) == (400, "BAD_REQUEST")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("an internal detail: blue"), (500, "INTERNAL_ERROR")),
        (OperationalError("gone"), (503, "DATABASE_UNAVAILABLE")),
    ],
)
def test_an_internal_error_is_logged_and_not_shown(application, monkeypatch, settings, error, expected):
    settings.DEBUG = True

    def broken(*_args, **_kwargs) -> HttpResponse:
        raise error

    monkeypatch.setattr(offers_module.search, "search", broken)
    with logged() as lines:
        answer = application.get(f"{BASE}/offers")
        failures = [line for line in lines() if line["event"] == "API_REQUEST_FAILED"]
    assert refused(answer) == expected
    assert b"blue" not in answer.content
    assert b"Traceback" not in answer.content
    assert bool(failures) == (expected[0] == 500)
