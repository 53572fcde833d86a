"""Writes to connections by people. Every verb is audited."""

from typing import Any
from uuid import UUID

from django.db import transaction

from harvester.engine.enqueue import Enqueued, enqueue
from harvester.evidence.jobs import RUN
from harvester.evidence.models import Connection
from harvester.kernel.actor import Actor
from harvester.kernel.errors import InvalidInput, NotFound
from harvester.kernel.urls import is_web_url
from harvester.ops import audit
from harvester.runs.states import RunTrigger


@transaction.atomic
def connect(actor: Actor, name: str, *, actor_name: str, server: str, asked: dict[str, Any]) -> Connection:
    """Create a connection to an actor."""
    if not is_web_url(server):
        raise InvalidInput("it must look like https://actors.example.", field="server")
    made = Connection.objects.create(name=name, actor=actor_name, server=server, input=asked, created_by=actor.name)
    audit.record(actor, "CONNECTION_CREATED", "connection", made.pk, detail={"name": name, "actor": actor_name})
    return made


@transaction.atomic
def run_now(actor: Actor, connection_id: UUID) -> Enqueued:
    """Run the actor of a connection once."""
    found = Connection.objects.filter(pk=connection_id).first()
    if found is None:
        raise NotFound(f"There is no connection {connection_id}.")
    made = enqueue(RUN, {"connection_id": str(found.pk), "trigger": RunTrigger.MANUAL.value})
    audit.record(actor, "CONNECTION_RUN_REQUESTED", "connection", found.pk, detail={"job_id": made.job_id})
    return made
