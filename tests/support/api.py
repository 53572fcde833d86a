"""Applications that use the API, for tests."""

import itertools
from typing import Any

from django.test import Client

from harvester.kernel.actor import Actor
from harvester.ops import api_keys
from harvester.ops.models import ApiKey
from harvester.ops.scopes import Scope

ADMIN = Actor(kind="person", id="ada", name="Ada")
BASE = "/api/v1"
_numbers = itertools.count(1)


def make_key(*scopes: Scope, **options: Any) -> tuple[ApiKey, str]:
    """Create a key with these scopes, or with all of them."""
    return api_keys.create(ADMIN, f"application {next(_numbers)}", scopes or list(Scope), **options)


def stored_key(**fields: Any) -> ApiKey:
    """Create the row of a key, without an audit event."""
    number = next(_numbers)
    known = {"name": f"stored {number}", "prefix": f"hvk_{number:08}", "token_hash": f"{number:064}"}
    return ApiKey.objects.create(**{**known, "scopes": [Scope.OFFERS_READ], "created_by": "test", **fields})


class Application(Client):
    """Sends requests to the API with a key of its own."""

    def __init__(self, *scopes: Scope, token: str = "") -> None:
        self.key: ApiKey | None = None
        if not token:
            self.key, token = make_key(*scopes)
        self.token = token
        super().__init__(headers={"Authorization": f"Bearer {token}"})

    def read(self, path: str, **parameters: Any) -> Any:
        """Return the content of a read that must succeed."""
        answer = self.get(BASE + path, parameters)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def write(self, path: str, body: Any = None, **headers: str) -> Any:
        """Return the response to a write."""
        return self.post(BASE + path, body, content_type="application/json", headers=headers)

    def change(self, path: str, body: Any = None, **headers: str) -> Any:
        """Return the response to a PATCH."""
        return self.patch(BASE + path, body, content_type="application/json", headers=headers)

    def remove(self, path: str, **headers: str) -> Any:
        """Return the response to a DELETE."""
        return self.delete(BASE + path, headers=headers)


def refused(answer: Any) -> tuple[int, str]:
    """Return status and code of a response that must be a problem."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.content
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["detail"]
    return answer.status_code, problem["code"]
