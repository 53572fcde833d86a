"""Sources of retailers' offers: created and changed by people, never deleted."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog
from django.db import IntegrityError, connection, transaction
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from harvester.catalog import fields, offers, page_products
from harvester.catalog.changes import change
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind, Visibility
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.text import trim
from harvester.kernel.tracking_url import check_template
from harvester.ops import audit

log = structlog.get_logger(__name__)

#: The same limits as in the table's CHECK.
EXPIRY_HOURS = fields.whole(1, 168)


def _template(field: str, value: Any) -> str:
    text = trim(value)
    try:
        return check_template(text) if text else ""
    except InvalidInput as problem:
        raise InvalidInput(f"{problem}", field=field) from None


CHECKS: Mapping[str, fields.Check] = {
    "name": fields.required_text,
    "kind": fields.choice(SourceKind),
    "url": fields.optional_url,
    "affiliate_network": fields.network,
    "affiliate_account_id": fields.text_or_nothing,
    "affiliate_account_name": fields.text_or_nothing,
    "tracking_template": _template,
    "upc_trusted": fields.flag,
    "visibility": fields.choice(Visibility),
    "price_heartbeat_hours": fields.whole(1, 720),
    "max_hold_hours": fields.whole(1, 720),
}


def create(actor: Actor, retailer_id: UUID, *, name: str, kind: str = SourceKind.DIRECT, **more: Any) -> Source:
    """Add a source to a retailer. Use `set_display_primary` to make it the display primary."""
    values = fields.checked(CHECKS, {"name": name, "kind": kind, **more})
    if not Retailer.objects.filter(pk=retailer_id).exists():
        raise NotFound(f"There is no retailer {retailer_id}; `harvester retailer list` shows them all.")
    source = Source(retailer_id=retailer_id, **values)
    try:
        with transaction.atomic():
            source.save(force_insert=True)
            audit.record(actor, "SOURCE_CREATED", "source", source.pk, detail={"retailer": retailer_id, **values})
    except IntegrityError:
        raise _name_taken(values["name"]) from None
    return source


def update(actor: Actor, source_id: UUID, **changes: Any) -> Source:
    """Change the fields of a source, except its retailer."""
    values = fields.checked(CHECKS, changes)
    try:
        with transaction.atomic():
            source = locked(source_id)
            refuse_direct_with_a_feed(source, values.get("kind"))
            _check_hold_hours(source, values.get("max_hold_hours", source.max_hold_hours))
            before = change(actor, source, values, "SOURCE_UPDATED")
            if "visibility" in before:
                with connection.cursor() as cursor:
                    page_products.end_leads(cursor, source.pk)
                    products = page_products.products_of_pages(cursor, source.pk)
                offers.recompute(source.pk, products, comparison=offers.Comparison.NEWEST)
    except IntegrityError:
        raise _name_taken(values["name"]) from None
    return source


def set_expiry_hours(actor: Actor, source_id: UUID, hours: int) -> Source:
    """Change after how many hours unseen offers expire. Takes effect at once, also for existing offers."""
    value = EXPIRY_HOURS("expiry_hours", hours)
    with transaction.atomic():
        source = locked(source_id)
        if source.held_run_no is not None and source.expiry_hours != value:
            raise _decide_first(source, "expiry_hours")
        before = change(actor, source, {"expiry_hours": value}, "EXPIRY_HOURS_CHANGED")
    if before:
        log.warning(
            "EXPIRY_HOURS_CHANGED",
            source_id=str(source.pk),
            old_value=before["expiry_hours"],
            new_value=value,
            changed_by=actor.id,
        )
    return source


def find(reference: str) -> Source:
    """Return the source with this id or name."""
    try:
        found = Source.objects.select_related("retailer").filter(pk=UUID(reference)).first()
    except ValueError:
        found = Source.objects.select_related("retailer").filter(name=reference).first()
    if found is None:
        raise unknown(reference)
    return found


def with_shown() -> QuerySet[Any]:
    """Return sources with `is_shown`: whether consumers see them."""
    is_shown = "SELECT w.is_shown FROM source_windows w WHERE w.source_id = sources.id"
    return Source.objects.select_related("retailer").annotate(is_shown=RawSQL(is_shown, [], BooleanField()))  # noqa: S611 - a constant


def locked(source_id: UUID) -> Source:
    """Return the source with its row locked; promotions, decisions and recomputing wait."""
    source = Source.objects.select_for_update().filter(pk=source_id).first()
    if source is None:
        raise unknown(source_id)
    return source


def locked_of(retailer_id: UUID) -> list[Source]:
    """Return all sources of a retailer, locked in one order, so that two callers cannot deadlock."""
    return list(Source.objects.select_for_update().filter(retailer_id=retailer_id).order_by("pk"))


def unknown(reference: object) -> NotFound:
    return NotFound(f"There is no source {reference}; `harvester source list` shows them all.")


def refuse_direct_with_a_feed(source: Source, kind: str | None) -> None:
    """Raise Conflict if a source with a feed would become direct: that would show its offers at once."""
    becomes_direct = kind == SourceKind.DIRECT and source.kind != SourceKind.DIRECT
    if becomes_direct and Source.objects.filter(pk=source.pk, feed__isnull=False).exists():
        raise Conflict(
            f"{source} has a feed, so it cannot become DIRECT: consumers would see its offers at once. Nothing "
            "was changed. To show its offers, make it the display primary.",
            field="kind",
        )


def _check_hold_hours(source: Source, hours: int) -> None:
    """Raise Conflict if the source's clock would jump."""
    if hours == source.max_hold_hours:
        return
    if source.held_run_no is not None:
        raise _decide_first(source, "max_hold_hours")
    if source.frozen.total_seconds() > 3600 * min(hours, source.max_hold_hours):
        raise Conflict(
            f"earlier holds have stopped the clock of {source} for longer than that. Nothing was "
            "changed; change it after the next promotion.",
            field="max_hold_hours",
        )


def _decide_first(source: Source, field: str) -> Conflict:
    return Conflict(
        f"run {source.held_run_no} of {source} is held; approve or reject it first. Nothing was changed.", field=field
    )


def _name_taken(name: str) -> Conflict:
    return Conflict(f"a source named {name} exists already; choose another name.", field="name")
