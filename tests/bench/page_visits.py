"""Asking for every page: of a real server for the time, in this process for the questions to the database."""

import http.client
import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver
from rich.progress import Progress

from harvester.ops.models import Role, User
from tests.bench.page_report import Page
from tests.support.portal import person
from tests.support.portal_server import portal_server

OK = 200
HOST = "127.0.0.1"
#: What stands for a part of an address: a row that is as heavy as there is.
EXAMPLES = {
    "job_id": "SELECT max(id) FROM jobs",
    "test_id": "SELECT max(id) FROM jobs WHERE kind = 'feeds.test'",
    "event_id": "SELECT max(id) FROM audit_events",
    "alert_id": "SELECT max(id) FROM alerts",
    "user_id": "SELECT max(id::text) FROM users",
    "feed_id": "SELECT f.id FROM feeds f JOIN sources s ON s.id = f.source_id "
    "ORDER BY s.last_promoted_count DESC NULLS LAST LIMIT 1",
    "source_id": "SELECT id FROM sources ORDER BY last_promoted_count DESC NULLS LAST LIMIT 1",
    "retailer_id": "SELECT retailer_id FROM sources ORDER BY last_promoted_count DESC NULLS LAST LIMIT 1",
    "no": "SELECT held_run_no FROM sources WHERE held_run_no IS NOT NULL ORDER BY last_promoted_count DESC LIMIT 1",
    "run_no": "SELECT held_run_no FROM sources WHERE held_run_no IS NOT NULL ORDER BY last_promoted_count DESC LIMIT 1",
    "run_id": "SELECT id FROM runs WHERE no = (SELECT max(no) FROM runs)",
    "key_id": "SELECT max(id::text) FROM api_keys",
    "correction_id": "SELECT max(id::text) FROM price_corrections",
    "offer_id": "SELECT source_id || '.' || product_id FROM offers LIMIT 1",
    "product_id": "SELECT product_id FROM offers WHERE source_id = (SELECT id FROM sources "
    "ORDER BY last_promoted_count DESC NULLS LAST LIMIT 1) LIMIT 1",
}
#: Lists are asked for with their filters too.
FILTERS = {
    "/jobs/": ("?state=pending", "?state=failed", "?queue=maintenance", "?q=check"),
    "/audit/": ("?verb=RUN_HELD", "?actor=feeds", "?object_type=run"),
    "/alerts/": ("?state=resolved", "?kind=RUN_HELD"),
    "/feeds/": ("?status=DISABLED", "?network=impact", "?q=store"),
    "/runs/": ("?status=FAILED", "?outcome=HELD", "?trigger=MANUAL"),
    "/offers/": ("?q=jacket", "?q=trail+running+shoe"),
}
_PART = re.compile(r"<(?:\w+:)?(\w+)>")
_NEXT = re.compile(r'rel="next" href="([^"]+)"')


def measure(*, rounds: int, depth: int, only: str, progress: Progress) -> list[Page]:
    admin = User.objects.filter(username="bench").first() or person("bench", Role.ADMIN)
    # Which addresses take no GET is found out by asking.
    logging.getLogger("django.request").setLevel(logging.ERROR)
    client = Client(SERVER_NAME=HOST)
    client.force_login(admin)
    asked = {address: _questions(client, address) for address in _addresses(client, only)}
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    connections.close_all()
    with portal_server() as base:
        ask = _asker(base, cookie)
        deep = {address: found for address in asked if (found := _follow(ask, address, depth, progress))}
        took = _rounds(ask, [*asked, *(link for link, _ in deep.values())], rounds, progress)
    return [_page(address, queries, took, deep.get(address)) for address, queries in asked.items()]


def _page(address: str, queries: int, took: dict[str, list[float]], deep: tuple[str, int] | None) -> Page:
    times = took[address]
    link, depth = deep or ("", 0)
    return Page(
        address=address,
        p50=_percentile(times, 0.5),
        p95=_percentile(times, 0.95),
        queries=queries,
        deep_p50=_percentile(took[link], 0.5) if deep else None,
        depth=depth,
    )


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def _addresses(client: Client, only: str) -> Iterator[str]:
    """Every address of the URL map that answers a GET with a page, and lists with their filters."""
    for pattern in _patterns(get_resolver().url_patterns):
        address = _with_examples(pattern)
        is_probe = address in ("/healthz", "/readyz")
        if not is_probe and not address.startswith(only or "/"):
            continue
        if client.get(address).status_code == OK:
            yield address
            yield from (f"{address}{query}" for query in FILTERS.get(address, ()))


def _patterns(patterns: list, prefix: str = "/") -> Iterator[str]:
    for pattern in patterns:
        here = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern.url_patterns, here)
        elif isinstance(pattern, URLPattern):
            yield here


def _with_examples(pattern: str) -> str:
    unknown = [name for name in _PART.findall(pattern) if name not in EXAMPLES]
    if unknown:
        raise SystemExit(f"{pattern}: EXAMPLES does not say what {unknown[0]} could be")
    return _PART.sub(lambda part: _example(part[1]), pattern)


def _example(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(EXAMPLES[name])
        row = cursor.fetchone()
    return str(row[0] if row and row[0] is not None else 0)


def _questions(client: Client, address: str) -> int:
    from django.core.cache import cache

    cache.clear()
    with CaptureQueriesContext(connection) as asked:
        client.get(address)
    return len(asked)


Ask = Callable[[str], tuple[float, int, str]]


def _asker(base: str, cookie: str) -> Ask:
    """Time in milliseconds, status and text of an address; the connection stays open."""
    server = http.client.HTTPConnection(urlsplit(base).netloc, timeout=120)

    def ask(address: str) -> tuple[float, int, str]:
        began = time.perf_counter()
        server.request("GET", address, headers={"Cookie": cookie})
        answer = server.getresponse()
        text = answer.read()
        return (time.perf_counter() - began) * 1000, answer.status, text.decode()

    return ask


def _follow(ask: Ask, address: str, depth: int, progress: Progress) -> tuple[str, int] | None:
    """The address of a page so far down a list, and how far that is; None if it is not a long list."""
    path, link, reached = address.split("?", maxsplit=1)[0], address, 0
    task = progress.add_task(f"down {address}", total=depth)
    while reached < depth and (found := _NEXT.search(ask(link)[2])):
        link, reached = path + found[1].replace("&amp;", "&"), reached + 1
        progress.update(task, completed=reached)
    progress.remove_task(task)
    return (link, reached) if reached > 1 else None


def _rounds(ask: Ask, addresses: list[str], rounds: int, progress: Progress) -> dict[str, list[float]]:
    """Every address once in each round, so that what slows the machine down slows all of them."""
    took: dict[str, list[float]] = defaultdict(list)
    task = progress.add_task("asking", total=rounds + 1)
    for number in range(rounds + 1):
        for address in addresses:
            milliseconds, status, _ = ask(address)
            assert status == OK, f"{address} answered {status}"
            if number:
                took[address].append(milliseconds)
        progress.update(task, completed=number + 1)
    return took
