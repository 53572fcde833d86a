"""`harvester api-keys ...`: the key is printed once, and no other output contains it."""

import json

import pytest
from tests.support.api import Application
from tests.support.command import harvester
from tests.support.tables import rows

from harvester.ops.models import ApiKey

pytestmark = pytest.mark.usefixtures("database")


def test_a_key_is_made_used_listed_and_revoked():
    made = harvester("api-keys", "create", "price site", "--scope", "offers:read", "--expires-in-days", "30", "--json")
    assert made.code == 0, made.err
    result = json.loads(made.out)
    application = Application(token=result["key"])
    assert application.get("/api/v1/offers").status_code == 200
    listed = harvester("api-keys", "list", "--json")
    assert result["key"] not in listed.out
    [key] = json.loads(listed.out)["api_keys"]
    assert (key["name"], key["state"], key["scopes"]) == ("price site", "valid", ["offers:read"])
    assert harvester("api-keys", "revoke", key["prefix"]).code == 0
    assert application.get("/api/v1/offers").status_code == 401
    audited = rows("SELECT verb, actor_kind FROM audit_events WHERE actor_id LIKE 'cli:%%' ORDER BY id")
    assert audited == [("API_KEY_CREATED", "person"), ("API_KEY_REVOKED", "person")]


def test_people_get_the_key_on_a_line_of_its_own():
    made = harvester("api-keys", "create", "price site", "--scope", "offers:read", "--scope", "jobs:read")
    first, second = made.out.splitlines()
    assert first.startswith(ApiKey.objects.get().prefix)
    assert "offers:read, jobs:read" in second


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "x", "--scope", "offers:write"], 2, "offers:read"),
        (["create", "x"], 2, "--scope"),
        (["create", "a=b", "--scope", "offers:read"], 2, "name"),
        (["revoke", "nobody"], 3, "api-keys list"),
    ],
)
def test_an_invalid_argument_is_refused_with_the_valid_ones(arguments, code, said):
    ran = harvester("api-keys", *arguments)
    assert ran.code == code
    assert said in ran.err
