"""The display primary: the one source of a retailer that consumers see."""

from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import transaction

from harvester.catalog.models import Retailer, Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.sources import locked_of, refuse_direct_with_a_feed, unknown
from harvester.catalog.states import SourceKind
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict
from harvester.ops import audit

log = structlog.get_logger(__name__)

#: Offers of a source that a preview counts, and those that it lists.
MOST_COUNTED = 50_000
SAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Side:
    """The offers of a source that would disappear or appear.

    Attributes:
        source: the source.
        offers: number of its offers that have not expired.
        is_more: there are more than were counted.
        samples: titles of some.
    """

    source: Source
    offers: int
    is_more: bool
    samples: list[str]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The effects of a change on consumers."""

    vanishing: list[Side]
    appearing: list[Side]

    @property
    def state(self) -> str:
        """The preview as a short text that differs for other sources or counts."""
        sides = [("-", side) for side in self.vanishing] + [("+", side) for side in self.appearing]
        return " ".join(f"{sign}{side.source.pk}:{side.offers}" for sign, side in sides)


_ACTIVE = "SELECT a.source_id, a.product_id FROM active_offers a WHERE a.source_id = %(source)s LIMIT %(most)s"
_COUNT = f"SELECT count(*) AS offers FROM ({_ACTIVE}) x"  # noqa: S608 - constants only
_TITLES = f"""
SELECT p.title FROM ({_ACTIVE}) x JOIN source_products p ON p.source_id = x.source_id AND p.id = x.product_id
"""  # noqa: S608 - constants only
_SHOWN = """
SELECT w.source_id FROM source_windows w JOIN sources s ON s.id = %(source)s
WHERE w.retailer_id = s.retailer_id AND w.is_shown
"""


def preview(source_id: UUID, *, primary: bool) -> Preview:
    """Return which offers would disappear and appear if this source were, or were not, the display primary."""
    source = Source.objects.filter(pk=source_id).first()
    if source is None:
        raise unknown(source_id)
    siblings = Source.objects.filter(retailer_id=source.retailer_id).order_by("name")
    now = {row["source_id"] for row in fetch(_SHOWN, {"source": source_id})}
    # The rule of `source_windows`, for flags that are not set yet.
    if primary:
        then = {source.pk}
    elif source.is_display_primary:
        then = {other.pk for other in siblings if other.kind == SourceKind.DIRECT}
    else:
        raise Conflict(f"{source} is not the display primary; nothing would change.")
    return Preview(
        vanishing=[_side(other) for other in siblings if other.pk in now - then],
        appearing=[_side(other) for other in siblings if other.pk in then - now],
    )


def preview_kind(source_id: UUID, kind: str) -> Preview:
    """Return which offers would disappear and appear if this source were of another kind.

    Raises:
        Conflict: it cannot have that kind.
    """
    source = Source.objects.filter(pk=source_id).first()
    if source is None:
        raise unknown(source_id)
    refuse_direct_with_a_feed(source, kind)
    siblings = list(Source.objects.filter(retailer_id=source.retailer_id))
    has_primary = any(other.is_display_primary for other in siblings)
    is_shown = bool({row["source_id"] for row in fetch(_SHOWN, {"source": source_id})} & {source_id})
    would_be = source.is_display_primary or (kind == SourceKind.DIRECT and not has_primary)
    return Preview(
        vanishing=[_side(source)] if is_shown and not would_be else [],
        appearing=[_side(source)] if would_be and not is_shown else [],
    )


def _side(source: Source) -> Side:
    [counted] = fetch(_COUNT, {"source": source.pk, "most": MOST_COUNTED + 1})
    titles = fetch(_TITLES, {"source": source.pk, "most": SAMPLES})
    return Side(
        source=source,
        offers=min(counted["offers"], MOST_COUNTED),
        is_more=counted["offers"] > MOST_COUNTED,
        samples=[row["title"] for row in titles],
    )


def set_display_primary(actor: Actor, source_id: UUID) -> Source:
    """Make this source the display primary of its retailer, in place of any other. Takes effect at once."""
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
    """Leave the retailer without a display primary: then only its direct sources are shown."""
    with transaction.atomic():
        source = _locked_siblings(source_id)[source_id]
        if source.is_display_primary:
            source.is_display_primary = False
            source.save(update_fields=["is_display_primary"])
            _record(actor, source, "DISPLAY_PRIMARY_UNSET", [str(source.pk)])
    return source


def _locked_siblings(source_id: UUID) -> dict[UUID, Source]:
    """Return all sources of the retailer, locked in the order that prevents deadlocks."""
    retailer = Retailer.objects.filter(sources=source_id).select_for_update(no_key=True, of=("self",)).first()
    if retailer is None:
        raise unknown(source_id)
    return {source.pk: source for source in locked_of(retailer.pk)}


def _record(actor: Actor, source: Source, verb: str, former: list[str]) -> None:
    detail = {"retailer": source.retailer_id, "former": former}
    audit.record(actor, verb, "source", source.pk, changed=["is_display_primary"], detail=detail)
    log.info(verb, source_id=str(source.pk), retailer_id=str(source.retailer_id), changed_by=actor.id)
