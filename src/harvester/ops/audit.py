"""The audit log: one row per write, in the transaction of the write."""

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
    """Append one event, in the transaction of the write that it records."""
    if not connection.in_atomic_block:
        raise RuntimeError("an audit event must be recorded in the transaction of its write")
    details = json.dumps(redact(dict(detail or {})), default=str)
    with connection.cursor() as cursor:
        cursor.execute(
            _RECORD,
            [actor.kind, actor.id, actor.name, verb, object_type, str(object_id), sorted(changed), details],
        )
