"""The way of one page: switches, breaker, robots.txt, pace, request, and the page is kept. Then it is read.

Each pass makes at most one request, and each request has a grant of its own: robots.txt, every redirect, the page. In
between the job waits in its lane, with what it knows stored in its row. The page is stored before it is read, so
whatever happens after that never costs a second request.
"""

import email.utils
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin

import structlog
from django.conf import settings
from django.db import transaction

from harvester import __version__
from harvester.catalog import governance
from harvester.engine import lanes
from harvester.engine.errors import JobCancelled, Snooze
from harvester.engine.job import RunningJob
from harvester.guards import limits
from harvester.guards.egress import EgressPolicy, EgressRefused, InvalidHost
from harvester.guards.http import REDIRECTS, InvalidUrl
from harvester.guards.limits import RateLimit
from harvester.guards.page_client import PAGE_LIMITS, RESERVED_HEADERS, PageAnswer, PageClient
from harvester.guards.remote import quote_reply
from harvester.kernel.config import Network
from harvester.kernel.domains import registrable_domain
from harvester.kernel.errors import ConfigError, TerminalError, TransientError
from harvester.kernel.rejects import Rejected
from harvester.kernel.urls import WebUrl, split_url
from harvester.runs.kinds import PartEnd
from harvester.runs.models import RunPart
from harvester.scraping import alerts, kept_pages, lane_pace, robots_cache
from harvester.scraping.capacity import LONGEST_INTERVAL_SECONDS, pause_text
from harvester.scraping.errands import Errand, PartErrand
from harvester.scraping.jobs import QUEUE
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.reading import end_of
from harvester.scraping.robots_cache import RobotsAnswer
from harvester.scraping.settings import DENIED_HEADERS
from harvester.scraping.states import RUN_KIND, PageOutcome

log = structlog.get_logger(__name__)

#: For one exchange, from the connection to the last byte.
LIMITS: Final = PAGE_LIMITS
ACCEPT: Final = "text/html,application/xhtml+xml"
ACCEPT_LANGUAGE: Final = "en-US,en;q=0.9"
CONDITIONS: Final = frozenset({"if-none-match", "if-modified-since"})
HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
MOST_HOPS: Final = 5
#: The address itself is the reason, and nothing was connected to.
ADDRESS_ERRORS: Final = (EgressRefused, InvalidHost, InvalidUrl)
OK, NOT_MODIFIED, TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE = 200, 304, 429, 503
PERMANENT: Final = frozenset({301, 308})
GONE: Final = frozenset({404, 410})
#: The shop does not want this reader.
REFUSED: Final = frozenset({401, 403, 451})
#: Statuses after which the page is tried again [6.1].
RETRYABLE: Final = frozenset({TOO_MANY_REQUESTS, 500, 502, SERVICE_UNAVAILABLE, 504})
LONGEST_RETRY_AFTER: Final = 24 * 60 * 60.0
#: Seconds of rest after a 429 that does not say how long.
USUAL_RETRY_AFTER: Final = 60.0
#: Seconds after which a limiter that did not respond is asked again: one interval, within these.
LEAST_LIMITER_WAIT, MOST_LIMITER_WAIT = 0.5, 5.0
#: Seconds until the disk is looked at again after it was full.
NO_ROOM_SECONDS: Final = 60.0
#: After so many refreshes without success (about four hours), a page does not wait for its robots.txt any longer.
MOST_ROBOTS_FAILURES: Final = 4


class ShopBusy(TransientError):
    """The shop did not serve the page now."""

    code = "SHOP_BUSY"


def user_agent() -> str:
    """Return how Harvester names itself to shops.

    Raises:
        ConfigError: there is no contact, and without one no page is read.
    """
    url, mail = settings.CONFIG.scrape_contact_url, settings.CONFIG.scrape_contact_mail
    if not url or not mail:
        raise ConfigError(
            "Shops must be able to see who reads their pages. Set HARVESTER_SCRAPE_CONTACT_URL and "
            "HARVESTER_SCRAPE_CONTACT_MAIL, then restart all processes. No request was made."
        )
    return f"{robots_cache.AGENT}/{__version__} (+{url}; {mail})"


