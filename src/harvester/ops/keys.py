"""Changing the key that seals credentials. Audited: that somebody began, and what came of it."""

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Count

from harvester.guards.models import SealedSecret
from harvester.guards.secrets import Rotation, installed_ring
from harvester.guards.secrets import rotate as seal_anew
from harvester.kernel.actor import Actor
from harvester.ops import audit


def sealed_by_key() -> dict[str, int]:
    """How many credentials each key has sealed."""
    counted = SealedSecret.objects.values("key_id").annotate(sealed=Count("key_id")).order_by("key_id")
    return {row["key_id"]: row["sealed"] for row in counted}


def rotate(actor: Actor) -> Iterator[Rotation]:
    """Seal everything anew with the writing key, and report after each step.

    Each step is a transaction of its own, so a run may end anywhere; the next one goes on from there. Of a run whose
    process was killed the trail says that it was begun.
    """
    _record(actor, "KEYS_ROTATION_BEGUN", {"sealed": sum(sealed_by_key().values())})
    reached: Rotation | None = None
    try:
        for reached in seal_anew():
            yield reached
    finally:
        if reached is not None:
            counts = {"rewritten": reached.rewritten, "unreadable": len(reached.unreadable), "left": reached.left}
            _record(actor, "KEYS_ROTATED", counts)


def _record(actor: Actor, verb: str, counts: dict[str, int]) -> None:
    with transaction.atomic():
        audit.record(actor, verb, "key", installed_ring().writing_id, detail=counts)
