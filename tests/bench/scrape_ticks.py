"""How long a tick of the scheduler of pages takes: with a tenth of them due, and with none due.

`python -m tests.bench.scrape_ticks` prints both for 100,000 pages over 10 shops and over 500.
"""

import contextlib
import statistics
import time
from typing import Any

from tests.bench.server import own_server

PAGES = 100_000
IDLE_TICKS = 20


class Attempt:
    """What a tick needs of its job, in transactions of its own."""

    def check(self) -> None:
        """Nobody cancels it."""

    @contextlib.contextmanager
    def transaction(self) -> Any:
        from django.db import transaction

        with transaction.atomic(durable=True):
            yield


def measure(shops: int, pages: int = PAGES) -> tuple[float, float]:
    """Return the seconds of a tick with a tenth of the pages due, and the milliseconds of one with none (median)."""
    from harvester.scraping.schedule import tick

    _fill(shops, pages)
    began = time.perf_counter()
    done = tick(Attempt())
    seconds = time.perf_counter() - began
    assert done["enqueued"] == pages // 10, done
    idle = []
    for _ in range(IDLE_TICKS):
        began = time.perf_counter()
        assert tick(Attempt())["sources"] == 0
        idle.append((time.perf_counter() - began) * 1000)
    return seconds, statistics.median(idle)


def _fill(shops: int, pages: int) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs; DELETE FROM job_lane_wakeups; DELETE FROM scrape_runs; DELETE FROM runs;")
        cursor.execute("DELETE FROM scrape_targets; DELETE FROM adapter_states; DELETE FROM sources;")
        cursor.execute("DELETE FROM retailers")
        cursor.execute(
            """
            INSERT INTO retailers (id, name, website, domain)
            SELECT gen_random_uuid(), 'shop ' || n, 'https://shop' || n || '.com', 'shop' || n || '.com'
            FROM generate_series(1, %(shops)s) n;
            INSERT INTO sources (id, retailer_id, name, kind, url, adapter_id, scrape_enabled, tos_reviewed_at,
                tos_approved_by)
            SELECT gen_random_uuid(), id, name, 'DIRECT', website, 'structured', true, now(), 'bench' FROM retailers;
            INSERT INTO scrape_targets (id, source_id, url, canonical_url, adapter_id, schedule, due_at, created_by)
            SELECT gen_random_uuid(), s.id, s.url || '/product/' || n, s.url || '/product/' || n, 'structured',
                (n %% 60) || ' */4 * * *', now() + CASE WHEN n %% 10 = 0 THEN -n ELSE 36000 END * interval '1 second',
                'bench'
            FROM sources s, generate_series(1, %(each)s) n
            """,
            {"shops": shops, "each": pages // shops},
        )
        cursor.execute("ANALYZE")


if __name__ == "__main__":
    with own_server():
        for shops in (10, 500):
            seconds, idle_ms = measure(shops)
            print(f"{shops} shops: tick_s={seconds:.2f} tick_idle_ms={idle_ms:.1f}")  # noqa: T201 - a report
