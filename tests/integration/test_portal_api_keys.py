"""API keys in the portal."""

import re

import pytest
from tests.support.api import Application, stored_key
from tests.support.portal import person, verbs

from harvester.ops import api_keys
from harvester.ops.models import ApiKey, Role

pytestmark = pytest.mark.django_db
NEW = {"name": "price site", "scopes": ["offers:read", "jobs:read"], "days": "90"}


@pytest.fixture
def admin(client):
    client.force_login(person("ada", Role.ADMIN))
    return client


def words(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_an_admin_makes_a_key_and_sees_it_once(admin):
    answer = admin.post("/api-keys/add/", NEW)
    token = re.search(r"hvk_[\w-]{43}", words(answer))[0]
    key = ApiKey.objects.get()
    assert api_keys.of_token(token) == key
    assert (key.created_by, key.scopes) == ("ada", ["offers:read", "jobs:read"])
    assert key.expires_at is not None
    assert "no-store" in answer.headers["Cache-Control"]
    for page in ("/api-keys/", f"/api-keys/{key.pk}/", "/audit/", "/"):
        shown = admin.get(page).content.decode()
        assert token not in shown
        assert key.token_hash not in shown
    assert Application(token=token).get("/api/v1/offers").status_code == 200


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "required"),
        ({"name": "a=b"}, "use 1 to 100 letters"),
        ({"name": "taken"}, "exists already"),
        ({"scopes": []}, "required"),
        ({"scopes": ["offers:write"]}, "not one of the available choices"),
        ({"days": "5000"}, "not one of the available choices"),
    ],
)
def test_a_form_with_a_mistake_keeps_what_was_typed_and_makes_nothing(admin, change, said):
    stored_key(name="taken")
    answer = admin.post("/api-keys/add/", {**NEW, **change})
    assert answer.status_code == 200
    assert said in words(answer)
    assert ApiKey.objects.count() == 1
    if "name" not in change:
        assert 'value="price site"' in answer.content.decode()


def test_an_admin_revokes_a_key_once(admin):
    key = stored_key()
    assert "Revoke" in words(admin.get(f"/api-keys/{key.pk}/"))
    answer = admin.post(f"/api-keys/{key.pk}/revoke/", follow=True)
    assert "is revoked. Requests with this key are refused from now on." in words(answer)
    assert "already revoked by ada" in words(admin.post(f"/api-keys/{key.pk}/revoke/", follow=True))
    assert verbs(object_type="api_key") == ["API_KEY_REVOKED"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_others_see_keys_and_no_way_to_change_them(client, role):
    client.force_login(person("vera", role))
    key = stored_key()
    assert "Create key" not in words(client.get("/api-keys/"))
    assert "Revoke" not in words(client.get(f"/api-keys/{key.pk}/"))


def test_the_page_of_a_key_shows_its_activity(admin, client):
    from django.db import transaction

    from harvester.ops import audit

    key = stored_key()
    with transaction.atomic():
        audit.record(key.actor, "FEED_STATUS_CHANGED", "feed", "1")
    assert "Feed status changed" in words(admin.get(f"/api-keys/{key.pk}/"))


def test_an_unknown_key_has_no_page(admin):
    path = f"/api-keys/{person('x', Role.VIEWER).pk}/"
    assert admin.get(path).status_code == 404
    assert admin.post(f"{path}revoke/").status_code == 404
