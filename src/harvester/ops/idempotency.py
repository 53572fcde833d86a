"""Responses to writes over the API: a retry with the same Idempotency-Key gets the first response and does nothing.

The response is stored in the transaction of the write: either both exist or neither.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from harvester.kernel.errors import InvalidInput

#: No client retries for longer; afterwards the key can be used again.
KEPT_HOURS = 24

# Waits while another transaction has claimed the same key, and then finds the response of that one, if it has one.
_CLAIM = """
INSERT INTO api_answers AS a (api_key_id, request_key, fingerprint) VALUES (%(owner)s, %(key)s, %(fingerprint)s)
ON CONFLICT (api_key_id, request_key) DO UPDATE
    SET fingerprint = excluded.fingerprint, status = NULL, headers = NULL, body = NULL, created_at = clock_timestamp()
    WHERE a.created_at < clock_timestamp() - %(hours)s * interval '1 hour'
RETURNING true
"""
_FIND = (
    "SELECT fingerprint, status, headers, body FROM api_answers WHERE api_key_id = %(owner)s AND request_key = %(key)s"
)
_KEEP = """
UPDATE api_answers SET status = %(status)s, headers = %(headers)s::jsonb, body = %(body)s
WHERE api_key_id = %(owner)s AND request_key = %(key)s
"""
_FORGET = "DELETE FROM api_answers WHERE created_at < clock_timestamp() - %(hours)s * interval '1 hour'"


class IdempotencyKeyReused(InvalidInput):
    """The key was used before, for another request."""

    code = "IDEMPOTENCY_KEY_REUSED"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response as it was sent."""

    status: int
    headers: Mapping[str, str]
    body: str


def claim(owner: UUID, key: str, fingerprint: str) -> Answer | None:
    """Claim a key for a request, in the caller's transaction. Return the response if the request was answered before.

    Raises:
        IdempotencyKeyReused: the key was used for another request.
    """
    values: dict[str, Any] = {"owner": owner, "key": key, "fingerprint": fingerprint, "hours": KEPT_HOURS}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        if cursor.fetchone():
            return None
        cursor.execute(_FIND, values)
        first, status, headers, body = cursor.fetchone()
    if first != fingerprint:
        raise IdempotencyKeyReused("This Idempotency-Key was used for another request; use a new one for each request.")
    return Answer(status=status, headers=json.loads(headers) if isinstance(headers, str) else headers, body=body)


def keep(owner: UUID, key: str, answer: Answer) -> None:
    """Store the response to a claimed request, in the transaction of the write."""
    values: dict[str, Any] = {"status": answer.status, "headers": json.dumps(dict(answer.headers)), "body": answer.body}
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, {"owner": owner, "key": key, **values})


def delete_old() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"hours": KEPT_HOURS})
        return int(cursor.rowcount)
