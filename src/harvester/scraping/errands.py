"""What is fetched: a page of a run, or a single page that somebody asked for. Both keep in a row how far they are."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.guards.prepared import prepared_cursor
from harvester.runs.kinds import PartEnd
from harvester.runs.models import RunPart
from harvester.runs.states import RunTrigger
from harvester.scraping import kept_pages
from harvester.scraping.kept_pages import StoredBody
from harvester.scraping.models import FetchRequest, KeptPage
from harvester.scraping.settings import effective
from harvester.scraping.states import PageOutcome, TargetStatus

_SITUATION = """
SELECT t.url, t.enabled, t.status, t.robots_path_blocked, t.adapter_id, t.chosen, t.etag, t.last_modified,
    t.last_status IN ('OFFER', 'NOT_MODIFIED') AND t.last_full_fetch_at > clock_timestamp() - interval '1 day'
        AND (o.activated_at IS NULL OR o.activated_at < t.last_full_fetch_at),
    s.name, s.enabled, s.scrape_enabled, s.robots_compliant, s.scrape_config, coalesce(a.enabled, true),
    r.name, r.domain, o.version, o.places
FROM scrape_targets t JOIN sources s ON s.id = t.source_id JOIN retailers r ON r.id = s.retailer_id
LEFT JOIN adapter_states a ON a.source_id = t.source_id AND a.adapter_id = t.adapter_id
LEFT JOIN scrape_overrides o ON o.source_id = t.source_id AND o.status = 'ACTIVE'
WHERE t.id = %(target)s
"""
# A single fetch is for people who look before they switch a source on, so its switches do not count; a stop for the
# whole source does.
_SITUATION_OF_REQUEST = """
SELECT s.name, s.adapter_id, s.scrape_config, r.name, r.domain, o.version, o.places
FROM sources s JOIN retailers r ON r.id = s.retailer_id
LEFT JOIN scrape_overrides o ON o.source_id = s.id AND o.status = 'ACTIVE'
WHERE s.id = %s
"""
_SAVE_PART = """
UPDATE run_parts SET detail = %(state)s::jsonb WHERE id = %(id)s AND begun_at = %(begun_at)s AND outcome IS NULL
"""
# The page of the part, and of its target: what a later request is compared with.
_KEEP_PART = """
WITH target AS (
    UPDATE scrape_targets SET page = %(page)s, etag = %(etag)s, last_modified = %(last_modified)s,
        last_full_fetch_at = %(at)s
    WHERE id = %(target)s
)
UPDATE run_parts SET page = %(page)s, observed_at = %(at)s, detail = %(state)s::jsonb
WHERE id = %(id)s AND begun_at = %(begun_at)s AND outcome IS NULL
"""
_USE_PAGE = """
UPDATE run_parts SET page = %(page)s, observed_at = %(at)s, detail = %(state)s::jsonb
WHERE id = %(id)s AND begun_at = %(begun_at)s AND outcome IS NULL
"""
_KEEP_REQUEST = """
UPDATE fetch_requests SET page = %(page)s, observed_at = %(at)s, state = %(state)s::jsonb WHERE id = %(id)s
"""
_CACHED = """
SELECT hash, fetched_at FROM kept_pages
WHERE {where} AND status = 200 AND fetched_at > clock_timestamp() - %(seconds)s * interval '1 second'
ORDER BY fetched_at DESC LIMIT 1
"""
_SHARES = """
SELECT EXISTS (SELECT FROM scrape_targets WHERE enabled AND source_id <> %s AND canonical_url ~ %s)
"""
#: A cached page may be this old when somebody only tries an address.
CACHE_SECONDS: Final = 3600


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What counts for the next request of an errand, as it was a moment ago.

    Attributes:
        url: of the target, as given.
        stop: why nothing may be requested: a switch is off.
        is_blocked: an admin blocked this page.
        settings: those of the source, with defaults.
        conditions: headers that ask only for a page that has changed.
        adapter_id: what reads the page.
        chosen: what a person chose for this target: field -> place.
        retailer_name, retailer_domain: see `site.ReadContext`.
        override: the number of the active override, and its places.
        cache_seconds: how old a kept page may be that is used instead of a request; 0: none is.
    """

    url: str = ""
    stop: str | None = None
    is_blocked: bool = False
    settings: Mapping[str, Any] = field(default_factory=lambda: effective({}))
    conditions: Mapping[str, str] = field(default_factory=dict)
    adapter_id: str = "structured"
    chosen: Mapping[str, str] = field(default_factory=dict)
    retailer_name: str = ""
    retailer_domain: str = ""
    override: tuple[int, Mapping[str, Any]] | None = None
    cache_seconds: int = 0


