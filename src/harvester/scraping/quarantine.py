"""Pages that were read and not believed: one open entry for each page, until a person or a newer page decides."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Max
from django.db.models.functions import Now

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.ids import uuid7
from harvester.kernel.rejects import Rejected
from harvester.ops import audit
from harvester.pipeline.baseline import Baseline, read_baseline
from harvester.runs.models import RunPart
from harvester.scraping import alerts
from harvester.scraping.models import QuarantineEntry, ScrapeOverride, ScrapeTarget
from harvester.scraping.offers import ScrapedOffer, offer_from_json
from harvester.scraping.promotion import Reading, other_product, promote
from harvester.scraping.reader.places import check_place
from harvester.scraping.site import FIELDS
from harvester.scraping.states import MEANINGS, PageOutcome

OPEN, WRITTEN, DISMISSED, SUPERSEDED = "OPEN", "WRITTEN", "DISMISSED", "SUPERSEDED"
#: Characters of a place, such as a CSS selector.
LONGEST_PLACE: Final = 500
LONGEST_DETAIL: Final = 2000

_CLOSE = """
UPDATE quarantine SET status = 'SUPERSEDED', resolved_at = %(moment)s, resolved_by = 'scraping',
    note = 'A newer page of it is in quarantine.'
WHERE target_id = %(target)s AND status = 'OPEN' AND observed_at <= %(at)s
"""
# A page that is older than the one that waits does not take its place.
_KEEP = """
INSERT INTO quarantine (id, source_id, target_id, run_no, part_id, reason, detail, adapter_id, version, found, evidence,
    page, observed_at)
SELECT %(id)s, %(source)s, %(target)s, %(run)s, %(part)s, %(reason)s, %(detail)s, %(adapter)s, p.version, p.found,
    coalesce(p.detail -> 'evidence', '[]'), p.page, %(at)s
FROM (SELECT coalesce(version, '') AS version, found, detail, page FROM run_parts
      WHERE id = %(part)s AND begun_at = %(begun)s) p
