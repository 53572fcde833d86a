"""The robots.txt of each scheme, host and port: fetched by page jobs, used for a day, never beyond.

A file that cannot be fetched forbids everything: after three tries nothing is requested for 15 minutes, then for twice
as long each time, up to a day. A shop that forbids all pages of a source in three refreshes in a row switches the
source off; only a refresh that allows one switches it on again, and only if no person had switched it off.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from harvester.guards.prepared import prepared_cursor
from harvester.kernel.actor import system
from harvester.kernel.rejects import Rejected
from harvester.kernel.robots import MOST_BYTES, NO_RULES, Robots, parse_robots
from harvester.kernel.urls import WebUrl, split_url
from harvester.ops import audit
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.scraping.models import ScrapeTarget

#: The name by which a robots.txt addresses us.
AGENT: Final = "Harvester"
ACTOR: Final = system("robots")
RULES, NONE, UNAVAILABLE = "RULES", "NONE", "UNAVAILABLE"
MOST_TRIES: Final = 3
#: After so many refreshes in a row that forbid everything, a source is switched off.
MOST_REFUSALS: Final = 3
ROBOTS_DISALLOWED: Final = "ROBOTS_DISALLOWED"
#: Bytes of files whose rules are kept ready; most shops have a few kilobytes.
_MOST_READY_BYTES: Final = 4 * 1024 * 1024

_LOOK = """
SELECT state, status, detail, failures, tries, fetched_at, extract(epoch FROM expires_at - clock_timestamp())::float8,
       CASE WHEN fetched_at IS DISTINCT FROM %(ready)s THEN body END
FROM robots_files WHERE origin = %(origin)s
"""
_AVAILABLE = """
SELECT EXISTS (SELECT FROM robots_files WHERE state <> %s AND expires_at > clock_timestamp() AND origin ~ %s)
"""
_FETCHED = """
INSERT INTO robots_files (origin, state, body, status, detail, fetched_at, expires_at)
VALUES (%(origin)s, %(state)s, %(body)s, %(status)s, %(detail)s, clock_timestamp(),
    clock_timestamp() + interval '1 day')
ON CONFLICT (origin) DO UPDATE SET state = excluded.state, body = excluded.body, status = excluded.status,
    detail = excluded.detail, fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, failures = 0,
    tries = 0
"""
# The third failed try ends this attempt to fetch it. What was allowed before is forgotten with the first.
_FAILED = """
INSERT INTO robots_files AS r (origin, state, status, detail, fetched_at, expires_at, tries)
VALUES (%(origin)s, 'UNAVAILABLE', %(status)s, %(detail)s, clock_timestamp(), clock_timestamp(), 1)
ON CONFLICT (origin) DO UPDATE SET state = 'UNAVAILABLE', body = NULL, status = excluded.status,
    detail = excluded.detail, fetched_at = excluded.fetched_at,
    tries = (r.tries + 1) %% %(most)s,
    failures = least(r.failures + CASE WHEN r.tries + 1 >= %(most)s THEN 1 ELSE 0 END, 100),
    expires_at = clock_timestamp() + CASE WHEN r.tries + 1 >= %(most)s
        THEN least(interval '15 minutes' * 2 ^ least(r.failures, 10), interval '1 day') ELSE interval '0' END
"""
# All enabled pages of sources that have one on this host.
_TARGETS = """
SELECT t.source_id, t.url FROM scrape_targets t
WHERE t.enabled AND t.source_id IN (
    SELECT h.source_id FROM scrape_targets h
    WHERE h.enabled AND starts_with(split_part(h.canonical_url, '://', 2), %(host)s))
"""
# What a person switched off stays off.
_ALLOWED = """
UPDATE sources s SET robots_refusals = 0, robots_compliant = s.robots_compliant OR s.robots_set_by IS NULL
FROM (SELECT id, robots_compliant FROM sources WHERE id = ANY (%(sources)s) ORDER BY id FOR UPDATE) old
WHERE s.id = old.id AND (s.robots_refusals > 0 OR NOT s.robots_compliant AND s.robots_set_by IS NULL)
RETURNING s.id, s.name, s.robots_compliant AND NOT old.robots_compliant
"""
_REFUSED = """
UPDATE sources s SET robots_refusals = least(s.robots_refusals + 1, 1000),
    robots_compliant = s.robots_compliant AND s.robots_refusals + 1 < %(most)s
