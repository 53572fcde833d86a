"""The switches and settings of scraping a source."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.catalog import fields, sources
from harvester.catalog.changes import change
from harvester.catalog.models import Source
from harvester.catalog.states import Visibility
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops import audit
from harvester.ops.alerts import resolve_alert
from harvester.runs import parts
from harvester.scraping import single_fetches
from harvester.scraping.addresses import has_feed
from harvester.scraping.models import AdapterState, FetchRequest
from harvester.scraping.readiness import Step, adapter_problem, missing_for_reading, origins_of, readiness
from harvester.scraping.robots_cache import ROBOTS_DISALLOWED
from harvester.scraping.schedule import backoff_key
from harvester.scraping.settings import read_settings
from harvester.scraping.states import RUN_KIND
from harvester.scraping.verbs.requests import MANUAL_PRIORITY
from harvester.scraping.verbs.targets import locked_source

log = structlog.get_logger(__name__)

#: Hours after which an offer that was not seen disappears, if nobody has chosen: of a shop with pages only, and of one
#: with a feed, where pages only refresh prices.
EXPIRY_HOURS_OF_PAGES, EXPIRY_HOURS_WITH_FEED = 72, 48
LONGEST_NOTE: Final = 1_000
#: What a person has looked at before consumers see prices.
_NEEDED_TO_SHOW: Final = ("samples", "first_run")


class NotReady(Conflict):
    """Steps of the readiness card are not done.

    Attributes:
        steps: those that are missing.
    """

    code = "SCRAPE_NOT_READY"

    def __init__(self, done: str, steps: list[Step]) -> None:
        missing = " ".join(f"{step.label}: {step.detail} {step.next_step}".replace(":  ", ": ") for step in steps)
        super().__init__(f"{done} Missing: {missing}")
        self.steps = steps


@transaction.atomic
def record_review(actor: Actor, source_id: UUID, note: str) -> Source:
    """Record that the actor has reviewed the shop's terms and allows scraping. Needs: admin.

    Args:
        actor: who reviewed them.
        source_id: the source.
        note: what the terms say, and why that allows it.
    """
    text = fields.required_text("note", " ".join(note.split()) if isinstance(note, str) else note, LONGEST_NOTE)
    source = locked_source(source_id)
    source.tos_reviewed_at, source.tos_approved_by, source.tos_note = Now(), actor.name, text
    source.save(update_fields=["tos_reviewed_at", "tos_approved_by", "tos_note"])
    source.refresh_from_db(fields=["tos_reviewed_at"])
    detail = {"note": text}
    audit.record(actor, "SCRAPE_TERMS_REVIEWED", "source", source.pk, changed=["tos_reviewed_at"], detail=detail)
    return source


@transaction.atomic
def choose_adapter(actor: Actor, source_id: UUID, adapter_id: str) -> Source:
    """Choose the adapter that reads the pages of a source; its pages follow. Needs: admin."""
    source = locked_source(source_id)
    if problem := adapter_problem(source, adapter_id):
        raise InvalidInput(f"{problem} Nothing was changed.", field="adapter_id")
    change(actor, source, {"adapter_id": adapter_id}, "SCRAPE_ADAPTER_CHOSEN")
    return source


@transaction.atomic
def update_settings(actor: Actor, source_id: UUID, settings: Mapping[str, Any]) -> Source:
    """Change settings of scraping a source, see `scraping.settings`; None or an empty text restores a default.

    Needs: admin.
    """
    values = read_settings(settings)
    source = locked_source(source_id)
    merged = {name: value for name, value in {**source.scrape_config, **values}.items() if value is not None}
    before = {name: source.scrape_config.get(name) for name in values if source.scrape_config.get(name) != values[name]}
    if not before:
        return source
    source.scrape_config = merged
    source.save(update_fields=["scrape_config"])
    # Values of headers may be keys of the shop, so only their names are kept.
    shown = {name: sorted(value) if name == "headers" and value else value for name, value in values.items()}
    audit.record(
        actor, "SCRAPE_SETTINGS_UPDATED", "source", source.pk, changed=before,
        detail={"to": {name: shown[name] for name in before}},
    )  # fmt: skip
    return source


@transaction.atomic
def check_robots(actor: Actor, source_id: UUID) -> list[FetchRequest]:
    """Have the robots.txt of every origin of a source fetched that is not known; return the requests. Needs: operator.

    `enable` can follow once they have ended.
    """
    source = locked_source(source_id)
    found = [single_fetches.refresh(actor, source, origin, priority=MANUAL_PRIORITY) for origin in origins_of(source)]
    made = [request for request in found if request is not None]
    detail = {"urls": [request.url for request in made]}
    audit.record(actor, "SCRAPE_ROBOTS_CHECK_REQUESTED", "source", source.pk, detail=detail)
    return made


@transaction.atomic
def enable(actor: Actor, source_id: UUID, *, keep_visibility: bool = False) -> Source:
    """Let the pages of a source be read. Needs: admin.

    Its scraped prices are hidden from consumers until an admin shows them, and an expiry is set if there is none.

    Args:
        actor: who enables it.
        source_id: the source.
        keep_visibility: the actor confirms that consumers may see the prices at once.

    Raises:
        NotReady: terms, robots.txt, adapter or contact are missing.
    """
    source = locked_source(source_id)
    if source.scrape_enabled:
        raise Conflict(f"{source} is enabled for scraping already. Nothing was changed.")
    if missing := [step for step in missing_for_reading(source) if not step.is_done]:
        raise NotReady(f"{source} cannot be scraped yet; nothing was changed.", missing)
    if source.expiry_hours is None:
        hours = EXPIRY_HOURS_WITH_FEED if has_feed(source.pk) else EXPIRY_HOURS_OF_PAGES
        sources.set_expiry_hours(actor, source.pk, hours)
    if not keep_visibility:
        sources.update(actor, source.pk, visibility=Visibility.INELIGIBLE)
    source = locked_source(source_id)
    source.scrape_enabled = True
    source.save(update_fields=["scrape_enabled"])
    detail = {"keep_visibility": keep_visibility, "visibility": source.visibility}
    audit.record(actor, "SCRAPE_ENABLED", "source", source.pk, changed=["scrape_enabled"], detail=detail)
    transaction.on_commit(lambda: log.info("SCRAPE_ENABLED", source_id=str(source.pk), by=actor.id))
    return source


@transaction.atomic
def stop(actor: Actor, source_id: UUID, reason: str = "") -> int:
    """Stop scraping a source at once; return how many pages were cancelled. Needs: admin.

    Pages that wait are cancelled in the same transaction; one that is being fetched ends without another request. What
    is shown stays until it expires.
    """
    source = locked_source(source_id)
    with connection.cursor() as cursor:
        cancelled = parts.cancel_open(cursor, RUN_KIND, source.pk)
    if not source.scrape_enabled and not cancelled:
        return 0
    source.scrape_enabled = False
    source.save(update_fields=["scrape_enabled"])
    AdapterState.objects.filter(source=source).update(backoff_until=None, backoff_seconds=0)
    resolve_alert(backoff_key(source), "Scraping was stopped.")
    text = fields.optional_text("reason", reason, LONGEST_NOTE)
    detail = {"reason": text, "cancelled": cancelled}
    audit.record(actor, "SCRAPE_STOPPED", "source", source.pk, changed=["scrape_enabled"], detail=detail)
    transaction.on_commit(lambda: log.warning("SCRAPE_STOPPED", source_id=str(source.pk), pages=cancelled, by=actor.id))
    return cancelled


@transaction.atomic
def stop_all(actor: Actor, reason: str = "") -> dict[UUID, int]:
    """Stop scraping all sources at once; return source -> how many pages were cancelled. Needs: admin."""
    enabled = Source.objects.select_for_update().filter(scrape_enabled=True).order_by("pk")
    return {source_id: stop(actor, source_id, reason) for source_id in list(enabled.values_list("pk", flat=True))}


@transaction.atomic
def set_robots_compliant(actor: Actor, source_id: UUID, compliant: bool, note: str) -> Source:
    """Forbid or allow reading a source by hand, whatever its robots.txt says about it as a whole. Needs: admin.

    What a person forbids, the system never allows again. A single page is read only if robots.txt allows it, always.
    """
    is_compliant = fields.flag("compliant", compliant)
    text = fields.required_text("note", note, LONGEST_NOTE)
    source = locked_source(source_id)
    by = None if is_compliant else actor.name
    with connection.cursor() as cursor:
        cancelled = 0 if is_compliant else parts.cancel_open(cursor, RUN_KIND, source.pk)
    if (source.robots_compliant, source.robots_set_by) == (is_compliant, by):
        return source
    before = source.robots_compliant
    source.robots_compliant, source.robots_set_by, source.robots_refusals = is_compliant, by, 0
    source.save(update_fields=["robots_compliant", "robots_set_by", "robots_refusals"])
    if is_compliant:
        resolve_alert(f"{ROBOTS_DISALLOWED}:{source.pk}", f"{actor.name} allowed reading it again.")
    detail = {"from": before, "to": is_compliant, "note": text, "cancelled": cancelled}
    audit.record(actor, "SCRAPE_ROBOTS_SET", "source", source.pk, changed=["robots_compliant"], detail=detail)
    return source


@transaction.atomic
def show(actor: Actor, source_id: UUID, *, anyway: bool = False) -> Source:
    """Show what was scraped from a source to consumers. Needs: admin.

    Args:
        actor: who decides.
        source_id: the source.
        anyway: although steps of the readiness card are not done.

    Raises:
        NotReady: nobody has seen sample pages or a first run.
    """
    source = locked_source(source_id)
    missing = [step for step in readiness(source) if not step.is_done and step.name in _NEEDED_TO_SHOW]
    if missing and not anyway:
        raise NotReady(f"{source} is not shown yet; nothing was changed.", missing)
    return sources.update(actor, source.pk, visibility=Visibility.ELIGIBLE)


@transaction.atomic
def hide(actor: Actor, source_id: UUID) -> Source:
    """Hide what was scraped from a source from consumers; it is still read. Needs: admin."""
    source = locked_source(source_id)
    return sources.update(actor, source.pk, visibility=Visibility.INELIGIBLE)
