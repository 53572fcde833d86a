"""Login, logout, limits of logins, and their events in the audit log."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from tests.support.portal import PASSWORD, QuickHasher, person, verbs

from harvester.ops import users
from harvester.ops.models import AuditEvent, Role
from harvester.portal import access

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["tests.support.portal.QuickHasher"]


@pytest.fixture
def slow_limits(monkeypatch):
    """The real limits, but without new grants while a test runs, however slow the machine is."""
    for name in ("ATTEMPTS_PER_ADDRESS", "EVENTS_PER_ADDRESS", "EVENTS_IN_ALL"):
        limit = getattr(access, name)
        monkeypatch.setattr(access, name, replace(limit, seconds=limit.seconds * 1000))


def log_in(client, username="vera", password=PASSWORD, **extra):
    return client.post("/login/", {"username": username, "password": password}, **extra)


def test_a_person_logs_in_and_is_led_to_where_they_wanted(client):
    person("vera", Role.VIEWER)
    asked = client.get("/jobs/?state=failed")
    assert asked.status_code == 302
    assert asked.headers["Location"] == "/login/?next=/jobs/%3Fstate%3Dfailed"
    answer = client.post(asked.headers["Location"], {"username": "vera", "password": PASSWORD})
    assert answer.headers["Location"] == "/jobs/?state=failed"
    assert client.get("/jobs/").status_code == 200


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil.example"]
)
def test_login_never_leads_to_another_place(client, target):
    person("vera", Role.VIEWER)
    answer = client.post("/login/", {"username": "vera", "password": PASSWORD, "next": target})
    assert answer.headers["Location"] == "/"


def test_login_and_logout_are_audited_once_each(client):
    vera = person("vera", Role.VIEWER)
    log_in(client)
    client.post("/logout/")
    assert verbs() == ["USER_LOGGED_IN", "USER_LOGGED_OUT"]
    event = AuditEvent.objects.order_by("id").first()
    assert (event.actor_kind, event.actor_id, event.object_id) == ("person", str(vera.pk), str(vera.pk))
    assert event.detail == {"from": "127.0.0.1"}


def test_a_failed_login_is_audited_without_its_password(client):
    vera = person("vera", Role.VIEWER)
    answer = log_in(client, password="canary-7f3a")
    assert answer.status_code == 200
    assert "Wrong username or password." in answer.content.decode()
    assert "canary-7f3a" not in answer.content.decode()
    event = AuditEvent.objects.get()
    assert (event.verb, event.actor_kind, event.object_id) == ("USER_LOGIN_FAILED", "system", str(vera.pk))
    assert event.detail == {"from": "127.0.0.1"}


def test_a_name_that_nobody_has_is_not_kept_because_it_may_be_a_password(client):
    log_in(client, username="canary-7f3a")
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_id) == ("USER_LOGIN_FAILED", "(unknown)")
    assert "canary-7f3a" not in json.dumps([event.detail, event.object_id])


def test_a_username_of_any_length_is_kept_short(client):
    assert log_in(client, username="x" * 5000).status_code == 200
    assert AccessAttempt.objects.get().username == "x" * 150


def test_an_unknown_name_and_a_wrong_password_look_the_same(client):
    person("vera", Role.VIEWER)
    person("gone", Role.VIEWER, active=False)

    def page(username):
        text = log_in(client, username=username, password="wrong").content.decode()
        csrf = client.cookies["harvester_csrf"].value
        return [line.replace(username, "?") for line in text.splitlines() if "csrf" not in line and csrf not in line]

    shown = [[line for line in page(name) if "data-now" not in line] for name in ("vera", "nobody", "gone")]
    assert shown[0] == shown[1] == shown[2]


def test_five_failures_lock_this_name_out_from_here_for_a_while(client):
    person("vera", Role.VIEWER)
    person("otto", Role.OPERATOR)
    answers = [log_in(client, password="wrong").status_code for _ in range(5)]
    assert answers == [200, 200, 200, 200, 429]
    locked = log_in(client)
    assert locked.status_code == 429
    assert "Too many failed logins" in locked.content.decode()
    assert "Try again in 15 min" in locked.content.decode()
    assert locked.headers["Retry-After"] == "900"
    assert log_in(Client(), username="otto").status_code == 302
    assert log_in(Client(REMOTE_ADDR="192.0.2.7")).status_code == 302


def test_the_audit_log_keeps_one_row_of_each_kind_for_an_address_and_not_every_guess(client, slow_limits):
    person("vera", Role.VIEWER)
    for number in range(8):
        log_in(client, password="wrong", headers={"User-Agent": f"browser {number}"})
    for number in range(40):
        log_in(client, username=f"name {number}", password="wrong")
    assert verbs() == ["USER_LOGIN_FAILED", "USER_LOGIN_THROTTLED"]
    log_in(Client(REMOTE_ADDR="192.0.2.7"), password="wrong")
    assert verbs() == ["USER_LOGIN_FAILED", "USER_LOGIN_THROTTLED", "USER_LOGIN_FAILED"]


def test_guesses_from_everywhere_do_not_fill_the_audit_log(slow_limits):
    for number in range(70):
        log_in(Client(REMOTE_ADDR=f"192.0.2.{number}"), username="nobody", password="wrong")
    assert len(verbs()) == access.EVENTS_IN_ALL.burst


def test_an_address_may_try_only_so_many_names(client, slow_limits):
    answers = [log_in(client, username=f"name {number}", password="wrong") for number in range(99)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429] * 69
    assert "Too many logins" in answers[-1].content.decode()
    assert int(answers[-1].headers["Retry-After"]) > 0
    person("vera", Role.VIEWER)
    assert log_in(client).status_code == 429, "a name that is new here waits too"
    assert log_in(Client(REMOTE_ADDR="192.0.2.7")).status_code == 302, "other addresses do not"


@pytest.mark.parametrize(("before", "now"), [("192.0.2.7", "192.0.2.7"), ("2001:db8::1", "2001:db8::99")])
def test_a_person_who_logged_in_from_an_address_before_is_not_kept_out_by_others_there(slow_limits, before, now):
    for name in ("vera", "otto"):
        person(name, Role.VIEWER)
    assert log_in(Client(REMOTE_ADDR=before)).status_code == 302
    inside = Client(REMOTE_ADDR=before)
    log_in(inside)
    for number in range(40):
        log_in(Client(REMOTE_ADDR=now), username=f"name {number}", password="wrong")
    assert log_in(Client(REMOTE_ADDR=now), username="otto").status_code == 429
    assert log_in(Client(REMOTE_ADDR=now)).status_code == 302
    assert inside.get("/jobs/").status_code == 200, "who is in stays in"
    # Guesses at that person's password are limited as everywhere.
    guesses = [log_in(Client(REMOTE_ADDR=now), password="wrong").status_code for _ in range(6)]
    assert guesses == [200, 200, 200, 200, 429, 429]


def test_no_password_is_checked_at_an_address_that_tried_too_many(client, slow_limits, monkeypatch):
    person("vera", Role.VIEWER)
    # One more than the limit: the first refusal is noted in the audit log, which costs more.
    for number in range(31):
        log_in(client, username=f"name {number}", password="wrong")
    checked = []
    monkeypatch.setattr(QuickHasher, "encode", lambda *_, **__: checked.append("a password"))
    asked = []
    for name in ("vera", "nobody"):
        with CaptureQueriesContext(connection) as queries:
            assert log_in(client, username=name).status_code == 429
        asked.append(len(queries))
    assert checked == []
    assert asked[0] == asked[1], "a name that somebody has costs what another does"


def test_a_lockout_ends(client):
    from django.conf import settings
    from django.db.models import F

    person("vera", Role.VIEWER)
    for _ in range(5):
        log_in(client, password="wrong")
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - settings.AXES_COOLOFF_TIME)
    assert log_in(client).status_code == 302


def test_a_header_of_the_sender_does_not_evade_the_lockout(client):
    person("vera", Role.VIEWER)
    for number in range(5):
        log_in(client, password="wrong", headers={"X-Forwarded-For": f"192.0.2.{number}"})
    assert log_in(client, headers={"X-Forwarded-For": "192.0.2.99"}).status_code == 429


def test_behind_a_proxy_the_address_that_the_proxy_saw_counts(client, settings):
    settings.CONFIG = replace(settings.CONFIG, https=True)
    person("vera", Role.VIEWER)
    for number in range(5):
        log_in(client, password="wrong", headers={"X-Forwarded-For": f"198.51.100.{number}, 192.0.2.1"})
    assert log_in(client, headers={"X-Forwarded-For": "198.51.100.99, 192.0.2.1"}).status_code == 429
    assert log_in(Client(), headers={"X-Forwarded-For": "198.51.100.99, 192.0.2.2"}).status_code == 302


def test_all_addresses_of_an_ipv6_network_are_one_client(client):
    person("vera", Role.VIEWER)
    for number in range(1, 6):
        log_in(Client(REMOTE_ADDR=f"2001:db8::{number}"), password="wrong")
    assert log_in(Client(REMOTE_ADDR="2001:db8::99")).status_code == 429
    assert log_in(Client(REMOTE_ADDR="2001:db8:0:1::1")).status_code == 302


def test_guesses_behind_a_proxy_that_writes_no_plain_address_are_counted_too(client, settings):
    settings.CONFIG = replace(settings.CONFIG, https=True)
    person("vera", Role.VIEWER)
    for number in range(5):
        log_in(client, password="wrong", headers={"X-Forwarded-For": f"192.0.2.1:{4000 + number}"})
    assert log_in(client, headers={"X-Forwarded-For": "192.0.2.1:4999"}).status_code == 429


def test_the_session_is_a_new_one_after_login(client):
    person("vera", Role.VIEWER)
    session = client.session
    session["planted"] = "by somebody else"
    session.save()
    before = session.session_key
    log_in(client)
    assert client.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()


def test_logging_out_takes_a_post(client):
    client.force_login(person("vera", Role.VIEWER))
    assert client.get("/logout/").status_code == 405
    assert client.get("/jobs/").status_code == 200
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/jobs/").status_code == 302


def test_a_new_role_counts_from_the_next_request(client):
    from harvester.kernel.actor import system

    otto = person("otto", Role.OPERATOR)
    client.force_login(otto)
    assert client.get("/users/add/").status_code == 403
    users.set_role(system("test"), "otto", Role.ADMIN)
    assert client.get("/users/add/").status_code == 200


def test_a_deactivated_person_is_out_at_the_next_request(client):
    from harvester.kernel.actor import system

    client.force_login(person("vera", Role.VIEWER))
    assert client.get("/jobs/").status_code == 200
    users.set_active(system("test"), "vera", active=False)
    assert client.get("/jobs/").status_code == 302


def test_changing_ones_password_ends_the_other_sessions_only(client):
    vera = person("vera", Role.VIEWER)
    elsewhere = Client()
    elsewhere.force_login(vera)
    client.force_login(vera)
    form = {"old": PASSWORD, "new": "another walk by the sea", "again": "another walk by the sea"}
    assert client.post("/account/password/", form).headers["Location"] == "/"
    assert client.get("/jobs/").status_code == 200
    assert elsewhere.get("/jobs/").status_code == 302
    assert verbs(verb="USER_PASSWORD_CHANGED") == ["USER_PASSWORD_CHANGED"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"old": "wrong", "new": "another walk by the sea", "again": "another walk by the sea"}, "not your current"),
        ({"old": PASSWORD, "new": "another walk by the sea", "again": "something else"}, "differ"),
        ({"old": PASSWORD, "new": "short", "again": "short"}, "too short"),
    ],
)
def test_a_password_that_is_not_accepted_changes_nothing(client, form, said):
    client.force_login(person("vera", Role.VIEWER))
    assert said in client.post("/account/password/", form).content.decode()
    assert verbs(verb="USER_PASSWORD_CHANGED") == []
    assert "another walk" not in client.post("/account/password/", form).content.decode()


def test_the_current_password_is_not_to_be_guessed_in_a_session_that_somebody_left(client):
    client.force_login(person("vera", Role.VIEWER))
    form = {"old": "wrong", "new": "another walk by the sea", "again": "another walk by the sea"}
    for _ in range(5):
        assert "not your current" in client.post("/account/password/", form).content.decode()
    assert "Too many attempts" in client.post("/account/password/", {**form, "old": PASSWORD}).content.decode()
    assert verbs(verb="USER_PASSWORD_CHANGED") == []


def test_a_page_that_refreshes_itself_reloads_when_its_session_has_ended(client):
    answer = client.get("/jobs/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Refresh"], answer.content) == (401, "true", b"")


def test_https_makes_cookies_secure_and_sends_hsts():
    asked = "SESSION_COOKIE_SECURE CSRF_COOKIE_SECURE SESSION_COOKIE_NAME SECURE_HSTS_SECONDS SECURE_PROXY_SSL_HEADER"
    program = (
        "import json, sys; from harvester import settings as s; print(json.dumps([vars(s)[n] for n in sys.argv[1:]]))"
    )
    environment = {**os.environ, "HARVESTER_HTTPS": "true", "PYTHONPATH": str(ROOT / "src")}
    printed = subprocess.run(
        [sys.executable, "-c", program, *asked.split()], env=environment, capture_output=True, text=True, check=True
    ).stdout
    expected = [True, True, "__Host-harvester_session", 31_536_000, ["HTTP_X_FORWARDED_PROTO", "https"]]
    assert json.loads(printed) == expected
