"""Single fetches: an address that somebody tries, the page of a new site, a robots.txt that switched a source off.

They are jobs in the same lanes as the pages of runs, so they wait for their turn like those. Nothing is written but the
kept page and what was read from it, for people.
"""

from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from harvester.catalog.models import Source
from harvester.engine.enqueue import enqueue
from harvester.engine.job import RunningJob
from harvester.guards import limits
from harvester.guards.limits import RateLimit
from harvester.kernel.actor import Actor, system
from harvester.kernel.domains import registrable_domain
from harvester.kernel.errors import InvalidInput, NotFound, TerminalError
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.rejects import Rejected
from harvester.kernel.urls import is_public_url, split_url
from harvester.ops import audit
from harvester.scraping import capacity, lane_pace, robots_cache
from harvester.scraping.capacity import Rejection, TryLater
from harvester.scraping.errands import RequestErrand, Situation
from harvester.scraping.fetching import fetch, kept_response, refresh_robots, user_agent
from harvester.scraping.jobs import FETCH, QUEUE
from harvester.scraping.models import FetchRequest
from harvester.scraping.offers import offer_to_json
from harvester.scraping.reading import context_of, read_body

log = structlog.get_logger(__name__)

TRY, NEW_SITE, ROBOTS = "TRY", "NEW_SITE", "ROBOTS"
#: How often people may try addresses of one domain.
TRIES: Final = RateLimit(count=10, seconds=3600, burst=10)
#: Somebody waits for it.
PRIORITY: Final = 500
#: The outcome of a fetch that failed for another reason than the shop.
FAILED: Final = "FAILED"
KNOWN: Final = "ROBOTS_KNOWN"
ACTOR: Final = system("scraping")


def try_url(actor: Actor, url: str, source: Source | None = None) -> FetchRequest:
    """Fetch an address once and read it, also before its source is switched on.

    Always with robots.txt and pace, from the shop or from a page kept within the last hour. Returns at once; the result
    is in the row when its `outcome` is set. It has `outcome`, `error`, `offer`, `evidence`, `text`, `warnings`, `url`,
    `status`, `observed_at`, `is_cached`, `robots`, `adapter_id` and `version`.

    Args:
        actor: who tries.
        url: of a page of any shop.
        source: whose adapter and settings count; without one the adapter for any shop reads.

    Raises:
        InvalidInput: it is not a public web address.
        ConfigError: there is no contact for shops.
        TryLater: ten addresses of this domain were tried within the hour.
    """
    return _request(actor, TRY, url, source)


def new_site(actor: Actor, url: str) -> FetchRequest:
    """Fetch a page once, to write a site file from it; like `try_url`, and the page stays kept for two days."""
    return _request(actor, NEW_SITE, url, None)


def request_named(request_id: UUID | str) -> FetchRequest:
    """Return a single fetch; its result is there when its outcome is."""
    found = FetchRequest.objects.filter(pk=request_id).first()
    if found is None:
        raise NotFound(f"There is no fetch {request_id}; results are deleted after a week.")
    return found


def execute(job: RunningJob, request_id: str) -> dict[str, Any] | None:
    """Do a single fetch."""
    request = FetchRequest.objects.filter(pk=request_id, outcome=None).first()
    if request is None:
        return {"note": "there was nothing to do"}
    errand = RequestErrand(job, request)
    try:
        if request.purpose == ROBOTS:
            result = {"outcome": KNOWN, "robots": refresh_robots(errand).why, "url": errand.url}
        else:
            result = _result_of(errand)
    except TerminalError as problem:
        result = {"outcome": FAILED, "error": str(problem), "code": problem.code}
    with job.transaction():
        FetchRequest.objects.filter(pk=request.pk).update(outcome=result["outcome"], result=result, finished_at=Now())
        job.finish({"request_id": request_id, "outcome": result["outcome"]})
    return None


