"""Which of a retailer's sources consumers see: at most one is the display primary."""

from uuid import UUID

import structlog
from django.db import transaction

from harvester.catalog.models import Retailer, Source
from harvester.catalog.sources import locked, unknown
from harvester.kernel.actor import Actor
from harvester.ops import audit

log = structlog.get_logger(__name__)


def set_display_primary(actor: Actor, source_id: UUID) -> Source:
    """Make this source the one of its retailer that is shown; any other is so no longer. Holds at once."""
    with transaction.atomic():
        _lock_siblings(source_id)
        source = locked(source_id)
        if source.is_display_primary:
            return source
        others = Source.objects.filter(retailer_id=source.retailer_id, is_display_primary=True)
        former = [str(other.pk) for other in others.select_for_update()]
        others.update(is_display_primary=False)
        source.is_display_primary = True
        source.save(update_fields=["is_display_primary"])
        _record(actor, source, "DISPLAY_PRIMARY_SET", former)
    return source


def unset_display_primary(actor: Actor, source_id: UUID) -> Source:
    """Leave the retailer without a primary: then its direct sources are shown, and no other."""
    with transaction.atomic():
        _lock_siblings(source_id)
        source = locked(source_id)
        if source.is_display_primary:
            source.is_display_primary = False
            source.save(update_fields=["is_display_primary"])
            _record(actor, source, "DISPLAY_PRIMARY_UNSET", [str(source.pk)])
    return source


def _lock_siblings(source_id: UUID) -> None:
    """Two people who choose for one retailer go one after the other; new sources may still be added meanwhile."""
    retailer = Retailer.objects.filter(sources=source_id).select_for_update(no_key=True, of=("self",)).first()
    if retailer is None:
        raise unknown(source_id)


def _record(actor: Actor, source: Source, verb: str, former: list[str]) -> None:
    detail = {"retailer": source.retailer_id, "former": former}
    audit.record(actor, verb, "source", source.pk, changed=["is_display_primary"], detail=detail)
    log.info(verb, source_id=str(source.pk), retailer_id=str(source.retailer_id), changed_by=actor.id)
