"""Headers, error pages, static files: what holds on every page."""

import re
from dataclasses import replace

import pytest
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.views.debug import technical_500_response
from tests.support import catalog
from tests.support.portal import PASSWORD, job, person
from tests.support.portal_feeds import feed_pages

from harvester.kernel.actor import system
from harvester.ops import api_keys
from harvester.ops.models import AuditEvent, Role
from harvester.portal import dashboard, errors

POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
SECRET = "canary-55d1"


def pages(client) -> dict[str, str]:
    """Every page that a person can look at, by address."""
    ada = person("ada", Role.ADMIN)
    client.force_login(ada)
    job_id = job("failed", error="x", traceback="y")
    client.post(f"/jobs/{job_id}/retry/")
    event = AuditEvent.objects.latest("id").pk
    addresses = [
        *("/", "/jobs/", "/jobs/?state=pending&q=test", "/jobs/recent/", "/jobs/stuck/", f"/jobs/{job_id}/"),
        *("/job-events/", "/periodic-jobs/", "/audit/", f"/audit/{event}/", "/users/", "/users/add/"),
        *(f"/users/{ada.pk}/", "/account/password/", "/nothing-here/", *catalog_pages()),
        *feed_pages(),
    ]
    shown = {address: client.get(address).content.decode() for address in addresses}
    return {**shown, "/login/": Client().get("/login/").content.decode()}


def catalog_pages() -> list[str]:
    source = catalog.source(is_display_primary=True)
    number = catalog.offer(source)
    return [
        *("/offers/", "/retailers/", "/sources/", "/corrections/", "/corrections/add/", "/review/"),
        *(f"/offers/{source.pk}/{number}/", f"/sources/{source.pk}/", f"/review/{source.pk}/{number}/"),
    ]


@pytest.mark.parametrize("address", ["/login/", "/", "/healthz", "/nothing-here/", "/static/portal/portal.css"])
def test_every_answer_carries_the_headers(client, db, address):
    answer = client.get(address)
    answer.close()
    headers = answer.headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]


def test_no_page_holds_what_the_policy_forbids(client, db):
    for address, page in pages(client).items():
        inline = re.findall(r"<script(?![^>]*(?:\ssrc=|application/json))[^>]*>", page)
        assert not inline, address
        assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page), address


def test_no_page_asks_for_anything_from_elsewhere(client, db):
    # A link that only a person follows, and that says nothing of where they came from, asks for nothing.
    followed = r'<a href="https?://[^"]*" rel="noopener noreferrer nofollow" target="_blank">'
    for address, page in pages(client).items():
        for found in re.findall(r'(?:src|href|action|hx-get)="([^"]*)"', re.sub(followed, "", page)):
            assert re.match(r"[?#]|/(?!/)", found), (address, found)


def test_no_page_speaks_of_django(client, db):
    for address, page in pages(client).items():
        assert "django" not in page.lower(), address


def test_every_asset_that_a_page_names_is_served(client, db):
    named = {found for page in pages(client).values() for found in re.findall(r'(?:src|href)="(/static/[^"]+)"', page)}
    assert len(named) >= 10
    for address in named:
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "max-age=86400" in answer.headers["Cache-Control"]
        answer.close()


def test_vendored_files_come_with_their_licence():
    for name in ("portal/vendor/alpine-csp.js", "portal/vendor/alpine-csp.LICENSE"):
        assert finders.find(name), name


def test_pages_are_not_stored_by_anybody(client, db):
    client.force_login(person("vera", Role.VIEWER))
    assert "no-store" in client.get("/jobs/").headers["Cache-Control"]


def test_a_broken_page_reveals_nothing_about_the_error(db, monkeypatch):
    def break_it():
        raise RuntimeError(f"the password is {SECRET}")

    cache.clear()
    monkeypatch.setattr(dashboard, "read_jobs", break_it)
    client = Client(raise_request_exception=False)
    client.force_login(person("vera", Role.VIEWER))
    answer = client.get("/")
    assert answer.status_code == 500
    page = answer.content.decode()
    assert "Something went wrong" in page
    assert SECRET not in page
    assert "RuntimeError" not in page
    assert "Content-Security-Policy" in answer.headers


def test_not_even_the_page_for_developers_prints_settings_that_are_secret(rf, settings):
    secret = {"encryption_keys": SECRET, "secret_key": SECRET, "metrics_token": SECRET, "slack_webhook_url": SECRET}
    urls = dict.fromkeys(("database_url", "owner_database_url", "redis_url"), f"scheme://user:{SECRET}@host/0")
    settings.CONFIG = replace(settings.CONFIG, **secret, **urls)
    page = technical_500_response(rf.get("/"), RuntimeError, RuntimeError(), None).content.decode()
    listed = page.partition('id="settings-info"')[2]
    assert "CONFIG" in listed
    assert SECRET not in listed


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, []) for name in ("bad_request", "forbidden", "forged", "not_found", "broken")),
        *(("too_many_failures", []), ("too_many_attempts", [60.0]), ("logins_busy", [])),
    ],
)
def test_error_pages_need_no_database(rf, name, arguments):
    answer = getattr(errors, name)(rf.get("/"), *arguments)
    assert answer.status_code >= 400
    assert "Harvester" in answer.content.decode()


def test_a_host_that_is_not_ours_is_refused(client, db):
    answer = client.get("/login/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "evil.example" not in answer.content.decode()


def test_what_a_stranger_uploads_is_not_written_to_the_disk(db, settings, tmp_path):
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path / "nowhere")
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.get("/login/")
    large = SimpleUploadedFile("large", b"0" * (settings.FILE_UPLOAD_MAX_MEMORY_SIZE + 1))
    assert client.post("/login/", {"username": "eve", "file": large}).status_code == 403


def test_cookies_are_out_of_reach_for_scripts(client, db):
    person("vera", Role.VIEWER)
    client.get("/login/")
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    assert set(client.cookies) == {"harvester_csrf", "harvester_session"}
    for cookie in client.cookies.values():
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"


@pytest.mark.parametrize(
    "query",
    [
        *("/offers/?retailer=%00", "/offers/?source=a%00", "/runs/?kind=%00&%00", "/users/?role=%00"),
        *("/corrections/?action=%00", "/review/?source=%00", "/job-events/?state=%00", "/periodic-jobs/?kind=%00"),
    ],
)
def test_a_nul_in_a_query_breaks_no_list(client, db, query):
    client.force_login(person("ann", Role.ADMIN))
    assert client.get(query, follow=True).status_code == 200


@pytest.mark.parametrize("question", ["password__startswith=x", "password__regex=%5Ex", "groups__name=x"])
def test_a_list_answers_no_question_about_what_it_does_not_show(client, db, question):
    client.force_login(person("vera", Role.VIEWER))
    person("ada", Role.ADMIN)
    assert "ada" in client.get(f"/users/?{question}").content.decode()


def test_the_list_of_api_keys_reveals_nothing_about_their_hashes(client, db):
    client.force_login(person("vera", Role.VIEWER))
    api_keys.create(system("test"), "price site", ["offers:read"])
    assert "price site" in client.get("/api-keys/?token_hash__startswith=x").content.decode()
