"""Pages to be read: add, change, move and delete them, one or many."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from harvester.catalog import fields, offers, page_products
from harvester.catalog.models import Source
from harvester.engine.cron import next_moment
from harvester.kernel.actor import Actor
from harvester.kernel.errors import ConfigError, Conflict, InvalidInput, NotFound
from harvester.kernel.text import trim
from harvester.ops import audit
from harvester.runs import parts
from harvester.scraping import alerts
from harvester.scraping.addresses import Candidate, Wanted, address_on, candidates_text, find_products, has_feed
from harvester.scraping.models import KeptPage, QuarantineEntry, ScrapeTarget
from harvester.scraping.runs import SCRAPE_RUNS
from harvester.scraping.settings import InvalidSettings
from harvester.scraping.states import TargetStatus
from harvester.scraping.target_filters import TargetFilter

#: The adapter that serves any shop.
ANY_SHOP: Final = "structured"
#: More at once needs an admin.
MOST_WITHOUT_ADMIN: Final = 1_000
LONGEST_NOTES: Final = 2_000
_CRON_FIELDS: Final = 5
#: What changes when a page is fetched from another address, is of another product, or becomes another page.
_ANOTHER_ADDRESS: Final[Mapping[str, Any]] = {
    "etag": None, "last_modified": None, "last_full_fetch_at": None, "moved_to": None, "waiting": None,
    "recheck_at": None, "recheck_reason": None, "consecutive_failures": 0,
}  # fmt: skip
_ANOTHER_PRODUCT: Final[Mapping[str, Any]] = {
    "pinned": None, "pinned_product_id": None, "waiting": None, "last_seen": None, "etag": None, "last_modified": None,
}  # fmt: skip
_ANOTHER_PAGE: Final[Mapping[str, Any]] = {
    **_ANOTHER_ADDRESS, **_ANOTHER_PRODUCT, "page": None, "last_seen": None, "last_status": None, "last_detail": None,
    "last_success_at": None,
}  # fmt: skip
_ACTIVE_AGAIN: Final[Mapping[str, Any]] = {"consecutive_failures": 0, "recheck_at": None, "recheck_reason": None}


class NotLinked(InvalidInput):
    """The page of a source with a feed is not clearly of one of the feed's products.

    Attributes:
        candidates: products that it may be of.
    """

    code = "PAGE_NOT_LINKED"

    def __init__(self, reason: str, candidates: Iterable[Candidate]) -> None:
        super().__init__(reason, field="product_id")
        self.candidates = tuple(candidates)


class TooMany(Conflict):
    """So many pages may only be changed by an admin."""

    code = "TOO_MANY_PAGES"


def read_schedule(name: str, value: Any) -> str | None:
    """Return a cron line as it is stored; None for pages that are read on request only."""
    if value is not None and not isinstance(value, str):
        raise InvalidInput("it must be a cron line of five fields in UTC, such as `0 */4 * * *`.", field=name)
    line = " ".join(trim(value).split())
    if not line:
        return None
    try:
        # CronSim reads six fields too.
        is_due = len(line) <= fields.LONGEST_NAME and len(line.split(" ")) == _CRON_FIELDS
        is_due = is_due and bool(next_moment(line, database_now()))
    except ConfigError:
        is_due = False
    if not is_due:
        raise InvalidInput(
            f"{line[:60]!r} is not a cron line that is ever due; use five fields in UTC (minute, hour, day, month, "
            "weekday), such as `0 */4 * * *` for every four hours.",
            field=name,
        )
    return line


def _status(name: str, value: Any) -> str:
    if value not in (TargetStatus.ACTIVE, TargetStatus.PAUSED):
        raise InvalidInput("it must be ACTIVE or PAUSED; the system itself sets BROKEN and STALE.", field=name)
    return str(value)


def _notes(name: str, value: Any) -> str:
    text = "" if value is None else value
    if not isinstance(text, str):
        raise InvalidInput("it must be a text.", field=name)
    if len(text) > LONGEST_NOTES:
        raise InvalidInput(f"has {len(text):,} characters; at most {LONGEST_NOTES:,} are allowed.", field=name)
    return "\n".join(fields.optional_text(name, line, LONGEST_NOTES) for line in text.strip().splitlines())


#: Settings of a page -> check. `url` and `product_id` have verbs of their own, because they depend on the source.
CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "schedule": read_schedule,
    "priority": fields.whole(-100, 100),
    "notes": _notes,
    "enabled": fields.flag,
    "status": _status,
    "robots_path_blocked": fields.flag,
}


@transaction.atomic
def add_target(
    actor: Actor,
    source_id: UUID,
    url: str,
    *,
    product_id: int | None = None,
    sku: str = "",
    gtin: str = "",
    **settings: Any,
) -> ScrapeTarget:
    """Add a page of a source. Needs: operator.

    Args:
        actor: who adds it.
        source_id: the source; the page must be on its domain.
        url: fetched exactly as given.
        product_id: a product of the source, of which the page then changes only price and stock.
        sku: names that product instead; needed for a source with a feed if the address does not.
        gtin: the same.
        settings: see `CHECKS`; `status` and `robots_path_blocked` come later.

    Raises:
        NotLinked: the source has a feed, and the page is not clearly of one of its products.
    """
    values = checked({"enabled": True, **settings})
    source = locked_source(source_id)
    address = address_on(source, url)
    product_id = _linked(source, address.url, product_id, sku, gtin)
    try:
        with transaction.atomic():
            made = ScrapeTarget.objects.create(
                source=source, adapter_id=ensure_adapter(source), url=address.url, canonical_url=address.canonical,
                product_id=product_id, created_by=actor.name, due_at=first_due(values.get("schedule")), **values,
            )  # fmt: skip
    except IntegrityError:
        raise Conflict(f"{source} has this page already. Nothing was changed.", field="url") from None
    detail = {"source": str(source.pk), "url": address.url, "product_id": product_id, **values}
    audit.record(actor, "SCRAPE_TARGET_ADDED", "scrape_target", made.pk, detail=detail)
    made.refresh_from_db()
    return made


@transaction.atomic
def update_target(actor: Actor, target_id: UUID, **changes: Any) -> ScrapeTarget:
    """Change settings of a page, its address (`url`) or its product (`product_id`; None unlinks it).

    Needs: operator; for `robots_path_blocked` admin. Another address makes it another page: what was read from the old
    one no longer counts, and its product is found again.
    """
    target = locked_target(target_id)
    url, is_relinked = changes.pop("url", target.url), "product_id" in changes
    product_id = changes.pop("product_id", target.product_id)
    values = checked(changes)
    if url != target.url:
        address = address_on(target.source, url)
        values |= {"url": address.url, "canonical_url": address.canonical}
        if address.canonical != target.canonical_url:
            values |= _ANOTHER_PAGE
            product_id, is_relinked = (product_id if is_relinked else None), True
    if is_relinked:
        values["product_id"] = _linked(target.source, values.get("url", target.url), product_id, "", "")
        if values["product_id"] != target.product_id:
            values |= _ANOTHER_PRODUCT
    if target.status == TargetStatus.BROKEN and "canonical_url" in values and "status" not in values:
        values["status"] = TargetStatus.ACTIVE.value
    if "page" in values:
        _forget_page(actor, target)
    before = target.product_id
    _apply(actor, target, values)
    if before is not None and before != target.product_id:
        _end_lead(target.source, before)
    return target


@transaction.atomic
def pause_target(actor: Actor, target_id: UUID) -> ScrapeTarget:
    """Stop reading a page until it is resumed. Needs: operator."""
    return update_target(actor, target_id, status=TargetStatus.PAUSED)


@transaction.atomic
def resume_target(actor: Actor, target_id: UUID) -> ScrapeTarget:
    """Read a paused, broken or stale page again. Needs: operator. Its failures are counted from zero."""
    return update_target(actor, target_id, status=TargetStatus.ACTIVE)


@transaction.atomic
def replace_moved(actor: Actor, target_id: UUID) -> ScrapeTarget:
    """Read a page from now on where the shop permanently redirects it to. Needs: operator.

    It is the same product, so what is known about it stays.
    """
    target = locked_target(target_id)
    if not target.moved_to:
        raise Conflict(f"The shop has not moved {target.url}. Nothing was changed.")
    address = address_on(target.source, target.moved_to)
    if address.canonical != target.canonical_url:
        other = ScrapeTarget.objects.filter(source_id=target.source_id, canonical_url=address.canonical).first()
        if other is not None:
            raise Conflict(f"{target.source} reads {other.url} already. Nothing was changed; delete one of both pages.")
    revived = {"status": TargetStatus.ACTIVE.value} if target.status == TargetStatus.BROKEN else {}
    _apply(actor, target, {**_ANOTHER_ADDRESS, **revived, "url": address.url, "canonical_url": address.canonical})
    return target


@transaction.atomic
def delete_target(actor: Actor, target_id: UUID) -> None:
    """Delete a page with what was kept of it; prices that it has written stay. Needs: admin.

    Its open job ends without a request.
    """
    target = locked_target(target_id)
    detail = {"source": str(target.source_id), "url": target.url, "product_id": target.product_id}
    audit.record(actor, "SCRAPE_TARGET_DELETED", "scrape_target", target.pk, detail=detail)
    target.delete()


@transaction.atomic
def update_targets(actor: Actor, wanted: TargetFilter, *, most: int | None = MOST_WITHOUT_ADMIN, **changes: Any) -> int:
    """Change settings of all pages that match; return how many changed.

    Needs: operator; admin to set `most` to None, so that more than 1,000 may change, and for `robots_path_blocked`.
    """
    values = checked(changes)
    if not values:
        return 0
    targets = _locked_targets(wanted, most)
    differing = ScrapeTarget.objects.filter(pk__in=targets)
    written = {**values, "updated_at": Now()}
    if values.get("status") == TargetStatus.ACTIVE:
        written |= _ACTIVE_AGAIN
    if "schedule" in values:
        written["due_at"] = first_due(values["schedule"])
    same = {f"{name}__isnull" if value is None else name: value is None or value for name, value in values.items()}
    changed = differing.exclude(**same).update(**written)
    detail = {"filter": wanted.as_detail(), "to": values, "count": changed}
    audit.record(actor, "SCRAPE_TARGETS_UPDATED", "source", wanted.source_id or "all", changed=values, detail=detail)
    return changed


@transaction.atomic
def delete_targets(actor: Actor, wanted: TargetFilter, *, most: int | None = MOST_WITHOUT_ADMIN) -> int:
    """Delete all pages that match; return how many. Needs: admin."""
    targets = _locked_targets(wanted, most)
    ScrapeTarget.objects.filter(pk__in=targets).delete()
    detail = {"filter": wanted.as_detail(), "count": len(targets)}
    audit.record(actor, "SCRAPE_TARGETS_DELETED", "source", wanted.source_id or "all", detail=detail)
    return len(targets)


def locked_source(source_id: UUID) -> Source:
    """Return the source with its retailer, locked before its pages are."""
    found = Source.objects.select_for_update(of=("self",)).select_related("retailer").filter(pk=source_id).first()
    if found is None:
        raise NotFound(f"There is no source {source_id}; `harvester source list` shows them all.")
    return found


def locked_target(target_id: UUID) -> ScrapeTarget:
    """Return a page, locked after its source."""
    source_id = ScrapeTarget.objects.filter(pk=target_id).values_list("source_id", flat=True).first()
    if source_id is not None:
        source = locked_source(source_id)
        found = ScrapeTarget.objects.select_for_update(no_key=True).filter(pk=target_id).first()
        if found is not None:
            found.source = source
            return found
    raise NotFound(f"There is no page {target_id}; it may have been deleted.")


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of pages as they are stored.

    Raises:
        InvalidSettings: with all problems.
    """
    problems: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in CHECKS:
            problems[name] = f"{name}: a page has no such setting; there are {', '.join(CHECKS)}."
            continue
        try:
            values[name] = CHECKS[name](name, value)
        except InvalidInput as problem:
            problems[name] = str(problem)
    if problems:
        raise InvalidSettings(problems)
    return values