def situation_of(target_id: UUID | None, trigger: str = RunTrigger.MANUAL) -> Situation:
    """Return what counts for reading a target now, in a run with this trigger."""
    with prepared_cursor() as cursor:
        cursor.execute(_SITUATION, {"target": target_id})
        row = cursor.fetchone()
    if row is None:
        return Situation(stop="The page was deleted.")
    (url, enabled, status, is_blocked, adapter_id, chosen, etag, last_modified, may_ask, source, is_on, scrapes,
     complies, stored, adapter_on, retailer, domain, version, places) = row  # fmt: skip
    settings = effective(json.loads(stored))
    stop = None
    if not (is_on and scrapes):
        stop = f"Reading pages of {source} is switched off."
    elif not complies:
        stop = f"The robots.txt of {source} forbids its pages."
    elif not adapter_on:
        stop = f"The adapter {adapter_id} is switched off for {source}."
    elif not enabled or not (
        status == TargetStatus.ACTIVE or (status == TargetStatus.BROKEN and trigger == RunTrigger.RECHECK)
    ):
        stop = f"The page is {'disabled' if not enabled else status}."
    conditions = {"if-none-match": etag, "if-modified-since": last_modified}
    asks = may_ask and settings["conditional"] and trigger != RunTrigger.RECHECK
    caches = settings["cache"] and trigger in {RunTrigger.SCHEDULED, RunTrigger.MANUAL}
    return Situation(
        url=url,
        stop=stop,
        is_blocked=is_blocked,
        settings=settings,
        conditions={name: value for name, value in conditions.items() if value} if asks else {},
        adapter_id=adapter_id,
        chosen=json.loads(chosen),
        retailer_name=retailer,
        retailer_domain=domain or "",
        override=(version, json.loads(places)) if version is not None else None,
        cache_seconds=settings["cache_seconds"] if caches else 0,
    )


