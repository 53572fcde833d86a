"""Audited changes of rows: only the fields that differ are written."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from harvester.kernel.actor import Actor
from harvester.ops import audit


def change(actor: Actor, row: Model, values: Mapping[str, Any], verb: str) -> dict[str, Any]:
    """Write the fields that differ, with an audit event. Return their previous values.

    The caller has locked the row in a transaction. If nothing differs, nothing is written.
    """
    before = {field: getattr(row, field) for field, value in values.items() if getattr(row, field) != value}
    if before:
        for field in before:
            setattr(row, field, values[field])
        row.save(update_fields=list(before))
        kind = row._meta.model_name or ""  # noqa: SLF001 - documented by Django
        detail = {"from": before, "to": {field: values[field] for field in before}}
        audit.record(actor, verb, kind, row.pk, changed=before, detail=detail)
    return before