def ensure_adapter(source: Source) -> str:
    """Return the adapter of a source; one without gets the adapter that serves any shop."""
    if source.adapter_id is None:
        source.adapter_id = ANY_SHOP
        source.save(update_fields=["adapter_id"])
    return source.adapter_id


def first_due(schedule: str | None) -> datetime | None:
    """Return the next moment of a schedule, counted from now."""
    return next_moment(schedule, database_now()) if schedule else None


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def _linked(source: Source, url: str, product_id: int | None, sku: str, gtin: str) -> int | None:
    """Return the product of the source that a page refreshes; None if it describes a product of its own.

    Raises:
        NotLinked: the source has a feed, or a product was named, and it is not clear which one is meant.
        NotFound: the source has no such product.
    """
    if product_id is not None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM source_products WHERE (source_id, id) = (%s, %s)", [source.pk, product_id])
            if cursor.rowcount == 0:
                raise NotFound(f"{source} has no product {product_id}.", field="product_id")
        return product_id
    is_needed = has_feed(source.pk)
    if not is_needed and not trim(sku) and not trim(gtin):
        return None
    [link] = find_products(source.pk, [Wanted(url=url, sku=trim(sku), gtin=trim(gtin))])
    if link.product_id is not None:
        return link.product_id
    why = f"The products of {source} come from its feed, and it is not clear which one this page is of."
    step = "Name its SKU, GTIN or product."
    if not is_needed:
        numbers = " and ".join(f"{name} {value}" for name, value in (("SKU", trim(sku)), ("GTIN", trim(gtin))) if value)
        why = f"It is not clear which product of {source} has the {numbers}."
        if not link.candidates:
            why = f"{source} has no product with the {numbers}."
            step = "Leave it out, and the page describes a product of its own."
    if link.candidates:
        step = f"Name the product; possible are {candidates_text(link.candidates)}."
    raise NotLinked(f"{why} {step}", link.candidates)


