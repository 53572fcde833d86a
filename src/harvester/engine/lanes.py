"""How many jobs of a lane may run at once, and until when none is claimed."""

from django.db import connection

from harvester.engine import sql
from harvester.engine.enqueue import LONGEST_LANE, LONGEST_QUEUE
from harvester.engine.errors import check_delay
from harvester.engine.json_values import check_name
from harvester.kernel.errors import InvalidInput


def set_concurrency(queue: str, lane: str, concurrency: int) -> None:
    """Let up to `concurrency` jobs of this lane run at once; the default is 1."""
    if concurrency < 1:
        raise InvalidInput("A lane needs a concurrency of at least 1; to stop its jobs, cancel them.")
    check_name(queue, "queue", LONGEST_QUEUE)
    check_name(lane, "lane", LONGEST_LANE)
    with connection.cursor() as cursor:
        cursor.execute(sql.SET_LANE_CONCURRENCY, {"queue": queue, "lane": lane, "concurrency": concurrency})


def rest(queue: str, lane: str, seconds: float, *, shorten: bool = False) -> None:
    """Claim no job of this lane for so many seconds from now; jobs that run keep running.

    A shorter rest does not end a longer one, unless with `shorten`. It counts as soon as the caller's transaction has
    committed, and never waits for a worker. A handler whose lane has a concurrency of 1 uses `job.rest_lane`, which
    costs no statement.
    """
    check_delay(seconds, "A lane cannot rest")
    check_name(queue, "queue", LONGEST_QUEUE)
    check_name(lane, "lane", LONGEST_LANE)
    with connection.cursor() as cursor:
        cursor.execute(sql.REST_LANE, {"queue": queue, "lane": lane, "seconds": seconds, "shorten": shorten})
