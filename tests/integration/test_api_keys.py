"""API keys: shown once, stored as a hash, revoked at once, and every change audited."""

from datetime import timedelta

import pytest
from django.utils import timezone
from tests.support.api import ADMIN, Application, make_key, refused
from tests.support.catalog import audited, details, fetch

from harvester.guards.redaction import redact_text
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import api_keys
from harvester.ops.models import ApiKey
from harvester.ops.scopes import Scope

pytestmark = pytest.mark.django_db


def test_a_key_is_shown_once_and_stored_as_a_hash():
    key, token = api_keys.create(ADMIN, "price site", ["offers:read"])
    assert token.startswith(key.prefix)
    assert len(key.prefix) < len(token) / 3
    stored = str(fetch("SELECT t::text FROM api_keys t") + fetch("SELECT t::text FROM audit_events t"))
    assert key.prefix in stored
    assert token not in stored
    assert api_keys.of_token(token) == key
    assert redact_text(f"called with {token} again") == "called with [redacted] again"


def test_every_change_of_a_key_is_audited_with_who_did_it():
    key, _ = api_keys.create(ADMIN, "price site", ["feeds:read", "offers:read"])
    api_keys.revoke(ADMIN, key.pk)
    assert [row[0] for row in audited()] == ["API_KEY_CREATED", "API_KEY_REVOKED"]
    [made] = details("API_KEY_CREATED")
    assert made["name"] == "price site"
    assert made["scopes"] == ["offers:read", "feeds:read"]
    assert ApiKey.objects.get().revoked_by == "Ada"


def test_a_name_belongs_to_one_valid_key_at_a_time():
    key, _ = api_keys.create(ADMIN, "price site", ["offers:read"])
    with pytest.raises(Conflict, match="price site"):
        api_keys.create(ADMIN, " price  site ", ["offers:read"])
    api_keys.revoke(ADMIN, key.pk)
    again, _ = api_keys.create(ADMIN, "price site", ["offers:read"])
    assert api_keys.find("price site") == again
    assert api_keys.find(key.prefix) == key
    assert api_keys.find(str(key.pk)) == key


@pytest.mark.parametrize(
    ("name", "scopes", "field"),
    [
        ("", ["offers:read"], "name"),
        ("x" * 101, ["offers:read"], "name"),
        ("password=hunter2", ["offers:read"], "name"),
        ("site\x00", ["offers:read"], "name"),
        ("site", [], "scopes"),
        ("site", ["offers:write"], "scopes"),
    ],
)
def test_an_invalid_key_is_not_created(name, scopes, field):
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        api_keys.create(ADMIN, name, scopes)
    assert not ApiKey.objects.exists()


def test_an_expiry_in_the_past_is_refused():
    with pytest.raises(InvalidInput, match="future"):
        api_keys.create(ADMIN, "site", ["offers:read"], expires_at=timezone.now() - timedelta(seconds=1))


def test_a_key_is_revoked_once():
    key, _ = make_key()
    api_keys.revoke(ADMIN, key.pk)
    with pytest.raises(Conflict, match="already revoked by Ada"):
        api_keys.revoke(ADMIN, key.pk)
    with pytest.raises(NotFound):
        api_keys.find("nobody")


def test_a_revoked_or_expired_key_is_refused_at_once_with_the_reason():
    application = Application()
    assert application.get("/api/v1/offers").status_code == 200
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(application.get("/api/v1/offers")) == (401, "KEY_EXPIRED")
    api_keys.revoke(ADMIN, application.key.pk)
    assert refused(application.get("/api/v1/offers")) == (401, "KEY_REVOKED")


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "KEY_MISSING"),
        ("Basic YTpi", "KEY_MISSING"),
        ("Bearer", "KEY_MISSING"),
        ("Bearer nonsense", "KEY_INVALID"),
        ("Bearer hvk_" + "a" * 43, "KEY_INVALID"),
        ("Bearer hvk_" + "é" * 43, "KEY_INVALID"),
        ("Bearer \x00", "KEY_INVALID"),
    ],
)
def test_a_request_without_a_valid_key_is_challenged(client, header, code):
    answer = client.get("/api/v1/offers", headers={"Authorization": header})
    assert refused(answer) == (401, code)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_last_use_is_written_at_most_once_a_minute():
    application = Application(Scope.OFFERS_READ)
    application.read("/offers")
    first = ApiKey.objects.get().last_used_at
    application.read("/offers")
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(seconds=61))
    application.read("/offers")
    assert ApiKey.objects.get().last_used_at > first
