"""Quarantine: pages that were read and not believed, and decisions about them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from harvester.api import cursors, responses
from harvester.api.keys import BearerKey, key_of, require
from harvester.api.offers import PRINTABLE
from harvester.api.problems import WrongField
from harvester.api.schemas import Filters
from harvester.api.scraping import page_schemas as schemas
from harvester.ops.scopes import Scope
from harvester.scraping import page_review, queries
from harvester.scraping import quarantine as verbs
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.models import QuarantineEntry
from harvester.scraping.offers import PageReading, ScrapedOffer, offer_from_json, offer_to_json

router = Router(tags=["scraping"], auth=BearerKey(Scope.SCRAPE_READ))
_OPERATE = BearerKey(Scope.SCRAPE_OPERATE)

EntryId = Annotated[UUID, Path(description="as `id` of an entry")]
_SUMMARY = (
    "id", "source_id", "target_id", "reason", "detail", "run_no", "adapter_id", "version", "observed_at", "created_at",
    "status", "resolved_at", "resolved_by", "note",
)  # fmt: skip
#: Bodies that may be left out.
_ENTRY_WRITING: Final = schemas.EntryWriting()
_ENTRY_NOTE: Final = schemas.EntryNote()


class EntryFilters(Filters):
    """The entries to list."""

    source_id: UUID | None = Field(None, description="only of this source")
    reason: str | None = Field(None, max_length=100, pattern=PRINTABLE, description="such as AMBIGUOUS_PRICE")
    status: str = Field(verbs.OPEN, pattern="^(OPEN|WRITTEN|DISMISSED|SUPERSEDED)?$", description="empty: any")
    cursor: str = Field("", max_length=cursors.LONGEST, description="`next_cursor` of the previous page")
    page_size: int = Field(50, ge=1, le=queries.LARGEST_PAGE)


@router.get("/scrape/quarantine", response=schemas.Entries, operation_id="list_quarantine", summary="List quarantine")
def list_entries(request: HttpRequest, filters: Query[EntryFilters]) -> HttpResponse:
    """Pages that were read and not believed, newest first; the open ones unless another status is given."""
    found = queries.quarantine(
        source_id=filters.source_id,
        reason=filters.reason,
        status=filters.status or None,
        after=cursors.key(filters.cursor, filters),
        most=filters.page_size + 1,
    )
    shown, cursor = cursors.cut(found, filters, filters.page_size, lambda entry: str(entry.pk))
    items = [schemas.EntrySummary.model_validate(_summary(entry)) for entry in shown]
    return responses.read(request, schemas.Entries(items=items, next_cursor=cursor))


@router.get(
    "/scrape/quarantine/{entry_id}",
    response=schemas.QuarantinedPage,
    operation_id="get_quarantined_page",
    summary="Get one entry of quarantine",
)
def get_entry(request: HttpRequest, entry_id: EntryId) -> HttpResponse:
    """A page that was read and not believed, with the places that were looked at."""
    return responses.read(request, entry_shape(queries.entry(entry_id)))


@router.get(
    "/scrape/quarantine/{entry_id}/reading",
    response=schemas.PageReading,
    operation_id="read_quarantined_page",
    summary="Read a quarantined page again",
    auth=_OPERATE,
)
def read_entry(request: HttpRequest, entry_id: EntryId) -> HttpResponse:
    """What the current adapter reads from the kept page of an entry, with the page's text. Nothing is written.

    404 PAGE_MISSING: the page is not kept any more.
    """
    entry = queries.entry(entry_id)
    if entry.page is None:
        raise PageMissing("No page was kept with this entry.")
    _, reading = page_review.read_kept(entry.target_id, entry.page)
    return responses.read(request, _reading(reading))


@router.post(
    "/scrape/quarantine/{entry_id}/write",
    response=schemas.QuarantinedPage,
    operation_id="write_quarantined_offer",
    summary="Write an offer from quarantine",
    auth=_OPERATE,
)
def write_entry(request: HttpRequest, entry_id: EntryId, body: schemas.EntryWriting = _ENTRY_WRITING) -> HttpResponse:
    """Write the offer of an entry, as it was read or with what is right instead.

    Afterwards it is WRITTEN, or SUPERSEDED if a newer page was written before.
    """
    actor = key_of(request).actor

    def act() -> tuple[schemas.QuarantinedPage, Mapping[str, str]]:
        offer = _offer(queries.entry(entry_id), body.offer) if body.offer else None
        verbs.write_one(actor, entry_id, offer, note=body.note)
        return entry_shape(queries.entry(entry_id)), {}

    return responses.write(request, 200, act)


@router.post(
    "/scrape/quarantine/{entry_id}/reprocess",
    response=schemas.Reprocessed,
    operation_id="reprocess_quarantined_page",
    summary="Reprocess a quarantined page",
    auth=_OPERATE,
)
def reprocess_entry(request: HttpRequest, entry_id: EntryId, body: schemas.EntryNote = _ENTRY_NOTE) -> HttpResponse:
    """Read the kept page of an entry with the current adapter and, if that gives an offer, write it."""
    actor = key_of(request).actor

    def act() -> tuple[schemas.Reprocessed, Mapping[str, str]]:
        reading, _ = page_review.reprocess_entry(actor, entry_id, note=body.note)
        entry = entry_shape(queries.entry(entry_id))
        return schemas.Reprocessed(reading=_reading(reading), entry=entry), {}

    return responses.write(request, 200, act)


@router.post(
    "/scrape/quarantine/{entry_id}/dismiss",
    response=schemas.QuarantinedPage,
    operation_id="dismiss_quarantined_page",
    summary="Dismiss an entry of quarantine",
    auth=_OPERATE,
)
def dismiss_entry(request: HttpRequest, entry_id: EntryId, body: schemas.EntryNote = _ENTRY_NOTE) -> HttpResponse:
    """Close an entry; nothing is written. The next reading of the page is judged like any other."""
    return responses.change(
        request,
        200,
        lambda actor: verbs.dismiss(actor, entry_id, body.note),
        lambda _: entry_shape(queries.entry(entry_id)),
    )


@router.post(
    "/scrape/quarantine/{entry_id}/choose",
    response=schemas.Chosen,
    operation_id="choose_places",
    summary="Choose where fields are",
    auth=_OPERATE,
)
def choose_places(request: HttpRequest, entry_id: EntryId, body: schemas.PlacesChosen) -> HttpResponse:
    """Save where fields are on the page of an entry; reprocess the entry afterwards.

    With `for_source` it becomes a draft for all pages of the source, which needs the scope `scrape:admin`.
    """
    if body.for_source:
        require(request, Scope.SCRAPE_ADMIN)
    actor = key_of(request).actor

    def act() -> tuple[schemas.Chosen, Mapping[str, str]]:
        if body.for_source:
            made = verbs.propose_override(actor, entry_id, body.places, body.note)
            return schemas.Chosen(target_id=None, override_version=made.version), {}
        target = verbs.choose_places(actor, entry_id, body.places)
        return schemas.Chosen(target_id=target.pk, override_version=None), {}

    return responses.write(request, 200, act)


def entry_shape(entry: QuarantineEntry) -> schemas.QuarantinedPage:
    more = {"found": entry.found, "evidence": entry.evidence, "has_page": entry.page is not None}
    return schemas.QuarantinedPage.model_validate({**_summary(entry), **more})


def _summary(entry: QuarantineEntry) -> dict[str, Any]:
    return {
        **{name: getattr(entry, name) for name in _SUMMARY},
        "source": str(entry.source),
        "url": entry.target.url,
        "price": (entry.found or {}).get("price"),
    }


def _reading(reading: PageReading) -> schemas.PageReading:
    return schemas.PageReading(
        outcome=reading.outcome,
        detail=reading.detail,
        offer=offer_to_json(reading.offer) if reading.offer else None,
        evidence=[asdict(each) for each in reading.evidence],
        text=reading.text,
        warnings=list(reading.warnings),
        adapter_id=reading.adapter_id,
        version=reading.adapter_version,
    )


def _offer(entry: QuarantineEntry, given: schemas.OfferGiven) -> ScrapedOffer:
    """Return the offer of an entry with what a person gave."""
    values = given.model_dump(exclude_none=True)
    currency = values.pop("currency", None)
    if ("price" in values) != (currency is not None):
        raise WrongField("offer.currency", "`price` and `currency` belong together.")
    found: dict[str, Any] = dict(entry.found or {})
    if currency is not None:
        # The crossed-out price belongs to the one that was read.
        found.pop("original", None)
        values["price"] = f"{values['price']} {currency}"
    try:
        return offer_from_json({**found, **values})
    except (ValueError, TypeError, KeyError) as problem:
        raise WrongField("offer", f"not enough is known for an offer: {problem}. Nothing was written.") from None
