"""Which of a retailer's sources consumers see: at most one is the display primary."""

from uuid import UUID

import structlog
from django.db import transaction

from harvester.catalog.models import Retailer, Source
from harvester.catalog.sources import locked_of, unknown
from harvester.kernel.actor import Actor
from harvester.ops import audit

log = structlog.get_logger(__name__)


def set_display_primary(actor: Actor, source_id: UUID) -> Source:
    """Make this source the one of its retailer that is shown; any other is so no longer. Holds at once."""
    with transaction.atomic():
        siblings = _locked_siblings(source_id)
        source = siblings.pop(source_id)
        if source.is_display_primary:
            return source
        former = [str(other.pk) for other in siblings.values() if other.is_display_primary]
        Source.objects.filter(pk__in=former).update(is_display_primary=False)
        source.is_display_primary = True
        source.save(update_fields=["is_display_primary"])
        _record(actor, source, "DISPLAY_PRIMARY_SET", former)
    return source


def unset_display_primary(actor: Actor, source_id: UUID) -> Source:
    """Leave the retailer without a primary: then its direct sources are shown, and no other."""
    with transaction.atomic():
        source = _locked_siblings(source_id)[source_id]
        if source.is_display_primary:
            source.is_display_primary = False
            source.save(update_fields=["is_display_primary"])
            _record(actor, source, "DISPLAY_PRIMARY_UNSET", [str(source.pk)])
    return source


def _locked_siblings(source_id: UUID) -> dict[UUID, Source]:
    """All sources of the retailer, locked in the order in which everybody locks several."""
    retailer = Retailer.objects.filter(sources=source_id).select_for_update(no_key=True, of=("self",)).first()
    if retailer is None:
        raise unknown(source_id)
    return {source.pk: source for source in locked_of(retailer.pk)}


def _record(actor: Actor, source: Source, verb: str, former: list[str]) -> None:
    detail = {"retailer": source.retailer_id, "former": former}
    audit.record(actor, verb, "source", source.pk, changed=["is_display_primary"], detail=detail)
    log.info(verb, source_id=str(source.pk), retailer_id=str(source.retailer_id), changed_by=actor.id)