FROM (SELECT id, robots_compliant FROM sources WHERE id = ANY (%(sources)s) ORDER BY id FOR UPDATE) old
WHERE s.id = old.id RETURNING s.id, s.name, old.robots_compliant AND NOT s.robots_compliant
"""


@dataclass(frozen=True, kw_only=True)
class KnownRobots:
    """What is known about the robots.txt of an origin.

    Attributes:
        origin: scheme, host and port.
        state: RULES, NONE or UNAVAILABLE.
        robots: its rules; none at all with NONE.
        seconds_left: until it has to be fetched again; not above zero: now.
        status: of the last response, if there was one.
        detail: why it is unavailable, or where it was found.
        failures: times in a row that it was unavailable.
        fetched_at: when, by the database's clock.
    """

    origin: str
    state: str
    robots: Robots
    seconds_left: float
    status: int | None
    detail: str
    failures: int
    fetched_at: datetime

    @property
    def is_current(self) -> bool:
        return self.seconds_left > 0


@dataclass(frozen=True, kw_only=True)
class RobotsAnswer:
    """Whether an address may be fetched.

    Attributes:
        is_allowed: None: its robots.txt has to be fetched first.
        why: for people; names the line of the file.
        wait: seconds until a file that is unavailable is tried again.
        failures: times in a row that it was unavailable.
        crawl_delay: seconds between requests that the file asks for.
    """

    is_allowed: bool | None
    why: str
    wait: float = 0.0
    failures: int = 0
    crawl_delay: float | None = None


def origin_of(url: WebUrl) -> str:
    """Return scheme, host and port as robots.txt counts them."""
    scheme = url.origin.partition("://")[0].lower()
    return f"{scheme}://{url.host}" + ("" if url.port is None else f":{url.port}")


def check(url: WebUrl) -> RobotsAnswer:
    """Return whether an address may be fetched, as far as it is known. One statement, no request."""
    known = look(origin_of(url))
    if known is None or not known.is_current:
        return RobotsAnswer(is_allowed=None, why="Its robots.txt has to be fetched first.")
    file = f"{known.origin}/robots.txt"
    if known.state == UNAVAILABLE:
        why = f"{file} is not available: {(known.detail or '').rstrip('.')}. Nothing is fetched until it is."
        return RobotsAnswer(is_allowed=False, why=why, wait=known.seconds_left, failures=known.failures)
    delay = known.robots.crawl_delay(AGENT)
    rule = known.robots.blocking_rule(_target_of(url), AGENT)
    if rule is not None:
        return RobotsAnswer(is_allowed=False, why=f"{file} forbids it in {rule}.", crawl_delay=delay)
    why = f"{file} does not exist, so everything is allowed." if known.state == NONE else f"{file} allows it."
    return RobotsAnswer(is_allowed=True, why=why, crawl_delay=delay)


def look(origin: str) -> KnownRobots | None:
    """Return what is known about the robots.txt of an origin; the rules may be out of date."""
    ready = _ready.get(origin)
    with prepared_cursor() as cursor:
        cursor.execute(_LOOK, {"origin": origin, "ready": ready and ready[0]})
        row = cursor.fetchone()
    if row is None:
        return None
    state, status, detail, failures, _, fetched_at, left, body = row
    if ready and ready[0] == fetched_at:
        robots = ready[1]
    else:
        robots = parse_robots(bytes(body)) if body is not None else NO_RULES
        _ready.put(origin, fetched_at, robots, len(body or b""))
    return KnownRobots(
        origin=origin, state=state, robots=robots, seconds_left=left, status=status, detail=detail, failures=failures,
        fetched_at=fetched_at,
    )  # fmt: skip


def has_available(lane: str | None) -> bool:
    """Return whether the robots.txt of some host of a domain is known, so that pages there may be read."""
    if lane is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_AVAILABLE, [UNAVAILABLE, rf"^https?://([^/]*\.)?{re.escape(lane)}(:|$)"])
        return bool(cursor.fetchone()[0])


def fetched(origin: str, status: int, body: bytes | None) -> "Refresh":
    """Return what a fetched file means for the sources of its host. A body of None: there is no file (4xx).

    Reads all their pages, so it is called outside the transaction that writes it.
    """
    robots = parse_robots(body) if body is not None else NO_RULES
    return Refresh(origin=origin, status=status, body=body, **_effects(origin, robots))


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """A robots.txt that was fetched.

    Attributes:
        origin: scheme, host and port.
        status: of the response.
        body: the file; None: there is none.
        allowing: sources of which it allows at least one page.
        refusing: sources of which it forbids every enabled page, together with the files of their other hosts.
    """

    origin: str
    status: int
    body: bytes | None
    allowing: list[UUID]
    refusing: list[UUID]

    def write(self, cursor: Any) -> None:
        """Write the file and what it means for sources. The transaction is the caller's."""
        body = None if self.body is None else self.body[:MOST_BYTES]
        values = {"origin": self.origin, "state": NONE if body is None else RULES, "body": body}
        cursor.execute(_FETCHED, {**values, "status": self.status, "detail": f"status {self.status}"})
        cursor.execute(_ALLOWED, {"sources": self.allowing})
        for source_id, name, is_new in cursor.fetchall():
            if is_new:
                resolve_alert(f"{ROBOTS_DISALLOWED}:{source_id}", "robots.txt allows pages again.")
                detail = {"name": name, "robots": f"{self.origin}/robots.txt"}
                audit.record(
                    ACTOR, "ROBOTS_ALLOWS_SOURCE", "source", source_id, changed=["robots_compliant"], detail=detail
                )
        cursor.execute(_REFUSED, {"sources": self.refusing, "most": MOST_REFUSALS})
        for source_id, name, is_new in cursor.fetchall():
            if not is_new:
                continue
            detail = {"name": name, "robots": f"{self.origin}/robots.txt", "refreshes": MOST_REFUSALS}
            audit.record(
                ACTOR, "ROBOTS_REFUSES_SOURCE", "source", source_id, changed=["robots_compliant"], detail=detail
            )
            raise_alert(
                ROBOTS_DISALLOWED,
                f"{ROBOTS_DISALLOWED}:{source_id}",
                f"{name}: robots.txt forbids every page",
                f"{self.origin}/robots.txt has forbidden every enabled page in {MOST_REFUSALS} refreshes. Its pages "
                "are no longer read; prices stay as they are until they expire. The file is checked each day, and "
                "reading resumes by itself once a page is allowed. Ask the shop, or delete the pages.",
                detail=detail,
            )


