"""Retailers: created and changed by people, never deleted."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from harvester.catalog import fields
from harvester.catalog.changes import change
from harvester.catalog.models import Retailer
from harvester.kernel.actor import Actor
from harvester.kernel.domains import domain_of
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit

CHECKS: Mapping[str, fields.Check] = {"name": fields.required_text, "website": fields.optional_url}


def create(actor: Actor, *, name: str, website: str = "") -> Retailer:
    """Create a retailer. Two retailers cannot have the same domain."""
    values = _with_domain(fields.checked(CHECKS, {"name": name, "website": website}))
    retailer = Retailer(**values)
    try:
        with transaction.atomic():
            retailer.save(force_insert=True)
            audit.record(actor, "RETAILER_CREATED", "retailer", retailer.pk, detail=values)
    except IntegrityError:
        raise _domain_taken(values["domain"]) from None
    return retailer


def update(actor: Actor, retailer_id: UUID, **changes: Any) -> Retailer:
    """Change the name or the website; the domain follows the website."""
    values = _with_domain(fields.checked(CHECKS, changes))
    try:
        with transaction.atomic():
            retailer = Retailer.objects.select_for_update().filter(pk=retailer_id).first()
            if retailer is None:
                raise _unknown(retailer_id)
            change(actor, retailer, values, "RETAILER_UPDATED")
    except IntegrityError:
        raise _domain_taken(values["domain"]) from None
    return retailer


def find(reference: str) -> Retailer:
    """Return the retailer with this id, domain or name."""
    try:
        found = list(Retailer.objects.filter(pk=UUID(reference)))
    except ValueError:
        found = list(Retailer.objects.filter(domain=reference.lower()) or Retailer.objects.filter(name=reference)[:2])
    if not found:
        raise _unknown(reference)
    if len(found) > 1:
        raise InvalidInput(f"Several retailers are named {reference}; use the id or the domain of one.")
    return found[0]


def _with_domain(values: dict[str, Any]) -> dict[str, Any]:
    if "website" in values:
        website = values["website"]
        values["domain"] = domain_of(website) if website else None
    return values


def _unknown(reference: object) -> NotFound:
    return NotFound(f"There is no retailer {reference}; `harvester retailer list` shows them all.")


def _domain_taken(domain: str) -> Conflict:
    owner = Retailer.objects.filter(domain=domain).first()
    return Conflict(
        f"the domain {domain} already belongs to the retailer {owner}; use that retailer, or another website.",
        field="website",
    )