ON CONFLICT (target_id) WHERE status = 'OPEN' DO NOTHING
"""


def keep(cursor: Any, baseline: Baseline, target: ScrapeTarget, adapter_id: str, part: RunPart) -> None:
    """Put a page into quarantine; it takes the place of an older one of its target."""
    at, outcome = part.observed_at or baseline.moment, PageOutcome(part.outcome or "")
    detail = str(part.detail.get("error") or MEANINGS[outcome])
    if outcome in (PageOutcome.DRIFT_DETECTED, PageOutcome.SAME_VALUE, PageOutcome.BULK_MOVE):
        detail = MEANINGS[outcome]
    values = {
        "id": uuid7(), "source": target.source_id, "target": target.pk, "run": part.run.no, "part": part.pk,
        "begun": part.begun_at, "reason": outcome.value, "detail": detail[:LONGEST_DETAIL], "adapter": adapter_id,
        "at": at, "moment": baseline.moment,
    }  # fmt: skip
    cursor.execute(_CLOSE, values)
    cursor.execute(_KEEP, values)
    if outcome is PageOutcome.ZERO_PRICE_EXTRACTED:
        alerts.zero_prices_changed(target.source_id, str(target.source))


@transaction.atomic
def dismiss(actor: Actor, entry_id: UUID, note: str = "") -> QuarantineEntry:
    """Close an entry without writing anything; the next page of the target is judged like any other."""
    with connection.cursor() as cursor:
        entry, _ = _locked(cursor, entry_id)
    _resolve(entry, DISMISSED, actor, note)
    audit.record(actor, "QUARANTINE_DISMISSED", "scrape_target", entry.target_id, detail=_facts(entry))
    return entry


@transaction.atomic
def write_one(actor: Actor, entry_id: UUID, offer: ScrapedOffer | None = None, *, note: str = "") -> QuarantineEntry:
    """Write the offer of an entry: "this is the price", or what the page says when it is read again.

    That a price moved, or that others have it too, was looked at by a person now. What cannot be right is refused all
    the same: another product than before, or a price that is not valid.

    Args:
        actor: who decided.
        entry_id: the entry; afterwards its status is WRITTEN, or SUPERSEDED if a newer page was written before.
        offer: what to write; that of the entry if not given.
        note: why.
    """
    with connection.cursor() as cursor:
        entry, baseline = _locked(cursor, entry_id)
        target = ScrapeTarget.objects.select_for_update(no_key=True).select_related("source").get(pk=entry.target_id)
        try:
            chosen = offer or offer_from_json(entry.found or {})
        except (ValueError, TypeError, KeyError):
            raise InvalidInput(
                f"Not enough was read of {target}: {entry.detail} Nothing was written; choose where the price is, or "
                "dismiss the entry.",
                field="offer",
            ) from None
        if reason := other_product(target, chosen):
            raise Conflict(f"{reason} Nothing was written. Unpin the page first if it is meant to show this product.")
        # It must not be superseded by its own offer.
        _resolve(entry, WRITTEN, actor, note)
        reading = Reading(target=target, offer=chosen, observed_at=entry.observed_at, run_no=entry.run_no)
        try:
            done = promote(cursor, baseline, [reading])
        except Rejected as problem:
            raise InvalidInput(f"The offer cannot be written: {problem}. Nothing was changed.", field="offer") from None
        if done.superseded:
            _resolve(entry, SUPERSEDED, actor, "A newer page of the product was written before.")
        elif target.waiting:
            ScrapeTarget.objects.filter(pk=target.pk).update(waiting=None, recheck_at=None, recheck_reason=None)
    detail = {**_facts(entry), "price": str(chosen.price), "availability": chosen.availability.value}
    audit.record(actor, f"QUARANTINE_{entry.status}", "scrape_target", target.pk, detail=detail)
    return entry


@transaction.atomic
def choose_places(actor: Actor, entry_id: UUID, places: Mapping[str, str]) -> ScrapeTarget:
    """Save where the fields of a target are on its page; its next reading begins there."""
    chosen = _checked_places(places)
    with connection.cursor() as cursor:
        entry, _ = _locked(cursor, entry_id)
    target = ScrapeTarget.objects.select_for_update(no_key=True).get(pk=entry.target_id)
    target.chosen = {**target.chosen, **chosen}
    ScrapeTarget.objects.filter(pk=target.pk).update(
        chosen=target.chosen, etag=None, last_modified=None, updated_at=Now()
    )
    detail = {**_facts(entry), "chosen": chosen}
    audit.record(actor, "SCRAPE_PLACES_CHOSEN", "scrape_target", target.pk, changed=["chosen"], detail=detail)
    return target


@transaction.atomic
def forget_places(actor: Actor, target_id: UUID) -> ScrapeTarget:
    """Read a page by the places of its shop alone again."""
    target = _locked_page(target_id)
    if not target.chosen:
        raise Conflict("No place was chosen for this page. Nothing was changed.")
    detail = {"source": str(target.source_id), "chosen": target.chosen}
    target.chosen, target.etag, target.last_modified, target.updated_at = {}, None, None, Now()
    target.save(update_fields=["chosen", "etag", "last_modified", "updated_at"])
    audit.record(actor, "SCRAPE_PLACES_FORGOTTEN", "scrape_target", target.pk, changed=["chosen"], detail=detail)
    return target


@transaction.atomic
def propose_override(actor: Actor, entry_id: UUID, places: Mapping[str, str], note: str = "") -> ScrapeOverride:
    """Save where the fields are on all pages of a source, as a draft that counts after it was tested on kept pages."""
    chosen = _checked_places(places)
    with connection.cursor() as cursor:
        entry, _ = _locked(cursor, entry_id)
    overrides = ScrapeOverride.objects.filter(source_id=entry.source_id)
    active = overrides.filter(status="ACTIVE").first()
    before = dict(active.places) if active else {}
    # The chosen place leads; the others stay behind it.
    fields = {**before.get("places", {})}
    for name, place in chosen.items():
        fields[name] = [place, *(each for each in fields.get(name, []) if each != place)]
    version = (overrides.aggregate(newest=Max("version"))["newest"] or 0) + 1
    made = ScrapeOverride.objects.create(
        source_id=entry.source_id, version=version, places={**before, "places": fields}, note=note,
        created_by=actor.name,
    )  # fmt: skip
    detail = {**_facts(entry), "version": version, "places": chosen}
    audit.record(actor, "SCRAPE_OVERRIDE_PROPOSED", "source", entry.source_id, detail=detail)
    return made


@transaction.atomic
def unpin(actor: Actor, target_id: UUID) -> ScrapeTarget:
    """Let a page show another product than before: the next offer that is written pins it again."""
    target = _locked_page(target_id)
    detail = {"source": str(target.source_id), "pinned": target.pinned, "product_id": target.pinned_product_id}
    target.pinned = target.pinned_product_id = target.last_seen = target.etag = target.last_modified = None
    target.save(update_fields=["pinned", "pinned_product_id", "last_seen", "etag", "last_modified"])
    audit.record(actor, "SCRAPE_TARGET_UNPINNED", "scrape_target", target.pk, changed=["pinned"], detail=detail)
    return target


def delete_old(days: int = 90) -> int:
    """Delete entries that were made so many days ago, the open ones too; the transaction is the caller's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM quarantine WHERE created_at < clock_timestamp() - %s * interval '1 day' "
            "RETURNING source_id, status, reason",
            [days],
        )
        deleted = cursor.fetchall()
    zero = PageOutcome.ZERO_PRICE_EXTRACTED
    for source_id in sorted({source for source, status, reason in deleted if status == OPEN and reason == zero}):
        alerts.zero_prices_changed(source_id, "")
    return len(deleted)