def failed(cursor: Any, origin: str, status: int | None, why: str) -> None:
    """Write that a robots.txt could not be fetched. The transaction is the caller's."""
    cursor.execute(_FAILED, {"origin": origin, "status": status, "detail": why[:500], "most": MOST_TRIES})


def _effects(origin: str, robots: Robots) -> dict[str, list[UUID]]:
    """Return the sources with a page on this origin of which the file allows one, and those of which it allows none."""
    host = split_url(origin).host
    while host.startswith("www.") and "." in host.removeprefix("www."):
        host = host.removeprefix("www.")
    with connection.cursor() as cursor:
        cursor.execute(_TARGETS, {"host": host})
        pages = cursor.fetchall()
    known = {origin: robots}
    concerned: set[UUID] = set()
    allowing: set[UUID] = set()
    for source_id, address in pages:
        url = _url_or_none(address)
        if url is None:
            continue
        its_origin = origin_of(url)
        if its_origin == origin:
            concerned.add(source_id)
        if source_id in allowing:
            continue
        if its_origin not in known:
            other = look(its_origin)
            # Unknown or unavailable is not a refusal of the shop.
            known[its_origin] = other.robots if other and other.is_current and other.state != UNAVAILABLE else NO_RULES
        if known[its_origin].allows(_target_of(url), AGENT):
            allowing.add(source_id)
    return {"allowing": sorted(allowing & concerned), "refusing": sorted(concerned - allowing)}


def origins_of(addresses: Iterable[str]) -> list[str]:
    """Return the origins of some addresses, each once."""
    return sorted({origin_of(url) for address in addresses if (url := _url_or_none(address))})


def closed_sources() -> list[tuple[UUID, list[str]]]:
    """Return the sources that robots.txt switched off, with the origins of their enabled pages."""
    pages = ScrapeTarget.objects.filter(
        enabled=True, source__scrape_enabled=True, source__robots_compliant=False, source__robots_set_by=None
    )
    found: dict[UUID, list[str]] = {}
    for source_id, url in pages.values_list("source_id", "url"):
        found.setdefault(source_id, []).append(url)
    return [(source_id, origins_of(urls)) for source_id, urls in sorted(found.items())]


def _target_of(url: WebUrl) -> str:
    return (url.path or "/") + ("" if url.query is None else f"?{url.query}")


def _url_or_none(address: str) -> WebUrl | None:
    try:
        return split_url(address)
    except Rejected:
        return None


class _Ready:
    """Rules that were read, for the threads of this process. The oldest go first."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, tuple[datetime, Robots, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, origin: str) -> tuple[datetime, Robots] | None:
        with self._lock:
            if origin not in self._found:
                return None
            self._found.move_to_end(origin)
            return self._found[origin][:2]

    def put(self, origin: str, fetched_at: datetime, robots: Robots, size: int) -> None:
        # Objects around the rules take room too.
        size += 1_000
        with self._lock:
            _, _, old = self._found.pop(origin, (None, None, 0))
            self._found[origin] = (fetched_at, robots, size)
            self._bytes += size - old
            while self._bytes > _MOST_READY_BYTES and len(self._found) > 1:
                self._bytes -= self._found.popitem(last=False)[1][2]


_ready: Final = _Ready()