class Errand(ABC):
    """One page to fetch, held by a job.

    Attributes:
        job: the attempt.
        url: as given.
        source_id: whose page it is; None: of no source yet.
        target_id: None: of no target yet.
        run_no: of a run, or None.
        state: what earlier passes have found out: `url` and `hops` of redirects, `moved_to`, `robots`.
        page: hash of the kept response, once there is one.
        observed_at: when it was received.
        body: of the response, if this attempt received it.
        may_wait: whether it may wait longer than for its turn, and be tried again.
        asks_breaker: whether failures of its source hold it up.
    """

    may_wait = True
    asks_breaker = True

    def __init__(self, job: RunningJob, url: str) -> None:
        self.job = job
        self.url = url
        self.source_id: UUID | None = None
        self.target_id: UUID | None = None
        self.run_no: int | None = None
        self.state: dict[str, Any] = {}
        self.page: str | None = None
        self.observed_at: datetime | None = None
        self.body: bytes | None = None
        self.situation: Situation | None = None

    @property
    def is_last_attempt(self) -> bool:
        return self.job.attempt >= self.job.max_attempts

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of its source."""
        return self.situation.settings if self.situation else {}

    @property
    def is_alone_in_lane(self) -> bool:
        """Whether no other source has pages in the lane of this one."""
        if self.job.lane is None or self.source_id is None:
            return False
        pages = rf"^https://([^/]*\.)?{re.escape(self.job.lane)}[:/]"
        with connection.cursor() as cursor:
            cursor.execute(_SHARES, [self.source_id, pages])
            return not cursor.fetchone()[0]

    def look(self) -> Situation:
        """Read the switches and settings again."""
        self.situation = self._look()
        return self.situation

    def ended(self, outcome: PageOutcome, why: str, **about: Any) -> PartEnd:
        """Return the end of an errand without a page."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
        moved = {"moved_to": self.state["moved_to"]} if self.state.get("moved_to") else {}
        return PartEnd(outcome=outcome, detail={"error": why, **about, **moved}, observed_at=now)

    def save(self, state: dict[str, Any], *, also: Callable[[Any], None] | None = None) -> None:
        """Store how far the errand is, unless the job was taken over."""
        with self.job.transaction() as database, database.cursor() as cursor:
            if also is not None:
                also(cursor)
            if state != self.state:
                self._save(cursor, state)
        self.state = state

    def keep(self, body: bytes, stored: StoredBody, facts: Mapping[str, Any], *, since: float) -> None:
        """Store that the page is there, unless the job was taken over. `since`: seconds since it was received."""
        state = {**self.state, "fetched": dict(facts)}
        with self.job.transaction(), prepared_cursor() as cursor:
            at = kept_pages.keep(
                cursor, stored, url=facts["url"], status=facts["status"], content_type=facts["type"], since=since,
                source_id=self.source_id, target_id=self.target_id, run_no=self.run_no,
            )  # fmt: skip
            self._keep(cursor, state, stored.hash, at)
        self.state, self.page, self.observed_at, self.body = state, stored.hash, at, body

    def use_cached(self, seconds: int) -> bool:
        """Use a kept page instead of a request, if there is one that is new enough. It keeps its time."""
        where, values = self._cache_key()
        with connection.cursor() as cursor:
            cursor.execute(_CACHED.format(where=where), {**values, "seconds": seconds})
            found = cursor.fetchone()
        if found is None:
            return False
        state = {**self.state, "is_cached": True}
        with self.job.transaction() as database, database.cursor() as cursor:
            self._use(cursor, state, *found)
        self.state = state
        self.page, self.observed_at = found
        return True

    def forget_page(self) -> None:
        """Fetch it after all: the file of the kept page is gone."""
        self.page = self.observed_at = self.body = None
        self.state = {name: value for name, value in self.state.items() if name not in {"fetched", "is_cached"}}

    @property
    def kept(self) -> KeptPage | None:
        """The row of its kept page."""
        pages = KeptPage.objects.filter(hash=self.page, target_id=self.target_id)
        return pages.order_by("-fetched_at").first()

    @abstractmethod
    def _look(self) -> Situation: ...

    @abstractmethod
    def _save(self, cursor: Any, state: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def _keep(self, cursor: Any, state: Mapping[str, Any], page: str, at: datetime) -> None: ...

    @abstractmethod
    def _use(self, cursor: Any, state: Mapping[str, Any], page: str, at: datetime) -> None: ...

    @abstractmethod
    def _cache_key(self) -> tuple[str, dict[str, Any]]: ...


class PartErrand(Errand):
    """A page of a run."""

    def __init__(self, job: RunningJob, part: RunPart) -> None:
        super().__init__(job, "")
        self.part = part
        self.source_id = part.run.source_id
        self.target_id = part.target_id
        self.run_no = part.run.no
        self.state = dict(part.detail)
        self.page, self.observed_at = part.page, part.observed_at

    def _look(self) -> Situation:
        found = situation_of(self.target_id, self.part.run.trigger)
        self.url = found.url
        return found

    @property
    def _key(self) -> dict[str, Any]:
        return {"id": self.part.pk, "begun_at": self.part.begun_at}

    def _save(self, cursor: Any, state: Mapping[str, Any]) -> None:
        cursor.execute(_SAVE_PART, {**self._key, "state": json.dumps(state)})

    def _keep(self, cursor: Any, state: Mapping[str, Any], page: str, at: datetime) -> None:
        facts = state["fetched"]
        facts["wait_ms"] = round((at - self.part.begun_at).total_seconds() * 1000)
        values = {"page": page, "at": at, "target": self.target_id, "state": json.dumps(state)}
        validators = {"etag": facts.get("etag"), "last_modified": facts.get("last-modified")}
        cursor.execute(_KEEP_PART, {**self._key, **values, **validators})

    def _use(self, cursor: Any, state: Mapping[str, Any], page: str, at: datetime) -> None:
        values = {"page": page, "at": at, "state": json.dumps(state)}
        cursor.execute(_USE_PAGE, {**self._key, **values})

    def _cache_key(self) -> tuple[str, dict[str, Any]]:
        return "target_id = %(target)s", {"target": self.target_id}


class RequestErrand(Errand):
    """A single page that somebody asked for, whether or not its source may be read yet."""

    may_wait = False
    asks_breaker = False

    def __init__(self, job: RunningJob, request: FetchRequest) -> None:
        super().__init__(job, request.url)
        self.request = request
        self.source_id = request.source_id
        self.state = dict(request.state)
        self.page, self.observed_at = request.page, request.observed_at

    def _look(self) -> Situation:
        if self.source_id is None:
            return Situation(cache_seconds=CACHE_SECONDS)
        with connection.cursor() as cursor:
            cursor.execute(_SITUATION_OF_REQUEST, [self.source_id])
            row = cursor.fetchone()
        if row is None:
            return Situation(stop="The source was deleted.")
        _, adapter_id, stored, retailer, domain, version, places = row
        return Situation(
            settings=effective(json.loads(stored)),
            adapter_id=adapter_id or "structured",
            retailer_name=retailer,
            retailer_domain=domain or "",
            override=(version, json.loads(places)) if version is not None else None,
            cache_seconds=CACHE_SECONDS,
        )

    def _save(self, cursor: Any, state: Mapping[str, Any]) -> None:
        cursor.execute(
            "UPDATE fetch_requests SET state = %(state)s::jsonb WHERE id = %(id)s",
            {"id": self.request.pk, "state": json.dumps(state)},
        )

    def _keep(self, cursor: Any, state: Mapping[str, Any], page: str, at: datetime) -> None:
        cursor.execute(_KEEP_REQUEST, {"id": self.request.pk, "page": page, "at": at, "state": json.dumps(state)})

    _use = _keep

    def _cache_key(self) -> tuple[str, dict[str, Any]]:
        return "target_id IS NULL AND md5(url) = md5(%(url)s) AND url = %(url)s", {"url": self.url}
