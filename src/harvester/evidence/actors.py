"""The client of a server of hosted actors."""

import json
from typing import Any, Final, NamedTuple

from django.conf import settings

from harvester.evidence.models import Connection
from harvester.guards.egress import EgressPolicy
from harvester.guards.http import HttpAnswer, request
from harvester.kernel.errors import TerminalError, TransientError

#: Rows of one page of a dataset.
PAGE_ROWS: Final = 500
#: Everything else means that the actor has not ended, even words that are not known.
FINAL: Final = frozenset({"SUCCEEDED", "FAILED", "TIMED-OUT", "ABORTED"})
_CREATED, _OK, _SERVER_ERRORS = 201, 200, 500


class ActorServerFailed(TransientError):
    """The server of actors did not answer as agreed."""

    code = "ACTOR_SERVER_FAILED"


class ActorRefused(TerminalError):
    """The server of actors refused the request."""

    code = "ACTOR_REFUSED"


class Started(NamedTuple):
    """A remote run."""

    run_id: str
    dataset_id: str


def start(connection: Connection) -> Started:
    """Start the actor. Never call it twice for one run: each call may cost money."""
    found = _data(_send("POST", connection, f"/v2/actors/{connection.actor}/runs", connection.input), _CREATED)
    return Started(_text(found, "id"), _text(found, "defaultDatasetId"))


def status(connection: Connection, run_id: str) -> str:
    return _text(_data(_send("GET", connection, f"/v2/actor-runs/{run_id}"), _OK), "status")


def rows(connection: Connection, dataset_id: str) -> list[dict[str, Any]]:
    """Return all rows of a dataset, in their order."""
    found: list[dict[str, Any]] = []
    while True:
        path = f"/v2/datasets/{dataset_id}/items?offset={len(found)}&limit={PAGE_ROWS}"
        page = _parsed(_send("GET", connection, path), _OK)
        if not isinstance(page, list) or not all(isinstance(row, dict) for row in page):
            raise ActorServerFailed("The dataset is not a list of rows. Nothing was kept; it will be read again.")
        if not page:
            return found
        found += page


def _send(method: str, connection: Connection, path: str, body: Any = None) -> HttpAnswer:
    content = json.dumps(body).encode() if body is not None else b""
    headers = {"content-type": "application/json"} if content else {}
    policy = EgressPolicy.from_config(settings.CONFIG)
    return request(method, connection.server.rstrip("/") + path, policy=policy, headers=headers, content=content)


def _data(answer: HttpAnswer, wanted: int) -> dict[str, Any]:
    found = _parsed(answer, wanted)
    data = found.get("data") if isinstance(found, dict) else None
    if not isinstance(data, dict):
        raise ActorServerFailed("The answer of the actor server has no data.")
    return data


def _parsed(answer: HttpAnswer, wanted: int) -> Any:
    if answer.status != wanted:
        kind = ActorServerFailed if answer.status >= _SERVER_ERRORS else ActorRefused
        raise kind(f"The actor server answered {answer.status}; expected was {wanted}.")
    try:
        # PostgreSQL's texts cannot hold this character.
        return json.loads(answer.body.replace(b"\\u0000", b""))
    except ValueError:
        raise ActorServerFailed("The answer of the actor server is not JSON.") from None


def _text(found: dict[str, Any], name: str) -> str:
    if not isinstance(found.get(name), str):
        raise ActorServerFailed(f"The answer of the actor server has no {name}.")
    text: str = found[name]
    return text
