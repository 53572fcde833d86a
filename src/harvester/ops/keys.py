"""Rotation of the key that encrypts credentials. Its start and its result are audited."""

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Count

from harvester.guards.models import SealedSecret
from harvester.guards.secrets import Rotation, installed_ring
from harvester.guards.secrets import rotate as rotate_secrets
from harvester.kernel.actor import Actor
from harvester.ops import audit


def sealed_by_key() -> dict[str, int]:
    """Return the number of credentials that each key encrypts."""
    counted = SealedSecret.objects.values("key_id").annotate(sealed=Count("key_id")).order_by("key_id")
    return {row["key_id"]: row["sealed"] for row in counted}


def rotate(actor: Actor) -> Iterator[Rotation]:
    """Encrypt all credentials again with the current key, and yield the progress after each step.

    Each step is its own transaction, so a rotation may stop anywhere, and the next one continues. If the process is
    killed, the audit log has only the start.
    """
    _record(actor, "KEYS_ROTATION_BEGUN", {"sealed": sum(sealed_by_key().values())})
    reached: Rotation | None = None
    try:
        for reached in rotate_secrets():
            yield reached
    finally:
        if reached is not None:
            counts = {"rewritten": reached.rewritten, "unreadable": len(reached.unreadable), "left": reached.left}
            _record(actor, "KEYS_ROTATED", counts)


def _record(actor: Actor, verb: str, counts: dict[str, int]) -> None:
    with transaction.atomic():
        audit.record(actor, verb, "key", installed_ring().writing_id, detail=counts)
