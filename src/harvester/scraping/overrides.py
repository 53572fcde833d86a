"""Overrides of a source: where its pages differ from its site file.

    save ──> DRAFT ── tested on kept pages, then used ──> ACTIVE ── another is used, or retired ──> RETIRED

One version of a source is active. Each verb is audited and needs an admin.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils import timezone

from harvester.catalog import fields
from harvester.catalog.models import Source
from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.engine.models import Job
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.scraping import page_review
from harvester.scraping.jobs import BACKTEST, HINTS
from harvester.scraping.models import ScrapeOverride, ScrapeTarget
from harvester.scraping.reader.reading import with_overrides
from harvester.scraping.sites import site_named
from harvester.scraping.verbs.targets import ANY_SHOP, locked_source

LONGEST_NOTE: Final = 1_000
#: Before scheduled pages: a person waits for the result.
PRIORITY: Final = 100


@transaction.atomic
def save(actor: Actor, source_id: UUID, places: Mapping[str, Any], note: str = "") -> ScrapeOverride:
    """Save a new version as a draft. It counts once it was tested and is used.

    Args:
        actor: who saves it.
        source_id: the source.
        places: the parts of a site that a source may override, such as {"places": {"price": ["json:offers.price"]}}.
        note: why.
    """
    text = fields.optional_text("note", note, LONGEST_NOTE)
    source = locked_source(source_id)
    _check(source, places)
    versions = ScrapeOverride.objects.filter(source=source)
    version = (versions.aggregate(newest=Max("version"))["newest"] or 0) + 1
    made = ScrapeOverride.objects.create(
        source=source, version=version, places=dict(places), note=text, created_by=actor.name
    )
    detail = {"version": version, "places": dict(places), "note": text}
    audit.record(actor, "SCRAPE_OVERRIDE_SAVED", "source", source.pk, detail=detail)
    made.refresh_from_db()
    return made


@transaction.atomic
def test(actor: Actor, source_id: UUID, version: int) -> int:
    """Read the kept pages of the source with a version, in a job; return the job. Nothing is requested or written."""
    _, found = _locked(source_id, version)
    _check(found.source, found.places)
    made = enqueue(BACKTEST, {"override_id": str(found.pk)}, dedupe_key=_key(found), priority=PRIORITY)
    detail = {"version": version, "job_id": made.job_id}
    audit.record(actor, "SCRAPE_OVERRIDE_TESTED", "source", source_id, detail=detail)
    return made.job_id


@transaction.atomic
def use(actor: Actor, source_id: UUID, version: int) -> ScrapeOverride:
    """Read the pages of the source with a version from now on; the one that was used is retired."""
    source, found = _locked(source_id, version)
    if found.status == "ACTIVE":
        raise Conflict(f"Override {version} of {source} is used already. Nothing was changed.")
    if found.backtest is None:
        raise Conflict(f"Override {version} of {source} was not tested on kept pages yet. Nothing was changed.")
    _check(source, found.places)
    before = ScrapeOverride.objects.filter(source=source, status="ACTIVE").first()
    if before is not None:
        ScrapeOverride.objects.filter(pk=before.pk).update(status="RETIRED")
    found.status, found.activated_by, found.activated_at = "ACTIVE", actor.name, timezone.now()
    found.save(update_fields=["status", "activated_by", "activated_at"])
    _forget_validators(source)
    detail = {"version": version, "before": before.version if before else None}
    audit.record(actor, "SCRAPE_OVERRIDE_USED", "source", source.pk, detail=detail)
    return found


@transaction.atomic
def retire(actor: Actor, source_id: UUID, version: int) -> ScrapeOverride:
    """Read the pages of the source by its site file alone again."""
    source, found = _locked(source_id, version)
    if found.status != "ACTIVE":
        raise Conflict(f"Override {version} of {source} is not used. Nothing was changed.")
    found.status = "RETIRED"
    found.save(update_fields=["status"])
    _forget_validators(source)
    audit.record(actor, "SCRAPE_OVERRIDE_RETIRED", "source", source.pk, detail={"version": version})
    return found


@transaction.atomic
def find_hints(actor: Actor, source_id: UUID) -> int:
    """Look for the last known values on the kept pages of a source, in a job; return the job. Needs: operator."""
    source = locked_source(source_id)
    made = enqueue(HINTS, {"source_id": str(source.pk)}, dedupe_key=f"hints:{source.pk}", priority=PRIORITY)
    audit.record(actor, "SCRAPE_HINTS_REQUESTED", "source", source.pk, detail={"job_id": made.job_id})
    return made.job_id


def job_of_test(override: ScrapeOverride) -> Job | None:
    """Return the newest job that tests a version, if it is still kept."""
    return Job.objects.filter(kind=BACKTEST, dedupe_key=_key(override)).order_by("-id").first()


def job_of_hints(source_id: UUID) -> Job | None:
    """Return the newest job that looked for values of a source, if it is still kept."""
    return Job.objects.filter(kind=HINTS, dedupe_key=f"hints:{source_id}").order_by("-id").first()


def run_test(job: RunningJob, override_id: str) -> dict[str, Any] | None:
    """Test a version on kept pages and store what changed."""
    found = ScrapeOverride.objects.select_related("source__retailer").filter(pk=override_id).first()
    if found is None:
        return {"note": "the override was deleted"}
    report = page_review.backtest(found.source, found.places)
    with job.transaction():
        ScrapeOverride.objects.filter(pk=found.pk).update(backtest={**report.as_json(), "at": _now()})
        job.finish({"pages": report.pages, "changed": report.changed, "lost": report.lost, "gained": report.gained})
    return None


def run_hints(job: RunningJob, source_id: str) -> dict[str, Any]:  # noqa: ARG001 - the shape of a handler
    """Return places at which the last known values are found."""
    source = Source.objects.select_related("retailer").get(pk=source_id)
    return {"hints": [asdict(hint) for hint in page_review.hints(source)], "at": _now()}


def _check(source: Source, places: Mapping[str, Any]) -> None:
    if not isinstance(places, Mapping) or not places:
        raise InvalidInput('it must be an object such as {"places": {"price": ["json:offers.price"]}}.', field="places")
    try:
        with_overrides(site_named(source.adapter_id or ANY_SHOP), places)
    except KeyError:
        raise InvalidInput(f"the adapter {source.adapter_id} of {source} does not exist.", field="places") from None
    except (TypeError, ValueError, AttributeError) as problem:
        raise InvalidInput(f"it cannot be used: {problem}.", field="places") from None


def _locked(source_id: UUID, version: int) -> tuple[Source, ScrapeOverride]:
    source = locked_source(source_id)
    found = ScrapeOverride.objects.select_for_update().filter(source=source, version=version).first()
    if found is None:
        raise NotFound(f"{source} has no override {version}.")
    found.source = source
    return source, found


def _forget_validators(source: Source) -> None:
    """Have pages that have not changed read again in full: they say something else now."""
    ScrapeTarget.objects.filter(source=source).exclude(etag=None, last_modified=None).update(
        etag=None, last_modified=None, updated_at=Now()
    )


def _key(override: ScrapeOverride) -> str:
    return f"backtest:{override.pk}"


def _now() -> str:
    return timezone.now().isoformat(timespec="seconds")