def _forget_page(actor: Actor, target: ScrapeTarget) -> None:
    """Drop what was read from the old address of a page, so that it is never written as what the new one says."""
    parts.drop_target(SCRAPE_RUNS, target.source_id, target.pk, "The page got another address meanwhile.")
    KeptPage.objects.filter(target=target).update(target=None)
    waiting = QuarantineEntry.objects.filter(target=target, status="OPEN")
    note = "The page got another address."
    if waiting.update(status="DISMISSED", resolved_at=Now(), resolved_by=actor.name, note=note):
        alerts.zero_prices_changed(target.source_id, str(target.source))


def _end_lead(source: Source, product_id: int) -> None:
    """Show what the feed says about a product whose page turned out to be of another one, unless it has more pages."""
    if not ScrapeTarget.objects.filter(source=source, product_id=product_id).exists():
        with connection.cursor() as cursor:
            page_products.drop_leads(cursor, source.pk, [product_id])
        offers.recompute(source.pk, [product_id], comparison=offers.Comparison.NEWEST)


def _apply(actor: Actor, target: ScrapeTarget, values: dict[str, Any]) -> None:
    before = {name: getattr(target, name) for name, value in values.items() if getattr(target, name) != value}
    if not before:
        return
    written = {name: values[name] for name in before}
    if "schedule" in written:
        written["due_at"] = first_due(written["schedule"])
    if written.get("status") == TargetStatus.ACTIVE:
        written |= _ACTIVE_AGAIN
    for name, value in written.items():
        setattr(target, name, value)
    target.updated_at = Now()
    try:
        with transaction.atomic():
            target.save(update_fields=[*written, "updated_at"])
    except IntegrityError:
        raise Conflict(f"{target.source} has this page already. Nothing was changed.", field="url") from None
    shown = [name for name in before if name in CHECKS or name in ("url", "product_id")]
    detail = {"from": {name: before[name] for name in shown}, "to": {name: values[name] for name in shown}}
    audit.record(actor, "SCRAPE_TARGET_UPDATED", "scrape_target", target.pk, changed=shown, detail=detail)
    target.refresh_from_db()


def _locked_targets(wanted: TargetFilter, most: int | None) -> list[UUID]:
    """Return the pages that match, locked after their sources, in the order in which everybody locks them."""
    targets = wanted.targets()
    count = targets.count()
    if most is not None and count > most:
        raise TooMany(
            f"{count:,} pages match; changing more than {most:,} at once needs an admin. Nothing was changed."
        )
    owners = list(targets.order_by().values_list("source_id", flat=True).distinct())
    list(Source.objects.select_for_update().filter(pk__in=owners).order_by("pk").values_list("pk"))
    rows = targets.select_for_update(no_key=True).filter(source_id__in=owners).order_by(F("id"))
    return list(rows.values_list("pk", flat=True))