def client() -> PageClient:
    """Return the client of this process, which keeps connections open for the next request to a shop."""
    global _client  # noqa: PLW0603 - one per process, so that all threads share its connections
    key = (user_agent(), settings.CONFIG.egress_networks)
    with _client_lock:
        if _client is None or _client[0] != key:
            old, headers = _client, {"accept": ACCEPT, "accept-language": ACCEPT_LANGUAGE}
            made = PageClient(policy=EgressPolicy(key[1]), user_agent=key[0], headers=headers, limits=LIMITS)
            _client = (key, made)
            if old:
                old[1].close()
        return _client[1]


_client: tuple[tuple[str, tuple[Network, ...]], PageClient] | None = None
_client_lock = threading.Lock()


def close() -> None:
    """Close the connections of this process."""
    global _client
    with _client_lock:
        old, _client = _client, None
    if old:
        old[1].close()


def request_headers(own: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a source that may be sent: none that hides who is asking."""
    denied = DENIED_HEADERS | RESERVED_HEADERS
    return {name.lower(): value for name, value in own.items() if name.lower() not in denied}


def fetch_and_read(job: RunningJob, part: RunPart) -> PartEnd:
    """Do a page of a run: fetch it unless it is kept already, and read it."""
    errand = PartErrand(job, part)
    for _ in range(2):
        end = fetch(errand)
        if end is not None:
            return end
        try:
            body, about = kept_response(errand)
        except PageMissing as problem:
            log.warning("KEPT_PAGE_MISSING", part_id=str(part.pk), page=errand.page, error=str(problem))
            errand.forget_page()
            continue
        return end_of(errand, errand.situation or errand.look(), body, about)
    return errand.ended(PageOutcome.NETWORK, "The page was fetched, but could not be kept. Check the disk.")


def kept_response(errand: Errand) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of the page of an errand, and what is known about the response.

    Raises:
        PageMissing: its file is gone.
    """
    about = dict(errand.state.get("fetched") or {})
    if errand.body is not None:
        return errand.body, about
    if errand.page is None or (kept := errand.kept) is None:
        raise PageMissing("The page is no longer kept.")
    known = {"url": kept.url, "status": kept.status, "type": kept.content_type}
    return kept_pages.read_body(errand.page), {**known, **about}


def fetch(errand: Errand) -> PartEnd | None:
    """Fetch the page of an errand. Return None once it is kept, otherwise how it ended.

    Raises:
        Snooze: it waits for its turn; nothing was counted.
        TransientError: the shop did not serve it; the attempt counts.
        JobCancelled: a switch is off.
    """
    while errand.page is None:
        errand.job.check()
        user_agent()
        situation = errand.look()
        if situation.stop:
            raise JobCancelled(situation.stop)
        if situation.is_blocked:
            return errand.ended(PageOutcome.BLOCKED_BY_ROBOTS_TXT, "An admin blocked this page.")
        try:
            url = split_url(errand.state.get("url") or errand.url)
        except Rejected as problem:
            return errand.ended(PageOutcome.INVALID_URL, f"The address cannot be requested: {problem}.")
        if situation.cache_seconds and not errand.state and errand.use_cached(situation.cache_seconds):
            return None
        if errand.may_wait and not kept_pages.has_room():
            # The shop would be asked for nothing, three times for each page.
            with transaction.atomic():
                alerts.no_room()
            raise Snooze(NO_ROOM_SECONDS, "the disk has no room for more pages; free some space", rest_lane=True)
        _ask_breaker(errand)
        headers = request_headers(situation.settings["headers"])
        robots = robots_cache.check(url)
        if robots.is_allowed is None:
            end = _fetch_robots(errand, url, headers)
        elif robots.is_allowed:
            # Another page may well be unchanged since some time; that says nothing about this one.
            conditions = {} if errand.state.get("hops") else situation.conditions
            end = _request_page(errand, url, {**headers, **conditions}, robots.crawl_delay)
        else:
            end = _forbidden(errand, robots)
        if end is not None:
            return end
    return None


def refresh_robots(errand: Errand) -> RobotsAnswer:
    """Fetch the robots.txt of an errand's host unless it is known, and return whether its address is allowed."""
    url = split_url(errand.url)
    while (robots := robots_cache.check(url)).is_allowed is None:
        errand.job.check()
        user_agent()
        if end := _fetch_robots(errand, url, request_headers(errand.look().settings["headers"])):
            return RobotsAnswer(is_allowed=False, why=str(end.detail["error"]))
    return robots


def _forbidden(errand: Errand, robots: RobotsAnswer) -> PartEnd:
    """Return the end of a page that robots.txt forbids; while the file is not available, wait for it for some hours."""
    if not robots.wait:
        return errand.ended(PageOutcome.BLOCKED_BY_ROBOTS_TXT, robots.why)
    # The other pages of the lane would find the same, unless the shop has hosts whose files are available.
    rests = not robots_cache.has_available(errand.job.lane)
    if errand.may_wait and robots.failures < MOST_ROBOTS_FAILURES:
        raise Snooze(robots.wait, robots.why, rest_lane=rests)
    if errand.may_wait and rests:
        errand.job.rest_lane(robots.wait)
    return errand.ended(PageOutcome.ROBOTS_UNAVAILABLE, robots.why)


def _ask_breaker(errand: Errand) -> None:
    if errand.source_id is None or not errand.asks_breaker:
        return
    permission = governance.may_request(errand.source_id, RUN_KIND, holder=str(errand.job.id))
    if permission.is_stopped:
        raise JobCancelled(f"Nothing was requested: {permission.reason}.")
    if permission.wait:
        raise Snooze(permission.wait, permission.reason, rest_lane=errand.is_alone_in_lane)


def _send(errand: Errand, url: WebUrl, headers: Mapping[str, str], crawl_delay: float | None) -> PageAnswer:
    """Make one request with a grant of its own, taken right before it is written.

    Raises:
        Snooze: it is not its turn; nothing was sent.
        TransientError, TerminalError: those of the client.
    """
    found = lane_pace.pace_of(str(url), errand.settings, crawl_delay)
    in_lane = found.lane == errand.job.lane
    is_granted = False

    def take_turn() -> None:
        nonlocal is_granted
        try:
            grant = limits.take(found.limit_name, RateLimit(count=1, seconds=found.interval), strict=True)
        except TransientError as problem:
            wait = min(max(found.interval, LEAST_LIMITER_WAIT), MOST_LIMITER_WAIT)
            raise Snooze(wait, str(problem), rest_lane=True) from None
        if not grant.granted:
            raise Snooze(grant.wait, "it waits for its turn", rest_lane=in_lane)
        is_granted = True
        _rest_lane(errand, found.lane, found.interval)

    try:
        return client().get(str(url), headers=headers, before_send=take_turn, waiting=errand.job.waiting)
    except (TransientError, TerminalError):
        # A server that cannot be reached is not asked faster than one that can.
        if not is_granted:
            _rest_lane(errand, found.lane, found.interval)
        raise


def _rest_lane(errand: Errand, lane: str, seconds: float) -> None:
    if lane == errand.job.lane:
        errand.job.rest_lane(seconds)
    else:
        lanes.rest(QUEUE, lane, seconds)


def _postpone(errand: Errand, url: WebUrl, seconds: float) -> None:
    """Request nothing more of this shop for so long, because it asked for that."""
    found = lane_pace.pace_of(str(url), errand.settings)
    _rest_lane(errand, found.lane, seconds)
    try:
        limits.postpone(found.limit_name, seconds)
    except TransientError as problem:
        # The lane rests all the same, and nothing is granted while the limiter does not respond.
        log.warning("LIMIT_NOT_POSTPONED", lane=found.lane, seconds=seconds, error=str(problem))


def _request_page(errand: Errand, url: WebUrl, headers: Mapping[str, str], crawl_delay: float | None) -> PartEnd | None:
    """Request the page or the next hop to it. Return how it ended; None if it is kept or leads elsewhere."""
    try:
        answer = _send(errand, url, headers, crawl_delay)
    except TransientError as problem:
        return _again(errand, PageOutcome.NETWORK, str(problem), code=problem.code)
    except TerminalError as problem:
        outcome = PageOutcome.INVALID_URL if isinstance(problem, ADDRESS_ERRORS) else PageOutcome.NETWORK
        return errand.ended(outcome, str(problem), code=problem.code)
    if answer.status == OK:
        return _keep(errand, url, answer)
    if answer.status in REDIRECTS and "location" in answer.headers:
        return _follow(errand, url, answer)
    if answer.status in RETRYABLE:
        return _busy(errand, url, answer)
    outcome, why = PageOutcome.NETWORK, f"The shop answered with status {answer.status}."
    if answer.status == NOT_MODIFIED and not headers.keys().isdisjoint(CONDITIONS):
        outcome, why = PageOutcome.NOT_MODIFIED, "It has not changed."
    elif answer.status in GONE:
        outcome, why = PageOutcome.GONE, f"The shop has no such page any more (status {answer.status})."
    elif answer.status in REFUSED:
        outcome, why = PageOutcome.BLOCKED_PAGE, f"The shop refused the request (status {answer.status})."
    return errand.ended(outcome, why, status=answer.status, url=str(url))


def _busy(errand: Errand, url: WebUrl, answer: PageAnswer) -> PartEnd:
    """Try again later, in any case not before the shop wants to be asked again."""
    wait = retry_after(answer.headers)
    outcome = PageOutcome.NETWORK
    if answer.status == TOO_MANY_REQUESTS:
        outcome, wait = PageOutcome.RATE_LIMITED, USUAL_RETRY_AFTER if wait is None else wait
    if wait:
        _postpone(errand, url, wait)
    about = {"status": answer.status, "url": str(url)}
    return _again(errand, outcome, f"The shop answered with status {answer.status}.", wait=wait, **about)


def _again(errand: Errand, outcome: PageOutcome, why: str, *, wait: float | None = None, **about: Any) -> PartEnd:
    """Return how it ended after the last attempt; before that, raise so that it is tried again."""
    if errand.is_last_attempt or not errand.may_wait:
        return errand.ended(outcome, why, **about)
    raise ShopBusy(f"{why} It will be tried again.", retry_after=wait)


def _keep(errand: Errand, url: WebUrl, answer: PageAnswer) -> PartEnd | None:
    """Store a page before anything looks at it."""
    kind = answer.content_type
    if kind and kind not in HTML_TYPES:
        why = f"The address leads to {quote_reply(kind)!r}, which is not a page."
        return errand.ended(PageOutcome.PAGE_STRUCTURE_CHANGED, why, status=answer.status, url=str(url))
    body = kept_pages.store_body(answer.body)
    facts = {
        "url": str(url),
        "status": answer.status,
        "type": answer.headers.get("content-type", "")[:200],
        "fetch_ms": round(answer.duration * 1000),
    }
    for name in ("etag", "last-modified"):
        if not errand.state.get("hops") and 0 < len(answer.headers.get(name, "")) <= 500:  # noqa: PLR2004 - a longer one is not worth keeping
            facts[name] = answer.headers[name]
    if errand.state.get("moved_to"):
        facts["moved_to"] = errand.state["moved_to"]
    errand.keep(answer.body, body, facts, since=time.monotonic() - answer.received_at)
    return None


def _follow(errand: Errand, url: WebUrl, answer: PageAnswer) -> PartEnd | None:
    """Note where a redirect leads; the next pass requests that, if it is the same shop."""
    place = answer.headers["location"]
    about = {"status": answer.status, "url": str(url), "location": quote_reply(place)}
    try:
        # The shop may use characters that must be escaped, and a fragment is never sent.
        target = split_url(urljoin(str(url), place.partition("#")[0]))
    except (Rejected, ValueError):
        why = f"The page redirects to {quote_reply(place)}, which is not a web address."
        return errand.ended(PageOutcome.WRONG_DOMAIN, why, **about)
    first = split_url(errand.url)
    if registrable_domain(target.host) != registrable_domain(first.host):
        why = f"The page redirects to {target.host}, which is another shop. It was not followed."
        return errand.ended(PageOutcome.WRONG_DOMAIN, why, **about)
    hops = errand.state.get("hops", 0) + 1
    if hops > MOST_HOPS:
        return errand.ended(PageOutcome.NETWORK, f"The shop redirects more than {MOST_HOPS} times.", **about)
    state = {**errand.state, "url": str(target), "hops": hops}
    is_permanent = answer.status in PERMANENT and not errand.state.get("is_temporary")
    state |= {"moved_to": str(target)} if is_permanent else {"is_temporary": True}
    errand.save(state)
    return None


def _fetch_robots(errand: Errand, page: WebUrl, headers: Mapping[str, str]) -> PartEnd | None:
    """Request the robots.txt of a page's host, or the next hop to it, and store what it means.

    Return the end of the errand if that host must not be connected to.
    """
    origin = robots_cache.origin_of(page)
    hop = errand.state.get("robots") or {}
    if hop.get("origin") != origin:
        hop = {"origin": origin, "url": f"{origin}/robots.txt", "hops": 0}
    try:
        url = split_url(hop["url"])
        answer = _send(errand, url, {**headers, "accept": "text/plain,*/*;q=0.5"}, None)
    except (Rejected, TransientError, TerminalError) as problem:
        if isinstance(problem, ADDRESS_ERRORS) and not hop["hops"]:
            return errand.ended(PageOutcome.INVALID_URL, str(problem), code=problem.code)
        _robots_failed(errand, origin, None, str(problem))
        return None
    if answer.status in REDIRECTS and "location" in answer.headers:
        hops = hop["hops"] + 1
        place = urljoin(hop["url"], answer.headers["location"].partition("#")[0])
        if hops > MOST_HOPS:
            _robots_failed(errand, origin, answer.status, f"it redirects more than {MOST_HOPS} times")
        else:
            errand.save({**errand.state, "robots": {"origin": origin, "url": place, "hops": hops}})
        return None
    if answer.status == OK:
        refresh = robots_cache.fetched(origin, answer.status, answer.body)
    elif 400 <= answer.status < 500 and answer.status != TOO_MANY_REQUESTS:  # noqa: PLR2004 - 4xx
        refresh = robots_cache.fetched(origin, answer.status, None)
    else:
        wait = retry_after(answer.headers)
        if wait:
            _postpone(errand, url, wait)
        _robots_failed(errand, origin, answer.status, f"status {answer.status}")
        if wait and wait > LONGEST_INTERVAL_SECONDS and not errand.may_wait:
            # Somebody waits for this, and the shop does not want to be asked for longer than a person stays.
            why = f"{origin}/robots.txt is not available: status {answer.status}. The shop asked for {pause_text(wait)}"
            return errand.ended(PageOutcome.ROBOTS_UNAVAILABLE, f"{why}; nothing is fetched until then.")
        return None
    state = {name: value for name, value in errand.state.items() if name != "robots"}
    errand.save(state, also=refresh.write)
    return None


def _robots_failed(errand: Errand, origin: str, status: int | None, why: str) -> None:
    state = {name: value for name, value in errand.state.items() if name != "robots"}
    errand.save(state, also=lambda cursor: robots_cache.failed(cursor, origin, status, why))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, at most a day; None if it does not."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_RETRY_AFTER)
    until = _http_date(text)
    if until is None:
        return None
    # By the server's own clock, if it shows it.
    now = _http_date(headers.get("date", "")) or datetime.now(UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER)


def _http_date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
