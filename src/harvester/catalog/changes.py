"""How a control row is changed: only what differs is written, and the trail tells what it was."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from harvester.kernel.actor import Actor
from harvester.ops import audit


def change(actor: Actor, row: Model, values: Mapping[str, Any], verb: str) -> dict[str, Any]:
    """Write the fields that differ, with their audit event; answers what they were.

    The row is locked and the transaction open. Nothing differs: nothing is written, and nothing is told.
    """
    before = {field: getattr(row, field) for field, value in values.items() if getattr(row, field) != value}
    if before:
        for field in before:
            setattr(row, field, values[field])
        row.save(update_fields=list(before))
        kind = row._meta.model_name or ""  # noqa: SLF001 - Django's documented name for it
        detail = {"from": before, "to": {field: values[field] for field in before}}
        audit.record(actor, verb, kind, row.pk, changed=before, detail=detail)
    return before