def _locked_page(target_id: UUID) -> ScrapeTarget:
    """Return a page, after its source was locked like in a run."""
    found = ScrapeTarget.objects.filter(pk=target_id).first()
    if found is None:
        raise NotFound(f"There is no page {target_id}.")
    with connection.cursor() as cursor:
        read_baseline(cursor, found.source_id, lock=True)
    return ScrapeTarget.objects.select_for_update(no_key=True).get(pk=target_id)


def _locked(cursor: Any, entry_id: UUID) -> tuple[QuarantineEntry, Baseline]:
    """Return an open entry, after its source was locked like in a run."""
    found = QuarantineEntry.objects.filter(pk=entry_id).first()
    if found is None:
        raise NotFound(f"There is no entry {entry_id}; entries are deleted after 90 days.")
    baseline = read_baseline(cursor, found.source_id, lock=True)
    entry = QuarantineEntry.objects.select_related("source").get(pk=entry_id)
    if entry.status != OPEN:
        raise Conflict(f"The entry is {entry.status} already, by {entry.resolved_by}. Nothing was changed.")
    return entry, baseline


def _resolve(entry: QuarantineEntry, status: str, actor: Actor, note: str) -> None:
    QuarantineEntry.objects.filter(pk=entry.pk).update(
        status=status, resolved_at=Now(), resolved_by=actor.name, note=note or None
    )
    entry.refresh_from_db()
    if entry.reason == PageOutcome.ZERO_PRICE_EXTRACTED:
        alerts.zero_prices_changed(entry.source_id, str(entry.source))


def _facts(entry: QuarantineEntry) -> dict[str, Any]:
    return {"source": str(entry.source_id), "entry": str(entry.pk), "reason": entry.reason, "run_no": entry.run_no}


def _checked_places(places: Mapping[str, str]) -> dict[str, str]:
    if not places:
        raise InvalidInput("choose at least one field.", field="places")
    if unknown := sorted(places.keys() - set(FIELDS)):
        raise InvalidInput(f"there is no {', '.join(unknown)}; fields are {', '.join(FIELDS)}.", field="places")
    for name, place in places.items():
        if not place.strip() or len(place) > LONGEST_PLACE:
            raise InvalidInput(f"the place of {name} has 1 to {LONGEST_PLACE} characters.", field="places")
        try:
            check_place(place)
        except ValueError as problem:
            raise InvalidInput(f"the place of {name} cannot be used: {problem}.", field="places") from None
    return dict(places)