def check_robots(job: RunningJob) -> int:
    """Have the robots.txt fetched again that switched sources off, once what is known is out of date."""
    asked = 0
    for source_id, origins in robots_cache.closed_sources():
        for origin in origins:
            with job.transaction():
                asked += refresh(ACTOR, Source(pk=source_id), origin) is not None
    return asked


def refresh(actor: Actor, source: Source, origin: str, *, priority: int = 0) -> FetchRequest | None:
    """Have the robots.txt of an origin fetched, unless it is known or on its way. The transaction is the caller's."""
    known = robots_cache.look(origin)
    is_open = FetchRequest.objects.filter(purpose=ROBOTS, url=f"{origin}/", outcome=None).exists()
    if (known is not None and known.is_current) or is_open:
        return None
    return _enqueue(actor, ROBOTS, f"{origin}/", source, priority=priority)


def _request(actor: Actor, purpose: str, url: str, source: Source | None) -> FetchRequest:
    try:
        address = split_url(url)
    except Rejected as problem:
        raise InvalidInput(f"{problem}; it must look like https://shop.example/product.", field="url") from None
    if not is_public_url(url, LinkRules(allowed_networks=settings.CONFIG.egress_networks)):
        raise InvalidInput(
            "its host is not on the public internet, and its network is not in HARVESTER_EGRESS_ALLOW.", field="url"
        )
    user_agent()
    domain = registrable_domain(address.host)
    lane = lane_pace.pace_of(str(address), source.scrape_config if source else {}).lane
    with connection.cursor() as cursor:
        rest = capacity.long_rests(cursor, QUEUE).get(lane)
    if rest is not None:
        raise TryLater(
            f"{lane} asked for {capacity.pause_text(rest)}. Nothing was requested; try again then.",
            rejection=Rejection.RATE_LIMITED,
            retry_after=rest,
        )
    grant = limits.take(f"try:{domain}", TRIES)
    if not grant.granted:
        raise TryLater(
            f"Ten addresses of {domain} were tried within the hour. Nothing was requested; try again later.",
            rejection=Rejection.RATE_LIMITED,
            retry_after=max(round(grant.wait), 1),
        )
    with transaction.atomic():
        request = _enqueue(actor, purpose, str(address), source, priority=PRIORITY)
        detail = {"url": request.url, "purpose": purpose, "source": str(source.pk) if source else None}
        audit.record(actor, "SCRAPE_URL_TRIED", "fetch_request", request.pk, detail=detail)
    return request


def _enqueue(actor: Actor, purpose: str, url: str, source: Source | None, *, priority: int) -> FetchRequest:
    own = source.scrape_config if source else {}
    request = FetchRequest.objects.create(
        purpose=purpose, url=url, source_id=source.pk if source else None, requested_by=actor.name
    )
    lane = lane_pace.pace_of(url, own).lane
    request.job_id = enqueue(FETCH, {"request_id": str(request.pk)}, lane=lane, priority=priority).job_id
    request.save(update_fields=["job_id"])
    return request


def _result_of(errand: RequestErrand) -> dict[str, Any]:
    """Return what was read from a page, or why it was not fetched."""
    end = fetch(errand)
    if end is not None:
        return {"outcome": str(end.outcome), **end.detail}
    body, about = kept_response(errand)
    situation: Situation = errand.situation or errand.look()
    context = context_of(errand.url, situation, source_id=errand.source_id)
    reading = read_body(body, about.get("type", ""), situation, context)
    return {
        "outcome": str(reading.outcome),
        "content_type": about.get("type", ""),
        "error": reading.detail,
        "offer": offer_to_json(reading.offer) if reading.offer else None,
        "evidence": [asdict(each) for each in reading.evidence],
        "text": reading.text,
        "warnings": list(reading.warnings),
        "adapter_id": reading.adapter_id,
        "version": reading.adapter_version,
        "observed_at": errand.observed_at.isoformat() if errand.observed_at else None,
        "is_cached": bool(errand.state.get("is_cached")),
        "robots": robots_cache.check(split_url(about["url"])).why,
        "page": errand.page,
        **{name: about[name] for name in ("url", "status", "moved_to") if name in about},
    }
