"""The audit trail: one row per write, in the transaction of the write."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from harvester.guards.redaction import redact
from harvester.kernel.actor import Actor

_RECORD = """
INSERT INTO audit_events (actor_kind, actor_id, actor_name, verb, object_type, object_id, changed, detail)
VALUES (%s, %s, %s, %s, %s, %s, %s::text[], %s::jsonb)
"""


def record(
    actor: Actor,
    verb: str,
    object_type: str,
    object_id: object,
    *,
    changed: Iterable[str] = (),
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Append one event. It belongs to the write: without an open transaction it is refused."""
    if not connection.in_atomic_block:
        raise RuntimeError("an audit event belongs in the transaction of what it tells of")
    told = json.dumps(redact(dict(detail or {})), default=str)
    with connection.cursor() as cursor:
        cursor.execute(
            _RECORD,
            [actor.kind, actor.id, actor.name, verb, object_type, str(object_id), sorted(changed), told],
        )
