"""`python -m tests.bench.api`: searches over the API compared with the bare SQL of the same pages, in the same run.

The API is served by gunicorn and asked over one kept connection; the SQL is executed and fetched in this process. Both
take turns, so that a busy machine slows both.
"""

import argparse
import http.client
import json
import re
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import urlencode

from rich.console import Console
from rich.table import Table

from tests.bench.contender import ROOT
from tests.bench.report import BAR_HEAD, Bar, command, machine, markdown, versions
from tests.bench.seeded import seed
from tests.bench.server import own_server
from tests.support.portal_server import portal_server

JSON_FILE = ROOT / "build" / "bench" / "search.json"
PAGE = ROOT / "docs" / "benchmarks-search.md"
PACKAGES = ("psycopg", "django", "django-ninja", "gunicorn")
#: How many times the 95th percentile of the bare SQL a search may take.
BAR = 3.0
WARM_UP = 20
#: Of each offer.
PRICES = 2
_BUSY = "1000000"
HEAD = ("search", "SQL p50 ms", "SQL p95 ms", "API p50 ms", "API p95 ms", "p95 ratio")
INTRODUCTION = """
Written by `make bench-search`; run it for the numbers of your machine. Compare ratios within one run only:
absolute numbers differ between machines and hours.
""".strip()
NOTES = """
- The API is served by gunicorn with its keys, limits and access rules, and asked over one kept connection. The SQL is
  what the API executes for the same page, executed and fetched in the benchmark's own process. Both take turns.
- The searches are those that consumers mix: words, brands, stock, ranges of prices, orders, and one shop alone, whose
  products were all listed before those of nearly every other.
""".strip()


def main() -> int:
    options = _options()
    with own_server(options.home) as server:
        seed(server, offers=options.offers, prices=PRICES, log=print)
        token = _key()
        with portal_server(HARVESTER_API_RATE_PER_MINUTE=_BUSY) as address:
            rows = [_measure(address, token, case, options.requests) for case in cases()]
        return _report(rows, options.offers, server.version())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.api", description=__doc__)
    parser.add_argument("--offers", type=int, default=1_000_000, help="offers in the database (1,000,000)")
    parser.add_argument("--requests", type=int, default=200, help="requests for each search (200)")
    parser.add_argument("--home", type=Path, help="seed once and keep the server here, for the next time")
    return parser.parse_args()


def _key() -> str:
    from harvester.kernel.actor import system
    from harvester.ops import api_keys

    _, token = api_keys.create(system("bench"), "bench", ["offers:read"])
    return token


def cases() -> list[dict[str, Any]]:
    """Parameters of searches: words, filters and sorts as consumers mix them."""
    common = _common()
    brand, money, shop = str(common.brand), {"currency": common.currency}, {"retailer": _older_shop()}
    word, other = common.title.split()[:2]
    return [
        {"page_size": 20},
        {"q": word, "page_size": 20},
        {"q": f"{word} {other}", "page_size": 20},
        {"q": word, "brand": brand, **money, "sort": "price", "page_size": 20},
        {"q": word, "in_stock": "true", **money, "min_price": "10", "max_price": "100", "sort": "-price"},
        {"brand": brand, "page_size": 50},
        {**money, "in_stock": "true", "sort": "price", "page_size": 100},
        {**shop, "page_size": 20},
        {**shop, **money, "sort": "price", "page_size": 20},
    ]


def _common() -> Any:
    """An offer in the middle of what is shown."""
    from harvester.catalog.search import search
    from harvester.catalog.search_query import Query

    return search(Query(page_size=100)).offers[50]


def _older_shop() -> str:
    """A retailer whose products were all listed before those of most others."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT retailer_id FROM visible_offers GROUP BY 1 ORDER BY max(product_id) LIMIT 1")
        return str(cursor.fetchone()[0])


@dataclass(frozen=True)
class Measured:
    """How long one search took, in milliseconds: the bare SQL, and over the API."""

    case: dict[str, Any]
    bare: list[float]
    api: list[float]

    @property
    def ratio(self) -> float:
        return _cut(self.api, 95) / _cut(self.bare, 95)

    def cells(self) -> list[str]:
        cuts = [_cut(taken, place) for taken in (self.bare, self.api) for place in (50, 95)]
        return [urlencode(self.case), *(f"{value:.2f}" for value in cuts), f"{self.ratio:.2f}"]


def _cut(taken: list[float], place: int) -> float:
    return quantiles(taken, n=100)[place - 1]


def _measure(address: str, token: str, case: dict[str, Any], requests: int) -> Measured:
    ask, bare = asking(address, token, case), _bare(case)
    for _ in range(WARM_UP):
        ask(), bare()
    took = [(_milliseconds(bare), _milliseconds(ask)) for _ in range(requests)]
    return Measured(case, *(list(column) for column in zip(*took, strict=True)))


def asking(address: str, token: str, case: dict[str, Any]) -> Callable[[], None]:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    path, headers = f"/api/v1/offers?{urlencode(case)}", {"Authorization": f"Bearer {token}"}

    def ask() -> None:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body

    return ask


def _bare(case: dict[str, Any]) -> Callable[[], None]:
    from django.db import connection

    from harvester.api.offers import OfferFilters, to_query
    from harvester.catalog import search_sql
    from harvester.catalog.search import words_first

    query = to_query(OfferFilters(**case))
    statement, values = search_sql.statement(query), search_sql.parameters(query)
    walking = search_sql.walking(query) if search_sql.may_walk(query) else ""

    def bare() -> None:
        with connection.cursor() as cursor:
            if walking:
                cursor.execute(walking, values)
                if len(cursor.fetchall()) > query.page_size:
                    return
            with words_first() if walking and search_sql.asked_words(query) else nullcontext():
                cursor.execute(statement, values)
                cursor.fetchall()

    return bare


def _milliseconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def _report(rows: Sequence[Measured], offers: int, server: str) -> int:
    worst = max(row.ratio for row in rows)
    bar = Bar(
        what="p95 over the API, of the bare SQL; the worst search", figure=worst, limit=BAR, unit=" times", at_most=True
    )
    table = Table(*HEAD, title=f"{offers:,} offers")
    for row in rows:
        table.add_row(*row.cells())
    Console(width=160).print(table, f"worst ratio {worst:.2f}; the bar is {BAR:g}")
    _write_json(rows, offers)
    _write_page(rows, bar, offers, server)
    return 0 if bar.reached else 1


def _write_page(rows: Sequence[Measured], bar: Bar, offers: int, server: str) -> None:
    measured = f"Measured {datetime.now(UTC):%Y-%m-%d} with `{command('bench-search')}` on {machine()}"
    parts = [
        "# Benchmarks: search",
        INTRODUCTION,
        f"{measured}, {offers:,} offers; {versions(server, PACKAGES)}.",
        markdown(HEAD, [_readable(row.cells()) for row in rows]),
        markdown(BAR_HEAD, [bar.cells()]),
        "## Method",
        NOTES,
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")


def _readable(cells: list[str]) -> list[str]:
    """The number of a retailer says nothing, and is another one each time."""
    return [re.sub(r"retailer=[0-9a-f-]+", "retailer=…", cells[0]), *cells[1:]]


def _write_json(rows: Sequence[Measured], offers: int) -> None:
    """Over all searches together."""
    figures = {
        "offers": offers,
        "api_p95_ms": round(_cut([value for row in rows for value in row.api], 95), 3),
        "sql_p95_ms": round(_cut([value for row in rows for value in row.bare], 95), 3),
    }
    JSON_FILE.parent.mkdir(parents=True, exist_ok=True)
    JSON_FILE.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
